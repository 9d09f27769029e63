# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
A recording of a real robot as evenly sampled motion.

Topics are found by type and joint names, not by name: the state is the JointState topic whose
positions hold all joints of the robot, the commands another JointState topic with an effort for
one of them. Positions are resampled to the model's step by cubic interpolation, measured velocity
and effort by linear interpolation, commands are held until the next one. Where the recording has
a gap the motion is cut into segments, so that nothing is interpolated across it.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_files import BagError, read_joint_states
from nerd_ros.learning.bags.bag_topics import (
    clean_states, find_commands, find_states, JointSeries, set_times)
from nerd_ros.learning.bags.resampling import cubic, hold, linear, slope

# A pause longer than so many median periods is a gap.
_GAP_PERIODS = 5.0
# Commands come as they are needed, so that a pause shorter than this [s] is never a gap.
_SHORTEST_COMMAND_GAP = 0.1
# States that come more rarely than this [s] say nothing about the motion between them.
_SLOWEST_PERIOD = 1.0
# A segment shorter than this [s] is of no use to anybody.
_SHORTEST_SEGMENT = 0.1
# Half the width [s] of the line that is fitted to positions where no velocity was recorded.
_VELOCITY_WINDOW = 0.01


@dataclass(frozen=True)
class Segment:
    """
    Motion without a gap, sampled every `dt`; T samples.

    `time (T,)` [s] counts from the first message of the recording; `joint_q (T, nq)` and
    `joint_qd (T, nqd)` are as in Newton, in the joint order of the robot [rad, m, rad/s, m/s];
    `effort_command (T, num_dofs)` and `effort_measured (T, num_dofs)` [N m, N] are what was asked
    for and what was measured at each sample, None where the recording has no such thing.
    """

    time: np.ndarray
    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort_command: np.ndarray | None
    effort_measured: np.ndarray | None


@dataclass(frozen=True)
class BagRecording:
    """A recording, resampled; `notes` says in sentences what was found, dropped and why."""

    name: str
    path: str
    dt: float
    segments: tuple[Segment, ...]
    notes: tuple[str, ...]

    @property
    def duration(self) -> float:
        """Recorded time in all segments [s]."""
        return sum(len(segment.time) - 1 for segment in self.segments) * self.dt


def read_bag(path: str | Path, layout: RobotLayout) -> BagRecording:
    """
    Read a rosbag2 recording (sqlite3 or mcap; folder or file) of the robot of `layout`.

    Raises BagError, one sentence, where the recording cannot be read, is of another robot, has no
    effort or is too short.
    """
    if layout.floating or len(layout.joints) != layout.num_dofs:
        raise BagError(f'{path}: a JointState recording cannot hold the state of {layout.robot}, '
                       'which has a floating base or ball joints')
    content = read_joint_states(path)
    notes = list(content.notes)
    states = find_states(path, layout, content, notes)
    commands = find_commands(layout, content, states.topic, notes)
    set_times(states, commands, notes)
    clean_states(path, layout, states, notes)
    measured = bool(np.isfinite(states.effort).any())
    if commands is None and not measured:
        raise BagError(f'{path}: no effort of {", ".join(layout.joint_names)}, neither commanded '
                       'nor measured; record the command topic too')

    recorded = _recorded_velocity(states, layout, notes)
    _note_effort(states, layout, measured, notes)
    pieces = [_resample(states, rows, commands, measured, recorded, layout.dt)
              for rows in _stretches(path, states, layout.dt, notes)]
    if commands is not None:
        pieces = _within_commands(pieces, commands, notes)
    times = [(len(piece.time) - 1) * layout.dt for piece in pieces]
    segments = [p for p, length in zip(pieces, times) if length >= _SHORTEST_SEGMENT - 1e-9]
    if not segments:
        raise BagError(f'{path}: too short, the longest stretch without a gap lasts '
                       f'{max(times, default=0.0):.3f} s and {_SHORTEST_SEGMENT} s are needed')
    if len(segments) < len(pieces):
        notes.append(f'{len(pieces) - len(segments)} stretches shorter than '
                     f'{_SHORTEST_SEGMENT} s were left out')
    return BagRecording(Path(path).resolve().stem, str(path), layout.dt, tuple(segments),
                        tuple(notes))


