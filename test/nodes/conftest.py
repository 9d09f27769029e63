# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the tests that need ROS 2."""

from pathlib import Path

import pytest

pytest.importorskip('rclpy', reason='ROS 2 is not installed')

from running_node import Listener, running_node, START_TIMEOUT, wait_for  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

WORLD = Path(__file__).with_name('aside.sdf')


@pytest.fixture(scope='session')
def listener():
    """Return a Listener for all tests."""
    listener = Listener('listener')
    yield listener
    listener.close()


@pytest.fixture(scope='session')
def simulator(listener):
    """Return a running simulator: the double pendulum, obstacles aside, by MuJoCo."""
    states = listener.collect(JointState, 'joint_states')
    with running_node('solver:=mujoco', f'world:={WORLD}') as node:
        wait_for(lambda: states or node.process.poll() is not None, 'joint_states', START_TIMEOUT)
        assert node.process.poll() is None, node.output
        yield node
