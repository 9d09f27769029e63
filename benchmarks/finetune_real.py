# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Fine-tuning on recordings of real machines, measured on recordings that were kept back.

    python benchmarks/finetune_real.py --data ../shared/data --check

Each recording is in one of the folds; a model learns from all folds but one and is measured on
that one, with several seeds. A training is a file below --results: what is there already is not
done again, so that the same command goes on where it was stopped. benchmarks/results/finetune_real
holds the first trainings of the present recipe, to go on from. `--only` picks a part:

- pendulum: RMS error of each joint after 50, 200, 500 ms and 1 s over windows that start every
  0.1 s, as a ratio to the model that the laboratory identified, mean over joints and bags, with
  measured and with commanded torque. Its 95 % interval is by bootstrap over the bags. Two ratios:
  to the identified model started from the recorded velocity, as the protocol of the yardstick has
  it, and started and driven like the learned model.
- curve: the same for less to learn from.
- forgetting: the same for ways to keep what the model knows of its teacher, with the distance from
  the teacher in free motion.
- partial: the same where the bags to learn from lack something.
- cube: mean error of position and rotation over whole tosses, as a ratio to MuJoCo with a contact
  that is tuned on the tosses to learn from.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace
import json
from pathlib import Path
import sys
from tempfile import TemporaryDirectory

from loop import machine
import numpy as np
from real.cube_jobs import CubeJobs
from real.degraded_bags import degrade, KINDS
from real.pendulum_bags import pendulum_bags
from real.pendulum_jobs import HORIZONS, PendulumJobs
from real.recordings import DATA, DataError, interval
import torch

from nerd_ros.learning.finetuning.training import Recipe
from nerd_ros.learning.finetuning.windows import EFFORTS

PARTS = ('pendulum', 'curve', 'forgetting', 'partial', 'cube')
# Upper bounds: ratio to the identified model after so many seconds, and to the tuned contact.
PENDULUM_BOUNDS = {0.05: 1.0, 0.2: 0.4, 0.5: 0.45}
CUBE_BOUND = 0.7
CUBE_TRAINING = 600.0   # longest training of a cube [s]
MINUTES = (0.5, 1.0, 2.0)
IDENTIFIED, SAME_START = 'identified', 'identified, same start'


class Results:
    """Results of trainings, a JSON file each."""

    def __init__(self, folder: Path):
        self._folder = folder

    def get(self, name: str, run: Callable[[], dict]) -> dict:
        """Return the result of that name; what is not there yet is done."""
        path = self._folder / f'{name}.json'
        if not path.exists():
            print(f'{name} ...', file=sys.stderr, flush=True)
            result = run()
            path.parent.mkdir(parents=True, exist_ok=True)
            part = path.with_suffix('.part')
            part.write_text(json.dumps(result))
            part.rename(path)
        return json.loads(path.read_text())


def main() -> int:
    """Measure and print the tables; with --check return 1 when a bound is missed."""
    arguments = parse_arguments()
    torch.set_num_threads(arguments.threads)
    results = Results(arguments.results)
    print(f'{arguments.folds} folds, {arguments.seeds} seeds, trainings of at most '
          f'{arguments.time_limit:g} s; {machine()}.\n')
    missed = []
    try:
        jobs = PendulumJobs(arguments.data, arguments.folds, arguments.time_limit)
        if 'pendulum' in arguments.only:
            missed += pendulum(jobs, results, arguments)
        if 'curve' in arguments.only:
            curve(jobs, results, arguments)
        if 'forgetting' in arguments.only:
            forgetting(jobs, results)
        if 'partial' in arguments.only:
            partial(jobs, results, arguments)
        if 'cube' in arguments.only:
            missed += cube(CubeJobs(arguments.data, arguments.folds, arguments.time_limit),
                           results, arguments)
    except DataError as error:
        sys.exit(f'finetune_real: {error}')
    for line in missed:
        print(f'missed: {line}')
    return int(bool(missed) and arguments.check)


