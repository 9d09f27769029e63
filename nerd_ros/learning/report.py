# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal and pictures of evaluations."""

from collections.abc import Sequence
from pathlib import Path

# A Figure of its own draws with Agg, without a window; pyplot would look for a display.
from matplotlib.figure import Figure
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from nerd_ros.dynamics.layout import JointLayout

_COLORS = {'neural': 'tab:blue', 'mujoco': 'tab:orange', 'featherstone': 'tab:green'}
_SHOWN_WINDOWS = 4


def recording_summary(recording) -> Text:
    """Return what was read of a `BagRecording`, a line each."""
    lines = [f'{recording.path}: {recording.duration:.2f} s in {len(recording.segments)} '
             f'segments at {recording.dt * 1e3:g} ms']
    return Text('\n'.join([*lines, *(f'  {note}' for note in recording.notes)]))


def bag_table(evaluation, horizons: Sequence[float]) -> Table:
    """Return a table of the RMS error of each joint and solver after each horizon [s]."""
    layout = evaluation.layout
    table = Table(title=f'{layout.robot}: RMS error of the simulated motion, '
                        f'{evaluation.effort} effort', box=SIMPLE_HEAD)
    table.add_column('solver')
    table.add_column('joint')
    for horizon in horizons:
        table.add_column(f'{_duration(horizon)}\n{evaluation.num_windows(horizon)} windows',
                         justify='right')
    for solver in evaluation.motion:
        rms = evaluation.rms(solver)
        for k, joint in enumerate(layout.joints):
            table.add_row(solver if k == 0 else '', escape(_name(joint)),
                          *(_number(rms[round(horizon / layout.dt), k]) for horizon in horizons),
                          end_section=joint is layout.joints[-1])
    stopped = [f'{solver}: {count}' for solver, count in evaluation.stopped.items() if count]
    if stopped:
        table.caption = 'windows in which the guard stopped the robot: ' + ', '.join(stopped)
    return table


def evaluation_tables(evaluation) -> list[Table | Text]:
    """Return an `Evaluation` for the terminal: passive motion, divergence, cost."""
    # More columns than this do not fit into a terminal of 80 characters.
    joints = evaluation.layout.joints if len(evaluation.layout.joints) <= 3 else ()
    steps = len(next(iter(evaluation.passive['with ground'].error.values())))
    table = Table(title=f'{evaluation.layout.robot}: mean distance from the teacher over '
                        f'{steps * evaluation.layout.dt:.2f} s of passive motion, '
                        f'{evaluation.count} rollouts each',
                  box=SIMPLE_HEAD, collapse_padding=True)
    table.add_column('motion', no_wrap=True)
    for name in (*map(_name, joints), 'mean', 'median', 'at end', 'in card'):
        table.add_column(escape(name), justify='right')
    for kind, passive in evaluation.passive.items():
        table.add_row(f'{kind}:')
        claimed = evaluation.card_error(kind)
        for row, (name, error) in enumerate(passive.error.items()):
            table.add_row(f'  {name}', *map(_number, error.mean(0)[:len(joints)]),
                          _number(passive.mean(name)), _number(passive.median(name)),
                          _number(error[-1].mean()), '' if row else _number(claimed),
                          end_section=row == len(passive.error) - 1)
    lines = [f'{kind}: {passive.end_share:.0%} of the rollouts end within 0.1 rad or m, '
             f'{passive.touching:.0%} touch the ground'
             + (f', the guard stopped {passive.stopped}' if passive.stopped else '')
             for kind, passive in evaluation.passive.items()]
    divergence = evaluation.divergence
    if divergence is not None:
        limits = ', '.join(f'{limit:.0f}' for limit in divergence.speed_limit)
        lines.append(f'random efforts: {divergence.diverged} of {divergence.rollouts} rollouts of '
                     f'{divergence.steps} steps diverged (not finite, or faster than twice the '
                     f'99.9th percentile of the teacher: {limits} rad/s or m/s); in the card: '
                     + ' of '.join(map(_number, evaluation.card_divergence())))
    cost = Table(title=escape('computing time of one simulated second [ms]'), box=SIMPLE_HEAD)
    for name in ('solver', 'one robot', f'per robot of {evaluation.count}'):
        cost.add_column(name, justify='left' if name == 'solver' else 'right')
    for name, value in evaluation.cost.items():
        cost.add_row(name, _number(value.one * 1e3), _number(value.many * 1e3))
    return [table, Text('\n'.join(lines)), cost]


