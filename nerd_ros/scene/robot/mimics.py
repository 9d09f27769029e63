# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Joints of a URDF that follow another one, as the second finger of a gripper does."""

from pathlib import Path

from lxml import etree

from nerd_ros.dynamics.layout import MimicLayout
from nerd_ros.scene.robot.robot_spec import RobotError
from nerd_ros.scene.robot.urdf_joints import number

_FOLLOWING = ('revolute', 'continuous', 'prismatic')


def read_mimics(root: etree._Element, path: Path) -> dict[str, MimicLayout]:
    """
    Return what each follower follows, by its name.

    Where a leader follows another joint itself, its own leader takes its place. Raises RobotError
    for a leader that is no joint, cannot lead, or follows its follower.
    """
    joints = {joint.get('name'): joint for joint in root.findall('joint')}
    mimics = {}
    for name, joint in joints.items():
        if joint.find('mimic') is not None:
            mimics[name] = _read(joint, joints, path)
    for name, mimic in mimics.items():
        chain = [name]
        while mimic.leader in mimics:
            chain.append(mimic.leader)
            if mimic.leader in chain[:-1]:
                raise RobotError(f"{path}, line {joints[name].sourceline}: joints follow each "
                                 f"other in a circle, {' -> '.join(chain)}; leave out one "
                                 '<mimic>.')
            next_ = mimics[mimic.leader]
            mimic = MimicLayout(next_.leader, mimic.multiplier * next_.multiplier,
                                mimic.offset + mimic.multiplier * next_.offset)
        mimics[name] = mimic
    return mimics


def _read(joint, joints: dict, path: Path) -> MimicLayout:
    element = joint.find('mimic')
    leader = element.get('joint')
    where = f"{path}, line {element.sourceline}: joint {joint.get('name')}"
    if leader not in joints:
        raise RobotError(f'{where} follows {leader}, which is no joint of this URDF.')
    for name, follower in ((joint.get('name'), True), (leader, False)):
        kind = joints[name].get('type')
        if kind not in _FOLLOWING:
            raise RobotError(
                f"{where} follows {leader}, but a {kind} joint cannot "
                f"{'follow' if follower else 'lead'}; leave out the <mimic>.")
    return MimicLayout(leader, number(element, 'multiplier', 1.0), number(element, 'offset', 0.0))
