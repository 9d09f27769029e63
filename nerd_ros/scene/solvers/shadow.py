# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
What moving obstacles do to a robot and it to them, by an analytic solver.

The robot takes part as a shadow of its own: the scene is stepped as a whole, and once more with
the robot alone among what stands still. Of the first the obstacles are kept; the difference of the
two in the robot is what the obstacles made of it.
"""

from abc import ABC, abstractmethod
import math

import newton
from newton.solvers import SolverBase
from numba import njit
import numpy as np

from nerd_ros.scene.solvers.mujoco_world import MujocoWorld
from nerd_ros.scene.solvers.split_solver import Part


class Shadow(ABC):
    """
    Steps a scene with a robot twice, with moving obstacles and without.

    Attributes:
        together: state after the step, of all.
        alone: joint positions and velocities of the robot after the step without obstacles.
        uses_contacts: whether `parts` reads the contacts it is given.
    """

    uses_contacts = True

    def __init__(self, model: newton.Model):
        self.together, self.alone = model.state(), model.state()

    @abstractmethod
    def parts(self, state_in, control, contacts, static_contacts, dt) -> list[Part]:
        """Parts of a step from `state_in`; `static_contacts` are those without obstacles."""

    @abstractmethod
    def reset(self, state, world_mask=None, flags=None) -> None:
        """See `newton.solvers.SolverBase.reset`; `flags` without the state."""

    @abstractmethod
    def notify_model_changed(self, flags) -> None:
        """See `newton.solvers.SolverBase.notify_model_changed`."""


class SolverShadow(Shadow):
    """By two equal Newton solvers, for any number of worlds on any device."""

    def __init__(self, solver: SolverBase, solver_alone: SolverBase):
        super().__init__(solver.model)
        self._solver, self._solver_alone = solver, solver_alone

    def parts(self, state_in, control, contacts, static_contacts, dt) -> list[Part]:
        """See Shadow."""
        return [Part(lambda: self._solver.step(state_in, self.together, control, contacts, dt)),
                Part(lambda: self._solver_alone.step(state_in, self.alone, control,
                                                     static_contacts, dt))]

    def reset(self, state, world_mask=None, flags=None) -> None:
        """See Shadow."""
        for solver in (self._solver, self._solver_alone):
            solver.reset(state, world_mask, flags)

    def notify_model_changed(self, flags) -> None:
        """See Shadow."""
        for solver in (self._solver, self._solver_alone):
            solver.notify_model_changed(flags)


class MujocoCShadow(Shadow):
    """
    By MuJoCo's C code, for one world on the CPU.

    Blows on the robot need steps of `substep` s. Steps are twice as long while no obstacle touches
    it, and four times while none is as near as contacts are looked for. One in which something
    came near or touched, or in which other things struck each other, is taken again in smaller
    ones. The robot is stepped alone only where an obstacle touched it. `options` are those of
    SolverMuJoCo.
    """

    uses_contacts = False

    def __init__(self, model: newton.Model, robot_bodies, obstacle_bodies, substep: float,
                 **options):
        super().__init__(model)
        self._world = MujocoWorld(model, **options)
        self._alone = self._world.without_contacts_of(obstacle_bodies)
        self._substep = substep
        is_robot, is_obstacle = (np.isin(self._world.bodies, list(bodies))
                                 for bodies in (robot_bodies, obstacle_bodies))
        self._couples = np.logical_and.outer(is_robot, is_obstacle)
        self._couples |= self._couples.T
        self._near, self._rows, self._steady = True, 0, False
        self.substeps = 0
        """Steps that MuJoCo took in the last step."""
        self.touched = False
        """Whether robot and obstacles pushed each other in the last step."""

    def parts(self, state_in, control, contacts, static_contacts, dt) -> list[Part]:
        """See Shadow."""
        def push():
            self._world.push(state_in, control)
            self._alone.push(state_in, control)

        def pull():
            self._world.pull(self.together)
            self._alone.pull(self.alone)
        return [Part(push), Part(lambda: self._advance(dt), host=True), Part(pull)]

    def reset(self, state, world_mask=None, flags=None) -> None:
        """See Shadow."""
        self._world.forget()
        self._alone.forget()
        self._near = True

    def notify_model_changed(self, flags) -> None:
        """See Shadow."""
        if flags & newton.ModelFlags.SHAPE_PROPERTIES:
            self._world.follow_static_shapes()
            self._alone.follow_static_shapes()

    def _advance(self, dt: float) -> None:
        length = 1.0 if self.touched else 2.0 if self._near else 4.0
        self._step(dt, length * self._substep)
        if length > 1.0 and (self.touched or not self._steady):
            self._world.take_state(self._alone)
            self._step(dt, (1.0 if self._near else 0.5 * length) * self._substep)
        if self.touched:
            self._alone.step(dt, self.substeps)
        else:
            self._alone.take_state(self._world)

    def _step(self, dt: float, longest: float) -> None:
        """Advance by `dt` in steps of `longest` s at most."""
        data, before = self._world.mj_data, (self._near, self._rows)
        self.substeps = math.ceil(dt / longest - 1e-6)
        self._near = self.touched = False
        self._steady = True
        for _ in range(self.substeps):
            self._world.step(dt / self.substeps, 1)
            contacts = data.contact
            near, touched = _coupled(contacts.geom, contacts.efc_address, self._couples)
            self._near |= near
            self.touched |= touched
            # Where the number of rows changes, something has struck or let go of something.
            self._steady &= (near, data.nefc) == before
        self._rows = data.nefc


# The types are given so that the first step has not to wait for the compiler.
@njit('UniTuple(b1, 2)(i4[:, :], i4[:], b1[:, :])', cache=True)
def _coupled(geoms, addresses, couples):
    """Whether pairs in `couples` are near to each other, and whether any of them pushes."""
    near = touched = False
    for i in range(len(geoms)):
        if couples[geoms[i, 0], geoms[i, 1]]:
            near = True
            # Those that push have rows among MuJoCo's constraints.
            touched |= addresses[i] >= 0
    return near, touched