def plot_evaluation(evaluation, path: Path) -> None:
    """Draw the mean distance from the teacher over time, a panel with and one without ground."""
    figure = Figure(figsize=(9, 3.6), layout='constrained')
    axes = figure.subplots(1, len(evaluation.passive), sharey=True)
    for panel, (kind, passive) in zip(axes, evaluation.passive.items()):
        for name, error in passive.error.items():
            time = np.arange(1, len(error) + 1) * evaluation.layout.dt
            panel.semilogy(time, error.mean(1), label=name)
        panel.set_title(kind)
        panel.set_xlabel('time [s]')
    axes[0].set_ylabel('mean distance from the teacher\n[rad or m]')
    axes[0].legend(loc='best', fontsize='small')
    _save(figure, path)


def plot_bag(evaluation, horizons: Sequence[float], path: Path) -> None:
    """
    Draw how the error grows and, for some windows, simulated against recorded motion.

    The windows are spread over the recordings; folders of `path` are made when missing.
    """
    windows, joints = evaluation.windows, evaluation.layout.joints
    whole = np.flatnonzero(windows.length == windows.length.max())
    shown = whole[np.linspace(0, len(whole) - 1, _SHOWN_WINDOWS + 2).round().astype(int)[1:-1]]
    figure = Figure(figsize=(3.4 * (1 + _SHOWN_WINDOWS), 2.8 * len(joints)), layout='constrained')
    axes = figure.subplots(len(joints), 1 + _SHOWN_WINDOWS, squeeze=False, sharex=True)
    time = np.arange(windows.joint_q.shape[1]) * evaluation.layout.dt
    for solver in evaluation.motion:
        style = {'label': solver, 'color': _COLORS.get(solver, 'tab:gray')}
        rms = evaluation.rms(solver)
        for k in range(len(joints)):
            axes[k, 0].semilogy(time[1:], rms[1:, k], **style)
            for column, window in enumerate(shown, 1):
                axes[k, column].plot(time, evaluation.motion[solver][window, :, k], **style)
    for k, joint in enumerate(joints):
        axes[k, 0].set_ylabel(f'RMS error, {_name(joint)}')
        axes[k, 1].set_ylabel(_name(joint))
        for horizon in horizons:
            axes[k, 0].axvline(horizon, color='0.8', linewidth=0.8, zorder=0)
        for column, window in enumerate(shown, 1):
            end = windows.length[window] + 1
            true = windows.joint_q[window, :end, k]
            axes[k, column].plot(time[:end], true, color='black', label='recorded')
            # A solver that runs away must not flatten the motion that it is compared with.
            margin = max(0.5, 0.5 * np.ptp(true))
            axes[k, column].set_ylim(true.min() - margin, true.max() + margin)
    axes[0, 0].set_title(f'{len(windows.length)} windows')
    for column, window in enumerate(shown, 1):
        recording = evaluation.recordings[windows.source[window]]
        axes[0, column].set_title(f'{recording.name}, {windows.start[window]:.1f} s')
        axes[-1, column].set_xlabel('time in the window [s]')
    axes[-1, 0].set_xlabel('time in the window [s]')
    axes[0, 1].legend(loc='best', fontsize='small')
    _save(figure, path)


def _save(figure, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def _name(joint: JointLayout) -> str:
    return f'{joint.name} [{"m" if joint.type == "prismatic" else "rad"}]'


def _duration(seconds: float) -> str:
    return f'{seconds * 1e3:.0f} ms' if seconds < 1.0 else f'{seconds:g} s'


def _number(value: float | None) -> str:
    """Return an error or a count; errors below 0.0001 matter to nobody."""
    if value is None or not np.isfinite(value):
        return '-'
    return f'{value:.4f}' if 0 < abs(value) < 1 else f'{value:.4g}'
