# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
What moving obstacles do to a robot and it to them, by an analytic solver.

The robot takes part as a shadow of its own: the scene is stepped as a whole, and once more with
the robot alone among what stands still. Of the first the obstacles are kept; the difference of the
two in the robot is what the obstacles made of it.
"""

from abc import ABC, abstractmethod

import newton
from newton.solvers import SolverBase

from nerd_ros.scene.solver_mujoco_c import SolverMujocoC
from nerd_ros.scene.split_solver import Part


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

    `solver` knows the robot's bodies; the robot is stepped alone only where an obstacle touched
    it.
    """

    uses_contacts = False

    def __init__(self, solver: SolverMujocoC, obstacle_bodies):
        super().__init__(solver.model)
        self._solver = solver
        self._alone = solver.world.without_contacts_of(obstacle_bodies)

    def parts(self, state_in, control, contacts, static_contacts, dt) -> list[Part]:
        """See Shadow."""
        def push():
            self._solver.world.push(state_in, control)
            self._alone.push(state_in, control)

        def pull():
            self._solver.world.pull(self.together)
            self._alone.pull(self.alone)
        return [Part(push), Part(lambda: self._advance(dt), host=True), Part(pull)]

    def reset(self, state, world_mask=None, flags=None) -> None:
        """See Shadow."""
        self._solver.reset(state, world_mask, flags)
        self._alone.forget()

    def notify_model_changed(self, flags) -> None:
        """See Shadow."""
        self._solver.notify_model_changed(flags)
        if flags & newton.ModelFlags.SHAPE_PROPERTIES:
            self._alone.follow_static_shapes()

    def _advance(self, dt: float) -> None:
        self._solver.advance(dt)
        if self._solver.touched:
            self._alone.step(dt, self._solver.taken)
        else:
            self._alone.take_state(self._solver.world)
