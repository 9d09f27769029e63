# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""All messages of a recording that may tell of a robot."""

from dataclasses import dataclass
from pathlib import Path

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_files import BagFile, find_files, is_time, open_file
from nerd_ros.learning.bags.joint_messages import ARRAY, JOINT_STATE, JointCollector, JointTable
from nerd_ros.learning.bags.pose_messages import POSE_TYPES, PoseCollector, PoseTable


@dataclass
class BagContent:
    """What a recording holds; `joints` by topic, `poses` by topic and frame."""

    joints: dict[str, JointTable]
    poses: list[PoseTable]
    other_topics: dict[str, str]
    """Message type of each further topic."""
    notes: list[str]
    """What was odd about the files, a sentence each."""


def read_content(path: str | Path, layout: RobotLayout) -> BagContent:
    """
    Read what a bag, a folder or a file of it, says about joints and base of a robot.

    Raises BagError where this is no readable recording.
    """
    files, notes = find_files(Path(path))
    types = set()
    if layout.joints:
        types |= {JOINT_STATE, ARRAY}
    if layout.floating:
        types |= set(POSE_TYPES)
    collectors, others = {}, {}
    for file in files:
        with open_file(file) as bag:
            _read(bag, types, layout, collectors, others)
    tables = [c.table() for c in collectors.values() if isinstance(c, JointCollector)]
    poses = [table for c in collectors.values() if isinstance(c, PoseCollector)
             for table in c.tables()]
    broken = {table.topic: table.broken for table in [*tables, *poses] if table.broken}
    notes += [f'{count} messages of {topic} could not be decoded and were left out'
              for topic, count in broken.items()]
    return BagContent({table.topic: table for table in tables}, poses, others, notes)


def _read(bag: BagFile, types: set[str], layout: RobotLayout, collectors: dict,
          others: dict[str, str]) -> None:
    """Add the messages of one file to `collectors`, by topic."""
    for topic, kind in bag.topics:
        if kind not in types:
            others[topic] = kind
            continue
        if topic not in collectors:
            collectors[topic] = (
                PoseCollector(topic, kind) if kind in POSE_TYPES else
                JointCollector(topic, kind, layout))
    for topic, kind, received, raw, decode in bag.messages(types):
        collector = collectors[topic]
        if collector.kind == kind and is_time(received) and isinstance(raw, bytes):
            collector.add(received, raw, decode)
        else:
            collector.count_broken()
    for collector in collectors.values():
        collector.finish()
