# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
How well a learned model replaces its teacher, on motion that it was not trained on.

The robot starts from the states that the section `evaluation` of its RobotSpec describes, and the
model runs freely through the simulation that the node uses.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import held_out, VALIDATION_SEED
from nerd_ros.learning.evaluation import evaluation_report as report
from nerd_ros.learning.evaluation.accuracy import groups, quantities
from nerd_ros.learning.evaluation.cost import Cost, measure_cost
from nerd_ros.learning.evaluation.divergence import count_divergence, Divergence
from nerd_ros.learning.evaluation.free_accuracy import (
    conditions, FLOOR, free_accuracy, FreeMotion, FreeRunner, horizons, NEURAL,
    WORLDS)
from nerd_ros.learning.evaluation.one_step import one_step_errors, OneStepErrors
from nerd_ros.scene.energy import MechanicalEnergy
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.solvers.make_solver import shipped_model
from nerd_ros.scene.teacher import TeacherRollouts

METRICS_VERSION = 2
"""Of what is under `metrics` in a model card."""
DIVERGENCE_SECONDS = 10.0
MOST = 100_000   # rollouts of a condition, which are kept in memory


@dataclass(frozen=True)
class Evaluation:
    """All figures of `evaluate`, of `count` rollouts per condition."""

    layout: RobotLayout
    count: int
    seed: int
    horizons: tuple[float, ...]
    one_step: OneStepErrors
    free: tuple[FreeMotion, ...]
    divergence: tuple[Divergence, ...]
    cost: dict[str, Cost]
    card: dict

    @property
    def metrics(self) -> dict:
        """
        Return the figures as they stand under `metrics` in a model card, but cost.

        `mean` is over rollouts and over time up to the end, `median` that of the rollouts, `end`
        at the end, `floor` the mean of the teacher started a little off; rad, m and seconds.
        """
        return {
            'version': METRICS_VERSION, 'rollouts': self.count, 'seed': self.seed,
            'duration': self.horizons[-1], 'one_step': self._one_step(),
            'free_running': {motion.condition.key: self._free(motion) for motion in self.free},
            'divergence': {part.key: {'diverged': part.diverged, 'excused': part.excused,
                                      'rollouts': part.rollouts, 'seconds': part.seconds}
                           for part in self.divergence}}

    def claimed(self, *place: str) -> float | None:
        """Return a figure of the model card by its place under `metrics`; None if missing."""
        value = self.card.get('metrics')
        for key in place:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, (int, float)) else None

    def _one_step(self) -> dict:
        figures = {}
        for k, quantity in enumerate(quantities(self.layout)):
            figures[f'{quantity.name} [{quantity.unit}]'] = {
                f'{kind}_{name}': _rounded(value) for kind in ('position', 'velocity')
                for errors in (getattr(self.one_step, kind)[:, k],)
                for name, value in (('mean', errors.mean()), ('p99', np.percentile(errors, 99)))}
        return figures

    def _free(self, motion: FreeMotion) -> dict:
        neural, floor = motion.distances[NEURAL], motion.distances[FLOOR]
        figures = {}
        for g, group in enumerate(groups(self.layout)):
            figures[group] = {
                'mean': _rounded(neural.mean[:, -1, g].mean()),
                'median': _rounded(np.median(neural.mean[:, -1, g])),
                'end': _rounded(neural.last[:, -1, g].mean()),
                'end_median': _rounded(np.median(neural.last[:, -1, g])),
                'floor': _rounded(floor.mean[:, -1, g].mean()),
                'mean_up_to': {f'{horizon:g} s': _rounded(neural.mean[:, h, g].mean())
                               for h, horizon in enumerate(self.horizons)}}
        figures['within_share'] = _rounded(motion.within.mean())
        figures['stopped'] = motion.stopped
        if motion.energy_drift is not None:
            figures['energy_drift'] = {'median': _rounded(np.median(motion.energy_drift)),
                                       'p95': _rounded(np.percentile(motion.energy_drift, 95))}
        return figures


def _rounded(value: float) -> float:
    return float(f'{value:.4g}')


