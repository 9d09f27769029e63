# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Scene and view in real time on machines that have no ROS 2; nothing is published."""

import gc
from threading import Event

from nerd_ros.nodes.loop import SimulationLoop
from nerd_ros.nodes.start import start_simulation


def simulate(robot: str, world: str, solver: str, model: str, gui: bool) -> int:
    """
    Simulate until Ctrl-C; returns the exit code.

    The arguments are those of the node. Raises ValueError, in one sentence, for a simulation that
    cannot be.
    """
    from nerd_ros.scene.viewer import ViewerProcess
    print('There is no ROS 2 here and no wheels of it for this machine: the scene is simulated '
          'and shown, nothing is published. README.md says where there are.', flush=True)
    simulation, *_ = start_simulation(robot, world, solver, model, '', print)
    view = ViewerProcess(simulation) if gui else None
    finished = Event()

    def step():
        simulation.step()
        if view is not None:
            view.publish()

    loop = SimulationLoop(step, simulation.dt, on_failure=finished.set)
    if view is not None:
        view.start()
    # No step waits for a collection, and Python's end does not take the scene apart, for seconds.
    gc.freeze()
    loop.start()
    try:
        finished.wait()
        print(f'the simulation stopped: {loop.failure!r}')
    except KeyboardInterrupt:
        pass
    loop.stop()
    if view is not None:
        view.stop()
    return int(loop.failure is not None)
