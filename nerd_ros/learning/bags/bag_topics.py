# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Which topics of a recording are the states and commands of a robot's joints."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.bag_content import BagContent
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.joint_messages import JointTable

# Fewer messages with all joints than this share come from somebody else than the driver.
_SHARE_OF_WHOLE = 0.1


@dataclass(frozen=True)
class Topics:
    """
    Topics to take instead of those that are found, '' for the latter.

    `states` may name several, joined by commas; `base` may name a frame of a TFMessage topic
    behind a colon, as in `/tf:base_link`.
    """

    states: str = ''
    commands: str = ''
    base: str = ''


@dataclass
class JointSeries:
    """
    Messages of one topic, N of them, in the joint order of the robot (J).

    `received` and `stamp` `(N,)` [ns], `stamp` None where the type of message has none; `time`
    [s] once it is known which of the two counts; values `(N, J)`, NaN where none.
    """

    topic: str
    received: np.ndarray
    stamp: np.ndarray | None
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    whole: bool = True
    """Whether every message names all joints."""
    time: np.ndarray | None = None

    def keep(self, rows: np.ndarray) -> None:
        """Keep the messages of `rows`, in that order."""
        for name in ('received', 'stamp', 'position', 'velocity', 'effort', 'time'):
            value = getattr(self, name)
            if value is not None:
                setattr(self, name, value[rows])


def find_states(path: str | Path, layout: RobotLayout, content: BagContent, wanted: str,
                notes: list[str]) -> list[JointSeries]:
    """
    Messages of the topic whose positions hold all joints, or of several that do so together.

    A joint that follows another needs no position. What was chosen or left out is added to
    `notes`; raises BagError where no topic fits.
    """
    needed = np.array([joint.mimic is None for joint in layout.joints])
    states = {topic: table for topic, table in content.joints.items() if table.stamped}
    if not states:
        everything = {**content.other_topics, **dict.fromkeys(content.joints, 'Float64MultiArray')}
        others = ', '.join(f'{topic} [{kind}]' for topic, kind in sorted(everything.items())[:8])
        raise BagError(f'{path}: no sensor_msgs/JointState topic; '
                       + (f'it holds {others}' if others else 'it holds no topic at all'))
    if wanted:
        chosen = [topic.strip() for topic in wanted.split(',')]
        for topic in chosen:
            if topic not in states:
                raise BagError(f'{path}: no JointState topic {topic}; it has '
                               + _describe_topics(states))
    else:
        chosen = _choose(states, needed, notes)
    held = np.zeros(len(needed), bool)
    for topic in chosen:
        held |= np.isfinite(states[topic].position).any(0)
    if not chosen or not held[needed].all():
        raise BagError(f'{path}: no JointState topic has the positions of all joints of '
                       f'{layout.robot} ({", ".join(layout.joint_names)}); it has '
                       + _describe_topics(states))
    if len(chosen) > 1:
        notes.append(f'the joints were put together from {", ".join(chosen)}')
    return [_series(states[topic], needed, layout, notes) for topic in chosen]


def _choose(states: dict[str, JointTable], needed: np.ndarray, notes: list[str]) -> list[str]:
    """Return the best topic with all joints, else as few as hold them together."""
    held = {topic: np.isfinite(table.position).any(0) & needed for topic, table in states.items()
            if not _is_command_topic(topic)}
    held = {topic: joints for topic, joints in held.items() if joints.any()}
    whole = [topic for topic, joints in held.items() if (joints == needed).all()]
    if whole:
        best = max(whole, key=lambda name: (name.endswith('joint_states'),
                                            len(states[name].received)))
        others = sorted(set(whole) - {best})
        if others:
            notes.append(f'{", ".join(others)} would fit as states too; {best} was taken')
        return [best]
    chosen, missing = [], needed.copy()
    while missing.any() and held:
        best = max(held, key=lambda name: ((held[name] & missing).sum(),
                                           len(states[name].received)))
        if not (held[best] & missing).any():
            return []
        missing &= ~held.pop(best)
        chosen.append(best)
    return chosen if not missing.any() else []


