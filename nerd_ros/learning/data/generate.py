# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Training data: random trajectories of the teacher, in chunks that can be resumed."""

from contextlib import closing
from pathlib import Path

from tqdm import tqdm

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.data.sampling import check_seed
from nerd_ros.learning.data.teacher_processes import chunks
from nerd_ros.learning.data.trajectories import TrajectoryError, TrajectoryFile
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.world import World

MOST = 100_000_000   # trajectories of a file


def generate(spec: RobotSpec, path: str | Path, num_trajectories: int, seed: int = 0,
             processes: int = 1, chunk: int = 256, command: str = '',
             progress: bool = True) -> None:
    """
    Write `num_trajectories` random trajectories of the teacher to an HDF5 file.

    The same arguments give the same trajectories, whatever `processes`. An unfinished file that
    was begun with the same arguments is completed. Raises TrajectoryError where the file holds
    other trajectories, RobotError where the robot has no `sampling` section, and ProcessError
    where a process dies; what is done by then stays in the file.
    """
    if spec.sampling is None:
        raise RobotError(f'{spec.source}: the section sampling is missing; it says what random '
                         'trajectories to generate.')
    if not 1 <= num_trajectories <= MOST or processes < 1:
        raise TrajectoryError(f'{path}: {num_trajectories} trajectories of {processes} processes '
                              f'asked for; give at least one of each, and {MOST} at most.')
    check_seed(seed)
    chunk = min(chunk, num_trajectories)
    layout = build_scene(spec, World('nothing')).layout
    with _open(spec, layout, path, num_trajectories, seed, chunk, command) as file:
        sizes = {index: min(chunk, num_trajectories - index * chunk)
                 for index in file.missing_chunks}
        if not sizes:
            return
        with (tqdm(total=num_trajectories, initial=num_trajectories - sum(sizes.values()),
                   unit=' trajectories', disable=not progress, desc=spec.name) as bar,
              closing(chunks(spec, seed, sizes, processes)) as done):
            for index, trajectories in done:
                file.write(index, trajectories)
                bar.update(len(trajectories))


def _open(spec: RobotSpec, layout: RobotLayout, path, num_trajectories: int, seed: int,
          chunk: int, command: str) -> TrajectoryFile:
    """Open an unfinished file of the same content, or make a new one."""
    settings = spec.model_dump(mode='json', include={'sampling', 'teacher', 'joints', 'contact'})
    if not Path(path).exists():
        return TrajectoryFile.create(path, layout, num_trajectories, spec.sampling.steps, seed,
                                     settings, command, chunk)
    file = TrajectoryFile(path, 'r+')
    other = [what for what, same in (
        ('robot', not file.layout.differences(layout)),
        (f'number ({file.num_trajectories} in chunks of {file.chunk}; {num_trajectories} in '
         f'chunks of {chunk} asked for)',
         file.num_trajectories == num_trajectories and file.chunk == chunk),
        (f'seed ({file.seed}; {seed} asked for)', file.seed == seed),
        ('settings', file.settings == settings)) if not same]
    if other:
        file.close()
        raise TrajectoryError(f'{path}: holds trajectories of another {" and ".join(other)}; '
                              'give these again, choose another name or delete it.')
    return file
