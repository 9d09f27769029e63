# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Effort commands: order, limits, time-out, and what is refused."""

import math

import numpy as np
import pytest

from nerd_ros.nodes.commands import CommandError, EffortCommands


@pytest.fixture
def commands():
    return EffortCommands(('shoulder', 'elbow'), (6.0, 4.0), timeout=0.5, reaction='zero')


def efforts(commands, time=0.0) -> list:
    commands.latch(time)
    return commands.effort.tolist()


def test_a_robot_without_joints_obeys_nothing():
    commands = EffortCommands((), (), timeout=0.5)
    with pytest.raises(CommandError, match='the robot has no joints'):
        commands.set_by_name(['hand'], [1.0])
    with pytest.raises(CommandError, match='the robot has no joints'):
        commands.set_by_order([])
    commands.clear()
    for time in (0.0, 10.0):
        commands.latch(time)
    commands.set_timeout(1.0, 'hold')
    assert commands.effort.shape == (0,)


def test_nothing_was_commanded_yet(commands):
    assert not commands.latch(0.0)
    assert commands.effort.tolist() == [0.0, 0.0]


def test_by_name_in_any_order_and_by_order(commands):
    commands.set_by_name(['elbow', 'shoulder'], [1.0, 2.0])
    assert efforts(commands) == [2.0, 1.0]
    commands.set_by_order([3.0, -3.0])
    assert efforts(commands) == [3.0, -3.0]


def test_a_subset_leaves_the_others(commands):
    commands.set_by_order([1.0, 2.0])
    commands.set_by_name(['elbow'], [3.0])
    assert efforts(commands) == [1.0, 3.0]


def test_clamped_to_the_limits(commands):
    commands.set_by_order([1e300, -5.0])
    assert efforts(commands) == [6.0, -4.0]


def test_takes_effect_at_the_latch_only(commands):
    commands.set_by_order([1.0, 1.0])
    assert commands.effort.tolist() == [0.0, 0.0]
    assert commands.latch(0.0)
    assert not commands.latch(0.005)
    assert commands.effort.tolist() == [1.0, 1.0]


def test_zero_after_the_timeout_of_each_joint(commands):
    commands.set_by_order([1.0, 2.0])
    assert efforts(commands, 10.0) == [1.0, 2.0]
    commands.set_by_name(['elbow'], [3.0])
    assert efforts(commands, 10.4) == [1.0, 3.0]
    assert efforts(commands, 10.5) == [1.0, 3.0]
    assert efforts(commands, 10.6) == [0.0, 3.0]
    assert efforts(commands, 10.95) == [0.0, 0.0]
    commands.set_by_name(['shoulder'], [1.5])
    assert efforts(commands, 20.0) == [1.5, 0.0]


def test_timeout_counts_from_the_last_command(commands):
    for step in range(10):
        commands.set_by_order([1.0, 1.0])
        assert efforts(commands, 0.4 * step) == [1.0, 1.0]


def test_hold_after_the_timeout(commands):
    commands.set_timeout(0.5, 'hold')
    commands.set_by_order([1.0, 2.0])
    assert efforts(commands, 0.0) == efforts(commands, 100.0) == [1.0, 2.0]


def test_no_timeout(commands):
    commands.set_timeout(0.0, 'zero')
    commands.set_by_order([1.0, 2.0])
    assert efforts(commands, 0.0) == efforts(commands, 1e6) == [1.0, 2.0]


def test_clear(commands):
    commands.set_by_order([1.0, 2.0])
    commands.latch(0.0)
    commands.clear()
    assert efforts(commands, 0.1) == [0.0, 0.0]


@pytest.mark.parametrize('arguments, told', [
    (([], []), 'names no joint'),
    ((['shoulder'], [], [1.0]), 'positions and velocities'),
    ((['shoulder'], [], [], [1.0]), 'positions and velocities'),
    ((['shoulder', 'elbow'], [1.0]), 'field effort has 1 values for 2 names'),
    ((['shoulder'], [1.0, 2.0]), 'field effort has 2 values for 1 names'),
    ((['shoulder', 'shoulder'], [1.0, 2.0]), 'joint shoulder is named twice'),
    ((['shoulder', 'wrist'], [1.0, 2.0]), 'joint wrist is unknown; joints are shoulder, elbow'),
    ((['shoulder', 'elbow'], [1.0, math.nan]), 'effort of joint elbow is nan'),
    ((['elbow'], [-math.inf]), 'effort of joint elbow is -inf'),
    ((['el\nbow\U0001f916'], [1.0]), r"joint 'el\nbow\U0001f916'... is unknown"),
    ((['x' * 100_000], [1.0]), "xxx'... is unknown"),
])
def test_refused_by_name(commands, arguments, told):
    commands.set_by_order([1.0, 2.0])
    with pytest.raises(CommandError) as error:
        commands.set_by_name(*arguments)
    assert told in str(error.value) and '\n' not in str(error.value)
    assert efforts(commands) == [1.0, 2.0], 'the last good command has to stay'


@pytest.mark.parametrize('values, told', [
    ([], '0 values for 2 joints (shoulder, elbow)'),
    ([1.0], '1 values for 2 joints'),
    ([1.0, 2.0, 3.0], '3 values for 2 joints'),
    ([math.nan, 1.0], 'effort of joint shoulder is nan'),
])
def test_refused_by_order(commands, values, told):
    commands.set_by_order([1.0, 2.0])
    with pytest.raises(CommandError) as error:
        commands.set_by_order(values)
    assert told in str(error.value)
    assert efforts(commands) == [1.0, 2.0], 'the last good command has to stay'


def test_an_array_of_a_message_is_taken_as_it_is(commands):
    commands.set_by_order(np.array([1.0, 2.0]))
    assert efforts(commands) == [1.0, 2.0]
