# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""No recording, however odd, crashes or hangs: it serves, or one sentence says why it does not."""

from contextlib import contextmanager
from dataclasses import replace
import signal
import sqlite3

from bag_writing import (
    array_message, LAYOUT, message, ODOMETRY, POSE, pose_message, START, STORE, swing, TF_MESSAGE,
    write_bag, write_ros1_bag)
import numpy as np
import pytest
from rosbags.rosbag2 import CompressionMode

from nerd_ros.dynamics.layout import JointLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_info import recording_summary_data
from nerd_ros.learning.bags.recording import read_bag

NAMES = ('shoulder', 'elbow')
# Joints and base at once, so that every type of message is read.
FLOATING = replace(LAYOUT, robot='walker', floating=True)
CUBE = replace(LAYOUT, robot='cube', floating=True, joints=())
# The joints of a bag of others.
SIX = replace(LAYOUT, robot='six', joints=tuple(
    JointLayout(f'joint_{k}', 'revolute', -3.0, 3.0, 1.0) for k in range(6)))


class Hangs(BaseException):
    """Raised where reading takes far too long; no Exception, which the reader would catch."""


@contextmanager
def time_limit(seconds=60):
    """Raise Hangs after `seconds`."""
    def stop(number, frame):
        raise Hangs
    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def read_or_refuse(path, layout=LAYOUT):
    """Return the recording, None where one sentence refuses it; anything else is a failure."""
    with time_limit():
        try:
            recording = read_bag(path, layout)
        except BagError as error:
            assert '\n' not in str(error) and str(path.parent) in str(error)
            return None
    assert recording.segments
    for segment in recording.segments:
        for values in (segment.time, segment.joint_q, segment.joint_qd, segment.effort_command,
                       segment.effort_measured):
            assert values is None or np.isfinite(values).all()
        assert (np.diff(segment.time) > 0).all()
    recording_summary_data(recording, layout)
    return recording


def test_bags_of_other_projects(shared_data):
    paths = [p for p in (shared_data / 'bags').rglob('*') if p.name != 'LICENSE']
    assert len(paths) > 100
    served = [(path.name, layout.robot) for path in paths for layout in (LAYOUT, CUBE, SIX)
              if read_or_refuse(path, layout)]
    assert ('test2.bag', 'cube') in served and len(served) < 10


def test_bags_of_the_real_pendulum_serve_it_alone(shared_data):
    for bag in sorted((shared_data / 'double_pendulum').glob('*/')):
        assert read_or_refuse(bag)
        assert not read_or_refuse(bag, SIX) and not read_or_refuse(bag, CUBE)


def flight(kind):
    return [pose_message(t, [np.sin(t), t, 1.0, 0.0, 0.0, np.sin(t), np.cos(t)], [1.0] * 6, kind)
            for t in np.arange(0.0, 0.5, 0.005)]


FORMS = {
    'mcap': lambda folder, topics: write_bag(folder, topics),
    'sqlite3': lambda folder, topics: write_bag(folder, topics, 'sqlite3'),
    'chunks': lambda folder, topics: write_bag(folder, topics, 'mcap', CompressionMode.STORAGE),
    'messages': lambda folder, topics: write_bag(folder, topics, 'sqlite3',
                                                 CompressionMode.MESSAGE),
    'file': lambda folder, topics: write_bag(folder, topics, 'mcap', CompressionMode.FILE),
}


@pytest.mark.parametrize('form', [*FORMS, 'ros1'])
def test_damaged_files(tmp_path, form):
    topics = {**swing(duration=0.5, rate=200.0), '/odom': flight(ODOMETRY),
              '/tf': flight(TF_MESSAGE), '/pose': flight(POSE)}
    if form == 'ros1':
        file = write_ros1_bag(tmp_path / 'old.bag', topics)
    else:
        folder = FORMS[form](tmp_path / 'bag', topics)
        file = next(f for f in folder.iterdir() if f.name != 'metadata.yaml')
    assert read_or_refuse(file, FLOATING)
    data, random = file.read_bytes(), np.random.default_rng(3)
    for length in [1, 8, 36, *random.integers(1, len(data), 8), len(data) - 1]:
        file.write_bytes(data[:length])
        read_or_refuse(file, FLOATING)
    for count in [1, 20, 300] * 7:
        garbled = bytearray(data)
        for place in random.integers(0, len(data), count):
            garbled[place] = random.integers(0, 256)
        file.write_bytes(garbled)
        read_or_refuse(file, FLOATING)
    # Large numbers where counts, lengths and places may stand.
    for k in range(15):
        garbled = bytearray(data)
        place = int(random.integers(0, len(data) - 8))
        garbled[place:place + 8] = (b'\xff' * 8, b'\xff\xff\xff\x7f' * 2, b'\0' * 8)[k % 3]
        file.write_bytes(garbled)
        read_or_refuse(file, FLOATING)


