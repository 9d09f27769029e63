# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where states and commands come from: several topics, arrays, ROS 1, topics that are named."""

from dataclasses import replace

from bag_writing import (
    array_message, check_swing, command_at, LAYOUT, message, notes_of, swing, write_bag,
    write_ros1_bag)
import numpy as np
import pytest

from nerd_ros.dynamics.layout import JointLayout, MimicLayout
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import read_bag


def halves(shift=0.0):
    """Return the states of `swing` as two drivers send them, the second `shift` s later."""
    one, two = [], []
    for time in np.arange(0.0, 2.0, 0.002):
        late = time + shift
        one.append(message(time, ['shoulder'], [np.sin(3 * time)], [3 * np.cos(3 * time)], [0.1]))
        two.append(message(late, ['elbow'], [np.cos(4 * late)], [-4 * np.sin(4 * late)], [0.2]))
    return one, two


def test_joints_on_two_topics(tmp_path):
    one, two = halves(0.0007)
    bag = write_bag(tmp_path / 'bag', {
        '/left/state': one, '/right/state': two,
        '/joint_commands': swing()['/joint_commands']})
    recording = read_bag(bag, LAYOUT)
    assert 'put together from' in notes_of(recording) and len(recording.segments) == 1
    assert set(recording.topics.states.split(',')) == {'/left/state', '/right/state'}
    assert recording.duration > 1.98
    check_swing(recording)
    np.testing.assert_allclose(recording.segments[0].effort_measured, [[0.1, 0.2]] * len(
        recording.segments[0].time))


def test_joints_in_turn_on_one_topic(tmp_path):
    one, two = halves(0.0007)
    states = sorted([*one, *two], key=lambda pair: pair[0])
    recording = read_bag(write_bag(tmp_path / 'bag', {'/joint_states': states}), LAYOUT)
    assert len(recording.segments) == 1 and recording.duration > 1.98
    check_swing(recording)
    np.testing.assert_allclose(recording.rates, 500.0, rtol=1e-3)


@pytest.mark.parametrize('topic, taken', [
    ('/effort_controller/commands', True), ('/position_controller/commands', False),
    ('/torque', True), ('/debug/data', False)])
def test_commands_in_an_array(tmp_path, topic, taken):
    topics = swing(stamp=lambda t: 1_700_000_000 + t)
    topics[topic] = [array_message(t, command_at(t)) for t in np.arange(0.0, 2.0, 0.002)]
    del topics['/joint_commands']
    bag = write_bag(tmp_path / 'bag', topics)
    recording = read_bag(bag, LAYOUT)
    assert (recording.topics.commands == topic) == taken
    check_swing(recording)
    check_swing(named := read_bag(bag, LAYOUT, Topics(commands=topic)))
    assert named.segments[0].effort_command is not None


def test_array_of_another_length_is_no_command(tmp_path):
    topics = {'/joint_states': swing()['/joint_states'],
              '/commands': [array_message(t, [1.0, 2.0, 3.0]) for t in np.arange(0.0, 2.0, 0.1)]}
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert recording.segments[0].effort_command is None
    assert 'the efforts of /commands' in notes_of(recording)


def test_ros1(tmp_path):
    recording = read_bag(write_ros1_bag(tmp_path / 'old.bag', swing()), LAYOUT)
    assert recording.name == 'old' and len(recording.segments) == 1
    check_swing(recording)


def test_topics_by_name(tmp_path):
    topics = swing()
    topics['/model/joint_states'] = [message(t, ('shoulder', 'elbow'), [0.1 * t, 0.2 * t])
                                     for t in np.arange(0.0, 2.0, 0.001)]
    topics['/old/joint_commands'] = [message(t, ('shoulder', 'elbow'), effort=[7.0, 8.0])
                                     for t in np.arange(0.0, 2.0, 0.001)]
    bag = write_bag(tmp_path / 'bag', topics)
    recording = read_bag(bag, LAYOUT, Topics(states='/joint_states', commands='/joint_commands'))
    check_swing(recording)
    other = read_bag(bag, LAYOUT, Topics('/model/joint_states', '/old/joint_commands'))
    np.testing.assert_allclose(other.segments[0].joint_q[:, 1], 0.2 * other.segments[0].time,
                               atol=1e-6)
    np.testing.assert_allclose(other.segments[0].effort_command, [[7.0, 8.0]] * len(
        other.segments[0].time))
    for wrong in (Topics(states='/nothing'), Topics(commands='/nothing')):
        with pytest.raises(BagError, match='/nothing'):
            read_bag(bag, LAYOUT, wrong)


def test_joint_that_follows_another_needs_no_sensor(tmp_path):
    finger = JointLayout('finger', 'prismatic', -1.0, 1.0, 0.0, MimicLayout('shoulder', 0.5, 0.1))
    layout = replace(LAYOUT, joints=(*LAYOUT.joints, finger))
    recording = read_bag(write_bag(tmp_path / 'bag', swing()), layout)
    segment = recording.segments[0]
    np.testing.assert_allclose(segment.joint_q[:, 2], 0.5 * segment.joint_q[:, 0] + 0.1)
    np.testing.assert_allclose(segment.joint_qd[:, 2], 0.5 * segment.joint_qd[:, 0])
    assert 'finger was not recorded; it follows shoulder' in notes_of(recording)


def test_messages_that_are_built_differently_are_told_apart(tmp_path):
    # As long as the others, but with the joints in another order, or with velocity for effort.
    topics = swing(velocity=False)
    states = topics['/joint_states']
    for k in range(0, len(states), 2):
        time = (states[k][0] - states[0][0]) * 1e-9
        states[k] = message(time, ('elbow', 'shoulder'), [np.cos(4 * time), np.sin(3 * time)],
                            effort=[0.2, 0.1])
    for k in range(1, len(states), 2):
        states[k][1].effort[:] = 0.1, 0.2
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    check_swing(recording)
    np.testing.assert_allclose(recording.segments[0].effort_measured, [[0.1, 0.2]] * len(
        recording.segments[0].time))
    for k in range(0, len(states), 2):
        time = (states[k][0] - states[0][0]) * 1e-9
        states[k] = message(time, ('shoulder', 'elbow'), [np.sin(3 * time), np.cos(4 * time)],
                            velocity=[3 * np.cos(3 * time), -4 * np.sin(4 * time)])
    recording = read_bag(write_bag(tmp_path / 'other', topics), LAYOUT)
    check_swing(recording)
    np.testing.assert_allclose(recording.segments[0].effort_measured, [[0.1, 0.2]] * len(
        recording.segments[0].time))
