# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a learned model knows of its robot: joints, coordinate slices, contact slots."""

from dataclasses import asdict, dataclass
from functools import cached_property
import re
from typing import Annotated, Literal

import numpy as np
from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from nerd_ros.resources import shown

# Coordinates and degrees of freedom of each joint type, in Newton's order.
JOINT_COORDS = {'revolute': 1, 'continuous': 1, 'prismatic': 1, 'ball': 4}
JOINT_DOFS = {'revolute': 1, 'continuous': 1, 'prismatic': 1, 'ball': 3}

# From here on [rad, m] a limit is none.
UNLIMITED = 1e9

# Values of one contact: point on the robot (3), normal (3), signed distance (1).
CONTACT_SIZE = 7

# What a file may hold; what is made in the program is not checked again.
_Name = Annotated[str, Field(min_length=1)]
_Positive = Annotated[float, Field(gt=0.0, le=1e6)]
_NotNegative = Annotated[float, Field(ge=0.0, le=1e6)]


@dataclass(frozen=True)
class MimicLayout:
    """What a joint follows: its position is `multiplier` x that of `leader` + `offset`."""

    leader: str
    multiplier: float
    offset: float


@dataclass(frozen=True)
class JointLayout:
    """
    One joint in specification order; limits and effort in rad or m, N m or N.

    A joint that follows another has a `mimic`, whose leader follows no other, and no effort.
    """

    name: _Name
    type: Literal['revolute', 'continuous', 'prismatic', 'ball']
    lower: float
    upper: float
    effort_limit: _NotNegative
    mimic: MimicLayout | None = None

    def __post_init__(self):
        if self.upper < self.lower:
            raise ValueError(f'upper {self.upper:g} is below lower {self.lower:g}')


@dataclass(frozen=True)
class SlotLayout:
    """
    One contact slot, fixed at `point` [m] of the frame of `link`.

    A sphere of `radius` [m] around that point; or, where `ring` [m] is not 0, a circle of that
    radius around it, normal to `axis`, which sees with the place of it that is closest.
    """

    link: _Name
    point: tuple[float, float, float]
    radius: _NotNegative
    ring: _NotNegative = 0.0
    axis: tuple[float, float, float] = (0.0, 0.0, 1.0)


