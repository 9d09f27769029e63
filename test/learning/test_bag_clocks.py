# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Times of messages: clocks that jitter, lie or are missing."""

from bag_writing import (
    array_message, command_at, LAYOUT, message, notes_of, START, swing, write_bag)
import numpy as np
import pytest

from nerd_ros.learning.bags.recording import read_bag
from nerd_ros.learning.bags.stretches import command_stretches, overlap, stretches


def error_of(recording):
    """RMS error of the positions of `swing`, but for an error of all times alike."""
    segments = recording.segments
    time = np.concatenate([s.time for s in segments])
    error = np.concatenate([s.joint_q for s in segments])
    error -= np.stack([np.sin(3 * time), np.cos(4 * time)], 1)
    rate = np.stack([3 * np.cos(3 * time), -4 * np.sin(4 * time)], 1)
    shift = (error * rate).sum() / np.square(rate).sum()
    assert abs(shift) < 0.02
    return np.sqrt(np.mean(np.square(error - shift * rate)))


def jittered(topics, stamp_jitter, receipt_jitter, seed=0):
    """Return topics whose header stamps and times of receipt are off by up to so much [s]."""
    random = np.random.default_rng(seed)
    result = {}
    for topic, messages in topics.items():
        result[topic] = []
        for received, one in messages:
            stamp = received + round(random.uniform(-stamp_jitter, stamp_jitter) * 1e9)
            one.header.stamp.sec, one.header.stamp.nanosec = divmod(stamp, 10**9)
            result[topic].append(
                (received + round(random.uniform(-receipt_jitter, receipt_jitter) * 1e9), one))
    return result


@pytest.mark.parametrize('stamps, receipt, bound', [
    (0.01, 0.0, 1e-3),      # the other clock is the better one
    (0.01, 0.0005, 3e-3),   # and still is
    (0.01, 0.01, 8e-3),     # the order is lost
])
def test_jitter_of_10_ms(tmp_path, stamps, receipt, bound):
    topics = jittered(swing(duration=6.0), stamps, receipt)
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'jitter' in notes_of(recording)
    assert recording.duration > 5.8 and len(recording.segments) == 1
    assert error_of(recording) < bound


def test_jitter_of_stamps_of_messages_in_order(tmp_path):
    # Received together with others, as after a slow network: only the stamps of a line are true.
    topics = jittered(swing(duration=6.0), 0.01, 0.0)
    for messages in topics.values():
        for k, (received, one) in enumerate(messages):
            messages[k] = (START + (received - START) // 20_000_000 * 20_000_000 + k % 10, one)
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'a line through' in notes_of(recording)
    assert recording.duration > 5.8 and len(recording.segments) == 1
    # A line through times cannot know of an offset, here of half a burst.
    assert error_of(recording) < 0.03


def test_uneven_sampling_is_no_jitter(tmp_path):
    random = np.random.default_rng(0)
    times = np.sort(random.uniform(0.0, 4.0, 1600))
    states = [message(t, ('shoulder', 'elbow'), [np.sin(3 * t), np.cos(4 * t)],
                      [3 * np.cos(3 * t), -4 * np.sin(4 * t)], [0.0, 0.0]) for t in times]
    recording = read_bag(write_bag(tmp_path / 'bag', {'/joint_states': states}), LAYOUT)
    assert 'jitter' not in notes_of(recording)
    assert len(recording.segments) == 1
    assert error_of(recording) < 1e-4


def test_stamped_states_and_unstamped_commands(tmp_path):
    topics = swing()
    topics['/effort_controller/commands'] = [array_message(t, command_at(t))
                                             for t in np.arange(0.0, 2.0, 0.002)]
    del topics['/joint_commands']
    for k, (received, one) in enumerate(topics['/joint_states']):
        # Late on the way: only the stamps are right.
        topics['/joint_states'][k] = received + 1_000_000 * (k % 7), one
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert '/effort_controller/commands has no header stamps' in notes_of(recording)
    assert error_of(recording) < 1e-3


def test_stamps_of_simulated_time_do_not_go_with_unstamped_commands(tmp_path):
    topics = swing(stamp=lambda t: 5.0 + 0.5 * t)
    topics['/commands'] = [array_message(t, command_at(t)) for t in np.arange(0.0, 2.0, 0.002)]
    del topics['/joint_commands']
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'from the times of receipt' in notes_of(recording)
    assert error_of(recording) < 1e-3 and recording.duration > 1.98


def test_stamps_of_simulated_time_count(tmp_path):
    recording = read_bag(write_bag(tmp_path / 'bag', swing(stamp=lambda t: 5.0 + 0.5 * t)), LAYOUT)
    assert recording.duration == pytest.approx(1.0, abs=0.01)


def test_two_senders_whose_stamps_interleave(tmp_path):
    # Stamps that step back by less than a sender's delay are no fault of the clock.
    topics = swing()
    states = topics['/joint_states']
    for k in range(0, len(states), 2):
        states[k] = states[k][0] + 3_000_000, states[k][1]
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'times of receipt' not in notes_of(recording)
    assert error_of(recording) < 1e-3


def test_stretches():
    time = np.concatenate([np.arange(0.0, 1.0, 0.01), np.arange(1.2, 2.0, 0.01)])
    found = stretches(time, 0.005)
    np.testing.assert_allclose(found, [(0.0, 0.99), (1.2, 1.99)])
    assert overlap(found, [(0.5, 1.3), (1.4, 3.0)]) == [
        (0.5, found[0][1]), (found[1][0], 1.3), (1.4, found[1][1])]
    assert overlap(found, []) == []
    # Bursts of ten have no period, but no gap either.
    bursts = np.add.outer(np.arange(50) * 0.02, np.arange(10) * 1e-5).ravel()
    assert len(stretches(bursts, 0.005)) == 1
    assert stretches(time[:1], 0.005) == []
    assert command_stretches(time[:2])[0] == [(0.0, np.inf)]
