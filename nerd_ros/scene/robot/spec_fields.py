# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The kinds of values in a RobotSpec, and what all of its sections have in common."""

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from nerd_ros.scene.input_files import LARGEST, SMALLEST


def as_tuple(value):
    """Return a list of YAML as a tuple, which strict pydantic asks for; else the value."""
    return tuple(value) if isinstance(value, list) else value


Share = Annotated[float, Field(ge=0.0, le=1.0)]
Number = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
NotNegative = Annotated[float, Field(ge=0.0, le=LARGEST)]
FloatRange = Annotated[tuple[NotNegative, NotNegative], BeforeValidator(as_tuple)]
NumberRange = Annotated[tuple[Number, Number], BeforeValidator(as_tuple)]
StepRange = Annotated[tuple[Annotated[int, Field(ge=1)], Annotated[int, Field(ge=1)]],
                      BeforeValidator(as_tuple)]
PerJoint = Annotated[tuple[NotNegative, ...], BeforeValidator(as_tuple)]
# Linear [m/s] and angular [rad/s].
Twist = Annotated[tuple[NotNegative, NotNegative], BeforeValidator(as_tuple)]
Pose6 = Annotated[tuple[Number, Number, Number, Number, Number, Number],
                  BeforeValidator(as_tuple)]


class Section(BaseModel):
    """A part of a RobotSpec: known fields of the right type and nothing else."""

    model_config = ConfigDict(strict=True, extra='forbid', frozen=True, allow_inf_nan=False)


def check_ranges(section: Section, *names: str) -> None:
    """Raise ValueError where a range of a section does not begin with its smaller value."""
    for name in names:
        low, high = getattr(section, name)
        if low > high:
            raise ValueError(f'{name}: {low} is above {high}; give the smaller value first')
