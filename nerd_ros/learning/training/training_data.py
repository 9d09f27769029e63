# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The trajectories of a training in memory, and what a model learns from them."""

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from nerd_ros.dynamics import features
from nerd_ros.dynamics.layout import CONTACT_SIZE, RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.trajectories import TrajectoryError, TrajectoryFile
from nerd_ros.learning.training.optimisation import TrainingError

# Trajectories that are read at once.
_BLOCK = 2048
# Normalisers come from parts of this many trajectories, spread over the file, and of their steps
# from so many drawn at random.
_SAMPLE_PARTS, _SAMPLE_PART, _SAMPLE_STEPS = 40, 256, 250_000


class Batch(NamedTuple):
    """B trajectories of T steps, float32; columns as in `trajectories`."""

    joint_q: Tensor
    joint_qd: Tensor
    effort: Tensor
    contacts: Tensor
    jump: Tensor
    gravity: Tensor
    base_pose: Tensor

    @classmethod
    def of(cls, trajectories) -> 'Batch':
        """Return the arrays of that name of `trajectories` as tensors."""
        return cls(*(torch.as_tensor(np.asarray(getattr(trajectories, name), np.float32))
                     for name in cls._fields))

    def to(self, device: torch.device) -> 'Batch':
        """Return the batch on a device."""
        return Batch(*(value.to(device, non_blocking=True) for value in self))


def convert(layout: RobotLayout, batch: Batch) -> tuple[Tensor, Tensor]:
    """Return raw tokens (B, T, F) and the increments (B, T, 2 nqd) that they lead to."""
    q, qd = batch.joint_q, batch.joint_qd
    steps = q.shape[1] - 1
    gravity = batch.gravity[:, None].expand(-1, steps, -1)
    pose = q[:, :-1, :7] if layout.floating else batch.base_pose[:, None].expand(-1, steps, -1)
    tokens = features.tokens(layout, q[:, :-1], qd[:, :-1], batch.effort, batch.contacts, gravity,
                             pose)
    # A jump comes from outside: it is not what the robot did, but later tokens show it.
    reached = qd[:, 1:] - batch.jump
    return tokens, features.increment(layout, q[:, :-1], qd[:, :-1], q[:, 1:], reached)


def fit_normalisers(model: NerdModel, file: TrajectoryFile, seed: int) -> None:
    """Set the normalisers of `model` from a random sample of the steps in a file."""
    count = file.num_trajectories
    starts = range(0, count, max(_SAMPLE_PART, count // _SAMPLE_PARTS))
    generator = torch.Generator().manual_seed(seed)
    sample = []
    for first in starts:
        batch = Batch.of(file.read(first, min(first + _SAMPLE_PART, count)))
        values = [value.flatten(0, 1) for value in (*convert(model.layout, batch),
                                                    batch.joint_qd[:, 1:])]
        chosen = torch.randperm(len(values[0]), generator=generator)
        chosen = chosen[:_SAMPLE_STEPS // len(starts)]
        sample.append([value[chosen] for value in values])
    model.fit_normalisers(*(torch.cat(values) for values in zip(*sample)))


class TrainingData:
    """
    The trajectories that one of `processes` processes learns from.

    A batch of `batch` has one trajectory of each of as many equal shares of the file: place k
    draws from the trajectories i with i % batch == k, in a new order every epoch. So the batches
    do not depend on the number of processes, and each process, which fills places of its own,
    holds the trajectories of these alone. What is left over of equal shares is not used.

    Raises TrajectoryError where there are fewer trajectories than `batch` and TrainingError where
    a batch cannot be shared among the processes evenly.
    """

    def __init__(self, file: TrajectoryFile, batch: int, seed: int, rank: int = 0,
                 processes: int = 1):
        self._share = file.num_trajectories // batch
        if not self._share:
            raise TrajectoryError(f'{file.path}: {file.num_trajectories} trajectories are fewer '
                                  f'than one batch of {batch}; generate more.')
        if batch % processes:
            raise TrainingError(f'a batch of {batch} trajectories cannot be shared evenly among '
                                f'{processes} processes; choose a batch that is a multiple.')
        self._batch, self._seed, self._epoch = batch, seed, -1
        self._places = torch.arange(batch).chunk(processes)[rank]
        self._contacts = _Contacts(file.layout.contact_threshold)
        self._others = self._read(file)

    def __len__(self) -> int:
        """Return the number of trajectories that this process holds."""
        return self._share * len(self._places)

    def _read(self, file: TrajectoryFile) -> dict[str, Tensor]:
        """Read the trajectories of all own places; row j * places + k is the j-th of the k-th."""
        count, filled, tensors = self._share * self._batch, 0, {}
        for first in range(0, count, _BLOCK):
            last = min(first + _BLOCK, count)
            own = np.isin(np.arange(first, last) % self._batch, self._places)
            part = Batch.of(file.read(first, last))._asdict()
            self._contacts.append(part.pop('contacts')[own])
            for name, values in part.items():
                if not first:
                    tensors[name] = torch.empty(len(self), *values.shape[1:])
                tensors[name][filled:filled + own.sum()] = values[own]
            filled += own.sum()
        return tensors

    def batch(self, step: int) -> Batch:
        """Return the part of the batch of a step, counted from 0, that falls to this process."""
        epoch, index = divmod(step, self._share)
        if epoch != self._epoch:
            generator = torch.Generator().manual_seed(self._seed * 1_000_003 + epoch)
            order = torch.rand(self._batch, self._share, generator=generator).argsort(dim=1)
            own = order[self._places]
            self._rows = own * len(own) + torch.arange(len(own))[:, None]
            self._epoch = epoch
        rows = self._rows[:, index]
        return Batch(contacts=self._contacts.take(rows.tolist()),
                     **{name: values[rows] for name, values in self._others.items()})


class _Contacts:
    """Contacts of N trajectories without those out of sight, which are most of all numbers."""

    def __init__(self, threshold: float):
        self._threshold = threshold
        self._seen, self._near = [], []   # of each trajectory (T, S) and (in sight, 7)

    def append(self, contacts: Tensor) -> None:
        """Add trajectories, contacts (n, T, S, 7)."""
        seen = contacts[..., 6] < self._threshold
        self._seen += seen
        self._near += contacts[seen].split(seen.sum(dim=(1, 2)).tolist())

    def take(self, rows: list[int]) -> Tensor:
        """Return the contacts (B, T, S, 7) of some; where nothing is in sight, at the origin."""
        seen = torch.stack([self._seen[row] for row in rows])
        contacts = torch.zeros(*seen.shape, CONTACT_SIZE)
        contacts[..., 6] = self._threshold
        contacts[seen] = torch.cat([self._near[row] for row in rows])
        return contacts
