# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Effort commands: what arrives at any time, checked and latched once per step."""

import math
from threading import Lock
import time

import numpy as np
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

from nerd_ros.resources import shown

# No command for a robot is longer; what is longer is not even deserialised [bytes].
MAX_MESSAGE_SIZE = 65536
# A refusal is told at most once in so long [s], and so many different ones.
WARNING_PERIOD, MAX_WARNINGS = 5.0, 5


class CommandError(ValueError):
    """A command that is refused whole; the message names the joint or field."""


class EffortCommands:
    """
    The effort that the robot is told to apply.

    Commands may come from any thread at any time; `latch`, called once per step, is the only
    place where they take effect. A joint without a new command for `timeout` s of simulated time
    keeps its effort (`reaction` 'hold') or gets zero ('zero'); timeout 0 means never.
    `effort` (A,) is what is in effect since the last `latch`, clamped to `limits` (A,)
    [N m or N]. A ball joint counts as three; a robot without joints obeys no command.
    """

    def __init__(self, joint_names, limits, timeout: float = 0.5, reaction: str = 'zero'):
        self.joint_names = tuple(joint_names)
        self.limits = np.asarray(limits, float)
        self.timeout, self.reaction = timeout, reaction
        self.effort = np.zeros(len(self.joint_names))
        self._index = {name: i for i, name in enumerate(self.joint_names)}
        self._lock = Lock()
        self._target = np.zeros_like(self.effort)
        self._fresh = np.zeros(len(self.effort), bool)
        self._latched_at = np.full(len(self.effort), math.inf)
        self._changed = False
        self._first_expiry = math.inf

    def set_by_name(self, names, efforts, positions=(), velocities=()) -> None:
        """
        Command the efforts [N m or N] of some joints, in any order.

        Joints that are not named keep what they had. Raises CommandError.
        """
        self._check_joints()
        if not len(names):
            raise CommandError('it names no joint')
        if not len(efforts) and (len(positions) or len(velocities)):
            raise CommandError('field effort is empty; positions and velocities are not obeyed')
        if len(efforts) != len(names):
            raise CommandError(f'field effort has {len(efforts)} values for {len(names)} names')
        seen = set()
        for name, effort in zip(names, efforts):
            if name not in self._index:
                raise CommandError(f'joint {shown(name)} is unknown; joints are '
                                   f'{", ".join(self.joint_names)}')
            if name in seen:
                raise CommandError(f'joint {name} is named twice')
            if not math.isfinite(effort):
                raise CommandError(f'effort of joint {name} is {effort}')
            seen.add(name)
        self._set([self._index[name] for name in names], efforts)

    def set_by_order(self, efforts) -> None:
        """Command the efforts [N m or N] of all joints, in their order. Raises CommandError."""
        self._check_joints()
        if len(efforts) != len(self.joint_names):
            raise CommandError(f'field data has {len(efforts)} values for '
                               f'{len(self.joint_names)} joints ({", ".join(self.joint_names)})')
        for name, effort in zip(self.joint_names, efforts):
            if not math.isfinite(effort):
                raise CommandError(f'effort of joint {name} is {effort}')
        self._set(slice(None), efforts)

    def latch(self, time: float) -> bool:
        """
        Bring `effort` up to date for the step that starts at `time` [s, simulated].

        Returns whether it changed.
        """
        with self._lock:
            changed, self._changed = self._changed, False
            if changed:
                self.effort[:] = self._target
                self._latched_at[self._fresh] = time
                self._fresh[:] = False
                self._first_expiry = self._latched_at.min(initial=math.inf) + self.timeout
        if 0.0 < self.timeout and time > self._first_expiry:
            changed |= self._expire(time)
        return changed

    def set_timeout(self, timeout: float, reaction: str) -> None:
        """Change `timeout` and `reaction`."""
        with self._lock:
            self.timeout, self.reaction = timeout, reaction
            self._first_expiry = self._latched_at.min(initial=math.inf) + timeout

    def clear(self) -> None:
        """Forget all commands: zero effort from the next `latch` on."""
        with self._lock:
            self._target[:] = 0.0
            self._fresh[:] = False
            self._latched_at[:] = math.inf
            self._changed = True

    def _check_joints(self) -> None:
        if not self.joint_names:
            raise CommandError('the robot has no joints')

    def _set(self, index, efforts) -> None:
        limits = self.limits[index]
        with self._lock:
            self._target[index] = np.clip(efforts, -limits, limits)
            self._fresh[index] = True
            self._changed = True

    def _expire(self, time: float) -> bool:
        with self._lock:
            expired = self._latched_at + self.timeout < time
            self._latched_at[expired] = math.inf
            self._first_expiry = self._latched_at.min(initial=math.inf) + self.timeout
            if self.reaction == 'hold' or not expired.any():
                return False
            # A command that came in since `latch` looked is for the next step.
            self._target[expired & ~self._fresh] = 0.0
            self.effort[expired] = 0.0
            return True


class CommandSubscriptions:
    """
    The command topics, which feed an EffortCommands.

    - `joint_commands` (sensor_msgs/JointState): effort by joint name, any order, subset allowed.
    - `effort_controller/commands` (std_msgs/Float64MultiArray): one effort per joint, in order.

    Whatever is wrong with a message, it is refused whole with a throttled warning, and the last
    good command stays. Messages arrive as bytes, so that neither a huge nor a broken one can
    hold up or stop the thread of callbacks.
    """

    def __init__(self, node, commands: EffortCommands):
        self._node, self._commands = node, commands
        self.refused = 0
        """Number of commands refused so far."""
        self._told: dict[str, float] = {}
        node.create_subscription(JointState, 'joint_commands', self._by_name, 10, raw=True)
        node.create_subscription(
            Float64MultiArray, 'effort_controller/commands', self._by_order, 10, raw=True)

    def _by_name(self, data: bytes) -> None:
        self._receive('joint_commands', JointState, data, lambda m: self._commands.set_by_name(
            m.name, m.effort, m.position, m.velocity))

    def _by_order(self, data: bytes) -> None:
        self._receive('effort_controller/commands', Float64MultiArray, data,
                      lambda m: self._commands.set_by_order(m.data))

    def _receive(self, topic: str, message_type, data: bytes, take) -> None:
        try:
            if len(data) > MAX_MESSAGE_SIZE:
                raise CommandError(f'it is {len(data)} bytes long')
            try:
                message = deserialize_message(data, message_type)
            except Exception:  # rclpy's own kinds, which differ between distributions
                raise CommandError(f'it is no {message_type.__name__}') from None
            take(message)
        except CommandError as error:
            self.refused += 1
            self._tell(f'command on {topic} refused: {error}')

    def _tell(self, refusal: str) -> None:
        """Warn of a refusal, unless the same or many others were told of a while ago."""
        now = time.monotonic()
        self._told = {text: then for text, then in self._told.items()
                      if now < then + WARNING_PERIOD}
        if refusal not in self._told and len(self._told) < MAX_WARNINGS:
            self._told[refusal] = now
            self._node.get_logger().warning(f'{refusal} ({self.refused} refused so far)')
