# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The recordings of the double pendulum: names, kinds, and the velocity that was recorded."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from real.recordings import data_path, DataError

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_content import read_content
from nerd_ros.learning.bags.bag_topics import find_commands, find_states
from nerd_ros.learning.bags.clocks import set_times
from nerd_ros.learning.bags.joint_tracks import joint_tracks
from nerd_ros.learning.bags.recording import BagRecording

KINDS = ('sys_id', 'acrobot_ilqr', 'pendubot_ilqr')
"""Kinds of recordings at full rate, as their names begin."""
SLOW_KINDS = ('acrobot_mcpilco', 'pendubot_mcpilco')
"""Kinds that were recorded at about 33 Hz."""


def pendulum_bags(data: str | Path, kinds: Sequence[str] = KINDS) -> list[Path]:
    """Return the bags of some kinds, sorted by name; raises DataError where there are none."""
    folder = data_path(data, 'double_pendulum')
    bags = sorted(path for path in folder.iterdir()
                  if path.is_dir() and path.name.startswith(tuple(kinds)))
    if not bags:
        raise DataError(f'{folder} holds no bag of {", ".join(kinds)}; name the folder of the '
                        'recordings by --data')
    return bags


def kind_of(name: str) -> str:
    """Return the kind of a recording by its name; raises DataError for another name."""
    for kind in KINDS + SLOW_KINDS:
        if name.startswith(kind):
            return kind
    raise DataError(f'{name} begins like none of {", ".join(KINDS + SLOW_KINDS)}')


def with_recorded_velocity(recording: BagRecording, layout: RobotLayout) -> BagRecording:
    """
    Return a recording with the velocities that the bag holds, linearly resampled.

    `read_bag` replaces noisy ones by slopes of the positions, while the yardstick of the
    identified model starts from what was recorded.
    """
    notes = []
    content = read_content(recording.path, layout)
    states = find_states(recording.path, layout, content, recording.topics.states, notes)
    commands = find_commands(recording.path, layout, content, recording.topics.commands,
                             [series.topic for series in states], notes)
    set_times([series for series in (*states, commands) if series is not None], notes, layout.dt)
    tracks = joint_tracks(recording.path, layout, states, notes)
    segments = [replace(segment, joint_qd=np.stack(
        [np.interp(segment.time, track.time, track.velocity) for track in tracks], axis=1))
        for segment in recording.segments]
    return replace(recording, segments=tuple(segments))
