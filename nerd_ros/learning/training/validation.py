# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How good a model is in the middle of its training; selects the one that is kept."""

from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import held_out, HeldOut, VALIDATION_SEED
from nerd_ros.learning.evaluation.accuracy import position_errors
from nerd_ros.learning.evaluation.free_accuracy import conditions, FreeRunner
from nerd_ros.learning.training.loss import OneStepLoss
from nerd_ros.learning.training.training_data import Batch
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import GRAVITY, TeacherRollouts

# Steps of a rollout that the one-step error is taken from.
_STEPS = 100


@dataclass(frozen=True)
class Checked:
    """
    Errors of a model on held-out motion.

    `one_step` is the loss of single steps. `free_running` is by condition the mean distance from
    the teacher over quantities, steps and rollouts [rad, m], where one that is off by more than 1
    counts 1: how far a lost rollout strays says nothing.
    """

    one_step: float
    free_running: dict[str, float]

    @property
    def score(self) -> float:
        """Return the mean of the free-running errors, by which models are selected."""
        return float(np.mean(list(self.free_running.values())))


class Validation:
    """
    Checks a model on the motion that `spec.evaluation` describes, again and again.

    The simulation is built once and runs the rollouts of all conditions side by side, on the CPU
    and with a copy of the model. The limits of its guard are those of the `model` given first,
    whose normalisers have to be there.
    """

    count = 64
    """Rollouts of each condition."""
    longest = 2.0
    """They are no longer than this [s], so that a check is cheap."""

    def __init__(self, spec: RobotSpec, teacher: TeacherRollouts, model: NerdModel):
        steps = round(min(spec.evaluation.duration, self.longest) / spec.dt)
        kinds = conditions(spec, teacher.layout)
        held = [held_out(spec, teacher, self.count, VALIDATION_SEED, steps, kind.passive,
                         kind.ground) for kind in kinds]
        self._layout = teacher.layout
        self._names = [kind.key for kind in kinds]
        self._joint_q, self._joint_qd, self._effort, self._ground = (
            np.concatenate([getattr(one, name) for one in held])
            for name in ('joint_q', 'joint_qd', 'effort', 'ground'))
        parts = [_first_steps(teacher, one) for one in held]
        self._batch = Batch(*(torch.cat(values) for values in zip(*parts)))
        self._model = deepcopy(model).cpu().eval()
        self._loss = OneStepLoss(self._model)
        self._runner = FreeRunner(spec, self._model, len(self._joint_q))

    def check(self, model: NerdModel) -> Checked:
        """Return the errors of `model`, which may be on any device."""
        self._model.load_state_dict(model.state_dict())
        with torch.no_grad():
            one_step = self._loss(self._batch).item()
        (_, run), = self._runner.run(self._joint_q[:, 0], self._joint_qd[:, 0], self._effort,
                                     self._ground)
        errors = position_errors(self._layout, run.joint_q, self._joint_q)[:, 1:]
        means = np.minimum(errors, 1.0).reshape(len(self._names), -1).mean(1)
        return Checked(one_step, dict(zip(self._names, means.tolist())))


def _first_steps(teacher: TeacherRollouts, held: HeldOut) -> Batch:
    """Return the first steps of all rollouts, with their contacts."""
    joint_q, joint_qd, effort = (values[:, :_STEPS + extra] for values, extra in (
        (held.joint_q, 1), (held.joint_qd, 1), (held.effort, 0)))
    count = len(joint_q)
    arrays = {
        'joint_q': joint_q, 'joint_qd': joint_qd, 'effort': effort,
        'contacts': teacher.contacts(joint_q[:, :-1], held.ground),
        'jump': np.zeros_like(joint_qd[:, 1:]), 'gravity': np.tile(GRAVITY, (count, 1)),
        'base_pose': np.tile(teacher.base_pose, (count, 1))}
    return Batch(*(torch.as_tensor(np.asarray(arrays[name], np.float32))
                   for name in Batch._fields))
