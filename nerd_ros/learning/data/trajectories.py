# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The trajectory file: what models are trained, fine-tuned and measured on.

One HDF5 file holds N trajectories of T steps of one robot. Values are float32, SI units and
radians; W is the world frame. `effort[:, t]` and `contacts[:, t]` belong to state t and lead to
state t + 1. Columns of state and effort follow the joints of the layout, a floating base first:

| | joint_q | joint_qd | effort |
|---|---|---|---|
| floating base | 7: pose in W, as base_pose | 6: velocities in W, of its COM and angular | 0 |
| revolute, continuous, prismatic | 1: position | 1: velocity | 1 |
| ball | 4: quaternion x y z w in the parent | 3: angular velocity, parent frame | 3: torque |

| dataset | shape | content |
|---|---|---|
| joint_q | (N, T+1, nq) | coordinates; angles of endless joints are not wrapped |
| joint_qd | (N, T+1, nqd) | velocities |
| effort | (N, T, A) | joint efforts, held during the step; 0 of joints that follow others |
| contacts | (N, T, S, 7) | contact slots in W: point, normal, signed distance |
| jump | (N, T, nqd) | velocity added after step t: joint_qd[:, t+1] = motion + jump[:, t] |
| gravity | (N, 3) | in W |
| base_pose | (N, 7) | robot base in W: x y z, quaternion x y z w; initial if it moves |
| ground | (N, 4) | plane normal . x = offset in W: normal, offset; offset -inf: none |
| box | (N, 10) | static box in W: its pose as base_pose, half extents; half extents 0: none |
| complete | (chunks,) | whether each chunk of `chunk` trajectories has been written |

