# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Odometry, TFMessage and PoseStamped messages as columns: poses of frames."""

from array import array
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nerd_ros.learning.bags.bag_files import TF_MESSAGE

ODOMETRY = 'nav_msgs/msg/Odometry'
POSE = 'geometry_msgs/msg/PoseStamped'
POSE_TYPES = (ODOMETRY, TF_MESSAGE, POSE)
# Positions and speeds above this are taken for damage.
_LARGEST = 1e7
# So many frames of a topic are told apart; robots have a hundred.
_MAX_FRAMES = 4096


@dataclass
class PoseTable:
    """
    Poses of `frame` in `parent` on one topic by order of receipt, N of them.

    `received (N,)` and `stamp (N,)` are times [ns]; `pose (N, 7)` is x y z [m] and a unit
    quaternion xyzw; `twist (N, 6)` is the linear [m/s] and angular [rad/s] velocity in `frame`,
    NaN where the type of message has none. `frame` is empty for a PoseStamped.
    """

    topic: str
    kind: str
    parent: str
    frame: str
    received: np.ndarray
    stamp: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    broken: int
    """Messages that could not be decoded or held no pose."""


class PoseCollector:
    """Collects the messages of one topic."""

    def __init__(self, topic: str, kind: str):
        self.topic, self.kind = topic, kind
        self._times = {}     # (parent, frame) -> received and stamp of each pose
        self._numbers = {}   # (parent, frame) -> pose and twist of each
        self._broken = 0

    def add(self, received: int, raw: bytes, decode: Callable) -> None:
        """Take a message."""
        try:
            message = decode(raw)
            if self.kind == TF_MESSAGE:
                for one in message.transforms:
                    place = one.transform.translation
                    self._append(received, one.header, one.child_frame_id, place,
                                 one.transform.rotation)
            elif self.kind == ODOMETRY:
                self._append(received, message.header, message.child_frame_id,
                             message.pose.pose.position, message.pose.pose.orientation,
                             message.twist.twist)
            else:
                self._append(received, message.header, '', message.pose.position,
                             message.pose.orientation)
        except Exception:
            # Whatever a garbled payload makes the decoder raise, it is one lost message.
            self._broken += 1

    def count_broken(self) -> None:
        """Count a message that is none."""
        self._broken += 1

    def finish(self) -> None:
        """Do nothing: no message waits."""

    def tables(self) -> list[PoseTable]:
        """Return the poses of each pair of frames."""
        return [self._table(*key) for key in self._times]

    def _append(self, received: int, header, frame: str, position, rotation, twist=None) -> None:
        key = header.frame_id.lstrip('/'), frame.lstrip('/')
        if key not in self._times:
            if len(self._times) >= _MAX_FRAMES:
                raise ValueError
            self._times[key], self._numbers[key] = array('q'), array('d')
        numbers = [position.x, position.y, position.z,
                   rotation.x, rotation.y, rotation.z, rotation.w]
        if twist is not None:
            numbers += [twist.linear.x, twist.linear.y, twist.linear.z,
                        twist.angular.x, twist.angular.y, twist.angular.z]
        self._times[key].extend((received, header.stamp.sec * 10**9 + header.stamp.nanosec))
        self._numbers[key].extend(numbers)

    def _table(self, parent: str, frame: str) -> PoseTable:
        times = np.frombuffer(self._times[parent, frame], np.int64).reshape(-1, 2)
        numbers = np.frombuffer(self._numbers[parent, frame], float).reshape(len(times), -1)
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            norm = np.linalg.norm(numbers[:, 3:7], axis=1)
            good = ((np.abs(norm - 1) < 0.1)
                    & (np.abs(numbers[:, :7]) <= _LARGEST).all(1))
        rows = np.flatnonzero(good)
        rows = rows[np.argsort(times[rows, 0], kind='stable')]
        pose = numbers[rows, :7].copy()
        pose[:, 3:] /= norm[rows, None]
        twist = np.full((len(rows), 6), np.nan)
        if numbers.shape[1] > 7:
            twist = numbers[rows, 7:].copy()
            twist[~(np.abs(twist) <= _LARGEST)] = np.nan
        return PoseTable(self.topic, self.kind, parent, frame, times[rows, 0], times[rows, 1],
                         pose, twist, self._broken + int((~good).sum()))
