# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands that a real machine got, sent to the running node over DDS."""

from dataclasses import dataclass

import time

import numpy as np
import pytest
from running_node import running_node, START_TIMEOUT, wait_for
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from nerd_ros.scene.simulation import Simulation

BAG = 'sys_id_143339'
LENGTH = 3.0  # of the recording [s]
HORIZON = 0.5  # [s]
PACE = 0.5  # of the simulation: half of what a busy machine is late


@dataclass(frozen=True)
class Recording:
    """What a bag holds, with times [s] from the first command on."""

    names: list
    times: np.ndarray
    efforts: np.ndarray         # (n, 2) commanded [N m]
    state_times: np.ndarray
    positions: np.ndarray       # (m, 2) measured [rad]
    velocities: np.ndarray      # (m, 2) measured [rad/s]


@pytest.fixture(scope='module')
def recording(shared_data) -> Recording:
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    from rosbags.highlevel import AnyReader
    rows = {'/joint_commands': [], '/joint_states': []}
    with AnyReader([shared_data / 'double_pendulum' / BAG]) as reader:
        for connection, when, data in reader.messages():
            rows[connection.topic].append(
                (when, reader.deserialize(data, connection.msgtype)))
    commands, states = rows['/joint_commands'], rows['/joint_states']
    begin = commands[0][0]

    def first(rows):
        return [row for row in rows if row[0] <= begin + LENGTH * 1e9]

    commands, states = first(commands), first(states)
    assert all(m.name == commands[0][1].name for _, m in (*commands, *states))
    return Recording(
        commands[0][1].name,
        1e-9 * np.array([when - begin for when, _ in commands]),
        np.array([m.effort for _, m in commands]),
        1e-9 * np.array([when - begin for when, _ in states]),
        np.array([m.position for _, m in states]), np.array([m.velocity for _, m in states]))


def seconds(state) -> float:
    return state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec


@pytest.fixture(scope='module')
def played(recording, listener):
    """
    Play the commands at their own times into a node; returns its joint states.

    Times are those of the simulation, so that it matters little how busy the machine is.
    """
    with running_node('solver:=mujoco', 'world:=empty', '-r __ns:=/played',
                      'start_paused:=true', f'real_time_factor:={PACE}') as node:
        states = listener.collect(JointState, '/played/joint_states', 5000)
        # Only the newest: what waits behind other states would tell an old time.
        newest = listener.collect(JointState, '/played/joint_states', 1)
        publisher = listener.publisher(JointState, '/played/joint_commands')
        listener.call(SetBool, '/played/nerd_sim/pause', SetBool.Request(data=False))
        wait_for(lambda: newest, 'joint states', START_TIMEOUT)
        begin, end = seconds(newest[-1]), time.monotonic() + 10.0 * LENGTH / PACE

        def wait_until(moment: float) -> None:
            while seconds(newest[-1]) < moment:
                assert time.monotonic() < end, 'the simulation is too slow'
                time.sleep(0.001)

        for when, effort in zip(recording.times, recording.efforts):
            wait_until(begin + when)
            publisher.publish(JointState(name=recording.names, effort=effort.tolist()))
        last = newest[-1]
        wait_for(lambda: seconds(states[-1]) > seconds(last) + 0.1, 'the last states')
        assert node.process.poll() is None, node.output
    return states


def test_commands_act_in_their_order_and_at_their_time(recording, played):
    times = recording.times
    assert recording.names == ['shoulder', 'elbow']
    commanded = np.clip(recording.efforts, -6.0, 6.0).astype(np.float32)
    applied = np.array([state.effort for state in played], np.float32)
    # Each effort that acted is one of the commanded, none before its predecessor.
    index, lags, start = 0, [], None
    for state, effort in zip(played, applied):
        if not effort.any():  # before the first, or after one that a busy machine kept too long
            continue
        matches = np.flatnonzero((commanded[index:] == effort).all(axis=1))
        assert len(matches), f'{effort} was not commanded'
        if start is None:
            index += matches[0]
            start = seconds(state) - times[index]
        elif matches[0]:
            index += matches[0]
            lags.append(seconds(state) - start - times[index])
    assert index > 0.9 * len(commanded)
    # A step or two at most; the bound leaves room for busy machines.
    assert np.median(np.abs(lags)) < 0.1


def test_the_robot_moves_as_the_simulation_does_with_these_efforts(played):
    """The node adds nothing to the simulation: replaying the efforts gives the same motion."""
    steps = np.array([round(seconds(state) / 0.005) for state in played])
    heard = np.array([[*state.position, *state.velocity] for state in played])
    assert np.isfinite(heard).all()
    assert np.ptp(heard[:, 0]) > 0.2, 'the recorded commands have to move the shoulder'
    simulation = Simulation('double_pendulum', 'empty', 'mujoco')
    # What came before the first state that was heard is the robot at rest. A busy machine may
    # lose some later ones: the replay goes on from what was heard next.
    expected, lost = [], np.diff(steps, prepend=steps[0] - 1) != 1
    assert lost.mean() < 0.1
    for state, was_lost in zip(played, lost):
        if was_lost:
            simulation.set_state(state.position, state.velocity)
        else:
            simulation.set_effort(state.effort)
            simulation.step()
        expected.append(np.concatenate([simulation.joint_q[0], simulation.joint_qd[0]]))
    np.testing.assert_allclose(heard, expected, rtol=0.0, atol=1e-4)


def test_the_robot_moves_as_the_real_machine_did(recording, played):
    """From rest, with the recorded commands: nearer to the recorded motion than standing still."""
    assert np.abs(recording.positions[0]).max() < 0.01, 'the machine has to hang at rest at first'
    assert np.abs(recording.velocities[0]).max() < 0.05
    start = next(seconds(state) for state in played if any(state.effort)) - 0.005
    times = np.array([seconds(state) - start for state in played])
    chosen = (0.0 < times) & (times <= HORIZON)
    assert chosen.sum() > 50
    simulated = np.array([state.position for state in played])[chosen]
    measured = np.stack([np.interp(times[chosen], recording.state_times, positions)
                         for positions in recording.positions.T], axis=-1)
    error = np.sqrt(np.mean((simulated - measured) ** 2, axis=0))
    still = np.sqrt(np.mean((recording.positions[0] - measured) ** 2, axis=0))
    print(f'RMS distance over {HORIZON} s: {error} rad; of the last state held: {still} rad')
    # By itself the simulation reaches a tenth; the rest is for commands that come late.
    assert (error < 0.5 * still).all()
