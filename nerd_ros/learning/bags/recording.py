# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
A recording of a real robot as evenly sampled motion.

`docs/bags.md` says what is read and by which rules. Positions are resampled to the model's step by
cubic interpolation, measured velocity and effort by linear interpolation, commands are held until
the next one. Nothing is interpolated across a gap: there the motion is cut into segments.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_content import read_content
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import (
    find_commands, find_states, JointSeries, Topics)
from nerd_ros.learning.bags.base_motion import base_track, BaseTrack, resample_base
from nerd_ros.learning.bags.base_topics import find_base
from nerd_ros.learning.bags.clocks import set_times
from nerd_ros.learning.bags.joint_tracks import (
    drop_useless_velocities, joint_tracks, JointTrack)
from nerd_ros.learning.bags.latency import effort_latency
from nerd_ros.learning.bags.local_slope import slope
from nerd_ros.learning.bags.resampling import cubic, hold, linear
from nerd_ros.learning.bags.stretches import Stretch
from nerd_ros.learning.bags.usable import usable_stretches

# A segment shorter than this [s] is of no use to anybody.
_SHORTEST_SEGMENT = 0.1
# More than this [s] would not fit into memory once it is resampled.
_LONGEST = 24 * 3600.0


@dataclass(frozen=True)
class Segment:
    """
    Motion without a gap, sampled every `dt`; T samples.

    `time (T,)` [s] counts from the first message of the recording; `joint_q (T, nq)` and
    `joint_qd (T, nqd)` are as in Newton, in the joint order of the robot [rad, m, rad/s, m/s], a
    floating base first: pose of its link, velocity of its centre of mass and angular velocity, in
    the world; `effort_command (T, num_dofs)` and `effort_measured (T, num_dofs)` [N m, N] are what
    was asked for and what was measured at each sample, None where the recording has no such thing.
    """

    time: np.ndarray
    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort_command: np.ndarray | None
    effort_measured: np.ndarray | None


@dataclass(frozen=True)
class BagRecording:
    """
    A recording, resampled.

    `notes` says in sentences what was found, dropped and why; `topics` are those that were read,
    `span` [s] is the time from the first to the last message of them. Of each joint, `rates` are
    positions per second and `latency` is the time from a commanded to a measured effort [s], None
    where it cannot be told.
    """

    name: str
    path: str
    dt: float
    segments: tuple[Segment, ...]
    notes: tuple[str, ...]
    topics: Topics
    span: float
    rates: tuple[float, ...]
    latency: tuple[float | None, ...]

    @property
    def duration(self) -> float:
        """Recorded time in all segments [s]."""
        return sum(len(segment.time) - 1 for segment in self.segments) * self.dt


def read_bag(path: str | Path, layout: RobotLayout, topics: Topics = Topics(),
             base_link: str = '') -> BagRecording:
    """
    Read a recording of the robot of `layout`: rosbag2 (sqlite3, mcap) or ROS 1, folder or file.

    `topics` names topics where those that are found are the wrong ones; `base_link` is the frame
    of a floating base in TFMessage.

    Raises BagError, one sentence, where the recording cannot be read, is of another robot, has no
    effort or is too short.
    """
    if len(layout.joints) != layout.num_dofs:
        raise BagError(f'{path}: a recording cannot hold the state of {layout.robot}, whose ball '
                       'joints have no place in a JointState message')
    if not layout.floating and not layout.joints:
        raise BagError(f'{path}: {layout.robot} has nothing that moves')
    content = read_content(path, layout)
    notes = list(content.notes)
    states, commands, base = [], None, None
    if layout.joints:
        states = find_states(path, layout, content, topics.states, notes)
        commands = find_commands(path, layout, content, topics.commands,
                                 [s.topic for s in states], notes)
    if layout.floating:
        base = find_base(path, layout, content, topics.base, base_link, notes)
    del content
    series = [s for s in (*states, commands, base) if s is not None]
    set_times(series, notes, layout.dt)
    _note_rates(states, commands, base, notes)
    span = max(s.time[-1] for s in series)

    tracks = joint_tracks(path, layout, states, notes)
    tracks = drop_useless_velocities(tracks, layout, notes)
    if base is not None:
        moving = base_track(path, base, layout.base_com, notes)
    else:
        moving = None
    measured = _has_effort(path, layout, tracks, commands, notes)
    usable, measured = usable_stretches(path, layout, tracks, commands, moving, measured, notes)
    if sum(end - start for start, end in usable) > _LONGEST:
        raise BagError(f'{path}: holds more than {_LONGEST / 3600:.0f} hours of motion; cut it '
                       'into several bags')
    segments = _segments(path, layout, usable, tracks, commands, moving, measured, notes)
    latency = _latency(layout, usable, tracks, commands, notes)
    return BagRecording(
        Path(path).resolve().stem, str(path), layout.dt, segments, tuple(notes),
        Topics(','.join(s.topic for s in states), commands.topic if commands else '',
               base.topic if base else ''),
        float(span), tuple(float(1 / np.median(np.diff(track.time))) for track in tracks),
        latency)


