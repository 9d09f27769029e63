# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Uneven samples at even times: `time (N,)` rises strictly, values are `(N, K)`."""

import numpy as np


def cubic(time: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """
    Values `(T, K)` at the times `at (T,)` by cubic Hermite interpolation.

    Slopes are central differences of the values themselves: a linear interpolation would be off
    by `a h^2 / 8`, 0.01 rad for a fast joint that is recorded at 33 Hz.
    """
    slopes = np.gradient(values, time, axis=0)
    left = np.clip(np.searchsorted(time, at, 'right') - 1, 0, len(time) - 2)
    step = (time[left + 1] - time[left])[:, None]
    s = (at[:, None] - time[left][:, None]) / step
    return ((1 + 2 * s) * (1 - s) ** 2 * values[left] + s * (1 - s) ** 2 * step * slopes[left]
            + s * s * (3 - 2 * s) * values[left + 1] - s * s * (1 - s) * step * slopes[left + 1])


def linear(time: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Values `(T, K)` at `at (T,)`; what is not finite is skipped, a column without any is 0."""
    result = np.zeros((len(at), values.shape[1]))
    for k, column in enumerate(values.T):
        known = np.isfinite(column)
        if known.any():
            result[:, k] = np.interp(at, time[known], column[known])
    return result


def hold(time: np.ndarray, values: np.ndarray, at: np.ndarray) -> np.ndarray:
    """
    Last finite value of each column at or before `at (T,)`, shape `(T, K)`; 0 before the first.

    Times may repeat, then the later value counts.
    """
    result = np.zeros((len(at), values.shape[1]))
    for k, column in enumerate(values.T):
        known = np.isfinite(column)
        # A hair of tolerance, so that a command at the very time of a sample counts.
        index = np.searchsorted(time[known], at + 1e-9, 'right')
        result[:, k] = np.concatenate([[0.0], column[known]])[index]
    return result
