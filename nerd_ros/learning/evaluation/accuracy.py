# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
How far two motions of a robot are apart, in metres and radians apart from each other.

Angles are not wrapped: a full turn more is 2 pi off. Of rotations of a floating base and of ball
joints, the distance is the angle of the rotation between them, at most pi. Joints that follow
others are left out.
"""

from dataclasses import dataclass

import numpy as np
import torch

from nerd_ros.dynamics.frames import quat_conjugate, quat_log, quat_multiply
from nerd_ros.dynamics.layout import RobotLayout

GROUPS = {'joint_rad': ('joints', 'rad'), 'joint_m': ('joints', 'm'),
          'base_m': ('base', 'm'), 'base_rad': ('base', 'rad')}
"""Name in a model card: what is averaged, and its unit."""


@dataclass(frozen=True)
class Quantity:
    """One distance: a joint, or position or rotation of the base; `unit` is 'rad' or 'm'."""

    name: str
    group: str
    """A key of GROUPS: joints of one unit are averaged, the base stands for itself."""

    @property
    def unit(self) -> str:
        """Unit of the position; that of the velocity is this per second."""
        return GROUPS[self.group][1]


def quantities(layout: RobotLayout) -> tuple[Quantity, ...]:
    """Return what the last axis of `position_errors` and `velocity_errors` means, K of them."""
    base = (Quantity('base', 'base_m'), Quantity('base', 'base_rad')) if layout.floating else ()
    return *base, *(Quantity(joint.name, 'joint_m' if joint.type == 'prismatic' else 'joint_rad')
                    for joint in layout.joints if joint.mimic is None)


def groups(layout: RobotLayout) -> tuple[str, ...]:
    """Return the groups that a robot has, in the order of GROUPS."""
    present = {quantity.group for quantity in quantities(layout)}
    return tuple(group for group in GROUPS if group in present)


def position_errors(layout: RobotLayout, joint_q: np.ndarray, reference: np.ndarray
                    ) -> np.ndarray:
    """Distances (..., K) [rad, m] of `joint_q (..., nq)` from `reference (..., nq)`."""
    joint_q, reference = np.asarray(joint_q, float), np.asarray(reference, float)
    columns = []
    if layout.floating:
        columns += [np.linalg.norm(joint_q[..., :3] - reference[..., :3], axis=-1),
                    _angle(joint_q[..., 3:7], reference[..., 3:7])]
    for joint, at in _free_joints(layout, layout.q_start):
        columns.append(_angle(joint_q[..., at:at + 4], reference[..., at:at + 4])
                       if joint.type == 'ball' else np.abs(joint_q[..., at] - reference[..., at]))
    return np.stack(columns, axis=-1)


def velocity_errors(layout: RobotLayout, joint_qd: np.ndarray, reference: np.ndarray
                    ) -> np.ndarray:
    """Distances (..., K) [rad/s, m/s] of `joint_qd (..., nqd)` from `reference (..., nqd)`."""
    apart = np.asarray(joint_qd, float) - np.asarray(reference, float)
    columns = []
    if layout.floating:
        columns += [np.linalg.norm(apart[..., :3], axis=-1),
                    np.linalg.norm(apart[..., 3:6], axis=-1)]
    for joint, at in _free_joints(layout, layout.qd_start):
        columns.append(np.linalg.norm(apart[..., at:at + 3], axis=-1)
                       if joint.type == 'ball' else np.abs(apart[..., at]))
    return np.stack(columns, axis=-1)


def group_means(layout: RobotLayout, errors: np.ndarray) -> np.ndarray:
    """Means (..., G) over the quantities of each of `groups` of errors (..., K)."""
    names = [quantity.group for quantity in quantities(layout)]
    return np.stack([errors[..., [name == group for name in names]].mean(-1)
                     for group in groups(layout)], axis=-1)


def perturbed(layout: RobotLayout, joint_q: np.ndarray, offset: float,
              rng: np.random.Generator) -> np.ndarray:
    """Return `joint_q (..., nq)` with each coordinate `offset` [rad, m] off, either way."""
    signs = rng.choice([-offset, offset], joint_q.shape)
    moved = np.asarray(joint_q, float) + signs
    for at in _quaternions(layout):
        # Half of it, since a small rotation has twice the length of what it adds to a quaternion.
        turn = joint_q[..., at] + 0.5 * signs[..., at]
        moved[..., at] = turn / np.linalg.norm(turn, axis=-1, keepdims=True)
    follower, leader = layout.mimic_q.T
    moved[..., follower] = (layout.mimic_coeffs[:, 0] * moved[..., leader]
                            + layout.mimic_coeffs[:, 1])
    return moved


def _free_joints(layout: RobotLayout, starts):
    return [(joint, at) for joint, at in zip(layout.joints, starts) if joint.mimic is None]


def _quaternions(layout: RobotLayout) -> list[slice]:
    starts = [at for joint, at in zip(layout.joints, layout.q_start) if joint.type == 'ball']
    return [slice(at, at + 4) for at in ([3] if layout.floating else []) + starts]


def _angle(quat: np.ndarray, reference: np.ndarray) -> np.ndarray:
    """Angle (...) [rad] of the rotation between two quaternions (..., 4)."""
    between = quat_multiply(torch.from_numpy(np.ascontiguousarray(quat)),
                            quat_conjugate(torch.from_numpy(np.ascontiguousarray(reference))))
    return quat_log(between).norm(dim=-1).numpy()
