# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Mechanical energy of robots."""

import closed_form
import numpy as np
import pytest

from nerd_ros.scene.energy import MechanicalEnergy
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import NO_GROUND, TeacherRollouts


def test_energy_of_the_pendulum_is_that_of_its_equations():
    energy = MechanicalEnergy(RobotSpec.load('double_pendulum'))
    rng = np.random.default_rng(1)
    q, qd = rng.normal(size=(2, 3, 4, 2))
    kinetic, potential = energy(q, qd)
    assert kinetic.shape == potential.shape == (3, 4)
    rest, lowest = energy(np.zeros((1, 2)), np.zeros((1, 2)))
    assert rest[0] == 0.0
    expected = [[closed_form.energy(*pair) for pair in zip(*row)] for row in zip(q, qd)]
    np.testing.assert_allclose(kinetic + potential - lowest,
                               np.array(expected) - closed_form.energy(np.zeros(2), np.zeros(2)),
                               rtol=1e-4)


@pytest.mark.parametrize('name', ['cartpole', 'cube'])
def test_energy_stays_the_same_without_friction_and_contact(name):
    spec = RobotSpec.load(name)
    teacher = TeacherRollouts(spec, 4)
    layout, rng = teacher.layout, np.random.default_rng(2)
    q, qd = rng.normal(size=(4, layout.nq)), rng.normal(size=(4, layout.nqd))
    if layout.floating:
        q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1, keepdims=True)
    motion = teacher.rollout(q, qd, np.zeros((4, 50, layout.num_dofs)),
                             np.tile(NO_GROUND, (4, 1)))
    kinetic, potential = MechanicalEnergy(spec)(*motion)
    total = kinetic + potential
    assert (np.ptp(kinetic, axis=1) > 0.1).all()
    assert (np.ptp(total, axis=1) < 1e-3 * np.ptp(kinetic, axis=1)).all()
