# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which topics of a recording are a robot's states and commands, and at which times."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_files import BagContent, BagError, JointMessage

# Header stamps of states and commands that differ more than this [s] are from two clocks.
_CLOCK_OFFSET = 0.1
# Values above this, in any unit, are taken for damage.
_LARGEST = 1e9


@dataclass
class JointSeries:
    """Messages of one topic as arrays: `time (N,)` [s], values `(N, joints)`, NaN where none."""

    topic: str
    received: np.ndarray
    stamp: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    time: np.ndarray | None = None

    def keep(self, rows: np.ndarray) -> None:
        """Drop all messages but those of `rows`."""
        for name in ('received', 'stamp', 'position', 'velocity', 'effort', 'time'):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, value[rows])


def find_states(path: str | Path, layout: RobotLayout, content: BagContent,
                notes: list[str]) -> JointSeries:
    """
    Messages of the topic whose positions hold all joints of the robot.

    What was chosen or left out is added to `notes`; raises BagError where no topic fits.
    """
    if not content.joint_states:
        others = ', '.join(f'{topic} [{kind}]'
                           for topic, kind in sorted(content.other_topics.items())[:8])
        raise BagError(f'{path}: no sensor_msgs/JointState topic; '
                       + (f'it holds {others}' if others else 'it holds no topic at all'))
    found = {}
    for topic, messages in content.joint_states.items():
        whole = [m for m in messages
                 if len(m.position) and set(layout.joint_names) <= set(m.names)]
        if whole and not _is_command_topic(topic):
            found[topic] = whole
    if not found:
        raise BagError(f'{path}: no JointState topic has the positions of all joints of '
                       f'{layout.robot} ({", ".join(layout.joint_names)}); it has '
                       + _describe_topics(content.joint_states))
    topic = max(found, key=lambda name: (name.endswith('joint_states'), len(found[name])))
    others = sorted(set(found) - {topic})
    if others:
        notes.append(f'{", ".join(others)} would fit as states too; {topic} was taken')
    partial = len(content.joint_states[topic]) - len(found[topic])
    if partial:
        notes.append(f'{partial} messages of {topic} without all joints or positions were left '
                     'out')
    extra = sorted({n for m in found[topic] for n in m.names} - set(layout.joint_names))
    if extra:
        notes.append(f'joints of {topic} that {layout.robot} does not have were left out: '
                     + ', '.join(extra))
    return _series(topic, found[topic], layout.joint_names)


def find_commands(layout: RobotLayout, content: BagContent, state_topic: str,
                  notes: list[str]) -> JointSeries | None:
    """
    Messages of the topic that commands efforts of the robot's joints, None where there is none.

    A topic that has positions too and is not named a command may be measured: it is not taken.
    """
    found = {}
    for topic, messages in content.joint_states.items():
        useful = [m for m in messages if len(m.effort) and set(layout.joint_names) & set(m.names)]
        commands = _is_command_topic(topic) or not any(len(m.position) for m in useful)
        if useful and commands and topic != state_topic:
            found[topic] = useful
    if not found:
        notes.append('no topic with commanded efforts')
        return None
    topic = max(found, key=lambda name: (name.endswith('joint_commands'),
                                         _is_command_topic(name), len(found[name])))
    others = sorted(set(found) - {topic})
    if others:
        notes.append(f'{", ".join(others)} would fit as commands too; {topic} was taken')
    series = _series(topic, found[topic], layout.joint_names)
    finite = np.isfinite(series.effort)
    known = finite.any(0)
    if not known.any():
        notes.append(f'the efforts of {topic} are not finite: no commands')
        return None
    if not known.all():
        notes.append(f'{topic} never commands '
                     + ', '.join(n for n, k in zip(layout.joint_names, known) if not k)
                     + ': zero effort')
    dropped = len(finite) - int(finite.any(1).sum())
    if dropped:
        notes.append(f'{dropped} messages of {topic} with efforts that are not finite were left '
                     'out')
        series.keep(finite.any(1))
    return series


def _is_command_topic(topic: str) -> bool:
    name = topic.rsplit('/', 1)[-1]
    return 'command' in name or 'cmd' in name


