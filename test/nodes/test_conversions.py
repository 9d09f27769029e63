# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Conversions between the simulation's arrays and messages."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from nerd_ros.nodes.conversions import (
    base_twist, joint_positions, marker_scale, quaternion_from_rpy, relative_poses,
    robot_description, split_time, urdf_tree)

HALF = math.sqrt(0.5)
REPOSITORY = Path(__file__).resolve().parents[2]


def random_poses(seed: int, count: int) -> np.ndarray:
    poses = np.random.default_rng(seed).normal(size=(count, 7))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


def relative(parents: np.ndarray, children: np.ndarray) -> np.ndarray:
    """Poses of the children (n, 7) seen from the parents (n, 7), of float32."""
    count = len(parents)
    poses, result = np.concatenate([parents, children]).astype(np.float32), np.empty((count, 7))
    relative_poses(poses, np.arange(count), count + np.arange(count), result)
    return result


def test_time_is_split_without_loss():
    assert split_time(12_000_000_007) == (12, 7)
    assert split_time(999_999_999) == (0, 999_999_999)


def test_positions_of_ball_joints_are_rotation_vectors():
    turns = Rotation.random(50, random_state=3).as_quat()
    turns = np.concatenate([turns, -turns, [[0.0, 0.0, 0.0, 1.0], [1e-12, 0.0, 0.0, -1.0]]])
    positions = np.empty(4)
    for turn in turns:
        joint_q = np.concatenate([[9.0], turn, [0.5]]).astype(np.float32)
        joint_positions(joint_q, np.array([[1, 1, 0], [0, 5, 3]]), positions)
        np.testing.assert_allclose(positions[:3], Rotation.from_quat(turn).as_rotvec(), atol=2e-6)
        assert positions[3] == 0.5


def test_relative_pose_of_a_turned_parent():
    # The parent looks along +y; what lies at +y of the world lies ahead of it.
    parent = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, HALF, HALF]])
    child = np.array([[1.0, 2.0, 0.5, 0.0, 0.0, HALF, HALF]])
    np.testing.assert_allclose(
        relative(parent, child), [[2.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]], atol=1e-6)


def test_parent_and_relative_pose_give_the_child():
    parents, children = random_poses(1, 20), random_poses(2, 20)
    for parent, child, pose in zip(parents, children, relative(parents, children)):
        turn = Rotation.from_quat(parent[3:]).as_matrix()
        np.testing.assert_allclose(parent[:3] + turn @ pose[:3], child[:3], atol=1e-6)
        np.testing.assert_allclose(
            turn @ Rotation.from_quat(pose[3:]).as_matrix(),
            Rotation.from_quat(child[3:]).as_matrix(), atol=1e-6)


def test_roll_pitch_yaw_follow_urdf():
    # URDF turns about the fixed axes x, then y, then z.
    roll, pitch, yaw = 0.3, -0.7, 1.9
    cx, sx, cy, sy, cz, sz = (f(a) for a in (roll, pitch, yaw) for f in (math.cos, math.sin))
    expected = (np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
                @ np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
                @ np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]]))
    np.testing.assert_allclose(
        Rotation.from_quat(quaternion_from_rpy(roll, pitch, yaw)).as_matrix(), expected,
        atol=1e-12)


@pytest.mark.parametrize('velocity, expected', [
    # The origin circles around the centre of mass, which is at rest.
    ([0, 0, 0, 0, 0, 2.0], [0.0, -0.2, 0.0, 0.0, 0.0, 2.0]),
    # Without spin the world's velocity is seen in the turned frame.
    ([0, 3.0, 0, 0, 0, 0], [3.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
])
def test_twist_of_a_base_whose_centre_of_mass_is_off(velocity, expected):
    """Turned by 90 degrees about z; the centre of mass lies 0.1 m ahead of the origin."""
    pose, twist = np.array([5.0, 6.0, 7.0, 0.0, 0.0, HALF, HALF], np.float32), np.empty(6)
    base_twist(pose, np.array(velocity, np.float32), np.array([0.1, 0.0, 0.0]), twist)
    np.testing.assert_allclose(twist, expected, atol=1e-6)


def test_tree_of_the_double_pendulum():
    base, joints = urdf_tree(robot_description(REPOSITORY / 'urdf' / 'double_pendulum.urdf'))
    assert base == 'base'
    assert [(j.name, j.parent, j.child, j.fixed) for j in joints] == [
        ('shoulder', 'base', 'upper_link', False), ('elbow', 'upper_link', 'lower_link', False)]
    np.testing.assert_allclose(joints[1].pose, [0, 0, -0.2, 0, 0, 0, 1])


def test_relative_meshes_become_addresses(tmp_path):
    urdf = tmp_path / 'robot.urdf'
    urdf.write_text('<robot name="r"><link name="a"><visual><geometry>'
                    '<mesh filename="meshes/a.stl"/></geometry></visual></link></robot>')
    assert f'file://{tmp_path}/meshes/a.stl' in robot_description(urdf)


@pytest.mark.parametrize('shape, size, scale', [
    ('box', (1.0, 2.0, 3.0), (1.0, 2.0, 3.0)), ('sphere', (0.2,), (0.4, 0.4, 0.4)),
    ('plane', (4.0, 5.0), (4.0, 5.0, 0.002))])
def test_marker_scale(shape, size, scale):
    assert marker_scale(shape, size) == scale
