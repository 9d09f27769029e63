# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tests of a learned model as a Newton solver, with a model that is never wrong."""

import newton
import numpy as np
from perfect_model import PerfectModel
import pytest
import torch
import warp as wp

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.rows import RobotRows
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers.analytic import Substepped
from nerd_ros.scene.solvers.external_force import ExternalForce
from nerd_ros.scene.solvers.make_solver import shipped_model
from nerd_ros.scene.solvers.solver_nerd import SolverNeRD
from nerd_ros.scene.teacher import TeacherRollouts
from nerd_ros.scene.world import ground_plane, Obstacle, World

DT = 0.005
WORLDS = 2
STONE = Obstacle('stone', 'sphere', (0.05,), (2.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0), static=False,
                 mass=1.0, inertia=((1e-3, 0.0, 0.0), (0.0, 1e-3, 0.0), (0.0, 0.0, 1e-3)))


@pytest.fixture
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture
def scene(spec):
    return build_scene(spec, World('w', obstacles=(STONE,)), WORLDS)


def start(scene, joint_q, joint_qd):
    """State with the robots at `joint_q`, `joint_qd`, (W, 2)."""
    state = scene.model.state()
    for array, values, stride in ((state.joint_q, joint_q, scene.q_stride),
                                  (state.joint_qd, joint_qd, scene.qd_stride)):
        whole = array.numpy().reshape(WORLDS, stride)
        whole[:, :2] = values
        array.assign(whole.reshape(-1))
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    return state


def robots(scene, array):
    """The robots' part of `joint_q` or `joint_qd`, (W, 2)."""
    return array.numpy().reshape(WORLDS, -1)[:, :2].copy()


def small_steps(model):
    """MuJoCo under forces that hold during a step."""
    return Substepped(mujoco_solver(model, use_mujoco_contacts=False, integrator='implicitfast'),
                      100)


def push(scene, state, link: int, wrench):
    values = state.body_f.numpy().reshape(WORLDS, scene.body_stride, 6)
    values[:, link] = wrench
    state.body_f.assign(values.reshape(-1, 6))


def test_it_takes_the_place_of_another_solver(spec, scene):
    learned = PerfectModel(spec, num_worlds=WORLDS)
    solver = SolverNeRD(scene.model, learned)
    states = [start(scene, [[1.0, -0.5], [-2.0, 0.3]], [[3.0, 0.0], [0.0, -2.0]]),
              scene.model.state()]
    control = scene.model.control()
    joint_f = np.zeros((WORLDS, scene.qd_stride), np.float32)
    joint_f[:, :2] = [[1.0, 0.0], [0.0, -0.5]]
    control.joint_f.assign(joint_f.reshape(-1))
    first = robots(scene, states[0].joint_q), robots(scene, states[0].joint_qd)
    for _ in range(40):
        solver.step(states[0], states[1], control, None, DT)
        states.reverse()
    effort = np.tile(joint_f[:, None, :2], (1, 40, 1))
    expected = PerfectModel(spec, num_worlds=WORLDS)._teacher.rollout(
        *first, effort, np.tile([0.0, 0.0, 1.0, -np.inf], (WORLDS, 1)))
    np.testing.assert_allclose(robots(scene, states[0].joint_q), expected[0][:, -1], atol=1e-4)
    # The links follow, and what is no robot stands still.
    body_q = states[0].body_q.numpy().reshape(WORLDS, scene.body_stride, 7)
    fresh = start(scene, robots(scene, states[0].joint_q), robots(scene, states[0].joint_qd))
    np.testing.assert_allclose(body_q, fresh.body_q.numpy().reshape(body_q.shape), atol=1e-6)
    np.testing.assert_allclose(body_q[:, -1, :3], [[2.0, 0.0, 1.0]] * WORLDS)


def test_in_place_and_without_control(spec, scene):
    solver = SolverNeRD(scene.model, PerfectModel(spec, num_worlds=WORLDS))
    one = start(scene, [[1.0, 0.0]] * 2, [[0.0, 0.0]] * 2)
    other, result = start(scene, [[1.0, 0.0]] * 2, [[0.0, 0.0]] * 2), scene.model.state()
    solver.step(one, one, None, None, DT)
    solver.step(other, result, scene.model.control(), None, DT)
    np.testing.assert_array_equal(one.joint_q.numpy(), result.joint_q.numpy())
    assert (robots(scene, one.joint_qd)[:, 0] < -0.05).all()


