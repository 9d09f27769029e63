# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A solver's step as captured graphs, which launch its many small kernels in one call."""

from itertools import groupby

import warp as wp

from nerd_ros.scene.solvers.split_solver import Part, parts_of


class CapturedStep:
    """
    The step of `solver` from `state` to `new`, between the device work `begin` and `end`.

    All that is launched between two pieces of host work is one graph. Making it steps once
    without capture, so that kernels are compiled and solvers have allocated what they need;
    whatever `begin`, the solver and `end` wrote by that has to be restored by the caller.
    """

    def __init__(self, solver, state, new, control, contacts, dt: float, begin, end):
        parts = [Part(begin), *parts_of(solver, state, new, control, contacts, dt), Part(end)]
        for part in parts:
            part.run()
        self._phases = []
        for host, group in groupby(parts, key=lambda part: part.host):
            runs = [part.run for part in group]
            self._phases += runs if host else [_graph(runs, solver.device)]

    def __call__(self) -> None:
        """Step once."""
        for phase in self._phases:
            phase()


def _graph(functions, device):
    """Record what `functions` launch on `device`; returns a function that replays it."""
    with wp.ScopedCapture(device) as capture:
        for function in functions:
            function()
    return lambda: wp.capture_launch(capture.graph)
