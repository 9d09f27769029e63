# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which recordings are learned from, which select the model and which judge it."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from nerd_ros.learning.bags.recording import BagRecording

# Share of the recordings, of each of the two kinds that are not learned from.
SHARE = 0.2
# With fewer recordings than this, each is cut in time.
FEW = 3


class Split(NamedTuple):
    """Recordings by what they are for, and a sentence about how they were chosen."""

    training: tuple[BagRecording, ...]
    validation: tuple[BagRecording, ...]
    test: tuple[BagRecording, ...]
    note: str


def split(recordings: Sequence[BagRecording], seed: int) -> Split:
    """
    Choose, before anything is looked at, by the seed alone.

    Whole recordings, since what follows within one is too much like what came before. One or two
    are cut in time: the first part is learned from, the last one judges.
    """
    if len(recordings) < FEW:
        edges = (0.0, 1.0 - 2 * SHARE, 1.0 - SHARE, 1.0)
        parts = [tuple(_part(recording, *span) for recording in recordings)
                 for span in zip(edges, edges[1:])]
        return Split(*parts, f'{len(recordings)} recording(s): each is cut in time into training, '
                             'validation and test; more recordings make the test stricter')
    count = max(1, round(SHARE * len(recordings)))
    order = np.random.default_rng(seed).permutation(len(recordings))
    places = np.split(order, [count, 2 * count])
    test, validation, training = (tuple(recordings[k] for k in sorted(place)) for place in places)
    return Split(training, validation, test, f'{len(training)} recordings for training, '
                 f'{len(validation)} for validation, {len(test)} for the test')


def _part(recording: BagRecording, first: float, last: float) -> BagRecording:
    """Return what lies between two shares of the recorded time."""
    total = sum(len(segment.time) for segment in recording.segments)
    low, high = round(first * total), round(last * total)
    segments, before = [], 0
    for segment in recording.segments:
        rows = slice(max(low - before, 0), max(high - before, 0))
        before += len(segment.time)
        if len(segment.time[rows]) > 1:
            segments.append(replace(segment, **{
                name: values[rows] for name, values in vars(segment).items()
                if values is not None}))
    return replace(recording, segments=tuple(segments))
