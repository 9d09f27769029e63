# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Plain functions between the simulation's arrays and the contents of messages."""

from dataclasses import dataclass
import math
from pathlib import Path
from xml.etree import ElementTree

from numba import njit
import numpy as np

# Extent of a plane across its normal in a drawing [m].
PLANE_THICKNESS = 0.002


def split_time(time_ns: int) -> tuple[int, int]:
    """Seconds and nanoseconds of a stamp."""
    return divmod(time_ns, 1_000_000_000)


@dataclass(frozen=True)
class UrdfJoint:
    """One joint of a URDF: `pose` (7,) of the child link in the parent link at zero."""

    name: str
    fixed: bool
    parent: str
    child: str
    pose: tuple[float, ...]


def robot_description(path: Path) -> str:
    """
    URDF text of a robot for `robot_description`, xacro processed.

    Relative mesh paths become `file://` addresses, which RViz can open.
    """
    if path.suffix == '.xacro':
        import xacro
        text = xacro.process_file(str(path)).toxml()
    else:
        text = path.read_text(encoding='utf-8')
    root = ElementTree.fromstring(text)
    relative = [mesh for mesh in root.iter('mesh') if '://' not in mesh.get('filename', '://')]
    if not relative:
        return text
    for mesh in relative:
        mesh.set('filename', (path.parent / mesh.get('filename')).resolve().as_uri())
    return ElementTree.tostring(root, encoding='unicode')


def urdf_tree(description: str) -> tuple[str, tuple[UrdfJoint, ...]]:
    """Return the base link and the joints of a URDF text."""
    root = ElementTree.fromstring(description)
    joints = []
    for joint in root.findall('joint'):
        origin = joint.find('origin')
        attributes = {} if origin is None else origin.attrib
        xyz = tuple(float(v) for v in attributes.get('xyz', '0 0 0').split())
        rpy = tuple(float(v) for v in attributes.get('rpy', '0 0 0').split())
        joints.append(UrdfJoint(
            joint.get('name'), joint.get('type') == 'fixed', joint.find('parent').get('link'),
            joint.find('child').get('link'), xyz + quaternion_from_rpy(*rpy)))
    children = {joint.child for joint in joints}
    base = next(link.get('name') for link in root.findall('link')
                if link.get('name') not in children)
    return base, tuple(joints)


def quaternion_from_rpy(roll: float, pitch: float, yaw: float) -> tuple[float, ...]:
    """Quaternion xyzw of fixed-axis roll, pitch and yaw [rad]."""
    cr, sr = math.cos(roll / 2), math.sin(roll / 2)
    cp, sp = math.cos(pitch / 2), math.sin(pitch / 2)
    cy, sy = math.cos(yaw / 2), math.sin(yaw / 2)
    return (sr * cp * cy - cr * sp * sy, cr * sp * cy + sr * cp * sy,
            cr * cp * sy - sr * sp * cy, cr * cp * cy + sr * sp * sy)


# Types are given so that no first message has to wait for the compiler.
@njit('void(f4[:, :], i8[:], i8[:], f8[:, :])', cache=True)
def relative_poses(poses, parents, children, relative):
    """
    Fill `relative` (n, 7) with the poses of bodies `children` (n,) seen from bodies `parents`.

    `poses` (B, 7) are in the world; position [m], quaternion xyzw. Compiled, for this runs once
    per step, and in NumPy takes as long as the step itself.
    """
    for i in range(len(parents)):
        parent = poses[parents[i]].astype(np.float64)
        child = poses[children[i]].astype(np.float64)
        x, y, z, w = -parent[3], -parent[4], -parent[5], parent[6]
        a, b, c = child[0] - parent[0], child[1] - parent[1], child[2] - parent[2]
        tx, ty, tz = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
        relative[i, 0] = a + w * tx + y * tz - z * ty
        relative[i, 1] = b + w * ty + z * tx - x * tz
        relative[i, 2] = c + w * tz + x * ty - y * tx
        qx, qy, qz, qw = child[3], child[4], child[5], child[6]
        relative[i, 3] = w * qx + x * qw + y * qz - z * qy
        relative[i, 4] = w * qy - x * qz + y * qw + z * qx
        relative[i, 5] = w * qz + x * qy - y * qx + z * qw
        relative[i, 6] = w * qw - x * qx - y * qy - z * qz


@njit('void(f4[:], i8[:, :], f8[:])', cache=True)
def joint_positions(joint_q, joints, positions):
    """
    Fill `positions` (dofs,) with joint coordinates [m or rad], of ball joints the rotation vector.

    `joints` (joints, 3): whether it is a ball joint, first of its coordinates, first of its dofs.
    """
    for j in range(len(joints)):
        ball, q, dof = joints[j]
        if not ball:
            positions[dof] = joint_q[q]
            continue
        w = np.float64(joint_q[q + 3])
        size = math.sqrt(joint_q[q] ** 2 + joint_q[q + 1] ** 2 + joint_q[q + 2] ** 2)
        # The shorter of both ways around, without a division by zero where there is no rotation.
        angle = 2.0 * math.atan2(size, abs(w))
        scale = math.copysign(angle / size if size > 1e-9 else 2.0, w)
        for axis in range(3):
            positions[dof + axis] = scale * joint_q[q + axis]


@njit('void(f4[:], f4[:], f8[:], f8[:])', cache=True)
def base_twist(pose, velocity, com, twist):
    """
    Fill `twist` (6,) of a floating base in its own frame: linear [m/s] at its origin, angular.

    `pose` (7,) of the base, `velocity` (6,) linear of the centre of mass and angular [rad/s], both
    in the world; `com` (3,) is the centre of mass in the base frame.
    """
    x, y, z = np.float64(-pose[3]), np.float64(-pose[4]), np.float64(-pose[5])
    w = np.float64(pose[6])
    for i in (0, 3):
        a, b, c = np.float64(velocity[i]), np.float64(velocity[i + 1]), np.float64(velocity[i + 2])
        tx, ty, tz = 2.0 * (y * c - z * b), 2.0 * (z * a - x * c), 2.0 * (x * b - y * a)
        twist[i] = a + w * tx + y * tz - z * ty
        twist[i + 1] = b + w * ty + z * tx - x * tz
        twist[i + 2] = c + w * tz + x * ty - y * tx
    twist[0] -= twist[4] * com[2] - twist[5] * com[1]
    twist[1] -= twist[5] * com[0] - twist[3] * com[2]
    twist[2] -= twist[3] * com[1] - twist[4] * com[0]


def marker_scale(shape: str, size: tuple[float, ...]) -> tuple[float, float, float]:
    """Extents [m] along x, y, z of the marker of an obstacle."""
    if shape == 'sphere':
        return (2 * size[0],) * 3
    if shape == 'plane':
        return size[0], size[1], PLANE_THICKNESS
    return size