def test_another_time_step_is_refused(spec, scene):
    solver = SolverNeRD(scene.model, NerdModel(scene.layout))
    state = scene.model.state()
    with pytest.raises(ValueError, match='learned steps of 0.005 s'):
        solver.step(state, state, None, None, 0.01)


def test_a_model_without_the_robot_is_refused(scene):
    builder = newton.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1)
    with pytest.raises(ValueError, match='does not hold robot double_pendulum'):
        SolverNeRD(builder.finalize(), NerdModel(scene.layout))


def test_a_push_within_the_limits_is_an_effort(spec, scene):
    learned = PerfectModel(spec, num_worlds=WORLDS)
    solver = SolverNeRD(scene.model, learned)
    state = start(scene, [[0.0, 0.0]] * 2, [[0.0, 0.0]] * 2)
    # 1 N at the centre of mass of the lower link, which hangs 0.4557 m below the shoulder.
    push(scene, state, 2, (1.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    solver.step(state, state, None, None, DT)
    np.testing.assert_allclose(learned.efforts[-1], [[-0.455693, -0.255693]] * 2, atol=1e-5)
    # Friction holds a smaller one for ever.
    state = start(scene, [[0.0, 0.0]] * 2, [[0.0, 0.0]] * 2)
    push(scene, state, 2, (0.3, 0.0, 0.0, 0.0, 0.0, 0.0))
    for _ in range(200):
        solver.step(state, state, None, None, DT)
    assert np.abs(robots(scene, state.joint_q)).max() < 1e-3


def test_a_blow_beyond_the_limits_changes_the_velocity_as_in_mujoco(spec, scene):
    learned = PerfectModel(spec, num_worlds=WORLDS)
    solver = SolverNeRD(scene.model, learned)
    mujoco = small_steps(scene.model)
    contacts = newton.CollisionPipeline(scene.model, broad_phase='explicit').contacts()
    states = []
    for one in (solver, mujoco):
        state = start(scene, [[0.5, -1.0]] * 2, [[2.0, 1.0]] * 2)
        push(scene, state, 2, (60.0, 0.0, 90.0, 0.0, 3.0, 0.0))
        one.step(state, state, scene.model.control(), contacts, DT)
        states.append(state)
    assert np.abs(learned.efforts[-1]).max() == pytest.approx(6.0)
    change = robots(scene, states[1].joint_qd) - [2.0, 1.0]
    assert np.abs(change).max() > 2.0
    np.testing.assert_allclose(robots(scene, states[0].joint_qd),
                               robots(scene, states[1].joint_qd), atol=0.05 * np.abs(change).max())
    np.testing.assert_allclose(robots(scene, states[0].joint_q),
                               robots(scene, states[1].joint_q), atol=3e-3)


def test_reset_forgets_only_the_worlds_named(scene):
    solver = SolverNeRD(scene.model, NerdModel(scene.layout).eval())
    state = start(scene, [[1.0, 0.0]] * 2, [[0.0, 0.0]] * 2)
    for _ in range(3):
        solver.step(state, state, None, None, DT)
    known = solver._network._stream.known
    assert known[:, :3].all()
    mask = wp.array([True, False, False], dtype=wp.bool, device=scene.model.device)
    solver.reset(state, mask)
    known = solver._network._stream.known
    assert not known[0].any() and known[1, :3].all()


def test_a_floating_base_takes_a_wrench_as_in_mujoco(tmp_path):
    inertia = '<inertia ixx="0.02" iyy="0.03" izz="0.04" ixy="0" ixz="0" iyz="0"/>'
    link = ('<link name="{}"><inertial><origin xyz="0.05 0.02 0"/><mass value="2"/>{}'
            '</inertial></link>')
    (tmp_path / 'r.urdf').write_text(
        '<robot name="r">' + link.format('body', inertia) + link.format('arm', inertia)
        + '<joint name="j" type="continuous"><parent link="body"/><child link="arm"/>'
        '<origin xyz="0.2 0 0"/><axis xyz="0 0 1"/><limit effort="1" velocity="9"/></joint>'
        '</robot>')
    (tmp_path / 'r.yaml').write_text(
        'name: r\nurdf: r.urdf\nbase: {type: floating, pose: [0, 0, 1, 0.3, 0.2, 0.1]}\n'
        'dt: 0.005\njoints: {j: {}}\n')
    scene = build_scene(RobotSpec.load(str(tmp_path / 'r.yaml')), World('w', (0.0, 0.0, 0.0)))
    force = ExternalForce(RobotRows.find(scene.model, scene.layout))
    mujoco = small_steps(scene.model)
    contacts = newton.CollisionPipeline(scene.model, broad_phase='explicit').contacts()
    state, analytic = scene.model.state(), scene.model.state()
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    for one in (state, analytic):
        one.assign(state)
        one.body_f.assign(np.array([[20.0, -30.0, 5.0, 1.0, 2.0, -4.0],
                                    [0.0, 0.0, 9.0, 0.0, 1.0, 0.0]], np.float32))
    control = scene.model.control()
    force.split(state, control, DT)
    force.add(state, DT)
    learned = force.effort.numpy()[0, 0]
    assert 0.0 < abs(learned) <= 1.0
    # The joint's part within its limit is the model's; the rest of MuJoCo's step is ours.
    control.joint_f.assign(np.array([0.0] * 6 + [-learned], np.float32))
    mujoco.step(analytic, analytic, control, contacts, DT)
    np.testing.assert_allclose(state.joint_qd.numpy(), analytic.joint_qd.numpy(), atol=2e-4)
    np.testing.assert_allclose(state.joint_q.numpy(), analytic.joint_q.numpy(), atol=2e-5)


def random_model(layout):
    """An untrained model with motion of a sensible size and eyes for contacts."""
    torch.manual_seed(3)
    learned = NerdModel(layout).eval().requires_grad_(False)
    learned.increment_scale.copy_(torch.tensor([1e-3, 1e-3, 0.2, 0.2]))
    return learned


def run(spec, world, learned, steps=60):
    """Free motion of one robot, (steps, 4)."""
    simulation = Simulation(spec, world, lambda scene: SolverNeRD(scene.model, learned))
    simulation.set_state([1.0, -0.3], [1.0, 2.0])
    simulation.set_effort([0.5, -1.0])
    states = []
    for _ in range(steps):
        simulation.step()
        states.append(np.concatenate([simulation.joint_q[0], simulation.joint_qd[0]]))
    return np.array(states)


def test_states_fed_one_after_another_become_history(spec):
    learned = random_model(TeacherRollouts(spec, 1).layout)
    simulation = Simulation(spec, 'empty', lambda scene: SolverNeRD(scene.model, learned))
    simulation.set_state([1.0, -0.3], [1.0, 2.0])
    states = []
    for _ in range(10):
        states.append((simulation.joint_q[0].copy(), simulation.joint_qd[0].copy()))
        simulation.step()
    expected = simulation.joint_qd[0].copy()

    def fed(keep_history):
        simulation.reset()
        for state in states:
            simulation.set_state(*state, keep_history=keep_history)
            simulation.step()
        return simulation.joint_qd[0]
    np.testing.assert_allclose(fed(True), expected, atol=1e-6)
    assert np.abs(fed(False) - expected).max() > 1e-3


def test_the_simulation_is_the_rollout_of_the_model(spec):
    teacher = TeacherRollouts(spec, 1)
    learned = random_model(teacher.layout)
    plane = np.array([[0.0, 0.0, 1.0, 0.35]])
    simulated = run(spec, World('w', obstacles=(ground_plane(offset=0.35),)), learned)

    def contacts(joint_q, joint_qd):
        return torch.tensor(teacher.contacts(joint_q.numpy()[:, None], plane)[:, 0])
    joint_q, joint_qd = learned.rollout(
        torch.tensor([[1.0, -0.3]]), torch.tensor([[1.0, 2.0]]),
        torch.tensor([[[0.5, -1.0]]]).expand(1, 60, 2), contacts,
        torch.tensor([[0.0, 0.0, -9.81]]), torch.tensor(teacher.base_pose)[None])
    expected = torch.cat([joint_q, joint_qd], dim=-1)[0, 1:].numpy()
    assert np.abs(expected[-1] - expected[0]).max() > 0.1
    np.testing.assert_allclose(simulated, expected, atol=2e-3)


def test_moving_and_turning_the_scene_changes_nothing(spec):
    wall = Obstacle('wall', 'box', (0.1, 1.0, 1.0), (0.35, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0), True)
    learned = random_model(build_scene(spec, World('w')).layout)
    here = run(spec, World('w', obstacles=(ground_plane(offset=0.3), wall)), learned)
    alone = run(spec, World('w'), learned)
    assert np.abs(here - alone).max() > 1e-2

    yaw, shift = 2.0, np.array([3.0, -2.0, 0.4])
    x, y, z = spec.base.pose[:3] + shift
    moved = spec.model_copy(update={'base': spec.base.model_copy(
        update={'pose': (x, y, z, 0.0, 0.0, yaw)})})
    reach = np.array([0.35 * np.cos(yaw), 0.35 * np.sin(yaw), 0.5]) + shift
    turned = Obstacle('wall', 'box', (0.1, 1.0, 1.0),
                      (*reach, 0.0, 0.0, np.sin(yaw / 2), np.cos(yaw / 2)), True)
    there = run(moved, World('w', obstacles=(ground_plane(offset=0.7), turned)), learned)
    np.testing.assert_allclose(there, here, atol=2e-3)


def tilted(spec, angle):
    """The robot with its base turned about y, the axis of its joints."""
    pose = (*spec.base.pose[:3], 0.0, angle, 0.0)
    return spec.model_copy(update={'base': spec.base.model_copy(update={'pose': pose})})


@pytest.mark.parametrize('gravity, angle, words', [
    ((0.0, 0.0, -1.62), 0.0, ['(0, 0, -1.62) m/s^2', 'under 9.81 m/s^2']),
    ((0.0, 0.0, 0.0), 0.0, ['(0, 0, 0) m/s^2', 'under 9.81 m/s^2']),
    ((9.81, 0.0, 0.0), 0.0, ['(9.81, 0, 0) m/s^2', '(1, 0, 0)', 'learned (0, 0, -1)']),
    ((0.0, 0.0, -9.81), 0.5, ['(0, 0, -9.81) m/s^2', '(0.4794, 0, -0.8776)']),
])
def test_a_gravity_that_was_not_learned_is_refused(spec, gravity, angle, words):
    with pytest.raises(ValueError, match='choose the solver mujoco') as caught:
        Simulation(tilted(spec, angle), World('w', gravity), 'neural')
    for word in words:
        assert word in str(caught.value)
    # The analytic solvers know them all.
    Simulation(tilted(spec, angle), World('w', gravity), 'mujoco').step()


def test_a_scene_that_is_tilted_as_a_whole_moves_as_before(spec):
    learned = load_checkpoint(shipped_model(spec))
    gravity = (-9.81 * np.sin(0.5), 0.0, -9.81 * np.cos(0.5))
    upright = run(spec, World('w', (0.0, 0.0, -9.81)), learned)
    np.testing.assert_allclose(run(tilted(spec, 0.5), World('w', gravity), learned), upright,
                               atol=2e-3)
    rounded = run(spec, World('w', (0.0, 0.0, -9.8)), learned)
    np.testing.assert_array_equal(rounded, upright)


def test_a_saved_model_drives_the_simulation(spec, tmp_path):
    learned = random_model(build_scene(spec, World('w')).layout)
    learned.speed_limit.fill_(40.0)
    save_checkpoint(tmp_path, learned, {})
    simulation = Simulation(spec, 'obstacles', 'neural', tmp_path)
    simulation.step(20)
    assert np.isfinite(simulation.body_q).all() and simulation.guard_events == 0
    assert simulation.solver.speed_limit.tolist() == [40.0, 40.0]
    other = spec.model_copy(update={'dt': 0.01})
    with pytest.raises(ValueError, match='dt: 0.005 against 0.01'):
        Simulation(other, 'empty', 'neural', tmp_path)
