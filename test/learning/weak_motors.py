# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Small recordings that a model has something to learn from."""

import numpy as np

from bag_writing import message, write_bag
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import NO_GROUND, TeacherRollouts

NAMES = ('shoulder', 'elbow')
SECONDS = 3.0


def record(folder, count=5):
    """Write bags `weak_<k>` of a double pendulum whose motors give 60 % of what is commanded."""
    spec = RobotSpec.load('double_pendulum')
    rng, time = np.random.default_rng(3), np.arange(round(SECONDS / spec.dt) + 1) * spec.dt
    phase, speed = rng.uniform(0, 6, (2, count, 2, 3)), rng.uniform(1, 12, (count, 2, 3))
    command = (np.sin(speed * time[:, None, None, None] + phase[0]).sum(-1)
               * (1.2, 0.5)).transpose(1, 0, 2)
    measured = 0.6 * command
    start = rng.uniform(-1, 1, (2, count, 2))
    q, qd = TeacherRollouts(spec, count).rollout(*start, measured[:, :-1],
                                                 np.tile(NO_GROUND, (count, 1)))
    for k in range(count):
        write_bag(folder / f'weak_{k}', {
            '/joint_states': [message(t, NAMES, *values) for t, *values in zip(
                time, q[k], qd[k], measured[k])],
            '/joint_commands': [message(t, NAMES, effort=effort)
                                for t, effort in zip(time, command[k])]})