def evaluate(robot: str | RobotSpec, model: str | Path | NerdModel | None = None, *,
             count: int = 256, seed: int = 1, divergence_seconds: float = DIVERGENCE_SECONDS,
             output: str | Path | None = None, write_card: bool = False,
             console: Console | None = None) -> Evaluation:
    """
    Print how a learned model compares with its teacher.

    Args:
        robot: name or path of the robot, which needs the sections `sampling` and `evaluation`.
        model: folder of the model or the model itself; by default the one that ships.
        count: rollouts in each condition.
        seed: of the rollouts; none is ever part of training, whatever the seed.
            VALIDATION_SEED is refused.
        divergence_seconds: length of the rollouts that may diverge; 0 skips them.
        output: folder for a picture of the figures, `<robot>.png`; None draws nothing.
        write_card: also write the figures into the card in the folder `model`.
        console: where to print.

    Raises the ValueError of the robot or model that cannot be used.
    """
    console = console or Console()
    if not 1 <= count <= MOST or divergence_seconds < 0:
        raise ValueError(f'{count} rollouts and {divergence_seconds:g} s for divergence: give at '
                         f'least 1 and 0, and {MOST} rollouts at most.')
    if seed == VALIDATION_SEED:
        raise ValueError(f'seed {seed} has selected the models during training and would praise '
                         'them; choose another.')
    if write_card and not isinstance(model, (str, Path)):
        raise ValueError('name the folder of the model whose card is to be written.')
    spec = evaluated_robot(robot)
    teacher = TeacherRollouts(spec, min(count, WORLDS))
    learned = model
    if not isinstance(model, NerdModel):
        learned = load_checkpoint(model or shipped_model(spec), teacher.layout)
    with _progress(console, spec, teacher.layout, count, divergence_seconds) as progress:
        result = _measure(spec, learned, teacher, count, seed, divergence_seconds, progress)
    for part in report.evaluation_tables(result):
        console.print(part)
    if write_card:
        save_checkpoint(model, learned, {**learned.card, 'metrics': result.metrics})
    if output is not None:
        picture = Path(output) / f'{spec.name}.png'
        report.plot_evaluation(result, picture)
        console.print(f'drawn in {picture}', markup=False, soft_wrap=True)
    return result


def evaluated_robot(robot: str | RobotSpec) -> RobotSpec:
    """Return the RobotSpec; raises RobotError where it does not say how it is evaluated."""
    spec = robot if isinstance(robot, RobotSpec) else RobotSpec.load(robot)
    for section, what in (('sampling', 'efforts'), ('evaluation', 'states')):
        if getattr(spec, section) is None:
            raise RobotError(f'{spec.source}: the section {section} is missing; it says with '
                             f'what {what} a model is tested.')
    return spec


def _measure(spec, model, teacher, count, seed, divergence_seconds, progress) -> Evaluation:
    steps = round(spec.evaluation.duration / spec.dt)
    runner = FreeRunner(spec, model, teacher.num_worlds)
    energy = MechanicalEnergy(spec)
    one_step, free, divergence = [], [], []
    for condition in conditions(spec, teacher.layout):
        done = progress(condition.name)
        held = held_out(spec, teacher, count, seed, steps, condition.passive, condition.ground)
        one_step.append(one_step_errors(model, teacher, held))
        free.append(free_accuracy(runner, teacher, held, condition, energy, seed, done))
    for passive in sorted({motion.condition.passive for motion in free}, reverse=True):
        if divergence_seconds:
            done = progress(f'divergence in {divergence_seconds:g} s')
            divergence.append(count_divergence(spec, model, teacher, count, divergence_seconds,
                                               seed, passive, done))
    progress('computing time')
    cost = measure_cost(spec, model, teacher, held)
    return Evaluation(teacher.layout, count, seed, horizons(spec),
                      OneStepErrors.together(one_step), tuple(free), tuple(divergence), cost,
                      model.card)


@contextmanager
def _progress(console: Console, spec: RobotSpec, layout: RobotLayout, count: int,
              divergence_seconds: float) -> Iterator[Callable]:
    """Yield a function that names a part of the work and returns what tells of its progress."""
    chosen = conditions(spec, layout)
    kinds = len({condition.passive for condition in chosen})
    total = count * (len(chosen) * spec.evaluation.duration + kinds * divergence_seconds)
    with Progress(TextColumn('{task.description}'), BarColumn(), TimeRemainingColumn(),
                  console=console, transient=True) as bar:
        task = bar.add_task('', total=total)

        def part(name: str) -> Callable[[int], None]:
            bar.update(task, description=name)
            seconds = divergence_seconds if 'divergence' in name else spec.evaluation.duration
            return lambda done: bar.advance(task, done * seconds)
        yield part
