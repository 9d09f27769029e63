# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A solver with host work in its step, opened so that device work around it can be captured."""

from collections.abc import Callable
import copy
from dataclasses import dataclass

from newton.solvers import SolverBase


@dataclass(frozen=True)
class Part:
    """
    A stretch of a step: kernel launches, or with `host` what is computed without Warp.

    Launches are on buffers that stay the same from step to step, so that they can be recorded in
    a captured graph.
    """

    run: Callable[[], None]
    host: bool = False


class SplitSolver(SolverBase):
    """A Newton solver whose step is a sequence of parts; `step` runs them one after the other."""

    uses_contacts = True
    """Whether the step reads the contacts it is given; else they may be None."""

    def parts(self, state_in, state_out, control, contacts, dt) -> list[Part]:
        """Return the parts of a step from `state_in` to `state_out`, in their order."""
        raise NotImplementedError

    def step(self, state_in, state_out, control, contacts, dt, *, observables=None) -> None:
        """
        Advance by `dt` s; see `newton.solvers.SolverBase.step`.

        `control=None` means the control values of the model; `state_out` may be `state_in`.
        """
        self.validate_observables(observables, contacts)
        if control is None:
            control = self.model.control(clone_variables=False)
        for part in self.parts(state_in, state_out, control, contacts, dt):
            part.run()


def parts_of(solver: SolverBase, state_in, state_out, control, contacts, dt) -> list[Part]:
    """Return the parts of the step of any Newton solver."""
    if isinstance(solver, SplitSolver):
        return solver.parts(state_in, state_out, control, contacts, dt)
    return [Part(lambda: solver.step(state_in, state_out, control, contacts, dt))]


def uses_contacts(solver: SolverBase) -> bool:
    """Whether a solver reads the contacts it is given."""
    return not isinstance(solver, SplitSolver) or solver.uses_contacts


def with_arrays(owner, **arrays):
    """Return a shallow copy of a state, contacts or control that holds `arrays` by name."""
    view = copy.copy(owner)
    for name, array in arrays.items():
        setattr(view, name, array)
    return view
