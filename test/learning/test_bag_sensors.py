# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Sensors that fail for a while, velocities that are made up, efforts that come late."""

from bag_writing import LAYOUT, message, notes_of, swing, write_bag
import numpy as np
import pytest

from nerd_ros.learning.bags.recording import read_bag
from nerd_ros.learning.bags.stuck_sensors import stuck_samples

NAMES = ('shoulder', 'elbow')


def no_sample_within(recording, start, end):
    return not any(((s.time > start) & (s.time < end)).any() for s in recording.segments)


@pytest.mark.parametrize('held, span', [
    (True, (0.8, 1.4)), (True, (-1.0, 0.7)),
    # Held to the end it may as well have come to rest.
    (False, (0.8, 1.4)), (False, (-1.0, 0.7)), (False, (0.8, 9.0))])
def test_frozen_sensor(tmp_path, held, span):
    topics = swing()
    last = None
    for k, (_, one) in enumerate(topics['/joint_states']):
        if span[0] < k * 0.002 < span[1]:
            last = one.position[1] if last is None else last
            one.position[1] = last if held else 0.123
            one.velocity[1] = 0.0
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'sensor of elbow stands still' in notes_of(recording)
    assert no_sample_within(recording, span[0] + 0.01, span[1] - 0.01)
    for segment in recording.segments:
        np.testing.assert_allclose(segment.joint_q[:, 1], np.cos(4 * segment.time), atol=2e-3)


def test_frozen_sensor_with_a_velocity(tmp_path):
    topics = swing()
    for _, one in topics['/joint_states'][500:]:
        one.position[1] = topics['/joint_states'][500][1].position[1]
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'sensor of elbow stands still' in notes_of(recording)
    assert recording.segments[-1].time[-1] < 1.01


def test_missing_sensor(tmp_path):
    topics = swing()
    for k, (_, one) in enumerate(topics['/joint_states']):
        if 0.8 < k * 0.002 < 1.4:
            one.position[1] = np.nan
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert len(recording.segments) == 2
    assert '1 gaps in elbow' in notes_of(recording)
    assert no_sample_within(recording, 0.81, 1.39)


def test_joint_at_rest_is_not_stuck():
    # Coulomb friction stops it smoothly and lets it go smoothly; the encoder has steps.
    time = np.arange(0.0, 6.0, 0.002)
    position = np.where(time < 2, (2 - time)**2, np.where(time > 4, (time - 4)**2, 0.0))
    position = np.round(position[:, None] / 4e-4) * 4e-4
    velocity = np.gradient(position[:, 0], time)[:, None]
    for known in (velocity, np.full_like(velocity, np.nan)):
        assert not stuck_samples(time, position, known).any()


def test_no_sensor_of_a_real_machine_is_taken_for_stuck(shared_data):
    for bag in sorted((shared_data / 'double_pendulum').glob('*/')):
        recording = read_bag(bag, LAYOUT)
        assert 'stands still' not in notes_of(recording)
        assert len(recording.segments) == 1


@pytest.mark.parametrize('factor', [-1.0, 57.3, 0.2])
def test_velocity_that_does_not_agree(tmp_path, factor):
    topics = swing()
    for _, one in topics['/joint_states']:
        one.velocity[0] *= factor
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'velocity of shoulder' in notes_of(recording)
    assert 'does not agree' in notes_of(recording)
    segment = recording.segments[0]
    np.testing.assert_allclose(segment.joint_qd[:, 0], 3 * np.cos(3 * segment.time), atol=0.1)


def moving(position, velocity, rate, noise=0.0, quantum=0.0, velocity_noise=0.0):
    """Return topics of a shoulder at `position(t)`; the elbow swings, its velocity exact."""
    random = np.random.default_rng(2)
    time = np.arange(0.0, 4.0, 1 / rate)
    shoulder = position(time) + random.normal(0, noise, len(time))
    shoulder = np.round(shoulder / quantum) * quantum if quantum else shoulder
    rates = velocity(time) + random.normal(0, velocity_noise, len(time))
    return {'/joint_states': [message(t, NAMES, [q, np.cos(4 * t)], [v, -4 * np.sin(4 * t)],
                                      [0.0, 0.0]) for t, q, v in zip(time, shoulder, rates)]}


@pytest.mark.parametrize('rate', [33.0, 50.0, 200.0, 500.0])
@pytest.mark.parametrize('position, velocity', [
    (lambda t: np.sin(3 * t), lambda t: 3 * np.cos(3 * t)),
    (lambda t: np.sin(15 * t), lambda t: 15 * np.cos(15 * t)),
    (lambda t: abs(np.sin(5 * t)), lambda t: 5 * np.cos(5 * t) * np.sign(np.sin(5 * t))),
])
def test_good_velocity_is_kept(tmp_path, rate, position, velocity):
    for name, options in (('exact', {}), ('noise', {'noise': 2e-4}), ('steps', {'quantum': 1e-3})):
        bag = write_bag(tmp_path / name, moving(position, velocity, rate, **options))
        recording = read_bag(bag, LAYOUT)
        assert 'velocity: as recorded' in recording.notes, name
        segment = recording.segments[0]
        # At an impact no two samples agree on the velocity between them.
        off = np.abs(segment.joint_qd[:, 0] - velocity(segment.time))
        assert np.median(off) < 0.02 * np.abs(segment.joint_qd[:, 0]).max() + 1e-3


