# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fine-tuning on tosses of the cube, measured on others, beside a tuned analytic solver."""

from functools import cached_property
from pathlib import Path
from time import monotonic

import numpy as np
from real.cube_tosses import read_tosses, recordings, toss_errors, Tosses
from real.recordings import folds, split_rows
from real.tuned_cube import Contact, CubeSimulation, tune
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.finetuning.rollouts import Rollouts
from nerd_ros.learning.finetuning.training import BATCH, train
from nerd_ros.learning.finetuning.windows import Motions
from nerd_ros.resources import resource_path
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.sdf import load_world

VALIDATION = 0.1
"""Share of the tosses to learn from that select the model."""


class CubeJobs:
    """
    Trainings on the tosses in folder `data`.

    A result says for every solver the errors (N, 2) of the test tosses: mean distance of position
    [m] and rotation [rad] from the first sample to the last.
    """

    def __init__(self, data: Path, num_folds: int, time_limit: float):
        self._data, self._num_folds, self._time_limit = data, num_folds, time_limit
        self._spec = RobotSpec.load('cube')

    @cached_property
    def _tosses(self) -> Tosses:
        return read_tosses(self._data)

    @cached_property
    def _rollouts(self) -> Rollouts:
        return Rollouts(self._spec, load_world('empty'), BATCH)

    @cached_property
    def _base(self) -> NerdModel:
        return load_checkpoint(resource_path('models', self._spec.name), self._rollouts.layout)

    def learned(self, fold: int, seed: int) -> dict:
        """Train on all folds but one; returns the errors on that one, and the time it took."""
        rest, test = self._split(fold)
        rest = np.random.default_rng(seed).permutation(rest)
        count = max(1, round(VALIDATION * len(rest)))
        validation, training = (
            Motions(recordings(self._tosses.take(np.sort(part))), 'commanded')
            for part in np.split(rest, [count]))
        begin = monotonic()
        model = train(self._base, training, validation, self._rollouts,
                      time_limit=self._time_limit, seed=seed, report=lambda check: None)
        seconds, tosses = monotonic() - begin, self._tosses.take(test)
        return {'tosses': list(tosses.names), 'training_seconds': seconds, 'errors': {
            name: toss_errors(self._run(some, tosses), tosses).round(6).tolist()
            for name, some in (('fine-tuned', model), ('before', self._base))}}

    def analytic(self, fold: int) -> dict:
        """Tune the analytic solver on all folds but one; returns the errors on that one."""
        rest, test = self._split(fold)
        tosses, simulation = self._tosses.take(test), CubeSimulation()
        tuned = tune(self._tosses.take(rest), fold)
        return {'tosses': list(tosses.names), 'contact': tuned._asdict(), 'errors': {
            name: toss_errors(simulation.run(contact, tosses), tosses).round(6).tolist()
            for name, contact in (('tuned', tuned), ('untuned', Contact()))}}

    def _split(self, fold: int) -> tuple[np.ndarray, np.ndarray]:
        kinds = ['toss'] * len(self._tosses.names)
        return split_rows(folds(kinds, self._num_folds, 0), fold)

    @torch.no_grad()
    def _run(self, model: NerdModel, tosses: Tosses) -> np.ndarray:
        motions = Motions(recordings(tosses), 'commanded')
        first = torch.from_numpy(np.cumsum([0, *tosses.length[:-1]]))
        steps = tosses.joint_q.shape[1] - 1
        return self._rollouts.run(model, motions.at(first, steps), steps).numpy()
