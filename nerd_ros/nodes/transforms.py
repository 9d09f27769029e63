# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Transforms: the tree of the robot's links and the places of the obstacles."""

from geometry_msgs.msg import TransformStamped
import numpy as np
from rclpy.qos import DurabilityPolicy, QoSProfile
from tf2_msgs.msg import TFMessage

from nerd_ros.nodes.conversions import relative_poses, split_time, urdf_tree
from nerd_ros.nodes.templates import MessageTemplate, NUMBER, STAMP_NANOSEC, STAMP_SEC


class TransformPublisher:
    """
    Publishes `/tf` and `/tf_static` (tf2_msgs/TFMessage).

    World to base, link to link for every joint (only with `links`), world to obstacle. What
    cannot move, fixed joints, a fixed base and static obstacles, goes to `/tf_static` once.
    Frames of the robot bear `prefix` and the names of the links; obstacles their own names.
    """

    def __init__(self, node, simulation, description: str, links: bool, world_frame: str,
                 prefix: str):
        self._body_q = simulation.body_q[0]
        base, joints = urdf_tree(description)
        body = {name: i for i, name in enumerate(simulation.body_names)}
        moving = [(world_frame, prefix + base, body[base])] if simulation.layout.floating else []
        fixed = []
        if not simulation.layout.floating:
            fixed.append((world_frame, prefix + base, simulation.body_q[0, body[base]]))
        frames = {prefix + base, world_frame}
        relative = []
        for joint in joints if links else ():
            edge = prefix + joint.parent, prefix + joint.child
            frames.add(edge[1])
            if joint.fixed:
                fixed.append((*edge, joint.pose))
            else:
                relative.append((*edge, body[joint.parent], body[joint.child]))
        for obstacle in simulation.obstacles:
            if obstacle.name in frames:
                node.get_logger().warning(
                    f'obstacle {obstacle.name} has the name of a frame of the robot and gets no '
                    'transform; set frame_prefix')
            elif obstacle.static:
                fixed.append((world_frame, obstacle.name, obstacle.pose))
            else:
                moving.append((world_frame, obstacle.name, body[obstacle.name]))

        self._parents = np.array([edge[2] for edge in relative], int)
        self._children = np.array([edge[3] for edge in relative], int)
        self._bodies = np.array([edge[2] for edge in moving], int)
        self._poses = np.empty((len(relative) + len(moving), 7))
        marked = [_transform(edge[0], edge[1], [NUMBER] * 7) for edge in (*relative, *moving)]
        self._template = MessageTemplate(TFMessage(transforms=marked))
        self._publisher = node.create_publisher(TFMessage, '/tf', QoSProfile(depth=100))
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        self._static_publisher = node.create_publisher(TFMessage, '/tf_static', latched)
        static = [_transform(*edge, stamp=(0, 0)) for edge in fixed]
        self._static_publisher.publish(TFMessage(transforms=static))

    def publish(self, time_ns: int) -> None:
        """Publish the transforms of all that moves, stamped `time_ns`."""
        if not len(self._poses):
            return
        body_q = self._body_q
        count = len(self._parents)
        relative_poses(body_q, self._parents, self._children, self._poses[:count])
        self._poses[count:] = body_q[self._bodies]
        self._publisher.publish(
            self._template.fill(split_time(time_ns), self._poses.reshape(-1)))


def _transform(parent: str, child: str, pose, stamp=(STAMP_SEC, STAMP_NANOSEC)):
    """Return a transform with `pose` (7,) position and quaternion xyzw."""
    message = TransformStamped()
    message.header.stamp.sec, message.header.stamp.nanosec = stamp
    message.header.frame_id, message.child_frame_id = parent, child
    x, y, z, qx, qy, qz, qw = (float(v) for v in pose)
    translation, rotation = message.transform.translation, message.transform.rotation
    translation.x, translation.y, translation.z = x, y, z
    rotation.x, rotation.y, rotation.z, rotation.w = qx, qy, qz, qw
    return message
