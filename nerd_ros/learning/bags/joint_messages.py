# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
JointState and Float64MultiArray messages as columns.

An hour at 1 kHz is 3.6 million messages a topic, so messages become rows of arrays while they are
read, and those that are built alike, which is nearly all of a topic, are decoded together.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.bags.cdr_template import CdrTemplate

JOINT_STATE = 'sensor_msgs/msg/JointState'
ARRAY = 'std_msgs/msg/Float64MultiArray'
FIELDS = ('position', 'velocity', 'effort')
# Values above this, in any unit, are taken for damage: their differences may overflow.
_LARGEST = 1e9
_AT_ONCE = 8192
_MAX_TEMPLATES = 8
# So many names of joints are kept to be told.
_MAX_NAMES = 64


@dataclass
class JointTable:
    """
    Messages of one topic by order of receipt, N of them, in the joint order of the robot (J).

    `received (N,)` and `stamp (N,)` are times [ns], a stamp of 0 is none; `position`, `velocity`
    and `effort` `(N, J)` are NaN where a message says nothing. `named (N,)` is how many a message
    names of the joints that follow no other. `stamped` says whether this type of message has a
    stamp at all.
    """

    topic: str
    stamped: bool
    received: np.ndarray
    stamp: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray
    named: np.ndarray
    names: list[str]
    """Names of joints in the messages, also such that the robot does not have."""
    others: int
    """Messages about none of the robot's joints."""
    broken: int
    """Messages that could not be decoded."""


@dataclass
class _Rows:
    """Decoded messages; a field is None where no message fills it."""

    received: np.ndarray
    stamp: np.ndarray
    named: int
    fields: dict[str, np.ndarray] = field(default_factory=dict)


class JointCollector:
    """Collects the messages of type `kind` on one topic about the joints of a robot."""

    def __init__(self, topic: str, kind: str, layout: RobotLayout):
        self.topic, self.kind, self._names = topic, kind, layout.joint_names
        self._needed = {joint.name for joint in layout.joints if joint.mimic is None}
        # A Float64MultiArray lists the joints that have an effort, or all.
        self._commandable = [k for k, j in enumerate(layout.joints) if j.effort_limit > 0]
        self._waiting = defaultdict(list)    # by length of the message
        self._templates = defaultdict(list)
        self._rows, self._seen = [], set()
        self._others = self._broken = 0
        self._decoder = None

    def add(self, received: int, raw: bytes, decode: Callable) -> None:
        """Take a message, which may be decoded later."""
        self._decoder = decode
        waiting = self._waiting[len(raw)]
        waiting.append((received, raw))
        if len(waiting) >= _AT_ONCE:
            del self._waiting[len(raw)]
            self._decode(waiting)

    def count_broken(self) -> None:
        """Count a message that is none."""
        self._broken += 1

    def finish(self) -> None:
        """Decode what waits; to be called at the end of each file."""
        for waiting in self._waiting.values():
            self._decode(waiting)
        self._waiting.clear()
        self._templates.clear()

    def table(self) -> JointTable:
        """Return all messages."""
        rows, width = self._rows, len(self._names)
        received = np.concatenate([r.received for r in rows] or [np.zeros(0, np.int64)])
        order = np.argsort(received, kind='stable')
        stamp = np.concatenate([r.stamp for r in rows] or [np.zeros(0, np.int64)])
        named = np.concatenate([np.full(len(r.received), r.named) for r in rows]
                               or [np.zeros(0, int)])
        values = {}
        for name in FIELDS:
            if not any(name in r.fields for r in rows):
                # Takes no memory.
                values[name] = np.broadcast_to(np.nan, (len(order), width))
                continue
            column = np.concatenate([
                r.fields.get(name, np.broadcast_to(np.nan, (len(r.received), width)))
                for r in rows])[order]
            column[~(np.abs(column) <= _LARGEST)] = np.nan
            values[name] = column
        self._rows = []
        return JointTable(self.topic, self.kind == JOINT_STATE, received[order], stamp[order],
                          **values, named=named[order], names=sorted(self._seen),
                          others=self._others, broken=self._broken)

    def _decode(self, waiting: list[tuple[int, bytes]]) -> None:
        """Decode messages of the same length."""
        if self.kind == JOINT_STATE and len(waiting) > 1:
            templates = self._templates[len(waiting[0][1])]
            for template in templates:
                waiting = self._apply(template, waiting)
            while waiting and len(templates) < _MAX_TEMPLATES:
                message = self._message(waiting[0][1])
                template = message and CdrTemplate.of(message, waiting[0][1])
                if not template:
                    break
                templates.append(template)
                waiting = self._apply(template, waiting)
        for received, raw in waiting:
            message = self._message(raw)
            if message is None:
                self._broken += 1
            elif self.kind == JOINT_STATE:
                stamp = message.header.stamp
                self._append([received], [stamp.sec * 10**9 + stamp.nanosec], tuple(message.name),
                             {name: np.asarray(getattr(message, name))[None] for name in FIELDS})
            else:
                self._append_array(received, np.asarray(message.data))

    def _message(self, raw: bytes):
        """Return the message, None where it is garbled."""
        try:
            return self._decoder(raw)
        except Exception:
            # Whatever a garbled payload makes the decoder raise, it is one lost message.
            return None

    def _apply(self, template: CdrTemplate, waiting: list) -> list:
        """Decode all messages that are built like `template`; return the others."""
        fits, stamp, fields = template.decode([raw for _, raw in waiting])
        if fits.any():
            received = [r for (r, _), fit in zip(waiting, fits) if fit]
            self._append(received, stamp, template.names, fields)
        return [one for one, fit in zip(waiting, fits) if not fit]

    def _append(self, received, stamp, names: tuple[str, ...], fields: dict) -> None:
        """Keep decoded messages, `fields` `(N, len(names))` each, of the joints of the robot."""
        if len(self._seen) < _MAX_NAMES:
            self._seen.update(names[:_MAX_NAMES])
        mine = [k for k, name in enumerate(self._names) if name in names]
        if not mine:
            self._others += len(received)
            return
        theirs = [names.index(self._names[k]) for k in mine]
        rows = _Rows(np.array(received, np.int64), np.array(stamp, np.int64),
                     len(self._needed.intersection(names)))
        for name, values in fields.items():
            # A field of another length cannot be assigned to joints.
            if values.shape[1] == len(names):
                rows.fields[name] = np.full((len(received), len(self._names)), np.nan)
                rows.fields[name][:, mine] = values[:, theirs]
        self._rows.append(rows)

    def _append_array(self, received: int, values: np.ndarray) -> None:
        columns = {len(self._commandable): self._commandable,
                   len(self._names): range(len(self._names))}.get(len(values))
        if columns is None or not len(values):
            self._others += 1
            return
        effort = np.full((1, len(self._names)), np.nan)
        effort[0, list(columns)] = values
        self._rows.append(_Rows(np.array([received], np.int64), np.zeros(1, np.int64),
                                len(values), {'effort': effort}))
