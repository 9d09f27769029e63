# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A floating robot among bodies that move, with a model that is never wrong."""

from perfect_model import NO_GROUND, PerfectModel
import numpy as np
import pytest

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers import solver_nerd
from nerd_ros.scene.solvers.make_solver import with_obstacles
from nerd_ros.scene.world import ground_plane, Obstacle, World

MASS, INERTIA, GRAVITY = 0.37, 8.1e-4, 9.81   # of the cube of this package
UPRIGHT = [0.0, 0.0, 0.0, 1.0]


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('cube')


@pytest.fixture
def simulate(spec, monkeypatch):
    """Make a simulation of the cube with the perfect model above a plane, or with a solver."""
    # The compiled step knows weights, which this model has not.
    monkeypatch.setattr(solver_nerd, '_OneRobot', solver_nerd._ManyRobots)

    def make(world: World, solver=None, ground=NO_GROUND, worlds: int = 1):
        def perfect(scene):
            robot = solver_nerd.SolverNeRD(scene.model, PerfectModel(spec, ground, worlds))
            return with_obstacles(scene, robot)
        return Simulation(spec, world, solver or perfect, num_worlds=worlds)
    return make


def box(mass: float, place, size: float = 0.1, **properties) -> Obstacle:
    moment = mass * size ** 2 / 6.0
    return Obstacle('box', 'box', (size,) * 3, (*place, *UPRIGHT), static=False, mass=mass,
                    inertia=((moment, 0.0, 0.0), (0.0, moment, 0.0), (0.0, 0.0, moment)),
                    **properties)


def momenta(simulation, mass: float, size: float = 0.1) -> np.ndarray:
    """Linear and angular momentum about the origin of cube and box, (2, 6)."""
    result = []
    for place, twist, m, moment in zip(simulation.body_q[0], simulation.body_qd[0], (MASS, mass),
                                       (INERTIA, mass * size ** 2 / 6.0)):
        linear = m * twist[:3].astype(float)
        result.append([*linear, *(np.cross(place[:3], linear) + moment * twist[3:])])
    return np.array(result)


@pytest.mark.parametrize('mass, worlds', [
    (0.1, 1), (0.37, 1), (5.0, 1),  # by MuJoCo's C code
    (0.37, 2)])                     # by MuJoCo-Warp
def test_a_blow_conserves_momentum_and_is_that_of_the_analytic_scene(simulate, mass, worlds):
    """Cube and box, both falling, hit each other off the middle."""
    world = World('w', obstacles=(box(mass, (0.25, 0.03, 1.0)),))
    ends = []
    for solver in (None, 'mujoco'):
        simulation = simulate(world, solver, worlds=worlds)
        simulation.set_state([0.0, 0.0, 1.0, *UPRIGHT], [2.0, 0.0, 0.0, 0.0, 0.0, 3.0])
        first = momenta(simulation, mass)
        steps = round(0.4 / simulation.dt)
        simulation.step(steps)
        last = momenta(simulation, mass)
        change = last.sum(axis=0) - first.sum(axis=0)
        fall = -(MASS + mass) * GRAVITY * steps * simulation.dt
        received = np.linalg.norm(last[1, :2])
        assert received > 0.1
        np.testing.assert_allclose(change[:3], [0.0, 0.0, fall], atol=0.01 * received)
        # Gravity turns nothing about z.
        assert abs(change[5]) < 0.02 * received * 0.1
        ends.append((simulation.body_qd[0].copy(), simulation.body_q[0].copy()))
    (mine, places), (reference, _) = ends
    np.testing.assert_allclose(mine[:, :3], reference[:, :3], atol=0.01)
    np.testing.assert_allclose(mine[:, 3:], reference[:, 3:], atol=0.15)
    # They have parted again.
    assert places[1, 0] - places[0, 0] > 0.12


def test_the_cube_bears_a_box_and_a_table_bears_the_cube(simulate):
    """A box on the cube on the ground: all three stay where they are."""
    height = 0.1048
    world = World('w', obstacles=(ground_plane(), box(0.2, (0.0, 0.0, height + 0.03), 0.06)))
    simulation = simulate(world, ground=(0.0, 0.0, 1.0, 0.0))
    simulation.set_state([0.0, 0.0, 0.5 * height, *UPRIGHT], [0.0] * 6)
    simulation.step(round(0.3 / simulation.dt))
    start = simulation.body_q[0].copy()
    simulation.step(round(1.0 / simulation.dt))
    assert np.abs(simulation.body_q[0, :, :3] - start[:, :3]).max() < 1e-3
    assert simulation.guard_events == 0


def test_reset_state_and_guard_of_a_floating_robot(simulate):
    simulation = simulate(World('w', obstacles=(box(0.2, (1.0, 0.0, 0.05)),)), 'mujoco', worlds=2)
    initial = simulation.joint_q.copy()
    assert simulation.dof_names == () and simulation.applied_effort.shape == (2, 0)
    simulation.set_effort([])
    pose = [0.5, -0.2, 0.7, 0.0, 0.0, 1.0, 0.0]
    simulation.set_state(pose, [1.0, 0.0, 0.0, 0.0, 0.0, 2.0], [True, False])
    np.testing.assert_allclose(simulation.body_q[0, 0], pose, atol=1e-6)
    np.testing.assert_allclose(simulation.body_qd[0, 0], [1.0, 0.0, 0.0, 0.0, 0.0, 2.0], atol=1e-6)
    np.testing.assert_array_equal(simulation.joint_q[1], initial[1])
    simulation.step(10)
    assert simulation.joint_q[0, 0] == pytest.approx(0.5 + 10 * simulation.dt, abs=1e-4)
    simulation.reset()
    np.testing.assert_array_equal(simulation.joint_q, initial)
    assert not simulation.joint_qd.any()
