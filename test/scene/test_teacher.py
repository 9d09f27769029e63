# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The analytic motion of a fixed robot: closed form, energy, ground, box, and jumps."""

import closed_form
import newton
import numpy as np
import pytest

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.teacher import TeacherRollouts
from nerd_ros.scene.world import World

FREE = (0.0, 0.0, 1.0, -np.inf)
STARTS = 6


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, num_worlds=16)


@pytest.fixture(scope='module')
def motions():
    """Starts, efforts (the first two without), and angles of the closed form over 0.5 s."""
    rng = np.random.default_rng(0)
    q = rng.uniform(-np.pi, np.pi, (STARTS, 2))
    qd = rng.uniform(-5.0, 5.0, (STARTS, 2))
    effort = np.repeat(rng.uniform(-3.0, 3.0, (STARTS, 10, 2)), 10, axis=1)
    effort[:2] = 0.0
    coulomb, published = (
        np.array([closed_form.motion(*start, 0.005, coulomb_slope=slope)
                  for start in zip(q, qd, effort)]) for slope in (1e3, None))
    return q, qd, effort, coulomb, published


def planes(count, plane=FREE):
    return np.tile(np.array(plane, float), (count, 1))


def mean_error(teacher, motions, law):
    q, qd, effort, coulomb, published = motions
    angles, _ = teacher.rollout(q, qd, effort, planes(len(q)))
    return np.abs(angles - (coulomb if law == 'coulomb' else published)).mean()


def test_motion_is_that_of_the_closed_form(teacher, motions):
    """MuJoCo's dry friction turns up to 2 ms ahead of the velocity: this is what is left."""
    assert mean_error(teacher, motions, 'coulomb') < 1.5e-3
    assert mean_error(teacher, motions, 'atan') < 3e-3


def scaled(spec, **factors):
    joints = {name: joint.model_copy(update={
        key: getattr(joint, key) * factor for key, factor in factors.items()})
        for name, joint in spec.joints.items()}
    return spec.model_copy(update={'joints': joints})


def test_the_comparison_sees_wrong_parameters(spec, motions, tmp_path):
    friction = {'shoulder': 0.251327, 'elbow': 0.188496}
    stated = spec.model_copy(update={'joints': {
        name: joint.model_copy(update={'friction': friction[name], 'damping': 0.001})
        for name, joint in spec.joints.items()}})
    heavy = spec.model_copy(update={'urdf': str(tmp_path / 'heavy.urdf')})
    text = spec.urdf_path.read_text()
    (tmp_path / 'heavy.urdf').write_text(text.replace('0.009970894694', '0.011'))
    wrong = (scaled(spec, armature=0.0), scaled(stated, friction=1.2), scaled(stated, friction=0),
             scaled(stated, damping=10.0), heavy)
    assert mean_error(TeacherRollouts(stated, 8), motions, 'coulomb') < 1.5e-3
    for other in wrong:
        assert mean_error(TeacherRollouts(other, 8), motions, 'coulomb') > 3e-3


def test_the_scene_moves_as_the_teacher(spec, teacher, motions):
    """MuJoCo-Warp in the scene is the twin of the C code."""
    q, qd, effort, *_ = (a[:2] for a in motions)
    steps, substeps = 20, spec.teacher.substeps
    scene = build_scene(spec, World('nothing'), len(q))
    solver = mujoco_solver(scene.model)
    state, other = scene.model.state(), scene.model.state()
    control = scene.model.control()
    state.joint_q.assign(q.astype(np.float32).reshape(-1))
    state.joint_qd.assign(qd.astype(np.float32).reshape(-1))
    for step in range(steps):
        control.joint_f.assign(effort[:, step].astype(np.float32).reshape(-1))
        for _ in range(substeps):
            solver.step(state, other, control, None, spec.dt / substeps)
            state, other = other, state
    expected, _ = teacher.rollout(q, qd, effort[:, :steps], planes(len(q)))
    assert state.joint_q.numpy().reshape(q.shape) == pytest.approx(expected[:, -1], abs=2e-4)


def test_energy_without_friction(spec):
    joints = {name: joint.model_copy(update={'friction': 0.0, 'damping': 0.0})
              for name, joint in spec.joints.items()}
    teacher = TeacherRollouts(spec.model_copy(update={'joints': joints}), 4)
    rng = np.random.default_rng(1)
    q, qd = rng.uniform(-3.0, 3.0, (4, 2)), rng.uniform(-10.0, 10.0, (4, 2))
    qs, qds = teacher.rollout(q, qd, np.zeros((4, 400, 2)), planes(4))
    for i in range(4):
        start, end = (closed_form.energy(qs[i, t], qds[i, t]) for t in (0, -1))
        kinetic = 0.5 * qd[i] @ closed_form.mass_matrix(q[i, 1]) @ qd[i]
        assert abs(end - start) < 2e-3 * (kinetic + 4.0)


def test_friction_holds(teacher):
    """Below the dry friction of the shoulder nothing moves more than a creep."""
    qs, _ = teacher.rollout(np.zeros((1, 2)), np.zeros((1, 2)),
                            np.full((1, 200, 2), 0.15), planes(1))
    assert np.abs(qs[0, -1]).max() < 2e-3


def test_substeps_have_converged(teacher, motions):
    q, qd, effort, *_ = motions
    usual, _ = teacher.rollout(q, qd, effort[:, :10], planes(len(q)))
    fine, _ = teacher.rollout(q, qd, effort[:, :10], planes(len(q)), substeps=40)
    assert np.abs(usual - fine)[:, -1].mean() < 1e-4


