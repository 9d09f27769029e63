# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a recording says about each joint alone, without what cannot be true."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import JointLayout, RobotLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import JointSeries
from nerd_ros.learning.bags.local_slope import METHOD
from nerd_ros.learning.bags.recorded_velocity import (
    LARGEST_ERROR, slope_is_better, velocity_error, velocity_errors)
from nerd_ros.learning.bags.stuck_sensors import STANDSTILL, stuck_samples

# With fewer positions than this nothing can be said about a joint.
_FEWEST = 3
# Messages of a driver that fills the velocity, as a share.
_FILLED = 0.99


@dataclass(frozen=True)
class JointTrack:
    """
    Samples of one joint, N of them, at rising times.

    `time (N,)` [s], `position (N,)` finite, `velocity (N,)` all NaN where it is of no use, and
    `effort (N,)` NaN where it was not measured [rad or m, N m or N].
    """

    name: str
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray

    def at(self, rows: np.ndarray) -> 'JointTrack':
        """Return the samples of `rows`."""
        return JointTrack(self.name, *(getattr(self, name)[rows] for name in (
            'time', 'position', 'velocity', 'effort')))


def joint_tracks(path: str | Path, layout: RobotLayout, states: Sequence[JointSeries],
                 notes: list[str]) -> list[JointTrack]:
    """
    Return a track of each joint; one that follows another and was not recorded is computed.

    What was dropped is added to `notes`; raises BagError where too little is left of a joint.
    """
    _note_dropped(states, notes)
    tracks = {}
    for k, joint in enumerate(layout.joints):
        source = max(states, key=lambda series: int(np.isfinite(series.position[:, k]).sum()))
        track = _without_stuck(_track(joint, k, source, notes), notes)
        if len(track.time) >= _FEWEST:
            tracks[joint.name] = track
        elif joint.mimic is None:
            raise BagError(f'{path}: too short, {len(track.time)} usable positions of '
                           f'{joint.name} on {source.topic}')
    for joint in layout.joints:
        if joint.name not in tracks:
            mimic, leader = joint.mimic, tracks[joint.mimic.leader]
            tracks[joint.name] = JointTrack(
                joint.name, leader.time, mimic.multiplier * leader.position + mimic.offset,
                mimic.multiplier * leader.velocity, np.full(len(leader.time), np.nan))
            notes.append(f'{joint.name} was not recorded; it follows {mimic.leader}')
    return [tracks[name] for name in layout.joint_names]


def drop_useless_velocities(tracks: Sequence[JointTrack], layout: RobotLayout,
                            notes: list[str]) -> list[JointTrack]:
    """
    Return the tracks without velocities that the slope of the positions is better than.

    Those are missing, always the same, do not agree with the positions, or are noisy or late;
    `notes` say which and why.
    """
    result, missing, wrong, noisy = [], [], [], []
    for track, joint in zip(tracks, layout.joints):
        finite = np.isfinite(track.velocity)
        moves = np.ptp(track.position) > STANDSTILL
        if finite.mean() < _FILLED or moves and np.ptp(track.velocity[finite]) == 0:
            missing.append(track.name)
        else:
            error = velocity_error(track.time, track.position[:, None],
                                   np.nan_to_num(track.velocity)[:, None])
            off = velocity_errors(track.time, track.position, track.velocity)
            if error >= LARGEST_ERROR:
                wrong.append(f'{track.name} ({error:.0%} off)')
            elif slope_is_better(*off):
                unit = 'm/s' if joint.type == 'prismatic' else 'rad/s'
                noisy.append(f'velocity of {track.name}: noise and delay of {off[0]:.2g} {unit} '
                             f'as recorded, {off[1]:.2g} as slope of the positions; the slope is '
                             'used')
            else:
                result.append(track)
                continue
        result.append(replace(track, velocity=np.full(len(track.time), np.nan)))
    if missing:
        notes.append(f'velocity of {", ".join(missing)} was not recorded: {METHOD}')
    if wrong:
        notes.append(f'recorded velocity of {", ".join(wrong)} does not agree with the '
                     f'positions: {METHOD}')
    notes += noisy
    if tracks and not missing and not wrong and not noisy:
        notes.append('velocity: as recorded')
    return result


def _note_dropped(states: Sequence[JointSeries], notes: list[str]) -> None:
    for series in states:
        finite = np.isfinite(series.position)
        # Joints that other messages or topics hold are not missing here.
        bad = ~finite[:, finite.any(0)].all(1) if series.whole else ~finite.any(1)
        if bad.any():
            notes.append(f'{bad.sum()} messages of {series.topic} with positions that are not '
                         'finite were left out')
        repeated = series.whole & (np.diff(series.time) <= 0)
        if repeated.any():
            notes.append(f'{repeated.sum()} messages of {series.topic} repeat the time of the '
                         'one before and were left out')


def _track(joint: JointLayout, column: int, source: JointSeries,
           notes: list[str]) -> JointTrack:
    """Return the samples of a joint with a finite position and a time of their own, unwrapped."""
    track = JointTrack(joint.name, source.time, source.position[:, column],
                       source.velocity[:, column], source.effort[:, column])
    finite = np.isfinite(track.position)
    # As they are, columns of a table of millions take no more memory.
    track = track if finite.all() else track.at(finite)
    fresh = np.diff(track.time, prepend=-np.inf) > 0
    track = track if fresh.all() else track.at(fresh)
    turning = joint.type in ('revolute', 'continuous')
    if turning and (np.abs(np.diff(track.position)) > np.pi).any():
        track = replace(track, position=np.unwrap(track.position))
        notes.append(f'{joint.name} jumps by a turn: its angle was unwrapped')
    return track


def _without_stuck(track: JointTrack, notes: list[str]) -> JointTrack:
    stuck = stuck_samples(track.time, track.position[:, None], track.velocity[:, None])
    if not stuck.any():
        return track
    seconds = float((np.diff(track.time) * (stuck[1:] & stuck[:-1])).sum())
    notes.append(f'the sensor of {track.name} stands still at one value for {seconds:.2f} s while '
                 'the joint moves: the motion was cut there')
    return track.at(~stuck)
