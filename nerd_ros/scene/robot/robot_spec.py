# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""RobotSpec: what the simulator has to know of a robot beside its URDF, read from YAML."""

from pathlib import Path
import re
import reprlib
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator, PrivateAttr, ValidationError
import yaml

from nerd_ros.resources import find_named, shown
from nerd_ros.scene.input_files import LARGEST, read_text, SMALLEST
from nerd_ros.scene.robot.sampling_spec import EvaluationSpec, SamplingSpec
from nerd_ros.scene.robot.spec_fields import (
    as_tuple, NotNegative, Number, Pose6, Positive, Section)

FORMAT_VERSION = 1


class RobotError(ValueError):
    """A robot's YAML or URDF cannot be used; the message names file, part and remedy."""


class BaseSpec(Section):
    """How the robot stands in the world."""

    type: Literal['fixed', 'floating'] = 'fixed'
    pose: Pose6 = Field((0.0,) * 6, description='x y z [m], roll pitch yaw [rad], world frame')


class TeacherSpec(Section):
    """The analytic solver that the model learns from."""

    solver: Literal['mujoco'] = 'mujoco'
    substeps: int = Field(4, ge=1, le=1000, description='solver steps in one dt')


class JointSpec(Section):
    """One joint; what is left out comes from the URDF."""

    effort_limit: NotNegative | None = Field(
        None, description='largest effort [N m or N]; 0 of a joint that no motor moves')
    armature: NotNegative = Field(0.0, description='rotor inertia at the joint [kg m^2 or kg]')
    friction: NotNegative | None = Field(None, description='dry friction [N m or N]')
    damping: NotNegative | None = Field(None, description='viscous friction [N m s/rad or N s/m]')
    initial: Number = Field(0.0, description='position after a reset [rad or m]')


class ContactSpec(Section):
    """Contact of the robot with static geometry."""

    threshold: Positive = Field(0.1, description='distance at which a slot starts to see [m]')
    friction: float = Field(0.6, ge=1e-3, le=LARGEST, description='friction coefficient of every '
                                                                  'contact of the robot')
    slot_spacing: float = Field(0.1, ge=1e-3, le=LARGEST,
                                description='largest distance of slots along a capsule or '
                                            'cylinder [m]')
    shape_slots: int = Field(16, ge=2, le=1000, description='most slots of one collision shape')
    links: Annotated[tuple[str, ...], BeforeValidator(as_tuple)] | None = Field(
        None, description='links that get slots; all with collision shapes where left out')
    rounded_cylinders: bool = Field(False, description='collision cylinders become capsules')


class RobotSpec(Section):
    """
    A robot: its URDF and what URDF cannot say. SI units, radians.

    The order of `joints` is the order of coordinates, efforts and messages; it has to be the
    order of the URDF.
    """

    format_version: Literal[1] = Field(FORMAT_VERSION, description='of the YAML file')
    name: str = Field(max_length=100, pattern=r'^[A-Za-z][A-Za-z0-9_]*$')
    urdf: str = Field(min_length=1, description='URDF or xacro, relative to the YAML file')
    base: BaseSpec = BaseSpec()
    world: str = Field('empty', min_length=1, description='world to simulate it in where none is '
                       'named: one of this package, or an SDF file, relative to the YAML file')
    dt: float = Field(ge=SMALLEST, le=1.0, description='time of one step of the learned model [s]')
    teacher: TeacherSpec = TeacherSpec()
    joints: dict[str, JointSpec] = Field(description='all that move, in the order of the URDF')
    contact: ContactSpec = ContactSpec()
    sampling: SamplingSpec | None = None
    evaluation: EvaluationSpec | None = None

    _source: Path = PrivateAttr(default=Path('.'))

    @model_validator(mode='after')
    def _moves(self):
        if not self.joints and self.base.type == 'fixed':
            raise ValueError('joints: a robot with a fixed base has at least one; list the joints '
                             'of the URDF that move, or give base.type floating')
        return self

    @model_validator(mode='after')
    def _one_value_per_joint(self):
        for section, name in (('sampling', 'velocity'), ('sampling', 'jump_velocity'),
                              ('evaluation', 'velocity'), ('evaluation', 'position')):
            values = getattr(getattr(self, section), name, None)
            if values is not None and len(values) != len(self.joints):
                raise ValueError(f'{section}.{name}: {len(values)} values for '
                                 f'{len(self.joints)} joints; give one per joint')
        return self

    @property
    def source(self) -> Path:
        """The YAML file that this was read from, as given by the user."""
        return self._source

    @property
    def urdf_path(self) -> Path:
        """The URDF or xacro file."""
        return self._source.parent / self.urdf

    @property
    def default_world(self) -> str:
        """Name or path of the world that goes with the robot."""
        return str(self._source.parent / self.world) if self.world.endswith('.sdf') else self.world

    @classmethod
    def load(cls, name_or_path: str | Path) -> 'RobotSpec':
        """
        Read a robot by the name of a robot of this package or by the path of a YAML file.

        Raises RobotError, in one sentence, for a file that is missing, malformed, or that has a
        field which is unknown, missing, of the wrong type or out of range.
        """
        if Path(name_or_path).suffix in ('.urdf', '.xacro'):
            raise RobotError(f'{shown(name_or_path)}: a robot file (YAML) is asked for, not a '
                             'URDF; `nerd-ros init` writes one from it.')
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
        return cls.from_data(data, path)

    @classmethod
    def from_data(cls, data: dict, path: Path) -> 'RobotSpec':
        """Return a robot as if it were read from `path`. Raises RobotError for a wrong field."""
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
        message = re.sub('(valid )?tuple', 'list', first['msg'][0].lower() + first['msg'][1:])
        text = f"field {field}: {message}, got {reprlib.repr(first['input'])}"
    more = f' ({len(problems) - 1} more problems)' if len(problems) > 1 else ''
    return f'{text}.{more}'
