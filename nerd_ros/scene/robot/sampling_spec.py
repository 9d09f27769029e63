# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What motion a model learns from, and what motion it is judged on: sections of a RobotSpec."""

import math
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from nerd_ros.scene.robot.spec_fields import (
    as_tuple, check_ranges, FloatRange, NotNegative, Number, NumberRange, PerJoint, Positive,
    Section, Share, StepRange, Twist)


class SamplingSpec(Section):
    """
    Random trajectories for training; shares are probabilities, times in steps of dt.

    What begins with `base_` is for a floating base alone; it starts at the origin. Planes and
    boxes lie around the base, whatever the world of the robot is like.
    """

    steps: int = Field(100, ge=2, le=100_000, description='length of a trajectory [dt]')
    velocity: PerJoint = Field((), description='largest initial velocity per joint '
                                               '[rad/s or m/s]')
    base_velocity: Twist = Field((2.0, 6.0), description='largest initial speed of the base, '
                                                         'linear [m/s] and angular [rad/s]')
    base_tilt: NotNegative = Field(
        math.pi, description='largest initial tilt of the base from upright [rad], with any '
                             'heading; pi: each orientation is as likely')
    still_share: Share = Field(0.05, description='start with zero velocity')
    settled_share: Share = Field(0.15, description='start after settle_steps of passive motion')
    settle_steps: int = Field(200, ge=1, le=100_000, description='[dt]')
    slow_share: Share = Field(0.25, description='stay near a resting state, see slow_velocity; '
                                                'a floating base rests only above ground')
    slow_velocity: FloatRange = Field(
        (1e-3, 1.0), description='initial velocities and many small jumps there [rad/s or m/s]')
    slow_effort: FloatRange = Field((3e-3, 0.3), description='amplitude there, of the limit')
    passive_share: Share = Field(0.25, description='trajectories without effort')
    single_joint_share: Share = Field(0.25, description='of the driven: one joint has effort')
    smooth_share: Share = Field(0.25, description='of the driven: effort is interpolated')
    hold: StepRange = Field((1, 30), description='time that one random effort lasts [dt]')
    jump_share: Share = Field(0.2, description='trajectories with velocity jumps')
    jump_count: StepRange = Field((1, 3), description='jumps in such a trajectory')
    jump_velocity: PerJoint = Field((), description='standard deviation of a jump [rad/s or m/s]')
    base_jump_velocity: Twist = Field((0.5, 2.0), description='likewise of the base, linear '
                                                              '[m/s] and angular [rad/s]')
    no_ground_share: Share = Field(0.3, description='trajectories without ground')
    any_normal_share: Share = Field(0.33, description='of the others: planes of any direction')
    ground_distance: FloatRange = Field((0.05, 0.6), description='base to plane [m]')
    ground_tilt: NotNegative = Field(0.8, description='tilt of a floor [rad]')
    ground_lean: NotNegative = Field(0.1, description='of a fixed base: tilt of plane or box out '
                                                      'of the plane of motion [rad]')
    box_share: Share = Field(0.1, description='trajectories with a static box near the robot')
    box_size: FloatRange = Field((0.1, 0.6), description='its edges [m]')
    box_distance: FloatRange = Field((0.05, 0.6), description='base to box [m]')
    max_penetration: NotNegative = Field(0.002, description='of an initial state [m]')

    @model_validator(mode='after')
    def _ordered(self):
        check_ranges(self, 'hold', 'jump_count', 'ground_distance', 'slow_velocity',
                     'slow_effort', 'box_size', 'box_distance')
        return self


class GroundSpec(Section):
    """A plane through the point x = y = 0 at `height` of the world."""

    height: Number = Field(0.0, description='[m]')
    roll: Number = Field(0.0, description='tilt about the x axis of the world [rad]')
    pitch: Number = Field(0.0, description='tilt about its y axis [rad]')


class EvaluationSpec(Section):
    """
    The held-out motion that a model is judged on: it defines the published tables.

    Initial states are uniform in these ranges and do not reach into the ground. A floating base
    starts above x = y = 0. A rollout above ground has one of `grounds`, in turn. Efforts, where
    there are any, are those of training.
    """

    duration: Positive = Field(description='of a rollout [s]')
    velocity: PerJoint = Field((), description='largest initial speed per joint [rad/s or m/s]')
    position: Annotated[tuple[NumberRange, ...], BeforeValidator(
        lambda value: tuple(map(as_tuple, value)) if isinstance(value, list) else value)] | None \
        = Field(None, description='lowest and highest initial position per joint [rad or m], '
                                  'without effect on ball joints; where left out, all between '
                                  'the limits')
    base_velocity: Twist = Field((0.0, 0.0), description='largest initial speed of a floating '
                                                         'base, linear [m/s], angular [rad/s]')
    base_tilt: NotNegative = Field(math.pi, description='its largest tilt from upright [rad]')
    base_height: FloatRange = Field((0.2, 0.4), description='of it above the ground [m]')
    grounds: Annotated[tuple[GroundSpec, ...], BeforeValidator(as_tuple)] = Field(
        (), description='planes in the frame of the world; none: only rollouts without ground')

    @model_validator(mode='after')
    def _ordered(self):
        check_ranges(self, 'base_height')
        for low, high in self.position or ():
            if low > high:
                raise ValueError(f'position: {low} is above {high}; give the smaller value first')
        return self
