# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of a robot's links: hulls of their meshes, and whether inertias fit their size."""

from pathlib import Path
import warnings

import newton
import numpy as np
import warp as wp

from nerd_ros.scene.robot.robot_spec import RobotError
from nerd_ros.scene.robot.robot_warnings import warn

# Of the volume of its hull: what a mesh fills at least that counts as convex.
_CONVEX = 0.95
# Moments of inertia m r^2, with r the distance from the centre of mass to the farthest point of
# the shapes: no body has more than 1, slender ones about 0.1. Lumped motors reach some times that.
_LARGEST_MOMENT = 10.0
_SMALLEST_MOMENT = 1e-3
# Size of the shapes: how far from them a centre of mass may lie.
_FARTHEST = 2.0
# Of the mass of the robot: what a link weighs at least whose inertia matters.
_LIGHT = 0.01


def use_hulls(builder: newton.ModelBuilder, first_shape: int, path: Path) -> None:
    """
    Make the collision meshes from `first_shape` on into their convex hulls, as MuJoCo does.

    One warning names the links whose meshes are not convex. Raises RobotError for a mesh without
    volume.
    """
    hollow = []
    for shape in range(first_shape, builder.shape_count):
        if (builder.shape_type[shape] != newton.GeoType.MESH
                or not builder.shape_flags[shape] & newton.ShapeFlags.COLLIDE_SHAPES):
            continue
        mesh, link = builder.shape_source[shape], _link(builder, shape)
        with warnings.catch_warnings():
            warnings.filterwarnings('ignore', 'remesh_convex_hull')   # of the flat, told below
            hull = mesh.compute_convex_hull()
        if abs(_volume(hull)) < 1e-6 * np.ptp(mesh.vertices, axis=0).max() ** 3:
            raise RobotError(f'{path}: a collision mesh of link {link} has no volume; correct '
                             'the file, or use a box, cylinder or sphere.')
        if abs(_volume(mesh)) < _CONVEX * abs(_volume(hull)) and link not in hollow:
            hollow.append(link)
        builder.shape_type[shape] = newton.GeoType.CONVEX_MESH
        builder.shape_source[shape] = hull
    if hollow:
        warn(f'{path}: collision meshes of link {", ".join(hollow)} are not convex: their convex '
             'hulls touch instead; split them into convex parts where that matters.')


def warn_of_implausible(builder: newton.ModelBuilder, first_shape: int, path: Path) -> None:
    """Warn of inertias and centres of mass that do not fit the shapes of a link."""
    points, total = {}, sum(builder.body_mass)
    for shape in range(first_shape, builder.shape_count):
        points.setdefault(builder.shape_body[shape], []).append(shape_points(
            builder.shape_type[shape], builder.shape_scale[shape], builder.shape_source[shape],
            builder.shape_transform[shape]))
    for body, parts in points.items():
        mass = builder.body_mass[body]
        if body < 0 or mass <= _LIGHT * total:
            continue
        link = builder.body_label[body].split('/', 1)[1]
        corners, com = np.concatenate(parts), np.array(builder.body_com[body], float)
        size = np.linalg.norm(np.ptp(corners, axis=0))
        middle = (corners.min(0) + corners.max(0)) / 2.0
        away = np.linalg.norm(com - middle)
        if away > _FARTHEST * size:
            warn(f'{path}: the centre of mass of link {link} lies {away:.2g} m from the middle of '
                 f'its shapes, which measure {size:.2g} m; check the <origin> of its <inertial>.')
            continue
        radius = np.linalg.norm(corners - com, axis=1).max()
        moment = np.linalg.eigvalsh(np.array(builder.body_inertia[body]).reshape(3, 3))[-1]
        share = moment / (mass * radius ** 2)
        if not _SMALLEST_MOMENT < share < _LARGEST_MOMENT:
            likely = 0.2 * mass * radius ** 2
            warn(f'{path}: link {link}, {mass:.3g} kg and {radius:.2g} m around its centre of '
                 f'mass, has a moment of inertia of {moment:.2g} kg m^2, which is '
                 f'{"large" if share > 1.0 else "small"} for that; about {likely:.1g} would be '
                 'usual: check the units of its <inertia>.')


def shape_points(kind: int, scale, source: newton.Mesh | None, pose) -> np.ndarray:
    """Points (n, 3) of the frame of a link that the hull of one of its shapes lies between [m]."""
    size = np.array(scale, float)
    if kind in (newton.GeoType.MESH, newton.GeoType.CONVEX_MESH):
        local = np.asarray(source.vertices, float) * size
    else:
        if kind == newton.GeoType.SPHERE:
            half = np.full(3, size[0])
        elif kind == newton.GeoType.BOX:
            half = size
        else:
            cap = size[0] if kind == newton.GeoType.CAPSULE else 0.0
            half = np.array([size[0], size[0], size[1] + cap])
        local = half * np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    position, turn = np.split(np.array([*pose], float), [3])
    matrix = np.array(wp.quat_to_matrix(wp.quat(*turn))).reshape(3, 3)
    return local @ matrix.T + position


def _volume(mesh: newton.Mesh) -> float:
    a, b, c = np.asarray(mesh.vertices, float)[np.asarray(mesh.indices).reshape(-1, 3)].swapaxes(
        0, 1)
    return float(np.einsum('ni,ni->', a, np.cross(b, c))) / 6.0


def _link(builder: newton.ModelBuilder, shape: int) -> str:
    return builder.body_label[builder.shape_body[shape]].split('/', 1)[1]
