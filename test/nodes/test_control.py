# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Commands, services and parameters of the running node, over DDS."""

from concurrent.futures import CancelledError
from dataclasses import fields
import os
import random
import time

import numpy as np
import pytest
from rcl_interfaces.srv import DescribeParameters, SetParameters
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rosgraph_msgs.msg import Clock
from running_node import wait_for
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool, Trigger
from tf2_msgs.msg import TFMessage

from nerd_ros.nodes.parameters import SimParameters
from nerd_ros.nodes.sim_node import respond


@pytest.fixture(scope='module')
def states(simulator, listener):
    """Return the joint states, growing, with commands held for ever."""
    set_parameters(listener, command_timeout=0.0)
    yield listener.collect(JointState, 'joint_states')
    set_parameters(listener, command_timeout=0.5)


@pytest.fixture(scope='module')
def by_name(simulator, listener):
    return listener.publisher(JointState, 'joint_commands')


@pytest.fixture(scope='module')
def by_order(simulator, listener):
    return listener.publisher(Float64MultiArray, 'effort_controller/commands')


@pytest.fixture(autouse=True)
def fresh(states, listener):
    """Let each test start from the same state, without effort."""
    reset(listener)


def set_parameters(listener, **values):
    request = SetParameters.Request(parameters=[
        Parameter(name, value=value).to_parameter_msg() for name, value in values.items()])
    return listener.call(SetParameters, 'nerd_sim/set_parameters', request).results


def reset(listener):
    assert listener.call(Trigger, 'nerd_sim/reset', Trigger.Request()).success


def pause(listener, data: bool):
    assert listener.call(SetBool, 'nerd_sim/pause', SetBool.Request(data=data)).success


def wait_for_effort(states, effort: list):
    start = len(states)
    wait_for(lambda: any(list(s.effort) == effort for s in states[start:]), f'effort {effort}')


def test_effort_by_name_moves_the_joint(states, by_name):
    by_name.publish(JointState(name=['shoulder'], effort=[2.0]))
    wait_for_effort(states, [2.0, 0.0])
    wait_for(lambda: states[-1].position[0] > 0.05, 'the shoulder to move')


def test_effort_by_name_in_any_order(states, by_name):
    by_name.publish(JointState(name=['elbow', 'shoulder'], effort=[0.5, -0.25]))
    wait_for_effort(states, [-0.25, 0.5])


def test_effort_by_order_is_clamped(states, by_order):
    by_order.publish(Float64MultiArray(data=[-1000.0, 0.75]))
    wait_for_effort(states, [-6.0, 0.75])


def test_last_of_both_topics_counts(states, by_name, by_order):
    by_order.publish(Float64MultiArray(data=[1.0, 1.5]))
    wait_for_effort(states, [1.0, 1.5])
    by_name.publish(JointState(name=['elbow'], effort=[0.25]))
    wait_for_effort(states, [1.0, 0.25])


def test_effort_ends_after_the_timeout(states, by_name, listener):
    set_parameters(listener, command_timeout=0.3, timeout_reaction='zero')
    try:
        for _ in range(5):
            count = len(states)
            by_name.publish(JointState(name=['shoulder'], effort=[1.0]))
            wait_for_effort(states, [1.0, 0.0])
            wait_for_effort(states, [0.0, 0.0])
            heard = [(s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec, s.effort[0])
                     for s in states[count - 1:]]
            # A busy listener misses states, and with them when the effort began.
            if np.diff([when for when, _ in heard]).max() < 0.008:
                break
    finally:
        set_parameters(listener, command_timeout=0.0)
    commanded = [when for when, effort in heard if effort == 1.0]
    assert commanded[-1] - commanded[0] == pytest.approx(0.3, abs=0.02)


