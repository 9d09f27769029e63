# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
SDF worlds: the part of the format that the simulation has, and a warning for the rest.

Read are `<world>` with `<gravity>` and `<model>`; in a model `<static>`, `<pose>` and `<link>`;
in a link `<pose>`, `<inertial>` if it moves, and `<collision>` with box, sphere or plane and
`<mu>`. Without `<inertia>` that of a solid of the given mass is taken. A collision has the colour
of the `<visual>` of its form, or else of the first one.
"""

import logging
import math
from pathlib import Path

import numpy as np
import warp as wp

from nerd_ros.resources import find_named
from nerd_ros.scene.input_files import (is_inertia, LEAST_MOMENT, parse_numbers, parse_xml,
                                        read_text, SMALLEST)
from nerd_ros.scene.robot.robots import LABEL
from nerd_ros.scene.world import Obstacle, World, WorldError

_KNOWN = {
    'sdf': {'world'},
    'world': {'gravity', 'model'},
    'model': {'static', 'pose', 'link'},
    'link': {'pose', 'inertial', 'collision', 'visual'},
    'inertial': {'mass', 'inertia', 'pose'},
    'inertia': {'ixx', 'iyy', 'izz', 'ixy', 'ixz', 'iyz'},
    'collision': {'pose', 'geometry', 'surface'},
    'visual': {'pose', 'geometry', 'material'},
    'material': {'diffuse'},
    'geometry': {'box', 'sphere', 'plane'},
    'box': {'size'},
    'sphere': {'radius'},
    'plane': {'normal', 'size'},
    'surface': {'friction'},
    'friction': {'ode'},
    'ode': {'mu'},
}
_ATTRIBUTES = {'sdf': {'version'}, 'pose': {'degrees', 'rotation_format'},
               **{tag: {'name'} for tag in ('world', 'model', 'link', 'collision', 'visual')}}

_DEFAULT_FRICTION = 1.0  # SDF's own default of <mu>

_log = logging.getLogger(__name__)


def load_world(name_or_path: str | Path) -> World:
    """
    Read a world by the name of a world of this package or by the path of an SDF file.

    Raises WorldError; logs one warning for each element of the file that has no effect.
    """
    try:
        path = find_named('worlds', name_or_path, '.sdf')
    except ValueError as error:
        raise WorldError(str(error)) from None
    return _Reader(path).read()


class _Reader:
    """One file, so that every message can name it."""

    def __init__(self, path: Path):
        self.path = path
        self.names = set()
        self.unused = []   # line, and what has no effect there

    def read(self) -> World:
        root = parse_xml(read_text(self.path, WorldError), self.path, WorldError)
        worlds = root.findall('world')
        if root.tag != 'sdf' or len(worlds) != 1:
            self.fail(root, 'an SDF world file has <sdf> with exactly one <world>')
        world = worlds[0]
        gravity = (0.0, 0.0, -9.81)
        if world.find('gravity') is not None:
            gravity = self.numbers(world.find('gravity'), 3)
        obstacles = []
        for model in world.findall('model'):
            obstacles.extend(self.model(model))
        self.find_unused(root)
        for line, text in sorted(self.unused):  # behind the errors, which say more
            _log.warning('%s, line %d: %s has no effect in the simulation.', self.path, line, text)
        return World(world.get('name') or self.path.stem, gravity, tuple(obstacles))

    def model(self, model) -> list[Obstacle]:
        name = self.name(model)
        if name.split('/')[0] in ('world', LABEL):
            self.fail(model, f'a model cannot be named {name}, which is taken; rename it')
        if name in self.names:
            self.fail(model, f'there are two models named {name}')
        self.names.add(name)
        static = self.flag(model.find('static'))
        links = model.findall('link')
        if not links:
            self.fail(model, f'model {name} has no <link>')
        pose = self.pose(model)
        obstacles, used = [], set()
        for link in links:
            link_name = self.name(link)
            if link_name in used:
                self.fail(link, f'model {name} has two links named {link_name}')
            used.add(link_name)
            body_name = name if len(links) == 1 else f'{name}/{link_name}'
            obstacles.extend(self.link(link, body_name, pose * self.pose(link), static))
        return obstacles

    def link(self, link, name: str, pose, static: bool) -> list[Obstacle]:
        collisions = link.findall('collision')
        if not collisions:
            self.fail(link, f'{name} has no <collision>, so that nothing could touch it')
        if not static and len(collisions) > 1:
            self.fail(collisions[1], f'{name} moves and has {len(collisions)} collisions; a '
                                     'moving link has one, or the model is static')
        if static and link.find('inertial') is not None:
            self.warn(link.find('inertial'), f'<inertial> of {name}, which is static,')
        obstacles, used = [], set()
        for collision, color in zip(collisions, self.colors(link, collisions, name)):
            label = self.name(collision)
            if label in used:
                self.fail(collision, f'{name} has two collisions named {label}')
            used.add(label)
            full_name = name if len(collisions) == 1 else f'{name}/{label}'
            obstacles.append(self.collision(collision, link, full_name, pose, static, color))
        return obstacles

    def collision(self, collision, link, name: str, link_pose, static: bool, color) -> Obstacle:
        shape, size, turn = self.geometry(collision, name)
        local = self.pose(collision) * turn
        mass, com, inertia = 0.0, (0.0,) * 3, ((0.0,) * 3,) * 3
        if shape == 'plane' and not static:
            self.fail(collision, f'{name} is a plane and has to be <static>true</static>')
        if not static:
            mass, com, inertia = self.inertial(link, name, local, shape, size)
        placed = link_pose * local
        return Obstacle(
            name, shape, size, tuple(float(v) for v in placed), static, mass, com, inertia,
            friction=self.friction(collision), color=color)

    def geometry(self, owner, name: str):
        """Shape, size, and the rotation that turns +z to the normal of a plane."""
        found = owner.findall('geometry/*')
        known = [g for g in found if g.tag in _KNOWN['geometry']]
        if len(known) != 1 or len(found) != 1:
            got = ', '.join(f'<{g.tag}>' for g in found) or 'nothing'
            self.fail(owner, f'the geometry of {name} has to be one of <box>, <sphere> and '
                             f'<plane>, found {got}')
        geometry = known[0]
        if geometry.tag == 'box':
            return 'box', self.positive(self.child(geometry, 'size'), 3), wp.transform()
        if geometry.tag == 'sphere':
            return 'sphere', self.positive(self.child(geometry, 'radius'), 1), wp.transform()
        size, normal = geometry.find('size'), geometry.find('normal')
        size = (1.0, 1.0) if size is None else self.positive(size, 2)
        turn = wp.transform()
        if normal is not None:
            direction = np.array(self.numbers(normal, 3))
            length = np.linalg.norm(direction)
            if length < 1e-6:
                self.fail(normal, 'the normal of a plane cannot be zero')
            turn = wp.transform(wp.vec3(0.0), wp.quat_between_vectors(
                wp.vec3(0.0, 0.0, 1.0), wp.vec3(*(direction / length))))
        return 'plane', size, turn

    def inertial(self, link, name: str, local, shape: str, size):
        """Mass, centre of mass and inertia, turned into the frame of the shape."""
        inertial = link.find('inertial')
        mass_element = inertial.find('mass') if inertial is not None else None
        if mass_element is None:
            self.fail(link, f'{name} moves and needs <inertial> with <mass>, or its model '
                            '<static>true</static>')
        mass = self.positive(mass_element, 1)[0]
        element = inertial.find('inertia')
        if element is None:
            if inertial.find('pose') is not None:
                self.warn(inertial.find('pose'), '<pose> in <inertial> without <inertia>')
            matrix = _solid_inertia(shape, size, mass)
            if not is_inertia(matrix):
                self.fail(link, f'{name} is too small and light: its moments of inertia have to '
                                f'be at least {LEAST_MOMENT:g}')
            return mass, (0.0, 0.0, 0.0), tuple(map(tuple, matrix.tolist()))
        xx, yy, zz = (self.numbers(self.child(element, tag), 1)[0]
                      for tag in ('ixx', 'iyy', 'izz'))
        xy, xz, yz = (0.0 if element.find(tag) is None else self.numbers(element.find(tag), 1)[0]
                      for tag in ('ixy', 'ixz', 'iyz'))
        matrix = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        if not is_inertia(matrix):
            self.fail(element, f'no body has the inertia given for {name}: its principal '
                               f'moments have to be at least {LEAST_MOMENT:g}, and none larger '
                               'than the sum of the others')
        frame = wp.transform_inverse(local) * self.pose(inertial)
        turn = np.array(wp.quat_to_matrix(wp.transform_get_rotation(frame))).reshape(3, 3)
        com = tuple(float(v) for v in wp.transform_get_translation(frame))
        return mass, com, tuple(map(tuple, (turn @ matrix @ turn.T).tolist()))

    def friction(self, collision) -> float:
        element = collision.find('surface/friction/ode/mu')
        if element is None:
            return _DEFAULT_FRICTION
        value = self.numbers(element, 1)[0]
        if value < 0.0:
            self.fail(element, 'friction cannot be negative')
        return max(value, 1e-3)  # the solver divides by it

    def colors(self, link, collisions, name: str) -> list:
        """Colour of each collision. Obstacles are drawn as they collide: warn of other visuals."""
        drawn = {visual: self.form(visual, name) for visual in link.findall('visual')}
        forms = [self.form(collision, name) for collision in collisions]
        first = next(iter(drawn), None)
        chosen = [next((v for v in drawn if drawn[v] == form), first) for form in forms]
        for visual, form in drawn.items():
            if visual not in chosen:
                self.warn(visual, f'<visual> {visual.get("name")}')
            elif form not in forms:
                self.warn(visual, f'the form of <visual> {visual.get("name")}, which is not that '
                                  'of a collision,')
        diffuse = [None if v is None else v.find('material/diffuse') for v in chosen]
        return [None if d is None else self.numbers(d, 3, 4)[:3] for d in diffuse]

    def form(self, owner, name: str):
        """Shape, size and pose of a visual or collision; None where it is of another kind."""
        found = owner.findall('geometry/*')
        if len(found) != 1 or found[0].tag not in _KNOWN['geometry']:
            return None
        shape, size, turn = self.geometry(owner, name)
        return shape, size, tuple(self.pose(owner) * turn)

    def find_unused(self, element) -> None:
        for key in element.attrib:
            if key not in _ATTRIBUTES.get(element.tag, ()):
                self.warn(element, f'the attribute {key} of <{element.tag}>')
        for child in element:
            if child.tag in _KNOWN.get(element.tag, ()):
                self.find_unused(child)
            elif element.tag != 'geometry':  # else an odd <visual>, warned of as a whole
                self.warn(child, f'<{child.tag}> in <{element.tag}>')

    def name(self, element) -> str:
        name = element.get('name')
        if not name:
            self.fail(element, f'<{element.tag}> has no name')
        return name

    def child(self, element, tag: str):
        found = element.find(tag)
        if found is None:
            self.fail(element, f'<{element.tag}> has no <{tag}>')
        return found

    def flag(self, element) -> bool:
        text = 'false' if element is None else (element.text or '').strip().lower()
        if text not in ('true', 'false', '1', '0'):
            self.fail(element, f'<{element.tag}> is "{text}", expected true or false')
        return text in ('true', '1')

    def numbers(self, element, *counts: int) -> tuple[float, ...]:
        try:
            return parse_numbers((element.text or '').strip(), *counts)
        except ValueError as error:
            self.fail(element, f'<{element.tag}> is {error}')

    def positive(self, element, count: int) -> tuple[float, ...]:
        values = self.numbers(element, count)
        if min(values) < SMALLEST:
            self.fail(element, f'<{element.tag}> is "{element.text.strip()}", it has to be '
                               f'positive, at least {SMALLEST:g}')
        return values

    def pose(self, owner):
        """Pose of an element as a Warp transform; identity where it has none."""
        element = owner.find('pose')
        if element is None or not (element.text or '').strip():
            return wp.transform()
        if element.get('rotation_format', 'euler_rpy') == 'quat_xyzw':
            x, y, z, *quat = self.numbers(element, 7)
            if not np.linalg.norm(quat) > 1e-6:
                self.fail(element, 'the quaternion of <pose> cannot be zero')
            return wp.transform((x, y, z), wp.normalize(wp.quat(*quat)))
        x, y, z, *angles = self.numbers(element, 6)
        if element.get('degrees', 'false').lower() in ('true', '1'):
            angles = [math.radians(angle) for angle in angles]
        return wp.transform((x, y, z), wp.quat_rpy(*angles))

    def fail(self, element, text: str):
        raise WorldError(f'{self.path}, line {element.sourceline}: {text}.')

    def warn(self, element, text: str) -> None:
        self.unused.append((element.sourceline, text))


def _solid_inertia(shape: str, size, mass: float) -> np.ndarray:
    if shape == 'sphere':
        moments = np.full(3, 0.4 * mass * size[0] ** 2)
    else:
        square = np.square(size)
        moments = mass / 12.0 * (square.sum() - square)
    return np.diag(moments)
