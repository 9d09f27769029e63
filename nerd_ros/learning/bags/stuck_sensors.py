# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors that repeat one value while what they measure moves."""

import numpy as np

# What moves less than this [rad, m] in a recording stands still.
STANDSTILL = 1e-3
# Shorter than this [s], or than so many messages, no sensor is taken for stuck.
_SHORTEST = 0.05
_MESSAGES = 10
# A step is a jump if it is so many times those around it.
_JUMP = 4.0
# A velocity of this share of its RMS is motion.
_RUNS_ON = 0.3


def stuck_samples(time: np.ndarray, values: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """
    Return which samples `(N,)` come from a sensor that is stuck.

    `time (N,)` [s] rises, `values (N, K)` are finite, `velocity (N, K)` is NaN where unknown. A
    joint may well stand still, held by friction, and then it stops and starts smoothly. A stuck
    sensor is betrayed by a jump at either end of such a stretch, or by a recorded velocity.
    """
    stuck = np.zeros(len(time), bool)
    if len(time) < _MESSAGES or np.ptp(values, axis=0).max() < STANDSTILL:
        return stuck
    steps = np.linalg.norm(np.diff(values, axis=0), axis=1)
    period = float(np.median(np.diff(time)))
    smallest = float(steps[steps > 0].min())
    speed = np.linalg.norm(velocity, axis=1)
    known = np.isfinite(speed)
    usual_speed = np.sqrt(np.mean(np.square(speed[known]))) if known.any() else 0.0
    edges = np.flatnonzero(np.diff((steps == 0).astype(np.int8), prepend=0, append=0))
    long = time[edges[1::2]] - time[edges[::2]] > max(_SHORTEST, _MESSAGES * period)
    for first, last in zip(edges[::2][long], edges[1::2][long]):
        around = np.concatenate([steps[max(first - 6, 0):max(first - 1, 0)],
                                 steps[last + 1:last + 6]])
        usual = max(float(around.max(initial=0.0)), smallest)

        def jumps(k: int) -> bool:
            # What happened in a gap of the recording says nothing.
            return (0 <= k < len(steps) and time[k + 1] - time[k] < 3 * period
                    and steps[k] > _JUMP * usual)

        inner = speed[first + 1:last]
        inner = inner[np.isfinite(inner)]
        runs_on = usual_speed > 0 and len(inner) and np.sqrt(
            np.mean(np.square(inner))) > _RUNS_ON * usual_speed
        if jumps(first - 1):
            stuck[first:last + 1] = True
        elif jumps(last) or runs_on:
            # The first of equal values was true.
            stuck[first + 1:last + 1] = True
    return stuck
