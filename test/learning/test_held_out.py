# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Held-out motion: the section `evaluation` of the RobotSpec, and never part of training."""

import numpy as np
import pytest
import torch

from nerd_ros.dynamics.frames import quat_rotate
from nerd_ros.learning.data.held_out import held_out
from nerd_ros.learning.data.random_trajectories import sample_trajectories
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.robot.sampling_spec import EvaluationSpec, GroundSpec
from nerd_ros.scene.teacher import TeacherRollouts

COUNT = 42


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


def with_evaluation(spec, **changes):
    return spec.model_copy(update={'evaluation': spec.evaluation.model_copy(update=changes)})


def test_states_and_grounds_are_those_of_the_section(spec, teacher):
    held = held_out(spec, teacher, COUNT, 1, 5, passive=True, ground=True)
    assert (np.abs(held.joint_qd[:, 0]) <= [6.2832, 12.566]).all()
    assert (np.abs(held.joint_qd[:, 0]).max(axis=0) > [5.0, 10.0]).all()
    assert np.ptp(held.joint_q[:, 0], axis=0) == pytest.approx([6.0, 6.0], abs=0.5)
    assert not held.effort.any()
    assert np.array_equal(held.ground[:6], held.ground[6:12])
    assert len(np.unique(held.ground, axis=0)) == 6
    # The second is flat, the last leans towards +x; both go through x = y = 0 at their height.
    assert held.ground[1] == pytest.approx([0.0, 0.0, 1.0, 0.3])
    assert held.ground[5] == pytest.approx([np.sin(0.55), 0, np.cos(0.55), 0.35 * np.cos(0.55)])
    depth = teacher.penetration(held.joint_q[:, 0], held.ground)
    assert depth.max() <= spec.sampling.max_penetration


def test_positions_can_be_narrowed(spec, teacher):
    narrow = with_evaluation(spec, position=((0.1, 0.2), (-0.3, -0.3)))
    held = held_out(narrow, teacher, COUNT, 1, 3, passive=True, ground=False)
    q = held.joint_q[:, 0]
    assert (q[:, 0] >= 0.1).all() and (q[:, 0] <= 0.2).all() and (q[:, 1] == -0.3).all()


def test_efforts_are_those_of_training(spec, teacher):
    held = held_out(spec, teacher, COUNT, 1, 60, passive=False, ground=False)
    amplitude = np.abs(held.effort).max(axis=(1, 2))
    assert (amplitude > 0.0).all() and amplitude.min() < 2.0 and amplitude.max() > 4.0
    assert np.isneginf(held.ground[:, 3]).all() and not held.touches.any()


def test_rollouts_do_not_hang_on_the_size_of_the_teacher(spec, teacher):
    small = TeacherRollouts(spec, 5)
    first, second = (held_out(spec, one, 12, 3, 20, passive=False) for one in (teacher, small))
    for name in ('joint_q', 'joint_qd', 'effort', 'ground', 'touches'):
        assert np.array_equal(getattr(first, name), getattr(second, name))
    assert np.isneginf(first.ground[[0, 7], 3]).all()
    assert np.isfinite(np.delete(first.ground, [0, 7], axis=0)).all()
    other = held_out(spec, teacher, 12, 4, 20, passive=False)
    assert not np.array_equal(first.joint_q, other.joint_q)


def test_nothing_of_it_is_in_training(spec, teacher):
    held = held_out(spec, teacher, COUNT, 0, 2, passive=False, ground=False)
    for index in (0, 1):
        rng = np.random.default_rng([0, index])
        trained = sample_trajectories(spec, teacher, COUNT, rng)
        assert not np.isin(held.effort[held.effort != 0.0].astype(np.float32),
                           trained.effort).any()


def test_tosses_of_a_floating_base():
    cube = RobotSpec.load('cube')
    spec = cube.model_copy(update={'evaluation': EvaluationSpec(
        duration=0.1, base_velocity=(1.5, 4.0), base_tilt=0.4, base_height=(0.2, 0.3),
        grounds=(GroundSpec(height=0.1), GroundSpec(height=-0.2, roll=0.3)))})
    held = held_out(spec, TeacherRollouts(spec, 64), 64, 0, 10, passive=True, ground=True)
    start, twist = held.joint_q[:, 0], held.joint_qd[:, 0]
    above = start[:, 2] - np.tile([0.1, -0.2], 32)
    assert (above >= 0.2).all() and (above <= 0.3).all() and not start[:, :2].any()
    up = quat_rotate(torch.from_numpy(start[:, 3:7]), torch.tensor([[0.0, 0.0, 1.0]]).double())
    assert (up[:, 2].numpy() >= np.cos(0.4) - 1e-6).all()
    for part, most in ((slice(0, 3), 1.5), (slice(3, 6), 4.0)):
        speed = np.linalg.norm(twist[:, part], axis=1)
        assert speed.max() <= most and np.median(speed) > 0.3 * most
    assert held.ground[1] == pytest.approx([0.0, -np.sin(0.3), np.cos(0.3), -0.2 * np.cos(0.3)])


def test_what_cannot_be_is_told(spec, teacher):
    for section in ('sampling', 'evaluation'):
        lacking = spec.model_copy(update={section: None})
        with pytest.raises(RobotError, match=f'double_pendulum.yaml: the section {section} is'):
            held_out(lacking, teacher, 2, 0, 2, passive=True)
    with pytest.raises(RobotError, match='no evaluation.grounds to test a model on'):
        held_out(with_evaluation(spec, grounds=()), teacher, 2, 0, 2, True, True)
    buried = with_evaluation(spec, grounds=(GroundSpec(height=0.2), GroundSpec(height=0.9)))
    with pytest.raises(RobotError, match='above number 2 of evaluation.grounds no random'):
        held_out(buried, teacher, 4, 0, 2, True, None)
    with pytest.raises(ValueError, match='4294967296 is no seed'):
        held_out(spec, teacher, 2, 2**32, 2, True)
