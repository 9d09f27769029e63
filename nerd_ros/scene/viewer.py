# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The browser view: Newton's Viser viewer in a process of its own, on a copy of the state.

The simulation only copies poses into shared memory, which takes microseconds. The process builds
the same scene, draws at PICTURE_RATE and at low priority, and ends with its parent.
"""

from contextlib import redirect_stdout
import io
import logging
import multiprocessing
from multiprocessing.connection import wait
import os
import signal
from threading import Thread
from time import monotonic, sleep

from newton.viewer import ViewerViser
import numpy as np
import warp as wp

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World

HOST = '127.0.0.1'
PICTURE_RATE = 30.0  # [Hz]
NICENESS = 10
# What can be shown or hidden: attribute of the viewer, label.
SHOWN = {'show_visual': 'Links', 'show_collision': 'Contact shapes', 'show_joints': 'Joints',
         'show_com': 'Centres of mass', 'show_ground': 'Ground'}
# From the middle of the robot to the camera, in sizes of the robot.
CAMERA = np.array([1.3, -3.2, 1.0])

logger = logging.getLogger(__name__)


class ViewerProcess:
    """
    A view of world 0 of `simulation` on http://127.0.0.1:<port>; the next free port if taken.

    `start` returns at once; the link is printed, if `announced`, when the page can be opened. The
    view fails alone: the simulation goes on without it, after a warning. As with every process
    that is spawned, a script that starts it has to guard its entry by
    `if __name__ == '__main__'`.
    """

    def __init__(self, simulation, port: int = 8080, announced: bool = True):
        self._simulation = simulation
        self._port, self._announced = port, announced
        self._process = None
        context = multiprocessing.get_context('spawn')
        bodies = len(simulation.body_names)
        # Time, then poses. A picture may show poses of two steps; no lock, so that the
        # simulation never waits.
        memory = context.RawArray('f', 1 + 7 * bodies)
        self._stop, self._ready = context.Event(), context.Event()
        self._shared = np.frombuffer(memory, np.float32)
        self._poses = self._shared[1:].reshape(bodies, 7)
        self._context, self._memory = context, memory

    def start(self) -> None:
        """Start the process."""
        self.publish()
        self._process = self._context.Process(
            target=_serve, name='view', daemon=True,
            args=(self._simulation.spec, self._simulation.world, self._port, self._memory,
                  self._stop, self._ready, self._announced))
        # Ctrl-C reaches the whole process group: the view leaves it to its parent to end it.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            self._process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        # From here on, so that its long start does not disturb the simulation either.
        os.setpriority(os.PRIO_PROCESS, self._process.pid, NICENESS)
        Thread(target=self._watch, args=(self._process,), name='view', daemon=True).start()

    def publish(self) -> None:
        """Copy the state of the simulation for the next picture."""
        self._poses[:] = self._simulation.body_q[0]
        self._shared[0] = self._simulation.time

    def wait(self, timeout: float) -> bool:
        """Wait up to `timeout` s until the page can be opened; returns whether it can."""
        end = monotonic() + timeout
        while monotonic() < end and self._process.is_alive():
            if self._ready.wait(0.1):
                return True
        return self._ready.is_set()

    def stop(self) -> None:
        """End the process, within half a second."""
        process, self._process = self._process, None
        if process is None or not process.is_alive():
            return
        self._stop.set()
        process.join(0.3)
        if process.is_alive():
            process.kill()
            process.join(0.2)

    def _watch(self, process) -> None:
        """Wait for the end of the process, and tell it unless it is by `stop`."""
        wait([process.sentinel])
        if self._process is process:
            logger.warning('the view has ended; the simulation goes on without it')


class SceneView(ViewerViser):
    """Newton's view with a panel for a simulation that runs elsewhere."""

    def _setup_gui(self) -> None:
        """Replace the panel, whose pause and reset would act on nothing here."""
        with self.server.gui.add_folder('Simulation'):
            self.clock = self.server.gui.add_markdown('')
        with self.server.gui.add_folder('Show'):
            for attribute, label in SHOWN.items():
                box = self.server.gui.add_checkbox(label, getattr(self, attribute))
                box.on_update(
                    lambda event, name=attribute: setattr(self, name, event.target.value))


def _serve(spec: RobotSpec, world: World, port: int, memory, stop, ready,
           announced: bool) -> None:
    """Draw what is in the shared memory until told to stop or left alone."""
    parent = multiprocessing.parent_process()
    logging.getLogger('websockets').setLevel(logging.CRITICAL)
    # The parent has told what of the robot has no effect.
    logging.getLogger('nerd_ros.scene.robot.robot_warnings').setLevel(logging.ERROR)
    # The scene lies on the CPU, which is not Warp's own choice where there is a GPU.
    wp.set_device('cpu')
    scene = build_scene(spec, world)
    with redirect_stdout(io.StringIO()):  # a banner that `verbose` does not switch off
        view = SceneView(host=HOST, port=port, label=f'nerd_ros: {spec.name}', verbose=False)
    taken = '' if view.url.endswith(f':{port}') else f' (port {port} is taken)'
    view.picking_enabled = False
    view.set_model(scene.model)
    shared = np.frombuffer(memory, np.float32)
    poses = shared[1:].reshape(-1, 7)
    aim(view, poses[:scene.num_links, :3])
    state = scene.model.state()
    while not stop.is_set() and parent.is_alive():
        begin = monotonic()
        state.body_q.assign(poses)
        view.begin_frame(float(shared[0]))
        view.log_state(state)
        view.end_frame()
        clock = f'{shared[0]:.1f} s'
        if view.clock.content != clock:
            view.clock.content = clock
        if not ready.is_set():
            ready.set()
            if announced:
                print(f'The scene can be seen at {view.url}{taken}', flush=True)
        sleep(max(0.0, begin + 1.0 / PICTURE_RATE - monotonic()))
    # Nothing to be kept; the orderly end of Python and server takes half a second.
    os._exit(0)


def aim(view: ViewerViser, links: np.ndarray) -> None:
    """Place the camera so that the robot, with links (n, 3) at its start, fills the picture."""
    middle = (links.min(0) + links.max(0)) / 2.0
    size = max(0.5, float(np.ptp(links, axis=0).max()))
    position = middle + size * CAMERA
    direction = middle - position
    yaw = np.degrees(np.arctan2(direction[1], direction[0]))
    pitch = np.degrees(np.arcsin(direction[2] / np.linalg.norm(direction)))
    view.set_camera(position, pitch, yaw)