@pytest.mark.parametrize('text', [
    '', '[', 'rosbag2_bagfile_information: 3', 'rosbag2_bagfile_information: {version: 99}',
    'rosbag2_bagfile_information: {relative_file_paths: [../../etc/passwd]}',
    'rosbag2_bagfile_information: {relative_file_paths: 3}',
    'rosbag2_bagfile_information: {relative_file_paths: [other.mcap], compression_mode: 7}',
    '[' * 5000, '\x00\x01'])
def test_odd_metadata(tmp_path, text):
    folder = write_bag(tmp_path / 'bag', swing(duration=0.5))
    (folder / 'metadata.yaml').write_text(text)
    assert read_or_refuse(folder)


def odd_messages():
    """Return kinds of messages that no driver should send, by name."""
    random = np.random.default_rng(0)
    stamps = [0.0, -1.0, -2**31, 2**31 - 1, 1e9]
    yield 'no names', [message(t, []) for t in np.arange(0, 1, 0.01)]
    yield 'empty names', [message(t, ['', ''], [1, 2], [1, 2], [1, 2])
                          for t in np.arange(0, 1, 0.01)]
    yield 'a joint twice', [message(t, ['shoulder', 'elbow', 'elbow'], [t, t, 9], [1, 1, 9],
                                    [1, 1, 9]) for t in np.arange(0, 1, 0.01)]
    yield 'other lengths', [message(t, NAMES, [t], [t, t, t], []) for t in np.arange(0, 1, 0.01)]
    yield 'lengths that change', [
        message(t, NAMES[:random.integers(3)], random.normal(size=random.integers(3)),
                random.normal(size=random.integers(3)), random.normal(size=random.integers(3)))
        for t in np.arange(0, 1, 0.01)]
    for value in (1e300, -1e300, np.inf, np.nan, 1e-320, 1e9):
        yield f'values of {value}', [message(t, NAMES, [t, value], [value, 1], [1, value])
                                     for t in np.arange(0, 1, 0.01)]
        yield f'sometimes {value}', [
            message(t, NAMES, [t, value if random.random() < 0.1 else t], [1, 1],
                    [value if random.random() < 0.1 else t, 1]) for t in np.arange(0, 1, 0.01)]
    for value in stamps:
        yield f'stamps of {value}', [message(t, NAMES, [t, t], [1, 1], [1, 1], stamp=value)
                                     for t in np.arange(0, 1, 0.01)]
        yield f'a stamp of {value}', [
            message(t, NAMES, [t, t], [1, 1], [1, 1], stamp=value if abs(t - 0.5) < 1e-9 else None)
            for t in np.arange(0, 1, 0.01)]
    yield 'stamps at random', [message(t, NAMES, [t, t], [1, 1], [1, 1],
                                       stamp=random.uniform(-1e9, 1e9))
                               for t in np.arange(0, 1, 0.01)]
    yield 'all at once', [message(0.0, NAMES, [t, t], [1, 1], [1, 1])
                          for t in np.arange(0, 1, 0.01)]
    yield 'far apart', [message(1e7 * k, NAMES, [k, k], [1, 1], [1, 1]) for k in range(40)]
    yield 'years of pause', [
        message(t + (4e8 if t > 0.5 else 0), NAMES, [t, t], [1, 1], [1, 1])
        for t in np.arange(0, 1, 0.01)]
    yield 'still', [message(t, NAMES, [0, 0], [0, 0], [0, 0]) for t in np.arange(0, 1, 0.01)]
    yield 'one', [message(0.0, NAMES, [0, 0], [0, 0], [0, 0])]
    many = [f'joint_{k}' for k in range(3000)]
    yield 'many joints', [message(t, many, np.zeros(3000)) for t in np.arange(0, 1, 0.1)]
    yield 'new joints each', [message(t, [f'{k}'], [1.0])
                              for k, t in enumerate(np.arange(0, 5, 0.01))]


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_odd_messages(tmp_path, storage):
    normal = swing(duration=1.0, rate=200.0)
    for name, messages in odd_messages():
        for k, topics in enumerate((
                {'/joint_states': messages},
                {'/joint_states': messages, '/joint_commands': normal['/joint_commands']},
                {'/joint_states': normal['/joint_states'], '/joint_commands': messages},
                {'/joint_states': sorted([*normal['/joint_states'], *messages],
                                         key=lambda pair: pair[0])})):
            folder = tmp_path / f'{name.replace(" ", "_")}_{k}'
            try:
                write_bag(folder, topics, storage)
            except Exception as error:
                pytest.fail(f'{name}: the test cannot write it: {error}')
            read_or_refuse(folder)


