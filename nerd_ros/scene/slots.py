# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the contact slots of a robot lie: sphere probes fixed on its collision shapes."""

import math

import newton
import numpy as np
import warp as wp

from nerd_ros.dynamics.layout import SlotLayout
from nerd_ros.scene.robot_spec import RobotSpec

_HULL_SLOTS = 12
_MERGE_DISTANCE = 1e-4   # slots closer than this on one link are one [m]


def place_slots(builder: newton.ModelBuilder, spec: RobotSpec) -> tuple[SlotLayout, ...]:
    """
    Return the slots of the robot that is the first thing in `builder`, in the order of its shapes.

    A sphere gives one slot, a capsule its ends and points between them at most
    `slot_spacing` apart, a box its corners, a cylinder eight points of each rim, a mesh up to
    twelve vertices of its hull.
    """
    slots = []
    for shape in range(builder.shape_count):
        body = builder.shape_body[shape]
        if body < 0 or not builder.shape_flags[shape] & newton.ShapeFlags.COLLIDE_SHAPES:
            continue
        link = builder.body_label[body].split('/', 1)[1]
        points, radius = _probes(builder, shape, spec.contact.slot_spacing)
        pose = wp.transform(*builder.shape_transform[shape])
        for point in points:
            placed = tuple(round(float(v), 7) + 0.0 for v in
                           wp.transform_point(pose, wp.vec3(*map(float, point))))
            slot = SlotLayout(link, placed, float(radius))
            if not any(s.link == link and math.dist(s.point, placed) < _MERGE_DISTANCE
                       and abs(s.radius - slot.radius) < _MERGE_DISTANCE for s in slots):
                slots.append(slot)
    return tuple(slots)


def _probes(builder, shape: int, spacing: float) -> tuple[np.ndarray, float]:
    """Points in the frame of a shape, (n, 3), and the radius around them."""
    kind = builder.shape_type[shape]
    size = np.array(builder.shape_scale[shape], float)
    if kind == newton.GeoType.SPHERE:
        return np.zeros((1, 3)), size[0]
    if kind == newton.GeoType.CAPSULE:
        count = 1 + max(1, math.ceil(2.0 * size[1] / spacing - 1e-6))
        z = np.linspace(size[1], -size[1], count)
        return np.stack([0.0 * z, 0.0 * z, z], axis=1), size[0]
    if kind == newton.GeoType.BOX:
        signs = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        return signs * size, 0.0
    if kind == newton.GeoType.CYLINDER:
        angle = np.arange(8) * (math.pi / 4.0)
        ring = np.stack([size[0] * np.cos(angle), size[0] * np.sin(angle)], axis=1)
        return np.concatenate([np.column_stack([ring, np.full(8, z)])
                               for z in (size[1], -size[1])]), 0.0
    mesh = builder.shape_source[shape]
    return _spread(np.asarray(mesh.compute_convex_hull().vertices, float) * size), 0.0


def _spread(vertices: np.ndarray) -> np.ndarray:
    """Up to _HULL_SLOTS vertices, each as far as possible from the ones before it."""
    chosen = [int(np.argmax(np.linalg.norm(vertices - vertices.mean(axis=0), axis=1)))]
    distance = np.linalg.norm(vertices - vertices[chosen[0]], axis=1)
    while len(chosen) < _HULL_SLOTS and distance.max() > _MERGE_DISTANCE:
        chosen.append(int(np.argmax(distance)))
        distance = np.minimum(distance, np.linalg.norm(vertices - vertices[chosen[-1]], axis=1))
    return vertices[chosen]
