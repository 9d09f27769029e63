# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How many long rollouts of a model leave every plausible motion."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

import numpy as np
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import held_out
from nerd_ros.learning.data.sampling import Sampler
from nerd_ros.learning.evaluation.free_accuracy import conditions, FreeRunner
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts

# Rollouts of the teacher that its usual speeds are taken from, and how many run at once: all
# steps of its solver are in memory.
_SPEED_ROLLOUTS, _PART = 256, 64


@dataclass(frozen=True)
class Divergence:
    """
    Long rollouts without effort (`passive`) or under random ones: how many of them diverged.

    Too fast is a dof beyond `speed_limit` (nqd,) [rad/s, m/s], twice what 99 % of the teacher's
    rollouts of the same kind stay below: not a share of all steps, of which a toss has few among
    many at rest. `diverged` of them were too fast or not finite. In `excused` ones the teacher
    itself is too fast, under the same efforts: they do not count.
    """

    passive: bool
    diverged: int
    excused: int
    rollouts: int
    seconds: float
    speed_limit: np.ndarray

    @property
    def name(self) -> str:
        """Return the name in tables."""
        return 'passive' if self.passive else 'random efforts'

    @property
    def key(self) -> str:
        """Return the name in a model card."""
        return 'passive' if self.passive else 'random'


def count_divergence(spec: RobotSpec, model: NerdModel, teacher: TeacherRollouts, count: int,
                     seconds: float, seed: int, passive: bool,
                     progress: Callable[[int], None] = lambda count: None) -> Divergence:
    """
    Count rollouts, in turn without and above each ground, that diverge; see `Divergence`.

    The guard of the simulation is set to the speed limit, so that it stops what has diverged and
    nothing else.
    """
    layout, steps = teacher.layout, round(seconds / spec.dt)
    planes = {condition.ground for condition in conditions(spec, layout)}
    # Only initial states are needed, so the teacher runs as little as it can.
    held = held_out(spec, teacher, count, seed + 1, 1, passive,
                    planes.pop() if len(planes) == 1 else None)
    starts = held.joint_q[:, 0], held.joint_qd[:, 0], held.ground
    kind = spec.sampling.model_copy(update={'passive_share': float(passive)})
    sampler = Sampler(layout, kind, np.random.default_rng([seed, count, steps]))
    some = np.linspace(0, count - 1, min(count, _SPEED_ROLLOUTS)).astype(int)
    usual = _speeds(teacher, starts, some, sampler.efforts(len(some), steps))
    limit = 2.0 * np.percentile(usual.max(axis=1), 99.0, axis=0)
    limited = deepcopy(model)
    limited.speed_limit.copy_(torch.from_numpy(limit))
    runner = FreeRunner(spec, limited, min(count, teacher.num_worlds))
    diverged = excused = 0
    for first in range(0, count, runner.num_worlds):
        rows = np.arange(first, min(first + runner.num_worlds, count))
        effort = sampler.efforts(len(rows), steps)
        joint_q, joint_qd, ground = (values[rows] for values in starts)
        (_, run), = runner.run(joint_q, joint_qd, effort, ground)
        fast = np.flatnonzero(run.diverged)
        if len(fast):
            own = _speeds(teacher, starts, rows[fast], effort[fast])
            excused += int((own > limit).any((1, 2)).sum())
        diverged += len(fast)
        progress(len(rows))
    return Divergence(passive, diverged - excused, excused, count, seconds, limit)


def _speeds(teacher: TeacherRollouts, starts, rows: np.ndarray, effort: np.ndarray) -> np.ndarray:
    """Speeds (n, T+1, nqd) of the teacher from the states `rows` (n,) under efforts (n, T, A)."""
    speeds = []
    size = min(_PART, teacher.num_worlds)
    for first in range(0, len(rows), size):
        part = slice(first, first + size)
        joint_q, joint_qd, ground = (values[rows[part]] for values in starts)
        _, velocities = teacher.rollout(joint_q, joint_qd, effort[part], ground)
        speeds.append(np.abs(velocities).astype(np.float32))
    return np.concatenate(speeds)
