# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tests of two solvers in one scene."""

import newton
import numpy as np
import pytest
import warp as wp

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene, mujoco_solver
from nerd_ros.scene.solvers.shadow import MujocoCShadow, SolverShadow
from nerd_ros.scene.solvers.solver_hybrid import SolverHybrid
from nerd_ros.scene.solvers.solver_mujoco_c import SolverMujocoC
from nerd_ros.scene.world import ground_plane, Obstacle, World

DT = 0.005


def box(mass: float, x: float, z: float = 0.1) -> Obstacle:
    """A cube of 0.2 m."""
    inertia = mass * 0.04 / 6.0
    return Obstacle('box', 'box', (0.2, 0.2, 0.2), (x, 0.0, z, 0.0, 0.0, 0.0, 1.0), static=False,
                    mass=mass, friction=0.3,
                    inertia=((inertia, 0.0, 0.0), (0.0, inertia, 0.0), (0.0, 0.0, inertia)))


class Loop:
    """
    A plain Newton loop, as a user of the solver writes it.

    Obstacles are stepped by MuJoCo-Warp or, with `code` 'c', by its C code; and so is the robot,
    unless the scene is `hybrid`, where it has a solver of its own.
    """

    def __init__(self, world: World, code: str = 'warp', hybrid: bool = True):
        self.scene = build_scene(RobotSpec.load('double_pendulum'), world)
        self.model = self.scene.model
        self.pipeline = newton.CollisionPipeline(self.model, broad_phase='explicit',
                                                 rigid_contact_max=64)
        self.contacts = self.pipeline.contacts()
        self.control, self.state = self.model.control(), self.model.state()
        robot = range(self.scene.num_links)
        others = range(self.scene.num_links, self.scene.body_stride)
        if code == 'c':
            self.solver = SolverMujocoC(self.model, integrator='implicitfast')
            shadow = MujocoCShadow(self.model, robot, others, DT, integrator='implicitfast')
        else:
            self.solver = self.by_warp()
            shadow = SolverShadow(self.solver, self.by_warp())
        if hybrid:
            self.solver = SolverHybrid(self.model, self.by_warp(), shadow, robot)

    def by_warp(self):
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

    def run(self, steps: int) -> np.ndarray:
        """States (steps, nq + nqd) of the whole scene after each step."""
        states = []
        for _ in range(steps):
            self.step()
            states.append(np.concatenate([self.state.joint_q.numpy(),
                                          self.state.joint_qd.numpy()]))
        return np.array(states)

    def push(self, body: int, wrench) -> None:
        """Set the user's own wrench on a body."""
        values = self.state.body_f.numpy()
        values[body] = wrench
        self.state.body_f.assign(values)


@pytest.mark.parametrize('code', ['warp', 'c'])
@pytest.mark.parametrize('mass', [0.5, 5.0, 50.0])
def test_an_analytic_robot_in_the_hybrid_moves_as_in_one_scene(code, mass):
    world = World('w', obstacles=(ground_plane(friction=0.3), box(mass, 0.14)))
    runs = []
    for hybrid in (False, True):
        loop = Loop(world, code, hybrid)
        loop.start([0.3, 0.0], [-6.0, 0.0])
        runs.append(loop.run(60))
    moved = np.abs(runs[0][-1] - runs[0][0])
    assert moved[:2].max() > 0.1 and moved[2] > 1e-4
    assert np.abs(runs[1] - runs[0]).max() < 2e-3


@pytest.mark.parametrize('code', ['warp', 'c'])
def test_static_geometry_is_the_robot_solvers(code):
    wall = Obstacle('wall', 'box', (0.2, 0.4, 0.4), (0.14, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0), True)
    runs = []
    for hybrid in (False, True):
        world = World('w', obstacles=(wall, box(1.0, 3.0)))
        loop = Loop(world, code if hybrid else 'warp', hybrid)
        loop.start([0.3, 0.0], [-6.0, 0.0])
        runs.append(loop.run(40))
    # The wall has stopped the robot there, once.
    assert loop.state.body_q.numpy()[2, 0] < 0.1
    np.testing.assert_allclose(runs[1], runs[0], atol=1e-4)


@pytest.mark.parametrize('code', ['warp', 'c'])
def test_the_users_wrench_acts_and_stays(code):
    speeds = []
    for hybrid in (False, True):
        loop = Loop(World('w', obstacles=(box(2.0, 3.0),)), code, hybrid)
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
    eager, captured = Loop(world), Loop(world)
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


@pytest.mark.parametrize('code', ['warp', 'c'])
def test_no_control_is_the_models(code):
    loop = Loop(World('w', obstacles=(box(1.0, 3.0),)), code)
    loop.start([1.0, 0.0], [0.0, 0.0])
    loop.pipeline.collide(loop.state, loop.contacts)
    loop.solver.step(loop.state, loop.state, None, loop.contacts, DT)
    assert loop.state.joint_qd.numpy()[0] < -0.05


@pytest.mark.parametrize('x, height, touched, expected', [
    (0.119, 0.5, True, [4] * 3),    # presses on the robot
    (0.14, 0.5, False, [2] * 6),    # falls 0.02 m beside it
    (0.4, 0.5, False, [1] * 6),     # falls far from it
    (0.4, 0.101, False, [1, 1, 2])  # strikes the ground in the third step
])
def test_steps_are_small_where_they_have_to_be(x, height, touched, expected):
    scene = build_scene(RobotSpec.load('double_pendulum'),
                        World('w', obstacles=(ground_plane(), box(1.0, x, height))))
    shadow = MujocoCShadow(scene.model, range(3), [3], DT / 4, integrator='implicitfast')
    state, control = scene.model.state(), scene.model.control()
    newton.eval_fk(scene.model, state.joint_q, state.joint_qd, state)
    substeps = []
    for _ in range(1 + len(expected)):
        for part in shadow.parts(state, control, None, None, DT):
            part.run()
        wp.copy(state.joint_q, shadow.together.joint_q)
        wp.copy(state.joint_qd, shadow.together.joint_qd)
        substeps.append(shadow.substeps)
        assert shadow.touched == touched
    # The first step knows nothing of what is near.
    assert substeps[1:] == expected
