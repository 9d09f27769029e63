# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Newton's analytic solvers, made to step the robot as its teacher does."""

import math

from newton.solvers import SolverBase, SolverFeatherstone
import warp as wp

from nerd_ros.scene.solvers.split_solver import with_arrays

# Steepness of the dry friction law of FrictionFeatherstone [s/rad or s/m].
_FRICTION_SLOPE = wp.constant(100.0)
_FULL_FRICTION = wp.constant(2.0 / math.pi)


class Substepped(SolverBase):
    """
    Another solver, with `substeps` smaller steps on the contacts found once per step.

    External wrenches and joint forces hold during the step.
    """

    def __init__(self, solver: SolverBase, substeps: int):
        super().__init__(solver.model)
        self.solver, self.substeps = solver, substeps
        self._states = [self.model.state() for _ in range(min(substeps - 1, 2))]

    def step(self, state_in, state_out, control, contacts, dt, *, observables=None) -> None:
        """Advance by `dt` s; see `newton.solvers.SolverBase.step`."""
        self.validate_observables(observables, contacts)
        source = state_in
        for i in range(self.substeps):
            target = state_out if i == self.substeps - 1 else self._states[i % 2]
            if source is not state_in:
                wp.copy(source.body_f, state_in.body_f)
            self.solver.step(source, target, control, contacts, dt / self.substeps)
            source = target

    def reset(self, state, world_mask=None, flags=None) -> None:
        """Reset the solver inside; see `newton.solvers.SolverBase.reset`."""
        self.solver.reset(state, world_mask, flags)

    def notify_model_changed(self, flags) -> None:
        """Tell the solver inside that properties of the model changed."""
        self.solver.notify_model_changed(flags)


class FrictionFeatherstone(SolverFeatherstone):
    """
    SolverFeatherstone with the dry friction of the joints, which it does not know.

    The friction of a joint is -joint_friction * 2/pi * atan(100 qd); it needs steps below 1 ms.
    """

    def __init__(self, model, **options):
        super().__init__(model, **options)
        self._joint_f = wp.zeros(model.joint_dof_count, dtype=float, device=model.device)

    def step(self, state_in, state_out, control, contacts, dt, *, observables=None) -> None:
        """Advance by `dt` s; see `newton.solvers.SolverBase.step`."""
        if control is None:
            control = self.model.control(clone_variables=False)
        wp.launch(_with_friction, len(self._joint_f),
                  [control.joint_f, state_in.joint_qd, self.model.joint_friction],
                  [self._joint_f], device=self.device)
        super().step(state_in, state_out, with_arrays(control, joint_f=self._joint_f), contacts,
                     dt, observables=observables)


@wp.kernel
def _with_friction(joint_f: wp.array[float], joint_qd: wp.array[float],
                   joint_friction: wp.array[float], total: wp.array[float]):
    i = wp.tid()
    friction = joint_friction[i] * _FULL_FRICTION * wp.atan(_FRICTION_SLOPE * joint_qd[i])
    total[i] = joint_f[i] - friction
