# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A room imports only from the floors below it, and some libraries only in their room."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# The files below the rooms are in order as well.
FLOORS = {'resources': 0, 'arguments': 1, 'dynamics': 2, 'scene': 3, 'learning': 4, 'nodes': 5,
          'cli': 6}
# Top-level packages that one room alone imports.
RESERVED = {'newton': 'scene', 'warp': 'scene', 'mujoco': 'scene', 'mujoco_warp': 'scene',
            'rclpy': 'nodes', 'rcl_interfaces': 'nodes'}
ROS_MESSAGES = ('_msgs', '_srvs', '_interfaces')
FILES = sorted((ROOT / 'nerd_ros').rglob('*.py')) + sorted((ROOT / 'launch').glob('*.py'))


def room_of(path: Path) -> str:
    """Return the room that a file of the package lies in; 'launch' for a launch file."""
    parts = path.relative_to(ROOT).with_suffix('').parts
    return parts[1] if parts[0] == 'nerd_ros' else parts[0]


def imports_of(path: Path) -> list[str]:
    """Return the full names of the modules that a file imports, wherever in the file."""
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f'{path} has a relative import in line {node.lineno}'
            found += [f'{node.module}.{alias.name}' for alias in node.names]
    return found


def test_every_room_has_a_floor():
    rooms = {room_of(path) for path in FILES} - {'__init__', 'launch'}
    assert rooms <= set(FLOORS)


@pytest.mark.parametrize('path', FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_come_from_below(path):
    room = room_of(path)
    # A launch file starts a node, it is not one: what it imports runs in the launch process.
    floor = FLOORS['dynamics'] if room == 'launch' else FLOORS.get(room, 0)
    for name in imports_of(path):
        parts = name.split('.')
        if parts[0] == 'nerd_ros' and len(parts) > 1:
            other = parts[1]
            assert other == room or FLOORS[other] < floor, f'{room} must not import {name}'
        elif parts[0] in RESERVED:
            assert room == RESERVED[parts[0]], f'{name} belongs to {RESERVED[parts[0]]} alone'
        elif parts[0].endswith(ROS_MESSAGES):
            assert room == 'nodes', f'{name} belongs to nodes alone'
