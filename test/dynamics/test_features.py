# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tokens know nothing of the world frame, and increments lead back to the next state."""

from dynamics.conftest import FIXED, FLOATING, random_inputs
import pytest
import torch

from nerd_ros.dynamics import features, frames


def moved(layout, inputs, turn, shift):
    """The same scene, turned by the quaternion `turn` and then shifted."""
    joint_q, joint_qd, effort, contacts, gravity, pose = [x.clone() for x in inputs]

    def turned(vector):
        return frames.quat_rotate(turn.expand(*vector.shape[:-1], 4), vector)

    pose = torch.cat([turned(pose[..., :3]) + shift,
                      frames.quat_multiply(turn.expand_as(pose[..., 3:]), pose[..., 3:])], -1)
    contacts = torch.cat([turned(contacts[..., :3]) + shift, turned(contacts[..., 3:6]),
                          contacts[..., 6:]], -1)
    if layout.floating:
        joint_q[..., :7] = pose
        joint_qd[..., :3] = turned(joint_qd[..., :3])
        joint_qd[..., 3:6] = turned(joint_qd[..., 3:6])
    return [joint_q, joint_qd, effort, contacts, turned(gravity), pose]


def test_tokens_have_the_documented_length(layout):
    tokens = features.tokens(layout, *random_inputs(layout, 5))
    assert tokens.shape == (5, features.token_size(layout))


def test_moving_and_turning_the_whole_scene_gives_the_same_tokens(layout):
    inputs = random_inputs(layout, 20)
    turn = torch.nn.functional.normalize(torch.randn(4), dim=0)
    other = moved(layout, inputs, turn, torch.tensor([3.0, -2.0, 1.0]))
    torch.testing.assert_close(features.tokens(layout, *other), features.tokens(layout, *inputs),
                               rtol=1e-4, atol=1e-5)


def test_a_prediction_is_the_same_in_a_moved_and_turned_scene(model):
    layout = model.layout
    inputs = random_inputs(layout, 20)
    turn = torch.nn.functional.normalize(torch.randn(4), dim=0)
    shift = torch.tensor([3.0, -2.0, 1.0])
    next_q, next_qd = model.step(model.start(20), *inputs)
    other_q, other_qd = model.step(model.start(20), *moved(layout, inputs, turn, shift))
    expected = moved(layout, [next_q, next_qd, *inputs[2:5],
                              next_q[:, :7] if layout.floating else inputs[5]], turn, shift)
    for quaternion in ([3] if layout.floating else []):
        sign = torch.sign((expected[0] * other_q)[:, quaternion:quaternion + 4].sum(-1))
        other_q[:, quaternion:quaternion + 4] *= sign[:, None]
    torch.testing.assert_close(other_q, expected[0], rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(other_qd, expected[1], rtol=1e-4, atol=1e-4)


def test_turning_the_robot_alone_changes_the_tokens():
    inputs = random_inputs(FIXED, 3)
    before = features.tokens(FIXED, *inputs)
    inputs[5] = random_inputs(FIXED, 3)[5]
    assert not torch.allclose(features.tokens(FIXED, *inputs), before)


def test_increments_lead_to_the_next_state(layout):
    first, second = random_inputs(layout, 50), random_inputs(layout, 50)
    delta = features.increment(layout, first[0], first[1], second[0], second[1])
    next_q, next_qd = features.apply_increment(layout, first[0], first[1], delta)
    again = features.increment(layout, first[0], first[1], next_q, next_qd)
    torch.testing.assert_close(again, delta, rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(next_qd, second[1], rtol=1e-4, atol=1e-5)


def test_no_increment_is_motion_at_constant_velocity():
    """A spinning base whose centre of mass lies off its origin moves along a straight line."""
    layout = FLOATING
    joint_q, joint_qd = random_inputs(layout, 1)[:2]
    com = torch.tensor(layout.base_com)

    def centre(q):
        return q[:, :3] + frames.quat_rotate(q[:, 3:7], com.expand(1, 3))

    next_q, next_qd = features.apply_increment(layout, joint_q, joint_qd,
                                               torch.zeros(1, 2 * layout.nqd))
    moved_by = (centre(next_q) - centre(joint_q)) / layout.dt
    torch.testing.assert_close(next_qd, joint_qd)
    torch.testing.assert_close(moved_by, joint_qd[:, :3], rtol=0.0, atol=0.02)
    turn = frames.quat_multiply(next_q[:, 3:7], frames.quat_conjugate(joint_q[:, 3:7]))
    torch.testing.assert_close(frames.quat_log(turn) / layout.dt, joint_qd[:, 3:6],
                               rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize('distance, seen', [(0.0999, True), (0.1001, False)])
def test_a_slot_beyond_the_threshold_is_all_zero(distance, seen):
    contacts = torch.tensor([[[1.0, 2.0, 3.0, 0.0, 0.0, 1.0, distance]]])
    values = features.slot_features(FIXED, contacts)
    assert bool(values.any()) == seen


def test_proximity_and_touch_grow_towards_the_surface():
    distances = torch.linspace(0.09, -0.02, 50)
    contacts = torch.zeros(50, 1, 7)
    contacts[:, 0, 6] = distances
    values = features.slot_features(FIXED, contacts)[:, 0, 6:]
    assert (values.diff(dim=0) > 0).all()
