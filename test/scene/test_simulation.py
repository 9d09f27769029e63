# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tests of Simulation: state access, efforts, solvers, guard."""

from dataclasses import replace

import closed_form
import numpy as np
from perfect_model import PerfectModel
import pytest
import warp

from nerd_ros.arguments import SOLVERS
from nerd_ros.scene import warp_messages
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers.make_solver import with_obstacles
from nerd_ros.scene.solvers.solver_nerd import SolverNeRD
from nerd_ros.scene.world import ground_plane, Obstacle, World

BOX = Obstacle('box', 'box', (0.2, 0.2, 0.2), (-0.25, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0), static=False,
               mass=0.5, friction=0.5,
               inertia=((3.3e-3, 0.0, 0.0), (0.0, 3.3e-3, 0.0), (0.0, 0.0, 3.3e-3)))
BOXES = World('boxes', obstacles=(ground_plane(friction=0.5), BOX))


@pytest.fixture(scope='module')
def swinging():
    """A simulation without obstacles, reset before use."""
    simulation = Simulation('double_pendulum', 'empty', 'mujoco')

    def start():
        simulation.reset()
        return simulation
    return start


class BreakingModel(PerfectModel):
    """Gives the numbers of `fault` in place of the velocity in step 5 of world 0."""

    fault = float('nan')

    def step(self, *inputs):
        joint_q, joint_qd = super().step(*inputs)
        if len(self.efforts) == 5:
            joint_qd[0, 1] = self.fault
        return joint_q, joint_qd


def breaking(fault: float, **options):
    """Two worlds with obstacles whose first robot breaks once."""
    spec = RobotSpec.load('double_pendulum')
    model = BreakingModel(spec, num_worlds=2)
    model.fault = fault
    model.speed_limit.fill_(50.0)
    simulation = Simulation(
        spec, BOXES, lambda scene: with_obstacles(scene, SolverNeRD(scene.model, model)),
        num_worlds=2, **options)
    model.efforts.clear()
    return simulation, model


def test_the_state_is_a_view_that_lives_as_long_as_the_simulation(swinging):
    simulation = swinging()
    joint_q, joint_qd, body_q = simulation.joint_q, simulation.joint_qd, simulation.body_q
    effort, applied = simulation.effort, simulation.applied_effort
    assert joint_q.shape == (1, 2) and effort.shape == (1, 2)
    assert body_q.shape == (1, 3, 7) and simulation.body_names == ('base', 'upper_link',
                                                                   'lower_link')
    simulation.set_state([1.0, 0.2], [0.0, 0.0])
    assert joint_q[0].tolist() == pytest.approx([1.0, 0.2])
    place = body_q[0, 2].copy()
    simulation.set_effort([-1.0, 0.5])
    simulation.step(10)
    assert joint_qd[0, 0] < -0.1 and np.abs(body_q[0, 2] - place).max() > 1e-3
    assert effort[0].tolist() == [-1.0, 0.5] and applied[0].tolist() == [-1.0, 0.5]
    np.testing.assert_array_equal(joint_q, simulation.joint_q)
    assert joint_q.dtype == np.float32 and np.shares_memory(joint_q, simulation.joint_q)


def test_time_counts_steps(swinging):
    simulation = swinging()
    before = simulation.steps
    simulation.step(7)
    assert simulation.steps == before + 7 and simulation.dt == 0.005
    simulation.reset()
    assert simulation.time == (before + 7) * 0.005


def test_efforts_are_clamped_and_latched_once_per_step(swinging):
    simulation = swinging()
    simulation.set_effort([100.0, -100.0])
    assert simulation.effort[0].tolist() == [6.0, -6.0]
    assert simulation.applied_effort[0].tolist() == [0.0, 0.0]
    simulation.step()
    assert simulation.applied_effort[0].tolist() == [6.0, -6.0]
    # Written past set_effort, the limit holds all the same.
    simulation.effort[0] = [50.0, 1.0]
    simulation.step()
    assert simulation.applied_effort[0].tolist() == [6.0, 1.0]


@pytest.mark.parametrize('values', [[1.0], [1.0, 2.0, 3.0], [[1.0, 2.0], [1.0, 2.0]]])
def test_an_effort_of_wrong_shape_is_refused(swinging, values):
    with pytest.raises(ValueError, match='2 values, one per joint .shoulder, elbow.'):
        swinging().set_effort(values)


@pytest.mark.parametrize('static', [True, False])
@pytest.mark.parametrize('x, depth', [(0.119, None), (0.11, 10), (0.0, 120)])
def test_an_obstacle_that_starts_in_the_robot_is_warned_of(caplog, static, x, depth):
    box = replace(BOX, name='crate', pose=(x, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0), static=static)
    Simulation('double_pendulum', World('crowded', obstacles=(box,)), 'mujoco', num_worlds=2)
    found = [r.getMessage() for r in caplog.records if 'crate' in r.getMessage()]
    assert len(found) == (depth is not None)
    assert all(f'obstacle crate starts {depth} mm inside link lower_link' in f for f in found)


