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
from nerd_ros.learning.bags.recorded_velocity import LARGEST_ERROR, velocity_error
from nerd_ros.learning.bags.resampling import cubic, linear, slope
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


def base_track(path: str | Path, series: PoseSeries, com, instead: str,
               notes: list[str]) -> BaseTrack:
    """
    Return the base of a recording, whose centre of mass `com` (3,) [m] is in its own frame.

    What was dropped is added to `notes`, where `instead` says how velocity is found. Raises
    BagError where too little is left.
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
    return BaseTrack(series.time, pose, _velocity(series, pose, com, instead, notes), com)


def resample_base(track: BaseTrack, rows: slice, time: np.ndarray, dt: float,
                  half_width: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Return pose `(T, 7)` and velocity `(T, 6)` at the even times `time (T,)` [s].

    `rows` are the samples to interpolate between; where no velocity was recorded it is the slope
    of lines fitted to the poses within `half_width` [s].
    """
    pose = cubic(track.time[rows], track.pose[rows], time)
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    if track.velocity is not None:
        return pose, linear(track.time[rows], track.velocity[rows], time)
    rotation = Rotation.from_quat(pose[:, 3:])
    centre = pose[:, :3] + rotation.apply(track.com)
    return pose, np.concatenate([slope(centre, dt, half_width),
                                 angular_velocity(rotation, dt, half_width)], axis=1)


def angular_velocity(rotation: Rotation, dt: float, half_width: float) -> np.ndarray:
    """
    Angular velocity `(T, 3)` [rad/s] in the world of T evenly sampled rotations, T > 1.

    Like `slope`, of the rotations from the middle of each window.
    """
    length = len(rotation)
    result = np.empty((length, 3))
    steps = (rotation[1:] * rotation[:-1].inv()).as_rotvec() / dt
    result[0], result[-1] = steps[0], steps[-1]
    for width in range(1, max(1, round(half_width / dt)) + 1):
        if length <= 2 * width:
            break
        back = rotation[width:length - width].inv()
        offsets = np.arange(-width, width + 1)
        weights = offsets / (np.square(offsets).sum() * dt)
        result[width:length - width] = sum(
            w * (rotation[width + o:length - width + o] * back).as_rotvec()
            for w, o in zip(weights, offsets) if o)
    return result


def _drop_stuck(series: PoseSeries, notes: list[str]) -> None:
    if len(series.time) < _FEWEST:
        return
    stuck = stuck_samples(series.time, series.pose, np.full((len(series.time), 1), np.nan))
    if stuck.any():
        seconds = float((np.diff(series.time) * (stuck[1:] & stuck[:-1])).sum())
        notes.append(f'{series.topic} repeats one pose for {seconds:.2f} s while the base moves: '
                     'the motion was cut there')
        series.keep(~stuck)


def _velocity(series: PoseSeries, pose: np.ndarray, com: np.ndarray, instead: str,
              notes: list[str]) -> np.ndarray | None:
    """Return the recorded velocity as Newton has it, None where it is missing or wrong."""
    if not np.isfinite(series.twist).all(1).mean() > 0.99:
        notes.append(f'velocity of the base was not recorded: {instead}')
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
                     f'off): {instead}')
        return None
    notes.append('velocity of the base: as recorded')
    return np.concatenate([linear_, angular], axis=1)
