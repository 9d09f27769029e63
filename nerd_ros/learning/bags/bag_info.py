# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a recording holds for a robot: found, usable, dropped and why."""

from collections.abc import Sequence
from dataclasses import asdict
import json
from pathlib import Path

import numpy as np
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import BagRecording, read_bag
from nerd_ros.learning.bags.recording_plot import plot_recording
from nerd_ros.learning.bags.recording_summary import recording_summary
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.robot.urdf import read_urdf
from nerd_ros.scene.robot.urdf_joints import base_link
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.sdf import load_world

# A joint or base that is faster than this moves [rad/s, m/s].
_MOVING = 0.05


def bag_info(robot: str | RobotSpec, bags: Sequence[str | Path], topics: Topics = Topics(), *,
             output: str | Path | None = None, as_json: bool = False,
             console: Console | None = None) -> int:
    """
    Print what recordings hold for a robot; return how many of them cannot serve.

    Args:
        robot: name or path of the robot.
        bags: recordings, see `read_bag`.
        topics: topics to read instead of those that are found.
        output: folder for a picture of each, `<bag>_info.png`; None draws nothing.
        as_json: print a line of JSON for each recording, see `recording_summary_data`, instead of
            tables; of one that cannot serve `path`, `robot` and `error`, the sentence that says
            why.
        console: where to print.

    Raises the ValueError of a robot that cannot be used.
    """
    console = console or Console()
    spec = robot if isinstance(robot, RobotSpec) else RobotSpec.load(robot)
    layout = build_scene(spec, load_world('empty')).layout
    root = base_link(read_urdf(spec)) if layout.floating else ''
    failed = 0
    for path in bags:
        try:
            recording = read_bag(path, layout, topics, root)
        except BagError as error:
            failed += 1
            console.out(json.dumps({'path': str(path), 'robot': layout.robot, 'error': str(error)})
                        if as_json else error, highlight=False)
            continue
        picture = None
        if output is not None:
            picture = Path(output) / f'{recording.name}_info.png'
            plot_recording(recording, layout, picture)
        data = recording_summary_data(recording, layout)
        if as_json:
            data['picture'] = str(picture) if picture else None
            console.out(json.dumps(data, allow_nan=False), highlight=False)
            continue
        console.print(recording_summary(recording), soft_wrap=True)
        if data['joints']:
            console.print(_table(data))
        if picture:
            console.out(f'drawn in {picture}', highlight=False)
    return failed


def recording_summary_data(recording: BagRecording, layout: RobotLayout) -> dict:
    """
    Return what JSON can hold of a recording.

    `path`, `name`, `robot`; `span` from first to last message, `duration` that is usable, `dt`
    [s]; number of `segments` and the `longest_segment` [s]; `notes`, sentences; `topics`, an
    object with `states`, `commands`, `base`, '' where there is none. `joints` is a list of objects
    with `name`, `rate` [Hz], `lower`, `upper` (positions) and `fastest` [rad or m, and per s],
    `rms_effort_command` and `rms_effort_measured` [N m or N] and `latency` from one to the other
    [s], null where not known, `usable` [s] and `moving`, the share of that above 0.05 rad/s or
    m/s. `base` has `lower` and `upper` xyz [m], `fastest` [m/s], `fastest_turn` [rad/s] and
    `moving`; it is null for a fixed base.
    """
    segments = recording.segments
    joint_q = np.concatenate([s.joint_q for s in segments])
    joint_qd = np.concatenate([s.joint_qd for s in segments])
    efforts = {name: None if getattr(segments[0], name) is None else np.concatenate(
        [getattr(s, name) for s in segments]) for name in ('effort_command', 'effort_measured')}
    joints = []
    for k, (joint, q, qd) in enumerate(zip(layout.joints, layout.q_start, layout.qd_start)):
        position, speed = joint_q[:, q], np.abs(joint_qd[:, qd])
        joints.append({
            'name': joint.name, 'rate': recording.rates[k], 'lower': float(position.min()),
            'upper': float(position.max()), 'fastest': float(speed.max()),
            **{f'rms_{name}': None if values is None else _rms(values[:, k])
               for name, values in efforts.items()},
            'latency': recording.latency[k], 'usable': recording.duration,
            'moving': float((speed > _MOVING).mean())})
    base = None
    if layout.floating:
        speed, turn = (np.linalg.norm(joint_qd[:, part], axis=1)
                       for part in (slice(0, 3), slice(3, 6)))
        base = {'lower': joint_q[:, :3].min(0).tolist(), 'upper': joint_q[:, :3].max(0).tolist(),
                'fastest': float(speed.max()), 'fastest_turn': float(turn.max()),
                'moving': float(((speed > _MOVING) | (turn > _MOVING)).mean())}
    return {
        'path': recording.path, 'name': recording.name, 'robot': layout.robot,
        'span': recording.span, 'duration': recording.duration, 'dt': recording.dt,
        'segments': len(segments),
        'longest_segment': max(len(s.time) - 1 for s in segments) * recording.dt,
        'notes': list(recording.notes), 'topics': asdict(recording.topics), 'joints': joints,
        'base': base}


def _rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.mean(np.square(values))))


def _table(data: dict) -> Table:
    # Narrow enough for a terminal of 80 columns.
    table = Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 0, 0, 1),
                  caption='positions in rad or m; RMS of efforts, commanded and measured, in N m '
                  'or N')
    table.add_column('joint', overflow='fold')
    for column in ('rate\n\\[Hz]', 'min', 'max', 'top\nspeed', 'RMS\ncmd', 'RMS\nmeas',
                   'delay\n\\[ms]', 'usable\n\\[s]', 'moves'):
        table.add_column(column, justify='right', no_wrap=True)
    for joint in data['joints']:
        latency = joint['latency']
        table.add_row(
            escape(joint['name']), f'{joint["rate"]:.3g}', f'{joint["lower"]:.2f}',
            f'{joint["upper"]:.2f}', f'{joint["fastest"]:.1f}',
            _effort(joint['rms_effort_command']), _effort(joint['rms_effort_measured']),
            '-' if latency is None else f'{latency * 1e3:.1f}', f'{joint["usable"]:.1f}',
            f'{joint["moving"]:.0%}')
    return table


def _effort(value: float | None) -> str:
    return '-' if value is None else f'{value:.3g}'
