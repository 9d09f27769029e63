# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Layouts: joints that follow, and layouts that were written before there were any."""

from dataclasses import replace

import numpy as np
import pytest

from nerd_ros.dynamics.layout import JointLayout, MimicLayout, RobotLayout, SlotLayout

GRIPPER = RobotLayout(
    'gripper', 0.005, True,
    (JointLayout('wrist', 'ball', -1e10, 1e10, 5.0),
     JointLayout('right', 'prismatic', 0.0, 0.04, 0.0, MimicLayout('left', -1.0, 0.01)),
     JointLayout('left', 'prismatic', 0.0, 0.04, 20.0),
     JointLayout('tip', 'revolute', -1.0, 1.0, 0.0, MimicLayout('left', 2.5, -0.1))),
    (SlotLayout('pad', (0.0, 0.0, 0.1), 0.0, 0.02, (1.0, 0.0, 0.0)),), 0.1, (0.0, 0.0, 0.0),
    'c' * 64)


def test_where_followers_and_leaders_are():
    assert GRIPPER.mimic_q.tolist() == [[11, 12], [13, 12]]
    assert GRIPPER.mimic_qd.tolist() == [[9, 10], [11, 10]]
    assert GRIPPER.mimic_coeffs == pytest.approx(np.array([[-1.0, 0.01], [2.5, -0.1]]))
    assert GRIPPER.effort_limits.tolist() == [5.0, 5.0, 5.0, 0.0, 20.0, 0.0]


def test_without_followers():
    layout = replace(GRIPPER, joints=(GRIPPER.joints[0], GRIPPER.joints[2]))
    for indices in (layout.mimic_q, layout.mimic_qd, layout.mimic_coeffs):
        assert indices.shape == (0, 2)


def test_round_trip():
    assert RobotLayout.from_dict(GRIPPER.to_dict()) == GRIPPER


def test_a_layout_from_before_there_were_followers_and_circles():
    data = GRIPPER.to_dict()
    for joint in data['joints']:
        joint.pop('mimic')
    for slot in data['slots']:
        slot.pop('ring'), slot.pop('axis')
    layout = RobotLayout.from_dict(data)
    assert layout.mimic_q.shape == (0, 2)
    assert layout.slots[0].ring == 0.0


@pytest.mark.parametrize('leader', ['wheel', 'right', 'tip'])
def test_a_leader_is_a_joint_that_moves_by_itself(leader):
    data = GRIPPER.to_dict()
    data['joints'][1]['mimic']['leader'] = leader
    with pytest.raises(ValueError, match=f'joint right follows {leader}, which is no joint'):
        RobotLayout.from_dict(data)


@pytest.mark.parametrize('mimic', [None, MimicLayout('left', -1.0, 0.02),
                                   MimicLayout('left', 1.0, 0.01)])
def test_who_follows_how_is_a_difference(mimic):
    right = replace(GRIPPER.joints[1], mimic=mimic)
    other = replace(GRIPPER, joints=(GRIPPER.joints[0], right, *GRIPPER.joints[2:]))
    line, = GRIPPER.differences(other)
    assert line.startswith('joint right, mimic')
    assert not GRIPPER.differences(replace(GRIPPER))


@pytest.mark.parametrize('change', [{'ring': 0.03}, {'axis': (0.0, 1.0, 0.0)}])
def test_a_circle_is_part_of_its_slot(change):
    other = replace(GRIPPER, slots=(replace(GRIPPER.slots[0], **change),))
    assert GRIPPER.differences(other) == ['contact slots at another place: [0]']