def test_odd_arrays_and_poses(tmp_path):
    time = np.arange(0.0, 1.0, 0.01)
    states = swing(duration=1.0)['/joint_states']
    arrays = ([], [np.nan, np.nan], [1e300, -1e300], [1.0] * 5000)
    poses = ([0.0] * 7, [np.nan] * 7, [1e300] * 3 + [0, 0, 0, 1], [0, 0, 0, 1e200, 0, 0, 1e200],
             [0, 0, 0, 0, 0, 0, 1e-300])
    for k, values in enumerate(arrays):
        read_or_refuse(write_bag(tmp_path / f'array_{k}', {
            '/joint_states': states, '/commands': [array_message(t, values) for t in time]}))
    for k, pose in enumerate(poses):
        for kind in (ODOMETRY, TF_MESSAGE, POSE):
            for frames in (('', ''), ('world', 'base_link')):
                name = f'pose_{k}_{kind[-4:]}_{len(frames[0])}'
                bag = write_bag(tmp_path / name, {'/pose': [
                    *(pose_message(t, pose, [1e300] * 6, kind, frames) for t in time),
                    *(pose_message(t + 1, [t, 0, 0, 0, 0, 0, 1], [np.inf] * 6, kind, frames)
                      for t in time)]})
                assert read_or_refuse(bag, CUBE)


def test_bytes_that_are_no_message(tmp_path):
    kinds = swing(duration=0.2)
    good = [m for m in kinds['/joint_states']]
    whole = bytes(STORE.serialize_cdr(good[0][1], good[0][1].__msgtype__))
    random = np.random.default_rng(0)
    raws = [b'', b'\0', b'\0\1\0\0', whole[:30], whole + b'extra',
            whole[:16] + b'\xff\xff\xff\x7f' + whole[20:], b'\0\0' + whole[2:],
            b'\x28\xb5\x2f\xfd', b'\x28\xb5\x2f\xfd' + whole,
            *(random.bytes(len(whole)) for _ in range(50))]
    for storage in ('mcap', 'sqlite3'):
        odd = [(START + 500_000_000 + 1_000_000 * k, raw) for k, raw in enumerate(raws)]
        bag = write_bag(tmp_path / storage, {'/joint_states': [*good, *odd[:-1]]}, storage)
        read_or_refuse(bag)


@pytest.mark.parametrize('statement', [
    "UPDATE messages SET timestamp = -timestamp",
    "UPDATE messages SET timestamp = 'soon'",
    "UPDATE messages SET timestamp = 1e30",
    "UPDATE messages SET timestamp = 9223372036854775807 WHERE id % 7 = 0",
    "UPDATE messages SET timestamp = NULL WHERE id % 7 = 0",
    "UPDATE messages SET data = 'text' WHERE id % 2 = 0",
    "UPDATE messages SET data = 7 WHERE id % 2 = 0",
    "UPDATE messages SET topic_id = 99 WHERE id % 2 = 0",
    "UPDATE topics SET name = ''",
    "UPDATE topics SET name = x'ff'",
    "UPDATE topics SET type = 'std_msgs/msg/String'",
    "UPDATE topics SET type = ''",
    "UPDATE topics SET name = '/joint_states'",
    "UPDATE topics SET serialization_format = 'json'",
    'DROP TABLE topics', 'DROP TABLE messages', 'DELETE FROM messages',
])
def test_odd_databases(tmp_path, statement):
    folder = write_bag(tmp_path / 'bag', swing(duration=0.5), 'sqlite3')
    with sqlite3.connect(folder / 'bag.db3') as connection:
        try:
            connection.execute(statement)
        except sqlite3.IntegrityError:
            pytest.skip('the format itself forbids it')
    connection.close()
    read_or_refuse(folder)
