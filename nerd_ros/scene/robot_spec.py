# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""RobotSpec: what the simulator has to know of a robot beside its URDF, read from YAML."""

from pathlib import Path
import re
import reprlib
from typing import Annotated, Literal

from pydantic import (BaseModel, BeforeValidator, ConfigDict, Field, PrivateAttr,
                      ValidationError, model_validator)
import yaml

from nerd_ros.resources import find_named, shown
from nerd_ros.scene.input_files import LARGEST, read_text, SMALLEST


FORMAT_VERSION = 1


class RobotError(ValueError):
    """A robot's YAML or URDF cannot be used; the message names file, part and remedy."""


def _tuple(value):
    return tuple(value) if isinstance(value, list) else value


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
NotNegative = Annotated[float, Field(ge=0.0, le=LARGEST)]
FloatRange = Annotated[tuple[NotNegative, NotNegative], BeforeValidator(_tuple)]
StepRange = Annotated[tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]],
                      BeforeValidator(_tuple)]
PerJoint = Annotated[tuple[NotNegative, ...], BeforeValidator(_tuple)]
Pose6 = Annotated[tuple[Number, Number, Number, Number, Number, Number], BeforeValidator(_tuple)]


class _Section(BaseModel):
    model_config = ConfigDict(strict=True, extra='forbid', frozen=True, allow_inf_nan=False)


class BaseSpec(_Section):
    """How the robot stands in the world."""

    type: Literal['fixed', 'floating'] = 'fixed'
    pose: Pose6 = Field((0.0,) * 6, description='x y z [m], roll pitch yaw [rad], world frame')


class TeacherSpec(_Section):
    """The analytic solver that the model learns from."""

    solver: Literal['mujoco'] = 'mujoco'
    substeps: int = Field(4, ge=1, le=1000, description='solver steps in one dt')


class JointSpec(_Section):
    """One joint; what is left out comes from the URDF."""

    effort_limit: Positive | None = Field(None, description='largest effort [N m or N]')
    armature: NotNegative = Field(0.0, description='rotor inertia at the joint [kg m^2 or kg]')
    friction: NotNegative | None = Field(None, description='dry friction [N m or N]')
    damping: NotNegative | None = Field(None, description='viscous friction [N m s/rad or N s/m]')
    initial: Number = Field(0.0, description='position after a reset [rad or m]')


class ContactSpec(_Section):
    """Contact of the robot with static geometry."""

    threshold: Positive = Field(0.1, description='distance at which a slot starts to see [m]')
    friction: float = Field(0.6, ge=1e-3, le=LARGEST, description='friction coefficient of every '
                                                                  'contact of the robot')
    slot_spacing: float = Field(0.1, ge=1e-3, le=LARGEST,
                                description='largest distance of slots on a capsule [m]')
    rounded_cylinders: bool = Field(False, description='collision cylinders become capsules')


class SamplingSpec(_Section):
    """Random trajectories for training; shares are probabilities, times in steps of dt."""

    steps: int = Field(100, ge=2, description='length of a trajectory [dt]')
    velocity: PerJoint = Field(description='largest initial velocity per joint [rad/s or m/s]')
    still_share: Share = Field(0.05, description='start with zero velocity')
    settled_share: Share = Field(0.15, description='start after settle_steps of passive motion')
    settle_steps: int = Field(200, ge=1, description='[dt]')
    slow_share: Share = Field(0.25, description='stay near a resting state, see slow_velocity')
    slow_velocity: FloatRange = Field(
        (1e-3, 1.0), description='initial velocities and many small jumps there [rad/s or m/s]')
    slow_effort: FloatRange = Field((3e-3, 0.3), description='amplitude there, of the limit')
    passive_share: Share = Field(0.25, description='trajectories without effort')
    single_joint_share: Share = Field(0.25, description='of the driven: one joint has effort')
    smooth_share: Share = Field(0.25, description='of the driven: effort is interpolated')
    hold: StepRange = Field((1, 30), description='time that one random effort lasts [dt]')
    jump_share: Share = Field(0.2, description='trajectories with velocity jumps')
    jump_count: StepRange = Field((1, 3), description='jumps in such a trajectory')
    jump_velocity: PerJoint = Field(description='standard deviation of a jump [rad/s or m/s]')
    no_ground_share: Share = Field(0.3, description='trajectories without ground')
    any_normal_share: Share = Field(0.33, description='of the others: planes of any direction')
    ground_distance: FloatRange = Field((0.05, 0.6), description='base to plane [m]')
    ground_tilt: NotNegative = Field(0.8, description='tilt of a floor [rad]')
    ground_lean: NotNegative = Field(0.1, description='tilt out of the plane of motion [rad]')
    max_penetration: NotNegative = Field(0.002, description='of an initial state [m]')

    @model_validator(mode='after')
    def _ordered(self):
        for name in ('hold', 'jump_count', 'ground_distance', 'slow_velocity', 'slow_effort'):
            low, high = getattr(self, name)
            if low > high:
                raise ValueError(f"{name}: {low} is above {high}; give the smaller value first")
        return self


