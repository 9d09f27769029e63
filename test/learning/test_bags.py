# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A recording becomes evenly sampled motion, whatever its form; what cannot be used is refused."""

from dataclasses import replace
import shutil

from bag_writing import check_swing, LAYOUT, message, notes_of, swing, write_bag
import numpy as np
import pytest
from rosbags.rosbag2 import CompressionMode

from nerd_ros.dynamics.layout import JointLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.recording import read_bag


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
@pytest.mark.parametrize('whole', [True, False])
def test_motion_comes_back_from_folder_and_file(tmp_path, storage, whole):
    folder = write_bag(tmp_path / 'bag', swing(), storage)
    file = next(f for f in folder.iterdir() if f.suffix in ('.mcap', '.db3'))
    recording = read_bag(folder if whole else file, LAYOUT)
    assert recording.name == 'bag'
    assert len(recording.segments) == 1
    assert recording.duration == pytest.approx(1.998, abs=LAYOUT.dt)
    check_swing(recording)
    segment = recording.segments[0]
    steady = np.abs((segment.time % 0.25) - 0.125) < 0.12
    np.testing.assert_allclose(segment.effort_measured[steady],
                               0.5 * segment.effort_command[steady])


@pytest.mark.parametrize('storage, mode', [('sqlite3', CompressionMode.MESSAGE),
                                           ('sqlite3', CompressionMode.FILE),
                                           ('mcap', CompressionMode.FILE),
                                           ('mcap', CompressionMode.STORAGE)])
def test_compressed(tmp_path, storage, mode):
    check_swing(read_bag(write_bag(tmp_path / 'bag', swing(), storage, mode), LAYOUT))


@pytest.mark.parametrize('storage, mode', [('sqlite3', CompressionMode.MESSAGE),
                                           ('sqlite3', CompressionMode.FILE),
                                           ('mcap', CompressionMode.FILE)])
def test_compressed_without_metadata_and_as_a_single_file(tmp_path, storage, mode):
    folder = write_bag(tmp_path / 'bag', swing(), storage, mode)
    (folder / 'metadata.yaml').unlink()
    check_swing(read_bag(folder, LAYOUT))
    check_swing(read_bag(next(folder.iterdir()), LAYOUT))


def test_reading_changes_nothing(tmp_path):
    folder = write_bag(tmp_path / 'bag', swing(), 'sqlite3')
    before = {f.name: f.read_bytes() for f in folder.iterdir()}
    read_bag(folder, LAYOUT)
    assert {f.name: f.read_bytes() for f in folder.iterdir()} == before


def test_folder_without_metadata_and_split_in_files(tmp_path):
    topics = swing()
    folder = tmp_path / 'bag'
    folder.mkdir()
    for part in range(2):
        half = {name: [m for k, m in enumerate(messages) if (k >= 400) == bool(part)]
                for name, messages in topics.items()}
        write_bag(tmp_path / f'part{part}', half)
        shutil.copy(tmp_path / f'part{part}' / f'part{part}.mcap', folder)
    recording = read_bag(folder, LAYOUT)
    assert len(recording.segments) == 1 and recording.duration > 1.98
    assert 'no metadata.yaml' in notes_of(recording)
    check_swing(recording)


def test_joint_order_and_extra_joints(tmp_path):
    topics = swing(names=('wheel', 'elbow', 'gripper', 'shoulder'))
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    check_swing(recording)
    assert 'gripper, wheel' in notes_of(recording)


def test_topics_are_found_by_joints_not_by_name(tmp_path):
    topics = swing()
    topics = {'/left/state': topics['/joint_states'], '/left/torque': topics['/joint_commands'],
              '/joint_states': [message(t, ['finger'], [t], effort=[t])
                                for t in np.arange(0, 2, 0.01)]}
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    check_swing(recording)
    assert 'states: /left/state' in notes_of(recording)


def test_other_publishers_on_the_state_topic_are_left_out(tmp_path):
    topics = swing()
    topics['/joint_states'] += [message(t, ['finger'], [t]) for t in np.arange(0, 2, 0.01)]
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    check_swing(recording)
    assert '200 messages' in notes_of(recording)


def test_gap_cuts_the_motion(tmp_path):
    topics = swing(skip=lambda t: 0.8 < t < 0.85 or 1.5 < t < 1.56)
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert len(recording.segments) == 3
    check_swing(recording)
    for segment in recording.segments:
        assert not ((segment.time > 0.805) & (segment.time < 0.85)).any()
    assert '2 gaps' in notes_of(recording)


