# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands that a real machine got, sent to the running node over DDS."""

import time

import numpy as np
import pytest
from running_node import running_node, START_TIMEOUT, wait_for
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool

from nerd_ros.scene.simulation import Simulation

BAG = 'sys_id_143339'
LENGTH = 6.0  # of the recording [s]


def recorded_commands(path) -> tuple[np.ndarray, list[str], np.ndarray]:
    """Read times from the first on [s], names and efforts (n, 2) of `/joint_commands`."""
    pytest.importorskip('rosbags', reason='rosbags is not installed')
    from rosbags.highlevel import AnyReader
    with AnyReader([path]) as reader:
        connections = [c for c in reader.connections if c.topic == '/joint_commands']
        rows = [(time, reader.deserialize(data, connection.msgtype))
                for connection, time, data in reader.messages(connections)]
    times = np.array([row[0] for row in rows])
    return (times - times[0]) * 1e-9, list(rows[0][1].name), np.array([m.effort for _, m in rows])


@pytest.fixture(scope='module')
def recording(shared_data):
    times, names, efforts = recorded_commands(shared_data / 'double_pendulum' / BAG)
    chosen = times <= LENGTH
    return times[chosen], names, efforts[chosen]


@pytest.fixture(scope='module')
def played(recording, listener):
    """Play the commands at their own times into a node; returns its joint states."""
    times, names, efforts = recording
    with running_node('solver:=mujoco', '-r __ns:=/played', 'start_paused:=true') as node:
        states = listener.collect(JointState, '/played/joint_states', 5000)
        publisher = listener.publisher(JointState, '/played/joint_commands')
        listener.call(SetBool, '/played/nerd_sim/pause', SetBool.Request(data=False))
        wait_for(lambda: states, 'joint states', START_TIMEOUT)
        begin = time.monotonic()
        for when, effort in zip(times, efforts):
            time.sleep(max(0.0, begin + when - time.monotonic()))
            publisher.publish(JointState(name=names, effort=effort.tolist()))
        time.sleep(0.3)
        assert node.process.poll() is None, node.output
    return states


def seconds(state) -> float:
    return state.header.stamp.sec + 1e-9 * state.header.stamp.nanosec


def test_commands_act_in_their_order_and_at_their_time(recording, played):
    times, names, efforts = recording
    assert names == ['shoulder', 'elbow']
    commanded = np.clip(efforts, -6.0, 6.0).astype(np.float32)
    applied = np.array([state.effort for state in played], np.float32)
    # Each effort that acted is one of the commanded, none before its predecessor.
    index, lags, start = 0, [], None
    for state, effort in zip(played, applied):
        if start is None and not effort.any():
            continue
        matches = np.flatnonzero((commanded[index:] == effort).all(axis=1))
        if not len(matches):
            assert state is played[-1] or not effort.any(), f'{effort} was not commanded'
            break
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
    assert (np.diff(steps) == 1).all(), 'a joint state was lost'
    simulation = Simulation('double_pendulum', 'empty', 'mujoco')
    # What came before the first state that was heard is the robot at rest.
    expected = []
    for state in played:
        simulation.set_effort(state.effort)
        simulation.step()
        expected.append(np.concatenate([simulation.joint_q[0], simulation.joint_qd[0]]))
    heard = np.array([[*state.position, *state.velocity] for state in played])
    assert np.isfinite(heard).all()
    assert np.ptp(heard[:, 0]) > 0.2, 'the recorded commands have to move the shoulder'
    np.testing.assert_allclose(heard, expected, rtol=0.0, atol=1e-4)
