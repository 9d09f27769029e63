# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tests of two solvers in one scene."""

import newton
import numpy as np
import pytest
import warp as wp

from nerd_ros.scene.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.solver_hybrid import SolverHybrid
from nerd_ros.scene.world import ground_plane, Obstacle, World

DT = 0.005


def box(mass: float, x: float, z: float = 0.1) -> Obstacle:
    """A cube of 0.2 m."""
    inertia = mass * 0.04 / 6.0
    return Obstacle('box', 'box', (0.2, 0.2, 0.2), (x, 0.0, z, 0.0, 0.0, 0.0, 1.0), static=False,
                    mass=mass, friction=0.3,
                    inertia=((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia)))


class Loop:
    """A plain Newton loop, as a user of the solver writes it."""

    def __init__(self, world: World, hybrid: bool):
        self.scene = build_scene(RobotSpec.load('double_pendulum'), world)
        self.model = self.scene.model
        self.pipeline = newton.CollisionPipeline(self.model, broad_phase='explicit',
                                                 rigid_contact_max=64)
        self.contacts = self.pipeline.contacts()
        self.control, self.state = self.model.control(), self.model.state()
        self.solver = self.analytic()
        if hybrid:
            self.solver = SolverHybrid(self.model, self.analytic(), self.solver,
                                       range(self.scene.num_links))

    def analytic(self):
        """MuJoCo with one step per call, in which both scenes are the same to rounding."""
        return mujoco_solver(self.model, use_mujoco_contacts=False, integrator='implicitfast')

    def start(self, joint_q, joint_qd) -> None:
        """Put the robot into a state."""
        for array, values in ((self.state.joint_q, joint_q), (self.state.joint_qd, joint_qd)):
            whole = array.numpy()
            whole[:2] = values
            array.assign(whole)
        newton.eval_fk(self.model, self.state.joint_q, self.state.joint_qd, self.state)

    def step(self, control=None) -> None:
        """One step in place."""
        self.pipeline.collide(self.state, self.contacts)
        self.solver.step(self.state, self.state, control or self.control, self.contacts, DT)

    def push(self, body: int, wrench) -> None:
        """Set the user's own wrench on a body."""
        values = self.state.body_f.numpy()
        values[body] = wrench
        self.state.body_f.assign(values)


@pytest.mark.parametrize('mass', [0.5, 5.0, 50.0])
def test_an_analytic_robot_in_the_hybrid_moves_as_in_one_scene(mass):
    world = World('w', obstacles=(ground_plane(friction=0.3), box(mass, 0.14)))
    runs = []
    for hybrid in (False, True):
        loop = Loop(world, hybrid)
        loop.start([0.3, 0.0], [-6.0, 0.0])
        states = []
        for _ in range(60):
            loop.step()
            states.append(np.concatenate([loop.state.joint_q.numpy(),
                                          loop.state.joint_qd.numpy()]))
        runs.append(np.array(states))
    moved = np.abs(runs[0][-1] - runs[0][0])
    assert moved[:2].max() > 0.1
    assert np.abs(runs[1] - runs[0]).max() < 0.02


def test_the_wrench_is_what_the_box_receives():
    loop = Loop(World('w', (0.0, 0.0, 0.0), (box(5.0, 0.15),)), hybrid=True)
    loop.start([0.1, 0.0], [-6.0, 0.0])
    impulse = np.zeros(3)
    for _ in range(30):
        loop.step()
        impulse += DT * loop.solver.wrench.numpy()[:, :3].sum(axis=0)
    received = 5.0 * loop.state.body_qd.numpy()[-1, :3]
    assert np.linalg.norm(received) > 0.5
    np.testing.assert_allclose(-impulse, received, rtol=1e-3, atol=1e-3)


def test_static_geometry_makes_no_wrench():
    wall = Obstacle('wall', 'box', (0.2, 0.4, 0.4), (0.14, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0), True)
    loop = Loop(World('w', obstacles=(wall, box(1.0, 3.0))), hybrid=True)
    loop.start([0.3, 0.0], [-6.0, 0.0])
    for _ in range(40):
        loop.step()
        assert not loop.solver.wrench.numpy().any()
    # The wall is the robot solver's, which has stopped the robot there.
    assert loop.state.body_q.numpy()[2, 0] < 0.1


def test_the_users_wrench_acts_and_stays():
    speeds = []
    for hybrid in (False, True):
        loop = Loop(World('w', obstacles=(box(2.0, 3.0),)), hybrid)
        loop.start([0.0, 0.0], [0.0, 0.0])
        loop.push(2, (8.0, 0.0, 0.0, 0.0, 0.5, 0.0))
        loop.push(3, (0.0, 4.0, 0.0, 0.0, 0.0, 0.0))
        before = loop.state.body_f.numpy().copy()
        loop.step()
        np.testing.assert_array_equal(loop.state.body_f.numpy(), before)
        speeds.append(loop.state.joint_qd.numpy())
    np.testing.assert_allclose(speeds[1], speeds[0], atol=1e-5)
    assert abs(speeds[0][0]) > 0.05 and speeds[0][3] == pytest.approx(4.0 / 2.0 * DT)


def test_a_captured_step_equals_an_eager_one():
    world = World('w', obstacles=(ground_plane(friction=0.3), box(1.0, 0.14)))
    eager, captured = Loop(world, True), Loop(world, True)
    for loop in (eager, captured):
        loop.start([0.3, 0.0], [-6.0, 0.0])
    eager.step()
    captured.step()
    with wp.ScopedCapture() as capture:
        captured.step()
    for _ in range(40):
        eager.step()
        wp.capture_launch(capture.graph)
    np.testing.assert_array_equal(captured.state.joint_q.numpy(), eager.state.joint_q.numpy())


def test_no_control_is_the_models():
    loop = Loop(World('w', obstacles=(box(1.0, 3.0),)), hybrid=True)
    loop.start([1.0, 0.0], [0.0, 0.0])
    loop.pipeline.collide(loop.state, loop.contacts)
    loop.solver.step(loop.state, loop.state, None, loop.contacts, DT)
    assert loop.state.joint_qd.numpy()[0] < -0.05
