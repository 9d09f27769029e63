# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The tosses of an acrylic cube onto a table, which motion capture followed (ContactNets)."""

from pathlib import Path
from typing import NamedTuple
from zipfile import BadZipFile

import numpy as np
from real.recordings import data_path, DataError
from scipy.spatial.transform import Rotation

from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import BagRecording, Segment

DT = 1.0 / 148.0
"""Time between two samples [s]."""
_COLUMNS = 13


class Tosses(NamedTuple):
    """
    N tosses of T samples at most.

    `joint_q (N, T, 7)` are positions of the middle of the cube [m] and quaternions xyzw,
    `joint_qd (N, T, 6)` linear and angular velocity [m/s, rad/s], all in the world. The table is
    z = 0. Recorded are the first `length (N,)` samples, what follows repeats the last.
    """

    names: tuple[str, ...]
    joint_q: np.ndarray
    joint_qd: np.ndarray
    length: np.ndarray

    def take(self, rows: np.ndarray) -> 'Tosses':
        """Return some of the tosses, by number."""
        return Tosses(tuple(self.names[row] for row in rows),
                      *(values[rows] for values in self[1:]))


def read_tosses(data: str | Path) -> Tosses:
    """Read all tosses of the folder `data`; raises DataError where that is not possible."""
    path = data_path(data, 'cube_toss', 'tosses.npz')
    try:
        with np.load(path) as file:
            arrays = {name: file[name] for name in sorted(file.files)}
    except (OSError, EOFError, ValueError, AttributeError, BadZipFile) as error:
        raise DataError(f'{path} is no archive of tosses; get it anew ({error})') from error
    for name, array in arrays.items():
        if array.ndim != 2 or array.shape[1] != _COLUMNS or not len(array):
            raise DataError(f'{path}: {name} has shape {array.shape}, not (T, {_COLUMNS})')
    length = np.array([len(array) for array in arrays.values()])
    rows = np.minimum(np.arange(length.max()), length[:, None] - 1)
    states = np.stack([array[row] for array, row in zip(arrays.values(), rows)])
    orientation = states[..., [4, 5, 6, 3]]
    # Recorded in the frame of the cube.
    turning = Rotation.from_quat(orientation.reshape(-1, 4)).apply(
        states[..., 10:].reshape(-1, 3)).reshape(*rows.shape, 3)
    return Tosses(tuple(arrays), np.concatenate([states[..., :3], orientation], axis=-1),
                  np.concatenate([states[..., 7:10], turning], axis=-1), length)


def recordings(tosses: Tosses) -> tuple[BagRecording, ...]:
    """Return the tosses as recordings of the robot `cube`, which has no joints and no effort."""
    result = []
    for name, joint_q, joint_qd, length in zip(*tosses):
        nothing = np.zeros((length, 0))
        segment = Segment(np.arange(length) * DT, joint_q[:length], joint_qd[:length], nothing,
                          nothing)
        result.append(BagRecording(name, name, DT, (segment,), (), Topics(),
                                   float(segment.time[-1]), (), ()))
    return tuple(result)


def toss_errors(joint_q: np.ndarray, tosses: Tosses) -> np.ndarray:
    """
    Return the errors (N, 2) of simulated tosses `joint_q (N, T, 7)`: position [m], rotation [rad].

    Mean over the samples of a toss, the first included.
    """
    position = np.linalg.norm(joint_q[..., :3] - tosses.joint_q[..., :3], axis=-1)
    rotation = _angle(joint_q[..., 3:], tosses.joint_q[..., 3:])
    recorded = np.arange(position.shape[1]) < tosses.length[:, None]
    return np.stack([(error * recorded).sum(1) / tosses.length
                     for error in (position, rotation)], axis=-1)


def _angle(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angles (...) [rad] of the rotations between unit quaternions (..., 4)."""
    apart, together = (np.linalg.norm(part, axis=-1) for part in (a - b, a + b))
    return 4.0 * np.arctan2(np.minimum(apart, together), np.maximum(apart, together))
