# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Training data: random trajectories of the teacher, in chunks that can be resumed."""

import json
from pathlib import Path

import numpy as np
from tqdm import tqdm

from nerd_ros.learning.sampling import Sampler
from nerd_ros.learning.trajectories import Trajectories, TrajectoryError, TrajectoryFile
from nerd_ros.scene.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.teacher import GRAVITY, TeacherRollouts

_ATTEMPTS = 100   # draws of an initial state that does not reach into the ground


def generate(spec: RobotSpec, path: str | Path, num_trajectories: int, seed: int = 0,
             threads: int = 1, chunk: int = 512, command: str = '',
             progress: bool = True) -> None:
    """
    Write `num_trajectories` random trajectories of the teacher to an HDF5 file.

    The same arguments give the same file, whatever `threads`. An unfinished file that was begun
    with the same arguments is completed. Raises TrajectoryError where the file holds other
    trajectories, and RobotError where the robot has no `sampling` section.
    """
    if spec.sampling is None:
        raise RobotError(f'{spec.source}: the section sampling is missing; it says what random '
                         'trajectories to generate.')
    if num_trajectories < 1:
        raise TrajectoryError(f'{path}: {num_trajectories} trajectories asked for; give at least '
                              'one.')
    chunk = min(chunk, num_trajectories)
    teacher = TeacherRollouts(spec, chunk, threads)
    with _open(spec, teacher, path, num_trajectories, seed, chunk, command) as file:
        for index in tqdm(file.missing_chunks, unit='chunk', disable=not progress,
                          desc=f'{spec.name} trajectories'):
            count = min(chunk, num_trajectories - index * chunk)
            # Seeds per chunk keep a resumed file equal to one made in a single run.
            rng = np.random.default_rng([seed, index])
            file.write(index, sample_trajectories(spec, teacher, count, rng))


def sample_trajectories(spec: RobotSpec, teacher: TeacherRollouts, count: int,
                        rng: np.random.Generator) -> Trajectories:
    """Draw and roll out `count` random trajectories, at most `teacher.num_worlds`."""
    slow = Sampler(teacher.layout, spec.sampling, rng).slow(count)
    joint_q, joint_qd, effort, ground = sample_inputs(spec, teacher, count, rng, slow=slow)
    jump = Sampler(teacher.layout, spec.sampling, rng).jumps(count, effort.shape[1], slow)
    joint_qs, joint_qds = teacher.rollout(joint_q, joint_qd, effort, ground, jump)
    return Trajectories(
        joint_q=joint_qs, joint_qd=joint_qds, effort=effort,
        contacts=teacher.contacts(joint_qs[:, :-1], ground), jump=jump,
        gravity=np.tile(GRAVITY, (count, 1)),
        base_pose=np.tile(teacher.base_pose, (count, 1)), ground=ground)


def sample_inputs(spec: RobotSpec, teacher: TeacherRollouts, count: int,
                  rng: np.random.Generator, steps: int | None = None,
                  passive: bool | None = None, on_ground: bool | None = None,
                  slow: np.ndarray | None = None):
    """
    Draw what the teacher needs for `count` rollouts, at most `teacher.num_worlds`.

    `steps` defaults to that of the sampling section; `passive` and `on_ground` make every rollout
    one without effort and with ground, or none, in place of the shares given there; `slow` (N,)
    says which stay near a resting state, by default none.
    Returns joint_q (N, nq), joint_qd (N, nqd), effort (N, steps, A), ground (N, 4).
    """
    sampling, layout = spec.sampling, teacher.layout
    if passive is not None:
        sampling = sampling.model_copy(update={'passive_share': float(passive)})
    if on_ground is not None:
        sampling = sampling.model_copy(update={'no_ground_share': float(not on_ground)})
    sampler = Sampler(layout, sampling, rng)
    ground = sampler.planes(count, teacher.base_pose)
    joint_q = _positions_above(ground, sampler, teacher, sampling.max_penetration)
    joint_qd = sampler.velocities(count)
    slow = np.zeros(count, bool) if slow is None else slow
    settled = np.flatnonzero(slow | (rng.uniform(size=count) < sampling.settled_share))
    if len(settled):
        rest = np.zeros((len(settled), sampling.settle_steps, layout.num_dofs))
        motion = teacher.rollout(joint_q[settled], joint_qd[settled], rest, ground[settled])
        joint_q[settled], joint_qd[settled] = motion[0][:, -1], motion[1][:, -1]
    joint_qd[slow] = sampler.slow_velocities(int(slow.sum()))
    return joint_q, joint_qd, sampler.efforts(count, steps or sampling.steps, slow), ground


def _positions_above(ground: np.ndarray, sampler: Sampler, teacher: TeacherRollouts,
                     max_penetration: float) -> np.ndarray:
    """Joint coordinates that do not reach into the ground; planes without room are removed."""
    joint_q = sampler.positions(len(ground))
    for _ in range(_ATTEMPTS):
        depth = -teacher.contacts(joint_q[:, None], ground)[:, 0, :, 6].min(axis=1, initial=0.0)
        inside = np.flatnonzero(depth > max_penetration)
        if not len(inside):
            return joint_q
        joint_q[inside] = sampler.positions(len(inside))
    ground[inside, 3] = -np.inf
    return joint_q


def _open(spec, teacher, path, num_trajectories, seed, chunk, command) -> TrajectoryFile:
    """Open an unfinished file of the same content, or make a new one."""
    settings = json.dumps({'sampling': spec.sampling.model_dump(mode='json'),
                           'teacher': spec.teacher.model_dump(mode='json'),
                           'joints': {name: joint.model_dump(mode='json')
                                      for name, joint in spec.joints.items()},
                           'contact': spec.contact.model_dump(mode='json')})
    if not Path(path).exists():
        return TrajectoryFile.create(path, teacher.layout, num_trajectories,
                                     spec.sampling.steps, seed, settings, command, chunk)
    file = TrajectoryFile(path, 'r+')
    same = (file.num_trajectories == num_trajectories and file.seed == seed
            and file.chunk == chunk and file.settings == settings
            and not file.layout.differences(teacher.layout))
    if not same:
        file.close()
        raise TrajectoryError(f'{path}: holds trajectories of another robot, number, seed or '
                              'sampling; choose another name or delete it.')
    return file
