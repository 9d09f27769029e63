# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the node publishes of a running simulation, transforms and diagnostics apart."""

from nav_msgs.msg import Odometry
import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from visualization_msgs.msg import Marker, MarkerArray

from nerd_ros.nodes.conversions import (
    base_twist, joint_positions, marker_scale, split_time)
from nerd_ros.nodes.templates import MessageTemplate, NUMBER, STAMP_NANOSEC, STAMP_SEC

# Grey, for obstacles whose file gives no colour.
DEFAULT_COLOR = (0.6, 0.6, 0.6)
# A century [ns]; the lowest rates have no finite period.
LONGEST_PERIOD = 3e18


class Schedule:
    """Says which steps are due for something published `rate` times per simulated second."""

    def __init__(self, rate: float):
        self._next = 0
        self.set_rate(rate)

    def set_rate(self, rate: float) -> None:
        """Change the rate [Hz]; 0 means every step."""
        self._period = 0 if rate == 0.0 else int(min(1e9 / rate, LONGEST_PERIOD))
        self._next = 0

    def due(self, time_ns: int) -> bool:
        """Whether the step that ends at `time_ns` is due; to be asked once per step."""
        if time_ns < self._next:
            return False
        if self._period:
            # On a grid, so that the mean rate holds where a step is no divisor of the period.
            self._next = (time_ns // self._period + 1) * self._period
        return True


class ClockPublisher:
    """
    `/clock` (rosgraph_msgs/Clock): simulated time, every step, never backward in a run.

    Reliable with depth 1: it serves the best-effort subscriptions of ROS time sources and tools
    that ask for reliable ones.
    """

    def __init__(self, node):
        message = Clock()
        message.clock.sec, message.clock.nanosec = STAMP_SEC, STAMP_NANOSEC
        self._template = MessageTemplate(message)
        self._publisher = node.create_publisher(Clock, '/clock', QoSProfile(depth=1))

    def publish(self, time_ns: int) -> None:
        """Publish the time `time_ns`."""
        self._publisher.publish(self._template.fill(split_time(time_ns)))


class JointStatePublisher:
    """
    `joint_states` (sensor_msgs/JointState): reliable, depth 10.

    Names in the order of the URDF; position [rad or m], velocity [rad/s or m/s] and the effort
    that acted during the step [N m or N], all full and finite. A ball joint has three names, with
    _x, _y, _z behind its own: of its rotation vector, velocity and effort in the joint's frame in
    the parent. All are empty for a robot without joints, so that who waits for a state of it gets
    its time.
    """

    def __init__(self, node, simulation, topic: str):
        self._joint_q, self._joint_qd = simulation.joint_q[0], simulation.joint_qd[0]
        self._applied_effort = simulation.applied_effort[0]
        layout, count = simulation.layout, len(simulation.dof_names)
        self._numbers = np.empty(3 * count)
        self._position, self._velocity, self._effort = self._numbers.reshape(3, count)
        self._base_dofs = layout.num_base_dofs
        # Of each joint: whether it is a ball joint, first coordinate, first joint dof.
        self._joints = np.array([(joint.type == 'ball', q, qd - self._base_dofs)
                                 for joint, q, qd in zip(layout.joints, layout.q_start,
                                                         layout.qd_start)], int).reshape(-1, 3)
        message = JointState(
            name=list(simulation.dof_names), position=[NUMBER] * count,
            velocity=[NUMBER] * count, effort=[NUMBER] * count)
        message.header.stamp.sec, message.header.stamp.nanosec = STAMP_SEC, STAMP_NANOSEC
        self._template = MessageTemplate(message)
        self._publisher = node.create_publisher(JointState, topic, QoSProfile(depth=10))

    def publish(self, time_ns: int) -> None:
        """Publish the state at `time_ns`."""
        joint_positions(self._joint_q, self._joints, self._position)
        self._velocity[:] = self._joint_qd[self._base_dofs:self._base_dofs + len(self._velocity)]
        self._effort[:] = self._applied_effort
        self._publisher.publish(self._template.fill(split_time(time_ns), self._numbers))


class OdometryPublisher:
    """
    `odom` (nav_msgs/Odometry) of a floating base: pose in the world, twist in the base frame.

    Both are those of the origin of the base link, without noise; covariances are zero.
    """

    def __init__(self, node, simulation, world_frame: str, base_frame: str):
        self._pose = simulation.joint_q[0, :7]
        self._velocity = simulation.joint_qd[0, :6]
        self._com, self._numbers = np.array(simulation.layout.base_com), np.empty(13)
        message = Odometry(child_frame_id=base_frame)
        message.header.frame_id = world_frame
        message.header.stamp.sec, message.header.stamp.nanosec = STAMP_SEC, STAMP_NANOSEC
        pose, twist = message.pose.pose, message.twist.twist
        for vector in (pose.position, pose.orientation, twist.linear, twist.angular):
            _mark(vector)
        self._template = MessageTemplate(message)
        self._publisher = node.create_publisher(Odometry, 'odom', QoSProfile(depth=10))

    def publish(self, time_ns: int) -> None:
        """Publish pose and twist at `time_ns`."""
        self._numbers[:7] = self._pose
        base_twist(self._pose, self._velocity, self._com, self._numbers[7:])
        self._publisher.publish(self._template.fill(split_time(time_ns), self._numbers))


class MarkerPublisher:
    """`obstacles` (visualization_msgs/MarkerArray): geometry and place of all obstacles."""

    def __init__(self, node, simulation, world_frame: str):
        self._body_q = simulation.body_q[0]
        body = {name: i for i, name in enumerate(simulation.body_names)}
        self._bodies = np.array([body[o.name] for o in simulation.obstacles if not o.static], int)
        self._template = MessageTemplate(MarkerArray(markers=[
            _marker(i, obstacle, world_frame)
            for i, obstacle in enumerate(simulation.obstacles)]))
        self._publisher = node.create_publisher(MarkerArray, 'obstacles', QoSProfile(depth=10))

    def publish(self, time_ns: int) -> None:
        """Publish all markers with the places at `time_ns`."""
        poses = self._body_q[self._bodies].astype(float).reshape(-1)
        self._publisher.publish(self._template.fill(split_time(time_ns), poses))


def publish_description(node, description: str):
    """Publish `robot_description` (std_msgs/String): the URDF, transient local."""
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    publisher = node.create_publisher(String, 'robot_description', latched)
    publisher.publish(String(data=description))
    return publisher


def _marker(index: int, obstacle, world_frame: str) -> Marker:
    """Marker of an obstacle; places of moving ones are left open."""
    kind = Marker.SPHERE if obstacle.shape == 'sphere' else Marker.CUBE
    marker = Marker(ns='obstacles', id=index, type=kind, action=Marker.ADD, text=obstacle.name)
    marker.header.frame_id = world_frame
    marker.header.stamp.sec, marker.header.stamp.nanosec = STAMP_SEC, STAMP_NANOSEC
    position, orientation = marker.pose.position, marker.pose.orientation
    if obstacle.static:
        position.x, position.y, position.z = (float(v) for v in obstacle.pose[:3])
        orientation.x, orientation.y, orientation.z, orientation.w = (
            float(v) for v in obstacle.pose[3:])
    else:
        _mark(position)
        _mark(orientation)
    marker.scale.x, marker.scale.y, marker.scale.z = (
        float(v) for v in marker_scale(obstacle.shape, obstacle.size))
    marker.color.r, marker.color.g, marker.color.b = (
        float(v) for v in obstacle.color or DEFAULT_COLOR)
    marker.color.a = 1.0
    return marker


def _mark(vector) -> None:
    """Leave the numbers of a vector, point or quaternion open."""
    for name in vector.get_fields_and_field_types():
        setattr(vector, name, NUMBER)
