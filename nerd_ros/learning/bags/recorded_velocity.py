# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Whether recorded velocities are those of the recorded motion.

Some drivers make them up, others send the difference of the last two positions: noisy, and late
by half a period.
"""

import numpy as np

from nerd_ros.learning.bags.local_slope import slope, window_length

# Velocities that miss the motion by more than this share are of no use.
LARGEST_ERROR = 0.5
_WINDOW = 0.05   # over which velocity and change of position are compared [s]
_SLOWEST = 1e-4  # motion [RMS within a window, rad or m] that says anything
# Velocities are replaced where they are this many times as far off as the slope of positions.
_CLEARLY = 4.0
# What is off by less [rad/s, m/s] does no harm.
_HARMLESS = 1e-3
_MOVING = 0.05          # speed [rad/s, m/s] above which velocities are compared
_SAMPLES = 20_000       # that are looked at, of a long recording
_MEDIAN_OF_NORMAL = 0.6745   # median of the size of errors, in standard deviations


def velocity_error(time: np.ndarray, position: np.ndarray, velocity: np.ndarray) -> float:
    """
    Return by what share of it the recorded velocity misses the motion, RMS over 50 ms.

    `time (N,)` [s] rises; `position` and `velocity` `(N, K)` are finite. Noise averages out; a
    wrong unit, sign or frame does not. 0 where nothing moves.
    """
    steps = np.diff(time)
    moved = np.zeros_like(position)
    np.cumsum(0.5 * (velocity[1:] + velocity[:-1]) * steps[:, None], axis=0, out=moved[1:])
    period = float(np.median(steps))
    stride = max(3, round(_WINDOW / period))
    rows = np.arange(0, len(time), stride)
    # Windows over a gap say nothing.
    short = np.diff(time[rows]) < 2 * stride * period
    real, told = np.diff(position[rows], axis=0)[short], np.diff(moved[rows], axis=0)[short]
    size = np.sqrt(np.mean(np.square(real))) if len(real) else 0.0
    return float(np.sqrt(np.mean(np.square(told - real))) / size) if size > _SLOWEST else 0.0


def velocity_errors(time: np.ndarray, position: np.ndarray, velocity: np.ndarray
                    ) -> tuple[float, float]:
    """
    Return how far recorded velocity, and the slope of the positions, are off [rad/s, m/s].

    `time (N,)` rises, `position (N,)` is finite. The first is the scatter of `velocity (N,)` about
    the slope. The second is how much the slope changes with a fit of about the same noise that
    follows fast motion better: it holds the noise of the slope and what it misses of the motion.
    Both are typical while something moves, by the median: at an impact, where slopes are far off,
    velocity that was measured is not to be blamed. 0 where nothing moves.
    """
    count, _ = window_length(time)
    rows = np.linspace(0, len(time) - 1, min(len(time), _SAMPLES)).round().astype(int)
    rows = rows[(rows >= count) & (rows < len(time) - count)]
    # Ends, and windows over a gap, say nothing.
    whole = time[rows + count] - time[rows - count] < 3 * count * np.median(np.diff(time))
    rows = rows[whole & np.isfinite(velocity[rows])]
    usual, better = (slope(time, position[:, None], time[rows], wide)[:, 0]
                     for wide in (False, True))
    moves = np.abs(usual) > _MOVING
    if not moves.any():
        return 0.0, 0.0
    return tuple(float(np.median(np.abs(error[moves])) / _MEDIAN_OF_NORMAL)
                 for error in (velocity[rows] - usual, better - usual))


def slope_is_better(recorded: float, of_slope: float) -> bool:
    """Return whether `velocity_errors` speak for the slope, by more than they may be off."""
    return recorded > max(_CLEARLY * of_slope, _HARMLESS)
