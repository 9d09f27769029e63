# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The teacher moves floating bases, ball joints and followers as Newton's own solver does."""

import newton
import numpy as np
import pytest
import warp as wp

from nerd_ros.scene.mujoco_state import MujocoCoordinates
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.teacher import GRAVITY, NO_GROUND, TeacherRollouts
from nerd_ros.scene.world import ground_plane, World

LINK = ('<inertial><origin xyz="{com}"/><mass value="0.3"/><inertia ixx="0.0008" iyy="0.0009" '
        'izz="0.0007" ixy="0.0001" ixz="0" iyz="0"/></inertial>')
SPHERE = ('<collision><origin xyz="0.1 0 0"/><geometry><sphere radius="0.02"/></geometry>'
          '</collision>')
JOINT = ('<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/>'
         '<origin xyz="{at}" rpy="0.3 -0.2 0.5"/><axis xyz="0 1 0"/>'
         '<limit effort="0.2" lower="-2" upper="2" velocity="9"/>{more}</joint>')
# A body with a ball joint and, behind another link, a joint that follows the one before.
CREATURE = ''.join([
    '<robot name="creature">',
    f'<link name="body">{LINK.format(com="0.02 -0.03 0.01")}<collision><geometry>'
    '<box size="0.1 0.1 0.1"/></geometry></collision></link>',
    *(f'<link name="{name}">{LINK.format(com="0.05 0 0.01")}{SPHERE}</link>'
      for name in ('arm', 'leg', 'foot')),
    JOINT.format(name='shoulder', kind='ball', parent='body', child='arm', at='0.05 0 0', more=''),
    JOINT.format(name='hip', kind='revolute', parent='body', child='leg', at='-0.05 0 0', more=''),
    JOINT.format(name='ankle', kind='revolute', parent='leg', child='foot', at='0.1 0 0',
                 more='<mimic joint="hip" multiplier="0.5" offset="0.1"/>'),
    '</robot>'])
COUNT, STEPS = 4, 30


@pytest.fixture(scope='module', params=['floating', 'fixed'])
def spec(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param)
    (folder / 'creature.urdf').write_text(CREATURE)
    (folder / 'creature.yaml').write_text(
        f'name: creature\nurdf: creature.urdf\nbase: {{type: {request.param}, '
        'pose: [0.1, 0.2, 0.3, 0.4, 0.5, 0.6]}\ndt: 0.008\n'
        'joints: {shoulder: {}, hip: {}, ankle: {}}\n')
    return RobotSpec.load(folder / 'creature.yaml')


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


@pytest.fixture(scope='module')
def motion(teacher):
    """Random starts near a floor, efforts, and planes: two floors and twice none."""
    rng, layout = np.random.default_rng(0), teacher.layout
    q, qd = rng.uniform(-1.0, 1.0, (COUNT, layout.nq)), rng.normal(size=(COUNT, layout.nqd))
    quats = [layout.q_start[0]] + ([3] if layout.floating else [])
    for at in quats:
        q[:, at:at + 4] /= np.linalg.norm(q[:, at:at + 4], axis=1, keepdims=True)
    q[:, layout.mimic_q[:, 0]] = 0.5 * q[:, layout.mimic_q[:, 1]] + 0.1
    qd[:, layout.mimic_qd[:, 0]] = 0.5 * qd[:, layout.mimic_qd[:, 1]]
    if layout.floating:
        q[:, 2], qd[:, :6] = 0.25, 3.0 * qd[:, :6]
    effort = rng.uniform(-1.0, 1.0, (COUNT, STEPS, layout.num_dofs)) * layout.effort_limits
    ground = np.tile(NO_GROUND, (COUNT, 1))
    ground[:2] = 0.0, 0.0, 1.0, 0.0
    return q, qd, effort, ground


def newtons_own(spec, q, qd, effort, obstacles):
    """Last state of one robot, stepped by SolverMuJoCo."""
    scene = build_scene(spec, World('own', GRAVITY, obstacles))
    solver = mujoco_solver(scene.model, use_mujoco_cpu=True)
    state, other, control = scene.model.state(), scene.model.state(), scene.model.control()
    state.joint_q.assign(q.astype(np.float32))
    state.joint_qd.assign(qd.astype(np.float32))
    for held in effort:
        control.joint_f.assign(np.pad(held, (len(qd) - len(held), 0)).astype(np.float32))
        for _ in range(spec.teacher.substeps):
            solver.step(state, other, control, None, spec.dt / spec.teacher.substeps)
            state, other = other, state
    return state.joint_q.numpy(), state.joint_qd.numpy()


def test_motion_is_that_of_newtons_solver(spec, teacher, motion):
    q, qd, effort, ground = motion
    qs, qds = teacher.rollout(q, qd, effort, ground)
    assert np.abs(qs[:, -1] - qs[:, 0]).max() > 0.5
    if teacher.layout.floating:
        assert (teacher.contacts(qs[:2], ground[:2])[..., 6] < 0.0).any(axis=(1, 2)).all()
    for i in range(COUNT):
        floor = ground_plane(friction=spec.contact.friction)
        last_q, last_qd = newtons_own(spec, q[i], qd[i], effort[i],
                                      (floor,) if ground[i, 3] == 0.0 else ())
        assert qs[i, -1] == pytest.approx(last_q, abs=2e-4)
        assert qds[i, -1] == pytest.approx(last_qd, abs=1e-2)


