# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Distances of two motions, in metres and radians."""

import numpy as np
import pytest

from nerd_ros.dynamics.layout import JointLayout, MimicLayout, RobotLayout
from nerd_ros.learning.evaluation.accuracy import (
    group_means, groups, perturbed, position_errors, quantities, velocity_errors)

LAYOUT = RobotLayout(
    'walker', 0.01, True,
    (JointLayout('hip', 'ball', -1.0, 1.0, 5.0), JointLayout('knee', 'revolute', -1.0, 1.0, 6.0),
     JointLayout('foot', 'prismatic', -1.0, 1.0, 6.0),
     JointLayout('toe', 'revolute', -1.0, 1.0, 0.0, MimicLayout('knee', -2.0, 0.5))),
    (), 0.1, (0.0, 0.0, 0.0), 'a' * 64)


def turned(angle: float, axis=(1.0, 2.0, 2.0)) -> np.ndarray:
    """Quaternion of a rotation [rad]."""
    axis = np.asarray(axis) / np.linalg.norm(axis)
    return np.array([*(np.sin(angle / 2) * axis), np.cos(angle / 2)])


def state(position, base, hip, knee, foot) -> np.ndarray:
    return np.array([*position, *base, *hip, knee, foot, 0.5 - 2.0 * knee])


def test_quantities_are_the_base_and_the_joints_that_move_by_themselves():
    assert [(q.name, q.unit) for q in quantities(LAYOUT)] == [
        ('base', 'm'), ('base', 'rad'), ('hip', 'rad'), ('knee', 'rad'), ('foot', 'm')]
    assert groups(LAYOUT) == ('joint_rad', 'joint_m', 'base_m', 'base_rad')


def test_positions_are_apart_by_lengths_and_angles():
    first = state((0.0, 0.0, 1.0), turned(0.5), turned(0.2), 0.1, 0.3)
    # The same rotation, written with the other sign, then turned further by 0.3 and 1e-4.
    other = state((0.3, 0.4, 1.0), -turned(0.8), turned(0.2001), 0.1 + 2.0 * np.pi, 0.25)
    errors = position_errors(LAYOUT, other[None], first[None])[0]
    np.testing.assert_allclose(errors, [0.5, 0.3, 1e-4, 2.0 * np.pi, 0.05], rtol=1e-6)
    # Single precision does not drown small angles.
    rough = position_errors(LAYOUT, other.astype(np.float32), first.astype(np.float32))
    assert rough[2] == pytest.approx(1e-4, rel=0.01)
    assert position_errors(LAYOUT, state((0, 0, 0), turned(3.5), turned(0), 0, 0),
                           state((0, 0, 0), turned(0), turned(0), 0, 0))[1] \
        == pytest.approx(2.0 * np.pi - 3.5), 'no rotation is further than half a turn'


def test_velocities_are_apart_by_the_length_of_their_difference():
    first, other = np.zeros(12), np.zeros(12)
    other[:] = [3, 4, 0, 0, 0, -2, 0, 6, 8, 1.5, -0.5, 9]
    np.testing.assert_allclose(velocity_errors(LAYOUT, other, first), [5, 2, 10, 1.5, 0.5])


def test_groups_average_joints_of_one_unit():
    errors = np.array([[0.5, 0.3, 0.2, 0.4, 0.05]])
    np.testing.assert_allclose(group_means(LAYOUT, errors), [[0.3, 0.05, 0.5, 0.3]])


def test_perturbed_states_are_a_little_off_everywhere():
    true = np.stack([state((0.0, 1.0, 2.0), turned(1.0), turned(2.0), 0.1, 0.2)] * 50)
    moved = perturbed(LAYOUT, true, 1e-3, np.random.default_rng(0))
    errors = position_errors(LAYOUT, moved, true)
    assert (errors > 1e-4).all() and (errors < 2.1e-3).all()
    np.testing.assert_allclose(errors[:, 3:], 1e-3)
    for at in (slice(3, 7), slice(7, 11)):
        np.testing.assert_allclose(np.linalg.norm(moved[:, at], axis=1), 1.0)
    np.testing.assert_allclose(moved[:, 13], 0.5 - 2.0 * moved[:, 11])
