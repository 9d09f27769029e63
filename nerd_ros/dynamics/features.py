# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
One token per step: robot state, contacts, effort and gravity, all in the base frame.

A token holds, in this order:

| columns | meaning | unit |
|---|---|---|
| 3 | gravity direction | - |
| 6, floating base only | twist of the base, (linear at the COM, angular) | m/s, rad/s |
| 1 to 6 per joint | position: sin and cos, m if prismatic, two matrix columns if ball | -, m |
| num_dofs | joint velocity | rad/s, m/s |
| num_dofs | direction of motion, -1 to 1 | - |
| num_dofs | joint effort | N m, N |
| 2 per limited joint | room to the lower and to the upper limit | rad, m |
| 8 per contact slot | point (3), normal (3), proximity, touch | m, -, -, - |

*Direction of motion* is `tanh(qd / 0.05)`: dry friction hangs on it, and among velocities of many
rad/s a network does not see how a joint comes to rest.

*Room* is cut off at 0.5: limits farther away do not act. It is negative beyond the limit.

*Proximity* falls from 1 at the surface to 0 at the contact threshold and grows with penetration;
*touch* resolves the last millimetres. All eight are zero beyond the threshold, so that a slot
without contact is the same token wherever it is.

The state increment that a model predicts is that of the velocities, `qd' - qd`, and what the
positions do beyond the mean of both velocities, `q' - q - dt (qd + qd') / 2`: next to nothing,
so positions stay consistent with velocities. Rotations are rotation vectors in the moving frame;
all of a floating base is in its own frame of the step.
"""

import torch
from torch import Tensor

from nerd_ros.dynamics.frames import (
    contacts_to_base, quat_columns, quat_conjugate, quat_exp, quat_log, quat_multiply, quat_rotate,
    quat_rotate_inverse)
from nerd_ros.dynamics.layout import RobotLayout

SLOT_FEATURES = 8
# Distance [m] over which `touch` changes from 1 to 0; contact solvers act over millimetres.
TOUCH_SCALE = 0.005
# Speed [rad/s, m/s] at which the direction of motion is certain.
CREEP_SPEED = 0.05
# Farther limits [rad, m] are out of reach within a step.
LIMIT_RANGE = 0.5


def token_size(layout: RobotLayout) -> int:
    """Length of a token of this robot."""
    positions = sum({'prismatic': 1, 'ball': 6}.get(joint.type, 2) for joint in layout.joints)
    return (3 + layout.num_base_dofs + positions + 3 * layout.num_dofs
            + 2 * len(layout.limited) + SLOT_FEATURES * layout.num_slots)


def velocity_columns(layout: RobotLayout) -> list[int]:
    """Where a token holds the velocities of all dofs, in the order of `joint_qd`."""
    joints = room_columns(layout).start - 3 * layout.num_dofs
    return [*range(3, 3 + layout.num_base_dofs), *range(joints, joints + layout.num_dofs)]


def room_columns(layout: RobotLayout) -> range:
    """Where a token holds the room to the lower limits, then to the upper ones."""
    end = token_size(layout) - SLOT_FEATURES * layout.num_slots
    return range(end - 2 * len(layout.limited), end)


def tokens(layout: RobotLayout, joint_q: Tensor, joint_qd: Tensor, effort: Tensor,
           contacts: Tensor, gravity: Tensor, base_pose: Tensor) -> Tensor:
    """
    Build tokens `(..., token_size)` from state `(..., nq)`, `(..., nqd)` and its surroundings.

    `effort (..., num_dofs)`, `contacts (..., S, 7)` world frame, `gravity (..., 3)` world frame
    [m/s^2], `base_pose (..., 7)`: of a floating base the first seven of `joint_q`.
    """
    quat = base_pose[..., 3:]
    direction = torch.nn.functional.normalize(gravity, dim=-1)
    parts = [quat_rotate_inverse(quat, direction)]
    if layout.floating:
        parts += [quat_rotate_inverse(quat, joint_qd[..., :3]),
                  quat_rotate_inverse(quat, joint_qd[..., 3:6])]
    for joint, start in zip(layout.joints, layout.q_start):
        if joint.type == 'prismatic':
            parts.append(joint_q[..., start:start + 1])
        elif joint.type == 'ball':
            parts.append(quat_columns(joint_q[..., start:start + 4]))
        else:
            angle = joint_q[..., start:start + 1]
            parts += [torch.sin(angle), torch.cos(angle)]
    speed = joint_qd[..., layout.num_base_dofs:]
    parts += [speed, torch.tanh(speed / CREEP_SPEED), effort]
    limited = [layout.q_start[joint] for joint in layout.limited]
    lower, upper = (joint_q.new_tensor([getattr(layout.joints[joint], side)
                                        for joint in layout.limited])
                    for side in ('lower', 'upper'))
    room = torch.cat([joint_q[..., limited] - lower, upper - joint_q[..., limited]], dim=-1)
    parts.append(room.clamp(max=LIMIT_RANGE))
    parts.append(slot_features(layout, contacts_to_base(base_pose, contacts)).flatten(-2))
    return torch.cat(parts, dim=-1)


def slot_features(layout: RobotLayout, contacts: Tensor) -> Tensor:
    """Masked features `(..., S, 8)` of contacts `(..., S, 7)` in the base frame."""
    distance = contacts[..., 6:]
    seen = (distance < layout.contact_threshold).to(contacts.dtype)
    proximity = (1.0 - distance / layout.contact_threshold) * seen
    touch = torch.sigmoid(-distance / TOUCH_SCALE) * seen
    return torch.cat([contacts[..., :6] * seen, proximity, touch], dim=-1)


def increment(layout: RobotLayout, joint_q: Tensor, joint_qd: Tensor,
              next_q: Tensor, next_qd: Tensor) -> Tensor:
    """State increment `(..., 2 nqd)`, positions first, that leads from a state to the next."""
    dt, change = layout.dt, next_qd - joint_qd
    positions, velocities = [], []
    if layout.floating:
        quat = joint_q[..., 3:7]
        change_of_com = [quat_rotate_inverse(quat, change[..., i:i + 3]) for i in (0, 3)]
        velocities += change_of_com
        linear, angular = _mean_base_twist(layout, quat, joint_qd, *change_of_com)
        positions += [
            quat_rotate_inverse(quat, next_q[..., :3] - joint_q[..., :3]) - dt * linear,
            quat_log(quat_multiply(quat_conjugate(quat), next_q[..., 3:7])) - dt * angular]
    mean = joint_qd + 0.5 * change
    for joint, q, qd in zip(layout.joints, layout.q_start, layout.qd_start):
        if joint.type == 'ball':
            turn = quat_multiply(next_q[..., q:q + 4], quat_conjugate(joint_q[..., q:q + 4]))
            positions.append(quat_log(turn) - dt * mean[..., qd:qd + 3])
        else:
            positions.append((next_q - joint_q)[..., q:q + 1] - dt * mean[..., qd:qd + 1])
    velocities.append(change[..., layout.num_base_dofs:])
    return torch.cat(positions + velocities, dim=-1)


def apply_increment(layout: RobotLayout, joint_q: Tensor, joint_qd: Tensor,
                    delta: Tensor) -> tuple[Tensor, Tensor]:
    """
    Inverse of `increment`: the next state `(..., nq)`, `(..., nqd)`.

    Joints that follow another are put where that one has them.
    """
    dt, n, base = layout.dt, layout.nqd, layout.num_base_dofs
    positions, velocities = [], []
    if layout.floating:
        quat = joint_q[..., 3:7]
        change = delta[..., n:n + 3], delta[..., n + 3:n + 6]
        linear, angular = _mean_base_twist(layout, quat, joint_qd, *change)
        turn = quat_exp(dt * angular + delta[..., 3:6])
        positions += [joint_q[..., :3] + quat_rotate(quat, dt * linear + delta[..., :3]),
                      torch.nn.functional.normalize(quat_multiply(quat, turn), dim=-1)]
        velocities += [joint_qd[..., :3] + quat_rotate(quat, change[0]),
                       joint_qd[..., 3:6] + quat_rotate(quat, change[1])]
    moved = delta[..., :n] + dt * (joint_qd + 0.5 * delta[..., n:])
    for joint, q, qd in zip(layout.joints, layout.q_start, layout.qd_start):
        if joint.type == 'ball':
            turned = quat_multiply(quat_exp(moved[..., qd:qd + 3]), joint_q[..., q:q + 4])
            positions.append(torch.nn.functional.normalize(turned, dim=-1))
        else:
            positions.append(joint_q[..., q:q + 1] + moved[..., qd:qd + 1])
    velocities.append(joint_qd[..., base:] + delta[..., n + base:])
    next_q, next_qd = torch.cat(positions, dim=-1), torch.cat(velocities, dim=-1)
    return _follow(layout, next_q, next_qd)


def _mean_base_twist(layout: RobotLayout, quat: Tensor, joint_qd: Tensor, change_linear: Tensor,
                     change_angular: Tensor):
    """
    Mean twist of the base frame's origin during a step, in the frame at its start.

    `joint_qd` is the twist of the centre of mass in the world at the start; the changes of it
    are in the base frame.
    """
    angular = quat_rotate_inverse(quat, joint_qd[..., 3:6]) + 0.5 * change_angular
    linear = quat_rotate_inverse(quat, joint_qd[..., :3]) + 0.5 * change_linear
    com = angular.new_tensor(layout.base_com).expand_as(angular)
    return linear - torch.linalg.cross(angular, com), angular


def _follow(layout: RobotLayout, joint_q: Tensor, joint_qd: Tensor) -> tuple[Tensor, Tensor]:
    """Put joints that follow another where that one has them."""
    if not len(layout.mimic_q):
        return joint_q, joint_qd
    multiplier, offset = joint_q.new_tensor(layout.mimic_coeffs).unbind(-1)
    (q, lead_q), (qd, lead_qd) = (torch.from_numpy(pairs.T).to(joint_q.device)
                                  for pairs in (layout.mimic_q, layout.mimic_qd))
    return (joint_q.index_copy(-1, q, multiplier * joint_q[..., lead_q] + offset),
            joint_qd.index_copy(-1, qd, multiplier * joint_qd[..., lead_qd]))
