# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the links of a URDF: numbers, masses, inertias and shapes."""

import os
from pathlib import Path

from lxml import etree
import numpy as np

from nerd_ros.resources import shown
from nerd_ros.scene.input_files import (is_inertia, LARGEST, LEAST_MOMENT, parse_numbers,
                                        SMALLEST)
from nerd_ros.scene.robot.mesh_files import mesh_file
from nerd_ros.scene.robot.robot_spec import RobotError
from nerd_ros.scene.robot.robot_warnings import warn
from nerd_ros.scene.robot.urdf_joints import base_link, carriers, MOVING

# Attributes that hold numbers, by how many and by the least they can be.
_NUMBERS = {
    1: {-LARGEST: ('lower', 'upper', 'value', 'ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz',
                   'multiplier', 'offset'),
        0.0: ('effort', 'velocity', 'damping', 'friction'),
        SMALLEST: ('radius', 'length', 'height')},
    3: {-LARGEST: ('xyz', 'rpy', 'scale'),
        SMALLEST: ('size',)},
    4: {0.0: ('rgba',)},
}
_RULES = {attribute: (count, least) for count, group in _NUMBERS.items()
          for least, attributes in group.items() for attribute in attributes}

# Of the mass of the robot: what a link weighs at most whose inertia hardly matters.
_LIGHT = 0.01
# Of its largest moment: what an inertia may be raised by.
_NEARLY = 0.3
_MOMENTS = ('ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz')

# Collision shapes with the attributes that they need; the capsule is Newton's.
_SHAPES = {'box': ('size',), 'sphere': ('radius',), 'cylinder': ('radius', 'length'),
           'capsule': ('radius', 'height'), 'mesh': ('filename',)}


def check_numbers(root: etree._Element, path: Path) -> None:
    """Raise RobotError for an attribute that has to be numbers and is none, or is out of range."""
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
                    if attribute == 'scale' and min(map(abs, numbers)) < SMALLEST:
                        raise ValueError(f'"{value}", it has to be {SMALLEST:g} or more in each '
                                         'direction')
                except ValueError as error:
                    raise RobotError(
                        f"{path}, line {element.sourceline}: {attribute} of <{element.tag}> in "
                        f"{part.tag} {part.get('name')} is {error}.") from None


def check_inertias(root: etree._Element, path: Path) -> None:
    """
    Raise RobotError for masses and inertias that no body has, or that a moving link lacks.

    Taken out is an inertial without weight, as many URDFs write a mere frame. An inertia that is
    nearly one, or that of a link with hardly any mass, is raised to the next that a body can
    have, with a warning.
    """
    masses = {link.get('name'): _mass(link, path) for link in root.findall('link')}
    total = sum(masses.values())
    for link in root.findall('link'):
        if masses[link.get('name')]:
            _check_inertia(link, path, light=masses[link.get('name')] < _LIGHT * total)
    carrier = carriers(root)
    for joint in root.findall('joint'):
        child = joint.find('child').get('link')
        if joint.get('type') in MOVING and not _carried(child, carrier, masses):
            raise RobotError(f"{path}, line {joint.sourceline}: link {child} moves with joint "
                             f"{joint.get('name')} but has no mass; give it an <inertial>.")


def check_base_mass(root: etree._Element, path: Path) -> None:
    """Raise RobotError for a base that cannot float since it has no mass."""
    base = base_link(root)
    masses = {link.get('name'): float(link.find('inertial/mass').get('value'))
              for link in root.findall('link') if link.find('inertial/mass') is not None}
    if not _carried(base, carriers(root), masses):
        raise RobotError(f'{path}: the base, link {base}, is to float but has no mass; give it '
                         'or a link fixed to it an <inertial>.')


def _carried(carrier: str, carriers_: dict[str, str], masses: dict[str, float]) -> float:
    return sum(mass for link, mass in masses.items() if carriers_[link] == carrier)


def _mass(link, path: Path) -> float:
    """Mass of a link [kg]; its inertial is taken out where it has none."""
    inertial, name = link.find('inertial'), link.get('name')
    if inertial is None:
        return 0.0
    element, inertia = inertial.find('mass'), inertial.find('inertia')
    mass = 0.0 if element is None else float(element.get('value', 'nan'))
    if 0.0 <= mass < SMALLEST and (inertia is None or not any(_moments(inertia))):
        link.remove(inertial)
        return 0.0
    if element is None:
        raise RobotError(f'{path}, line {inertial.sourceline}: link {name} has an inertia but no '
                         '<mass>.')
    if not mass >= SMALLEST:
        raise RobotError(f'{path}, line {element.sourceline}: the mass of link {name} has to be '
                         f'positive, at least {SMALLEST:g}.')
    if inertia is None:
        raise RobotError(f'{path}, line {element.sourceline}: link {name} has a mass but no '
                         '<inertia>.')
    missing = [key for key in _MOMENTS[:3] if inertia.get(key) is None]
    if missing:
        raise RobotError(f'{path}, line {inertia.sourceline}: the <inertia> of link {name} has no '
                         f'{", ".join(missing)}.')
    return mass


def _moments(inertia) -> list[float]:
    return [float(inertia.get(key, 0.0)) for key in _MOMENTS]


def _check_inertia(link, path: Path, light: bool) -> None:
    inertia = link.find('inertial/inertia')
    xx, yy, zz, xy, xz, yz = _moments(inertia)
    matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    if is_inertia(matrix):
        return
    where = f'{path}, line {inertia.sourceline}: no body has the inertia given for link ' \
            f"{link.get('name')}"
    low, middle, high = np.linalg.eigvalsh(matrix)
    raised = max(2.0 * LEAST_MOMENT - low, 1.001 * (high - low - middle))
    if not light and not raised < _NEARLY * high:
        raise RobotError(f'{where}: its principal moments have to be at least {LEAST_MOMENT:g}, '
                         'and none larger than the sum of the others.')
    for key, moment in zip(_MOMENTS[:3], (xx, yy, zz)):
        inertia.set(key, repr(float(moment + raised)))
    warn(f'{where}: one of its principal moments is larger than the sum of the others, or '
         f'negative; all three are raised by {raised:.2g} kg m^2.')


def check_shapes(root: etree._Element, path: Path) -> None:
    """Raise RobotError for collisions without a whole shape; warn of moving links without any."""
    carrier, base, bare = carriers(root), base_link(root), []
    for link in root.findall('link'):
        for collision in link.findall('collision'):
            _check_shape(link.get('name'), collision, path)
        if (link.find('collision') is None and link.find('visual') is not None
                and carrier[link.get('name')] != base):
            bare.append(link.get('name'))
    if bare:
        warn(f'{path}: nothing touches link {", ".join(bare)}: without <collision>.')


def _check_shape(link: str, collision, path: Path) -> None:
    where = f'{path}, line {collision.sourceline}: the collision geometry of link {link}'
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
    if shape.tag == 'mesh' and not os.path.isfile(mesh_file(name, path)):
        raise RobotError(f'{where} is the mesh {shown(name)}, which is no file here; '
                         'correct its filename or source the workspace of its package.')
