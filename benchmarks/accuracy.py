# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Accuracy of the models that ship, against their teachers.

    python benchmarks/accuracy.py --check

Every model runs freely from held-out states, in the conditions that the section `evaluation` of
its RobotSpec describes. Columns:

- mean: distance from the teacher, averaged over rollouts, joints of one unit, and time up to the
  end, without any clamp; median: that of the rollouts' distances, which the few chaotic ones do
  not move; end: mean at the end.
- floor: the mean of the teacher itself, started 1e-4 rad and m off.
- within: rollouts that end with every joint, and the base, less than 0.1 rad and m off.

The second table has what a whole robot has one of:

- diverged: rollouts of 10 s that get not finite, or faster than twice what 99 % of the teacher's
  rollouts stay below, unless the teacher gets that fast under the same efforts.
- one step: the error of a single step, mean of all joints, and what 99 % are below.
- energy drift: difference of mechanical energy from the teacher at the end of passive motion, as
  a share of what the rollout has; median of the rollouts, and what 95 % are below.
- computing time of one simulated second of one robot.
"""

import argparse
import sys

from loop import machine
import numpy as np
from rich.console import Console

from nerd_ros.learning.evaluation.accuracy import groups, GROUPS, quantities
from nerd_ros.learning.evaluation.evaluate import evaluate
from nerd_ros.resources import resource_path

# What must hold, by the place of a figure under `metrics` in a model card. 'within_share' is a
# lower bound, all others [rad, m] are upper ones.
BOUNDS = {
    'double_pendulum': {
        (f'{kind}_{ground}', *figure): bound
        for kind in ('passive', 'random')
        for ground, mean, end, share in (('without_ground', 0.01, 0.02, 0.95),
                                         ('with_ground', 0.02, 0.06, 0.75))
        for figure, bound in ((('joint_rad', 'mean'), mean), (('joint_rad', 'end'), end),
                              (('within_share',), share))},
    'cartpole': {
        ('passive_without_ground', 'joint_m', 'mean'): 0.02,
        ('passive_without_ground', 'joint_rad', 'mean'): 0.05},
    'cube': {
        ('passive_with_ground', 'base_m', 'mean'): 0.01,
        ('passive_with_ground', 'base_rad', 'mean'): 0.1},
}
# How long a rollout has to be for its bounds to mean what they say [s].
DURATIONS = {'double_pendulum': 1.67, 'cartpole': 16.7, 'cube': 0.7}
DIVERGED = 0   # rollouts of a robot with bounds that may diverge
COLUMNS = ('mean', 'median', 'end', 'floor')


def main() -> int:
    """Measure and print the tables; with --check return 1 when a bound is missed."""
    arguments = parse_arguments()
    console = Console(stderr=True)
    evaluations = {robot: evaluate(robot, arguments.model, count=arguments.count,
                                   seed=arguments.seed, console=console)
                   for robot in arguments.robot or shipped()}
    print(f'{arguments.count} held-out rollouts of each kind, seed {arguments.seed}; '
          f'{machine()}.\n')
    print_motions(evaluations)
    print()
    print_robots(evaluations)
    missed = [line for robot, evaluation in evaluations.items()
              for line in misses(robot, evaluation.metrics)]
    if missed:
        print('\n' + '\n'.join(f'missed: {line}' for line in missed))
    return 1 if arguments.check and missed else 0


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.split('\n\n')[0])
    parser.add_argument('--check', action='store_true', help='exit 1 when a bound is missed')
    parser.add_argument('--robot', action='append', help='by default all that have a model; may '
                                                         'be given more than once')
    parser.add_argument('--model', help='folder of the model of --robot, by default the shipped')
    parser.add_argument('--count', type=int, default=2048, help='rollouts of each kind')
    parser.add_argument('--seed', type=int, default=1, help='of the rollouts')
    arguments = parser.parse_args()
    if arguments.model and len(arguments.robot or ()) != 1:
        parser.error('--model belongs to one --robot: name it')
    return arguments


def shipped() -> list[str]:
    """Names of the robots that have a model."""
    return sorted(card.parent.name for card in resource_path('models').glob('*/model.yaml'))


def print_motions(evaluations) -> None:
    """Print a row for each robot, condition and unit."""
    print('| robot | motion | distance | mean | median | end | floor | within [%] |')
    print('|---|---|---|---|---|---|---|---|')
    for robot, evaluation in evaluations.items():
        bounds, duration = BOUNDS.get(robot, {}), evaluation.horizons[-1]
        for motion in evaluation.free:
            key = motion.condition.key
            figures = evaluation.metrics['free_running'][key]
            share = cell(100.0 * figures['within_share'], bounds.get((key, 'within_share')), 100.0)
            for group in groups(evaluation.layout):
                what, unit = GROUPS[group]
                cells = [cell(figures[group][name], bounds.get((key, group, name)))
                         for name in COLUMNS]
                print(f'| {robot} | {motion.condition.name}, {duration:g} s | {what} [{unit}] | '
                      + ' | '.join([*cells, share]) + ' |')


def print_robots(evaluations) -> None:
    """Print a row for each robot."""
    print('| robot | diverged in 10 s | one step | energy drift | one simulated second: neural '
          '| MuJoCo C |')
    print('|---|---|---|---|---|---|')
    for robot, evaluation in evaluations.items():
        diverged = ', '.join(f'{part.name}: {part.diverged} of {part.rollouts}'
                             for part in evaluation.divergence)
        drifts = [motion.energy_drift for motion in evaluation.free
                  if motion.energy_drift is not None]
        drift = np.concatenate(drifts)
        print(f'| {robot} | {diverged} | {one_step(evaluation)} | {np.median(drift):.2%}, '
              f'{np.percentile(drift, 95):.2%} | '
              + ' | '.join(f'{evaluation.cost[name].one * 1e3:.3g} ms'
                           for name in ('neural', 'MuJoCo C')) + ' |')


def one_step(evaluation) -> str:
    """Return the error of one step in each unit, mean and 99th percentile."""
    parts, names = [], quantities(evaluation.layout)
    for group in groups(evaluation.layout):
        errors = evaluation.one_step.position[:, [name.group == group for name in names]]
        what, unit = GROUPS[group]
        parts.append(f'{what}: {errors.mean():.2g}, {np.percentile(errors, 99):.2g} {unit}')
    return '; '.join(parts)


def misses(robot: str, metrics: dict) -> list[str]:
    """Return a sentence for each bound of a robot that its figures miss."""
    bounds = BOUNDS.get(robot, {})
    lines = []
    if bounds and not metrics['duration'] >= DURATIONS[robot] - 1e-9:
        lines.append(f'{robot}: rollouts of {metrics["duration"]:g} s, not of '
                     f'{DURATIONS[robot]:g} s')
    for place, bound in bounds.items():
        value = metrics['free_running']
        for key in place:
            value = value.get(key, {})
        name = f'{robot}, {" ".join(place).replace("_", " ")}'
        if value == {}:
            lines.append(f'{name}: not measured')
        elif place[-1] == 'within_share':
            if not value >= bound:
                lines.append(f'{name}: {value:.1%}, not {bound:.0%} or more')
        elif not value <= bound:
            lines.append(f'{name}: {value:.4g} {place[1].split("_")[1]}, not {bound:g} or less')
    for kind, part in (metrics['divergence'].items() if bounds else ()):
        if part['diverged'] > DIVERGED:
            lines.append(f'{robot}, {kind}: {part["diverged"]} of {part["rollouts"]} rollouts of '
                         f'{part["seconds"]:g} s diverged, not {DIVERGED}')
    return lines


def cell(value: float, bound: float | None, percent: float | None = None) -> str:
    """Return a figure and the bound that it is held to; `percent` scales a lower one."""
    text = f'{value:.3g}' if percent is None else f'{value:.1f}'
    if bound is None:
        return text
    return f'{text} (< {bound:g})' if percent is None else f'{text} (> {percent * bound:g})'


if __name__ == '__main__':
    sys.exit(main())