def test_gap_is_judged_by_the_period_of_the_bag(tmp_path):
    # 37 ms between states is a gap at 500 Hz and none at 33 Hz.
    recording = read_bag(write_bag(tmp_path / 'slow', swing(rate=33.0)), LAYOUT)
    assert len(recording.segments) == 1
    segment = recording.segments[0]
    expected = np.sin(3 * segment.time)
    np.testing.assert_allclose(segment.joint_q[:, 0], expected, atol=1e-3)
    assert 'slower than the step' in notes_of(recording)


def test_commands_pause_and_start_late(tmp_path):
    topics = swing(duration=3.0)
    zero = topics['/joint_commands'][0][0]
    topics['/joint_commands'] = [m for m in topics['/joint_commands']
                                 if 0.5 < (m[0] - zero) * 1e-9 and
                                 not 1.2 < (m[0] - zero) * 1e-9 < 1.7]
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert len(recording.segments) == 2
    assert recording.segments[0].time[0] >= 0.5
    check_swing(recording)
    assert '1 pauses in /joint_commands' in notes_of(recording)


def test_commands_by_joint_and_never_for_one(tmp_path):
    topics = swing()
    topics['/joint_commands'] = [message(t, ['elbow'], effort=[2.0]) for t in (0, 0.004, 0.008)]
    topics['/joint_commands'] += [message(t, ['elbow'], effort=[np.nan])
                                  for t in np.arange(0.012, 2.0, 0.004)]
    topics['/joint_commands'] += [message(t, ['elbow'], effort=[3.0])
                                  for t in np.arange(0.012, 2.0, 0.004)]
    segment = (recording := read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)).segments[0]
    assert not segment.effort_command[:, 0].any()
    assert segment.effort_command[0, 1] == 2.0 and segment.effort_command[-1, 1] == 3.0
    assert 'never commands shoulder' in notes_of(recording)
    assert 'not finite' in notes_of(recording)


@pytest.mark.parametrize('stamp, reason', [
    (lambda t: 0.0, 'stamps of zero'),
    (lambda t: 1e9 + t - (0.5 if t > 1 else 0.0), 'go backwards'),
    (lambda t: 1e9, 'stand still'),
])
def test_times_of_receipt_where_stamps_are_unfit(tmp_path, stamp, reason):
    recording = read_bag(write_bag(tmp_path / 'bag', swing(stamp=stamp)), LAYOUT)
    assert reason in notes_of(recording)
    assert recording.duration > 1.98
    check_swing(recording)


def test_commands_stamped_by_another_clock(tmp_path):
    topics = swing()
    topics['/joint_commands'] = swing(stamp=lambda t: 1e9 + t)['/joint_commands']
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'another clock' in notes_of(recording)
    check_swing(recording)


def test_header_stamps_count_where_they_are_good(tmp_path):
    topics = swing()
    random = np.random.default_rng(0)
    topics = {name: sorted(((time + int(random.uniform(0, 8e6)), m) for time, m in messages),
                           key=lambda pair: pair[0])
              for name, messages in topics.items()}
    # Sorted by receipt, the stamps would go backwards: keep those that do not.
    for messages in topics.values():
        latest, kept = 0, []
        for time, m in messages:
            stamp = m.header.stamp.sec * 10**9 + m.header.stamp.nanosec
            if stamp > latest:
                kept.append((time, m))
                latest = stamp
        messages[:] = kept
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    segment = recording.segments[0]
    np.testing.assert_allclose(segment.joint_q[:, 0], np.sin(3 * segment.time), atol=0.01)


@pytest.mark.parametrize('velocity', ['none', 'zero', 'nan'])
def test_velocity_that_was_not_recorded(tmp_path, velocity):
    topics = swing(velocity=velocity != 'none')
    if velocity != 'none':
        for _, joint_state in topics['/joint_states']:
            joint_state.velocity[:] = 0.0 if velocity == 'zero' else np.nan
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'velocity of shoulder, elbow was not recorded' in notes_of(recording)
    check_swing(recording)


def test_angles_that_jump_by_a_turn(tmp_path):
    topics = swing()
    for time, joint_state in topics['/joint_states']:
        joint_state.position[0] = np.angle(np.exp(1j * (joint_state.position[0] + 2.5)))
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'shoulder jumps by a turn' in notes_of(recording)
    segment = recording.segments[0]
    np.testing.assert_allclose(segment.joint_q[:, 0] - 2.5, np.sin(3 * segment.time), atol=2e-3)


def test_bad_states_are_dropped(tmp_path):
    topics = swing()
    states = topics['/joint_states']
    states[100][1].position[0] = np.nan
    states[200][1].position[1] = np.inf
    states[300:300] = [states[300]] * 5
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    check_swing(recording)
    assert '2 messages of /joint_states with positions that are not finite' in notes_of(recording)
    assert '5 messages of /joint_states repeat the time' in notes_of(recording)


