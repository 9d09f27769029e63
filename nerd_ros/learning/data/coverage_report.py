# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Table and picture of what a trajectory file covers."""

from pathlib import Path

# A Figure of its own draws with Agg, without a window; pyplot would look for a display.
from matplotlib.figure import Figure
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from nerd_ros.learning.data.coverage import coverage, Coverage
from nerd_ros.learning.report import number, save

_COLUMNS = 4   # of the picture


def show(path: str | Path, output: str | Path, console: Console | None = None) -> None:
    """
    Print what a trajectory file covers, and draw it in the folder `output`.

    Raises TrajectoryError where the file cannot be used.
    """
    console = console or Console()
    result = coverage(path)
    console.print(coverage_text(result), soft_wrap=True)
    console.print(coverage_table(result))
    picture = Path(output) / f'{result.path.stem}_coverage.png'
    plot_coverage(result, picture)
    console.print(f'drawn in {picture}', markup=False, soft_wrap=True)


def coverage_text(result: Coverage) -> Text:
    """Return what file and trajectories are, a line each."""
    about, layout = result.about, result.layout
    lines = [f'{result.path}: {about["trajectories"]} trajectories of {about["steps"]} steps of '
             f'{layout.dt * 1e3:.4g} ms, robot {layout.robot}, seed {about["seed"]}',
             f'made by: {about["command"] or "-"}', '']
    lines.append('of the trajectories:')
    lines += [f'{share:7.1%} {name}' for name, share in result.shares.items()]
    return Text('\n'.join(lines))


def coverage_table(result: Coverage) -> Table:
    """Return the values of each input, 80 characters wide."""
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    table.add_column('input')
    for column in ('min', '1 %', 'median', '99 %', 'max', 'steps in\ncontact'):
        table.add_column(column, justify='right', no_wrap=True)
    for one in result.inputs:
        middle = np.percentile(one.values, (1, 50, 99)) if one.values.size else [np.nan] * 3
        table.add_row(escape(f'{one.name} [{one.unit}]'),
                      *(number(float(v) + 0.0) for v in (one.minimum, *middle, one.maximum)),
                      '' if one.touching is None else f'{one.touching:.1%}')
    return table


def plot_coverage(result: Coverage, path: Path) -> None:
    """Draw a histogram of each input; folders of `path` are made when missing."""
    rows = -(-len(result.inputs) // _COLUMNS)
    figure = Figure(figsize=(3.2 * _COLUMNS, 2.2 * rows), layout='constrained')
    panels = figure.subplots(rows, _COLUMNS, squeeze=False).flat
    for panel, one in zip(panels, result.inputs):
        # Rare values are what is looked for: on a linear axis they would not be seen.
        panel.hist(one.values, bins=60, log=bool(one.values.size), color='tab:blue')
        panel.set_xlabel(f'{one.name} [{one.unit}]', fontsize='small')
        panel.tick_params(labelsize='small')
    for panel in panels:
        panel.set_visible(False)
    save(figure, path)