def parse_arguments() -> argparse.Namespace:
    """Return the arguments of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n\n')[0].strip())
    parser.add_argument('--data', type=Path, default=DATA, help='folder of the recordings')
    parser.add_argument('--results', type=Path, default=Path('runs', 'finetune_real'))
    parser.add_argument('--only', nargs='+', choices=PARTS, default=PARTS)
    parser.add_argument('--folds', type=int, default=4)
    parser.add_argument('--seeds', type=int, default=3)
    parser.add_argument('--time-limit', type=float, default=600.0, help='of one training [s]')
    parser.add_argument('--threads', type=int, default=1, help='of PyTorch')
    parser.add_argument('--check', action='store_true', help='exit 1 when a bound is missed')
    return parser.parse_args()


def pendulum(jobs: PendulumJobs, results: Results, arguments) -> list[str]:
    """Print the tables of the double pendulum and return the bounds that are missed."""
    missed = []
    for effort in EFFORTS:
        runs = [[results.get(f'pendulum_{effort}_{fold}_{seed}',
                             lambda: jobs.run(fold, seed, effort))
                 for fold in range(arguments.folds)] for seed in range(arguments.seeds)]
        print(f'double pendulum, {effort} torque: ratio to the identified model\n')
        print_row('', *(f'{1e3 * horizon:.0f} ms' for horizon in HORIZONS))
        print_row(*['---'] * (1 + len(HORIZONS)))
        for solver, reference, slow in (
                ('fine-tuned', IDENTIFIED, ''), ('before', IDENTIFIED, ''),
                ('hold', IDENTIFIED, ''), ('fine-tuned', SAME_START, ''),
                ('before', SAME_START, ''), ('fine-tuned', IDENTIFIED, 'slow_'),
                ('before', IDENTIFIED, 'slow_')):
            values = bag_ratios(runs, solver, reference, slow)
            name = (solver + (', to it from the same start' if reference == SAME_START else '')
                    + (', bags of 33 Hz' if slow else ''))
            print_row(name, *(with_interval(column) for column in values.T))
        ratios = bag_ratios(runs, 'fine-tuned', IDENTIFIED).mean(0)
        for horizon, bound in PENDULUM_BOUNDS.items():
            ratio = ratios[HORIZONS.index(horizon)]
            if not ratio <= bound:
                missed.append(f'double pendulum, {effort} torque, {1e3 * horizon:.0f} ms: '
                              f'{ratio:.3f} (bound {bound:g})')
        print()
    return missed


def curve(jobs: PendulumJobs, results: Results, arguments) -> None:
    """Print how much there has to be to learn from."""
    print('double pendulum, commanded torque, by length of the recordings to learn from: ratio '
          'to the identified model\n')
    print_row('minutes', *(f'{1e3 * horizon:.0f} ms' for horizon in HORIZONS))
    print_row(*['---'] * (1 + len(HORIZONS)))
    for minutes in (*MINUTES, None):
        name = 'pendulum_commanded' if minutes is None else f'curve_{minutes:g}'
        runs = [[results.get(f'{name}_{fold}_0',
                             lambda: jobs.run(fold, 0, 'commanded', minutes))
                 for fold in range(arguments.folds)]]
        known = np.mean([run['seconds'] for run in runs[0]]) / 60.0
        values = bag_ratios(runs, 'fine-tuned', IDENTIFIED)
        print_row(f'{known:.1f}' + ('' if minutes else ' (all)'),
                  *(with_interval(column) for column in values.T))
    print()


def forgetting(jobs: PendulumJobs, results: Results) -> None:
    """Print what it costs to keep what the model knows of its teacher."""
    print('double pendulum, commanded torque, first fold: ratio to the identified model, and mean '
          'distance from the teacher in free motion\n')
    print_row('', *(f'{1e3 * horizon:.0f} ms' for horizon in HORIZONS), 'from the teacher [rad]')
    print_row(*['---'] * (2 + len(HORIZONS)))
    recipe = Recipe()
    for name, options in {
            'small steps of the network': {},
            'the network as it is': {'recipe': replace(recipe, network_rate=0.0)},
            'large steps of the network': {'recipe': replace(recipe, network_rate=recipe.rate)},
            'small steps, a little of the teacher': {'teacher_weight': 0.01},
            'small steps, more of the teacher': {'teacher_weight': 0.05}}.items():
        file = f'forgetting_{name.replace(" ", "_").replace(",", "")}' if options else (
            'pendulum_commanded')
        run = results.get(f'{file}_0_0', lambda: jobs.run(0, 0, 'commanded', **options))
        values = bag_ratios([[run]], 'fine-tuned', IDENTIFIED)
        print_row(name, *(with_interval(column) for column in values.T),
                  f'{run["teacher_error"]:.2f}')
    print()


def partial(jobs: PendulumJobs, results: Results, arguments) -> None:
    """Print what it costs when recordings lack something."""
    print('double pendulum, commanded torque, first fold: ratio to the identified model where '
          'the bags to learn from lack something\n')
    print_row('', *(f'{1e3 * horizon:.0f} ms' for horizon in HORIZONS))
    print_row(*['---'] * (1 + len(HORIZONS)))
    for kind in (None, *KINDS):
        def run():
            if kind is None:
                return jobs.run(0, 0, 'commanded')
            with TemporaryDirectory() as folder:
                copies = degrade(pendulum_bags(arguments.data), kind, Path(folder), 0)
                return jobs.run(0, 0, 'commanded', degraded=jobs.read(copies))
        name = 'pendulum_commanded' if kind is None else f'partial_{kind.replace(" ", "_")}'
        values = bag_ratios([[results.get(f'{name}_0_0', run)]], 'fine-tuned', IDENTIFIED)
        print_row(kind or 'nothing', *(with_interval(column) for column in values.T))
    print()


def cube(jobs: CubeJobs, results: Results, arguments) -> list[str]:
    """Print the table of the cube and return the bounds that are missed."""
    folds, seeds = range(arguments.folds), range(arguments.seeds)
    analytic = [results.get(f'cube_analytic_{fold}', lambda: jobs.analytic(fold))
                for fold in folds]
    learned = [[results.get(f'cube_{fold}_{seed}', lambda: jobs.learned(fold, seed))
                for fold in folds] for seed in seeds]
    errors = {name: np.concatenate([run['errors'][name] for run in analytic])
              for name in ('tuned', 'untuned')}
    for name in ('fine-tuned', 'before'):
        errors[name] = np.mean([np.concatenate([run['errors'][name] for run in runs])
                                for runs in learned], axis=0)
    print('cube, whole tosses: mean error, and ratio to the tuned contact\n')
    print_row('', 'position [m]', 'rotation [rad]', 'ratio', 'ratio')
    print_row(*['---'] * 5)
    tuned = errors['tuned'].mean(0)
    for name, label in (('fine-tuned', 'fine-tuned'), ('before', 'before'),
                        ('tuned', 'MuJoCo, tuned contact'),
                        ('untuned', 'MuJoCo, default contact, friction 0.18')):
        means = errors[name].mean(0)
        intervals = [interval(column, 0) for column in errors[name].T]
        print_row(label, *(f'{mean:.4f} ({low:.4f} to {high:.4f})'
                           for mean, (low, high) in zip(means, intervals)),
                  *(f'{ratio:.2f}' for ratio in means / tuned))
    longest = max(run['training_seconds'] for runs in learned for run in runs)
    print(f'\nlongest training {longest:.0f} s\n')
    ratios = errors['fine-tuned'].mean(0) / tuned
    missed = [f'cube, {what}: {ratio:.3f} of the tuned contact (bound {CUBE_BOUND:g})'
              for what, ratio in zip(('position', 'rotation'), ratios) if ratio > CUBE_BOUND]
    if longest > CUBE_TRAINING:
        missed.append(f'cube: a training took {longest:.0f} s (bound {CUBE_TRAINING:g} s)')
    return missed


def bag_ratios(runs: list[list[dict]], solver: str, reference: str, slow: str = '') -> np.ndarray:
    """
    Return the ratios (bags, horizons), mean over joints, and over `runs` of several seeds.

    Bags of the folds follow each other; those of 33 Hz, `slow`, are in each fold and averaged.
    """
    seeds = []
    for folds in runs:
        ratios = [np.mean(np.array(run[f'{slow}rms'][solver]) / run[f'{slow}rms'][reference], -1)
                  for run in folds]
        seeds.append(np.mean(ratios, axis=0) if slow else np.concatenate(ratios))
    return np.mean(seeds, axis=0)


def with_interval(values: np.ndarray) -> str:
    """Return the mean of `values` with its interval."""
    low, high = interval(values, 0)
    return f'{values.mean():.2f} ({low:.2f} to {high:.2f})'


def print_row(*cells: str) -> None:
    """Print a row of a Markdown table."""
    print('| ' + ' | '.join(cells) + ' |')


if __name__ == '__main__':
    sys.exit(main())
