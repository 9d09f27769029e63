# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where trajectories start: not inside ground or box, and some of them at rest."""

import numpy as np

from nerd_ros.learning.data.sampling import Sampler
from nerd_ros.scene.teacher import NO_BOX, TeacherRollouts

_ATTEMPTS = 100   # draws of a state or box that do not reach into each other


def initial_states(sampler: Sampler, teacher: TeacherRollouts, ground: np.ndarray,
                   box: np.ndarray, slow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """
    Return states (N, nq), (N, nqd), of which those in `slow` (N,) are near rest.

    Changes in place: `ground` (N, 4), where a plane has no room for the robot, `box` (N, 10)
    likewise, and `slow`, where a floating base finds no rest.
    """
    sampling = sampler.sampling
    place = _above if teacher.layout.floating else _beside
    joint_q = place(sampler, teacher, ground)
    _clear_boxes(sampler, teacher, joint_q, ground, box)
    joint_qd = sampler.velocities(len(ground))
    settled = sampler.rng.uniform(size=len(ground)) < sampling.settled_share
    if teacher.layout.floating:
        slow &= np.isfinite(ground[:, 3])
        settled &= np.isfinite(ground[:, 3])
    rows = np.flatnonzero(slow | settled)
    if len(rows):
        rest = np.zeros((len(rows), sampling.settle_steps, teacher.layout.num_dofs))
        motion = teacher.rollout(joint_q[rows], joint_qd[rows], rest, ground[rows],
                                 box=box[rows])
        q, qd = motion[0][:, -1], motion[1][:, -1]
        if teacher.layout.floating:
            # What still falls or slides is no rest, and faster than anything to be learned.
            limits = np.maximum(sampling.base_velocity, sampling.slow_velocity[1])
            calm = np.all([np.linalg.norm(qd[:, part], axis=1) <= limit for part, limit in
                           zip((slice(0, 3), slice(3, 6)), limits)], axis=0)
            slow[rows[~calm]] = False
            rows, q, qd = rows[calm], q[calm], qd[calm]
            _to_origin(q, ground, box, rows)
        joint_q[rows], joint_qd[rows] = q, qd
    joint_qd[slow] = sampler.slow_velocities(int(slow.sum()))
    return joint_q, joint_qd


def _above(sampler: Sampler, teacher: TeacherRollouts, ground: np.ndarray) -> np.ndarray:
    """Joint coordinates of a floating base; planes that it reaches into go back to touch it."""
    joint_q = sampler.positions(len(ground))
    depth = teacher.penetration(joint_q, ground)
    ground[:, 3] -= np.where(depth > sampler.sampling.max_penetration, depth, 0.0)
    return joint_q


def _beside(sampler: Sampler, teacher: TeacherRollouts, ground: np.ndarray) -> np.ndarray:
    """Joint coordinates that do not reach into the ground; planes without room are removed."""
    joint_q = sampler.positions(len(ground))
    rows = np.arange(len(ground))
    for _ in range(_ATTEMPTS):
        depth = teacher.penetration(joint_q[rows], ground[rows])
        rows = rows[depth > sampler.sampling.max_penetration]
        if not len(rows):
            return joint_q
        joint_q[rows] = sampler.positions(len(rows))
    ground[rows, 3] = -np.inf
    return joint_q


def _clear_boxes(sampler: Sampler, teacher: TeacherRollouts, joint_q: np.ndarray,
                 ground: np.ndarray, box: np.ndarray) -> None:
    """Draw boxes anew that reach into the robot; those without room are removed."""
    rows = np.flatnonzero(box[:, 7])
    for _ in range(_ATTEMPTS):
        depth = teacher.penetration(joint_q[rows], ground[rows], box[rows])
        rows = rows[depth > sampler.sampling.max_penetration]
        if not len(rows):
            return
        box[rows] = sampler.boxes(len(rows), teacher.base_pose)
    box[rows] = NO_BOX


def _to_origin(joint_q: np.ndarray, ground: np.ndarray, box: np.ndarray, rows) -> None:
    """Move floating bases (n, nq) back to the origin, and ground and box of `rows` with them."""
    ground[rows, 3] -= (ground[rows, :3] * joint_q[:, :3]).sum(axis=1)
    box[rows, :3] -= np.where(box[rows, 7:8] > 0.0, joint_q[:, :3], 0.0)
    joint_q[:, :3] = 0.0
