# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
How far a model that runs freely gets from its teacher, in each condition of the evaluation.

Beside it stands the teacher started a little off: a floor that no model can fall below by much.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import HeldOut
from nerd_ros.learning.evaluation.accuracy import group_means, perturbed, position_errors
from nerd_ros.learning.evaluation.free_running import free_run, FreeRun, neural_simulation
from nerd_ros.scene.energy import MechanicalEnergy
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts

START_OFFSET = 1e-4
"""How far off the second teacher starts [rad, m]."""
TOLERANCE = 0.1
"""What a quantity may be off at the end for a rollout to count as followed [rad, m]."""
WORLDS = 512
"""Rollouts that run at the same time, at most: more take more memory and hardly less time."""
NEURAL, FLOOR = 'neural', 'teacher, 1e-4 off'
_HORIZONS = (0.1, 0.5, 1.0)   # times at which errors are told, beside the end [s]
# Energy of a rollout that hardly moves, as a share of that of the median one: what it drifts by
# is not divided by less.
_LEAST_ENERGY = 0.01


@dataclass(frozen=True)
class Condition:
    """A kind of held-out motion."""

    passive: bool
    """Without effort; else random efforts."""
    ground: bool

    @property
    def name(self) -> str:
        """Return the name in tables."""
        return (f'{"passive" if self.passive else "random efforts"}, '
                f'{"with" if self.ground else "no"} ground')

    @property
    def key(self) -> str:
        """Return the name in a model card."""
        return (f'{"passive" if self.passive else "random"}_'
                f'{"with" if self.ground else "without"}_ground')


def conditions(spec: RobotSpec, layout: RobotLayout) -> tuple[Condition, ...]:
    """
    Return the kinds of motion that a robot is judged on.

    One without motors moves passively only, one without grounds in `spec.evaluation` has none,
    and a floating base, which would fall for ever, is always above ground where there is one.
    """
    planes = (False,)
    if spec.evaluation.grounds:
        planes = (True,) if layout.floating else (False, True)
    efforts = (True, False) if layout.effort_limits.any() else (True,)
    return tuple(Condition(passive, ground) for passive in efforts for ground in planes)


def horizons(spec: RobotSpec) -> tuple[float, ...]:
    """Return the times at which errors are told [s]; the last is the whole duration."""
    duration = spec.evaluation.duration
    return *(h for h in _HORIZONS if h < duration), duration


@dataclass(frozen=True)
class Distances:
    """
    Distances from the teacher [rad, m] of N rollouts at H horizons, by G groups of `groups`.

    `mean (N, H, G)` over time up to each horizon, `last (N, H, G)` at it, and `curve (T, G)` the
    mean over the rollouts after each step.
    """

    mean: np.ndarray
    last: np.ndarray
    curve: np.ndarray


@dataclass(frozen=True)
class FreeMotion:
    """
    What came of N rollouts in one condition.

    `distances` are those of NEURAL and FLOOR, `within (N,)` says which rollouts of the model end
    with every quantity off by less than TOLERANCE, `energy_drift (N,)` how far mechanical energy
    at the end is from the teacher's, as a share of what the rollout has (passive motion alone),
    `stopped` in how many the guard had to act and `touching` the share that touches the ground.
    """

    condition: Condition
    distances: dict[str, Distances]
    within: np.ndarray
    energy_drift: np.ndarray | None
    stopped: int
    touching: float


