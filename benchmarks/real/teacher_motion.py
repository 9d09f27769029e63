# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion of the teacher beside the recordings, so that a model keeps what it knows of it."""

import numpy as np
import torch
from torch import Tensor

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.random_trajectories import sample_trajectories
from nerd_ros.learning.training.loss import OneStepLoss
from nerd_ros.learning.training.training_data import Batch
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts

COUNT = 512
"""Random trajectories, rolled out in some seconds."""
# Of a batch: trajectories, and their steps that are looked at.
_ROWS, _STEPS = 48, 25
# Values of trajectories that have one entry for each step, and how many more than steps.
_SERIES = {'joint_q': 1, 'joint_qd': 1, 'effort': 0, 'contacts': 0, 'jump': 0}


class TeacherMotion:
    """
    Random trajectories of the `teacher`, as `spec.sampling` says.

    Called with a model it returns the loss of single steps on some of them, in units of that of
    `base` on all.
    """

    def __init__(self, spec: RobotSpec, teacher: TeacherRollouts, base: NerdModel, seed: int):
        count = min(COUNT, teacher.num_worlds)
        self._batch = Batch.of(sample_trajectories(spec, teacher, count,
                                                   np.random.default_rng(seed)))
        self._generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            self._unit = OneStepLoss(base)(self._batch)

    def __call__(self, model: NerdModel) -> Tensor:
        """Return the relative loss of `model`; gradients flow to its parameters."""
        batch, steps = self._batch, self._batch.effort.shape[1]
        rows = torch.randint(len(batch.effort), (_ROWS,), generator=self._generator)
        first = int(torch.randint(max(1, steps - _STEPS), (1,), generator=self._generator))
        some = {name: values[rows] for name, values in batch._asdict().items()}
        some |= {name: some[name][:, first:first + _STEPS + extra]
                 for name, extra in _SERIES.items()}
        return OneStepLoss(model)(Batch(**some)) / self._unit
