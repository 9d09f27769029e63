# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
At which times the messages of a recording were measured.

Header stamps count where they can be trusted, times of receipt else. Where the times of states
are uneven, the motion says which clock is right: positions measured at evenly flowing times lie
close to the line between their neighbours.
"""

from collections.abc import Sequence

import numpy as np
from scipy.ndimage import convolve1d
from scipy.signal import savgol_filter

from nerd_ros.learning.bags.base_topics import PoseSeries
from nerd_ros.learning.bags.bag_topics import JointSeries

# Clocks that differ more than this [s] are two.
_CLOCK_OFFSET = 0.1
# Clocks whose rates differ more than this share are two.
_CLOCK_RATE = 0.02
# Stamps that step back further than this [s] are no times.
_BACKWARDS = 0.1
# Steps are uneven if they scatter by more than this share of their median.
_UNEVEN = 0.3
# Another clock has to make the motion that much smoother to be believed.
_SMOOTHER = 0.5
_LINE_SAMPLES = 201    # that a line is fitted to, to smooth times
_LONG_STEP = 0.05      # over which a speed is taken [s]
_JUDGED = 100_000      # samples that a clock is judged by


def set_times(series: Sequence[JointSeries | PoseSeries], notes: list[str],
              dt: float) -> None:
    """
    Give all series times of one clock, in order, in s from the first message.

    What was chosen and why is added to `notes`; `dt` [s] is the step of the model.
    """
    faults = {s.topic: _stamp_fault(s.stamp) for s in series}
    reason = _clock_fault([s for s in series if not faults[s.topic]], any(faults.values()))
    clock = ''
    zero = min(int((s.received if reason or faults[s.topic] else s.stamp).min()) for s in series)
    for one in series:
        fault = reason or (faults[one.topic] and f'{one.topic} {faults[one.topic]}')
        if fault:
            # Told once if it is true of all.
            note = f'times of receipt were used, since {fault}'
            if note not in notes:
                notes.append(note)
        received = (one.received - zero) * 1e-9
        one.time = received if fault else (one.stamp - zero) * 1e-9
        # What does not move takes the clock of what does: the states come first.
        clock = _choose_clock(one, None if fault else received, clock, notes, dt)
    first = min(s.time[0] for s in series)
    for one in series:
        one.time = one.time - first


def _stamp_fault(stamp: np.ndarray | None) -> str | None:
    """Return what makes header stamps unfit as times, in words."""
    if stamp is None:
        return 'has no header stamps'
    if (stamp == 0).any():
        return 'has header stamps of zero'
    if (stamp < np.maximum.accumulate(stamp) - _BACKWARDS * 1e9).any():
        return 'has header stamps that go backwards'
    if len(stamp) > 2 and (np.diff(stamp) == 0).mean() > 0.5:
        return 'has header stamps that stand still'
    return None


def _clock_fault(stamped: list, others: bool) -> str | None:
    """Return why header stamps cannot be used together, `others` says with times of receipt."""
    if not stamped:
        return None
    offset = {s.topic: float(np.median(s.received - s.stamp)) * 1e-9 for s in stamped}
    first = stamped[0]
    for one in stamped[1:]:
        apart = offset[first.topic] - offset[one.topic]
        if abs(apart) > _CLOCK_OFFSET:
            return (f'{one.topic} has header stamps of another clock, {apart:+.3f} s from that '
                    f'of {first.topic}')
    if others:
        for one in stamped:
            received, stamp = np.ptp(one.received), np.ptp(one.stamp)
            if abs(offset[one.topic]) > _CLOCK_OFFSET:
                return (f'{one.topic} has header stamps {offset[one.topic]:+.3f} s from the '
                        'times of receipt, and other topics have none')
            if abs(float(stamp) - float(received)) > _CLOCK_RATE * max(received, 1e9):
                return (f'the header stamps of {one.topic} run at another rate than the times of '
                        'receipt, and other topics have none')
    return None


def _choose_clock(series, received: np.ndarray | None, usual: str, notes: list[str],
                  dt: float) -> str:
    """
    Sort a series by its time; where that is uneven, take the clock that makes the motion smooth.

    Without motion it is the `usual` one. Returns which was taken, '' for its time as it was.
    """
    time = series.time
    candidates = {'': time}
    steps = np.diff(np.sort(time))
    uneven = len(time) > 20 and _scatter(steps) > _UNEVEN * np.median(steps)
    if uneven:
        candidates['the times of receipt'] = received
        candidates['a line through them'] = _smooth(time)
        if received is not None:
            # Both clocks go on counting from the same instant.
            received -= np.median(received - time)
            candidates['a line through the times of receipt'] = _smooth(received)
    values = _measured(series)
    best = ''
    if uneven:
        candidates = {name: clock for name, clock in candidates.items() if clock is not None}
        rough = {name: _roughness(clock, values) for name, clock in candidates.items()}
        smoothest = min(rough, key=rough.get)
        if np.isinf(rough[smoothest]):
            best = usual if usual in candidates else ''
        elif rough[smoothest] < _SMOOTHER * rough['']:
            best = smoothest
    if best:
        series.time = candidates[best]
        jitter = np.sqrt(np.mean((series.time - time)**2))
        notes.append(f'the times of {series.topic} jitter by {jitter * 1e3:.1f} ms (RMS), the '
                     f'motion is smooth with {best}: that was used')
    series.keep(np.argsort(series.time, kind='stable'))
    if uneven:
        _average(series, notes, dt)
    return best


def _measured(series) -> np.ndarray:
    """Return the columns of a series that tell of motion."""
    if isinstance(series, PoseSeries):
        return series.pose
    return series.position[:, np.isfinite(series.position[:_JUDGED]).sum(0) > 2]


def _scatter(values: np.ndarray) -> float:
    """Return the standard deviation of the bulk of `values`, outliers left out."""
    return 1.4826 * float(np.median(np.abs(values - np.median(values))))


def _smooth(time: np.ndarray) -> np.ndarray:
    """Return the times `(N,)` of a periodic sender, in order of receipt, without their jitter."""
    steps = np.diff(time)
    lag = min(20, len(time) - 1)
    period = float(np.median(time[lag:] - time[:-lag])) / lag
    limit = 5 * max(period, _scatter(steps))
    breaks = np.flatnonzero(np.abs(steps - period) > limit) + 1
    pieces = np.split(time, breaks)
    return np.concatenate([
        savgol_filter(piece, min(_LINE_SAMPLES, len(piece) - 1 + len(piece) % 2), 1)
        if len(piece) > 10 else piece for piece in pieces])


def _deviations(time: np.ndarray, values: np.ndarray) -> np.ndarray:
    """
    Return how far inner samples lie from the line between their neighbours, `(N - 2, K)`.

    Samples are ordered by `time (N,)`; those without a neighbour at another time are left out.
    """
    order = np.argsort(time[:_JUDGED], kind='stable')
    time, values = time[order], values[order]
    span = time[2:] - time[:-2]
    good = span > 0
    span = span[good, None]
    before, after = values[:-2][good], values[2:][good]
    share = (time[1:-1] - time[:-2])[good, None] / span
    return values[1:-1][good] - before - share * (after - before)


def _roughness(time: np.ndarray, values: np.ndarray) -> float:
    """Return the RMS deviation from straight motion over all columns, each by its spread."""
    deviation = _deviations(time, values)
    spread = np.nanstd(values, axis=0)
    moves = spread > 1e-3
    if not moves.any() or not np.isfinite(deviation[:, moves]).any():
        return np.inf
    return float(np.sqrt(np.nanmean(np.square(deviation[:, moves] / spread[moves]))))


def _average(series, notes: list[str], dt: float) -> None:
    """
    Average neighbouring samples where even the order of the messages is lost to jitter.

    Times are averaged like the values, so that straight motion stays what it is.
    """
    time = series.time
    names = [n for n in ('position', 'velocity', 'effort', 'pose', 'twist') if hasattr(series, n)]
    values = _measured(series)
    if not values.shape[1]:
        return
    period = float(time[-1] - time[0]) / len(time)
    # Steps of jittering times are too short to divide by.
    lag = max(1, round(_LONG_STEP / period)) if period > 0 else len(time)
    if period >= dt or len(time) <= lag:
        return
    deviation = _deviations(time, values)
    rate = (values[lag:] - values[:-lag]) / np.maximum(time[lag:] - time[:-lag], period)[:, None]
    speed = np.sqrt(np.nanmean(np.square(rate), axis=0))
    moves = speed > 1e-2
    if not moves.any():
        return
    # Three independent errors of times make a deviation.
    error = float(np.median(np.sqrt(np.nanmean(np.square(deviation), axis=0) / 1.5)[moves]
                            / speed[moves]))
    count = round(min(4 * error, 0.04) / period)
    if error < dt / 4 or count < 2:
        return
    weights = np.full(2 * (count // 2) + 1, 1 / (2 * (count // 2) + 1))
    pieces = np.split(np.arange(len(time)), np.flatnonzero(np.diff(time) > 0.05) + 1)
    for name in ['time', *names]:
        value = getattr(series, name)
        setattr(series, name, np.concatenate([
            convolve1d(value[rows], weights, axis=0, mode='nearest') for rows in pieces]))
    notes.append(f'the order of the messages of {series.topic} is lost to jitter of '
                 f'{error * 1e3:.1f} ms: {len(weights)} neighbours were averaged')
