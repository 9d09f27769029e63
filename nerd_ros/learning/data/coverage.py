# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a trajectory file covers: the values of each input that a model learns from it."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from nerd_ros.dynamics.frames import quat_rotate, quat_rotate_inverse
from nerd_ros.dynamics.layout import JOINT_DOFS, RobotLayout
from nerd_ros.learning.data.trajectories import Trajectories, TrajectoryFile

_PIECE = 1024          # trajectories that are read at a time
_SAMPLE = 1_000_000    # steps that percentiles are taken from, evenly over the file


@dataclass(frozen=True)
class Input:
    """
    One input over all steps of a file.

    `minimum` and `maximum` are those of all values, `values` an even choice of them, for
    percentiles. Of contacts, an input is the distance of all slots of a link that see something,
    and `touching` the share of steps in which one of them touches.
    """

    name: str
    unit: str
    minimum: float
    maximum: float
    values: np.ndarray
    touching: float | None = None


@dataclass(frozen=True)
class Coverage:
    """A trajectory file: shares of its trajectories by what they are, and its inputs."""

    path: Path
    layout: RobotLayout
    about: dict
    shares: dict[str, float]
    inputs: tuple[Input, ...]


def coverage(path: str | Path) -> Coverage:
    """Read a whole trajectory file; raises TrajectoryError where it cannot be used."""
    with TrajectoryFile(path) as file:
        layout, count = file.layout, file.num_trajectories
        every = -(-count * file.steps // _SAMPLE)
        inputs, kinds = {}, []
        for first in range(0, count, _PIECE):
            part = file.read(first, first + _PIECE)
            kinds.append(_kinds(layout, part))
            chosen = np.arange(first, first + len(part)) % every == 0
            for name, unit, values, seen in _columns(layout, part):
                collected = inputs.setdefault((name, unit), _Collected(seen is not None))
                collected.add(values, seen, chosen)
        # What a robot lacks is not there in any of the pieces.
        shares = {name: float(np.concatenate([kind[name] for kind in kinds]).mean())
                  for name in kinds[0]}
        return Coverage(Path(path), layout, file.about, shares, tuple(
            collected.input(name, unit) for (name, unit), collected in inputs.items()))


class _Collected:
    """One input, collected piece by piece."""

    def __init__(self, contact: bool):
        self._contact = contact
        self._ends, self._values, self._touching = [], [], []

    def add(self, values: np.ndarray, seen: np.ndarray | None, chosen: np.ndarray) -> None:
        """Add values (n, T) or, of contacts, (n, T, slots) of which some are `seen`."""
        if self._contact:
            self._touching.append((values <= 0.0).any(axis=2))
            self._values.append(values[chosen][seen[chosen]])
            values = values[seen]
        else:
            self._values.append(values[chosen].ravel())
        if values.size:
            self._ends += [values.min(), values.max()]

    def input(self, name: str, unit: str) -> Input:
        ends = self._ends or [np.nan]
        return Input(name, unit, float(min(ends)), float(max(ends)), np.concatenate(self._values),
                     float(np.concatenate(self._touching).mean()) if self._contact else None)


def _kinds(layout: RobotLayout, part: Trajectories) -> dict[str, np.ndarray]:
    """Which trajectories are what, each (n,)."""
    kinds = {}
    if layout.effort_limits.any():
        kinds['without effort'] = ~part.effort.any(axis=(1, 2))
    kinds['with velocity jumps'] = part.jump.any(axis=(1, 2))
    if layout.num_slots:
        kinds['above ground'] = np.isfinite(part.ground[:, 3])
        kinds['near a box'] = part.box[:, 7] > 0.0
        kinds['in contact at some time'] = (part.contacts[..., 6] <= 0.0).any(axis=(1, 2))
    return kinds


def _columns(layout: RobotLayout, part: Trajectories
             ) -> Iterator[tuple[str, str, np.ndarray, np.ndarray | None]]:
    """Yield name, unit and values (n, T) of each input; of contacts also which are seen."""
    joint_q, joint_qd = part.joint_q[:, :-1], part.joint_qd[:, :-1]
    if layout.floating:
        yield from _base_columns(joint_q, joint_qd)
    for joint, start in zip(layout.joints, layout.q_start):
        values = joint_q[..., start]
        if joint.type == 'ball':
            sine = np.linalg.norm(joint_q[..., start:start + 3], axis=-1)
            values = 2.0 * np.arctan2(sine, np.abs(joint_q[..., start + 3]))
        elif joint.type == 'continuous':
            values = np.mod(values + np.pi, 2.0 * np.pi) - np.pi
        yield f'{joint.name} position', 'm' if joint.type == 'prismatic' else 'rad', values, None
    for kind, units, data, starts in (
            ('velocity', ('m/s', 'rad/s'), joint_qd, layout.qd_start),
            ('effort', ('N', 'N m'), part.effort,
             [start - layout.num_base_dofs for start in layout.qd_start])):
        for joint, start in zip(layout.joints, starts):
            if kind == 'effort' and not joint.effort_limit:
                continue
            unit = units[joint.type != 'prismatic']
            for i in range(JOINT_DOFS[joint.type]):
                axis = f' {"xyz"[i]}' if joint.type == 'ball' else ''
                yield f'{joint.name} {kind}{axis}', unit, data[..., start + i], None
    links = np.array([slot.link for slot in layout.slots])
    for link in dict.fromkeys(links.tolist()):
        distance = part.contacts[:, :, links == link, 6]
        yield f'{link} contact distance', 'm', distance, distance < layout.contact_threshold


def _base_columns(joint_q: np.ndarray, joint_qd: np.ndarray):
    """Tilt from upright, and the twist in the base frame, as a model has it."""
    turn = torch.from_numpy(np.ascontiguousarray(joint_q[..., 3:7]))
    up = torch.zeros_like(turn[..., :3])
    up[..., 2] = 1.0
    tilt = torch.arccos(quat_rotate(turn, up)[..., 2].clip(-1.0, 1.0))
    yield 'base tilt', 'rad', tilt.numpy(), None
    for first, kind, unit in ((0, 'velocity', 'm/s'), (3, 'angular velocity', 'rad/s')):
        part = torch.from_numpy(np.ascontiguousarray(joint_qd[..., first:first + 3]))
        local = quat_rotate_inverse(turn, part).numpy()
        for i, axis in enumerate('xyz'):
            yield f'base {kind} {axis}', unit, local[..., i], None
