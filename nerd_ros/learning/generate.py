# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Training data: random trajectories of the teacher, in chunks that can be resumed."""

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
    sampler, steps = Sampler(teacher.layout, spec.sampling, rng), spec.sampling.steps
    slow = sampler.slow(count)
    ground = sampler.planes(count, teacher.base_pose)
    joint_q, joint_qd = _initial_states(sampler, teacher, ground, slow)
    effort = sampler.efforts(count, steps, slow)
    jump = sampler.jumps(count, steps, slow)
    joint_qs, joint_qds = teacher.rollout(joint_q, joint_qd, effort, ground, jump)
    return Trajectories(
        joint_q=joint_qs, joint_qd=joint_qds, effort=effort,
        contacts=teacher.contacts(joint_qs[:, :-1], ground), jump=jump,
        gravity=np.tile(GRAVITY, (count, 1)),
        base_pose=np.tile(teacher.base_pose, (count, 1)), ground=ground)


def _initial_states(sampler: Sampler, teacher: TeacherRollouts, ground: np.ndarray,
                    slow: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """States (N, nq), (N, nqd), those in `slow` (N,) near rest; planes without room go."""
    sampling, count = sampler.sampling, len(ground)
    joint_q = _positions_above(ground, sampler, teacher, sampling.max_penetration)
    joint_qd = sampler.velocities(count)
    settled = np.flatnonzero(slow | (sampler.rng.uniform(size=count) < sampling.settled_share))
    if len(settled):
        rest = np.zeros((len(settled), sampling.settle_steps, teacher.layout.num_dofs))
        motion = teacher.rollout(joint_q[settled], joint_qd[settled], rest, ground[settled])
        joint_q[settled], joint_qd[settled] = motion[0][:, -1], motion[1][:, -1]
    joint_qd[slow] = sampler.slow_velocities(int(slow.sum()))
    return joint_q, joint_qd


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
    settings = spec.model_dump(mode='json', include={'sampling', 'teacher', 'joints', 'contact'})
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
