# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables and picture of the evaluation of a model against its teacher."""

from pathlib import Path

# A Figure of its own draws with Agg, without a window; pyplot would look for a display.
from matplotlib.figure import Figure
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from nerd_ros.learning.evaluation.accuracy import groups, GROUPS, quantities
from nerd_ros.learning.evaluation.free_accuracy import FLOOR, NEURAL, TOLERANCE, WORLDS
from nerd_ros.learning.report import number, save

_STYLES = {NEURAL: {'color': 'tab:blue'}, FLOOR: {'color': 'tab:gray', 'linestyle': '--'}}


def evaluation_tables(evaluation) -> list[Table | Text]:
    """Return an `Evaluation` for the terminal, 80 characters wide."""
    layout = evaluation.layout
    return [
        _title(f'{layout.robot}: error of one step of {layout.dt * 1e3:.4g} ms, each from the '
               'motion of the teacher'),
        _one_step_table(evaluation),
        _title(f'Distance from the teacher in free motion, {evaluation.count} rollouts each, '
               f'seed {evaluation.seed}'),
        _free_table(evaluation),
        _title('Of these rollouts'),
        _rollout_table(evaluation),
        Text('energy drift: difference of mechanical energy from the teacher at the end, as a '
             'share of what the rollout has\n'),
        _divergence_text(evaluation),
        _title('Computing time of one simulated second'),
        _cost_table(evaluation)]


def _title(text: str) -> Text:
    return Text(text, style='bold')


