# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How long a joint takes from a commanded to a measured effort."""

from collections.abc import Sequence

import numpy as np

from nerd_ros.learning.bags.resampling import hold, linear

_STEP = 0.001                     # of the times at which efforts are compared [s]
_EARLIEST, _LATEST = -0.03, 0.2   # latencies that are tried [s]
_LONGEST = 300.0                  # motion that is looked at [s], spread over the recording
_PIECE = 20.0                     # and in pieces of at most this length [s]
_AWAY = 0.01                      # distance from the best latency that has to be worse [s]
_LOWEST_CORRELATION = 0.5
_AHEAD = -0.005   # an effect further before its cause than this is none [s]


def effort_latency(spans: Sequence[tuple[float, float]], command_time: np.ndarray,
                   command: np.ndarray, time: np.ndarray,
                   effort: np.ndarray) -> tuple[float | None, str]:
    """
    Return the latency [s] and '', or None and why it cannot be told.

    It is where the correlation of measured effort `effort (N,)` at `time (N,)` and command, held
    until the next one, is largest; between the tried latencies by a parabola. `spans` are start
    and end [s] of stretches without a gap.
    """
    if not np.isfinite(effort).any():
        return None, 'no measured effort'
    known = command[np.isfinite(command)]
    if len(known) == 0 or np.ptp(known) == 0:
        return None, 'the command never changes'
    low, high = round(_EARLIEST / _STEP), round(_LATEST / _STEP)
    lags = np.arange(low, high + 1)
    sums = np.zeros((5, len(lags)))   # m, c, m m, c c, m c
    count = 0
    for start, end in _pieces(spans):
        at = np.arange(start, end, _STEP)
        measured = linear(time, effort[:, None], at)[:, 0]
        commanded = hold(command_time, command[:, None], at)[:, 0]
        inner = measured[high:len(at) + low]
        for k, lag in enumerate(lags):
            early = commanded[high - lag:len(at) + low - lag]
            sums[:, k] += (inner.sum(), early.sum(), inner @ inner, early @ early, inner @ early)
        count += len(inner)
    if count < 2:
        return None, 'no stretch is long enough'
    m, c, mm, cc, mc = sums / count
    spread = (mm - m * m) * (cc - c * c)
    if spread.min() <= 1e-12 * max(float((mm * cc).max()), 1e-12):
        return None, 'the command or the measured effort hardly changes'
    correlation = (mc - m * c) / np.sqrt(spread)
    best = int(correlation.argmax())
    peak = float(correlation[best])
    if peak < _LOWEST_CORRELATION:
        return None, f'the measured effort does not follow the command (correlation {peak:.2f})'
    if best in (0, len(lags) - 1):
        return None, 'it is longer than can be told'
    away = round(_AWAY / _STEP)
    beside = max(correlation[max(best - away, 0)], correlation[min(best + away, len(lags) - 1)])
    if peak - beside < 0.02 * (1 - peak**2) + 1e-7:
        return None, 'the command changes too slowly'
    left, middle, right = correlation[best - 1:best + 2]
    latency = float((lags[best] + 0.5 * (left - right) / (left - 2 * middle + right)) * _STEP)
    if latency < _AHEAD:
        return None, f'the measured effort is {-latency * 1e3:.0f} ms ahead of the command'
    return latency, ''


def _pieces(spans: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return parts of `spans` that hold every tried latency, at most 300 s, evenly spread."""
    pieces = []
    for start, end in spans:
        count = max(1, int(np.ceil((end - start) / _PIECE)))
        edges = np.linspace(start, end, count + 1)
        pieces += [(a, b) for a, b in zip(edges, edges[1:])
                   if b - a > 2 * (_LATEST - _EARLIEST)]
    total = sum(b - a for a, b in pieces)
    if total > _LONGEST:
        chosen = np.linspace(0, len(pieces) - 1, int(len(pieces) * _LONGEST / total) + 1)
        pieces = [pieces[k] for k in np.unique(chosen.round().astype(int))]
    return pieces
