# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The inputs of the last steps: what another model needs to go on where the last one ends."""

from collections.abc import Iterator, Sequence

import numpy as np


class RecentInputs:
    """
    The values that `arrays`, NumPy or torch, (W, ...) each, had in the last `length` steps.

    Room for them is made once; `record` copies.
    """

    def __init__(self, arrays: Sequence, length: int):
        self._arrays, self._length = arrays, length
        self._kept = [_room(array, length) for array in arrays]
        self._rows = list(zip(*self._kept))   # of each step
        self._worlds = np.arange(len(arrays[0]))
        self._steps = 0
        self._since = np.zeros(len(self._worlds), int)   # step of the last reset of each world

    @property
    def known(self) -> np.ndarray:
        """How many steps back the motion of each world goes, `length` at most, (W,)."""
        return np.minimum(self._steps - self._since, self._length)

    def record(self) -> None:
        """Keep the values of now as those of the newest step."""
        for row, array in zip(self._rows[self._steps % self._length], self._arrays):
            row[...] = array
        self._steps += 1

    def reset(self, mask: np.ndarray | None) -> None:
        """Begin anew in the worlds in `mask` (W,), in all by default."""
        self._since[slice(None) if mask is None else mask] = self._steps

    def replay(self) -> Iterator[tuple[np.ndarray, list]]:
        """
        Yield the steps, oldest first: in which worlds it is the first one, (W,), and its values.

        Before its first step a world has the values of that.
        """
        known = self.known
        for age in reversed(range(known.max())):
            ages = np.minimum(age, np.maximum(known - 1, 0))
            slots = (self._steps - 1 - ages) % self._length
            yield known == age + 1, [kept[slots, self._worlds] for kept in self._kept]


def _room(array, length: int):
    """Return zeros for `length` values of `array`, of its kind and on its device."""
    if isinstance(array, np.ndarray):
        return np.zeros((length, *array.shape), array.dtype)
    return array.new_zeros((length, *array.shape))