class FreeRunner:
    """Runs any number of robots with one model, `num_worlds` at a time: memory stays bounded."""

    def __init__(self, spec: RobotSpec, model: NerdModel, num_worlds: int):
        self.num_worlds = num_worlds
        self._simulation = neural_simulation(spec, model, num_worlds)

    def run(self, joint_q: np.ndarray, joint_qd: np.ndarray, effort: np.ndarray,
            ground: np.ndarray) -> Iterator[tuple[slice, FreeRun]]:
        """Yield rows and motion of one part after the other; arguments as of `free_run`."""
        count = len(joint_q)
        for first in range(0, count, self.num_worlds):
            # What is missing of a last part is filled with its last row, and cut off again.
            rows = np.minimum(np.arange(first, first + self.num_worlds), count - 1)
            part = free_run(self._simulation, joint_q[rows], joint_qd[rows], effort[rows],
                            ground[rows])
            size = min(self.num_worlds, count - first)
            yield slice(first, first + size), FreeRun(
                part.joint_q[:size], part.joint_qd[:size], part.diverged[:size])


def free_accuracy(runner: FreeRunner, teacher: TeacherRollouts, held: HeldOut,
                  condition: Condition, energy: MechanicalEnergy, seed: int,
                  progress: Callable[[int], None] = lambda count: None) -> FreeMotion:
    """
    Compare the model of `runner` with held-out motion of the teacher in one condition.

    `seed` is of the directions in which the second teacher starts off; `progress` is told how
    many rollouts are done each time.
    """
    rng = np.random.default_rng(seed)
    layout, steps = teacher.layout, held.effort.shape[1]
    ends = [min(steps, round(h / held.spec.dt)) for h in horizons(held.spec)]
    errors = {NEURAL: [], FLOOR: []}
    within, drifts, stopped = [], [], 0
    parts = runner.run(held.joint_q[:, 0], held.joint_qd[:, 0], held.effort, held.ground)
    for rows, run in parts:
        true_q, true_qd = held.joint_q[rows], held.joint_qd[rows]
        floor_q, _ = teacher.rollout(perturbed(layout, true_q[:, 0], START_OFFSET, rng),
                                     true_qd[:, 0], held.effort[rows], held.ground[rows])
        neural = position_errors(layout, run.joint_q, true_q)[:, 1:]
        floor = position_errors(layout, floor_q, true_q)[:, 1:]
        within.append((neural[:, -1] < TOLERANCE).all(-1))
        for name, error in ((NEURAL, neural), (FLOOR, floor)):
            errors[name].append(_distances(group_means(layout, error), ends))
        if condition.passive:
            drifts.append(_energy_drift(energy, run, true_q, true_qd))
        stopped += int(run.diverged.sum())
        progress(len(true_q))
    return FreeMotion(condition, {name: _together(parts) for name, parts in errors.items()},
                      np.concatenate(within), _relative(drifts) if drifts else None, stopped,
                      float(held.touches.mean()))


def _distances(errors: np.ndarray, ends: list[int]) -> Distances:
    """Distances of errors (N, T, G) up to the steps `ends`."""
    return Distances(np.stack([errors[:, :end].mean(1) for end in ends], axis=1),
                     np.stack([errors[:, end - 1] for end in ends], axis=1), errors.mean(0))


def _together(parts: list[Distances]) -> Distances:
    weights = [len(part.mean) for part in parts]
    return Distances(np.concatenate([part.mean for part in parts]),
                     np.concatenate([part.last for part in parts]),
                     np.average([part.curve for part in parts], axis=0, weights=weights))


def _energy_drift(energy: MechanicalEnergy, run: FreeRun, true_q, true_qd) -> np.ndarray:
    """
    Energy that the model has too much or too little at the end, and what there is, (2, N) [J].

    What there is: the largest kinetic energy of the teacher and the range of its potential one.
    """
    kinetic, potential = energy(true_q, true_qd)
    own = sum(energy(run.joint_q[:, -1], run.joint_qd[:, -1]))
    return np.stack([np.abs(own - kinetic[:, -1] - potential[:, -1]),
                     kinetic.max(1) + np.ptp(potential, axis=1)])


def _relative(drifts: list[np.ndarray]) -> np.ndarray:
    drift, scale = np.concatenate(drifts, axis=1)
    return drift / np.maximum(scale, _LEAST_ENERGY * np.median(scale))
