# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The DFKI laboratory's equations of motion of the double pendulum, integrated finely."""

import numpy as np
from scipy.integrate import solve_ivp

L1 = 0.2
M1, R1, I1 = 0.5234602302310271, 0.2, 0.031887199591513114
M2, R2, I2 = 0.6255677234174437, 0.25569305436052964, 0.05086984812807257
ROTOR = 6.287203962819607e-05
DAMPING = 0.001
DRY = np.array([0.16, 0.12])   # cf of cf atan(100 qd) [N m]
GRAVITY = 9.81


def mass_matrix(elbow: float) -> np.ndarray:
    """Mass matrix [kg m^2] with the armature 37 and 36 times the rotor's, on the diagonal."""
    coupling = M2 * L1 * R2 * np.cos(elbow)
    return np.array([[I1 + I2 + M2 * L1 ** 2 + 2 * coupling + 37 * ROTOR, I2 + coupling],
                     [I2 + coupling, I2 + 36 * ROTOR]])


def energy(q, qd) -> float:
    """Kinetic and potential energy [J], the potential relative to the shoulder."""
    heights = (-R1 * np.cos(q[0]), -L1 * np.cos(q[0]) - R2 * np.cos(q[0] + q[1]))
    return float(0.5 * qd @ mass_matrix(q[1]) @ qd
                 + GRAVITY * (M1 * heights[0] + M2 * heights[1]))


def motion(q, qd, effort, dt, coulomb_slope=None) -> np.ndarray:
    """
    Joint angles (T+1, 2) under efforts (T, 2), each held for `dt`.

    Dry friction is cf atan(100 qd), or with a `coulomb_slope` [s/rad] cf pi/2 tanh(slope qd),
    which is nearly Coulomb's law of the same height.
    """
    def rate(_, y, torque):
        q1, q2, v1, v2 = y
        h = M2 * L1 * R2 * np.sin(q2)
        coriolis = np.array([-2 * h * v1 * v2 - h * v2 ** 2, h * v1 ** 2])
        lower = M2 * GRAVITY * R2 * np.sin(q1 + q2)
        weight = np.array([-(M1 * R1 + M2 * L1) * GRAVITY * np.sin(q1) - lower, -lower])
        v = np.array([v1, v2])
        law = np.arctan(100.0 * v) if coulomb_slope is None \
            else 0.5 * np.pi * np.tanh(coulomb_slope * v)
        friction = DAMPING * v + DRY * law
        return np.concatenate([v, np.linalg.solve(
            mass_matrix(q2), torque + weight - coriolis - friction)])

    y = np.concatenate([q, qd])
    angles = [y[:2]]
    for torque in effort:
        y = solve_ivp(rate, (0.0, dt), y, args=(torque,), method='LSODA',
                      rtol=1e-8, atol=1e-10).y[:, -1]
        angles.append(y[:2])
    return np.array(angles)
