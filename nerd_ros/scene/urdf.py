# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""URDF and xacro files: read, checked, and told what of them has no effect."""

import hashlib
import logging
import math
import os
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

from lxml import etree
from resolve_robotics_uri_py import resolve_robotics_uri

from nerd_ros.resources import shown
from nerd_ros.scene.input_files import (is_inertia, LARGEST, LEAST_MOMENT, parse_numbers,
                                        parse_xml, read_text, SMALLEST)
from nerd_ros.scene.robot_spec import RobotError, RobotSpec

_ACTUATED = ('revolute', 'continuous', 'prismatic')

# What stands in a robot description and reaches the simulation.
_KNOWN = {
    'robot': {'link', 'joint', 'material'},
    'link': {'inertial', 'visual', 'collision'},
    'joint': {'origin', 'parent', 'child', 'axis', 'limit', 'dynamics'},
}

# Attributes that hold numbers, by how many and by the least they can be.
_NUMBERS = {
    1: {-LARGEST: ('lower', 'upper', 'value', 'ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'),
        0.0: ('effort', 'velocity', 'damping', 'friction'),
        SMALLEST: ('radius', 'length', 'height')},
    3: {-LARGEST: ('xyz', 'rpy', 'scale'),
        SMALLEST: ('size',)},
    4: {0.0: ('rgba',)},
}
_RULES = {attribute: (count, least) for count, group in _NUMBERS.items()
          for least, attributes in group.items() for attribute in attributes}

# Collision shapes with the attributes that they need; the capsule is Newton's.
_SHAPES = {'box': ('size',), 'sphere': ('radius',), 'cylinder': ('radius', 'length'),
           'capsule': ('radius', 'height'), 'mesh': ('filename',)}

_log = logging.getLogger(__name__)


def read_urdf(spec: RobotSpec) -> etree._Element:
    """
    Read the URDF of a robot, xacro processed, and check all that the simulation relies on.

    Logs one warning for each kind of element that the simulation drops; the returned tree is
    without these, and its meshes have absolute paths. Raises RobotError.
    """
    path = spec.urdf_path
    root = parse_xml(_run_xacro(path) if path.suffix == '.xacro' else read_text(path, RobotError),
                     path, RobotError)
    if root.tag != 'robot':
        raise RobotError(f'{path}: the outermost element is <{root.tag}>, a URDF has <robot>.')
    _drop_unknown(root, path)
    _check_tree(root, path)
    _check_numbers(root, path)
    _check_joints(root, path)
    _check_masses(root, path)
    _check_spec(root, spec)
    _check_collisions(root, path)
    _find_meshes(root, path)
    return root


def fingerprint(root: etree._Element) -> str:
    """
    Hash of the kinematic tree: links, joints, their types, parents, axes and origins.

    Masses and friction are left out: they are what a model learns, and a model fine-tuned to
    the real machine still belongs to the robot.
    """
    lines = sorted(f"link {link.get('name')}" for link in root.iter('link'))
    for joint in root.findall('joint'):
        axis = _numbers(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0))
        xyz = _numbers(joint.find('origin'), 'xyz', (0.0, 0.0, 0.0))
        rpy = _numbers(joint.find('origin'), 'rpy', (0.0, 0.0, 0.0))
        values = ' '.join(f'{v:.6f}' for v in (*axis, *xyz, *rpy)).replace('-0.000000', '0.000000')
        lines.append(f"joint {joint.get('name')} {joint.get('type')} "
                     f"{joint.find('parent').get('link')} {joint.find('child').get('link')} "
                     f'{values}')
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
        raise RobotError(f"{path}: xacro failed: {' '.join(str(error).split())}.") from error


def _numbers(element, attribute: str, default: tuple) -> tuple:
    if element is None or element.get(attribute) is None:
        return default
    return tuple(float(v) for v in element.get(attribute).split())


