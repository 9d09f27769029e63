# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which stretches of a recording hold all that is to be known."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import JointSeries
from nerd_ros.learning.bags.base_motion import BaseTrack
from nerd_ros.learning.bags.joint_tracks import JointTrack
from nerd_ros.learning.bags.stretches import (
    command_stretches, length, longest_gap, overlap, Stretch, stretches)

# States that come more rarely than this [s] say nothing about the motion between them.
_SLOWEST_PERIOD = 0.2
# Measured effort that covers less than this share of commanded motion is better forgotten.
_SHARE_OF_EFFORT = 0.5


def usable_stretches(path: str | Path, layout: RobotLayout, tracks: Sequence[JointTrack],
                     commands: JointSeries | None, base: BaseTrack | None, measured: bool,
                     notes: list[str]) -> tuple[list[Stretch], bool]:
    """
    Return where all joints, base, commands and measured effort are known at once.

    The second value is whether measured effort is: it is given up where it was recorded for less
    than half of the motion and commands were recorded. What was cut is added to `notes`; raises
    BagError where states come too rarely.
    """
    sources = {track.name: track.time for track in tracks}
    if base is not None:
        sources['the base'] = base.time
    _check_rate(path, layout.dt, sources, notes)
    found = _of_states(sources, layout.dt, notes)
    if commands is not None:
        spoken, pause = command_stretches(commands.time)
        if len(commands.time) < 3:
            notes.append(f'only {len(commands.time)} commands: the last one counts until the end')
        if len(spoken) > 1:
            notes.append(f'{len(spoken) - 1} pauses in {commands.topic}, the longest '
                         f'{pause * 1e3:.0f} ms: the motion was cut there')
        found = _cut(found, spoken, 'before, between or after the commands', layout.dt, notes)
    known = [stretches(track.time[np.isfinite(track.effort)], layout.dt) for track in tracks
             if measured and np.isfinite(track.effort).any()]
    felt = found
    for one in known:
        felt = overlap(felt, one)
    if commands is not None and length(felt) < _SHARE_OF_EFFORT * length(found):
        if measured and known:
            notes.append('measured efforts cover less than half of the motion: left out')
        return found, False
    return _cut(found, felt, 'without measured efforts', layout.dt, notes), measured


def _check_rate(path: str | Path, dt: float, sources: dict[str, np.ndarray],
                notes: list[str]) -> None:
    periods = {name: float(np.median(np.diff(time))) for name, time in sources.items()}
    slowest = max(periods, key=periods.get)
    period = periods[slowest]
    if period > _SLOWEST_PERIOD:
        raise BagError(f'{path}: positions of {slowest} come every {period:.3g} s, too rarely to '
                       f'follow the motion; record at least {1 / dt:.0f} Hz')
    if period > 2 * dt:
        notes.append(f'states come every {period * 1e3:.1f} ms, slower than the step of '
                     f'{dt * 1e3:.1f} ms: motion between them is interpolated')


def _of_states(sources: dict[str, np.ndarray], dt: float, notes: list[str]) -> list[Stretch]:
    """Return where all sources have no gap, each gap told once."""
    found, told = None, {}
    for name, time in sources.items():
        one = stretches(time, dt)
        told.setdefault(tuple(one), []).append(name)
        found = one if found is None else overlap(found, one)
    for one, names in told.items():
        if len(one) > 1:
            whose = 'the states' if len(names) == len(sources) else ', '.join(names)
            notes.append(f'{len(one) - 1} gaps in {whose}, the longest '
                         f'{longest_gap(one) * 1e3:.0f} ms: the motion was cut there')
    return found


def _cut(found: list[Stretch], by: Sequence[Stretch], why: str, dt: float,
         notes: list[str]) -> list[Stretch]:
    kept = overlap(found, by)
    lost = length(found) - length(kept)
    if lost >= dt:
        notes.append(f'{lost:.2f} s {why} were left out')
    return kept