@pytest.mark.parametrize('rate, left', [(50.0, 0.02), (200.0, 0.02), (500.0, 0.01)])
def test_noisy_velocity_gives_way_to_the_slope(tmp_path, rate, left):
    topics = moving(lambda t: np.sin(3 * t), lambda t: 3 * np.cos(3 * t), rate, 1.5e-4,
                    velocity_noise=0.1)
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    notes = [note for note in recording.notes if note.startswith('velocity of')]
    assert len(notes) == 1 and 'velocity of shoulder: noise' in notes[0]
    assert 'the slope is used' in notes[0]
    figures = [float(word) for word in notes[0].split() if word.startswith('0.')]
    assert 0.08 < figures[0] < 0.12 and figures[1] < left
    segment = recording.segments[0]
    off = segment.joint_qd - np.stack([3 * np.cos(3 * segment.time),
                                       -4 * np.sin(4 * segment.time)], 1)
    assert np.sqrt(np.mean(off[:, 0]**2)) < left
    assert np.abs(off[:, 1]).max() < 0.05


def test_velocity_from_the_last_two_positions_is_late(tmp_path):
    time = np.arange(0.0, 4.0, 0.03)
    angle = np.sin(6 * time)
    rate = np.diff(angle, prepend=angle[0]) / 0.03
    topics = {'/joint_states': [message(t, NAMES, [q, q], [v, v], [0.0, 0.0])
                                for t, q, v in zip(time, angle, rate)]}
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    assert 'the slope is used' in notes_of(recording)
    segment = recording.segments[0]
    inner = slice(12, -12)   # where samples lie on both sides
    np.testing.assert_allclose(segment.joint_qd[inner, 0], 6 * np.cos(6 * segment.time[inner]),
                               atol=0.05)


def test_a_real_machine_differentiates_its_positions(shared_data):
    for name in ('sys_id_143524', 'pendubot_ilqr_tvlqr_lqr_05', 'acrobot_mcpilco_01'):
        recording = read_bag(shared_data / 'double_pendulum' / name, LAYOUT)
        assert notes_of(recording).count('the slope is used') == 2


def late(delay, command, duration=8.0, noise=0.02, rate=500.0, gain=0.9):
    """Return topics whose measured effort is the commanded one `delay` s ago."""
    random = np.random.default_rng(1)
    time = np.arange(0.0, duration, 1 / rate)
    states = [message(t, NAMES, [np.sin(3 * t), np.cos(4 * t)], (),
                      [gain * command(t - delay) + random.normal(0, noise)] * 2) for t in time]
    return {'/joint_states': states,
            '/joint_commands': [message(t, NAMES, effort=[command(t)] * 2) for t in time]}


@pytest.mark.parametrize('delay', [0.0, 0.0043, 0.0125, 0.03, 0.11])
def test_latency(tmp_path, delay):
    topics = late(delay, lambda t: np.sin(9 * t) + 0.5 * np.sin(31 * t) * np.cos(2 * t))
    recording = read_bag(write_bag(tmp_path / 'bag', topics), LAYOUT)
    # The command is held for 2 ms, one on average.
    np.testing.assert_allclose(recording.latency, delay - 0.001, atol=1e-3)
    assert 'measured effort follows the command after: shoulder' in notes_of(recording)


@pytest.mark.parametrize('command, reason', [
    (lambda t: 1.0, 'never changes'),
    (lambda t: np.sin(0.2 * t), 'too slowly'),
])
def test_latency_that_cannot_be_told(tmp_path, command, reason):
    recording = read_bag(write_bag(tmp_path / 'bag', late(0.01, command)), LAYOUT)
    assert recording.latency == (None, None)
    assert reason in notes_of(recording)


def test_measured_effort_for_a_part_only(tmp_path):
    topics = swing()
    for _, one in topics['/joint_states'][:200]:
        one.effort[:] = np.nan
    recording = read_bag(write_bag(tmp_path / 'a', topics), LAYOUT)
    assert 'without measured efforts' in notes_of(recording)
    assert recording.segments[0].time[0] > 0.39
    for _, one in topics['/joint_states'][:800]:
        one.effort[:] = np.nan
    recording = read_bag(write_bag(tmp_path / 'b', topics), LAYOUT)
    assert 'less than half of the motion' in notes_of(recording)
    assert recording.segments[0].effort_measured is None and recording.duration > 1.98
