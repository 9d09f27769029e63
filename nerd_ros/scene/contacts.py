# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Contact slots: what the static geometry around a robot is to its learned model.

A slot is a sphere or a circle fixed on a link; its value is the closest static shape. Engines
report a varying list of contacts, slots are always the same ones in the same order. Generation,
evaluation, fine-tuning and the running simulation all use this kernel.
"""

import newton
import numpy as np
import warp as wp

from nerd_ros.dynamics.layout import CONTACT_SIZE
from nerd_ros.scene.rows import RobotRows

_PLANE = wp.constant(int(newton.GeoType.PLANE))
_BOX = wp.constant(int(newton.GeoType.BOX))
# Sine of the tilt from which on a circle sees with its lowest place; nearer to level this moves
# to the middle instead of jumping around, and is off by at most a quarter of it, of the radius.
_LEVEL = wp.constant(0.05)


class ContactSlots:
    """
    Contacts of the robot of each world with the shapes of its world that stand still.

    `values` (W, S, 7): point on the robot [m], unit normal from the static shape toward the
    robot, signed distance [m] (negative inside), all in the world frame. A slot farther than the
    threshold has its own middle as point, a zero normal, and the threshold as distance.
    """

    def __init__(self, rows: RobotRows):
        model, layout = rows.model, rows.layout
        kinds = model.shape_type.numpy()[rows.static_shapes]
        known = (int(newton.GeoType.PLANE), int(newton.GeoType.BOX), int(newton.GeoType.SPHERE))
        if not np.isin(kinds, known).all():
            raise ValueError('contact slots see planes, boxes and spheres; the scene has a '
                             'static shape of another kind.')
        links = {name: index for index, name in enumerate(rows.body_names[:rows.num_links])}
        device = model.device
        self._model = model
        self._stride = rows.body_stride
        self._threshold = float(layout.contact_threshold)
        self._links = wp.array([links[s.link] for s in layout.slots], dtype=int, device=device)
        self._points = wp.array([s.point for s in layout.slots], dtype=wp.vec3, device=device)
        self._radii = wp.array([s.radius for s in layout.slots], dtype=float, device=device)
        self._rings = wp.array([s.ring for s in layout.slots], dtype=float, device=device)
        self._axes = wp.array([s.axis for s in layout.slots], dtype=wp.vec3, device=device)
        self._shapes = wp.array(rows.static_shapes, dtype=int, ndim=2, device=device)
        self.values = wp.zeros((rows.num_worlds, layout.num_slots, CONTACT_SIZE), dtype=float,
                               device=device)

    def update(self, state: newton.State) -> None:
        """Fill `values` from `state.body_q`; one launch, without allocation, so capturable."""
        wp.launch(
            _closest_static_shape, dim=self.values.shape[:2], device=self._model.device,
            inputs=[state.body_q, self._stride, self._links, self._points, self._radii,
                    self._rings, self._axes, self._shapes, self._model.shape_type,
                    self._model.shape_transform, self._model.shape_scale, self._threshold],
            outputs=[self.values])


@wp.func
def _box_distance(point: wp.vec3, half: wp.vec3):
    """Signed distance of a point to a box, and the outward normal."""
    outside = wp.vec3(wp.abs(point[0]) - half[0], wp.abs(point[1]) - half[1],
                      wp.abs(point[2]) - half[2])
    positive = wp.vec3(wp.max(outside[0], 0.0), wp.max(outside[1], 0.0),
                       wp.max(outside[2], 0.0))
    length = wp.length(positive)
    normal = wp.vec3(0.0)
    distance = length
    if length > 1.0e-9:
        normal = wp.vec3(wp.sign(point[0]) * positive[0], wp.sign(point[1]) * positive[1],
                         wp.sign(point[2]) * positive[2]) / length
    else:
        axis = int(0)
        if outside[1] > outside[axis]:
            axis = 1
        if outside[2] > outside[axis]:
            axis = 2
        distance = outside[axis]
        normal[axis] = wp.sign(point[axis])
    return distance, normal


@wp.func
def _static_distance(point: wp.vec3, kind: int, pose: wp.transform, size: wp.vec3):
    """Signed distance of a point to a static shape, and the normal away from it, in the world."""
    local = wp.transform_point(wp.transform_inverse(pose), point)
    distance = float(0.0)
    normal = wp.vec3(0.0, 0.0, 1.0)
    if kind == _PLANE:
        distance = local[2]
    elif kind == _BOX:
        distance, normal = _box_distance(local, size)
    else:
        length = wp.length(local)
        distance = length - size[0]
        if length > 1.0e-9:
            normal = local / length
    return distance, wp.transform_vector(pose, normal)


@wp.kernel
def _closest_static_shape(
    body_q: wp.array(dtype=wp.transform),
    body_stride: int,
    links: wp.array(dtype=int),
    points: wp.array(dtype=wp.vec3),
    radii: wp.array(dtype=float),
    rings: wp.array(dtype=float),
    axes: wp.array(dtype=wp.vec3),
    shapes: wp.array2d(dtype=int),
    shape_type: wp.array(dtype=int),
    shape_transform: wp.array(dtype=wp.transform),
    shape_scale: wp.array(dtype=wp.vec3),
    threshold: float,
    values: wp.array3d(dtype=float),
):
    world, slot = wp.tid()
    link = body_q[world * body_stride + links[slot]]
    middle = wp.transform_point(link, points[slot])
    axis = wp.transform_vector(link, axes[slot])
    radius, ring = radii[slot], rings[slot]
    best = threshold
    best_point = middle
    best_normal = wp.vec3(0.0)
    for k in range(shapes.shape[1]):
        shape = shapes[world, k]
        kind, pose, size = shape_type[shape], shape_transform[shape], shape_scale[shape]
        point = middle
        distance, normal = _static_distance(point, kind, pose, size)
        if ring > 0.0:
            down = wp.dot(normal, axis) * axis - normal
            point = middle + down * (ring / wp.max(wp.length(down), _LEVEL))
            distance, normal = _static_distance(point, kind, pose, size)
        distance -= radius
        if distance < best:
            best = distance
            best_point = point
            best_normal = normal
    touch = best_point - radius * best_normal
    for i in range(3):
        values[world, slot, i] = touch[i]
        values[world, slot, 3 + i] = best_normal[i]
    values[world, slot, 6] = best
