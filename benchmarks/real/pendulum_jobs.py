# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning on recordings of the double pendulum, measured on others."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from real.identified_pendulum import simulate
from real.pendulum_bags import kind_of, pendulum_bags, SLOW_KINDS, with_recorded_velocity
from real.recordings import folds, split_rows
from real.teacher_motion import COUNT, TeacherMotion
import torch
from torch import Tensor

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.bags.recording import BagRecording, read_bag
from nerd_ros.learning.finetuning.measured_lead import lead
from nerd_ros.learning.finetuning.rollouts import Rollouts
from nerd_ros.learning.finetuning.split import Split
from nerd_ros.learning.finetuning.training import BATCH, Recipe, train
from nerd_ros.learning.finetuning.windows import HISTORY, Motions
from nerd_ros.learning.training.validation import Validation
from nerd_ros.resources import resource_path
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.teacher import TeacherRollouts

HORIZONS = (0.05, 0.2, 0.5, 1.0)
EVERY = 0.1
"""From the start of one window to that of the next [s]."""
VALIDATION = 0.15
"""Share of the recordings to learn from that select the model."""


class PendulumJobs:
    """
    Trainings on the recordings in folder `data`.

    A result says for every solver the RMS (bags, horizons, joints) [rad] over the windows of each
    test bag. `identified` starts from the velocity that was recorded and takes efforts as they
    were recorded, as the protocol of the yardstick has it; `identified, same start` starts and is
    driven like the learned models.
    """

    def __init__(self, data: Path, num_folds: int, time_limit: float):
        self._data, self._num_folds, self._time_limit = data, num_folds, time_limit
        self._spec = RobotSpec.load('double_pendulum')

    @cached_property
    def _rollouts(self) -> Rollouts:
        return Rollouts(self._spec, load_world('empty'), BATCH)

    @cached_property
    def _base(self):
        return load_checkpoint(resource_path('models', self._spec.name), self._rollouts.layout)

    @cached_property
    def _teacher(self) -> TeacherRollouts:
        return TeacherRollouts(self._spec, COUNT)

    @cached_property
    def _recordings(self) -> list[BagRecording]:
        return self.read(pendulum_bags(self._data))

    @cached_property
    def _slow(self) -> list[BagRecording]:
        return self.read(pendulum_bags(self._data, SLOW_KINDS))

    def read(self, bags: Sequence[Path]) -> list[BagRecording]:
        """Read bags of the pendulum."""
        return [read_bag(bag, self._rollouts.layout) for bag in bags]

    def run(self, fold: int, seed: int, effort: str, minutes: float | None = None,
            degraded: Sequence[BagRecording] | None = None, recipe: Recipe = Recipe(),
            teacher_weight: float = 0.0) -> dict:
        """
        Train on the recordings of all folds but one and return the errors on that one.

        The folds, the same for every seed, are dealt out by recording. With `minutes` only so
        much is learned from; `degraded` takes the place of the recordings to learn from. The
        motion of the teacher is learned as well, with `teacher_weight`.
        """
        kinds = [kind_of(recording.name) for recording in self._recordings]
        rest, test = split_rows(folds(kinds, self._num_folds, 0), fold)
        rest = np.random.default_rng(seed).permutation(rest)
        source = self._recordings if degraded is None else degraded
        count = max(1, round(VALIDATION * len(rest)))
        validation, training = ([source[k] for k in sorted(part)]
                                for part in np.split(rest, [count]))
        if minutes is not None:
            training = _shortened(training, 60.0 * minutes)
        tests = [self._recordings[k] for k in test]
        parts, measured_lead = lead(Split(tuple(training), tuple(validation),
                                          (*tests, *self._slow), ''), self._base, self._rollouts)
        model = train(self._base, *(Motions(part, effort) for part in parts[:2]), self._rollouts,
                      time_limit=self._time_limit, seed=seed, report=lambda check: None,
                      recipe=recipe, penalty=self._penalty(teacher_weight, seed))
        models = {'fine-tuned': model, 'before': self._base}
        return {
            'bags': [recording.name for recording in tests],
            'seconds': sum(recording.duration for recording in training),
            'measured_lead': measured_lead,
            'teacher_error': Validation(self._spec, self._teacher, model).check(model).score,
            'rms': self._errors(tests, parts.test[:len(tests)], effort, models),
            'slow_bags': [recording.name for recording in self._slow],
            'slow_rms': self._errors(self._slow, parts.test[len(tests):], effort, models)}

    def _penalty(self, weight: float, seed: int) -> Callable[[NerdModel], Tensor] | None:
        if not weight:
            return None
        motion = TeacherMotion(self._spec, self._teacher, self._base, seed)
        return lambda model: weight * motion(model)

    def _errors(self, as_read: Sequence[BagRecording], moved: Sequence[BagRecording], effort: str,
                models: dict) -> dict[str, list]:
        dt = self._spec.dt
        rows = [round(horizon / dt) for horizon in HORIZONS]
        layout = self._rollouts.layout
        raw = [with_recorded_velocity(recording, layout) for recording in as_read]
        windows, recorded = (Motions(some, effort).cut(rows[-1], round(EVERY / dt), rows[0])
                             for some in (moved, raw))
        true = windows.joint_q[:, HISTORY:].numpy()
        with torch.no_grad():
            motion = {name: self._rollouts.run(model, windows, rows[-1]).numpy()
                      for name, model in models.items()}
        for name, start in (('identified', recorded), ('identified, same start', windows)):
            motion[name] = simulate(*(values.numpy() for values in (
                start.joint_q[:, HISTORY], start.joint_qd[:, HISTORY],
                start.effort[:, HISTORY:])), dt)
        motion['hold'] = np.repeat(true[:, :1], true.shape[1], axis=1)
        source, length = windows.source.numpy(), windows.length.numpy()
        return {name: [[_rms(simulated, true, row, (source == bag) & (length >= row))
                        for row in rows] for bag in range(len(moved))]
                for name, simulated in motion.items()}


def _rms(simulated: np.ndarray, true: np.ndarray, row: int, chosen: np.ndarray) -> list[float]:
    error = np.square(simulated[chosen, row] - true[chosen, row]).mean(0)
    return np.sqrt(error).round(6).tolist()


def _shortened(recordings: Sequence[BagRecording], seconds: float) -> list[BagRecording]:
    """Return the same share of each recording, from its start, `seconds` in all."""
    share = min(1.0, seconds / sum(recording.duration for recording in recordings))
    result = []
    for recording in recordings:
        end = recording.segments[0].time[0] + share * recording.duration
        segments = [replace(segment, **{
            name: values[:int((segment.time <= end).sum())]
            for name, values in vars(segment).items() if values is not None})
            for segment in recording.segments if segment.time[0] < end]
        result.append(replace(recording, segments=tuple(segments)))
    return result
