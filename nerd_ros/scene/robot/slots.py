# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Where the contact slots of a robot lie: probes fixed on its collision shapes."""

import math

import newton
import numpy as np
import warp as wp

from nerd_ros.dynamics.layout import SlotLayout
from nerd_ros.scene.robot.robot_spec import ContactSpec, RobotSpec

_MERGE_DISTANCE = 1e-4   # slots closer than this on one link are one [m]
_DIRECTIONS = 1000       # in which vertices are looked at, evenly over the sphere


def place_slots(builder: newton.ModelBuilder, spec: RobotSpec) -> tuple[SlotLayout, ...]:
    """
    Return the slots of the robot that is the first thing in `builder`, in the order of its shapes.

    A sphere gives one slot, a capsule its ends and points between them at most `slot_spacing`
    apart, a cylinder circles likewise, a box its corners, a mesh vertices of its hull; at most
    `shape_slots` each. Links that cannot move have none, nor have those that are not among
    `contact.links` where that is given.
    """
    slots, still = [], _immovable(builder)
    for shape in range(builder.shape_count):
        body = builder.shape_body[shape]
        if body in still or not builder.shape_flags[shape] & newton.ShapeFlags.COLLIDE_SHAPES:
            continue
        link = builder.body_label[body].split('/', 1)[1]
        if spec.contact.links is not None and link not in spec.contact.links:
            continue
        points, radius, ring = _probes(builder, shape, spec.contact)
        pose = wp.transform(*builder.shape_transform[shape])
        axis = _rounded(wp.transform_vector(pose, wp.vec3(0.0, 0.0, 1.0)))
        for point in points:
            slot = SlotLayout(link, _rounded(wp.transform_point(pose, wp.vec3(*point))),
                              float(radius), float(ring), axis if ring else (0.0, 0.0, 1.0))
            if not any(_alike(slot, other) for other in slots):
                slots.append(slot)
    return tuple(slots)


def _immovable(builder: newton.ModelBuilder) -> set[int]:
    """Bodies that are fixed to the world, and the world itself."""
    still = {-1}
    for joint in range(builder.joint_count):
        if (builder.joint_type[joint] == newton.JointType.FIXED
                and builder.joint_parent[joint] in still):
            still.add(builder.joint_child[joint])
    return still


def _rounded(vector) -> tuple[float, ...]:
    return tuple(round(float(v), 7) + 0.0 for v in vector)


def _alike(a: SlotLayout, b: SlotLayout) -> bool:
    return (a.link == b.link and math.dist(a.point, b.point) < _MERGE_DISTANCE
            and abs(a.radius - b.radius) < _MERGE_DISTANCE
            and abs(a.ring - b.ring) < _MERGE_DISTANCE
            and (not a.ring or math.dist(a.axis, b.axis) < _MERGE_DISTANCE))


def _probes(builder, shape: int, contact: ContactSpec) -> tuple[np.ndarray, float, float]:
    """Points in the frame of a shape, (n, 3), and radii of the spheres or circles around them."""
    kind = builder.shape_type[shape]
    size = np.array(builder.shape_scale[shape], float)
    if kind == newton.GeoType.SPHERE:
        return np.zeros((1, 3)), size[0], 0.0
    if kind in (newton.GeoType.CAPSULE, newton.GeoType.CYLINDER):
        count = 1 + max(1, math.ceil(2.0 * size[1] / contact.slot_spacing - 1e-6))
        z = np.linspace(size[1], -size[1], min(count, contact.shape_slots))
        points = np.stack([0.0 * z, 0.0 * z, z], axis=1)
        return (points, size[0], 0.0) if kind == newton.GeoType.CAPSULE else (points, 0.0, size[0])
    if kind == newton.GeoType.BOX:
        corners = size * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    else:
        corners = np.asarray(builder.shape_source[shape].vertices, float) * size
    return _outermost(corners, contact.shape_slots), 0.0, 0.0


def _outermost(vertices: np.ndarray, most: int) -> np.ndarray:
    """
    Up to `most` of the vertices of a convex body, chosen so that no side of it is far from them.

    Each reaches farthest beyond the ones before it, in one of many directions.
    """
    if len(vertices) <= most:
        return vertices
    index = np.arange(_DIRECTIONS)
    z, angle = 1.0 - (2.0 * index + 1.0) / _DIRECTIONS, index * math.pi * (3.0 - math.sqrt(5.0))
    level = np.sqrt(1.0 - z ** 2)
    directions = np.stack([level * np.cos(angle), level * np.sin(angle), z], axis=1)
    reach = directions @ (vertices - vertices.mean(axis=0)).T
    chosen, reached = [], np.zeros(_DIRECTIONS)
    while len(chosen) < most:
        missing = reach.max(axis=1) - reached
        direction = int(np.argmax(missing))
        if missing[direction] < _MERGE_DISTANCE:
            break
        chosen.append(int(np.argmax(reach[direction])))
        reached = np.maximum(reached, reach[:, chosen[-1]])
    return vertices[chosen]