def _check_tree(root, path: Path) -> None:
    links = [link.get('name') for link in root.findall('link')]
    if not links:
        raise RobotError(f'{path}: the robot has no link.')
    for kind in ('link', 'joint'):
        seen = set()
        for element in root.findall(kind):
            name = element.get('name')
            if not name:
                raise RobotError(f'{path}, line {element.sourceline}: a {kind} has no name.')
            if kind == 'link' and "'" in name:
                raise RobotError(f'{path}, line {element.sourceline}: the name of link {name} has '
                                 'an apostrophe, which links cannot have; leave it out.')
            if name in seen:
                raise RobotError(f'{path}, line {element.sourceline}: there are two {kind}s '
                                 f'named {name}.')
            seen.add(name)
    parents = {}
    for joint in root.findall('joint'):
        for end in ('parent', 'child'):
            element = joint.find(end)
            link = element.get('link') if element is not None else None
            if link not in links:
                raise RobotError(f"{path}, line {joint.sourceline}: the {end} of joint "
                                 f"{joint.get('name')} is {link}, which is no link of this URDF.")
        child = joint.find('child').get('link')
        if child in parents:
            raise RobotError(f'{path}, line {joint.sourceline}: link {child} has two parents; '
                             'the links have to form a tree.')
        parents[child] = joint.find('parent').get('link')
    roots = [link for link in links if link not in parents]
    if len(roots) != 1:
        found = ', '.join(roots) or 'none, the joints form a loop'
        raise RobotError(f'{path}: a robot has exactly one link without parent, found {found}.')
    for link in links:
        steps = 0
        while link in parents and steps <= len(links):
            link, steps = parents[link], steps + 1
        if steps > len(links):
            raise RobotError(f'{path}: the joints form a loop around link {link}.')


def _check_numbers(root, path: Path) -> None:
    for part in root:
        for element in part.iter():
            for attribute, value in element.attrib.items():
                if attribute not in _RULES:
                    continue
                count, least = _RULES[attribute]
                try:
                    numbers = parse_numbers(value, count)
                    if min(numbers) < least:
                        raise ValueError(f'"{value}", it has to be at least {least:g}')
                except ValueError as error:
                    raise RobotError(
                        f"{path}, line {element.sourceline}: {attribute} of <{element.tag}> in "
                        f"{part.tag} {part.get('name')} is {error}.") from None


def _check_collisions(root, path: Path) -> None:
    for link in root.findall('link'):
        for collision in link.findall('collision'):
            where = (f"{path}, line {collision.sourceline}: the collision geometry of link "
                     f"{link.get('name')}")
            shapes = collision.findall('geometry/*')
            if len(shapes) != 1 or shapes[0].tag not in _SHAPES:
                found = ', '.join(f'<{shape.tag}>' for shape in shapes) or 'nothing'
                known = ', '.join(f'<{shape}>' for shape in _SHAPES)
                raise RobotError(f'{where} has to be one of {known}, found {found}.')
            shape, = shapes
            for attribute in _SHAPES[shape.tag]:
                if not shape.get(attribute):
                    raise RobotError(f'{where} is a <{shape.tag}> without {attribute}.')
            name = shape.get('filename')
            if shape.tag == 'mesh' and not os.path.isfile(_mesh_file(name, path)):
                raise RobotError(f'{where} is the mesh {shown(name)}, which is no file here; '
                                 'correct its filename or source the workspace of its package.')


def _check_joints(root, path: Path) -> None:
    for joint in root.findall('joint'):
        name, kind = joint.get('name'), joint.get('type')
        where = f'{path}, line {joint.sourceline}: joint {name}'
        if kind not in (*_ACTUATED, 'fixed'):
            raise RobotError(f'{where} is of type {kind}; supported are '
                             f'{", ".join(_ACTUATED)} and fixed.')
        axis = _numbers(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0))
        if kind != 'fixed' and math.hypot(*axis) < 1e-6:
            raise RobotError(f'{where} has an axis of zero length.')
        limit = joint.find('limit')
        if kind in ('revolute', 'prismatic'):
            if limit is None or limit.get('lower') is None or limit.get('upper') is None:
                raise RobotError(f'{where} is {kind} and needs <limit> with lower and upper.')
            if float(limit.get('lower')) > float(limit.get('upper')):
                raise RobotError(f'{where} has a lower limit above its upper limit.')


