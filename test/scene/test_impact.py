# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Rows of benchmarks/impact.py: the coupling alone, by a model that is never wrong, and in use."""

import impact
import numpy as np
from perfect_model import NO_GROUND, PerfectModel
import pytest

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.solvers import solver_nerd
from nerd_ros.scene.solvers.make_solver import with_obstacles


@pytest.fixture
def perfect(monkeypatch):
    """Make the hybrid solver with the perfect model, above the floor or without."""
    # The compiled step knows weights, which this model has not.
    monkeypatch.setattr(solver_nerd, '_OneRobot', solver_nerd._ManyRobots)

    def make(floor: bool):
        def solver(scene):
            ground = (0.0, 0.0, 1.0, impact.FLOOR_HEIGHT) if floor else NO_GROUND
            robot = solver_nerd.SolverNeRD(scene.model, PerfectModel(scene.spec, ground))
            return with_obstacles(scene, robot)
        return solver
    return make


def missed(row):
    return {name: value for name, value in row.items() if not value <= impact.BOUNDS[name]}


@pytest.mark.parametrize('mass', impact.MASSES)
@pytest.mark.parametrize('floor', [True, False])
def test_a_blow_is_that_of_the_analytic_scene(perfect, mass, floor):
    spec, angle, speed = RobotSpec.load('double_pendulum'), impact.ANGLES[0], impact.SPEEDS[1]
    world = impact.impact_world(mass, angle, floor)
    hybrid = impact.Bench(spec, world, perfect(floor)).swing(speed, angle)
    analytic = impact.Bench(spec, world, 'mujoco').swing(speed, angle)
    row = impact.compare(hybrid, analytic, speed, spec.dt, floor)
    assert not missed(row)
    assert row['energy'] < -0.1


@pytest.mark.parametrize('mass', impact.LEANING_MASSES)
def test_a_box_that_leans_on_the_pendulum_stays(perfect, mass):
    spec = RobotSpec.load('double_pendulum')
    bench = impact.Bench(spec, impact.leaning_world(mass), perfect(True))
    assert bench.drift() < impact.BOUNDS['drift']
    # It has not fallen, as it would without the link that it leans on.
    place = bench.simulation.body_q[0, 3, :3]
    assert np.linalg.norm(place - bench.simulation.obstacles[1].pose[:3]) < 0.01


def test_a_blow_of_the_learned_pendulum():
    spec, mass, angle, speed = (RobotSpec.load('double_pendulum'), impact.MASSES[1],
                                impact.ANGLES[0], impact.SPEEDS[2])
    world = impact.impact_world(mass, angle, floor=False)
    hybrid = impact.Bench(spec, world, 'neural').swing(speed, angle)
    analytic = impact.Bench(spec, world, 'mujoco').swing(speed, angle)
    row = impact.compare(hybrid, analytic, speed, spec.dt, floor=False)
    assert 'balance' in row and not missed(row)


def test_a_box_that_leans_on_the_learned_pendulum_stays():
    world = impact.leaning_world(impact.LEANING_MASSES[1])
    bench = impact.Bench(RobotSpec.load('double_pendulum'), world, 'neural')
    assert bench.drift() < impact.BOUNDS['drift']
