# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile ahead what the default scene needs, so that no start waits for it: python -m this."""

from time import monotonic

from nerd_ros.arguments import SOLVERS
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.viewer import ViewerProcess

ROBOT, WORLD = 'double_pendulum', 'obstacles'
# By then the view has compiled its kernels, or something is wrong [s].
VIEW_TIMEOUT = 300.0


def warm_up() -> None:
    """Build the scene with each solver, step it and open the view, telling the time it takes."""
    for solver in SOLVERS:
        begin = monotonic()
        try:
            Simulation(ROBOT, WORLD, solver).step(2)
        except ValueError as error:
            print(f'   solver {solver}: left out, {error}', flush=True)
            continue
        print(f'   solver {solver}: {monotonic() - begin:.0f} s', flush=True)
    begin = monotonic()
    view = ViewerProcess(Simulation(ROBOT, WORLD, 'mujoco'), announced=False)
    view.start()
    if view.wait(VIEW_TIMEOUT):
        print(f'   view: {monotonic() - begin:.0f} s', flush=True)
    view.stop()


if __name__ == '__main__':
    warm_up()
