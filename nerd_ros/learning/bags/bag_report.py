# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Tables for the terminal and pictures of the comparison with recordings."""

from collections.abc import Sequence
from pathlib import Path

# A Figure of its own draws with Agg, without a window; pyplot would look for a display.
from matplotlib.figure import Figure
import numpy as np
from rich.box import SIMPLE_HEAD
from rich.markup import escape
from rich.table import Table

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.evaluation.accuracy import position_errors, quantities
from nerd_ros.learning.report import duration, number, save

_COLORS = {'neural': 'tab:blue', 'mujoco': 'tab:orange', 'featherstone': 'tab:green'}
_SHOWN_WINDOWS = 4


def bag_table(evaluation, horizons: Sequence[float]) -> Table:
    """Return a table of the RMS error of base, joints and solvers after each horizon [s]."""
    layout = evaluation.layout
    names = _names(layout)
    table = Table(title=f'{layout.robot}: RMS error of the simulated motion, '
                        f'{evaluation.effort} effort, n windows', box=SIMPLE_HEAD)
    table.add_column('solver')
    table.add_column('of', no_wrap=True)
    for horizon in horizons:
        table.add_column(f'{duration(horizon)}\nn = {evaluation.num_windows(horizon)}',
                         justify='right')
    for solver in evaluation.motion:
        rms = evaluation.rms(solver)
        for k, name in enumerate(names):
            table.add_row(solver if k == 0 else '', escape(name),
                          *(number(rms[round(horizon / layout.dt), k]) for horizon in horizons),
                          end_section=k == len(names) - 1)
    stopped = [f'{solver}: {count}' for solver, count in evaluation.stopped.items() if count]
    if stopped:
        table.caption = 'windows in which the guard stopped the robot: ' + ', '.join(stopped)
    return table


def plot_bag(evaluation, horizons: Sequence[float], path: Path) -> None:
    """
    Draw how the error grows and, for some windows, simulated against recorded motion.

    Of a floating base the distance from where the window starts is shown. The windows are spread
    over the recordings; folders of `path` are made when missing.
    """
    windows, layout = evaluation.windows, evaluation.layout
    names = _names(layout)
    whole = np.flatnonzero(windows.length == windows.length.max())
    shown = whole[np.linspace(0, len(whole) - 1, _SHOWN_WINDOWS + 2).round().astype(int)[1:-1]]
    figure = Figure(figsize=(3.4 * (1 + _SHOWN_WINDOWS), 2.8 * len(names)), layout='constrained')
    axes = figure.subplots(len(names), 1 + _SHOWN_WINDOWS, squeeze=False, sharex=True)
    time = np.arange(windows.joint_q.shape[1]) * layout.dt
    for solver in evaluation.motion:
        style = {'label': solver, 'color': _COLORS.get(solver, 'tab:gray')}
        rms = evaluation.rms(solver)
        moved = _coordinates(layout, evaluation.motion[solver][shown])
        for k in range(len(names)):
            axes[k, 0].semilogy(time[1:], rms[1:, k], **style)
            for column in range(1, len(shown) + 1):
                axes[k, column].plot(time, moved[column - 1, :, k], **style)
    recorded = _coordinates(layout, windows.joint_q[shown])
    for k, name in enumerate(names):
        axes[k, 0].set_ylabel(f'RMS error, {name}')
        axes[k, 1].set_ylabel(name)
        for horizon in horizons:
            axes[k, 0].axvline(horizon, color='0.8', linewidth=0.8, zorder=0)
        for column, window in enumerate(shown, 1):
            end = windows.length[window] + 1
            true = recorded[column - 1, :end, k]
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
    save(figure, path)


def _names(layout: RobotLayout) -> list[str]:
    return [f'{quantity.name} [{quantity.unit}]' for quantity in quantities(layout)]


def _coordinates(layout: RobotLayout, joint_q: np.ndarray) -> np.ndarray:
    """Distances of the base from its first place, and joint positions (W, T+1, K), to draw."""
    shown = position_errors(layout, joint_q, np.broadcast_to(joint_q[:, :1], joint_q.shape))
    starts = [q for joint, q in zip(layout.joints, layout.q_start) if joint.mimic is None]
    shown[..., shown.shape[-1] - len(starts):] = joint_q[..., starts]
    return shown
