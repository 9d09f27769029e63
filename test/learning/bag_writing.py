# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Small recordings for the tests of this folder, and what has to come back of them."""

import numpy as np
from rosbags.rosbag1 import Writer as Ros1Writer
from rosbags.rosbag2 import CompressionFormat, StoragePlugin, Writer
from rosbags.typesys import get_types_from_msg, get_typestore, Stores

from nerd_ros.dynamics.layout import JointLayout, RobotLayout

STORE = get_typestore(Stores.ROS2_JAZZY)
JOINT_STATE = 'sensor_msgs/msg/JointState'
ODOMETRY = 'nav_msgs/msg/Odometry'
POSE = 'geometry_msgs/msg/PoseStamped'
TF_MESSAGE = 'tf2_msgs/msg/TFMessage'
START = 1_700_000_000 * 10**9
LAYOUT = RobotLayout(
    robot='double_pendulum', dt=0.005, floating=False,
    joints=(JointLayout('shoulder', 'revolute', -1e10, 1e10, 6.0),
            JointLayout('elbow', 'revolute', -1e10, 1e10, 6.0)),
    slots=(), contact_threshold=0.1, base_com=(0.0, 0.0, 0.0), fingerprint='')


def header_at(time, stamp=None, frame=''):
    """Receive time [ns] and header at `time` [s]; `stamp` [s] replaces the header's time."""
    nanoseconds = START + round(time * 1e9)
    value = nanoseconds if stamp is None else round(stamp * 1e9)
    kinds = STORE.types
    return nanoseconds, kinds['std_msgs/msg/Header'](
        kinds['builtin_interfaces/msg/Time'](value // 10**9, value % 10**9), frame)


def message(time, names, position=(), velocity=(), effort=(), stamp=None):
    """Receive time [ns] and JointState at `time` [s]; `stamp` [s] replaces the header's time."""
    nanoseconds, header = header_at(time, stamp)
    return nanoseconds, STORE.types[JOINT_STATE](
        header, list(names), *(np.array(v, np.float64) for v in (position, velocity, effort)))


def array_message(time, values):
    """Receive time [ns] and Float64MultiArray."""
    kinds = STORE.types
    return START + round(time * 1e9), kinds['std_msgs/msg/Float64MultiArray'](
        kinds['std_msgs/msg/MultiArrayLayout']([], 0), np.array(values, np.float64))


def pose_message(time, pose, twist=None, kind=ODOMETRY, frames=('odom', 'base_link')):
    """Receive time [ns] and Odometry, PoseStamped or TFMessage with a pose (7,), a twist (6,)."""
    kinds = STORE.types
    nanoseconds, header = header_at(time, frame=frames[0])
    quaternion = kinds['geometry_msgs/msg/Quaternion'](*map(float, pose[3:]))
    vector = kinds['geometry_msgs/msg/Vector3']
    if kind == TF_MESSAGE:
        transform = kinds['geometry_msgs/msg/TransformStamped'](
            header, frames[1], kinds['geometry_msgs/msg/Transform'](
                vector(*map(float, pose[:3])), quaternion))
        return nanoseconds, kinds[TF_MESSAGE]([transform])
    place = kinds['geometry_msgs/msg/Pose'](
        kinds['geometry_msgs/msg/Point'](*map(float, pose[:3])), quaternion)
    if kind == POSE:
        return nanoseconds, kinds[POSE](header, place)
    twist = np.zeros(6) if twist is None else twist
    covariance = np.zeros(36)
    return nanoseconds, kinds[ODOMETRY](
        header, frames[1], kinds['geometry_msgs/msg/PoseWithCovariance'](place, covariance),
        kinds['geometry_msgs/msg/TwistWithCovariance'](kinds['geometry_msgs/msg/Twist'](
            vector(*map(float, twist[:3])), vector(*map(float, twist[3:]))), covariance))


def write_bag(folder, topics, storage='mcap', compress=None):
    """Write `{topic: [message(...), ...]}` to the new bag `folder`; return `folder`."""
    plugin = StoragePlugin.MCAP if storage == 'mcap' else StoragePlugin.SQLITE3
    with_messages = Writer(folder, version=9, storage_plugin=plugin)
    if compress:
        with_messages.set_compression(compress, CompressionFormat.ZSTD)
    with with_messages as writer:
        for topic, messages in topics.items():
            kind = messages[0][1].__msgtype__ if messages else JOINT_STATE
            connection = writer.add_connection(topic, kind, typestore=STORE)
            for time, one in messages:
                raw = one if isinstance(one, bytes) else STORE.serialize_cdr(one, kind)
                writer.write(connection, time, raw)
    return folder


def write_ros1_bag(file, topics):
    """Write `{topic: [message(...), ...]}` to the new ROS 1 bag `file`; return `file`."""
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg('geometry_msgs/TransformStamped[] transforms', TF_MESSAGE))
    with Ros1Writer(file) as writer:
        for topic, messages in topics.items():
            kind = messages[0][1].__msgtype__
            connection = writer.add_connection(topic, kind, typestore=store)
            for time, one in messages:
                # Headers of ROS 1 have a number, what else there is is the same.
                for part in getattr(one, 'transforms', [one]):
                    if hasattr(part, 'header'):
                        part.header = store.types['std_msgs/msg/Header'](
                            0, part.header.stamp, part.header.frame_id)
                writer.write(connection, time, store.serialize_ros1(one, kind))
    return file


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


def check_swing(recording):
    """Assert that all segments hold the motion of `swing`, sampled at the model's step."""
    for segment in recording.segments:
        time = segment.time
        np.testing.assert_allclose(np.diff(time), LAYOUT.dt, atol=1e-9)
        expected = np.stack([np.sin(3 * time), np.cos(4 * time)], 1)
        np.testing.assert_allclose(segment.joint_q, expected, atol=2e-3)
        expected = np.stack([3 * np.cos(3 * time), -4 * np.sin(4 * time)], 1)
        np.testing.assert_allclose(segment.joint_qd, expected, atol=0.1)
        if segment.effort_command is not None:
            np.testing.assert_allclose(segment.effort_command, [command_at(t) for t in time])


def notes_of(recording):
    """Return what was told of a recording, a line each."""
    return '\n'.join(recording.notes)
