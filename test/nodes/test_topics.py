# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the running node publishes, seen over DDS."""

import math

from diagnostic_msgs.msg import DiagnosticArray
import pytest
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosgraph_msgs.msg import Clock
from running_node import running_node, START_TIMEOUT, wait_for
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from tf2_msgs.msg import TFMessage
from visualization_msgs.msg import Marker, MarkerArray

LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
STATIC = {'ground', 'wall', 'base'}
MOVING = {'box', 'ball'}
DT_NS = 5_000_000


def nanoseconds(stamp) -> int:
    return stamp.sec * 1_000_000_000 + stamp.nanosec


def test_joint_states(simulator, listener):
    states = listener.collect(JointState, 'joint_states')
    wait_for(lambda: len(states) >= 200, '200 joint states')
    for state in states:
        assert list(state.name) == ['shoulder', 'elbow']
        for values in (state.position, state.velocity, state.effort):
            assert len(values) == 2 and all(map(math.isfinite, values))
    stamps = [nanoseconds(state.header.stamp) for state in states]
    assert all(stamp % DT_NS == 0 for stamp in stamps)
    # Every step is published; a busy machine may lose some on the way here.
    steps = (stamps[-1] - stamps[0]) // DT_NS
    assert len(set(stamps)) == len(stamps) and len(stamps) > 0.9 * steps


def test_joint_states_are_reliable(simulator, listener):
    name = 'joint_states'
    wait_for(lambda: listener.node.get_publishers_info_by_topic(name), 'a publisher')
    info, = listener.node.get_publishers_info_by_topic(name)
    assert info.qos_profile.reliability == ReliabilityPolicy.RELIABLE
    assert info.node_name == 'nerd_sim'


@pytest.mark.parametrize('reliability', [ReliabilityPolicy.BEST_EFFORT,
                                         ReliabilityPolicy.RELIABLE])
def test_clock_is_monotonic_for_every_kind_of_subscriber(simulator, listener, reliability):
    clocks = listener.collect(Clock, '/clock', QoSProfile(depth=1, reliability=reliability))
    wait_for(lambda: len(clocks) >= 100, '100 clocks')
    times = [nanoseconds(message.clock) for message in clocks]
    assert all(a < b for a, b in zip(times, times[1:]))
    assert all(time % DT_NS == 0 for time in times)


def test_robot_description_for_late_joiners(simulator, listener):
    messages = listener.collect(String, 'robot_description', LATCHED)
    wait_for(lambda: messages, 'robot_description')
    assert '<robot name="double_pendulum">' in messages[0].data


def test_transforms_form_one_tree(simulator, listener):
    moving, static = listener.collect(TFMessage, '/tf'), listener.collect(
        TFMessage, '/tf_static', LATCHED)
    wait_for(lambda: moving and static, 'transforms')
    edges = {t.child_frame_id: t.header.frame_id for t in moving[0].transforms}
    assert edges == {'upper_link': 'base', 'lower_link': 'upper_link',
                     **dict.fromkeys(MOVING, 'world')}
    assert {t.child_frame_id: t.header.frame_id for t in static[0].transforms} \
        == dict.fromkeys(STATIC, 'world')
    for transform in (*moving[0].transforms, *static[0].transforms):
        q = transform.transform.rotation
        assert math.hypot(q.x, q.y, q.z, q.w) == pytest.approx(1.0, abs=1e-5)
    base, = (t for t in static[0].transforms if t.child_frame_id == 'base')
    assert base.transform.translation.z == pytest.approx(0.65, abs=1e-6)


def test_transforms_agree_with_joint_states(simulator, listener):
    transforms = listener.collect(TFMessage, '/tf')
    states = listener.collect(JointState, 'joint_states')

    def pair():
        known = {nanoseconds(m.transforms[0].header.stamp): m for m in list(transforms)}
        return next(((known[nanoseconds(s.header.stamp)], s) for s in list(states)
                     if nanoseconds(s.header.stamp) in known), None)
    message, state = wait_for(pair, 'transforms and joint states of one step')
    for position, child in zip(state.position, ('upper_link', 'lower_link')):
        q = next(t for t in message.transforms if t.child_frame_id == child).transform.rotation
        # Both joints turn about +y.
        assert math.remainder(2 * math.atan2(q.y, q.w) - position, math.tau) \
            == pytest.approx(0.0, abs=1e-4)


