# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Checks of the joints of a URDF, and of its joints against the RobotSpec."""

import math
from pathlib import Path

from lxml import etree

from nerd_ros.dynamics.layout import MimicLayout
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.robot.robot_warnings import warn

MOVING = ('revolute', 'continuous', 'prismatic', 'ball')
_LIMITED = ('revolute', 'prismatic')


def number(element: etree._Element | None, attribute: str, default: float) -> float:
    """Attribute of an element that may not be there."""
    return numbers(element, attribute, (default,))[0]


def numbers(element: etree._Element | None, attribute: str, default: tuple) -> tuple:
    """Attribute of several numbers of an element that may not be there."""
    if element is None or element.get(attribute) is None:
        return default
    return tuple(float(v) for v in element.get(attribute).split())


def moving_joints(root: etree._Element) -> dict[str, etree._Element]:
    """Joints that move, by name, in the order of the file."""
    return {joint.get('name'): joint for joint in root.findall('joint')
            if joint.get('type') in MOVING}


def carriers(root: etree._Element) -> dict[str, str]:
    """Of each link the one that moves it: itself, or the one that it is fixed to in the end."""
    fixed = {j.find('child').get('link'): j.find('parent').get('link')
             for j in root.findall('joint') if j.get('type') == 'fixed'}
    found = {}
    for link in root.findall('link'):
        carrier = link.get('name')
        while carrier in fixed:
            carrier = fixed[carrier]
        found[link.get('name')] = carrier
    return found


def base_link(root: etree._Element) -> str:
    """Name of the link that has no parent."""
    children = {joint.find('child').get('link') for joint in root.findall('joint')}
    return next(link.get('name') for link in root.findall('link')
                if link.get('name') not in children)


def check_tree(root: etree._Element, path: Path) -> None:
    """Raise RobotError where links and joints have no names of their own or form no tree."""
    links = [link.get('name') for link in root.findall('link')]
    if not links:
        raise RobotError(f'{path}: the robot has no link.')
    for kind in ('link', 'joint'):
        _check_names(root.findall(kind), kind, path)
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


def _check_names(elements: list, kind: str, path: Path) -> None:
    seen = set()
    for element in elements:
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


def check_joints(root: etree._Element, path: Path) -> None:
    """
    Raise RobotError for types, axes and limits that joints cannot have.

    Limits that have no effect are taken out, with a warning.
    """
    endless = []
    for joint in root.findall('joint'):
        name, kind, limit = joint.get('name'), joint.get('type'), joint.find('limit')
        where = f'{path}, line {joint.sourceline}: joint {name}'
        if kind not in (*MOVING, 'fixed'):
            raise RobotError(f'{where} is of type {kind}; supported are revolute, continuous, '
                             'prismatic, ball or spherical, fixed, and floating for a base.')
        axis = numbers(joint.find('axis'), 'xyz', (1.0, 0.0, 0.0))
        if kind != 'fixed' and math.hypot(*axis) < 1e-6:
            raise RobotError(f'{where} has an axis of zero length.')
        lower, upper = (number(limit, side, math.nan) for side in ('lower', 'upper'))
        if kind in _LIMITED:
            if math.isnan(lower) or math.isnan(upper):
                raise RobotError(f'{where} is {kind} and needs <limit> with lower and upper.')
            if lower > upper:
                raise RobotError(f'{where} has a lower limit above its upper limit.')
            if lower == upper:
                raise RobotError(f'{where} cannot move, its limits are both {lower:g}; correct '
                                 'them or make it fixed.')
        elif limit is not None:
            for side in ('lower', 'upper'):
                limit.attrib.pop(side, None)
            if lower < upper and kind != 'fixed':
                endless.append(f'{name} (line {joint.sourceline})')
    if endless:
        warn(f'{path}: limits have no effect on joint {", ".join(endless)}; make it revolute.')


def check_spec(root: etree._Element, spec: RobotSpec, mimics: dict[str, MimicLayout]) -> None:
    """Raise RobotError where the joints and links of the RobotSpec are not those of the URDF."""
    moving = moving_joints(root)
    for name in spec.joints:
        if name not in moving:
            raise RobotError(f'{spec.source}: joint {name} is no moving joint of '
                             f'{spec.urdf_path}, which has {", ".join(moving) or "none"}.')
    for name in moving:
        if name not in spec.joints:
            raise RobotError(f'{spec.source}: joint {name} of {spec.urdf_path} is missing under '
                             'joints.')
    for name, joint in spec.joints.items():
        if name in mimics:
            if joint.effort_limit:
                raise RobotError(f'{spec.source}: joint {name} follows {mimics[name].leader} and '
                                 'takes no effort of its own; leave out its effort_limit.')
        elif joint.effort_limit is None and not number(moving[name].find('limit'), 'effort', 0.0):
            raise RobotError(f'{spec.source}: joint {name} has no effort limit, neither '
                             'effort_limit here nor <limit effort="..."> in the URDF; give '
                             'effort_limit: 0.0 here where no motor moves it.')
        _check_initial(name, joint.initial, moving[name], name in mimics, spec)
    links = {link.get('name'): link for link in root.findall('link')}
    for name in spec.contact.links or ():
        if name not in links:
            raise RobotError(f'{spec.source}: contact.links: {name} is no link of '
                             f'{spec.urdf_path}, which has {", ".join(links)}.')
        if links[name].find('collision') is None:
            raise RobotError(f'{spec.source}: contact.links: link {name} has no <collision> in '
                             f'{spec.urdf_path}; give it one or leave it out here.')


def _check_initial(name: str, initial: float, joint, follows: bool, spec: RobotSpec) -> None:
    where = f'{spec.source}: joint {name}'
    if joint.get('type') == 'ball' and initial != 0.0:
        raise RobotError(f'{where} is a ball joint, which starts at zero; leave out initial.')
    if joint.get('type') in _LIMITED and not follows:
        lower, upper = (number(joint.find('limit'), side, 0.0) for side in ('lower', 'upper'))
        if not lower <= initial <= upper:
            raise RobotError(f'{where} starts at {initial:g}, beyond its limits {lower:g} and '
                             f'{upper:g}; give initial a value between them.')
