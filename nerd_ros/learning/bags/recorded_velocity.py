# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Whether recorded velocities are those of the recorded motion: some drivers make them up."""

import numpy as np

# Velocities that miss the motion by more than this share are of no use.
LARGEST_ERROR = 0.5
_WINDOW = 0.05   # over which velocity and change of position are compared [s]
_SLOWEST = 1e-4  # motion [RMS within a window, rad or m] that says anything


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