def test_only_measured_effort(tmp_path):
    recording = read_bag(
        write_bag(tmp_path / 'bag', {'/joint_states': swing()['/joint_states']}), LAYOUT)
    assert recording.segments[0].effort_command is None
    assert recording.segments[0].effort_measured is not None
    assert 'no topic with commanded efforts' in notes_of(recording)


def test_only_commanded_effort(tmp_path):
    recording = read_bag(write_bag(tmp_path / 'bag', swing(effort=False)), LAYOUT)
    assert recording.segments[0].effort_measured is None
    check_swing(recording)


def refused(path, *words):
    with pytest.raises(BagError) as error:
        read_bag(path, LAYOUT)
    text = str(error.value)
    assert str(path) in text and '\n' not in text
    for word in words:
        assert word in text


def test_refusals_of_content(tmp_path):
    refused(write_bag(tmp_path / 'a', swing(names=('hip', 'knee'))),
            'shoulder, elbow', 'hip, knee')
    refused(write_bag(tmp_path / 'b', swing(names=('shoulder', 'knee'))),
            'shoulder, elbow', 'knee, shoulder')
    refused(write_bag(tmp_path / 'c', {'/joint_states': swing(effort=False)['/joint_states']}),
            'no effort of shoulder, elbow')
    refused(write_bag(tmp_path / 'd', swing(duration=0.05)), 'too short', '0.1 s are needed')
    refused(write_bag(tmp_path / 'e', swing(duration=0.004)), 'too short')
    refused(write_bag(tmp_path / 'f', {'/joint_states': []}), 'no JointState topic has')
    refused(write_bag(tmp_path / 'g', {}), 'no sensor_msgs/JointState topic')


def test_refusals_of_robots(tmp_path):
    ball = JointLayout('hip', 'ball', 0.0, 0.0, 1.0)
    with pytest.raises(BagError, match='ball joints'):
        read_bag(tmp_path, replace(LAYOUT, joints=(ball,)))
    with pytest.raises(BagError, match='nothing that moves'):
        read_bag(tmp_path, replace(LAYOUT, joints=()))
    bag = write_bag(tmp_path / 'bag', swing())
    with pytest.raises(BagError, match='no pose of the base'):
        read_bag(bag, replace(LAYOUT, floating=True))


def test_refusals_of_files(tmp_path):
    refused(tmp_path / 'none', 'no such file')
    refused(tmp_path, 'not a bag')
    text = tmp_path / 'a.txt'
    text.write_text('hello')
    refused(text, 'not a bag')
    pointer = tmp_path / 'pointer.mcap'
    pointer.write_text('version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n')
    refused(pointer, 'Git LFS pointer', 'git lfs pull')
    empty = tmp_path / 'empty.db3'
    empty.touch()
    refused(empty, 'empty')
    ros1 = tmp_path / 'old.bag'
    ros1.write_text('#ROSBAG V2.0\n')
    refused(ros1, 'damaged or cut off', 'rosbag reindex')


@pytest.mark.parametrize('storage', ['mcap', 'sqlite3'])
def test_damaged_files_give_one_error(tmp_path, storage):
    folder = write_bag(tmp_path / 'bag', swing(duration=0.5), storage)
    file = next(f for f in folder.iterdir() if f.suffix in ('.mcap', '.db3'))
    data = file.read_bytes()
    random = np.random.default_rng(1)
    for length in [*random.integers(1, len(data), 12), len(data) - 1]:
        file.write_bytes(data[:length])
        if storage == 'mcap':
            refused(file, 'damaged or cut off')
        else:
            _read_or_refuse(file)
    for _ in range(30):
        garbled = bytearray(data)
        for place in random.integers(0, len(data), 20):
            garbled[place] = random.integers(0, 256)
        file.write_bytes(garbled)
        _read_or_refuse(file)


def _read_or_refuse(file):
    try:
        recording = read_bag(file, LAYOUT)
    except BagError:
        return
    for segment in recording.segments:
        assert np.isfinite(segment.joint_q).all() and np.isfinite(segment.joint_qd).all()


def test_recordings_of_a_real_machine(shared_data):
    for name, rate in (('sys_id_143339', 500), ('acrobot_mcpilco_01', 33),
                       ('pendubot_ilqr_tvlqr_lqr_01', 400)):
        recording = read_bag(shared_data / 'double_pendulum' / name, LAYOUT)
        assert len(recording.segments) == 1
        assert recording.duration > 7.5
        assert f'{rate} Hz' in notes_of(recording)


def test_odd_bags_of_other_projects(shared_data):
    paths = [p for p in (shared_data / 'bags').rglob('*') if p.name != 'LICENSE']
    assert paths
    for path in paths:
        with pytest.raises(BagError):
            read_bag(path, LAYOUT)