def _describe_topics(topics: dict[str, list[JointMessage]]) -> str:
    parts = []
    for topic, messages in sorted(topics.items()):
        names = sorted({name for message in messages for name in message.names})
        parts.append(f'{topic} ({", ".join(names[:12]) or "no joints"})')
    return ', '.join(parts)


def _series(topic: str, messages: list[JointMessage], names: tuple[str, ...]) -> JointSeries:
    """Return messages as arrays in the order of `names`."""
    values = np.full((3, len(messages), len(names)), np.nan)
    columns = {}
    for row, message in enumerate(messages):
        # The order of joints rarely changes within a topic, so look it up once.
        if message.names not in columns:
            pairs = [(k, message.names.index(n)) for k, n in enumerate(names)
                     if n in message.names]
            columns[message.names] = tuple(np.array(pairs).T)
        mine, theirs = columns[message.names]
        for field, data in enumerate((message.position, message.velocity, message.effort)):
            if len(data):
                values[field, row, mine] = data[theirs]
    # No joint is there: garbage whose differences may overflow.
    values[np.abs(values) > _LARGEST] = np.nan
    return JointSeries(topic, np.array([m.received for m in messages]),
                       np.array([m.stamp for m in messages]), *values)


def set_times(states: JointSeries, commands: JointSeries | None, notes: list[str]) -> None:
    """
    Give both topics times of one clock, sorted, in s from the first message.

    Header stamps are taken where they can be trusted in both, the times of receipt else.
    """
    topics = [states] if commands is None else [states, commands]
    reason = next((f'{s.topic} {why}' for s in topics if (why := _stamp_fault(s.stamp))), None)
    if reason is None and commands is not None:
        offsets = [np.median(s.received - s.stamp) * 1e-9 for s in topics]
        if abs(offsets[0] - offsets[1]) > _CLOCK_OFFSET:
            reason = (f'{commands.topic} has header stamps of another clock, '
                      f'{offsets[0] - offsets[1]:+.3f} s from that of {states.topic}')
    for series in topics:
        clock = series.received if reason else series.stamp
        series.keep(np.argsort(clock, kind='stable'))
    if reason:
        notes.append(f'times of receipt were used, since {reason}')
    zero = min((s.received if reason else s.stamp)[0] for s in topics)
    for series in topics:
        series.time = ((series.received if reason else series.stamp) - zero) * 1e-9
        period = np.median(np.diff(series.time)) if len(series.time) > 1 else 0.0
        notes.append(f'{"states" if series is states else "commands"}: {series.topic}, '
                     f'{len(series.time)} messages'
                     + (f', {1 / period:.4g} Hz' if period > 0 else ''))


def _stamp_fault(stamp: np.ndarray) -> str | None:
    """Return what makes header stamps unfit as times, in words."""
    if (stamp == 0).any():
        return 'has header stamps of zero'
    steps = np.diff(stamp)
    if (steps < 0).any():
        return 'has header stamps that go backwards'
    if len(steps) > 1 and (steps == 0).mean() > 0.5:
        return 'has header stamps that stand still'
    return None


def clean_states(path: str | Path, layout: RobotLayout, states: JointSeries,
                 notes: list[str]) -> None:
    """Drop messages that no position can be taken from; unwrap angles."""
    finite = np.isfinite(states.position).all(1)
    fresh = np.diff(states.time, prepend=-1.0) > 0
    if not finite.all():
        notes.append(f'{(~finite).sum()} messages of {states.topic} with positions that are not '
                     'finite were left out')
    if not fresh[finite].all():
        notes.append(f'{(~fresh)[finite].sum()} messages of {states.topic} repeat the time of the '
                     'one before and were left out')
    states.keep(finite & fresh)
    if len(states.time) < 3:
        raise BagError(f'{path}: too short, {len(states.time)} usable states on {states.topic}')
    for k, joint in enumerate(layout.joints):
        turning = joint.type in ('revolute', 'continuous')
        if turning and (np.abs(np.diff(states.position[:, k])) > np.pi).any():
            states.position[:, k] = np.unwrap(states.position[:, k])
            notes.append(f'{joint.name} jumps by a turn: its angle was unwrapped')