Attributes: format_version, layout (RobotLayout as JSON), robot, fingerprint, dt, seed, settings
(JSON that tells how the trajectories were made), command, chunk.
"""

from dataclasses import dataclass, fields
import json
import os
from pathlib import Path

import h5py
import numpy as np

from nerd_ros.dynamics.layout import CONTACT_SIZE, RobotLayout

FORMAT_VERSION = 2
_REMEDY = 'choose another file, or delete this one and generate it anew'


class TrajectoryError(ValueError):
    """A trajectory file cannot be used; the message names the file and what to do."""


@dataclass
class Trajectories:
    """Arrays of N trajectories, as the table of this module describes them."""

    joint_q: np.ndarray
    joint_qd: np.ndarray
    effort: np.ndarray
    contacts: np.ndarray
    jump: np.ndarray
    gravity: np.ndarray
    base_pose: np.ndarray
    ground: np.ndarray
    box: np.ndarray

    def __len__(self) -> int:
        return len(self.joint_q)


class TrajectoryFile:
    """A trajectory file open for reading or writing; use as a context manager."""

    def __init__(self, path: str | Path, mode: str = 'r'):
        """Open an existing file, mode 'r' or 'r+'. Raises TrajectoryError."""
        self.path = Path(path)
        if self.path.is_dir():
            raise TrajectoryError(f'{path}: is a folder; give the name of a file.')
        if not self.path.is_file():
            raise TrajectoryError(f'{path}: no such trajectory file; make one by '
                                  '`nerd-ros generate`.')
        try:
            self._file = h5py.File(self.path, mode)
        except BlockingIOError:
            raise TrajectoryError(f'{path}: open elsewhere, as in a `nerd-ros generate` that '
                                  'still runs; wait for its end.') from None
        except OSError as error:
            if error.errno:   # of the system, which tells nothing of what is in the file
                raise TrajectoryError(f'{path}: cannot be opened: {os.strerror(error.errno)}; '
                                      'check permissions and disk.') from None
            raise TrajectoryError(f'{path}: damaged, or not an HDF5 file; {_REMEDY}.') from None
        attrs = self._file.attrs
        version = attrs.get('format_version')
        if version != FORMAT_VERSION:
            self._file.close()
            raise TrajectoryError(f'{path}: format version {version}, this program reads '
                                  f'{FORMAT_VERSION}; {_REMEDY}.')
        try:
            self.layout = RobotLayout.from_dict(json.loads(attrs['layout']))
            self.seed, self.chunk = int(attrs['seed']), int(attrs['chunk'])
            self.settings = dict(json.loads(attrs['settings']))
            self.command = str(attrs['command'])
            self.num_trajectories, steps = self._file['joint_q'].shape[:2]
            self.steps = steps - 1
            for name, shape in _shapes(self.layout, self.num_trajectories, self.steps).items():
                if self._file[name].shape != shape:
                    raise ValueError(f'{name} has the shape {self._file[name].shape}, not {shape}')
            len(self._file['complete'])
        except (KeyError, TypeError, ValueError) as error:
            self._file.close()
            raise self._damaged(error) from None

    @classmethod
    def create(cls, path: str | Path, layout: RobotLayout, num_trajectories: int, steps: int,
               seed: int = 0, settings: dict | None = None, command: str = '',
               chunk: int = 512) -> 'TrajectoryFile':
        """Make a new file of the given size, filled chunk by chunk with `write`."""
        path = Path(path)
        if path.exists():
            raise TrajectoryError(f'{path}: exists already; choose another name or delete it.')
        path.parent.mkdir(parents=True, exist_ok=True)
        with _new_file(path) as file:
            file.attrs.update(
                format_version=FORMAT_VERSION, layout=json.dumps(layout.to_dict()),
                robot=layout.robot, fingerprint=layout.fingerprint, dt=layout.dt, seed=seed,
                settings=json.dumps(settings or {}), command=command, chunk=chunk)
            for name, shape in _shapes(layout, num_trajectories, steps).items():
                # HDF5 has no chunks of an empty dataset, as of a robot without slots.
                stored = {} if 0 in shape else {
                    'compression': 'lzf', 'shuffle': True,
                    'chunks': (min(shape[0], 64), *shape[1:])}
                file.create_dataset(name, shape, np.float32, **stored)
            file.create_dataset('complete', (-(-num_trajectories // chunk),), bool)
        return cls(path, 'r+')

    def write(self, index: int, batch: Trajectories) -> None:
        """Write chunk `index`, which starts at trajectory index * chunk."""
        first = index * self.chunk
        for field in fields(batch):
            self._file[field.name][first:first + len(batch)] = getattr(batch, field.name)
        self._file['complete'][index] = True
        self._file.flush()

    @property
    def about(self) -> dict:
        """How the trajectories came about: what a model card says of its data."""
        return {'command': self.command, 'seed': self.seed,
                'trajectories': self.num_trajectories, 'steps': self.steps, **self.settings}

    @property
    def missing_chunks(self) -> list[int]:
        """Chunks that have not been written yet."""
        return np.flatnonzero(~self._file['complete'][:]).tolist()

    def read(self, first: int = 0, last: int | None = None) -> Trajectories:
        """
        Read trajectories `first` to `last` (exclusive).

        Raises TrajectoryError where the file is not complete or damaged, or where a state, an
        effort or a contact is not finite.
        """
        if self.missing_chunks:
            raise TrajectoryError(f'{self.path}: {len(self.missing_chunks)} of '
                                  f'{len(self._file["complete"])} chunks are missing; run the '
                                  'same generate command again to complete it.')
        try:
            part = Trajectories(**{field.name: self._file[field.name][first:last]
                                   for field in fields(Trajectories)})
        except OSError as error:
            raise self._damaged(error) from None
        for name in ('joint_q', 'joint_qd', 'effort', 'contacts', 'jump'):
            finite = np.isfinite(getattr(part, name)).reshape(len(part), -1).all(axis=1)
            if not finite.all():
                raise TrajectoryError(f'{self.path}: {name} of trajectory '
                                      f'{first + np.argmin(finite)} is not finite; {_REMEDY}.')
        return part

    def _damaged(self, error: Exception) -> TrajectoryError:
        return TrajectoryError(f'{self.path}: damaged, or not a trajectory file '
                               f'({error.args[0]}); {_REMEDY}.')

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> 'TrajectoryFile':
        return self

    def __exit__(self, *exc_info) -> None:
        self.close()


def _new_file(path: Path) -> h5py.File:
    try:
        return h5py.File(path, 'w')
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else 'no HDF5 file can be made there'
        raise TrajectoryError(f'{path}: {reason}; choose another place.') from None


def _shapes(layout: RobotLayout, n: int, t: int) -> dict[str, tuple[int, ...]]:
    """Shape of each dataset of `n` trajectories of `t` steps."""
    return {
        'joint_q': (n, t + 1, layout.nq), 'joint_qd': (n, t + 1, layout.nqd),
        'effort': (n, t, layout.num_dofs), 'contacts': (n, t, layout.num_slots, CONTACT_SIZE),
        'jump': (n, t, layout.nqd), 'gravity': (n, 3), 'base_pose': (n, 7), 'ground': (n, 4),
        'box': (n, 10)}
