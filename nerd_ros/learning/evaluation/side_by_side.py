# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Held-out motion of a model beside that of its teacher, in the browser."""

from pathlib import Path

import numpy as np

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.learning.data.held_out import held_out
from nerd_ros.learning.evaluation.evaluate import evaluated_robot
from nerd_ros.learning.evaluation.free_accuracy import conditions, FreeRunner
from nerd_ros.scene.player import Playback, Player
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.solvers.make_solver import shipped_model
from nerd_ros.scene.teacher import TeacherRollouts

_EACH = 6   # rollouts in each condition


def side_by_side(robot: str | RobotSpec, model: str | Path | None = None, seed: int = 1,
                 port: int = 8080) -> Player:
    """
    Return a player of held-out rollouts: `url` is its page, `play` shows them.

    `robot` and `model` are those of `evaluate`, as are the errors raised.
    """
    spec = evaluated_robot(robot)
    teacher = TeacherRollouts(spec, _EACH)
    learned = load_checkpoint(model or shipped_model(spec), teacher.layout)
    runner = FreeRunner(spec, learned, _EACH)
    steps = round(spec.evaluation.duration / spec.dt)
    rows = []
    for condition in conditions(spec, teacher.layout):
        held = held_out(spec, teacher, _EACH, seed, steps, condition.passive, condition.ground)
        (_, run), = runner.run(held.joint_q[:, 0], held.joint_qd[:, 0], held.effort, held.ground)
        rows.append([Playback(condition.name, np.stack([true, own]), ground) for true, own, ground
                     in zip(held.joint_q, run.joint_q, held.ground)])
    # One of each condition after the other.
    return Player(spec, ('teacher', 'model'), [row[i] for i in range(_EACH) for row in rows],
                  port)
