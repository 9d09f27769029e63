# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Random trajectories of robots with a floating base, with ball joints, and with followers."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from nerd_ros.dynamics.frames import quat_rotate
from nerd_ros.dynamics.layout import JointLayout, MimicLayout, RobotLayout, SlotLayout
from nerd_ros.learning.data.random_trajectories import sample_trajectories
from nerd_ros.learning.data.sampling import Sampler
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.robot.sampling_spec import SamplingSpec
from nerd_ros.scene.teacher import TeacherRollouts

COUNT = 128
LAYOUT = RobotLayout(
    robot='creature', dt=0.01, floating=True,
    joints=(JointLayout('shoulder', 'ball', -1e10, 1e10, 2.0),
            JointLayout('hip', 'revolute', -1.0, 1.0, 3.0),
            JointLayout('ankle', 'revolute', -2.0, 2.0, 0.0, MimicLayout('hip', 0.5, 0.1))),
    slots=(SlotLayout('foot', (0.0, 0.0, 0.1), 0.02),),
    contact_threshold=0.1, base_com=(0.0, 0.0, 0.0), fingerprint='abc')
RANGES = SamplingSpec(velocity=(4.0, 5.0, 0.0), jump_velocity=(1.0, 2.0, 0.0), still_share=0.0,
                      base_velocity=(2.0, 6.0), passive_share=0.0, single_joint_share=0.0)


def sampler(seed=0, layout=LAYOUT, **changes):
    return Sampler(layout, RANGES.model_copy(update=changes), np.random.default_rng(seed))


def up(quats):
    axis = torch.tensor([0.0, 0.0, 1.0], dtype=torch.float64)
    return quat_rotate(torch.from_numpy(quats), axis.expand(len(quats), 3)).numpy()


def test_orientations_are_even_over_all():
    quats = sampler().orientations(20_000)
    assert np.linalg.norm(quats, axis=1) == pytest.approx(np.ones(20_000))
    # Evenly over all rotations, no component of a quaternion is preferred.
    assert (quats ** 2).mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.01)
    for axis in np.eye(3):
        turned = quat_rotate(torch.from_numpy(quats), torch.from_numpy(axis).expand(20_000, 3))
        assert np.abs(turned.numpy().mean(axis=0)).max() < 0.02


def test_tilt_is_limited_and_heading_is_not():
    quats = sampler().orientations(2000, 0.3)
    tilt = np.arccos(up(quats)[:, 2])
    assert tilt.max() < 0.3 + 1e-9 and (tilt > 0.15).mean() == pytest.approx(0.75, abs=0.05)
    forward = quat_rotate(torch.from_numpy(quats),
                          torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64).expand(2000, 3))
    assert np.abs(forward.numpy()[:, :2].mean(axis=0)).max() < 0.06


def test_states_of_all_kinds_of_joints():
    q, qd = sampler(base_tilt=0.5).positions(2000), sampler().velocities(2000)
    assert not q[:, :3].any()
    assert np.arccos(up(q[:, 3:7])[:, 2]).max() < 0.5 + 1e-9
    assert (q[:, 7:11] ** 2).mean(axis=0) == pytest.approx(np.full(4, 0.25), abs=0.02)
    assert np.abs(q[:, 11]).max() < 1.0
    assert q[:, 12] == pytest.approx(0.5 * q[:, 11] + 0.1, abs=1e-6)
    for part, most in ((slice(0, 3), 2.0), (slice(3, 6), 6.0)):
        speed = np.linalg.norm(qd[:, part], axis=1)
        assert 0.7 * most < speed.max() <= most and np.median(speed) < 0.2 * most
    assert 2.5 < np.abs(qd[:, 6:9]).max() <= 4.0 and 3.0 < np.abs(qd[:, 9]).max() <= 5.0
    assert qd[:, 10] == pytest.approx(0.5 * qd[:, 9])