def _check_masses(root, path: Path) -> None:
    """Every link moved by a joint needs mass, itself or through links fixed to it."""
    fixed = {j.find('child').get('link'): j.find('parent').get('link')
             for j in root.findall('joint') if j.get('type') == 'fixed'}
    masses = {}
    for link in root.findall('link'):
        element = link.find('inertial/mass')
        mass = float(element.get('value', 'nan')) if element is not None else 0.0
        if element is not None and not mass >= SMALLEST:
            raise RobotError(f"{path}, line {element.sourceline}: the mass of link "
                             f"{link.get('name')} has to be positive, at least {SMALLEST:g}.")
        carrier = link.get('name')
        while carrier in fixed:
            carrier = fixed[carrier]
        masses[carrier] = masses.get(carrier, 0.0) + mass
        inertia = link.find('inertial/inertia')
        if element is not None:
            _check_inertia(link.get('name'), inertia, element, path)
    for joint in root.findall('joint'):
        child = joint.find('child').get('link')
        if joint.get('type') != 'fixed' and not masses[child] > 0.0:
            raise RobotError(f"{path}, line {joint.sourceline}: link {child} moves with joint "
                             f"{joint.get('name')} but has no mass; give it an <inertial>.")


def _check_inertia(name: str, inertia, mass, path: Path) -> None:
    if inertia is None:
        raise RobotError(f'{path}, line {mass.sourceline}: link {name} has a mass but no '
                         '<inertia>.')
    xx, yy, zz, xy, xz, yz = (float(inertia.get(key, 0.0))
                              for key in ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'))
    if not is_inertia([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]):
        raise RobotError(f'{path}, line {inertia.sourceline}: no body has the inertia given for '
                         f'link {name}: its principal moments have to be at least '
                         f'{LEAST_MOMENT:g}, and none larger than the sum of the others.')


def _check_spec(root, spec: RobotSpec) -> None:
    moving = {j.get('name'): j for j in root.findall('joint') if j.get('type') in _ACTUATED}
    for name in spec.joints:
        if name not in moving:
            raise RobotError(f'{spec.source}: joint {name} is no moving joint of '
                             f'{spec.urdf_path}, which has {", ".join(moving) or "none"}.')
    for name in moving:
        if name not in spec.joints:
            raise RobotError(f'{spec.source}: joint {name} of {spec.urdf_path} is missing under '
                             'joints.')
    for name, joint in spec.joints.items():
        limit = moving[name].find('limit')
        effort = joint.effort_limit
        if effort is None and limit is not None:
            effort = float(limit.get('effort', 0.0))
        if not effort:
            raise RobotError(f'{spec.source}: joint {name} has no effort limit, neither '
                             'effort_limit here nor <limit effort="..."> in the URDF.')


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
        _log.warning('%s: <%s> in <%s> has no effect in the simulation (line %s).',
                     path, tag, parent, where)


def _find_meshes(root, path: Path) -> None:
    """Make mesh paths absolute: the builder gets text, which lies in no folder."""
    for mesh in root.iter('mesh'):
        if mesh.get('filename'):
            mesh.set('filename', _mesh_file(mesh.get('filename'), path))


def _mesh_file(name: str, path: Path) -> str:
    """Where the mesh `name` of the URDF `path` lies; `name` itself where it cannot be found."""
    try:
        if name.startswith('file:'):
            return url2pathname(urlsplit(name).path)
        if '://' in name:
            return str(resolve_robotics_uri(name))
        return str((path.parent / name).resolve())
    except (OSError, ValueError):
        return name
