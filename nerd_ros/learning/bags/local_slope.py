# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Rates of change of unevenly sampled positions and rotations.

A polynomial is fitted to the samples around each time (Savitzky and Golay, 1964): a quadratic
within 15 ms on both sides, or a cubic where it takes more than that to have five samples. Where a
recording ends the samples lie on one side. Nothing is delayed.
"""

import numpy as np
from scipy.spatial.transform import Rotation

METHOD = 'slope of a curve fitted to the positions'
"""What this is, in words for a report."""
_HALF_WIDTH = 0.015   # [s]
_FEWEST = 5           # samples
# Directions in which the samples hardly differ, as a share of the window squared, say nothing.
_SMALLEST = 1e-4
# Times whose windows are in memory at once.
_CHUNK = 20_000


def slope(time: np.ndarray, values: np.ndarray, at: np.ndarray,
          wide: bool = False) -> np.ndarray:
    """
    Rate of change `(T, K)` at the times `at (T,)` of `values (N, K)` at the rising `time (N,)`.

    `wide` is a fit of about the same noise that follows fast motion better: twice the window, and
    a polynomial of two degrees more.
    """
    result = np.empty((len(at), values.shape[1]))
    for first in range(0, len(at), _CHUNK):
        rows = slice(first, first + _CHUNK)
        index, weights = _window(time, at[rows], wide)
        result[rows] = np.einsum('tn,tnk->tk', weights, values[index])
    return result


def angular_velocity(time: np.ndarray, rotation: Rotation, at: np.ndarray) -> np.ndarray:
    """
    Angular velocity `(T, 3)` [rad/s] in the world at `at (T,)` of N rotations at `time (N,)`.

    It is the slope of the rotation vectors from the sample in the middle of each window.
    """
    result = np.zeros((len(at), 3))
    for first in range(0, len(at), _CHUNK):
        rows = slice(first, first + _CHUNK)
        index, weights = _window(time, at[rows])
        back = rotation[_nearest(time, at[rows])].inv()
        for k in range(index.shape[1]):
            result[rows] += weights[:, [k]] * (rotation[index[:, k]] * back).as_rotvec()
    return result


def window_length(time: np.ndarray) -> tuple[int, int]:
    """Samples of the rising `time (N,)` in a window, and the degree of the fit."""
    count = 2 * round(_HALF_WIDTH / float(np.median(np.diff(time)))) + 1
    return (count, 2) if count >= _FEWEST else (_FEWEST, 3)


def _window(time: np.ndarray, at: np.ndarray,
            wide: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """
    Return samples `(T, n)` and what each counts for the slope at `at (T,)`.

    The fit is a sum of polynomials that are orthogonal on the samples, by their recurrence.
    """
    count, degree = window_length(time)
    if wide:
        count, degree = 2 * count - 1, degree + 2
    count = min(count, len(time))
    first = np.clip(_nearest(time, at) - count // 2, 0, len(time) - count)
    index = first[:, None] + np.arange(count)
    x = time[index] - at[:, None]
    size = np.abs(x).max(1, keepdims=True)
    x /= size
    before, now = np.zeros_like(x), np.ones_like(x)
    # The same polynomials at x = 0, and their slopes there.
    value_before, value = np.zeros_like(size), np.ones_like(size)
    slope_before, slope_now = np.zeros_like(size), np.zeros_like(size)
    norm_before, norm = np.ones_like(size), np.full_like(size, count)
    weights = np.zeros_like(x)
    for k in range(degree):
        mean = (x * now * now).sum(1, keepdims=True) / norm
        back = norm / norm_before if k else np.zeros_like(norm)
        before, now = now, (x - mean) * now - back * before
        slope_before, slope_now = slope_now, value - mean * slope_now - back * slope_before
        value_before, value = value, -mean * value - back * value_before
        norm_before, norm = norm, (now * now).sum(1, keepdims=True)
        told = norm > _SMALLEST
        weights += np.where(told, slope_now / np.where(told, norm, 1.0), 0.0) * now
        norm = np.where(told, norm, np.inf)   # no further polynomial, then
    return index, weights / size


def _nearest(time: np.ndarray, at: np.ndarray) -> np.ndarray:
    right = np.clip(np.searchsorted(time, at), 1, len(time) - 1)
    return right - (at - time[right - 1] < time[right] - at)
