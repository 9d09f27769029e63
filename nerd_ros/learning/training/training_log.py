# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a training tells as it goes on: a progress bar, a line per check, TensorBoard events."""

from collections.abc import Iterable
from functools import cached_property
from pathlib import Path
import time

from torch.utils.tensorboard import SummaryWriter
from tqdm import tqdm

from nerd_ros.learning.training.validation import Checked


class TrainingLog:
    """
    Tells of the steps that are left to a training; use as a context manager.

    Tags of the events in `folder`, by the number of steps done:

    | tag | meaning |
    |---|---|
    | loss/training, loss/validation | one-step error: of normalised increments, without unit |
    | free_running/<condition> | mean distance from the teacher in free motion [rad, m] |
    | learning_rate/<optimiser> | |
    | steps_per_second | without the checks |

    What an interrupted training wrote of steps that are taken again now does not show.
    """

    def __init__(self, folder: Path, steps: range, progress: bool):
        self._folder, self._first = folder, steps.start
        self._bar = tqdm(steps, initial=steps.start, total=steps.stop, disable=not progress,
                         unit='step', desc='compiling')
        self._began = self._since = time.monotonic()
        self._done, self._losses = steps.start, []

    @cached_property
    def _writer(self) -> SummaryWriter:
        return SummaryWriter(self._folder, purge_step=self._first + 1)

    @property
    def steps(self) -> Iterable[int]:
        """The steps, counted from 0; going through them moves the progress bar."""
        return self._bar

    def doing(self, what: str) -> None:
        """Say what is going on, apart from steps; nothing with ''."""
        self._bar.set_description(what)

    def training(self, done: int, loss: float, rates: dict[str, float]) -> None:
        """Log the mean loss since the last call and the learning rates, after `done` steps."""
        now = time.monotonic()
        scalars = {'loss/training': loss,
                   'steps_per_second': (done - self._done) / (now - self._since),
                   **{f'learning_rate/{name}': rate for name, rate in rates.items()}}
        self._write(scalars, done)
        self.doing('')
        self._bar.set_postfix(loss=f'{loss:.4g}', refresh=False)
        self._losses.append(loss)
        self._done, self._since = done, now

    def validation(self, done: int, checked: Checked) -> None:
        """Log and print the errors of a check after `done` steps."""
        self._write({'loss/validation': checked.one_step,
                     **{f'free_running/{name}': error
                        for name, error in checked.free_running.items()}}, done)
        self._writer.flush()
        row = {'step': done, 'loss': sum(self._losses) / len(self._losses),
               'one_step': checked.one_step, **checked.free_running,
               'seconds': round(time.monotonic() - self._began)}
        self._bar.write('  '.join(f'{name} {value if isinstance(value, int) else f"{value:.5g}"}'
                                  for name, value in row.items()))
        self._losses.clear()
        self.doing('')
        self._since = time.monotonic()

    def _write(self, scalars: dict[str, float], done: int) -> None:
        for tag, value in scalars.items():
            self._writer.add_scalar(tag, value, done)

    def __enter__(self) -> 'TrainingLog':
        return self

    def __exit__(self, *exc_info) -> None:
        self._bar.close()
        if '_writer' in vars(self):
            self._writer.close()
