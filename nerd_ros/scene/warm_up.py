# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Compile ahead what the default scene needs, so that no start waits for it: python -m this."""

from time import monotonic

from nerd_ros.resources import ResourceError
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.viewer import ViewerProcess

ROBOT, WORLD = 'double_pendulum', 'obstacles'
SOLVERS = ('mujoco', 'featherstone', 'neural')
# By then the view has compiled its kernels, or something is wrong [s].
VIEW_TIMEOUT = 300.0


def warm_up() -> None:
    """Build the scene with each solver, step it and open the view, telling the time it takes."""
    for solver in SOLVERS:
        begin = monotonic()
        try:
            simulation = Simulation(ROBOT, WORLD, solver)
        except ResourceError as error:
            print(f'   solver {solver}: left out, {error}', flush=True)
            continue
        simulation.step(2)
        print(f'   solver {solver}: {monotonic() - begin:.0f} s', flush=True)
    begin = monotonic()
    view = ViewerProcess(simulation, announced=False)
    view.start()
    if view.wait(VIEW_TIMEOUT):
        print(f'   view: {monotonic() - begin:.0f} s', flush=True)
    view.stop()


if __name__ == '__main__':
    warm_up()
