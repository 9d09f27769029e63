# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tests of MuJoCo's C code as a Newton solver, against MuJoCo-Warp, which is another code."""

import newton
import numpy as np
import pytest
import warp as wp

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.solvers.solver_mujoco_c import SolverMujocoC
from nerd_ros.scene.world import ground_plane, Obstacle, World

DT = 0.005
BALL = Obstacle('ball', 'sphere', (0.1,), (0.4, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), static=False,
                mass=2.0, com=(0.01, 0.02, 0.0),
                inertia=((0.01, 0.0, 0.0), (0.0, 0.02, 0.0), (0.0, 0.0, 0.03)))
LINK = ('<link name="{}"><inertial><origin xyz="0.05 0.02 0"/><mass value="2"/>'
        '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/></inertial></link>')


@pytest.fixture(params=['floating', 'fixed'])
def spec(request, tmp_path):
    """A turned base with two joints, their masses off the axes."""
    (tmp_path / 'r.urdf').write_text(
        '<robot name="r">' + ''.join(LINK.format(name) for name in ('body', 'arm', 'hand'))
        + '<joint name="swing" type="continuous"><parent link="body"/><child link="arm"/>'
        '<origin xyz="0.2 0 0" rpy="0.3 0 0"/><axis xyz="0 0 1"/>'
        '<limit effort="1" velocity="9"/></joint>'
        '<joint name="reach" type="prismatic"><parent link="arm"/><child link="hand"/>'
        '<origin xyz="0.2 0 0"/><axis xyz="0 1 0"/>'
        '<limit effort="1" velocity="9" lower="-1" upper="1"/></joint></robot>')
    (tmp_path / 'r.yaml').write_text(
        f'name: r\nurdf: r.urdf\nbase: {{type: {request.param}, pose: [0, 0, 1, 0.3, 0.2, 0.1]}}\n'
        f'dt: {DT}\njoints: {{swing: {{}}, reach: {{}}}}\n')
    return RobotSpec.load(tmp_path / 'r.yaml')


def moving_state(model) -> newton.State:
    """Everything turned, moving and pushed."""
    rng, state = np.random.default_rng(0), model.state()
    state.joint_qd.assign(rng.uniform(-1.0, 1.0, model.joint_dof_count).astype(np.float32))
    newton.eval_fk(model, state.joint_q, state.joint_qd, state)
    state.body_f.assign(rng.uniform(-5.0, 5.0, (model.body_count, 6)).astype(np.float32))
    return state


def random_control(model) -> newton.Control:
    control = model.control()
    control.joint_f.assign(
        np.random.default_rng(1).uniform(-1.0, 1.0, model.joint_dof_count).astype(np.float32))
    return control


def test_motion_is_that_of_mujoco_warp(spec):
    """Without contact, so that the two differ by rounding only."""
    model = build_scene(spec, World('w', obstacles=(BALL,))).model
    contacts = newton.CollisionPipeline(model, broad_phase='explicit').contacts()
    results = []
    for solver in (SolverMujocoC(model, integrator='implicitfast'),
                   mujoco_solver(model, use_mujoco_contacts=False, integrator='implicitfast')):
        state, control = moving_state(model), random_control(model)
        first = state.joint_q.numpy().copy()
        for _ in range(20):
            solver.step(state, state, control, contacts, DT)
        results.append(state)
    assert np.abs(results[0].joint_q.numpy() - first).max() > 0.05
    for name in ('joint_q', 'joint_qd', 'body_q', 'body_qd'):
        one, other = (getattr(state, name).numpy() for state in results)
        np.testing.assert_allclose(one, other, atol=2e-4, err_msg=name)


def test_a_ball_joint_moves_as_in_mujoco_warp():
    builder = newton.ModelBuilder()
    newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
    link = builder.add_link(mass=1.0, com=(0.1, 0.0, 0.0), inertia=wp.mat33(
        0.02, 0.0, 0.0, 0.0, 0.03, 0.0, 0.0, 0.0, 0.04))
    builder.add_articulation([builder.add_joint_ball(
        -1, link, child_xform=wp.transform((0.0, 0.0, 0.2), wp.quat_rpy(0.4, 0.1, 0.2)))])
    model = builder.finalize(device='cpu')
    contacts = newton.CollisionPipeline(model, broad_phase='explicit').contacts()
    results = []
    for solver in (SolverMujocoC(model, integrator='implicitfast'),
                   mujoco_solver(model, use_mujoco_contacts=False, integrator='implicitfast')):
        state, control = moving_state(model), random_control(model)
        state.joint_q.assign(np.array(wp.quat_rpy(0.5, -0.3, 1.0)))
        for _ in range(20):
            solver.step(state, state, control, contacts, DT)
        results.append(np.concatenate([state.joint_q.numpy(), state.joint_qd.numpy()]))
    np.testing.assert_allclose(results[0], results[1], atol=2e-4)


def test_static_shapes_can_be_moved():
    scene = build_scene(RobotSpec.load('double_pendulum'), World('w', obstacles=(ground_plane(),)))
    solver, state = SolverMujocoC(scene.model, 4), scene.model.state()
    scene.set_ground([[0.0, 0.0, 1.0, 0.4]])
    solver.notify_model_changed(newton.ModelFlags.SHAPE_PROPERTIES)
    state.joint_q.assign(np.array([1.0, 0.0], np.float32))
    for _ in range(400):
        solver.step(state, state, None, None, DT)
    assert state.body_q.numpy()[2, 2] > 0.4 and np.abs(state.joint_qd.numpy()).max() < 0.05


def test_what_diverges_is_handed_on(tmp_path, monkeypatch, caplog):
    """And not put back to the start, and not noted in a file of MuJoCo's."""
    monkeypatch.chdir(tmp_path)
    scene = build_scene(RobotSpec.load('double_pendulum'), World('w', obstacles=(ground_plane(),)))
    solver, state = SolverMujocoC(scene.model), scene.model.state()
    state.joint_qd.assign(np.array([1e12, 0.0], np.float32))
    for _ in range(3):
        solver.step(state, state, None, None, DT)
    assert not (np.abs(state.joint_q.numpy()) < 1e6).all()
    assert not list(tmp_path.iterdir())
    assert any('unstable' in record.getMessage() for record in caplog.records)
    # A reset leaves nothing of it.
    fresh = solver.model.state()
    solver.reset(fresh)
    solver.step(fresh, fresh, None, None, DT)
    assert np.isfinite(fresh.joint_q.numpy()).all()
