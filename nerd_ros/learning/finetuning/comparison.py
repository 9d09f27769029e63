# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How far several ways to simulate a robot are from recordings that none of them has seen."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.bags.recording import BagRecording
from nerd_ros.learning.evaluation.accuracy import position_errors, Quantity, quantities
from nerd_ros.learning.evaluation.free_running import free_run
from nerd_ros.learning.finetuning.rollouts import Rollouts
from nerd_ros.learning.finetuning.windows import HISTORY, Motions, Windows
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.world import World

HORIZONS = (0.05, 0.2, 0.5, 1.0)
"""Times after the start of a window at which motion is compared [s]."""
AFTER, BEFORE, ANALYTIC, HOLD = 'fine-tuned', 'before', 'analytic', 'hold'
"""The new model, the one that it started from, the analytic solver with the robot as described,
and a robot that stays where it was."""
EVERY = 0.1
"""From the start of one window to that of the next [s]."""


@dataclass(frozen=True)
class Comparison:
    """
    Simulated against recorded motion, with one kind of effort as input.

    `bags` are N recordings, `windows` W pieces of them, `motion[solver] (W, T + 1, nq)` what each
    solver makes of their starts.
    """

    layout: RobotLayout
    effort: str
    bags: tuple[str, ...]
    windows: Windows
    motion: dict[str, np.ndarray]

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What the last axis of errors means, K of them."""
        return quantities(self.layout)

    def errors(self, solver: str) -> np.ndarray:
        """
        Distances (W, T + 1, K) [rad, m]; NaN beyond the end of a recording.

        Infinite where a solver has come to what is no number.
        """
        true = self.windows.joint_q[:, HISTORY:].numpy()
        errors = position_errors(self.layout, self.motion[solver], true)
        known = np.arange(errors.shape[1]) <= self.windows.length.numpy()[:, None]
        errors = np.where(np.isnan(errors), np.inf, errors)
        return np.where(known[..., None], errors, np.nan)

    def rms(self, solver: str) -> np.ndarray:
        """RMS over the windows of each recording, (N, horizons, K); NaN where none is as long."""
        rows = [round(horizon / self.layout.dt) for horizon in HORIZONS]
        squares = np.square(self.errors(solver)[:, rows])
        source = self.windows.source.numpy()
        return np.sqrt(np.stack([mean_of_known(squares[source == bag], 0)
                                 for bag in range(len(self.bags))]))

    def mean_rms(self, solver: str) -> np.ndarray:
        """Mean of `rms` over the recordings that are as long (horizons, K); NaN where none is."""
        return mean_of_known(self.rms(solver), 0)

    def error(self, solver: str) -> float:
        """Mean of `rms` over recordings, horizons and quantities [rad, m]."""
        return float(mean_of_known(self.rms(solver)))

    def ratio(self, solver: str, to: str) -> float:
        """Mean over recordings, horizons and quantities of the ratio of two `rms`."""
        reference = self.rms(to)
        return float(mean_of_known(
            self.rms(solver) / np.where(reference > 0, reference, np.nan)))


def mean_of_known(values: np.ndarray, axis=None) -> np.ndarray:
    """Mean of what is not NaN, as numpy.nanmean; NaN where nothing is, without a warning."""
    count = (~np.isnan(values)).sum(axis)
    return np.where(count, np.nansum(values, axis) / np.maximum(count, 1), np.nan)


def compare(spec: RobotSpec, world: World, recordings: Sequence[BagRecording], effort: str,
            models: dict[str, NerdModel], rollouts: Rollouts) -> Comparison:
    """
    Run `models` and the references through all windows of `recordings`, which start every 0.1 s.

    The learned models are shown the measured history before the start. Raises BagError where a
    recording has no such effort.
    """
    motions, dt = Motions(recordings, effort), spec.dt
    steps = min(round(HORIZONS[-1] / dt), int(motions.room.max()))
    windows = motions.cut(steps, max(1, round(EVERY / dt)), min(round(HORIZONS[0] / dt), steps))
    with torch.no_grad():
        motion = {name: rollouts.run(model, windows, steps).numpy()
                  for name, model in models.items()}
    start = windows.joint_q[:, HISTORY].numpy()
    analytic = Simulation(spec, world, 'mujoco', num_worlds=len(start))
    motion[ANALYTIC] = free_run(analytic, start, windows.joint_qd[:, HISTORY].numpy(),
                                windows.effort[:, HISTORY:].numpy()).joint_q
    motion[HOLD] = np.repeat(start[:, None], steps + 1, axis=1)
    motion = {name: _padded(values, round(HORIZONS[-1] / dt)) for name, values in motion.items()}
    padded = Windows(torch.from_numpy(_padded(windows.joint_q.numpy(),
                                              HISTORY + round(HORIZONS[-1] / dt))), *windows[1:])
    return Comparison(rollouts.layout, effort, motions.names, padded, motion)


def _padded(motion: np.ndarray, steps: int) -> np.ndarray:
    """Repeat the last state until there are `steps`."""
    missing = steps + 1 - motion.shape[1]
    return np.concatenate([motion, np.repeat(motion[:, -1:], missing, axis=1)], axis=1)