def test_rests_on_the_ground(teacher):
    ground = planes(1, (0.0, 0.0, 1.0, 0.35))
    q, qd = teacher.rollout(np.array([[1.2, 0.3]]), np.zeros((1, 2)), np.zeros((1, 600, 2)),
                            ground)
    distance = teacher.contacts(q[:, -1:], ground)[0, 0, :, 6]
    assert -1e-3 < distance.min() < 1e-3
    assert np.abs(qd[0, -1]).max() < 1e-2


@pytest.mark.parametrize('normal', [(1.0, 0.0, 0.0), (0.0, 0.0, -1.0), (-0.6, 0.0, 0.8)])
def test_stays_on_its_side_of_any_plane(teacher, normal):
    plane = (*normal, float(np.dot(normal, teacher.base_pose[:3])) - 0.3)
    away = np.arctan2(-normal[0], -normal[2])   # straight away from the plane
    q, _ = teacher.rollout(np.array([[away, 0.0]]), np.array([[20.0, -5.0]]),
                           np.zeros((1, 300, 2)), planes(1, plane))
    distance = teacher.contacts(q, planes(1, plane))[0, :, :, 6].min(axis=1)
    assert distance.min() < 1e-3 and distance.min() > -0.03


def test_jumps_add_to_the_velocity(teacher, motions):
    q, qd, effort, *_ = motions
    effort = effort[:, :20]
    jump = np.zeros((STARTS, 20, 2))
    jump[2, 9] = 4.0, -2.0
    smooth = teacher.rollout(q, qd, effort, planes(STARTS))
    qs, qds = teacher.rollout(q, qd, effort, planes(STARTS), jump)
    others = np.arange(STARTS) != 2
    assert np.array_equal(qs[others], smooth[0][others])
    assert qs[2, :11] == pytest.approx(smooth[0][2, :11], abs=1e-6)
    assert qds[2, 10] - smooth[1][2, 10] == pytest.approx(jump[2, 9], abs=1e-4)
    again = teacher.rollout(qs[2:3, 10], qds[2:3, 10], effort[2:3, 10:], planes(1))
    assert qs[2, 10:] == pytest.approx(again[0][0], abs=1e-9)


def test_threads_change_nothing(spec, teacher, motions):
    q, qd, effort, *_ = motions
    ground = planes(STARTS, (0.0, 0.0, 1.0, 0.3))
    two = TeacherRollouts(spec, 8, threads=2)
    assert np.array_equal(teacher.rollout(q, qd, effort, ground)[0],
                          two.rollout(q, qd, effort, ground)[0])


def test_too_many_trajectories(teacher):
    with pytest.raises(ValueError, match='17 trajectories for a teacher of 16'):
        teacher.rollout(np.zeros((17, 2)), np.zeros((17, 2)), np.zeros((17, 1, 2)), planes(17))


def boxes(*values):
    """Boxes of x z half-extent; upright, at y = 0."""
    return np.array([(x, 0.0, z, 0.0, 0.0, 0.0, 1.0, half, half, half)
                     for x, z, half in values])


def test_each_trajectory_meets_its_own_box(teacher):
    """The hanging arm swings towards +x, where a box stops it earlier or later or not at all."""
    start, still, rest = np.tile([0.6, 0.0], (3, 1)), np.zeros((3, 2)), np.zeros((3, 200, 2))
    box = boxes((0.2, 0.35, 0.1), (0.2, 0.35, 0.05), (0.0, 0.0, 0.0))
    q, _ = teacher.rollout(start, still, rest, planes(3), box=box)
    assert q[..., 0].min(axis=1) == pytest.approx([-0.2, -0.36, -0.44], abs=0.03)
    distance = teacher.contacts(q, planes(3), box)[..., 6].min(axis=(1, 2))
    assert -0.01 < distance[0] < 0.0 and distance[2] == pytest.approx(0.1)
    free, _ = teacher.rollout(start, still, rest, planes(3))
    assert np.array_equal(q[2], free[2])


def test_slots_see_what_the_teacher_collides_with(teacher):
    rng = np.random.default_rng(3)
    q, turn = rng.uniform(-np.pi, np.pi, (16, 2)), rng.normal(size=(16, 4))
    box = np.concatenate([
        [0.0, 0.0, 0.65] + rng.uniform(-0.4, 0.4, (16, 3)) * [1, 0, 1],
        turn / np.linalg.norm(turn, axis=1, keepdims=True), rng.uniform(0.1, 0.3, (16, 3))], 1)
    for surroundings in ((planes(16), box), (planes(16, (0.0, 0.0, 1.0, 0.5)), None)):
        seen = -teacher.contacts(q[:, None], *surroundings)[:, 0, :, 6].min(axis=1)
        depth = teacher.penetration(q, *surroundings)
        assert 3 < (depth > 0.0).sum() < 13
        # Slots lie 0.1 m apart, so that an edge between two of them is seen a little late.
        assert (depth[seen > 0.0] > 0.0).all() and (seen[depth > 0.01] > 0.0).all()
    assert depth == pytest.approx(np.maximum(seen, 0.0), abs=1e-5)


def test_layout_and_joint_types_agree(teacher, spec):
    kinds = build_scene(spec, World('nothing')).model.joint_type.numpy()
    assert list(kinds[1:]) == [int(newton.JointType.REVOLUTE)] * 2
    assert teacher.base_pose == pytest.approx([0, 0, 0.65, 0, 0, 0, 1])
