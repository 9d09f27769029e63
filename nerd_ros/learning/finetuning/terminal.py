# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""How a fine-tuning shows in a terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
import math

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress as Bar, TextColumn
from rich.table import Table

from nerd_ros.learning.finetuning.progress import Kept, Progress
from nerd_ros.learning.report import number


@contextmanager
def progress_bar() -> Iterator[Callable[[Progress], None]]:
    """Show a bar on the standard error, moved by the function that is provided."""
    columns = (TextColumn('{task.description}'), BarColumn(), TextColumn('{task.fields[told]}'))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task('reading', total=1.0, told='')

        def show(progress: Progress) -> None:
            bar.update(task, completed=progress.fraction, description=progress.phase,
                       told=_told(progress))
        yield show


def show_result(kept: Kept) -> None:
    """Print the errors, the verdict, and where the model is."""
    outcome, console = kept.outcome, Console()
    table = Table(box=SIMPLE_HEAD, pad_edge=False, title='Errors on the test recordings (rad, m)')
    for name in ('before', 'fine-tuned', 'analytic solver', 'hold last state'):
        table.add_column(name, justify='right')
    table.add_row(*map(number, (outcome.error_before, outcome.error_after,
                                outcome.error_analytic, outcome.error_hold)))
    console.print(table)
    lines = [f'{outcome.reason[:1].upper()}{outcome.reason[1:]}.', f'report: {kept.report}']
    if not kept.version:
        lines.append(f'model: {kept.folder}')
    elif not kept.activated:
        lines.append(f'model {kept.version} is kept, but not in use')
    console.print(escape('\n'.join(lines)), soft_wrap=True, highlight=False)


def _told(progress: Progress) -> str:
    told = []
    if math.isfinite(progress.remaining):
        minutes, seconds = divmod(round(progress.remaining), 60)
        told.append(f'{minutes}:{seconds:02d} left')
    if math.isfinite(progress.loss):
        told.append(f'loss {progress.loss:.3g}')
    if math.isfinite(progress.error):
        told.append(f'error {progress.error:.2f} times that before')
    return ', '.join(told)