class RobotSpec(_Section):
    """
    A robot: its URDF and what URDF cannot say. SI units, radians.

    The order of `joints` is the order of coordinates, efforts and messages; it has to be the
    order of the URDF.
    """

    format_version: Literal[1] = Field(FORMAT_VERSION, description='of the YAML file')
    name: str = Field(max_length=100, pattern=r'^[A-Za-z][A-Za-z0-9_]*$')
    urdf: str = Field(min_length=1, description='URDF or xacro, relative to the YAML file')
    base: BaseSpec = BaseSpec()
    dt: float = Field(ge=SMALLEST, le=1.0, description='time of one step of the learned model [s]')
    teacher: TeacherSpec = TeacherSpec()
    joints: dict[str, JointSpec] = Field(min_length=1)
    contact: ContactSpec = ContactSpec()
    sampling: SamplingSpec | None = None

    _source: Path = PrivateAttr(default=Path('.'))

    @model_validator(mode='after')
    def _one_value_per_joint(self):
        if self.sampling is not None:
            for name in ('velocity', 'jump_velocity'):
                count = len(getattr(self.sampling, name))
                if count != len(self.joints):
                    raise ValueError(f'sampling.{name}: {count} values for {len(self.joints)} '
                                     'joints; give one per joint')
        return self

    @property
    def source(self) -> Path:
        """The YAML file that this was read from, as given by the user."""
        return self._source

    @property
    def urdf_path(self) -> Path:
        """The URDF or xacro file."""
        return self._source.parent / self.urdf

    @classmethod
    def load(cls, name_or_path: str | Path) -> 'RobotSpec':
        """
        Read a robot by the name of a robot of this package or by the path of a YAML file.

        Raises RobotError, in one sentence, for a file that is missing, malformed, or that has a
        field which is unknown, missing, of the wrong type or out of range.
        """
        try:
            path = find_named('config/robots', name_or_path, '.yaml')
        except ValueError as error:
            raise RobotError(str(error)) from None
        text = read_text(path, RobotError)
        try:
            data = yaml.load(text, _Loader)
        except Exception as error:  # PyYAML lets many built-in kinds pass
            mark = getattr(error, 'problem_mark', None)
            line = f', line {mark.line + 1}' if mark else ''
            problem = (getattr(error, 'problem', None)
                       or f"not valid YAML: {' '.join(str(error).split())}")
            raise RobotError(f'{path}{line}: {problem}.') from None
        if not isinstance(data, dict):
            raise RobotError(f'{path}: a robot is a mapping of fields such as name, urdf, joints.')
        version = data.get('format_version', FORMAT_VERSION)
        if version != FORMAT_VERSION:
            raise RobotError(f'{path}: format_version {shown(version)}, this release reads '
                             f'{FORMAT_VERSION}; write the file in that format or update '
                             'nerd_ros.')
        try:
            spec = cls.model_validate(data)
        except ValidationError as error:
            raise RobotError(f'{path}: {_sentence(error)}') from None
        spec._source = path
        return spec


class _Loader(yaml.SafeLoader):
    """YAML in which 5e-3 is a number, as it is not in YAML 1.1, and no key comes twice."""

    def construct_mapping(self, node, deep=False):
        keys = []
        for key, _ in node.value:
            if key.value in keys:
                raise yaml.constructor.ConstructorError(
                    problem=f'{key.value} comes twice; leave one of the two',
                    problem_mark=key.start_mark)
            keys.append(key.value)
        return super().construct_mapping(node, deep)


_Loader.add_implicit_resolver(
    'tag:yaml.org,2002:float', re.compile(r'[-+]?(\d+(\.\d*)?|\.\d+)[eE][-+]?\d+$'),
    list('-+.0123456789'))


def _sentence(error: ValidationError) -> str:
    """First problem of a validation error, with the field it is in."""
    problems = error.errors()
    first = problems[0]
    field = '.'.join(str(part) for part in first['loc'])
    kind = first['type']
    if kind == 'extra_forbidden':
        text = f'unknown field {field}; remove it or correct its spelling'
    elif kind == 'missing':
        text = f'field {field} is missing'
    elif kind == 'value_error':
        text = (f'field {field}: ' if field else '') + str(first['ctx']['error'])
    else:
        message = first['msg'][0].lower() + first['msg'][1:]
        text = f"field {field}: {message}, got {reprlib.repr(first['input'])}"
    more = f' ({len(problems) - 1} more problems)' if len(problems) > 1 else ''
    return f'{text}.{more}'