def test_a_robot_without_a_learned_model_is_told_what_to_do(swinging):
    spec = swinging().spec.model_copy(update={'name': 'other'})
    with pytest.raises(ValueError, match='robot other; name the folder .*or choose the solver'):
        Simulation(spec)


@pytest.mark.parametrize('bad', [float('nan'), float('inf')])
def test_values_that_are_not_finite_are_refused(swinging, bad):
    simulation = swinging()
    for call in (lambda: simulation.set_effort([0.0, bad]),
                 lambda: simulation.set_state([bad, 0.0], [0.0, 0.0]),
                 lambda: simulation.set_state([0.0, 0.0], [0.0, bad])):
        with pytest.raises(ValueError, match='not finite'):
            call()
    assert simulation.effort[0].tolist() == [0.0, 0.0]


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match="unknown solver 'euler'; known are neural, mujoco"):
        Simulation('double_pendulum', 'empty', 'euler')
    with pytest.raises(ValueError, match="unknown guard 'panic'; known are hold, reset"):
        Simulation('double_pendulum', 'empty', 'mujoco', guard='panic')


def test_a_reset_repeats_the_run_exactly(swinging):
    simulation, runs = swinging(), []
    for _ in range(2):
        simulation.reset()
        simulation.set_state([2.0, -1.0], [3.0, 0.0])
        simulation.set_effort([0.5, 0.5])
        simulation.step(100)
        runs.append(simulation.joint_q.copy())
    np.testing.assert_array_equal(runs[0], runs[1])
    simulation.reset()
    assert not simulation.joint_q.any() and not simulation.effort.any()


def test_worlds_are_independent_and_reset_by_mask():
    simulation = Simulation('double_pendulum', BOXES, 'mujoco', num_worlds=3)
    assert simulation.body_names == ('base', 'upper_link', 'lower_link', 'box')
    assert simulation.body_q.shape == (3, 4, 7)
    start = simulation.body_q.copy()
    simulation.set_state([[0.0, 0.0], [-1.5, 0.0], [-1.5, 0.0]], [0.0, 0.0])
    simulation.step(150)
    assert np.abs(simulation.body_q[0] - start[0]).max() < 5e-3
    np.testing.assert_allclose(simulation.joint_q[1], simulation.joint_q[2], atol=1e-4)
    assert np.abs(simulation.body_q[1, 3:] - start[1, 3:]).max() > 1e-2
    simulation.reset([False, True, False])
    np.testing.assert_array_equal(simulation.body_q[1], start[1])
    assert not simulation.joint_qd[1].any() and simulation.joint_q[2].any()


@pytest.mark.parametrize('solver, slope', [('mujoco', 1e3), ('featherstone', None)])
def test_the_analytic_solvers_move_as_the_closed_form(solver, slope):
    """
    Over 0.5 s of free and of driven motion, with the law of dry friction that the solver has.

    The mean error is 2e-3 rad, of MuJoCo's friction that turns ahead of the velocity and of
    Featherstone's integration; a friction that is wrong by a fifth makes 4e-2 rad.
    """
    rng = np.random.default_rng(0)
    joint_q, joint_qd = rng.uniform(-np.pi, np.pi, (8, 2)), rng.uniform(-5.0, 5.0, (8, 2))
    effort = np.repeat(rng.uniform(-3.0, 3.0, (8, 10, 2)), 10, axis=1)
    effort[:2] = 0.0
    expected = [closed_form.motion(*start, 0.005, coulomb_slope=slope)
                for start in zip(joint_q, joint_qd, effort)]
    simulation = Simulation('double_pendulum', 'empty', solver, num_worlds=8)
    simulation.set_state(joint_q, joint_qd)
    angles = [joint_q]
    for step in range(100):
        simulation.set_effort(effort[:, step])
        simulation.step()
        angles.append(simulation.joint_q.copy())
    assert np.abs(np.stack(angles, axis=1) - expected).mean() < 4e-3


@pytest.mark.parametrize('solver', SOLVERS)
def test_the_scene_lies_on_the_cpu_wherever_warp_would_put_it(solver, monkeypatch):
    """Warp's own choice is a GPU where there is one; whatever takes it fails here."""
    monkeypatch.setattr(warp._src.context.runtime, 'default_device', object())
    simulation = Simulation('double_pendulum', 'obstacles', solver)
    simulation.set_state([1.0, 0.0], [0.0, 0.0])
    simulation.step(3)
    simulation.reset()
    assert simulation.scene.model.device.is_cpu and np.isfinite(simulation.body_q).all()


