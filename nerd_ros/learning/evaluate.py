# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
How well a learned model replaces its teacher.

The model runs freely, through the simulation that the node uses, from states that it was not
trained on. Beside its distance from the teacher stand those of two motions that need no model:
each joint going on at its first velocity, and the teacher started a little off, which is the
floor that no model can fall below by much.
"""

from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
import time

import numpy as np
from rich.console import Console
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning import report
from nerd_ros.learning.free_running import (
    free_run, FreeRunningCheck, ground_world, held_out, HeldOut, neural_simulation)
from nerd_ros.learning.sampling import Sampler
from nerd_ros.scene.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers import shipped_model
from nerd_ros.scene.teacher import TeacherRollouts

DURATION = 1.67
"""Length of the passive motion that is compared [s]."""
START_OFFSET = 1e-4
"""How far off the second teacher starts [rad, m]."""
NEURAL, HOLD, FLOOR = 'neural', 'hold last velocity', 'teacher, 1e-4 off'
# Rollouts of the teacher that its usual speeds under random efforts are taken from.
_SPEED_ROLLOUTS = 128
_COST_STEPS = 200   # steps that the cost of a step is measured over


@dataclass(frozen=True)
class PassiveMotion:
    """
    Distances from the teacher in motion without effort, T steps.

    `error[name] (T, nq)` is the mean of the absolute distance over all rollouts after each step
    [rad, m], for the model and the motions beside it, and `rollout_error[name] (N,)` that of each
    rollout over all steps and joints; angles are not wrapped. `end_share` is the share of the
    model's rollouts whose joints are all within 0.1 rad or m at the end, `stopped` in how many
    the guard had to act, `touching` the share that touches the ground.
    """

    error: dict[str, np.ndarray]
    rollout_error: dict[str, np.ndarray]
    end_share: float
    stopped: int
    touching: float

    def mean(self, name: str) -> float:
        """Return the mean distance over all rollouts, steps and joints [rad, m]."""
        return float(self.error[name].mean())

    def median(self, name: str) -> float:
        """Return the median of the rollouts' distances: no single chaotic rollout moves it."""
        return float(np.median(self.rollout_error[name]))


@dataclass(frozen=True)
class Divergence:
    """Random-effort rollouts: how many of `rollouts` of `steps` left every plausible motion."""

    diverged: int
    rollouts: int
    steps: int
    speed_limit: np.ndarray
    """What counts as diverged: twice the 99.9th percentile of the teacher's speeds, (nqd,)."""


@dataclass(frozen=True)
class Cost:
    """Computing time of one simulated second [s], for one robot and per robot of many."""

    one: float
    many: float


@dataclass(frozen=True)
class Evaluation:
    """All figures of `evaluate`; passive motion by `'without ground'` and `'with ground'`."""

    layout: RobotLayout
    count: int
    seed: int
    passive: dict[str, PassiveMotion]
    divergence: Divergence | None
    cost: dict[str, Cost]
    card: dict

    @property
    def metrics(self) -> dict[str, float]:
        """Return the figures by the names that they have under `metrics` in a model card."""
        figures = {'rollouts': self.count, 'seed': self.seed}
        for kind, motion in self.passive.items():
            figures[_error_key(kind)] = round(motion.mean(NEURAL), 5)
        if self.divergence is not None:
            figures['diverged'] = self.divergence.diverged
            figures['divergence_rollouts'] = self.divergence.rollouts
            figures['divergence_steps'] = self.divergence.steps
        return figures

    def card_error(self, kind: str) -> float | None:
        """Return the mean error of one kind of passive motion that the model card claims."""
        return self._claimed(_error_key(kind))

    def card_divergence(self) -> tuple[int | None, int | None]:
        """Return how many rollouts diverged, and of how many, by the model card."""
        return self._claimed('diverged'), self._claimed('divergence_rollouts')

    def _claimed(self, key: str) -> float | None:
        return (self.card.get('metrics') or {}).get(key)


def _error_key(kind: str) -> str:
    return 'passive_error_' + kind.replace(' ', '_')


def evaluate(robot: str | RobotSpec, model: str | Path | NerdModel | None = None, *,
             count: int = 256, seed: int = 1, divergence_count: int = 1000,
             divergence_steps: int = 1000, output: str | Path | None = None,
             write_card: bool = False, console: Console | None = None) -> Evaluation:
    """
    Print how a learned model compares with its teacher.

    Args:
        robot: name or path of the robot, which needs a `sampling` section.
        model: folder of the model or the model itself; by default the one that ships.
        count: rollouts with and as many without ground.
        seed: of the rollouts; none is ever part of training, whatever the seed.
        divergence_count, divergence_steps: rollouts under random efforts, and their steps; no
            rollouts skips them.
        output: folder for a picture of the error over time, `<robot>.png`; None draws nothing.
        write_card: also write the figures into the card in the folder `model`.
        console: where to print.

    Raises the ValueError of the robot or model that cannot be used.
    """
    console = console or Console()
    if count < 1 or divergence_count < 0 or divergence_steps < 1:
        raise ValueError(f'{count} rollouts, {divergence_count} under random efforts of '
                         f'{divergence_steps} steps: give at least 1, 0 and 1.')
    if write_card and not isinstance(model, (str, Path)):
        raise ValueError('name the folder of the model whose card is to be written.')
    spec = robot if isinstance(robot, RobotSpec) else RobotSpec.load(robot)
    if spec.sampling is None:
        raise RobotError(f'{spec.source}: the section sampling is missing; it says from which '
                         'states a model is tested.')
    teacher = TeacherRollouts(spec, count)
    learned = model
    if not isinstance(model, NerdModel):
        learned = load_checkpoint(model or shipped_model(spec), teacher.layout)
    passive = {}
    for kind, ground in (('without ground', False), ('with ground', True)):
        with console.status(f'{count} passive rollouts {kind}'):
            held = held_out(spec, teacher, count, seed, round(DURATION / spec.dt), True, ground)
            passive[kind] = passive_motion(learned, teacher, held, seed)
    divergence = None
    if divergence_count:
        with console.status(f'{divergence_count} rollouts of {divergence_steps} steps under '
                            'random efforts'):
            divergence = count_divergence(spec, learned, teacher, divergence_count,
                                          divergence_steps, seed)
    with console.status('cost of a step'):
        cost = measure_cost(spec, learned, teacher, count)
    result = Evaluation(teacher.layout, count, seed, passive, divergence, cost, learned.card)
    for part in report.evaluation_tables(result):
        console.print(part)
    if write_card:
        save_checkpoint(model, learned, {**learned.card, 'metrics': result.metrics})
    if output is not None:
        picture = Path(output) / f'{spec.name}.png'
        report.plot_evaluation(result, picture)
        console.print(f'drawn in {picture}', markup=False, soft_wrap=True)
    return result