@pytest.mark.parametrize('command, told', [
    (JointState(name=['shoulder', 'wrist'], effort=[3.0, 3.0]), 'joint wrist is unknown'),
    (JointState(name=['shoulder', 'elbow'], effort=[3.0, float('nan')]), 'joint elbow is nan'),
    (JointState(name=['shoulder', 'elbow'], effort=[3.0]), '1 values for 2 names'),
    (JointState(name=['shoulder'], position=[3.0]), 'positions and velocities are not obeyed'),
])
def test_a_bad_command_changes_nothing_and_is_named(simulator, states, by_name, command, told):
    by_name.publish(JointState(name=['shoulder', 'elbow'], effort=[0.5, 0.25]))
    wait_for_effort(states, [0.5, 0.25])
    for _ in range(3):
        by_name.publish(command)
    # Not hidden by the warnings of other commands a moment ago, nor told three times.
    wait_for(lambda: told in simulator.output, 'a warning')
    assert simulator.output.count(told) == 1
    assert list(states[-1].effort) == [0.5, 0.25]


def random_message(rng: random.Random):
    names = ['shoulder', 'elbow', '', 'wrist', 'el\nbow', '\U0001f916' * 20, 'x' * 5000, '%s%n']
    count = rng.choice([0, 1, 2, 3, 50])
    numbers = [0.0, 1.0, -1e308, float('nan'), float('inf'), 5e-324]

    def some():
        return [rng.choice(numbers) for _ in range(rng.choice([0, count, count + 1]))]
    if rng.random() < 0.3:
        return Float64MultiArray(data=some() + [float('nan')])
    return JointState(name=[rng.choice(names[2:])] + [rng.choice(names) for _ in range(count)],
                      position=some(), velocity=some(), effort=some())


