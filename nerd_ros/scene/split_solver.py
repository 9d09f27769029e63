# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A solver with host work in its step, opened so that device work around it can be captured."""

import copy

from newton.solvers import SolverBase


class SplitSolver(SolverBase):
    """
    A Newton solver whose step is `prepare`, `predict` and `finish`.

    `prepare` and `finish` only launch kernels on buffers of this solver and of the states given,
    so each can be recorded in a captured graph; `predict` runs on the host in between. `step` is
    the three in sequence, as any Newton loop expects it.
    """

    def prepare(self, state_in, control, contacts, dt) -> None:
        """Read `state_in`, `control` and `contacts` into buffers of the solver (device)."""
        raise NotImplementedError

    def predict(self) -> None:
        """Compute what the device cannot (host)."""
        raise NotImplementedError

    def finish(self, state_in, state_out, dt) -> None:
        """Write the next state into `state_out` (device)."""
        raise NotImplementedError

    def step(self, state_in, state_out, control, contacts, dt, *, observables=None) -> None:
        """
        Advance by `dt` s; see `newton.solvers.SolverBase.step`.

        `control=None` means the control values of the model; `state_out` may be `state_in`.
        """
        self.validate_observables(observables, contacts)
        if control is None:
            control = self.model.control(clone_variables=False)
        self.prepare(state_in, control, contacts, dt)
        self.predict()
        self.finish(state_in, state_out, dt)


def with_arrays(owner, **arrays):
    """Return a shallow copy of a state, contacts or control that holds `arrays` by name."""
    view = copy.copy(owner)
    for name, array in arrays.items():
        setattr(view, name, array)
    return view