def passive_motion(model: NerdModel, teacher: TeacherRollouts, held: HeldOut,
                   seed: int) -> PassiveMotion:
    """Compare the model, and the motions beside it, with held-out motion of the teacher."""
    run = FreeRunningCheck(model, held).run()
    first_q, first_qd = held.joint_q[:, 0], held.joint_qd[:, 0]
    times = np.arange(held.joint_q.shape[1])[:, None] * held.spec.dt
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], first_q.shape)
    beside = {
        NEURAL: run.joint_q,
        HOLD: first_q[:, None] + times * first_qd[:, None],
        FLOOR: teacher.rollout(first_q + START_OFFSET * signs, first_qd, held.effort,
                               held.ground)[0],
    }
    distances = {name: np.abs(motion - held.joint_q)[:, 1:] for name, motion in beside.items()}
    within = (distances[NEURAL][:, -1] < 0.1).all(1)
    return PassiveMotion({name: distance.mean(0) for name, distance in distances.items()},
                         {name: distance.mean((1, 2)) for name, distance in distances.items()},
                         float(within.mean()), int(run.diverged.sum()),
                         float(held.touches.mean()))


def count_divergence(spec: RobotSpec, model: NerdModel, teacher: TeacherRollouts, count: int,
                     steps: int, seed: int) -> Divergence:
    """
    Count rollouts under random efforts that become too fast or not finite.

    Too fast is a joint beyond twice the 99.9th percentile of the teacher's speeds in the same
    kind of rollout. The guard of the simulation is set to that limit, so that it stops what has
    diverged and nothing else.
    """
    usual = held_out(spec, teacher, min(count, _SPEED_ROLLOUTS), seed, steps, False)
    limit = 2.0 * np.percentile(np.abs(usual.joint_qd), 99.9, axis=(0, 1))
    # Only the initial states are needed of the others, so their teacher runs one step.
    starts = held_out(spec, teacher, count, seed + 1, 2, False)
    rng = np.random.default_rng([seed, count, steps])
    driven = spec.sampling.model_copy(update={'passive_share': 0.0})
    effort = Sampler(teacher.layout, driven, rng).efforts(count, steps)
    limited = deepcopy(model)
    limited.speed_limit.copy_(torch.from_numpy(limit))
    simulation = neural_simulation(spec, limited, count)
    run = free_run(simulation, starts.joint_q[:, 0], starts.joint_qd[:, 0], effort, starts.ground)
    return Divergence(int(run.diverged.sum()), count, steps, limit)


def measure_cost(spec: RobotSpec, model: NerdModel, teacher: TeacherRollouts,
                 count: int) -> dict[str, Cost]:
    """
    Measure the computing time of a simulated second, of one robot and per robot of `count`.

    'neural' and 'mujoco' are steps of the simulation with collision detection and guard;
    'MuJoCo C' is the teacher alone.
    """
    cost = {}
    for solver in ('neural', 'mujoco'):
        times = []
        for worlds in (1, count):
            simulation = (neural_simulation(spec, model, worlds) if solver == 'neural' else
                          Simulation(spec, ground_world(spec), solver, num_worlds=worlds))
            times.append(_best_time(lambda: simulation.step(_COST_STEPS)) / worlds)
        cost[solver] = Cost(*times)
    times = []
    for worlds in (1, count):
        zero = np.zeros((worlds, teacher.layout.nq))
        effort = np.zeros((worlds, _COST_STEPS, teacher.layout.num_dofs))
        ground = np.tile([0.0, 0.0, 1.0, 0.0], (worlds, 1))
        times.append(_best_time(lambda: teacher.rollout(zero, zero, effort, ground)) / worlds)
    cost['MuJoCo C'] = Cost(*times)
    return {name: Cost(c.one / spec.dt, c.many / spec.dt) for name, c in cost.items()}


def _best_time(run) -> float:
    """Return the shortest time of one step in three runs of `_COST_STEPS` steps [s]."""
    shortest = np.inf
    for _ in range(3):
        start = time.perf_counter()
        run()
        shortest = min(shortest, time.perf_counter() - start)
    return shortest / _COST_STEPS
