# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Worlds: obstacles around the robot, and how they enter a Newton builder."""

from dataclasses import dataclass

import newton
import numpy as np
import warp as wp

# The one box of the teacher's world, which differs from trajectory to trajectory.
NEARBY_BOX = 'nearby_box'


class WorldError(ValueError):
    """A world file cannot be used; the message names file, line and element."""


@dataclass(frozen=True)
class Obstacle:
    """
    One body of the world, of one shape. SI units, world frame.

    Attributes:
        name: unique in its world.
        shape: 'plane', 'box' or 'sphere'.
        size: box (x, y, z) edge lengths, sphere (radius,), plane (x, y) extent that is drawn;
            the plane itself is endless.
        pose: x y z and quaternion x y z w of the middle of the shape; +z of a plane is its
            normal.
        static: whether it stays where it is.
        mass: [kg], 0 if static.
        com: centre of mass in the frame of the shape.
        inertia: 3 x 3 about the centre of mass, axes of the shape [kg m^2].
        friction: coefficient between obstacles; contacts of the robot have the robot's.
        color: red, green, blue in 0 to 1, None if the file has none.
    """

    name: str
    shape: str
    size: tuple[float, ...]
    pose: tuple[float, ...]
    static: bool
    mass: float = 0.0
    com: tuple[float, float, float] = (0.0, 0.0, 0.0)
    inertia: tuple[tuple[float, ...], ...] = ((0.0,) * 3,) * 3
    friction: float = 1.0
    color: tuple[float, float, float] | None = None

    def add_to(self, builder: newton.ModelBuilder) -> None:
        """Add the obstacle to a builder; its body, if it moves, and its shape bear its name."""
        pose = wp.transform(self.pose[:3], self.pose[3:])
        config = builder.default_shape_cfg.copy()
        config.mu = self.friction
        # Mass and inertia are given, not derived from the shape.
        config.density = 0.0
        body = -1
        if not self.static:
            body = builder.add_body(
                xform=pose, label=self.name, mass=self.mass, com=wp.vec3(*self.com),
                inertia=wp.mat33(np.array(self.inertia, np.float32)))
            pose = wp.transform_identity()
        common = {'body': body, 'xform': pose, 'cfg': config, 'label': self.name,
                  'color': self.color}
        if self.shape == 'plane':
            # Width and length 0 make the plane endless.
            builder.add_shape_plane(width=0.0, length=0.0, **common)
        elif self.shape == 'box':
            hx, hy, hz = (0.5 * edge for edge in self.size)
            builder.add_shape_box(hx=hx, hy=hy, hz=hz, **common)
        else:
            builder.add_shape_sphere(radius=self.size[0], **common)


@dataclass(frozen=True)
class World:
    """Gravity and obstacles. Obstacles with unique names; SI units."""

    name: str
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81)
    obstacles: tuple[Obstacle, ...] = ()

    def add_to(self, builder: newton.ModelBuilder) -> None:
        """Add all obstacles to a builder in their order."""
        for obstacle in self.obstacles:
            obstacle.add_to(builder)


def ground_plane(normal=(0.0, 0.0, 1.0), offset: float = 0.0, friction: float = 1.0) -> Obstacle:
    """Endless plane named `ground` of the points x with normal . x = offset [m]."""
    return Obstacle('ground', 'plane', (10.0, 10.0), plane_pose(normal, offset), True,
                    friction=friction)


def nearby_box(friction: float = 1.0) -> Obstacle:
    """Static box named `nearby_box`, far away until `Scene.set_box` places it."""
    return Obstacle(NEARBY_BOX, 'box', (0.2, 0.2, 0.2), (0.0, 0.0, -1.0e3, 0.0, 0.0, 0.0, 1.0),
                    True, friction=friction)


def plane_pose(normal, offset: float) -> tuple[float, ...]:
    """Pose (x y z, quaternion x y z w) of a plane with unit `normal` and `offset` [m]."""
    normal = np.asarray(normal, float)
    # The half-way quaternion from +z to the normal; straight down it has no direction.
    quat = np.array([-normal[1], normal[0], 0.0, 1.0 + normal[2]])
    if quat[3] < 1e-9:
        quat = np.array([1.0, 0.0, 0.0, 0.0])
    quat /= np.linalg.norm(quat)
    return (*(normal * offset).tolist(), *quat.tolist())
