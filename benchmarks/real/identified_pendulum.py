# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The rigid-body model of the double pendulum that its laboratory identified.

The DFKI double pendulum, design C.1: equations, parameters and the law of friction as published
with the recordings. At joint positions of 0 both links hang down, the second is relative to the
first.
"""

from dataclasses import dataclass

import numpy as np

_TIMESTEP = 0.0005   # of the integration [s]


@dataclass(frozen=True)
class Parameters:
    """What was identified, SI units; inertias are about the joints, pairs by joint."""

    length: float = 0.2                                   # of the first link
    mass: tuple[float, float] = (0.5234602302310271, 0.6255677234174437)
    center: tuple[float, float] = (0.2, 0.25569305436052964)
    inertia: tuple[float, float] = (0.031887199591513114, 0.05086984812807257)
    rotor_inertia: float = 6.287203962819607e-05
    gear_ratio: float = 6.0
    damping: tuple[float, float] = (0.001, 0.001)
    friction: tuple[float, float] = (0.16, 0.12)          # at speed pi / 2 times as much
    gravity: float = 9.81


IDENTIFIED = Parameters()
_SLOPE = 100.0   # of the friction about standstill [s/rad]


def mass_matrix(q: np.ndarray, p: Parameters = IDENTIFIED
                ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Elements 11, 12 and 22, each (W,), of the mass matrix at positions (W, 2) [kg m^2]."""
    coupling = p.mass[1] * p.length * p.center[1] * np.cos(q[:, 1])
    m11 = (p.inertia[0] + p.inertia[1] + p.mass[1] * p.length ** 2 + 2.0 * coupling
           + (p.gear_ratio ** 2 + 1.0) * p.rotor_inertia)
    m12 = p.inertia[1] + coupling - p.gear_ratio * p.rotor_inertia
    m22 = np.full_like(m11, p.inertia[1] + p.gear_ratio ** 2 * p.rotor_inertia)
    return m11, m12, m22


def acceleration(q: np.ndarray, qd: np.ndarray, torque: np.ndarray, p: Parameters = IDENTIFIED
                 ) -> np.ndarray:
    """Accelerations (W, 2) [rad/s^2] at `q`, `qd` under `torque`, all (W, 2)."""
    h = p.mass[1] * p.length * p.center[1] * np.sin(q[:, 1])
    second = p.mass[1] * p.gravity * p.center[1] * np.sin(q[:, 0] + q[:, 1])
    first = p.gravity * np.sin(q[:, 0]) * (p.mass[0] * p.center[0] + p.mass[1] * p.length)
    force = torque - np.array(p.damping) * qd - np.array(p.friction) * np.arctan(_SLOPE * qd)
    force1 = force[:, 0] - first - second + h * (2.0 * qd[:, 0] + qd[:, 1]) * qd[:, 1]
    force2 = force[:, 1] - second - h * qd[:, 0] ** 2
    m11, m12, m22 = mass_matrix(q, p)
    inverse = 1.0 / (m11 * m22 - m12 ** 2)
    return np.stack([inverse * (m22 * force1 - m12 * force2),
                     inverse * (m11 * force2 - m12 * force1)], axis=1)


def simulate(q: np.ndarray, qd: np.ndarray, torque: np.ndarray, dt: float,
             p: Parameters = IDENTIFIED) -> np.ndarray:
    """
    Return the positions (W, T + 1, 2) [rad] from the states `q`, `qd` (W, 2), these first.

    `torque` (W, T, 2) [N m] is held for steps of `dt` [s]; within them semi-implicit Euler takes
    steps of 0.5 ms or a little less.
    """
    substeps = int(np.ceil(dt / _TIMESTEP - 1e-9))
    timestep = dt / substeps
    q, qd, torque = (np.array(values, float) for values in (q, qd, torque))
    result = np.empty((len(q), torque.shape[1] + 1, 2))
    result[:, 0] = q
    for step in range(torque.shape[1]):
        for _ in range(substeps):
            qd += timestep * acceleration(q, qd, torque[:, step], p)
            q += timestep * qd
        result[:, step + 1] = q
    return result