def damaged(rng: random.Random, message) -> bytes:
    data = bytearray(serialize_message(message))
    kind = rng.randrange(4)
    if kind == 0:
        return os.urandom(rng.randrange(1, 500))
    if kind == 1:
        return bytes(data[:rng.randrange(1, len(data))])
    if kind == 2:
        return bytes(data[:4]) + os.urandom(rng.randrange(200))
    # A length that promises four billion items.
    place = 4 * rng.randrange(1, len(data) // 4)
    data[place:place + 4] = b'\xff\xff\xff\xff'
    return bytes(data)


def test_no_command_stops_the_loop(simulator, states, by_name, by_order):
    by_name.publish(JointState(name=['shoulder', 'elbow'], effort=[0.5, 0.25]))
    wait_for_effort(states, [0.5, 0.25])
    rng = random.Random(0)
    huge = JointState(name=['shoulder'] * 100_000, effort=[1.0] * 100_000)
    first, sent, begin = len(states), 0, time.monotonic()
    while time.monotonic() < begin + 4.0:
        message = random_message(rng)
        publisher = by_name if isinstance(message, JointState) else by_order
        publisher.publish(damaged(rng, message) if rng.random() < 0.5 else message)
        sent += 1
        if sent in (50, 500):
            by_name.publish(huge)
        time.sleep(0.002)
    during = states[first:]
    assert simulator.process.poll() is None, simulator.output
    assert sent > 200
    assert all(list(s.effort) == [0.5, 0.25] for s in during), 'the last good command has to stay'
    # At 200 Hz 800 steps; what counts is that it goes on, on however busy a machine.
    span = during[-1].header.stamp.sec - during[0].header.stamp.sec
    assert span >= 2 and len(during) > 200
    by_order.publish(Float64MultiArray(data=[0.125, 0.0]))
    wait_for_effort(states, [0.125, 0.0])


def test_reset(states, by_name, listener):
    by_name.publish(JointState(name=['shoulder'], effort=[3.0]))
    wait_for(lambda: abs(states[-1].position[0]) > 0.1, 'the shoulder to move')
    count = len(states)
    reset(listener)
    wait_for(lambda: any(list(s.position) == [0.0, 0.0] for s in states[count:]), 'the start')
    wait_for_effort(states, [0.0, 0.0])
    stamps = [s.header.stamp.sec + 1e-9 * s.header.stamp.nanosec for s in states[count - 1:]]
    assert all(a < b for a, b in zip(stamps, stamps[1:])), 'time goes on over a reset'


def test_pause_stops_clock_and_states(states, listener):
    clocks = listener.collect(Clock, '/clock')
    wait_for(lambda: clocks, '/clock')
    pause(listener, True)
    try:
        time.sleep(0.3)  # what is under way arrives
        counts = len(states), len(clocks)
        time.sleep(0.5)
        assert (len(states), len(clocks)) == counts
        # Services go on.
        reset(listener)
    finally:
        pause(listener, False)
    wait_for(lambda: len(clocks) > counts[1] + 10, '/clock to go on')
    before, after = clocks[counts[1] - 1].clock, clocks[counts[1]].clock
    assert 0 < (after.sec - before.sec) * 10**9 + after.nanosec - before.nanosec < 10**9


def test_real_time_factor_changes_at_run_time(states, listener):
    clocks = listener.collect(Clock, '/clock')

    def simulated(span: float) -> float:
        wait_for(lambda: clocks, '/clock')
        begin = clocks[-1].clock
        time.sleep(span)
        end = clocks[-1].clock
        return end.sec - begin.sec + 1e-9 * (end.nanosec - begin.nanosec)
    try:
        set_parameters(listener, real_time_factor=0.1)
        time.sleep(0.2)
        assert simulated(1.0) == pytest.approx(0.1, abs=0.05)
    finally:
        set_parameters(listener, real_time_factor=1.0)


def test_transforms_at_a_rate_of_their_own(simulator, listener):
    transforms = listener.collect(TFMessage, '/tf')
    set_parameters(listener, tf_rate=20.0)
    try:
        time.sleep(0.3)  # what is under way arrives
        transforms.clear()
        wait_for(lambda: len(transforms) >= 10, 'transforms')
        stamps = [m.transforms[0].header.stamp for m in list(transforms)]
        assert all(stamp.nanosec % 50_000_000 == 0 for stamp in stamps)
    finally:
        set_parameters(listener, tf_rate=0.0)


def test_parameters_describe_themselves(simulator, listener):
    """A range, choices, or read-only: what a tool has to know before it sets one."""
    names = [item.name for item in fields(SimParameters)]
    request = DescribeParameters.Request(names=names)
    answer = listener.call(DescribeParameters, 'nerd_sim/describe_parameters', request)
    told = dict(zip(names, answer.descriptors))
    assert all(len(descriptor.description) > 10 for descriptor in told.values())
    assert {name for name, descriptor in told.items() if not descriptor.read_only} == {
        'real_time_factor', 'joint_state_rate', 'tf_rate', 'marker_rate', 'command_timeout',
        'timeout_reaction', 'max_bag_size', 'min_free_space', 'model'}
    factor, = told['real_time_factor'].floating_point_range
    assert (factor.from_value, factor.to_value) == (0.0, 1000.0)
    port, = told['gui_port'].integer_range
    assert (port.from_value, port.to_value) == (1, 65535)
    assert told['solver'].additional_constraints == 'one of neural, mujoco, featherstone'
    assert '[Hz]' in told['tf_rate'].description


def test_the_lowest_rate_is_a_rate(simulator, listener):
    try:
        result, = set_parameters(listener, marker_rate=1e-300)
        assert result.successful
    finally:
        set_parameters(listener, marker_rate=10.0)


@pytest.mark.parametrize('error, told', [
    (TimeoutError('busy'), 'not done: busy'), (CancelledError(), 'not done: CancelledError')])
def test_a_service_that_fails_has_a_response(error, told):
    def fail():
        raise error
    response = respond(Trigger.Response(), fail, 'done')
    assert not response.success and response.message == told


@pytest.mark.parametrize('values, told', [
    ({'real_time_factor': -1.0}, 'real_time_factor'),
    ({'timeout_reaction': 'panic'}, 'hold, zero'),
    ({'robot': 'other'}, 'read-only'), ({'model': 'shipped'}, 'choose the solver neural'),
    ({'use_sim_time': True}, 'this node publishes /clock'),
    ({'real_time_factor': float('nan')}, 'real_time_factor')])
def test_a_bad_parameter_is_refused(simulator, listener, values, told):
    result, = set_parameters(listener, **values)
    assert not result.successful and told in result.reason
