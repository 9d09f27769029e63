# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The error of a single step, free of accumulation: each step starts from the teacher's motion."""

from dataclasses import dataclass

import numpy as np
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import HeldOut
from nerd_ros.learning.evaluation.accuracy import position_errors, velocity_errors
from nerd_ros.scene.teacher import GRAVITY, TeacherRollouts

# Steps of each rollout that are looked at: as long as trajectories of training usually are.
_STEPS = 100
# Steps of which contacts are in memory at once.
_BLOCK = 20


@dataclass(frozen=True)
class OneStepErrors:
    """Errors of M single steps, `position (M, K)` [rad, m] and `velocity (M, K)` [per s]."""

    position: np.ndarray
    velocity: np.ndarray

    @staticmethod
    def together(parts: list['OneStepErrors']) -> 'OneStepErrors':
        """Return the errors of all parts."""
        return OneStepErrors(np.concatenate([part.position for part in parts]),
                             np.concatenate([part.velocity for part in parts]))


@torch.no_grad()
def one_step_errors(model: NerdModel, teacher: TeacherRollouts, held: HeldOut) -> OneStepErrors:
    """
    Let the model predict each step of the first rollouts from the teacher's states before it.

    As many rollouts as `teacher` has worlds; the columns are those of `accuracy.quantities`.
    """
    layout = teacher.layout
    count, steps = min(teacher.num_worlds, len(held.effort)), min(_STEPS, held.effort.shape[1])
    joint_q, joint_qd = (torch.from_numpy(np.asarray(values[:count, :steps + 1], np.float32))
                         for values in (held.joint_q, held.joint_qd))
    effort = torch.from_numpy(np.asarray(held.effort[:count, :steps], np.float32))
    gravity = torch.tensor(GRAVITY).expand(count, 3)
    fixed = torch.from_numpy(teacher.base_pose).expand(count, 7)
    stream = model.start(count)
    position, velocity = [], []
    for step in range(steps):
        if step % _BLOCK == 0:
            block = held.joint_q[:count, step:min(step + _BLOCK, steps)]
            contacts = torch.from_numpy(teacher.contacts(block, held.ground[:count]))
        q, qd = joint_q[:, step], joint_qd[:, step]
        reached_q, reached_qd = model.step(
            stream, q, qd, effort[:, step], contacts[:, step % _BLOCK], gravity,
            q[:, :7] if layout.floating else fixed)
        position.append(position_errors(layout, reached_q.numpy(), joint_q[:, step + 1].numpy()))
        velocity.append(velocity_errors(layout, reached_qd.numpy(),
                                        joint_qd[:, step + 1].numpy()))
    return OneStepErrors(np.concatenate(position), np.concatenate(velocity))
