# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The launch file with its default arguments: topics, rates, order, a command and the end."""

from pathlib import Path
import time

import pytest

launch_pytest = pytest.importorskip(
    'launch_pytest', reason='launch is not installed; it comes with ROS 2 and is not on PyPI')

from ament_index_python.packages import get_packages_with_prefixes  # noqa: E402
from launch import LaunchDescription  # noqa: E402
from launch.actions import (  # noqa: E402
    IncludeLaunchDescription, RegisterEventHandler)
from launch.event_handlers import OnProcessExit  # noqa: E402
from launch.launch_description_sources import PythonLaunchDescriptionSource  # noqa: E402
from rosgraph_msgs.msg import Clock  # noqa: E402
from running_node import Listener, START_TIMEOUT, wait_for  # noqa: E402
from sensor_msgs.msg import JointState  # noqa: E402

if 'nerd_ros' not in get_packages_with_prefixes():
    pytest.skip('nerd_ros is not built in a workspace: colcon build', allow_module_level=True)

LAUNCH_FILE = Path(__file__).parents[2] / 'launch' / 'sim.launch.py'
DT = 0.005
TOPICS = {
    '/arm/joint_states': 'sensor_msgs/msg/JointState',
    '/arm/joint_commands': 'sensor_msgs/msg/JointState',
    '/arm/effort_controller/commands': 'std_msgs/msg/Float64MultiArray',
    '/arm/robot_description': 'std_msgs/msg/String',
    '/arm/obstacles': 'visualization_msgs/msg/MarkerArray',
    '/clock': 'rosgraph_msgs/msg/Clock',
    '/tf': 'tf2_msgs/msg/TFMessage',
    '/tf_static': 'tf2_msgs/msg/TFMessage',
    '/diagnostics': 'diagnostic_msgs/msg/DiagnosticArray',
}
exit_codes = []


@launch_pytest.fixture(scope='module')
def launched():
    """Launch the simulator, in a namespace so that it is seen which names are relative."""
    return LaunchDescription([
        RegisterEventHandler(OnProcessExit(
            on_exit=lambda event, context: exit_codes.append(event.returncode))),
        IncludeLaunchDescription(
            PythonLaunchDescriptionSource(str(LAUNCH_FILE)),
            launch_arguments={'namespace': 'arm', 'headless': 'true'}.items()),
        launch_pytest.actions.ReadyToTest(),
    ])


@pytest.fixture(scope='module')
def listener(launched):
    """Return a Listener that has heard the simulator."""
    listener = Listener('launch_listener')
    states = listener.collect(JointState, '/arm/joint_states')
    wait_for(lambda: states or exit_codes, 'joint states', START_TIMEOUT)
    assert not exit_codes
    yield listener
    listener.close()


def seconds(stamp) -> float:
    return stamp.sec + stamp.nanosec * 1e-9


@pytest.mark.launch(fixture=launched)
def test_topics(listener):
    def missing():
        there = dict(listener.node.get_topic_names_and_types())
        return {name for name, kind in TOPICS.items() if there.get(name) != [kind]}
    wait_for(lambda: not missing(), 'all topics')


@pytest.mark.launch(fixture=launched)
def test_rate_and_order(listener):
    states = listener.collect(JointState, '/arm/joint_states')

    def rate() -> float:
        states.clear()
        begin = time.monotonic()
        time.sleep(2.0)
        return len(states) / (time.monotonic() - begin)

    # Other load on the machine may slow down one measurement.
    wait_for(lambda: abs(rate() - 1 / DT) < 0.05 / DT, '200 joint states a second', 30.0)
    assert all(list(state.name) == ['shoulder', 'elbow'] for state in states)


@pytest.mark.launch(fixture=launched)
def test_clock_tells_the_time_of_the_states(listener):
    clocks = listener.collect(Clock, '/clock')
    states = listener.collect(JointState, '/arm/joint_states')
    wait_for(lambda: len(clocks) > 100 and len(states) > 100, 'clock and states')
    times = [seconds(message.clock) for message in clocks]
    assert times == sorted(set(times))
    assert abs(seconds(states[-1].header.stamp) - times[-1]) < 0.2


@pytest.mark.launch(fixture=launched)
def test_effort_command(listener):
    states = listener.collect(JointState, '/arm/joint_states')
    commands = listener.publisher(JointState, '/arm/joint_commands')

    def lifted() -> bool:
        commands.publish(JointState(name=['shoulder'], effort=[-4.0]))
        return any(abs(state.effort[0] + 4.0) < 1e-6 and state.position[0] < -0.3
                   for state in states[-20:])

    wait_for(lifted, 'the shoulder to follow its command')


@pytest.mark.launch(fixture=launched, shutdown=True)
def test_clean_shutdown():
    assert exit_codes == [0]
