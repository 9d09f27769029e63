# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The motion of a floating base as Newton has it.

Pose of the frame of the base link in the world; velocity of its centre of mass and angular
velocity, both in the world. Odometry has the velocity of the frame's origin, in that frame.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.base_topics import PoseSeries
from nerd_ros.learning.bags.local_slope import angular_velocity, METHOD, slope
from nerd_ros.learning.bags.recorded_velocity import LARGEST_ERROR, velocity_error
from nerd_ros.learning.bags.resampling import cubic, linear
from nerd_ros.learning.bags.stuck_sensors import stuck_samples

_FEWEST = 3


@dataclass(frozen=True)
class BaseTrack:
    """
    Poses of the base at rising times, N of them.

    `time (N,)` [s]; `pose (N, 7)` x y z [m] and quaternion xyzw that does not change its sign;
    `velocity (N, 6)` of the centre of mass and angular, in the world, None where unknown; `com`
    the centre of mass in the frame of the base [m].
    """

    time: np.ndarray
    pose: np.ndarray
    velocity: np.ndarray | None
    com: np.ndarray


def base_track(path: str | Path, series: PoseSeries, com, notes: list[str]) -> BaseTrack:
    """
    Return the base of a recording, whose centre of mass `com` (3,) [m] is in its own frame.

    What was dropped is added to `notes`. Raises BagError where too little is left.
    """
    fresh = np.diff(series.time, prepend=-np.inf) > 0
    if not fresh.all():
        notes.append(f'{(~fresh).sum()} messages of {series.topic} repeat the time of the one '
                     'before and were left out')
        series.keep(fresh)
    _drop_stuck(series, notes)
    if len(series.time) < _FEWEST:
        raise BagError(f'{path}: too short, {len(series.time)} usable poses on {series.topic}')
    com, pose = np.asarray(com, float), series.pose.copy()
    # q and -q are the same rotation, but what lies between them is none.
    turned = np.einsum('ni,ni->n', pose[1:, 3:], pose[:-1, 3:]) < 0
    pose[1:][np.cumsum(turned) % 2 == 1, 3:] *= -1
    return BaseTrack(series.time, pose, _velocity(series, pose, com, notes), com)


def resample_base(track: BaseTrack, rows: slice, time: np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
    """
    Return pose `(T, 7)` and velocity `(T, 6)` at the even times `time (T,)` [s].

    `rows` are the samples to interpolate between; where no velocity was recorded it is the slope
    of the poses.
    """
    known = track.time[rows]
    pose = cubic(known, track.pose[rows], time)
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    if track.velocity is not None:
        return pose, linear(known, track.velocity[rows], time)
    rotation = Rotation.from_quat(track.pose[rows, 3:])
    centre = track.pose[rows, :3] + rotation.apply(track.com)
    return pose, np.concatenate([slope(known, centre, time),
                                 angular_velocity(known, rotation, time)], axis=1)


def _drop_stuck(series: PoseSeries, notes: list[str]) -> None:
    if len(series.time) < _FEWEST:
        return
    stuck = stuck_samples(series.time, series.pose, np.full((len(series.time), 1), np.nan))
    if stuck.any():
        seconds = float((np.diff(series.time) * (stuck[1:] & stuck[:-1])).sum())
        notes.append(f'{series.topic} repeats one pose for {seconds:.2f} s while the base moves: '
                     'the motion was cut there')
        series.keep(~stuck)


def _velocity(series: PoseSeries, pose: np.ndarray, com: np.ndarray,
              notes: list[str]) -> np.ndarray | None:
    """Return the recorded velocity as Newton has it, None where it is missing or wrong."""
    if not np.isfinite(series.twist).all(1).mean() > 0.99:
        notes.append(f'velocity of the base was not recorded: {METHOD}')
        return None
    rotation = Rotation.from_quat(pose[:, 3:])
    angular = rotation.apply(series.twist[:, 3:])
    offset = rotation.apply(com)
    linear_ = rotation.apply(series.twist[:, :3]) + np.cross(angular, offset)
    turned = np.concatenate([np.zeros((1, 3)), np.cumsum(
        (rotation[1:] * rotation[:-1].inv()).as_rotvec(), axis=0)])
    error = max(velocity_error(series.time, place, np.nan_to_num(rate)) for place, rate in (
        (pose[:, :3] + offset, linear_), (turned, angular)))
    if error > LARGEST_ERROR:
        notes.append(f'recorded velocity of the base does not agree with its poses ({error:.0%} '
                     f'off): {METHOD}')
        return None
    notes.append('velocity of the base: as recorded')
    return np.concatenate([linear_, angular], axis=1)
