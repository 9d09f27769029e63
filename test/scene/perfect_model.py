# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A learned model that is never wrong: the teacher itself behind the interface of NerdModel."""

import numpy as np
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.scene.teacher import TeacherRollouts

NO_GROUND = (0.0, 0.0, 1.0, -np.inf)


class PerfectModel(NerdModel):
    """Steps the robot of `spec` above the plane `ground`, (normal, offset)."""

    def __init__(self, spec, ground=NO_GROUND, num_worlds: int = 1):
        teacher = TeacherRollouts(spec, num_worlds)
        super().__init__(teacher.layout)
        self.efforts = []
        """The effort (W, A) of each step."""
        self._teacher, self._ground = teacher, np.array(ground, float)

    def step(self, stream, joint_q, joint_qd, effort, contacts, gravity, base_pose):
        """See NerdModel; what is no state or effort is the teacher's own."""
        self.efforts.append(effort.numpy().copy())
        ground = np.tile(self._ground, (len(joint_q), 1))
        states = self._teacher.rollout(
            joint_q.double().numpy(), joint_qd.double().numpy(),
            effort.double().numpy()[:, None], ground)
        return tuple(torch.tensor(values[:, 1], dtype=torch.float32) for values in states)
