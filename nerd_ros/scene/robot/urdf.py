# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""URDF and xacro files: read, checked, and told what of them has no effect."""

import hashlib
import os
from pathlib import Path

from lxml import etree

from nerd_ros.resources import shown
from nerd_ros.scene.input_files import parse_xml, read_text
from nerd_ros.scene.robot.mesh_files import mesh_file
from nerd_ros.scene.robot.mimics import read_mimics
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.robot.robot_warnings import warn
from nerd_ros.scene.robot.urdf_checks import (
    check_base_mass, check_inertias, check_numbers, check_shapes)
from nerd_ros.scene.robot.urdf_joints import (
    check_joints, check_spec, check_tree, number, numbers)

# What stands in a robot description and reaches the simulation.
_KNOWN = {
    'robot': {'link', 'joint', 'material'},
    'link': {'inertial', 'visual', 'collision'},
    'joint': {'origin', 'parent', 'child', 'axis', 'limit', 'dynamics', 'mimic'},
}
# URDF has no ball joint; these are the names that other readers give it.
_BALLS = ('spherical', 'ball')


def read_urdf(spec: RobotSpec) -> etree._Element:
    """
    Read the URDF of a robot, xacro processed, and check all that the simulation relies on.

    The returned tree has no elements but those that have an effect, meshes with absolute paths,
    `ball` as the type of ball joints, and no floating joint: its base has no parent. Logs a
    warning for what was dropped or looks wrong. Raises RobotError.
    """
    if not os.path.isfile(spec.urdf_path):
        raise RobotError(f'{spec.source}: urdf: {shown(spec.urdf_path)} is no file; give the path '
                         'of the URDF or xacro from the folder of this file.')
    root, floats = read_tree(spec.urdf_path)
    if floats and spec.base.type == 'fixed':
        raise RobotError(f'{spec.source}: base.type is fixed, but a floating joint carries the '
                         f'base in {spec.urdf_path}; make it floating.')
    if spec.base.type == 'floating':
        check_base_mass(root, spec.urdf_path)
    check_spec(root, spec, read_mimics(root, spec.urdf_path))
    return root


def read_tree(path: Path) -> tuple[etree._Element, bool]:
    """
    Read a URDF without its RobotSpec, see `read_urdf`.

    Returns the tree, and whether its base is carried by a floating joint.
    """
    root = parse_xml(_run_xacro(path) if path.suffix == '.xacro' else read_text(path, RobotError),
                     path, RobotError)
    if root.tag != 'robot':
        raise RobotError(f'{path}: the outermost element is <{root.tag}>, a URDF has <robot>.')
    _drop_unknown(root, path)
    check_tree(root, path)
    check_numbers(root, path)
    for joint in root.findall('joint'):
        if joint.get('type') in _BALLS:
            joint.set('type', 'ball')
    floats = _drop_floating_joint(root, path)
    check_joints(root, path)
    read_mimics(root, path)
    check_inertias(root, path)
    check_shapes(root, path)
    _find_meshes(root, path)
    return root, floats


def fingerprint(root: etree._Element) -> str:
    """
    Hash of the kinematic tree: links, joints, their types, parents, axes, origins and leaders.

    Masses and friction are left out: they are what a model learns, and a model fine-tuned to
    the real machine still belongs to the robot.
    """
    lines = sorted(f"link {link.get('name')}" for link in root.iter('link'))
    for joint in root.findall('joint'):
        axis = numbers(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0))
        xyz = numbers(joint.find('origin'), 'xyz', (0.0, 0.0, 0.0))
        rpy = numbers(joint.find('origin'), 'rpy', (0.0, 0.0, 0.0))
        values = ' '.join(f'{v:.6f}' for v in (*axis, *xyz, *rpy)).replace('-0.000000', '0.000000')
        lines.append(f"joint {joint.get('name')} {joint.get('type')} "
                     f"{joint.find('parent').get('link')} {joint.find('child').get('link')} "
                     f'{values}')
        mimic = joint.find('mimic')
        if mimic is not None:
            lines.append(f"mimic {joint.get('name')} {mimic.get('joint')} "
                         f"{number(mimic, 'multiplier', 1.0):.6f} "
                         f"{number(mimic, 'offset', 0.0):.6f}")
    return hashlib.sha256('\n'.join(lines).encode()).hexdigest()


def _run_xacro(path: Path) -> str:
    try:
        import xacro
    except ImportError:
        raise RobotError(f'{path}: xacro is not installed; `pip install xacro` or use a plain '
                         'URDF.') from None
    try:
        return xacro.process_file(str(path)).toxml()
    except Exception as error:  # xacro raises its own and many built-in kinds
        reason = ' '.join(str(error).split()).rstrip('.')
        raise RobotError(f'{path}: xacro failed: {reason}.') from error


def _drop_unknown(root, path: Path) -> None:
    """Take out what does not reach the simulation, with one warning for each kind of element."""
    dropped = {}
    for element in (root, *root.findall('link'), *root.findall('joint')):
        for child in list(element):
            if child.tag not in _KNOWN[element.tag]:
                dropped.setdefault((child.tag, element.tag), []).append(child.sourceline)
                element.remove(child)
    for (tag, parent), lines in dropped.items():
        where = ', '.join(map(str, lines))
        warn(f'{path}: <{tag}> in <{parent}> has no effect in the simulation (line {where}).')


def _drop_floating_joint(root, path: Path) -> bool:
    """Take out the floating joint that carries the base, with the empty link that it hangs on."""
    floating = [joint for joint in root.findall('joint') if joint.get('type') == 'floating']
    for joint in floating:
        parent = joint.find('parent').get('link')
        link = next(link for link in root.findall('link') if link.get('name') == parent)
        neighbours = [other for other in root.findall('joint')
                      if parent in (other.find('parent').get('link'),
                                    other.find('child').get('link'))]
        if len(link) or neighbours != [joint]:
            raise RobotError(
                f"{path}, line {joint.sourceline}: joint {joint.get('name')} is floating; only a "
                'base can float: its parent has to be a link without anything else, such as '
                '<link name="world"/>.')
        if any(any(numbers(joint.find('origin'), name, (0.0,))) for name in ('xyz', 'rpy')):
            warn(f"{path}, line {joint.sourceline}: <origin> of joint {joint.get('name')} has no "
                 'effect; base.pose of the robot file says where the base starts.')
        root.remove(joint)
        root.remove(link)
    return bool(floating)


def _find_meshes(root, path: Path) -> None:
    """Make mesh paths absolute: the builder gets text, which lies in no folder."""
    lost = {}
    for link in root.findall('link'):
        for part in (*link.findall('visual'), *link.findall('collision')):
            for mesh in part.findall('geometry/mesh'):
                if not mesh.get('filename'):
                    continue
                file = mesh_file(mesh.get('filename'), path)
                if part.tag == 'visual' and not os.path.isfile(file):
                    lost.setdefault(mesh.get('filename'), []).append(link.get('name'))
                    link.remove(part)
                mesh.set('filename', file)
    for name, links in lost.items():
        warn(f'{path}: link {", ".join(links)} is not drawn: its mesh {name} is no file here; '
             'correct its filename or source the workspace of its package.')
