# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the recordings of real machines lie, and how they are parted and averaged."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy.stats import bootstrap

DATA = Path(__file__).resolve().parents[3] / 'shared' / 'data'
"""Folder of the recordings if none is named: beside the repository."""
_RESAMPLES = 9999
_CONFIDENCE = 0.95


class DataError(ValueError):
    """The recordings are not there or cannot be read; the message says what to do."""


def data_path(data: str | Path, *parts: str) -> Path:
    """Return a place in the folder `data`; raises DataError where there is nothing."""
    path = Path(data, *parts)
    if not path.exists():
        raise DataError(f'{path} is not there; name the folder of the recordings by --data')
    return path


def folds(kinds: Sequence[str], count: int, seed: int) -> np.ndarray:
    """
    Return the fold of each recording, (N,) from 0 to `count` - 1.

    `kinds` (N,) says of what kind a recording is: each fold gets its share of each. The seed alone
    decides. Raises ValueError for fewer than two folds or more than recordings.
    """
    if not 2 <= count <= len(kinds):
        raise ValueError(f'{len(kinds)} recordings cannot be parted into {count} folds')
    random, kinds = np.random.default_rng(seed), np.asarray(kinds)
    order = np.concatenate([random.permutation(np.flatnonzero(kinds == kind))
                            for kind in np.unique(kinds)])
    result = np.empty(len(kinds), int)
    # Dealt out in turns, on from one kind to the next, so that the folds differ by one at most.
    result[order] = random.permutation(count)[np.arange(len(order)) % count]
    return result


def split_rows(fold: np.ndarray, number: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the training and the test recordings of a fold, by number."""
    return np.flatnonzero(fold != number), np.flatnonzero(fold == number)


def interval(values: np.ndarray, seed: int) -> tuple[float, float]:
    """
    Return the 95 % interval of the mean of `values` (N,), one for each recording.

    By bootstrap over the recordings, bias-corrected and accelerated; N is 2 or more.
    """
    result = bootstrap((values,), np.mean, n_resamples=_RESAMPLES, confidence_level=_CONFIDENCE,
                       rng=np.random.default_rng(seed))
    return float(result.confidence_interval.low), float(result.confidence_interval.high)
