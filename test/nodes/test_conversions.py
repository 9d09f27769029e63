# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Conversions between the simulation's arrays and messages."""

import math
from pathlib import Path

import numpy as np
import pytest

from nerd_ros.nodes.conversions import (base_twist, marker_scale, quaternion_from_rpy,
                                        relative_poses, robot_description, rotation_matrix,
                                        split_time, urdf_tree)

HALF = math.sqrt(0.5)
REPOSITORY = Path(__file__).resolve().parents[2]


def random_poses(seed: int, count: int) -> np.ndarray:
    poses = np.random.default_rng(seed).normal(size=(count, 7))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    return poses


def test_time_is_split_without_loss():
    assert split_time(12_000_000_007) == (12, 7)
    assert split_time(999_999_999) == (0, 999_999_999)


def test_relative_pose_of_a_turned_parent():
    # The parent looks along +y; what lies at +y of the world lies ahead of it.
    parent = np.array([[1.0, 0.0, 0.0, 0.0, 0.0, HALF, HALF]])
    child = np.array([[1.0, 2.0, 0.5, 0.0, 0.0, HALF, HALF]])
    np.testing.assert_allclose(
        relative_poses(parent, child), [[2.0, 0.0, 0.5, 0.0, 0.0, 0.0, 1.0]], atol=1e-12)


def test_parent_and_relative_pose_give_the_child():
    parents, children = random_poses(1, 20), random_poses(2, 20)
    relative = relative_poses(parents, children)
    for parent, child, pose in zip(parents, children, relative):
        turn = rotation_matrix(parent[3:])
        np.testing.assert_allclose(parent[:3] + turn @ pose[:3], child[:3], atol=1e-12)
        np.testing.assert_allclose(
            turn @ rotation_matrix(pose[3:]), rotation_matrix(child[3:]), atol=1e-12)


def test_roll_pitch_yaw_follow_urdf():
    # URDF turns about the fixed axes x, then y, then z.
    roll, pitch, yaw = 0.3, -0.7, 1.9
    cx, sx, cy, sy, cz, sz = (f(a) for a in (roll, pitch, yaw) for f in (math.cos, math.sin))
    expected = (np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
                @ np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
                @ np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]]))
    np.testing.assert_allclose(
        rotation_matrix(quaternion_from_rpy(roll, pitch, yaw)), expected, atol=1e-12)


def test_twist_of_a_spinning_base_whose_centre_of_mass_is_off():
    # Turned by 90 degrees about z, spinning about z with the centre of mass at rest: the origin
    # circles around it.
    pose = np.array([5.0, 6.0, 7.0, 0.0, 0.0, HALF, HALF])
    twist = base_twist(pose, np.array([0, 0, 0, 0, 0, 2.0]), np.array([0.1, 0.0, 0.0]))
    np.testing.assert_allclose(twist, [0.0, -0.2, 0.0, 0.0, 0.0, 2.0], atol=1e-12)
    # Without spin the world's velocity is seen in the turned frame.
    twist = base_twist(pose, np.array([0, 3.0, 0, 0, 0, 0]), np.array([0.1, 0.0, 0.0]))
    np.testing.assert_allclose(twist, [3.0, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-12)


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
