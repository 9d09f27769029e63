# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Rotations between the world and the base frame of the robot.

Quaternions are xyzw, unit, and rotate from the named frame to the world. Spatial vectors are
ordered (linear, angular) everywhere, which is Newton's order. All functions take any number of
leading dimensions.
"""

import torch
from torch import Tensor


def quat_rotate(quat: Tensor, vector: Tensor) -> Tensor:
    """Rotate `vector (..., 3)` by `quat (..., 4)`."""
    axis, w = quat[..., :3], quat[..., 3:]
    twice = 2.0 * torch.linalg.cross(axis, vector)
    return vector + w * twice + torch.linalg.cross(axis, twice)


def quat_rotate_inverse(quat: Tensor, vector: Tensor) -> Tensor:
    """Rotate `vector (..., 3)` by the inverse of `quat (..., 4)`."""
    axis, w = quat[..., :3], quat[..., 3:]
    twice = 2.0 * torch.linalg.cross(axis, vector)
    return vector - w * twice + torch.linalg.cross(axis, twice)


def quat_multiply(a: Tensor, b: Tensor) -> Tensor:
    """Rotation `b` followed by `a`, both `(..., 4)`."""
    ax, ay, az, aw = a.unbind(-1)
    bx, by, bz, bw = b.unbind(-1)
    return torch.stack([
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
        aw * bw - ax * bx - ay * by - az * bz], dim=-1)


def quat_conjugate(quat: Tensor) -> Tensor:
    """Inverse of a unit quaternion `(..., 4)`."""
    return torch.cat([-quat[..., :3], quat[..., 3:]], dim=-1)


def quat_exp(rotation: Tensor) -> Tensor:
    """Quaternion `(..., 4)` of the rotation vector `(..., 3)` [rad]."""
    half = 0.5 * rotation
    angle = half.square().sum(-1, keepdim=True).add(1e-24).sqrt()
    return torch.cat([torch.sin(angle) / angle * half, torch.cos(angle)], dim=-1)


def quat_log(quat: Tensor) -> Tensor:
    """Rotation vector `(..., 3)` [rad], at most pi long, of the quaternion `(..., 4)`."""
    quat = torch.where(quat[..., 3:] < 0, -quat, quat)
    sine = quat[..., :3].square().sum(-1, keepdim=True).add(1e-24).sqrt()
    return 2.0 * torch.atan2(sine, quat[..., 3:]) / sine * quat[..., :3]


def quat_columns(quat: Tensor) -> Tensor:
    """Two columns of the rotation matrix, `(..., 6)`: a continuous encoding of a rotation."""
    first = torch.zeros_like(quat[..., :3])
    first[..., 0] = 1.0
    second = torch.zeros_like(first)
    second[..., 1] = 1.0
    return torch.cat([quat_rotate(quat, first), quat_rotate(quat, second)], dim=-1)


def contacts_to_base(base_pose: Tensor, contacts: Tensor) -> Tensor:
    """Express world contacts `(..., S, 7)` in the base frame `base_pose (..., 7)`."""
    position = base_pose[..., None, :3]
    quat = base_pose[..., None, 3:].expand(*contacts.shape[:-1], 4)
    point = quat_rotate_inverse(quat, contacts[..., :3] - position)
    normal = quat_rotate_inverse(quat, contacts[..., 3:6])
    return torch.cat([point, normal, contacts[..., 6:]], dim=-1)
