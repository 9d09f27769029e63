# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Free motion of a model from measured states, with gradients."""

import torch
from torch import Tensor

from nerd_ros.dynamics import features
from nerd_ros.dynamics.frames import quat_conjugate, quat_log, quat_multiply
from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.finetuning.windows import HISTORY, Windows
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.state_contacts import StateContacts
from nerd_ros.scene.world import World


class Rollouts:
    """Runs models of `spec` through windows of recordings made in `world`."""

    def __init__(self, spec: RobotSpec, world: World, num_worlds: int):
        self.num_worlds = num_worlds
        self._contacts = StateContacts(spec, world, num_worlds)
        self.layout = self._contacts.layout

    def run(self, model: NerdModel, windows: Windows, steps: int) -> Tensor:
        """
        Return the motion `(W, steps + 1, nq)` from the start of each window.

        The model is shown the history first. Gradients flow to its parameters, when torch records
        them, from the free motion alone, and not through the contacts.
        """
        parts = [Windows(*values) for values in zip(*(
            value.split(self.num_worlds) for value in windows))]
        return torch.cat([self._run(model, part, steps) for part in parts])

    def _run(self, model: NerdModel, windows: Windows, steps: int) -> Tensor:
        stream = model.start(len(windows.history))
        with torch.no_grad():
            for step in range(HISTORY - int(windows.history.max()), HISTORY):
                self._step(model, stream, windows.joint_q[:, step], windows.joint_qd[:, step],
                           windows.effort[:, step])
                stream.reset(step < HISTORY - windows.history)
        joint_q, joint_qd = windows.joint_q[:, HISTORY], windows.joint_qd[:, HISTORY]
        motion = [joint_q]
        for step in range(HISTORY, HISTORY + steps):
            joint_q, joint_qd = self._step(model, stream, joint_q, joint_qd,
                                           windows.effort[:, step])
            motion.append(joint_q)
        return torch.stack(motion, 1)

    def tokens(self, joint_q: Tensor, joint_qd: Tensor, effort: Tensor) -> Tensor:
        """Return the tokens `(W, F)` of states, see `features.tokens`."""
        return features.tokens(self.layout, joint_q, joint_qd, effort,
                               *self._surroundings(joint_q))

    def _step(self, model: NerdModel, stream, joint_q: Tensor, joint_qd: Tensor, effort: Tensor):
        return model.step(stream, joint_q, joint_qd, effort, *self._surroundings(joint_q))

    def _surroundings(self, joint_q: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Contacts, gravity and base pose of states."""
        count, contacts = len(joint_q), self._contacts
        pose = joint_q[:, :7] if self.layout.floating else contacts.base_pose.expand(count, 7)
        return contacts(joint_q), contacts.gravity.expand(count, 3), pose


def differences(layout: RobotLayout, joint_q: Tensor, reference: Tensor) -> Tensor:
    """
    Components `(..., nqd)` [rad, m] of how far `joint_q (..., nq)` is from `reference`.

    Differentiable; of rotations, the rotation vector.
    """
    parts = []
    if layout.floating:
        parts += [joint_q[..., :3] - reference[..., :3],
                  _turn(joint_q[..., 3:7], reference[..., 3:7])]
    for joint, at in zip(layout.joints, layout.q_start):
        parts.append(_turn(joint_q[..., at:at + 4], reference[..., at:at + 4])
                     if joint.type == 'ball'
                     else joint_q[..., at:at + 1] - reference[..., at:at + 1])
    return torch.cat(parts, dim=-1)


def _turn(quat: Tensor, reference: Tensor) -> Tensor:
    return quat_log(quat_multiply(quat, quat_conjugate(reference)))