def test_efforts_and_jumps_of_followers_and_motors():
    effort = sampler().efforts(200, 50)
    assert effort.shape == (200, 50, 5) and not effort[..., 4].any()
    assert (np.abs(effort).max(axis=(0, 1))[:4] > [1.5, 1.5, 1.5, 2.0]).all()
    single = sampler(single_joint_share=1.0).efforts(200, 50).any(axis=1)
    assert (single.sum(axis=1) == 1).all() and (single.sum(axis=0)[:4] > 25).all()
    jump = sampler(jump_share=1.0).jumps(200, 50, np.zeros(200, bool))
    jump = jump[jump.any(axis=2)]
    assert jump.std(axis=0)[:10] == pytest.approx(
        [0.5] * 3 + [2.0] * 3 + [1.0] * 3 + [2.0], rel=0.2)
    assert jump[:, 10] == pytest.approx(0.5 * jump[:, 9])
    motorless = replace(LAYOUT, joints=(replace(LAYOUT.joints[1], effort_limit=0.0),))
    assert not sampler(layout=motorless).efforts(10, 50).any()


def test_without_slots_there_is_nothing_to_touch():
    blind = sampler(layout=replace(LAYOUT, slots=()), no_ground_share=0.0, box_share=1.0)
    assert np.isneginf(blind.planes(20, np.array([0, 0, 0, 0, 0, 0, 1.0]))[:, 3]).all()
    assert not blind.has_box(20).any()


@pytest.fixture(scope='module')
def spec():
    cube = RobotSpec.load('cube')
    changes = {'steps': 40, 'box_share': 0.4, 'no_ground_share': 0.3, 'base_tilt': np.pi,
               'slow_share': 0.3, 'base_velocity': (2.0, 6.0), 'any_normal_share': 0.3,
               'ground_distance': (0.0, 0.5), 'ground_tilt': 0.5, 'settle_steps': 60,
               'box_distance': (0.0, 0.1)}
    return cube.model_copy(update={'sampling': cube.sampling.model_copy(update=changes)})


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


@pytest.fixture(scope='module')
def sample(spec, teacher):
    return sample_trajectories(spec, teacher, COUNT, np.random.default_rng(5))


def test_a_floating_base_starts_at_the_origin_outside_of_everything(teacher, sample):
    assert np.abs(sample.joint_q[:, 0, :3]).max() < 1e-6
    assert np.array_equal(sample.base_pose, sample.joint_q[:, 0, :7])
    depth = teacher.penetration(sample.joint_q[:, 0], sample.ground, sample.box)
    assert depth.max() < 4e-3   # those that have settled press a little
    touching = (np.abs(sample.contacts[:, 0, :, 6]) < 1e-3).any(axis=1)
    assert touching.mean() > 0.1


def test_the_slow_rest_on_the_ground(sample):
    slow = (sample.jump != 0).any(axis=2).mean(axis=1) > 0.1
    assert slow.mean() > 0.05
    assert np.isfinite(sample.ground[slow, 3]).all()
    assert (sample.contacts[slow, 0, :, 6].min(axis=1) < 5e-3).all()
    assert np.abs(sample.joint_qd[slow, 0]).max() <= 1.0


def test_each_step_leads_to_the_next(teacher, sample):
    for t in (0, 20, 39):
        q, qd = teacher.rollout(
            sample.joint_q[:, t], sample.joint_qd[:, t], sample.effort[:, t:t + 1],
            sample.ground, sample.jump[:, t:t + 1], box=sample.box)
        # Where a corner hits an edge, the last digit of a float32 may decide.
        apart = np.maximum(np.abs(q[:, 1] - sample.joint_q[:, t + 1]).max(axis=1) / 1e-4,
                           np.abs(qd[:, 1] - sample.joint_qd[:, t + 1]).max(axis=1) / 1e-2)
        assert (apart < 1.0).mean() > 0.9


def test_ground_and_boxes_lie_to_all_sides(sample):
    grounded = np.isfinite(sample.ground[:, 3])
    assert 0.55 < grounded.mean() < 0.85
    normal = sample.ground[grounded, :3]
    assert np.abs(normal[:, :2].mean(axis=0)).max() < 0.2
    assert (normal[:, 2] > np.cos(0.5) - 1e-6).mean() > 0.5 and (normal[:, 2] < 0.0).any()
    boxed = sample.box[:, 7] > 0.0
    assert 0.25 < boxed.mean() < 0.55
    assert np.abs(sample.box[boxed, :3].mean(axis=0)).max() < 0.2
    assert (grounded & boxed).any() and (boxed & ~grounded).any()
    assert (sample.contacts[boxed & ~grounded, :, :, 6] < 0.0).any()
