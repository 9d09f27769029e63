# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A solver's step as captured graphs, which launch its many small kernels in one call."""

import warp as wp

from nerd_ros.scene.split_solver import SplitSolver


class CapturedStep:
    """
    The step of `solver` from `state` to `new`, between the device work `begin` and `end`.

    One graph, or for a SplitSolver two with its host work between them. Making it steps once
    without capture, so that kernels are compiled and solvers have allocated what they need;
    whatever `begin`, the solver and `end` wrote by that has to be restored by the caller.
    """

    def __init__(self, solver, state, new, control, contacts, dt: float, begin, end):
        if isinstance(solver, SplitSolver):
            def first():
                begin()
                solver.prepare(state, control, contacts, dt)

            def last():
                solver.finish(state, new, dt)
                end()
            first()
            solver.predict()
            last()
            self._phases = (_graph(first, solver.device), solver.predict,
                            _graph(last, solver.device))
        else:
            def whole():
                begin()
                solver.step(state, new, control, contacts, dt)
                end()
            whole()
            self._phases = (_graph(whole, solver.device),)

    def __call__(self) -> None:
        """Step once."""
        for phase in self._phases:
            phase()


def _graph(function, device):
    """Record what `function` launches on `device`; returns a function that replays it."""
    with wp.ScopedCapture(device) as capture:
        function()
    return lambda: wp.capture_launch(capture.graph)
