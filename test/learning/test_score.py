# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The out-of-distribution score of a shipped model knows motion that it was not trained on."""

import numpy as np
from scipy.stats import mannwhitneyu
import torch

from nerd_ros.dynamics import features
from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.learning.data.held_out import held_out
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.solvers.make_solver import shipped_model
from nerd_ros.scene.teacher import GRAVITY, TeacherRollouts

COUNT, STEPS = 256, 100


def test_three_times_the_torque_is_told_apart():
    spec = RobotSpec.load('double_pendulum')
    teacher = TeacherRollouts(spec, COUNT)
    model = load_checkpoint(shipped_model(spec), teacher.layout)
    held = held_out(spec, teacher, COUNT, 9, STEPS, passive=False)
    limits = [joint.effort_limit for joint in teacher.layout.joints]
    # Three times a small torque is an ordinary one: only those that use the motors count.
    driven = (np.abs(held.effort) > 0.5 * np.array(limits)).any((1, 2))

    def mean_scores(effort):
        q, qd = teacher.rollout(held.joint_q[:, 0], held.joint_qd[:, 0], effort, held.ground)
        leading = effort.shape[:2]
        state = (q[:, :-1], qd[:, :-1], effort, teacher.contacts(q[:, :-1], held.ground),
                 np.tile(GRAVITY, (*leading, 1)), np.tile(teacher.base_pose, (*leading, 1)))
        tokens = features.tokens(teacher.layout, *(torch.from_numpy(np.float32(x)) for x in state))
        return model.ood_score(tokens).mean(1).numpy()[driven]

    usual, strange = mean_scores(held.effort), mean_scores(3.0 * held.effort)
    auroc = mannwhitneyu(strange, usual).statistic / (len(strange) * len(usual))
    assert driven.sum() > COUNT // 4
    assert auroc > 0.9
