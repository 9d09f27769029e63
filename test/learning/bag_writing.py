# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Small recordings for the tests of this folder, written with the public bag library."""

import numpy as np
from rosbags.rosbag2 import CompressionFormat, StoragePlugin, Writer
from rosbags.typesys import get_typestore, Stores

from nerd_ros.dynamics.layout import JointLayout, RobotLayout

STORE = get_typestore(Stores.ROS2_JAZZY)
JOINT_STATE = 'sensor_msgs/msg/JointState'
START = 1_700_000_000 * 10**9
LAYOUT = RobotLayout(
    robot='double_pendulum', dt=0.005, floating=False,
    joints=(JointLayout('shoulder', 'revolute', -1e10, 1e10, 6.0),
            JointLayout('elbow', 'revolute', -1e10, 1e10, 6.0)),
    slots=(), contact_threshold=0.1, base_com=(0.0, 0.0, 0.0), fingerprint='')


def message(time, names, position=(), velocity=(), effort=(), stamp=None):
    """Receive time [ns] and JointState at `time` [s]; `stamp` [s] replaces the header's time."""
    nanoseconds = START + round(time * 1e9)
    header = nanoseconds if stamp is None else round(stamp * 1e9)
    kinds = STORE.types
    joint_state = kinds[JOINT_STATE](
        kinds['std_msgs/msg/Header'](
            kinds['builtin_interfaces/msg/Time'](header // 10**9, header % 10**9), ''),
        list(names), *(np.array(v, np.float64) for v in (position, velocity, effort)))
    return nanoseconds, joint_state


def write_bag(folder, topics, storage='mcap', compress=None):
    """Write `{topic: [message(...), ...]}` to the new bag `folder`; return `folder`."""
    plugin = StoragePlugin.MCAP if storage == 'mcap' else StoragePlugin.SQLITE3
    with_messages = Writer(folder, version=9, storage_plugin=plugin)
    if compress:
        with_messages.set_compression(compress, CompressionFormat.ZSTD)
    with with_messages as writer:
        for topic, messages in topics.items():
            connection = writer.add_connection(topic, JOINT_STATE, typestore=STORE)
            for time, joint_state in messages:
                writer.write(connection, time, STORE.serialize_cdr(joint_state, JOINT_STATE))
    return folder


def swing(duration=2.0, rate=500.0, names=('shoulder', 'elbow'), **options):
    """
    Return a smooth motion at `rate` [Hz] as topics for `write_bag`.

    Shoulder sin(3 t), elbow cos(4 t); commands +-1 N m, changing sign every 0.25 s, measured
    efforts half of that. `velocity`, `effort`, `stamp` (functions of the time) and `skip` (a
    function of the time: true for times at which no state is recorded) change it.
    """
    skip = options.get('skip', lambda t: False)
    stamp = options.get('stamp', lambda t: None)
    states, commands = [], []
    for time in np.arange(0.0, duration, 1 / rate):
        q = {'shoulder': np.sin(3 * time), 'elbow': np.cos(4 * time)}
        qd = {'shoulder': 3 * np.cos(3 * time), 'elbow': -4 * np.sin(4 * time)}
        command = command_at(time)
        effort = dict(zip(('shoulder', 'elbow'), command))
        if not skip(time):
            states.append(message(
                time, names, [q.get(n, 9.0) for n in names],
                [qd.get(n, 9.0) for n in names] if options.get('velocity', True) else (),
                [0.5 * effort.get(n, 9.0) for n in names] if options.get('effort', True) else (),
                stamp(time)))
        commands.append(message(time, ('elbow', 'shoulder'), effort=command[::-1],
                                stamp=stamp(time)))
    return {'/joint_states': states, '/joint_commands': commands}


def command_at(time):
    """Commanded efforts (shoulder, elbow) of `swing` at `time` [s], in N m."""
    sign = 1.0 if int(time / 0.25 + 1e-9) % 2 == 0 else -1.0
    return [sign, -sign]