def _series(table: JointTable, needed: np.ndarray, layout: RobotLayout,
            notes: list[str]) -> JointSeries:
    """Return the messages of a state topic, only those with all joints where there are such."""
    whole = (table.named >= needed.sum()) & ~np.isnan(table.position).all(1)
    rows = np.ones(len(whole), bool)
    left_out = table.others
    if whole.mean() >= _SHARE_OF_WHOLE:
        rows = whole
        left_out += int((~whole).sum())
    if left_out:
        notes.append(f'{left_out} messages of {table.topic} without '
                     f'{"all joints" if rows is whole else "joints of the robot"} or positions '
                     'were left out')
    strangers = [name for name in table.names if name not in layout.joint_names]
    if strangers:
        notes.append(f'joints of {table.topic} that {layout.robot} does not have were left out: '
                     + ', '.join(strangers))
    series = JointSeries(table.topic, table.received, table.stamp, table.position, table.velocity,
                         table.effort, whole=rows is whole)
    if not rows.all():
        series.keep(rows)
    return series


def find_commands(path: str | Path, layout: RobotLayout, content: BagContent, wanted: str,
                  state_topics: list[str], notes: list[str]) -> JointSeries | None:
    """
    Messages of the topic that commands efforts of the robot's joints, None where there is none.

    A JointState topic that has positions too and is not named a command may be measured: it is
    not taken. A Float64MultiArray says nothing about itself, so its topic has to be named after
    commands or efforts. Raises BagError where the topic that the user names is not there.
    """
    usable = {topic: table for topic, table in content.joints.items()
              if topic not in state_topics and np.isfinite(table.effort).any()}
    if wanted:
        if wanted not in usable:
            raise BagError(f'{path}: no topic {wanted} with efforts of '
                           f'{", ".join(layout.joint_names)}; such topics are '
                           + (', '.join(sorted(usable)) or 'none'))
        topic = wanted
    else:
        found = [topic for topic, table in usable.items()
                 if (_may_command_effort(topic) if not table.stamped else
                     _is_command_topic(topic) or not np.isfinite(table.position).any())]
        unfit = sorted(t for t, table in content.joints.items()
                       if t not in [*found, *state_topics] and _is_command_topic(t)
                       and (len(table.received) or table.others))
        if unfit:
            notes.append(f'the efforts of {", ".join(unfit)} are not finite or not given: no '
                         'commands')
        if not found:
            notes.append('no topic with commanded efforts')
            return None
        topic = max(found, key=lambda name: (name.endswith('joint_commands'),
                                             usable[name].stamped, _is_command_topic(name),
                                             len(usable[name].received)))
        others = sorted(set(found) - {topic})
        if others:
            notes.append(f'{", ".join(others)} would fit as commands too; {topic} was taken')
    return _commands(usable[topic], layout, notes)


def _commands(table: JointTable, layout: RobotLayout, notes: list[str]) -> JointSeries:
    finite = np.isfinite(table.effort)
    driven = np.array([joint.effort_limit > 0 for joint in layout.joints])
    never = [n for n, known, asked in zip(layout.joint_names, finite.any(0), driven)
             if asked and not known]
    if never:
        notes.append(f'{table.topic} never commands {", ".join(never)}: zero effort')
    dropped = len(finite) - int(finite.any(1).sum())
    series = JointSeries(table.topic, table.received, table.stamp if table.stamped else None,
                         table.position, table.velocity, table.effort)
    if dropped:
        notes.append(f'{dropped} messages of {table.topic} with efforts that are not finite were '
                     'left out')
        series.keep(finite.any(1))
    if table.others:
        notes.append(f'{table.others} messages of {table.topic} that fit no joints of '
                     f'{layout.robot} were left out')
    return series


def _is_command_topic(topic: str) -> bool:
    name = topic.rsplit('/', 1)[-1].lower()
    return 'command' in name or 'cmd' in name


def _may_command_effort(topic: str) -> bool:
    """Whether a topic is named after commands, of efforts if it says of what, or after efforts."""
    name = topic.lower()
    if 'position' in name or 'velocity' in name:
        return False
    return _is_command_topic(topic) or name.rstrip('s').endswith(('effort', 'torque'))


def _describe_topics(topics: dict[str, JointTable]) -> str:
    parts = []
    for topic, table in sorted(topics.items()):
        parts.append(f'{topic} ({", ".join(table.names[:12]) or "no joints"})')
    return ', '.join(parts)
