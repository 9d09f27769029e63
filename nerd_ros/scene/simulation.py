# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulation: a robot in a world, stepped by the solver of your choice."""

from functools import cached_property
from pathlib import Path

import newton
import numpy as np
import warp as wp

from nerd_ros.scene.captured_step import CapturedStep
from nerd_ros.scene.efforts import Efforts
from nerd_ros.scene.guard import Guard
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.solvers.make_solver import analytic_solver, make_solver
from nerd_ros.scene.solvers.split_solver import uses_contacts
from nerd_ros.scene.world import World

REACTIONS = ('hold', 'reset', 'analytic')


class Simulation:
    """
    A robot and its world, `num_worlds` times, advanced by `step`.

    Args:
        robot: a RobotSpec, or the name or path of one.
        world: a World, or the name or path of one; None: the one that goes with the robot.
        solver: 'neural' (the robot's learned model), 'mujoco' or 'featherstone', with moving
            obstacles as MuJoCo's in each case; or a function that makes a Newton solver for all
            that is in the Scene it is given.
        model: folder of the learned model; by default the one that ships for the robot.
        num_worlds: number W of independent copies.
        device: Warp device. For one robot the CPU is the fastest; a GPU ('cuda:0') pays for many
            worlds, and for 'neural' PyTorch has to have CUDA as well.
        guard: what happens to a world whose step gave a robot state that is not finite or too
            fast: 'hold' keeps the last good position at zero velocity, 'reset' puts the world
            back to its start, 'analytic' lets the analytic solver go on, for all worlds and
            until the next full reset.

    Raises ValueError, in one sentence, for a robot, world, solver or model that cannot be used.

    State, SI units; on the CPU the arrays are views of the running state, on a GPU copies:
        joint_q (W, nq), joint_qd (W, nqd): of the robot, Newton's order (a floating base first:
            position, quaternion xyzw; linear velocity of its centre of mass, angular velocity).
        body_q (W, B, 7): world poses (position, quaternion xyzw) of the bodies `body_names`:
            robot links, then moving obstacles.
    """

    def __init__(self, robot: RobotSpec | str, world: World | str | None = 'empty',
                 solver='neural', model: Path | str | None = None, num_worlds: int = 1,
                 device='cpu', guard: str = 'hold'):
        if guard not in REACTIONS:
            raise ValueError(f'unknown guard {guard!r}; known are {", ".join(REACTIONS)}.')
        self.spec = robot if isinstance(robot, RobotSpec) else RobotSpec.load(robot)
        self.world = (world if isinstance(world, World)
                      else load_world(self.spec.default_world if world is None else world))
        self.scene = build_scene(self.spec, self.world, num_worlds, device)
        self.layout, self.num_worlds = self.scene.layout, num_worlds
        self.guard = guard
        self.guard_events = 0
        """How many times the guard had to act; `last_guard_message` says why it did last."""
        self.last_guard_message = ''
        self.steps = 0
        """Steps taken so far; `time` is this times `dt`."""

        newton_model = self.scene.model
        self._control = newton_model.control()
        self._state, self._new = newton_model.state(), newton_model.state()
        self._efforts = Efforts(self.scene)
        newton.eval_fk(newton_model, self._state.joint_q, self._state.joint_qd, self._state)
        self._initial = newton_model.state()
        self._initial.assign(self._state)

        # Eight contacts are more than any pair of the shapes in use has.
        self._pipeline = newton.CollisionPipeline(
            newton_model, broad_phase='explicit',
            rigid_contact_max=max(16, 8 * newton_model.shape_contact_pair_count))
        self._contacts = self._pipeline.contacts()
        self._pipeline.collide(self._state, self._contacts)
        self.scene.warn_of_overlaps(self._state, self._contacts)
        self.solver = (solver(self.scene) if callable(solver)
                       else make_solver(self.scene, solver, model))
        """The Newton solver in use."""
        self._guard = Guard(self.scene, getattr(self.solver, 'speed_limit', np.inf))
        self._chosen = self.solver
        self._captured = {self.solver: self._capture(self.solver)}
        if guard == 'analytic':
            self._analytic = analytic_solver(self.scene)
            self._captured[self._analytic] = self._capture(self._analytic)

    @property
    def dt(self) -> float:
        """Time of one step [s]."""
        return self.spec.dt

    @property
    def time(self) -> float:
        """Simulated time [s]."""
        return self.steps * self.spec.dt

    @property
    def dof_names(self) -> tuple[str, ...]:
        """Joint dofs in the order of efforts and, behind a floating base, of velocities."""
        return self.layout.dof_names

    @property
    def body_names(self) -> tuple[str, ...]:
        """Robot links, then moving obstacles, as in `body_q`."""
        return self.scene.body_names

    @property
    def obstacles(self):
        """All obstacles of the world, static and moving."""
        return self.world.obstacles

    @property
    def joint_q(self) -> np.ndarray:
        """Coordinates of the robot, (W, nq) [rad, m]."""
        return self._rows(self._state.joint_q)[:, :self.layout.nq]

    @property
    def joint_qd(self) -> np.ndarray:
        """Velocities of the robot, (W, nqd) [rad/s, m/s]."""
        return self._rows(self._state.joint_qd)[:, :self.layout.nqd]

    @property
    def body_q(self) -> np.ndarray:
        """Poses in the world of links and moving obstacles, (W, B, 7) [m, quaternion xyzw]."""
        return self._rows(self._state.body_q)

    @property
    def body_qd(self) -> np.ndarray:
        """Velocity of the centre of mass and angular velocity, world, (W, B, 6) [m/s, rad/s]."""
        return self._rows(self._state.body_qd)

    @cached_property
    def tensors(self):
        """State and effort as PyTorch tensors, views on any device: see StateTensors."""
        # Imports torch, which the analytic solvers do without.
        from nerd_ros.scene.tensors import StateTensors
        return StateTensors.of(self._state, self._efforts.wanted, self.layout)

    @property
    def effort(self) -> np.ndarray:
        """Effort set for the next step, (W, A) [N m, N]."""
        return self._efforts.wanted.numpy()

    @property
    def applied_effort(self) -> np.ndarray:
        """Effort that acted during the last step, (W, A) [N m, N]."""
        return self._efforts.applied.numpy()

    @property
    def score(self) -> float:
        """How far the last step lay from the training of the learned model; 0 without one."""
        return getattr(self.solver, 'score', 0.0)

    @property
    def faults(self) -> np.ndarray:
        """Worlds whose last step the guard refused, boolean (W,)."""
        return self._guard.faults.numpy() != 0

    def set_effort(self, values) -> None:
        """
        Set the effort of the next steps, `(A,)` for all worlds or `(W, A)`, clamped to the limits.

        Raises ValueError on a wrong shape or a value that is not finite.
        """
        self._efforts.set(values)

    def step(self, n: int = 1) -> None:
        """Advance all worlds by `n` steps of `dt`; the effort is read once per step."""
        for _ in range(n):
            self._captured[self.solver]()
            self.steps += 1
            if self._guard.found_fault:
                self._react()

    def reset(self, world_mask: np.ndarray | None = None) -> None:
        """
        Put the worlds in `world_mask` (W,) back to their start, all of them by default.

        Efforts become zero. Time goes on: it belongs to the run.
        """
        mask = self._mask(world_mask)
        for name in ('joint_q', 'joint_qd', 'body_q', 'body_qd'):
            self._write(name, mask, self._rows(getattr(self._initial, name)))
        self._efforts.clear(mask)
        if mask.all():
            self.solver = self._chosen
        self._forget(mask)

    def set_state(self, joint_q, joint_qd, world_mask: np.ndarray | None = None,
                  keep_history: bool = False) -> None:
        """
        Put the robots of the worlds in `world_mask` into a state; their history is forgotten.

        With `keep_history` it is not: measured states, set one after another with a step between
        them, become the history of a learned model.

        `joint_q` (nq,) or (W, nq), `joint_qd` (nqd,) or (W, nqd). Obstacles stay as they are.
        Raises ValueError on a wrong shape or a value that is not finite.
        """
        mask = self._mask(world_mask)
        for name, values, size in (('joint_q', joint_q, self.layout.nq),
                                   ('joint_qd', joint_qd, self.layout.nqd)):
            values = np.asarray(values, np.float32)
            if values.shape not in ((size,), (self.num_worlds, size)):
                raise ValueError(f'{name} of {self.spec.name} has {size} values, not shape '
                                 f'{values.shape}.')
            if not np.isfinite(values).all():
                raise ValueError(f'{name} holds values that are not finite.')
            rows = self._rows(getattr(self._state, name)).copy()
            rows[:, :size] = values
            self._write(name, mask, rows)
        newton.eval_fk(self.scene.model, self._state.joint_q, self._state.joint_qd, self._state)
        if not keep_history:
            self._forget(mask)

    def prepare_model(self, model: Path | str):
        """
        Load what `set_model` then takes at once: the learned model in folder `model`.

        Takes part of a second; steps may go on in another thread meanwhile. Raises ValueError for
        a model that cannot be used here, and where no learned model is in use.
        """
        return self._learned_solver.prepare_model(model)

    def set_model(self, model) -> None:
        """
        Go on with another learned model: a NerdModel, the folder of one, or a prepared one.

        State, time and efforts stay as they are, and the model knows the last steps. Raises as
        `prepare_model`, and then all is as before.
        """
        solver = self._learned_solver
        solver.set_model(model)
        self._guard.set_speed_limit(solver.speed_limit)

    @property
    def _learned_solver(self):
        solver = getattr(self._chosen, 'robot_solver', self._chosen)
        if not hasattr(solver, 'set_model'):
            raise ValueError(f'no learned model moves {self.spec.name} here; choose the solver '
                             'neural.')
        return solver

    def set_ground(self, planes) -> None:
        """Move the plane `ground` of each world; see `Scene.set_ground`."""
        self.scene.set_ground(planes)
        for solver in self._captured:
            solver.notify_model_changed(newton.ModelFlags.SHAPE_PROPERTIES)

    def _rows(self, array: wp.array) -> np.ndarray:
        """One row per world of an array of the model, (W, n) or (W, n, k)."""
        values = array.numpy()
        return values.reshape(self.num_worlds, -1, *values.shape[1:])

    def _write(self, name: str, mask: np.ndarray, rows: np.ndarray) -> None:
        """Overwrite the rows of the worlds in `mask` in an array of the state."""
        array = getattr(self._state, name)
        values = self._rows(array).copy()
        values[mask] = rows[mask]
        array.assign(values.reshape(array.numpy().shape))

    def _mask(self, world_mask) -> np.ndarray:
        if world_mask is None:
            return np.ones(self.num_worlds, bool)
        mask = np.asarray(world_mask, bool)
        if mask.shape != (self.num_worlds,):
            raise ValueError(f'a world mask has {self.num_worlds} values, not shape {mask.shape}.')
        return mask

    def _forget(self, mask: np.ndarray) -> None:
        """Clear what the solvers remember of the worlds in `mask`."""
        # Newton's masks end with an entry for what belongs to no world.
        world_mask = wp.array(np.append(mask, False), dtype=wp.bool,
                              device=self.scene.model.device)
        for solver in self._captured:
            solver.reset(self._state, world_mask, flags=0)

    def _capture(self, solver) -> CapturedStep:
        """Record the step of a solver; the state is as before."""
        def begin():
            self._efforts.apply(self._control.joint_f)
            if uses_contacts(solver):
                self._pipeline.collide(self._state, self._contacts)

        def end():
            self._guard.accept(self._new, self._state)

        step = CapturedStep(solver, self._state, self._new, self._control, self._contacts,
                            self.spec.dt, begin, end)
        self._state.assign(self._initial)
        solver.reset(self._state, None, flags=0)
        return step

    def _react(self) -> None:
        """Do what `guard` says about the worlds that had a fault in the last step."""
        mask = self.faults
        self.guard_events += int(mask.sum())
        self.last_guard_message = self._guard.describe(int(np.argmax(mask)), self._new)
        if self.guard == 'reset':
            self.reset(mask)
            return
        if self.guard == 'analytic':
            self.solver = self._analytic
        self._forget(mask)
