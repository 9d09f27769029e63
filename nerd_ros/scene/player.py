# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Recorded motions of one robot, side by side in the browser."""

from contextlib import redirect_stdout
from dataclasses import dataclass
import io
import logging
from threading import Event
from time import monotonic, sleep

import newton
import numpy as np
import warp as wp

from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.teacher import GRAVITY
from nerd_ros.scene.viewer import aim, HOST, PICTURE_RATE, SceneView
from nerd_ros.scene.world import ground_plane, World

# What stays on the screen after the end of a motion [s].
PAUSE = 1.0
SPEEDS = (0.1, 2.0)   # of the slider, in shares of real time


@dataclass(frozen=True)
class Playback:
    """
    Motions that begin together: `joint_q (R, T+1, nq)` of R robots above one `ground (4,)`.

    Coordinates and planes as in `TeacherRollouts`; `title` says what it is.
    """

    title: str
    joint_q: np.ndarray
    ground: np.ndarray


class Player:
    """
    Plays motions in the browser, on http://127.0.0.1:<port>, the next free port if taken.

    `names` (R,) stand above the robots, which are next to each other along y. `url` is the
    address of the page, which can be opened from then on. The page pauses, goes on to the next
    motion and slows down.
    """

    def __init__(self, spec: RobotSpec, names: tuple[str, ...], playbacks: list[Playback],
                 port: int = 8080):
        self._spec, self._playbacks = spec, playbacks
        logging.getLogger('websockets').setLevel(logging.CRITICAL)
        wp.set_device('cpu')  # where the scene is
        world = World('playback', GRAVITY, (ground_plane(friction=spec.contact.friction),))
        self._scene = build_scene(spec, world, len(names))
        self._state = self._scene.model.state()
        self._show(playbacks[0], 0)
        self._stop = Event()
        with redirect_stdout(io.StringIO()):  # a banner that `verbose` does not switch off
            self._view = _PlayerView(host=HOST, port=port, label=f'nerd_ros: {spec.name}',
                                     verbose=False)
        self.url = self._view.url
        self._view.picking_enabled = False
        self._view.set_model(self._scene.model)
        self._arrange(names)

    def play(self) -> None:
        """Play all motions again and again, until `stop` or Ctrl-C."""
        index = 0
        try:
            while not self._stop.is_set():
                self._play_once(index)
                index = (index + 1) % len(self._playbacks)
        except KeyboardInterrupt:
            pass
        finally:
            self._view.close()

    def stop(self) -> None:
        """Let `play` return, from another thread."""
        self._stop.set()

    def _play_once(self, index: int) -> None:
        playback, view = self._playbacks[index], self._view
        view.next.clear()
        last = playback.joint_q.shape[1] - 1
        step, shown_for = 0.0, 0.0   # a step, and how long its end has been on the screen [s]
        while shown_for < PAUSE and not view.next.is_set() and not self._stop.is_set():
            begin = monotonic()
            at = min(last, int(step))
            self._show(playback, at)
            view.begin_frame(at * self._spec.dt)
            view.log_state(self._state)
            view.end_frame()
            view.tell(f'**{index + 1} of {len(self._playbacks)}**: {playback.title}  \n'
                      f'{at * self._spec.dt:.2f} s of {last * self._spec.dt:.2f} s')
            sleep(max(0.0, begin + 1.0 / PICTURE_RATE - monotonic()))
            if not view.paused.value:
                step += (monotonic() - begin) * view.speed.value / self._spec.dt
                shown_for += (monotonic() - begin) * (at == last)

    def _show(self, playback: Playback, step: int) -> None:
        """Put all robots where they are at one step."""
        count = self._scene.num_worlds
        self._scene.set_ground(np.tile(playback.ground, (count, 1)))
        self._state.joint_q.assign(
            np.ascontiguousarray(playback.joint_q[:, step], np.float32).reshape(-1))
        newton.eval_fk(self._scene.model, self._state.joint_q, self._state.joint_qd, self._state)

    def _arrange(self, names: tuple[str, ...]) -> None:
        """Move the robots apart, name them and aim the camera at them."""
        links = self._state.body_q.numpy().reshape(len(names), -1, 7)[..., :3]
        reach = max(0.3, float(np.ptp(links[0], axis=0).max()))
        self._view.set_world_offsets((0.0, 2.0 * reach, 0.0))
        offsets = self._view.world_offsets.numpy()
        placed = links + offsets[:, None]
        for name, points in zip(names, placed):
            x, y, _ = (points.min(0) + points.max(0)) / 2.0
            self._view.server.scene.add_label(
                f'/names/{name}', name, position=(x, y, points[:, 2].max() + reach))
        aim(self._view, placed.reshape(-1, 3))


class _PlayerView(SceneView):
    """The view with a panel to pause, slow down and go on."""

    def _setup_gui(self) -> None:
        super()._setup_gui()
        self.next = Event()
        gui = self.server.gui
        with gui.add_folder('Playback'):
            self.paused = gui.add_checkbox('Pause', False)
            self.speed = gui.add_slider('Speed', min=SPEEDS[0], max=SPEEDS[1], step=0.1,
                                        initial_value=1.0)
            gui.add_button('Next').on_click(lambda event: self.next.set())

    def tell(self, text: str) -> None:
        """Say what is played."""
        if self.clock.content != text:
            self.clock.content = text