def _note_rates(states: Sequence[JointSeries], commands: JointSeries | None, base,
                notes: list[str]) -> None:
    named = [('states', s) for s in states] + [('commands', commands), ('base', base)]
    for what, series in named:
        if series is not None:
            period = np.median(np.diff(series.time)) if len(series.time) > 1 else 0.0
            notes.append(f'{what}: {series.topic}, {len(series.time)} messages'
                         + (f', {1 / period:.4g} Hz' if period > 0 else ''))


def _has_effort(path: str | Path, layout: RobotLayout, tracks: Sequence[JointTrack],
                commands: JointSeries | None, notes: list[str]) -> bool:
    """Return whether effort was measured; raises BagError where it was not even commanded."""
    driven = [track for track, joint in zip(tracks, layout.joints) if joint.effort_limit > 0]
    missing = [track.name for track in driven if not np.isfinite(track.effort).any()]
    if not driven:
        return True
    if len(missing) == len(driven):
        if commands is None:
            raise BagError(f'{path}: no effort of {", ".join(missing)}, neither commanded nor '
                           'measured; record the command topic too')
        notes.append('no measured efforts')
        return False
    if missing:
        notes.append(f'measured effort of {", ".join(missing)} is missing: zero')
    return True


def _segments(path: str | Path, layout: RobotLayout, usable: Sequence[Stretch],
              tracks: Sequence[JointTrack], commands: JointSeries | None,
              base: BaseTrack | None, measured: bool, notes: list[str]) -> tuple[Segment, ...]:
    """Resample what is usable; raises BagError where all of it is too short."""
    long = [s for s in usable if s[1] - s[0] >= _SHORTEST_SEGMENT - 1e-9]
    if not long:
        longest = max((end - start for start, end in usable), default=0.0)
        raise BagError(f'{path}: too short, the longest stretch without a gap lasts '
                       f'{longest:.3f} s and {_SHORTEST_SEGMENT} s are needed')
    if len(long) < len(usable):
        notes.append(f'{len(usable) - len(long)} stretches shorter than {_SHORTEST_SEGMENT} s '
                     'were left out')
    return tuple(_segment(stretch, layout, tracks, commands, base, measured) for stretch in long)


def _segment(stretch: Stretch, layout: RobotLayout, tracks: Sequence[JointTrack],
             commands: JointSeries | None, base: BaseTrack | None, measured: bool) -> Segment:
    """Resample one stretch."""
    start, end = stretch
    dt = layout.dt
    # The end is moved by a hair, so that rounding costs no sample.
    time = start + dt * np.arange(int((end - start) / dt + 1e-6) + 1)
    joint_q, joint_qd = np.empty((len(time), layout.nq)), np.empty((len(time), layout.nqd))
    effort = np.zeros((len(time), layout.num_dofs))
    if base is not None:
        joint_q[:, :7], joint_qd[:, :6] = resample_base(base, _rows(base.time, stretch), time)
    for k, (track, q, qd) in enumerate(zip(tracks, layout.q_start, layout.qd_start)):
        rows = _rows(track.time, stretch)
        known = track.time[rows]
        joint_q[:, [q]] = cubic(known, track.position[rows, None], time)
        if np.isfinite(track.velocity).any():
            joint_qd[:, [qd]] = linear(known, track.velocity[rows, None], time)
        else:
            joint_qd[:, [qd]] = slope(known, track.position[rows, None], time)
        if measured:
            effort[:, [k]] = linear(known, track.effort[rows, None], time)
    command = None
    if not layout.joints:
        command = effort
    elif commands is not None:
        command = hold(commands.time, commands.effort, time)
    return Segment(time, joint_q, joint_qd, command, effort if measured else None)


def _rows(time: np.ndarray, stretch: Stretch) -> slice:
    """Return the samples at `time (N,)` around a stretch, of which it holds two at least."""
    first = int(np.searchsorted(time, stretch[0], 'right')) - 1
    last = int(np.searchsorted(time, stretch[1], 'left'))
    return slice(max(first, 0), last + 1)


def _latency(layout: RobotLayout, usable: Sequence[Stretch], tracks: Sequence[JointTrack],
             commands: JointSeries | None, notes: list[str]) -> tuple[float | None, ...]:
    """Return the latency of each joint; what cannot be told is said in `notes`."""
    result, told, untold = [], [], {}
    for k, (track, joint) in enumerate(zip(tracks, layout.joints)):
        if commands is None or joint.effort_limit <= 0:
            result.append(None)
            continue
        value, reason = effort_latency(usable, commands.time, commands.effort[:, k], track.time,
                                       track.effort)
        result.append(value)
        if value is None:
            untold.setdefault(reason, []).append(track.name)
        else:
            told.append(f'{track.name} {value * 1e3:.1f} ms')
    if told:
        notes.append(f'measured effort follows the command after: {", ".join(told)}')
    for reason, names in untold.items():
        notes.append(f'latency of {", ".join(names)} cannot be told: {reason}')
    return tuple(result)