def test_a_motion_goes_on_from_any_of_its_states(teacher, motion):
    q, qd, effort, ground = motion
    qs, qds = teacher.rollout(q, qd, effort, ground)
    again, _ = teacher.rollout(qs[:, 10], qds[:, 10], effort[:, 10:], ground)
    assert again == pytest.approx(qs[:, 10:], abs=1e-5)


def test_jumps_and_followers(teacher, motion):
    q, qd, effort, ground = motion
    layout = teacher.layout
    jump = np.zeros((COUNT, STEPS, layout.nqd))
    jump[0, 4] = 0.1
    smooth = teacher.rollout(q, qd, effort, ground)
    qs, qds = teacher.rollout(q, qd, effort, ground, jump)
    assert qs[0, :6] == pytest.approx(smooth[0][0, :6], abs=1e-5)
    assert qds[0, 5] - smooth[1][0, 5] == pytest.approx(jump[0, 4], abs=1e-4)
    follower, leader = layout.mimic_q[0]
    gap = qs[..., follower] - 0.5 * qs[..., leader] - 0.1
    assert np.abs(gap).max() < 0.02 < np.ptp(qs[..., leader])


def test_a_thrown_body_keeps_its_momentum(tmp_path):
    """The velocity of the state is that of the centre of mass: it falls as a point does."""
    (tmp_path / 'stone.urdf').write_text(
        f'<robot name="stone"><link name="body">{LINK.format(com="0.1 0.2 -0.1")}</link></robot>')
    (tmp_path / 'stone.yaml').write_text(
        'name: stone\nurdf: stone.urdf\nbase: {type: floating}\ndt: 0.008\njoints: {}\n')
    stone = TeacherRollouts(RobotSpec.load(tmp_path / 'stone.yaml'), 1)
    turn = np.array([0.1, -0.7, 0.5, 0.5])
    q = np.array([[0.0, 0.0, 0.0, *turn / np.linalg.norm(turn)]])
    qd = np.array([[1.0, 2.0, 3.0, 4.0, -5.0, 6.0]])
    _, qds = stone.rollout(q, qd, np.zeros((1, 50, 0)), np.array([NO_GROUND]))
    time = np.arange(51) * 0.008
    assert qds[0, :, :2] == pytest.approx(np.tile([1.0, 2.0], (51, 1)), abs=1e-4)
    assert qds[0, :, 2] == pytest.approx(3.0 - 9.81 * time, abs=1e-4)


@pytest.mark.filterwarnings('ignore:Joint order is not in depth-first')
def test_coordinates_are_newtons():
    """With rotated anchors on both sides, and the joints in an order that MuJoCo does not keep."""
    builder = newton.ModelBuilder()
    bodies = [builder.add_link(mass=1.0, com=wp.vec3(0.1, -0.2, 0.3), inertia=wp.mat33(np.eye(3)))
              for _ in range(4)]
    anchors = [wp.transform((0.1, 0.0, 0.2), wp.quat_rpy(*angles))
               for angles in ((0.3, 0.5, -0.4), (-0.2, 0.7, 1.1))]
    joints = [builder.add_joint_free(bodies[0]),
              builder.add_joint_revolute(bodies[0], bodies[1], parent_xform=anchors[0]),
              builder.add_joint_ball(bodies[0], bodies[2], parent_xform=anchors[0],
                                     child_xform=anchors[1]),
              builder.add_joint_revolute(bodies[1], bodies[3], child_xform=anchors[1])]
    builder.add_articulation(joints)
    model = builder.finalize(device='cpu')
    solver = newton.solvers.SolverMuJoCo(model, use_mujoco_cpu=True)
    coordinates = MujocoCoordinates(model, solver)
    rng = np.random.default_rng(2)
    state, other, control = model.state(), model.state(), model.control()
    q, qd = rng.normal(size=model.joint_coord_count), rng.normal(size=model.joint_dof_count)
    for at in (3, 8):
        q[at:at + 4] /= np.linalg.norm(q[at:at + 4])
    force = rng.normal(size=model.joint_dof_count)
    state.joint_q.assign(q.astype(np.float32))
    state.joint_qd.assign(qd.astype(np.float32))
    control.joint_f.assign(force.astype(np.float32))
    solver.step(state, other, control, None, 1e-3)
    data = solver.mj_data
    qpos, qvel = data.qpos.copy(), data.qvel.copy()
    now = coordinates.from_mujoco(qpos[None], qvel[None])
    assert now[0][0] == pytest.approx(other.joint_q.numpy(), abs=1e-6)
    assert now[1][0] == pytest.approx(other.joint_qd.numpy(), abs=1e-5)
    back = coordinates.to_mujoco(*now)
    assert back[0][0] == pytest.approx(qpos, abs=1e-9)
    assert back[1][0] == pytest.approx(qvel, abs=1e-9)
    applied = coordinates.efforts(q, force)
    assert applied[6:] == pytest.approx(data.qfrc_applied[6:], abs=1e-5)