def _table(*columns: str) -> Table:
    table = Table(box=SIMPLE_HEAD, collapse_padding=True, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(escape(column), justify='right' if index else 'left', no_wrap=True)
    return table


def _one_step_table(evaluation) -> Table:
    table = _table('', 'position\nmean', '\n99 % below', 'velocity\nmean', '\n99 % below')
    errors = evaluation.one_step
    for k, quantity in enumerate(quantities(evaluation.layout)):
        cells = []
        for values, unit in ((errors.position, quantity.unit),
                             (errors.velocity, f'{quantity.unit}/s')):
            cells += [f'{values[:, k].mean():.3g} {unit}',
                      f'{np.percentile(values[:, k], 99):.3g} {unit}']
        table.add_row(escape(quantity.name), *cells)
    return table


def _free_table(evaluation) -> Table:
    table = _table('mean over time up to', *(f'{horizon:g} s' for horizon in evaluation.horizons),
                   'at end', 'card')
    for motion in evaluation.free:
        table.add_row(f'{motion.condition.name}:')
        neural, floor = motion.distances[NEURAL], motion.distances[FLOOR]
        for g, group in enumerate(groups(evaluation.layout)):
            what, unit = GROUPS[group]
            for label, distances, average, name in (
                    (f'{what} [{unit}]', neural, np.mean, 'mean'),
                    ('  median of rollouts', neural, np.median, 'median'),
                    (f'  {FLOOR}', floor, np.mean, 'floor')):
                claimed = evaluation.claimed('free_running', motion.condition.key, group, name)
                table.add_row(escape(f'  {label}'),
                              *map(number, average(distances.mean[:, :, g], axis=0)),
                              number(average(distances.last[:, -1, g])), number(claimed))
    return table


def _rollout_table(evaluation) -> Table:
    table = _table('share that', f'ends within\n{TOLERANCE:g} rad and m', 'touches\nground',
                   'the guard\nstops', 'energy\ndrift', '95 %\nbelow')
    for motion in evaluation.free:
        drift = motion.energy_drift
        table.add_row(motion.condition.name, f'{motion.within.mean():.1%}',
                      f'{motion.touching:.0%}', f'{motion.stopped / len(motion.within):.2%}',
                      *(['-', '-'] if drift is None else
                        [f'{np.median(drift):.2%}', f'{np.percentile(drift, 95):.2%}']))
    return table


def _divergence_text(evaluation) -> Text:
    lines = []
    for part in evaluation.divergence:
        claimed = [evaluation.claimed('divergence', part.key, name)
                   for name in ('diverged', 'rollouts')]
        lines.append(f'{part.name}: {part.diverged} of {part.rollouts} rollouts of '
                     f'{part.seconds:g} s diverged'
                     + ('' if None in claimed else f'; card: {claimed[0]} of {claimed[1]}'))
    if lines:
        lines.append('(not finite, or faster than twice what 99 % of the rollouts of the teacher '
                     'stay below, unless it is that fast under the same efforts)\n')
    return Text('\n'.join(lines))


def _cost_table(evaluation) -> Table:
    table = _table('', 'one robot', f'per robot of {min(evaluation.count, WORLDS)}')
    for name, value in evaluation.cost.items():
        table.add_row(name, f'{number(value.one * 1e3)} ms', f'{number(value.many * 1e3)} ms')
    return table


def plot_evaluation(evaluation, path: Path) -> None:
    """
    Draw the figures of an `Evaluation`; folders of `path` are made when missing.

    A column for each condition: mean distance over time, a row per group, and the shares of
    rollouts by their distance and energy drift at the end. Below them one-step errors, divergence
    and computing time.
    """
    names, free = groups(evaluation.layout), evaluation.free
    rows = len(names) + 1
    figure = Figure(figsize=(3.6 * max(3, len(free)), 2.6 * (rows + 1)), layout='constrained')
    upper, lower = figure.subfigures(2, 1, height_ratios=(rows, 1))
    axes = upper.subplots(rows, len(free), squeeze=False, sharey='row')
    for column, motion in enumerate(free):
        axes[0, column].set_title(motion.condition.name)
        for g, group in enumerate(names):
            _plot_curves(axes[g, column], motion, g, evaluation.layout.dt)
            axes[g, 0].set_ylabel(f'mean distance,\n{GROUPS[group][0]} [{GROUPS[group][1]}]')
        _plot_shares(axes[-1, column], motion, names)
    axes[-1, 0].set_ylabel('share of rollouts\nbelow, at the end')
    axes[0, 0].legend(loc='best', fontsize='small')
    left, middle, right = lower.subplots(1, 3)
    _plot_one_step(left, evaluation)
    _plot_bars(middle, 'diverged', {part.name: part.diverged / part.rollouts
                                    for part in evaluation.divergence}, '{:.2%}')
    _plot_bars(right, 'computing time of one\nsimulated second, one robot',
               {name: cost.one * 1e3 for name, cost in evaluation.cost.items()}, '{:.3g} ms')
    save(figure, path)


def _plot_curves(panel, motion, g: int, dt: float) -> None:
    for name, distances in motion.distances.items():
        curve = distances.curve[:, g]
        panel.semilogy(np.arange(1, len(curve) + 1) * dt, curve, label=name, **_STYLES[name])
    panel.set_xlabel('time [s]')


def _plot_shares(panel, motion, names) -> None:
    for g, group in enumerate(names):
        _plot_distribution(panel, motion.distances[NEURAL].last[:, -1, g],
                           f'{GROUPS[group][0]} [{GROUPS[group][1]}]')
    if motion.energy_drift is not None:
        _plot_distribution(panel, motion.energy_drift, 'energy drift')
    panel.axvline(TOLERANCE, color='0.8', linewidth=0.8, zorder=0)
    panel.set_xscale('log')
    panel.set_xlabel('distance, or share of the energy')
    panel.legend(loc='best', fontsize='small')


def _plot_distribution(panel, values, label: str) -> None:
    # Of a step function; a logarithmic axis has no place for 0.
    panel.step(np.sort(np.maximum(values, 1e-6)), np.arange(1, len(values) + 1) / len(values),
               where='post', label=label)


def _plot_one_step(panel, evaluation) -> None:
    labels = [f'{quantity.name} [{quantity.unit}]' for quantity in quantities(evaluation.layout)]
    for kind, color in (('position', 'tab:blue'), ('velocity', 'tab:orange')):
        errors = getattr(evaluation.one_step, kind)
        panel.semilogy(labels, errors.mean(0), 'o', color=color,
                       label=kind + ('' if kind == 'position' else ' [per s]'))
        panel.semilogy(labels, np.percentile(errors, 99, axis=0), '_', color=color, markersize=12)
    panel.set_title('error of one step:\nmean (dot), 99 % below (bar)', fontsize='medium')
    panel.tick_params(axis='x', labelrotation=0 if len(labels) < 4 else 60, labelsize='small')
    panel.legend(loc='best', fontsize='small')


def _plot_bars(panel, title: str, values: dict[str, float], form: str) -> None:
    bars = panel.barh(list(values), list(values.values()))
    panel.bar_label(bars, [form.format(value) for value in values.values()], padding=3)
    panel.set_xlim(0.0, 1.35 * max(values.values(), default=0.0) or 1.0)
    panel.set_title(title, fontsize='medium')