def test_obstacle_markers(simulator, listener):
    messages = listener.collect(MarkerArray, 'obstacles')
    wait_for(lambda: messages, 'obstacles')
    markers = {marker.text: marker for marker in messages[0].markers}
    assert set(markers) == MOVING | STATIC - {'base'}
    assert len({(m.ns, m.id) for m in markers.values()}) == len(markers)
    assert markers['ball'].type == Marker.SPHERE and markers['wall'].type == Marker.CUBE
    wall = markers['wall']
    assert (wall.scale.x, wall.scale.y, wall.scale.z) == (0.06, 0.5, 0.8)
    assert wall.pose.position.x == pytest.approx(-1.5)
    assert wall.header.frame_id == 'world' and wall.color.a == 1.0
    assert markers['box'].pose.position.z == pytest.approx(0.05, abs=0.01)


def test_diagnostics(simulator, listener):
    messages = listener.collect(DiagnosticArray, '/diagnostics')
    wait_for(lambda: len(messages) >= 2, 'diagnostics')
    status, = messages[-1].status
    values = {item.key: item.value for item in status.values}
    assert status.name == 'nerd_sim: simulation' and status.hardware_id == 'double_pendulum'
    assert values['solver'] == 'mujoco' and values['world'].endswith('aside.sdf')
    assert float(values['real_time_factor']) > 0.0
    assert 0.0 < float(values['step_time_p50_ms']) <= float(values['step_time_p99_ms'])
    assert {'guard_events', 'lateness_p99_ms'} <= set(values)
    # There is no model whose training it could be outside of.
    assert float(values['out_of_distribution_score']) == 0.0
    assert float(values['out_of_distribution_share']) == 0.0


def test_namespace_prefix_rates_and_renamed_topic(listener):
    """A second robot beside the first: what is relative moves, what is absolute stays."""
    states = listener.collect(JointState, '/left/measured')
    clocks = listener.collect(Clock, '/clock')
    transforms = listener.collect(TFMessage, '/tf')
    static = listener.collect(TFMessage, '/tf_static', LATCHED)
    with running_node('-r __ns:=/left', 'solver:=mujoco', 'frame_prefix:=left/',
                      'joint_states_topic:=measured', 'publish_tf:=base', 'world_frame:=map',
                      'world:=empty', 'joint_state_rate:=20.0', 'command_timeout:=0.0') as node:
        wait_for(lambda: states or node.process.poll() is not None, 'states', START_TIMEOUT)
        assert node.process.poll() is None, node.output
        wait_for(lambda: len(states) >= 12, 'more states')
        names = dict(listener.node.get_topic_names_and_types())
        assert {'/left/robot_description', '/left/obstacles', '/left/joint_commands',
                '/left/effort_controller/commands'} <= set(names)
        services = dict(listener.node.get_service_names_and_types())
        assert {'/left/nerd_sim/reset', '/left/nerd_sim/pause'} <= set(services)
        stamps = [nanoseconds(state.header.stamp) for state in states]
        assert all(stamp % 50_000_000 == 0 for stamp in stamps[1:])
        # /clock is absolute, and both robots publish it.
        assert clocks
        wait_for(lambda: 'other publisher(s) on /clock' in node.output, 'a warning')
        assert 'another ROS_DOMAIN_ID' in node.output
        wait_for(lambda: any(t.child_frame_id == 'left/base' and t.header.frame_id == 'map'
                             for m in static for t in m.transforms), 'the static base')
        frames = {t.child_frame_id for m in transforms for t in m.transforms}
        assert not any(frame.startswith('left/') for frame in frames)
