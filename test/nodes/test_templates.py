# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Patched bytes are the message that rclpy would have serialised."""

from geometry_msgs.msg import TransformStamped
import numpy as np
import pytest
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from tf2_msgs.msg import TFMessage

from nerd_ros.nodes.templates import MessageTemplate, NUMBER, STAMP_NANOSEC, STAMP_SEC


@pytest.mark.parametrize('names', [['a'], ['shoulder', 'elbow'], ['x' * n for n in range(1, 8)]])
def test_joint_state(names):
    count = len(names)
    message = JointState(name=names, position=[NUMBER] * count, velocity=[NUMBER] * count,
                         effort=[NUMBER] * count)
    message.header.frame_id = 'odd'
    message.header.stamp.sec, message.header.stamp.nanosec = STAMP_SEC, STAMP_NANOSEC
    template = MessageTemplate(message)
    assert template.count == 3 * count
    for scale in (1.0, -1e-9):
        numbers = scale * np.arange(1.0, 3 * count + 1)
        result = deserialize_message(template.fill((7, 999_999_999), numbers), JointState)
        assert (result.header.stamp.sec, result.header.stamp.nanosec) == (7, 999_999_999)
        assert result.header.frame_id == 'odd' and list(result.name) == names
        assert list(result.position) == numbers[:count].tolist()
        assert list(result.velocity) == numbers[count:2 * count].tolist()
        assert list(result.effort) == numbers[2 * count:].tolist()


def test_transforms_with_names_of_any_length():
    transforms = []
    for length in range(1, 10):
        transform = TransformStamped(child_frame_id='c' * length)
        transform.header.frame_id = 'world'
        transform.header.stamp.sec = STAMP_SEC
        transform.header.stamp.nanosec = STAMP_NANOSEC
        for vector, names in ((transform.transform.translation, 'xyz'),
                              (transform.transform.rotation, 'xyzw')):
            for name in names:
                setattr(vector, name, NUMBER)
        transforms.append(transform)
    numbers = np.arange(63.0)
    data = MessageTemplate(TFMessage(transforms=transforms)).fill((3, 4), numbers)
    for i, transform in enumerate(deserialize_message(data, TFMessage).transforms):
        t, r = transform.transform.translation, transform.transform.rotation
        assert [t.x, t.y, t.z, r.x, r.y, r.z, r.w] == numbers[7 * i:7 * i + 7].tolist()
        assert (transform.header.stamp.sec, transform.header.stamp.nanosec) == (3, 4)
        assert transform.child_frame_id == 'c' * (i + 1)


def test_clock_has_no_numbers():
    message = Clock()
    message.clock.sec, message.clock.nanosec = STAMP_SEC, STAMP_NANOSEC
    template = MessageTemplate(message)
    assert template.count == 0
    result = deserialize_message(template.fill((1, 5)), Clock)
    assert (result.clock.sec, result.clock.nanosec) == (1, 5)