def _stretches(path: str | Path, states: JointSeries, dt: float,
               notes: list[str]) -> list[slice]:
    """Return the messages of each stretch without a gap, those of two messages at least."""
    steps = np.diff(states.time)
    period = float(np.median(steps))
    if period > _SLOWEST_PERIOD:
        raise BagError(f'{path}: states come every {period:.3g} s on {states.topic}, too rarely '
                       f'to follow the motion; record at least {1 / dt:.0f} Hz')
    if period > 2 * dt:
        notes.append(f'states come every {period * 1e3:.1f} ms, slower than the step of '
                     f'{dt * 1e3:.1f} ms: motion between them is interpolated')
    gaps = np.flatnonzero(steps > max(_GAP_PERIODS * period, dt))
    if len(gaps):
        notes.append(f'{len(gaps)} gaps in {states.topic}, the longest '
                     f'{steps[gaps].max() * 1e3:.0f} ms: the motion was cut there')
    starts, ends = [0, *(gaps + 1)], [*(gaps + 1), len(states.time)]
    return [slice(a, b) for a, b in zip(starts, ends) if b - a > 1]


def _resample(states: JointSeries, rows: slice, commands: JointSeries | None, measured: bool,
              recorded: np.ndarray, dt: float) -> Segment:
    """Return the stretch `rows` at even times; `recorded` says which joints have a velocity."""
    known = states.time[rows]
    # The end is moved by a hair, so that rounding costs no sample.
    time = known[0] + dt * np.arange(int((known[-1] - known[0]) / dt + 1e-6) + 1)
    joint_q = cubic(known, states.position[rows], time)
    joint_qd = linear(known, states.velocity[rows], time)
    if not recorded.all() and len(time) > 1:
        joint_qd[:, ~recorded] = slope(joint_q, dt, _VELOCITY_WINDOW)[:, ~recorded]
    return Segment(time, joint_q, joint_qd,
                   None if commands is None else hold(commands.time, commands.effort, time),
                   linear(known, states.effort[rows], time) if measured else None)


def _within_commands(pieces: list[Segment], commands: JointSeries,
                     notes: list[str]) -> list[Segment]:
    """Return the parts of `pieces` during which it is known what was commanded."""
    time = commands.time
    silent = np.zeros(0, int)
    if len(time) < 3:
        notes.append(f'only {len(time)} commands: the last one counts until the end')
        ends = np.array([np.inf])
    else:
        steps = np.diff(time)
        period = float(np.median(steps))
        silent = np.flatnonzero(steps > max(_GAP_PERIODS * period, _SHORTEST_COMMAND_GAP))
        ends = np.append(time[silent], time[-1]) + period + 1e-9
    starts = np.append(time[0], time[silent + 1]) - 1e-9
    if len(silent):
        notes.append(f'{len(silent)} pauses in {commands.topic}, the longest '
                     f'{steps[silent].max() * 1e3:.0f} ms: the motion was cut there')
    parts = []
    for piece in pieces:
        for start, end in zip(starts, ends):
            rows = (piece.time >= start) & (piece.time <= end)
            if rows.any():
                parts.append(Segment(*(None if v is None else v[rows] for v in (
                    piece.time, piece.joint_q, piece.joint_qd, piece.effort_command,
                    piece.effort_measured))))
    lost = sum(len(p.time) for p in pieces) - sum(len(p.time) for p in parts)
    if lost:
        notes.append(f'{lost} samples before, between or after the commands were left out')
    return parts


def _recorded_velocity(states: JointSeries, layout, notes: list[str]) -> np.ndarray:
    """Return which joints have a velocity: some drivers send none, NaN or always zero."""
    moves = np.ptp(states.position, axis=0) > 1e-3
    filled = np.isfinite(states.velocity).mean(0) > 0.99
    recorded = filled & ~(moves & (np.nan_to_num(states.velocity) == 0).all(0))
    derived = [name for name, known in zip(layout.joint_names, recorded) if not known]
    notes.append('velocity: as recorded' if not derived else
                 f'velocity of {", ".join(derived)} was not recorded: slope of a line fitted to '
                 f'the positions within {_VELOCITY_WINDOW * 1e3:.0f} ms')
    return recorded


def _note_effort(states: JointSeries, layout, measured: bool, notes: list[str]) -> None:
    missing = [name for name, column in zip(layout.joint_names, states.effort.T)
               if not np.isfinite(column).any()]
    if not measured:
        notes.append('no measured efforts')
    elif missing:
        notes.append(f'measured effort of {", ".join(missing)} is missing: zero')
