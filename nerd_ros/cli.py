# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command `nerd-ros`; what a command needs is imported when it runs, to answer at once."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
import errno
from importlib.util import find_spec
import json
import os
from pathlib import Path
import shlex
import shutil
import subprocess
import sys
from typing import Annotated, Optional

import typer

from nerd_ros.arguments import ArgumentError, read_arguments, PARAMETERS
from nerd_ros.resources import resource_path

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help='Learn the dynamics of a robot from its URDF, and simulate it.')

Robot = Annotated[str, typer.Option(help='Robot of the package, or path of a RobotSpec (YAML).')]
Seed = Annotated[int, typer.Option(help='Seed of all that is random.')]
Model = Annotated[Optional[Path], typer.Option(
    help='Folder of the model; by default the one that ships for the robot.')]


@app.command()
def generate(
        robot: Robot = 'double_pendulum',
        output: Annotated[Optional[Path], typer.Option(
            help='Trajectory file; by default data/<robot>.h5.')] = None,
        count: Annotated[int, typer.Option(help='Number of trajectories.')] = 60_000,
        seed: Seed = 0,
        threads: Annotated[int, typer.Option(help='Threads of the teacher.')] = os.cpu_count()):
    """Roll out the teacher from random states under random efforts; goes on where it stopped."""
    from nerd_ros.learning.generate import generate as run
    from nerd_ros.scene.robot_spec import RobotSpec
    spec = RobotSpec.load(robot)
    path = output or Path('data', f'{spec.name}.h5')
    _make_folder(path.parent)
    run(spec, path, count, seed, threads, command=_command())
    print(f'{count} trajectories in {path}')


@app.command()
def train(
        robot: Robot = 'double_pendulum',
        data: Annotated[Optional[Path], typer.Option(
            help='Trajectory file of `generate`; by default data/<robot>.h5.')] = None,
        output: Annotated[Optional[Path], typer.Option(
            help='Folder of model and training state; by default runs/<robot>.')] = None,
        steps: Annotated[int, typer.Option(help='Batches to train for.')] = 30_000,
        batch: Annotated[int, typer.Option(help='Trajectories of a batch.')] = 16,
        width: Annotated[int, typer.Option(help='Width of the network.')] = 96,
        start: Annotated[Optional[Path], typer.Option(
            help='Folder of a model to refine, at a lower learning rate; then it learns '
                 'the speeds of rest as well.')] = None,
        seed: Seed = 0):
    """Train a model on trajectories; goes on where it stopped."""
    from nerd_ros.learning.train import train as run
    from nerd_ros.scene.robot_spec import RobotSpec
    spec = RobotSpec.load(robot)
    folder = output or Path('runs', spec.name)
    _make_folder(folder)
    run(spec, data or Path('data', f'{spec.name}.h5'), folder, steps=steps, batch=batch,
        width=width, start=start, seed=seed, command=_command())
    print(f'the best model is in {folder}')


@app.command()
def evaluate(
        robot: Robot = 'double_pendulum',
        model: Model = None,
        bag: Annotated[Optional[list[Path]], typer.Option(
            help='Recording of the real robot to compare with, instead of the teacher; may be '
            'given more than once.')] = None,
        effort: Annotated[str, typer.Option(
            help='With --bag: the effort to apply, commanded or measured.')] = 'commanded',
        count: Annotated[int, typer.Option(help='Rollouts with and without ground.')] = 256,
        seed: Seed = 1,
        divergence_count: Annotated[int, typer.Option(
            help='Rollouts under random efforts; 0 skips them.')] = 1000,
        divergence_steps: Annotated[int, typer.Option(help='Steps of these.')] = 1000,
        output: Annotated[Path, typer.Option(help='Folder of the picture.')] = Path('runs'),
        write_card: Annotated[bool, typer.Option(
            '--write-card', help='Write the figures into the card of --model.')] = False):
    """Compare a model with its teacher, or with recordings of the real robot."""
    _make_folder(output)
    if bag:
        from nerd_ros.learning.evaluate_bag import evaluate_bag
        evaluate_bag(robot, bag, model, effort=effort, output=output)
    else:
        from nerd_ros.learning.evaluate import evaluate as run
        run(robot, model, count=count, seed=seed, divergence_count=divergence_count,
            divergence_steps=divergence_steps, output=output, write_card=write_card)


@app.command()
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


def main() -> None:
    """Run the command line; errors of the user's are one sentence."""
    try:
        app()
    except ValueError as error:
        sys.exit(f'nerd-ros: {error}')
    except OSError as error:
        sys.exit(f'nerd-ros: {error.filename}: {error.strerror}.' if error.filename
                 else f'nerd-ros: {error}')


def _make_folder(folder: Path) -> None:
    """Make a folder for results; one that cannot be written is told before the work."""
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(folder))


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


def _command() -> str:
    """Return the command line as typed, for the card of what it makes."""
    return shlex.join(['nerd-ros', *sys.argv[1:]])


if __name__ == '__main__':
    main()
