# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A picture of a recording: what is usable of it, and where it was cut."""

from pathlib import Path

# A Figure of its own draws with Agg, without a window; pyplot would look for a display.
from matplotlib.figure import Figure
import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.recording import BagRecording
from nerd_ros.learning.report import save

_MOST_POINTS = 20_000    # of a line
_MOST_GAPS = 200         # that are shaded, the longest


def plot_recording(recording: BagRecording, layout: RobotLayout, path: Path) -> None:
    """
    Draw position, velocity and effort of each joint and of a floating base over time.

    What was dropped is shaded; folders of `path` are made when missing.
    """
    rows = len(layout.joints) + (2 if layout.floating else 0)
    titles = ('position', 'velocity', 'effort')[:3 if layout.joints else 2]
    figure = Figure(figsize=(15.0, max(3.0, 2.0 * rows)), layout='constrained')
    axes = figure.subplots(rows, len(titles), squeeze=False, sharex=True)
    time = _joined(recording, lambda s: s.time[:, None])[:, 0]
    joint_q, joint_qd = (_joined(recording, lambda s: getattr(s, name))
                         for name in ('joint_q', 'joint_qd'))
    efforts = _efforts(recording)
    first = 0
    if layout.floating:
        _plot_base(axes[:2], time, joint_q, joint_qd)
        first = 2
    for k, joint in enumerate(layout.joints):
        unit = 'm' if joint.type == 'prismatic' else 'rad'
        row = axes[first + k]
        row[0].plot(time, joint_q[:, layout.q_start[k]], linewidth=0.8)
        row[1].plot(time, joint_qd[:, layout.qd_start[k]], linewidth=0.8)
        for name, values in efforts.items():
            row[2].plot(time, values[:, k], linewidth=0.8, label=name)
        row[0].set_ylabel(f'{joint.name} [{unit}]')
        row[1].set_ylabel(f'[{unit}/s]')
        row[2].set_ylabel('[N]' if unit == 'm' else '[N m]')
    for column, title in enumerate(titles):
        axes[0, column].set_title(title)
        axes[-1, column].set_xlabel('time [s]')
    if layout.joints and efforts:
        axes[first, 2].legend(loc='best', fontsize='small')
    for start, end in _gaps(recording):
        for axis in axes.flat:
            axis.axvspan(start, end, color='tab:red', alpha=0.15, linewidth=0)
    axes[0, 0].set_xlim(0.0, recording.span)
    figure.suptitle(f'{recording.name}: {recording.duration:.1f} of {recording.span:.1f} s usable '
                    'for ' + layout.robot + ', the rest shaded')
    save(figure, path)


def _plot_base(axes, time: np.ndarray, joint_q: np.ndarray, joint_qd: np.ndarray) -> None:
    for axis, values, labels, name in (
            (axes[0, 0], joint_q[:, :3], 'xyz', 'base [m]'),
            (axes[0, 1], joint_qd[:, :3], 'xyz', '[m/s]'),
            (axes[1, 0], joint_q[:, 3:7], 'xyzw', 'base, quaternion'),
            (axes[1, 1], joint_qd[:, 3:6], 'xyz', '[rad/s]')):
        for values_, label in zip(values.T, labels):
            axis.plot(time, values_, linewidth=0.8, label=label)
        axis.set_ylabel(name)
        axis.legend(loc='best', fontsize='x-small')
    for axis in axes[:, 2:].flat:
        axis.set_axis_off()


def _joined(recording: BagRecording, values) -> np.ndarray:
    """Return the values of all segments, thinned out, with NaN between that breaks the line."""
    total = sum(len(s.time) for s in recording.segments)
    stride = max(1, total // _MOST_POINTS)
    pieces = []
    for segment in recording.segments:
        rows = values(segment)[::stride]
        pieces += [rows, np.full((1, rows.shape[1]), np.nan)]
    return np.concatenate(pieces)


def _efforts(recording: BagRecording) -> dict[str, np.ndarray]:
    return {label: _joined(recording, lambda s: getattr(s, name))
            for label, name in (('commanded', 'effort_command'), ('measured', 'effort_measured'))
            if getattr(recording.segments[0], name) is not None}


def _gaps(recording: BagRecording) -> list[tuple[float, float]]:
    """Return start and end of what was dropped, the longest of it."""
    starts = [0.0, *(float(s.time[-1]) for s in recording.segments)]
    ends = [*(float(s.time[0]) for s in recording.segments), recording.span]
    gaps = [(a, b) for a, b in zip(starts, ends) if b - a > recording.dt]
    return sorted(gaps, key=lambda gap: gap[0] - gap[1])[:_MOST_GAPS]