@dataclass(frozen=True)
class RobotLayout:
    """
    Everything that a checkpoint shares with the robot it was trained for.

    `dt` is the step in s, `base_com` the centre of mass of a floating base in its own frame [m],
    `contact_threshold` the distance [m] from which on a slot sees nothing, and `fingerprint` a
    hash of the kinematic tree.
    """

    # Unknown fields and numbers that are not finite are refused, in joints and slots as well.
    __pydantic_config__ = ConfigDict(extra='forbid', allow_inf_nan=False)
    robot: _Name
    dt: _Positive
    floating: bool
    joints: tuple[JointLayout, ...]
    slots: tuple[SlotLayout, ...]
    contact_threshold: _Positive
    base_com: tuple[float, float, float]
    fingerprint: str

    def __post_init__(self):
        free = [joint.name for joint in self.joints if joint.mimic is None]
        for joint in self.joints:
            if joint.mimic is not None and joint.mimic.leader not in free:
                raise ValueError(f'joint {joint.name} follows {joint.mimic.leader}, which is no '
                                 'joint that moves by itself')

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the joints in specification order, the floating base excluded."""
        return tuple(joint.name for joint in self.joints)

    @cached_property
    def dof_names(self) -> tuple[str, ...]:
        """Names of the joint dofs: of the joints, with _x, _y, _z behind those of ball joints."""
        return tuple(joint.name + axis for joint in self.joints
                     for axis in (('_x', '_y', '_z') if joint.type == 'ball' else ('',)))

    @cached_property
    def effort_limits(self) -> np.ndarray:
        """Largest effort of each joint dof, shape (num_dofs,) [N m or N]."""
        return np.concatenate(
            [np.full(JOINT_DOFS[j.type], j.effort_limit, np.float32) for j in self.joints]
            or [np.zeros(0, np.float32)])

    @cached_property
    def q_start(self) -> tuple[int, ...]:
        """First coordinate of each joint in `joint_q`."""
        return _starts(7 if self.floating else 0, [JOINT_COORDS[j.type] for j in self.joints])

    @cached_property
    def qd_start(self) -> tuple[int, ...]:
        """First degree of freedom of each joint in `joint_qd`."""
        return _starts(6 if self.floating else 0, [JOINT_DOFS[j.type] for j in self.joints])

    @cached_property
    def limited(self) -> tuple[int, ...]:
        """Indices of the joints with limits that stop them."""
        return tuple(index for index, joint in enumerate(self.joints)
                     if joint.type in ('revolute', 'prismatic') and joint.mimic is None
                     and max(-joint.lower, joint.upper) < UNLIMITED)

    @cached_property
    def mimic_q(self) -> np.ndarray:
        """Coordinates in `joint_q` of each follower and of its leader, shape (M, 2)."""
        return self._followers(self.q_start)

    @cached_property
    def mimic_qd(self) -> np.ndarray:
        """Degrees of freedom in `joint_qd` of each follower and of its leader, shape (M, 2)."""
        return self._followers(self.qd_start)

    @cached_property
    def mimic_coeffs(self) -> np.ndarray:
        """Multiplier and offset [rad or m] of each follower, shape (M, 2)."""
        return np.array([(joint.mimic.multiplier, joint.mimic.offset) for joint in self.joints
                         if joint.mimic is not None], np.float32).reshape(-1, 2)

    def _followers(self, starts: tuple[int, ...]) -> np.ndarray:
        at = dict(zip(self.joint_names, starts))
        return np.array([(at[joint.name], at[joint.mimic.leader]) for joint in self.joints
                         if joint.mimic is not None], np.int64).reshape(-1, 2)

    @cached_property
    def nq(self) -> int:
        """Length of `joint_q`."""
        return (7 if self.floating else 0) + sum(JOINT_COORDS[j.type] for j in self.joints)

    @cached_property
    def nqd(self) -> int:
        """Length of `joint_qd`; also the length of a state increment per position and velocity."""
        return self.num_base_dofs + self.num_dofs

    @property
    def num_base_dofs(self) -> int:
        """6 of a floating base, 0 of a fixed one."""
        return 6 if self.floating else 0

    @cached_property
    def num_dofs(self) -> int:
        """Degrees of freedom of the joints, and length of an effort."""
        return sum(JOINT_DOFS[j.type] for j in self.joints)

    @property
    def num_slots(self) -> int:
        """Number of contact slots."""
        return len(self.slots)

    def to_dict(self) -> dict:
        """Plain lists, numbers and strings, as written in a model card."""
        return _plain(asdict(self))

    @classmethod
    def from_dict(cls, data: dict) -> 'RobotLayout':
        """Inverse of `to_dict`; raises ValueError that names the first wrong field."""
        return from_plain(cls, data)

    def differences(self, other: 'RobotLayout') -> list[str]:
        """One line for each thing in which `other` is not the robot of this layout."""
        lines = []
        for name in ('robot', 'dt', 'floating', 'contact_threshold', 'base_com'):
            mine, theirs = getattr(self, name), getattr(other, name)
            if not _same(mine, theirs):
                lines.append(f'{name}: {mine} against {theirs}')
        if self.joint_names != other.joint_names:
            lines.append(f'joints: {list(self.joint_names)} against {list(other.joint_names)}')
        else:
            for mine, theirs in zip(self.joints, other.joints):
                for name in ('type', 'lower', 'upper', 'effort_limit'):
                    if not _same(getattr(mine, name), getattr(theirs, name)):
                        lines.append(f'joint {mine.name}, {name}: '
                                     f'{getattr(mine, name)} against {getattr(theirs, name)}')
                if not _same_mimic(mine.mimic, theirs.mimic):
                    lines.append(f'joint {mine.name}, mimic: {mine.mimic} against {theirs.mimic}')
        if self.num_slots != other.num_slots:
            lines.append(f'contact slots: {self.num_slots} against {other.num_slots}')
        else:
            moved = [i for i, (a, b) in enumerate(zip(self.slots, other.slots))
                     if a.link != b.link or not _same((*a.point, a.radius, a.ring, *a.axis),
                                                      (*b.point, b.radius, b.ring, *b.axis))]
            if moved:
                lines.append(f'contact slots at another place: {moved}')
        if not lines and self.fingerprint != other.fingerprint:
            lines.append('kinematic tree: links, axes or joint origins differ '
                         f'({self.fingerprint[:12]} against {other.fingerprint[:12]})')
        return lines


def from_plain(kind: type, data):
    """
    Return the dataclass `kind` made of what a YAML or JSON file holds, dataclasses in it as well.

    Raises ValueError that names the first field that is missing, unknown, of another type or out
    of range.
    """
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        problem = error.errors()[0]
    *parents, field = (str(part) for part in problem['loc'] or ('it',))
    if problem['type'] == 'missing':
        what = f'item {field}' if field.isdigit() else field
        raise ValueError(f'{".".join(parents) or "it"} has no {what}')
    message = re.sub('(valid )?tuple', 'list', problem['msg'], flags=re.IGNORECASE)
    reason = (problem.get('ctx', {}).get('error')
              or f'{message}, got {shown(repr(problem["input"]))}')
    raise ValueError(f'{".".join([*parents, field])}: {reason}')


def _starts(first: int, sizes: list[int]) -> tuple[int, ...]:
    return tuple(first + sum(sizes[:i]) for i in range(len(sizes)))


def _plain(value):
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return value.item() if isinstance(value, np.generic) else value


def _same_mimic(a: MimicLayout | None, b: MimicLayout | None) -> bool:
    if a is None or b is None:
        return a is b
    return a.leader == b.leader and _same((a.multiplier, a.offset), (b.multiplier, b.offset))


def _same(a, b) -> bool:
    if isinstance(a, (str, bool)) or isinstance(b, (str, bool)):
        return a == b
    # Layouts travel through float32 engines and YAML text.
    return bool(np.allclose(a, b, rtol=1e-5, atol=1e-6))