@pytest.mark.parametrize('worlds', [1, 2])
def test_the_ground_moves(worlds):
    simulation = Simulation('double_pendulum', 'empty', 'mujoco', num_worlds=worlds)
    simulation.set_ground([[0.0, 0.0, 1.0, 0.4], [0.0, 0.0, 1.0, -np.inf]][:worlds])
    simulation.set_state([1.0, 0.0], [0.0, 0.0])
    simulation.step(400)
    # One pendulum lies on the ground, 0.25 m below the shoulder; the other hangs.
    assert simulation.body_q[0, 2, 2] > 0.4 and np.abs(simulation.joint_qd[0]).max() < 0.05
    assert (simulation.body_q[1:, 2, 2] < 0.5).all()


@pytest.mark.parametrize('robot, world, body', [
    ('double_pendulum', 'obstacles', 'heavy_ball'), ('cartpole', 'cartpole_obstacles', 'parcel'),
    ('cube', 'cube_obstacles', 'light_box')])
def test_random_efforts_in_the_robots_own_world(caplog, robot, world, body):
    """Twenty seconds in which things are hit; benchmarks/endurance.py goes on for ten minutes."""
    simulation = Simulation(robot, None, 'mujoco')
    assert simulation.world.name == world
    assert all(record.name == warp_messages.__name__ for record in caplog.records)
    limits, rng = simulation.layout.effort_limits, np.random.default_rng(0)
    at = simulation.body_names.index(body)
    start = simulation.body_q[0, at].copy()
    for _ in range(200):
        simulation.set_effort(rng.uniform(-limits, limits))
        simulation.step(round(0.1 / simulation.dt))
    assert simulation.guard_events == 0 and np.isfinite(simulation.body_q).all()
    assert np.linalg.norm(simulation.body_q[0, at, :3] - start[:3]) > 0.01


@pytest.mark.parametrize('world', ['empty', BOXES])
def test_solvers_are_interchangeable(world):
    spec = RobotSpec.load('double_pendulum')
    # For one world it would be the compiled step, which knows weights only.
    model = PerfectModel(spec, (0.0, 0.0, 1.0, 0.0), num_worlds=2)

    def perfect(scene):
        return with_obstacles(scene, SolverNeRD(scene.model, model))

    places = []
    for solver in ('mujoco', 'featherstone', perfect):
        simulation = Simulation(spec, world, solver, num_worlds=2)
        simulation.set_state([0.0, -0.2], [4.0, 0.0])
        simulation.set_effort([0.4, 0.1])
        simulation.step(40)
        places.append(np.concatenate([simulation.joint_q[0], simulation.body_q[0, 3:].ravel()]))
        assert world == 'empty' or simulation.body_q[0, 3, 0] < BOX.pose[0] - 0.02
    np.testing.assert_allclose(places[1], places[0], atol=0.03)
    np.testing.assert_allclose(places[2], places[0], atol=0.03)


@pytest.mark.parametrize(('fault', 'message'), [
    (float('nan'), 'world 0: the solver gave a robot state that is not finite'),
    (80.0, 'world 0: joint elbow moves at 80.0, beyond its limit of 50.0')])
def test_the_guard_holds_the_robot(fault, message):
    simulation, model = breaking(fault, guard='hold')
    simulation.set_state([-0.6, 0.0], [0.0, 0.0])
    simulation.step(4)
    before, other = simulation.joint_q[0].copy(), simulation.joint_q[1].copy()
    simulation.step()
    assert simulation.guard_events == 1 and simulation.last_guard_message.startswith(message)
    np.testing.assert_array_equal(simulation.joint_q[0], before)
    assert not simulation.joint_qd[0].any()
    assert (simulation.joint_q[1] != other).any() and simulation.joint_qd[1].any()
    simulation.step(50)
    assert simulation.guard_events == 1 and np.isfinite(simulation.body_q).all()
    assert np.abs(simulation.joint_q[0] - before).max() > 1e-3


def test_the_guard_resets_the_world():
    simulation, model = breaking(float('inf'), guard='reset')
    simulation.set_state([-0.6, 0.0], [0.0, 0.0])
    simulation.step(5)
    assert not simulation.joint_q[0].any() and simulation.joint_q[1].any()


def test_the_guard_hands_over_to_the_analytic_solver():
    simulation, model = breaking(float('nan'), guard='analytic')
    chosen = simulation.solver
    simulation.set_state([-0.6, 0.0], [0.0, 0.0])
    simulation.step(30)
    assert len(model.efforts) == 5 and simulation.solver is not chosen
    assert simulation.joint_qd.any() and np.isfinite(simulation.joint_q).all()
    simulation.reset()
    assert simulation.solver is chosen
    simulation.step()
    assert len(model.efforts) == 6


def test_a_world_without_anything_but_the_robot():
    simulation = Simulation('double_pendulum', World('none'), 'mujoco')
    simulation.set_state([1.0, 0.0], [0.0, 0.0])
    simulation.step(50)
    assert 0.0 < abs(simulation.joint_qd[0, 0]) < 20.0
