# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Motion that no model was trained on, as the section `evaluation` of the RobotSpec defines it."""

from dataclasses import dataclass

import numpy as np

from nerd_ros.learning.data.sampling import check_seed, Sampler
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.teacher import NO_GROUND, TeacherRollouts

# Training draws from the streams (seed, index of a chunk); with this number in place of the index
# no seed gives a held-out trajectory that a model may have been trained on.
VALIDATION_SEED = 7
"""Of the motion that selects a model during its training; no other may judge it by this."""
_STREAM = 2**31
_ATTEMPTS = 1000   # draws of an initial state that does not reach into the ground


@dataclass(frozen=True)
class HeldOut:
    """
    Motion of the teacher that no model was trained on: N rollouts of T steps.

    `joint_q (N, T+1, nq)` and `joint_qd (N, T+1, nqd)`, the initial state first, under
    `effort (N, T, num_dofs)` above the planes `ground (N, 4)`; units and planes as in
    `TeacherRollouts`. `touches (N,)` says which of them touch the ground.
    """

    spec: RobotSpec
    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort: np.ndarray
    ground: np.ndarray
    touches: np.ndarray


def held_out(spec: RobotSpec, teacher: TeacherRollouts, count: int, seed: int, steps: int,
             passive: bool, ground: bool | None = None) -> HeldOut:
    """
    Return `count` rollouts of `steps` from random states in the ranges of `spec.evaluation`.

    `passive` means without effort, else all have efforts as in training. `ground` True means
    above the planes of the section in turn, False above none, None in turn above none and above
    each of them. The rollouts are the same whatever the size of the teacher, and no seed gives
    some that are part of training.

    Raises RobotError where the robot lacks a section, has no grounds, or finds no place above
    them.
    """
    for section in ('sampling', 'evaluation'):
        if getattr(spec, section) is None:
            raise RobotError(f'{spec.source}: the section {section} is missing; it says what '
                             'motion a model is tested on.')
    check_seed(seed)
    rng = np.random.default_rng([seed, _STREAM, passive, 2 if ground is None else ground])
    sampling = spec.sampling.model_copy(update={'passive_share': float(passive)})
    sampler = Sampler(teacher.layout, sampling, rng)
    planes = _planes(spec, ground)
    chosen = np.arange(count) % len(planes)
    joint_q = _positions(spec, teacher, sampler, planes, chosen)
    joint_qd = sampler.uniform_velocities(count, spec.evaluation)
    effort = sampler.efforts(count, steps)
    parts = []
    for first in range(0, count, teacher.num_worlds):
        part = slice(first, first + teacher.num_worlds)
        where = planes[chosen[part]]
        motion = teacher.rollout(joint_q[part], joint_qd[part], effort[part], where)
        distance = teacher.contacts(motion[0], where)[..., 6]
        parts.append((*motion, (distance <= 0.0).any((1, 2))))
    joint_qs, joint_qds, touches = (np.concatenate(arrays) for arrays in zip(*parts))
    return HeldOut(spec, joint_qs, joint_qds, effort, planes[chosen], touches)


def _planes(spec: RobotSpec, ground: bool | None) -> np.ndarray:
    """Planes (K, 4) that rollouts have in turn."""
    planes = [] if ground else [NO_GROUND]
    for plane in () if ground is False else spec.evaluation.grounds:
        normal = (np.sin(plane.pitch) * np.cos(plane.roll), -np.sin(plane.roll),
                  np.cos(plane.pitch) * np.cos(plane.roll))
        planes.append((*normal, normal[2] * plane.height))
    if not planes:
        raise RobotError(f'{spec.source}: there are no evaluation.grounds to test a model on; '
                         'list one, or test it without ground.')
    return np.array(planes, float)


def _positions(spec: RobotSpec, teacher: TeacherRollouts, sampler: Sampler, planes: np.ndarray,
               chosen: np.ndarray) -> np.ndarray:
    """Joint coordinates (N, nq) above planes[chosen] that do not reach into them."""
    joint_q = np.empty((len(chosen), teacher.layout.nq))
    rows = np.arange(len(chosen))
    for _ in range(_ATTEMPTS):
        joint_q[rows] = _draw(spec, sampler, planes[chosen[rows]])
        depth = np.concatenate([
            teacher.penetration(joint_q[part], planes[chosen[part]])
            for part in np.split(rows, range(teacher.num_worlds, len(rows), teacher.num_worlds))])
        rows = rows[depth > spec.sampling.max_penetration]
        if not len(rows):
            return joint_q
    number = chosen[rows[0]] + 1 - np.isneginf(planes[0, 3])
    raise RobotError(f'{spec.source}: above number {number} of evaluation.grounds no random '
                     'position lies that does not reach into it; lower it, or narrow '
                     'evaluation.position.')


def _draw(spec: RobotSpec, sampler: Sampler, planes: np.ndarray) -> np.ndarray:
    """Random joint coordinates in the ranges of the evaluation, above planes (n, 4)."""
    ranges, layout, rng = spec.evaluation, sampler.layout, sampler.rng
    joint_q = sampler.positions(len(planes))
    if layout.floating:
        height = np.where(np.isneginf(planes[:, 3]), 0.0, planes[:, 3] / planes[:, 2])
        joint_q[:, 2] = height + rng.uniform(*ranges.base_height, len(planes))
        joint_q[:, 3:7] = sampler.orientations(len(planes), ranges.base_tilt)
    for joint, start, limits in zip(layout.joints, layout.q_start, ranges.position or ()):
        if joint.type != 'ball':
            joint_q[:, start] = rng.uniform(*limits, len(planes))
    return sampler.follow(joint_q)
