# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Serialised messages whose numbers are overwritten in place."""

import numpy as np
from rclpy.serialization import serialize_message

# What stands in a message where a number or a stamp will go.
NUMBER = 1.0123456789e-207
STAMP_SEC, STAMP_NANOSEC = 0x5EC5_AB1E, 0x2A90_5EC5


class MessageTemplate:
    """
    A message of fixed shape, serialised once; each `fill` gives the bytes of a new one.

    Building and serialising a message of some ten numbers takes rclpy longer than the robot takes
    to step; writing the numbers into the serialised bytes is several times faster. The places are
    those where the message given holds `NUMBER` in a float64 field or `STAMP_SEC` and
    `STAMP_NANOSEC` in a stamp. They are found by value, so nothing here knows how a message type
    is laid out.
    """

    def __init__(self, message):
        data = serialize_message(message)
        self._size = len(data)
        # All numbers of the serialised form lie at multiples of 4 bytes.
        self._words = np.frombuffer(data + bytes(-len(data) % 4), np.uint32).copy()
        low, high = np.array([NUMBER]).view(np.uint32)
        first = np.flatnonzero((self._words[:-1] == low) & (self._words[1:] == high))
        self._numbers = np.stack([first, first + 1], axis=1).reshape(-1)
        self._seconds = np.flatnonzero((self._words[:-1] == np.uint32(STAMP_SEC))
                                       & (self._words[1:] == np.uint32(STAMP_NANOSEC)))
        self._nanoseconds = self._seconds + 1
        self.count = len(first)
        """How many numbers `fill` takes, in the order of the message's fields."""

    def fill(self, stamp: tuple[int, int], numbers: np.ndarray | None = None) -> bytes:
        """
        Return the message with all stamps at `stamp` (s, ns) and with `numbers` (count,) float64.

        The bytes go to `Publisher.publish` as they are.
        """
        words = self._words
        words[self._seconds], words[self._nanoseconds] = stamp
        if numbers is not None:
            words[self._numbers] = numbers.view(np.uint32)
        return words.tobytes()[:self._size]
