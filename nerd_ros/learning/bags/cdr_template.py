# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Decoding of many JointState messages at once that differ in nothing but their numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

import numpy as np

_LITTLE_ENDIAN = b'\x00\x01'
_HEAD = 4     # bytes of the encapsulation, from whose end on CDR counts its alignment
_STAMP = slice(_HEAD, _HEAD + 8)
_FIELDS = ('position', 'velocity', 'effort')


@dataclass(frozen=True)
class CdrTemplate:
    """
    Where the numbers of a JointState message lie in its bytes.

    `fixed (K,)` are the bytes, `values (K,)`, that tell how a message is built: names and lengths.
    `places` are first byte and count of each field.
    """

    names: tuple[str, ...]
    size: int
    fixed: np.ndarray
    values: np.ndarray
    places: dict[str, tuple[int, int]]

    @classmethod
    def of(cls, message, raw: bytes) -> Optional['CdrTemplate']:
        """
        Return the template of a decoded message and its bytes.

        None where the message is not built as expected, so that it has to be decoded by itself.
        """
        if raw[:2] != _LITTLE_ENDIAN:
            return None
        fixed, at, places = [(0, 2)], _STAMP.stop, {}

        def take(size: int, alignment: int) -> int:
            nonlocal at
            start = at + -(at - _HEAD) % alignment
            at = start + size
            return start

        def take_fixed(size: int, alignment: int) -> None:
            start = take(size, alignment)
            fixed.append((start, at))

        take_fixed(4, 4)
        take_fixed(len(message.header.frame_id.encode()) + 1, 1)
        take_fixed(4, 4)
        for name in message.name:
            take_fixed(4, 4)
            take_fixed(len(name.encode()) + 1, 1)
        for field in _FIELDS:
            count = len(getattr(message, field))
            take_fixed(4, 4)
            places[field] = (take(8 * count, 8) if count else at, count)
        if at != len(raw):
            return None
        index = np.concatenate([np.arange(*piece) for piece in fixed])
        template = cls(tuple(message.name), len(raw), index,
                       np.frombuffer(raw, np.uint8)[index], places)
        _, _, decoded = template.decode([raw])
        same = all(np.array_equal(decoded[field][0], getattr(message, field), equal_nan=True)
                   for field in _FIELDS)
        return template if same else None

    def decode(self, raws: Sequence[bytes]) -> tuple[np.ndarray, np.ndarray, dict]:
        """
        Decode N messages of `size` bytes.

        Returns which fit the template (N,), and of those that do stamps [ns] and each field,
        (number, joints).
        """
        rows = np.frombuffer(b''.join(raws), np.uint8).reshape(len(raws), self.size)
        fits = (rows[:, self.fixed] == self.values).all(1)
        rows = rows[fits]
        parts = np.ascontiguousarray(rows[:, _STAMP])
        stamp = (parts[:, :4].copy().view('<i4').astype(np.int64)[:, 0] * 10**9
                 + parts[:, 4:].copy().view('<u4').astype(np.int64)[:, 0])
        fields = {}
        for name, (start, count) in self.places.items():
            values = np.ascontiguousarray(rows[:, start:start + 8 * count])
            fields[name] = values.view('<f8').reshape(len(rows), count)
        return fits, stamp, fields
