# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Stretches of a recording without a gap.

A stretch is its start and end [s]; stretches are in order and do not overlap.
"""

from collections.abc import Sequence

import numpy as np

# A pause longer than so many median periods is a gap,
_GAP_PERIODS = 5.0
# if it is longer than so many times the pauses that make the longest twentieth as well: senders
# whose messages come in bursts have no period.
_GAP_PAUSES = 3.0
# Commands come as they are needed, so that a shorter pause [s] is never a gap.
_SHORTEST_COMMAND_GAP = 0.1

Stretch = tuple[float, float]


def stretches(time: np.ndarray, shortest_gap: float) -> list[Stretch]:
    """
    Return the stretches of at least two samples at the rising times `time (N,)` [s].

    What a gap is follows from the median period; `shortest_gap` [s] and less is never one.
    """
    steps = np.diff(time)
    if not len(steps):
        return []
    limit = max(_GAP_PERIODS * float(np.median(steps)),
                _GAP_PAUSES * float(np.percentile(steps, 95)), shortest_gap)
    return _split(time, steps > limit)


def command_stretches(time: np.ndarray) -> tuple[list[Stretch], float]:
    """
    Return the stretches during which it is known what was commanded, and the longest pause [s].

    A command counts for a median period; of fewer than three the last counts for ever.
    """
    if len(time) < 3:
        return [(float(time[0]), np.inf)], 0.0
    steps = np.diff(time)
    period = float(np.median(steps))
    silent = steps > max(_GAP_PERIODS * period, _SHORTEST_COMMAND_GAP)
    edges = np.flatnonzero(silent)
    starts, ends = time[[0, *(edges + 1)]], time[[*edges, -1]]
    return ([(float(a), float(b) + period + 1e-9) for a, b in zip(starts, ends)],
            float(steps[edges].max(initial=0.0)))


def overlap(a: Sequence[Stretch], b: Sequence[Stretch]) -> list[Stretch]:
    """Return the stretches that lie in both."""
    result, i, j = [], 0, 0
    while i < len(a) and j < len(b):
        start, end = max(a[i][0], b[j][0]), min(a[i][1], b[j][1])
        if start <= end:
            result.append((start, end))
        if a[i][1] < b[j][1]:
            i += 1
        else:
            j += 1
    return result


def longest_gap(found: Sequence[Stretch]) -> float:
    """Return the longest time between two stretches [s]."""
    return max((b[0] - a[1] for a, b in zip(found, found[1:])), default=0.0)


def length(found: Sequence[Stretch]) -> float:
    """Return the time in all stretches [s]."""
    return sum(end - start for start, end in found)


def _split(time: np.ndarray, gaps: np.ndarray) -> list[Stretch]:
    edges = np.flatnonzero(gaps)
    starts, ends = [0, *(edges + 1)], [*edges, len(time) - 1]
    return [(float(time[a]), float(time[b])) for a, b in zip(starts, ends) if b > a]
