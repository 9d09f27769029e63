# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which topic of a recording is the pose of a floating base."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_content import BagContent
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.pose_messages import ODOMETRY, PoseTable

# Frames that do not move with a robot, REP 105 and the usual names beside it.
_WORLD_FRAMES = ('world', 'map', 'odom', 'earth', 'mocap', 'vicon')
_BASE_FRAMES = ('base_link', 'base', 'base_footprint')


@dataclass
class PoseSeries:
    """
    Poses of the base, N of them.

    `received` and `stamp` `(N,)` [ns]; `time` [s] once it is known which of the two counts;
    `pose (N, 7)` in the world, x y z [m] and quaternion xyzw; `twist (N, 6)` linear and angular
    velocity in the frame of the base, NaN where none.
    """

    topic: str
    received: np.ndarray
    stamp: np.ndarray
    pose: np.ndarray
    twist: np.ndarray
    time: np.ndarray | None = None

    def keep(self, rows: np.ndarray) -> None:
        """Keep the messages of `rows`, in that order."""
        for name in ('received', 'stamp', 'pose', 'twist', 'time'):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, value[rows])


def find_base(path: str | Path, layout: RobotLayout, content: BagContent, wanted: str,
              base_link: str, notes: list[str]) -> PoseSeries:
    """
    Poses of the base link: Odometry before TFMessage before PoseStamped.

    Of TFMessage those of the frame `base_link`, of a link with contact slots or of one called
    base_link, and else those of a frame in the world, if it is the only one. What was chosen is
    added to `notes`; raises BagError where nothing fits.
    """
    tables = [table for table in content.poses if len(table.pose)]
    if wanted:
        topic, _, frame = wanted.partition(':')
        tables = [t for t in tables if t.topic == topic and frame in ('', t.frame)]
        if not tables:
            raise BagError(f'{path}: no poses of {wanted}; it has '
                           + _describe(content))
        if frame:
            base_link = frame
    if not tables:
        raise BagError(f'{path}: no pose of the base of {layout.robot}; record an Odometry, '
                       f'TFMessage or PoseStamped topic; it has {_describe(content)}')
    links = [base_link, *_BASE_FRAMES, *sorted({slot.link for slot in layout.slots})]
    ranked = sorted(tables, key=lambda table: _rank(table, links, wanted))
    best, rank = ranked[0], _rank(ranked[0], links, wanted)
    rivals = [t for t in ranked[1:] if _rank(t, links, wanted)[:3] == rank[:3]]
    if rank[1] == len(links) and not best.kind == ODOMETRY and rivals and best.frame:
        raise BagError(f'{path}: none of the frames of {best.topic} is the base link of '
                       f'{layout.robot}; name one of them as `--base {best.topic}:FRAME`: '
                       + ', '.join(sorted({t.frame for t in [best, *rivals]})[:12]))
    name = f'{best.topic}:{best.frame}' if best.frame else best.topic
    others = sorted({t.topic for t in tables} - {best.topic})
    if others:
        notes.append(f'{", ".join(others)} would fit as base too; {best.topic} was taken')
    if best.parent:
        notes.append(f'{best.parent} of {best.topic} is taken for the world: it has to stand '
                     'still, with z up')
    return PoseSeries(name, best.received, best.stamp, best.pose, best.twist)


def _rank(table: PoseTable, links: list[str], wanted: str) -> tuple:
    """Return how far a topic is from the pose of the base: the smallest is taken."""
    # Prefixes, as in robot1/base_link, tell robots apart.
    frame = table.frame.rsplit('/', 1)[-1]
    place = links.index(frame) if frame and frame in links else len(links)
    tells = place < len(links) or table.kind == ODOMETRY
    kind = 0 if table.kind == ODOMETRY else 1 if tells else 2 if not table.frame else 3
    return (kind, place, table.parent not in _WORLD_FRAMES, -len(table.pose))


def _describe(content: BagContent) -> str:
    known = {(f'{t.topic}:{t.frame}' if t.frame else t.topic)
             + ('' if len(t.pose) else ' (no valid pose)') for t in content.poses}
    others = [f'{topic} [{kind}]' for topic, kind in content.other_topics.items()]
    return ', '.join([*sorted(known), *sorted(others)][:8]) or 'no topic at all'
