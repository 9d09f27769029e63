# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
How well the simulation follows a recording of the real robot.

From the measured state at every 0.1 s the recorded efforts are applied through the simulation,
and what it does is compared with what the robot did. A learned model knows the measured steps
before, as it does in a simulation that runs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.residual import STEPS
from nerd_ros.learning.bags import bag_report as report
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import BagRecording, read_bag
from nerd_ros.learning.bags.recording_summary import recording_summary
from nerd_ros.learning.evaluation.accuracy import position_errors
from nerd_ros.learning.evaluation.free_running import free_run, History
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.robot.urdf import read_urdf
from nerd_ros.scene.robot.urdf_joints import base_link
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.simulation import Simulation

HORIZONS = (0.05, 0.2, 0.5, 1.0)
"""Times after the start of a window at which motion is compared [s]."""
HOLD = 'hold last state'
"""Name of the comparison that never moves from the first position of a window."""
_EVERY = 0.1   # from the start of one window to that of the next [s]
_HISTORY = STEPS - 1   # steps before a window that a model is shown


@dataclass(frozen=True)
class Windows:
    """
    Pieces of recordings, W of them, T steps long.

    `joint_q (W, T+1, nq)`, `joint_qd (W, T+1, nqd)` as measured and `effort (W, T, num_dofs)`.
    Recorded are the first `length (W,)` steps, what follows repeats the last value. `source (W,)`
    is the number of the recording, `start (W,)` the time in it [s]. `history` is the motion
    before, as far as the segment holds it.
    """

    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort: np.ndarray
    length: np.ndarray
    source: np.ndarray
    start: np.ndarray
    history: History


@dataclass(frozen=True)
class BagEvaluation:
    """
    Simulated against recorded motion.

    `motion[solver] (W, T+1, nq)` holds the simulated positions of the windows and
    `stopped[solver]` in how many of them the guard had to stop the robot.
    """

    layout: RobotLayout
    effort: str
    recordings: tuple[BagRecording, ...]
    windows: Windows
    motion: dict[str, np.ndarray]
    stopped: dict[str, int]

    def rms(self, solver: str) -> np.ndarray:
        """
        RMS over the windows of the error after each step, (T+1, K); NaN if none.

        The K errors [m, rad] are those of `learning.evaluation.accuracy.quantities`: position and
        rotation of a floating base, and joints.
        """
        error = position_errors(self.layout, self.motion[solver], self.windows.joint_q)
        recorded = np.arange(error.shape[1]) <= self.windows.length[:, None]
        count = np.maximum(recorded.sum(0), 1)[:, None]
        rms = np.sqrt((np.square(error) * recorded[..., None]).sum(0) / count)
        return np.where(recorded.any(0)[:, None], rms, np.nan)

    def num_windows(self, horizon: float) -> int:
        """Return how many windows are recorded as far as `horizon` [s]."""
        return int((self.windows.length >= round(horizon / self.layout.dt)).sum())


def evaluate_bag(robot: str | RobotSpec, bags: str | Path | Sequence[str | Path],
                 model: str | Path | None = None, *, effort: str = 'commanded',
                 topics: Topics = Topics(), world: str = 'empty', output: str | Path | None = None,
                 max_windows: int = 1000, solvers: Sequence[str] = ('neural', 'mujoco'),
                 console: Console | None = None) -> BagEvaluation:
    """
    Print a table of simulated against recorded motion.

    Args:
        robot: name or path of the robot.
        bags: one or more recordings of it, see `bags.read_bag`.
        model: folder of the learned model; by default the one that ships for the robot.
        effort: 'commanded' or 'measured' effort is applied.
        topics: topics to read instead of those that are found.
        world: where the robot stands.
        output: folder for a picture of the motion, `<first bag>.png`; None draws nothing.
        max_windows: more windows than this are thinned out evenly.
        solvers: those of `Simulation` to compare with the recording.
        console: where to print.

    Raises BagError, or the ValueError of the robot, world or model that cannot be used.
    """
    console = console or Console()
    spec = robot if isinstance(robot, RobotSpec) else RobotSpec.load(robot)
    paths = [bags] if isinstance(bags, (str, Path)) else list(bags)
    layout = build_scene(spec, load_world(world)).layout
    root = base_link(read_urdf(spec)) if layout.floating else ''
    recordings = tuple(read_bag(path, layout, topics, root) for path in paths)
    for recording in recordings:
        console.print(recording_summary(recording), soft_wrap=True)
    windows = cut_windows(recordings, effort, max_windows)
    motion, stopped = {}, {}
    for solver in solvers:
        with console.status(f'{len(windows.length)} windows with {solver}'):
            simulation = Simulation(spec, world, solver, model if solver == 'neural' else None,
                                    num_worlds=len(windows.length))
            run = free_run(simulation, windows.joint_q[:, 0], windows.joint_qd[:, 0],
                           windows.effort,
                           history=windows.history if solver == 'neural' else None)
        motion[solver], stopped[solver] = run.joint_q, int(run.diverged.sum())
    motion[HOLD] = np.repeat(windows.joint_q[:, :1], windows.joint_q.shape[1], axis=1)
    stopped[HOLD] = 0
    result = BagEvaluation(layout, effort, recordings, windows, motion, stopped)
    console.print(report.bag_table(result, HORIZONS))
    if output is not None:
        more = f'_and_{len(recordings) - 1}_more' if len(recordings) > 1 else ''
        picture = Path(output) / f'{recordings[0].name}{more}.png'
        report.plot_bag(result, HORIZONS, picture)
        console.print(f'drawn in {picture}', markup=False, soft_wrap=True)
    return result


def cut_windows(recordings: Sequence[BagRecording], effort: str, max_windows: int) -> Windows:
    """
    Return pieces as long as the longest horizon that start every 0.1 s, within segments.

    A piece that its segment ends early counts as far as it goes, if that is the shortest horizon.
    Raises BagError where a recording has no such effort or no piece is long enough.
    """
    if effort not in ('commanded', 'measured'):
        raise BagError(f"effort {effort!r} is unknown; choose 'commanded' or 'measured'")
    dt = recordings[0].dt
    longest, shortest = (round(h / dt) for h in (max(HORIZONS), min(HORIZONS)))
    pieces, histories = [], []
    for source, recording in enumerate(recordings):
        for segment in recording.segments:
            efforts = (segment.effort_command if effort == 'commanded'
                       else segment.effort_measured)
            if efforts is None:
                other = 'measured' if effort == 'commanded' else 'commanded'
                raise BagError(f'{recording.path}: no {effort} effort was recorded; choose '
                               f'{other} instead')
            last = len(segment.time) - 1
            for first in range(0, last - shortest + 1, max(1, round(_EVERY / dt))):
                rows = np.minimum(np.arange(first, first + longest + 1), last)
                pieces.append((segment.joint_q[rows], segment.joint_qd[rows],
                               efforts[rows[:-1]], min(longest, last - first), source,
                               segment.time[first]))
                rows = np.maximum(np.arange(first - _HISTORY, first), 0)
                histories.append((segment.joint_q[rows], segment.joint_qd[rows], efforts[rows],
                                  min(_HISTORY, first)))
    if not pieces:
        names = ', '.join(recording.path for recording in recordings)
        raise BagError(f'{names}: no segment is as long as {min(HORIZONS)} s')
    if len(pieces) > max_windows:
        chosen = np.linspace(0, len(pieces) - 1, max_windows).round().astype(int)
        pieces, histories = ([items[k] for k in chosen] for items in (pieces, histories))
    return Windows(*(np.array(column) for column in zip(*pieces)),
                   History(*(np.array(column) for column in zip(*histories))))
