# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command sim, and the command line of the node that it runs."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.util import find_spec
import json
import shutil
import subprocess
from typing import Annotated, Optional

import typer

from nerd_ros.arguments import ArgumentError, PARAMETERS, read_arguments
from nerd_ros.resources import resource_path


def sim(arguments: Annotated[Optional[list[str]], typer.Argument(
        metavar='[NAME:=VALUE]...', show_default=False,
        help='robot, world, solver, model, namespace, gui, rviz, headless: as of sim.launch.py, '
        'but with gui:=true by default.')] = None):
    """Simulate, as a ROS 2 node where there is ROS 2; stop with Ctrl-C."""
    values = read_arguments(arguments or (), gui='true')
    if find_spec('rclpy') is None:
        from nerd_ros.nodes.without_ros import simulate
        raise typer.Exit(simulate(
            *(values[name] for name in PARAMETERS[:-1]), gui=values['gui'] == 'true'))
    with _rviz(values['namespace']) if values['rviz'] == 'true' else nullcontext():
        from nerd_ros.nodes.sim_node import main as run
        raise typer.Exit(run(['nerd-ros', *node_arguments(values)]))


def node_arguments(values: dict[str, str]) -> list[str]:
    """Return the command line of sim_node for the arguments of a simulation."""
    words = ['--ros-args']
    for name in PARAMETERS:
        # Quoted, since ROS reads values as YAML; gui is the one that is no text.
        text = values[name] if name == 'gui' else json.dumps(values[name])
        words += ['-p', f'{name}:={text}']
    if values['namespace']:
        words += ['-r', f'__ns:=/{values["namespace"].strip("/")}']
    return words


@contextmanager
def _rviz(namespace: str) -> Iterator[None]:
    """Show RViz beside what is done within."""
    if shutil.which('rviz2') is None:
        raise ArgumentError('rviz:=true needs RViz, which comes with a ROS 2 desktop; '
                            'gui:=true shows the scene in a browser.')
    rviz = subprocess.Popen([
        'rviz2', '-d', resource_path('config', 'rviz', 'nerd_ros.rviz'),
        '--ros-args', '-p', 'use_sim_time:=true',
        *(['-r', f'__ns:=/{namespace.strip("/")}'] if namespace else [])])
    try:
        yield
    finally:
        rviz.terminate()
