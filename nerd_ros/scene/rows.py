# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where a robot lies in a Newton model that holds it once in each world."""

from dataclasses import dataclass

import newton
import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.scene.robot.robots import LABEL


@dataclass(frozen=True)
class RobotRows:
    """
    The robot's part of a model of equal worlds, the robot first in each.

    World w has bodies w * body_stride to (w + 1) * body_stride - 1, of which the first
    `num_links`, labelled `robot/<link>`, are the robot's. Coordinates and dofs likewise: a state's
    `joint_q` seen as (num_worlds, q_stride) starts with the robot's `layout.nq` coordinates.

    Attributes:
        model: the finalized Newton model.
        layout: the robot.
        num_worlds: number of worlds W.
        num_links: links of the robot, the base included.
        body_names: robot links, then all other bodies of a world; length body_stride.
        static_shapes: (W, K) indices of shapes that stand still and that the robot can touch.
    """

    model: newton.Model
    layout: RobotLayout
    num_worlds: int
    num_links: int
    body_stride: int
    q_stride: int
    qd_stride: int
    body_names: tuple[str, ...]
    static_shapes: np.ndarray

    @classmethod
    def find(cls, model: newton.Model, layout: RobotLayout) -> 'RobotRows':
        """Raise ValueError where `model` does not hold the robot of `layout` first in a world."""
        worlds = max(model.world_count, 1)
        stride = model.body_count // worlds
        labels = list(model.body_label[:stride])
        links = [label for label in labels if label.startswith(f'{LABEL}/')]
        joints = {label.removeprefix(f'{LABEL}/') for label in model.joint_label}
        missing = [name for name in layout.joint_names if name not in joints]
        if missing or labels[:len(links)] != links or model.body_count % worlds:
            raise ValueError(
                f'the model does not hold robot {layout.robot} first in each of its worlds'
                + (f': joint {missing[0]} is missing.' if missing else '.')
                + f' Labels of its bodies have to start with {LABEL}/.')
        return cls(model, layout, worlds, len(links), stride, model.joint_coord_count // worlds,
                   model.joint_dof_count // worlds,
                   tuple(label.removeprefix(f'{LABEL}/') for label in labels),
                   _static_shapes(model, worlds))


def _static_shapes(model: newton.Model, worlds: int) -> np.ndarray:
    """Colliding shapes without body, per world, (W, K); those of no world belong to each."""
    body, world = model.shape_body.numpy(), model.shape_world.numpy()
    collides = (model.shape_flags.numpy() & int(newton.ShapeFlags.COLLIDE_SHAPES)) != 0
    return np.array([np.flatnonzero((body == -1) & collides & ((world == w) | (world == -1)))
                     for w in range(worlds)], np.int32)
