# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Plain functions between the simulation's arrays and the contents of messages."""

from dataclasses import dataclass
import math
from pathlib import Path
from xml.etree import ElementTree

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


# Product of quaternions as matrices: a b = LEFT(a) b = RIGHT(b) a, rows x y z w.
_LEFT_INDEX = np.array([[3, 2, 1, 0], [2, 3, 0, 1], [1, 0, 3, 2], [0, 1, 2, 3]])
_LEFT_SIGN = np.array([[1, -1, 1, 1], [1, 1, -1, 1], [-1, 1, 1, 1], [-1, -1, -1, 1.0]])
_RIGHT_SIGN = np.array([[1, 1, -1, 1], [-1, 1, 1, 1], [1, -1, 1, 1], [-1, -1, -1, 1.0]])
_CONJUGATE = np.array([-1.0, -1.0, -1.0, 1.0])


def relative_poses(parents: np.ndarray, children: np.ndarray) -> np.ndarray:
    """
    Poses of the children seen from the parents, all (n, 7): position [m], quaternion xyzw.

    A handful of array operations for all links, for this runs once per step.
    """
    inverse = parents[:, 3:] * _CONJUGATE
    left = inverse[:, _LEFT_INDEX] * _LEFT_SIGN
    # v' = inverse v inverse*: both products as one matrix, whose upper block is a rotation.
    rotation = (left @ (parents[:, 3:][:, _LEFT_INDEX] * _RIGHT_SIGN))[:, :3, :3]
    result = np.empty((len(parents), 7))
    result[:, :3] = (rotation @ (children[:, :3] - parents[:, :3])[:, :, None])[:, :, 0]
    result[:, 3:] = (left @ children[:, 3:, None])[:, :, 0]
    return result


def base_twist(pose: np.ndarray, velocity: np.ndarray, com: np.ndarray) -> np.ndarray:
    """
    Twist (6,) of a floating base in its own frame: linear [m/s] at its origin, angular [rad/s].

    `pose` (7,) of the base, `velocity` (6,) linear of the centre of mass and angular, both in the
    world; `com` (3,) is the centre of mass in the base frame.
    """
    rotation = rotation_matrix(pose[3:])
    angular = rotation.T @ velocity[3:]
    return np.concatenate([rotation.T @ velocity[:3] - np.cross(angular, com), angular])


def rotation_matrix(quat: np.ndarray) -> np.ndarray:
    """Matrix (3, 3) that turns vectors of the frame with orientation `quat` xyzw to the world."""
    x, y, z, w = (float(v) for v in quat)
    return np.array([
        [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
        [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
        [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)]])


def marker_scale(shape: str, size: tuple[float, ...]) -> tuple[float, float, float]:
    """Extents [m] along x, y, z of the marker of an obstacle."""
    if shape == 'sphere':
        return (2 * size[0],) * 3
    if shape == 'plane':
        return size[0], size[1], PLANE_THICKNESS
    return size
