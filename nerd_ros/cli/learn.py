# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands that make a model: init, generate, data, train and evaluate."""

import os
from pathlib import Path
from typing import Annotated, Optional

import typer

from nerd_ros.cli.options import Base, Commands, Model, Robot, Seed, States
from nerd_ros.cli.results import check_folder, command_line

data_app = typer.Typer(no_args_is_help=True, help='Look into trajectory files.')


def init(
        urdf: Annotated[Path, typer.Argument(help='URDF or xacro of the robot.')],
        output: Annotated[Optional[Path], typer.Option(
            help='Robot file to write; by default <name of the URDF>.yaml, here.')] = None,
        floating: Annotated[Optional[bool], typer.Option(
            '--floating/--fixed',
            help='Whether the base moves freely; by default a guess.')] = None,
        dt: Annotated[float, typer.Option(help='Time of one step of the model, in s.')] = 0.005,
        force: Annotated[bool, typer.Option(
            '--force', help='Overwrite a file that exists.')] = False):
    """Write the robot file (RobotSpec) of a URDF, with a comment on every choice."""
    from nerd_ros.learning.new_robot.robot_file import write_robot_file
    check_folder((output or Path()).parent)
    path = write_robot_file(urdf, output, floating, dt, force)
    print(f'{path} is written; look through it, then: nerd-ros generate --robot {path}')


def generate(
        robot: Robot = 'double_pendulum',
        output: Annotated[Optional[Path], typer.Option(
            help='Trajectory file; by default data/<robot>.h5.')] = None,
        count: Annotated[int, typer.Option(help='Number of trajectories.')] = 60_000,
        seed: Seed = 0,
        processes: Annotated[int, typer.Option(
            help='Processes that roll out side by side.')] = os.cpu_count()):
    """Roll out the teacher from random states under random efforts; goes on where it stopped."""
    from nerd_ros.learning.data.generate import generate as run
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    spec = RobotSpec.load(robot)
    path = output or Path('data', f'{spec.name}.h5')
    check_folder(path.parent)
    try:
        run(spec, path, count, seed, processes, command=command_line())
    except KeyboardInterrupt:
        print(f'stopped; the same command goes on with {path}')
        raise typer.Exit(130) from None
    print(f'{count} trajectories in {path}')


@data_app.command('show')
def show_data(
        file: Annotated[Path, typer.Argument(help='Trajectory file of `generate`.')],
        output: Annotated[Path, typer.Option(help='Folder of the picture.')] = Path('runs')):
    """Print and draw what a trajectory file covers, input by input."""
    from nerd_ros.learning.data.coverage_report import show
    check_folder(output)
    show(file, output)


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
        device: Annotated[str, typer.Option(help='What to train on, cpu or cuda.')] = 'cpu',
        seed: Seed = 0):
    """
    Train a model on trajectories; goes on where it stopped.

    `torchrun --nproc-per-node 2 -m nerd_ros.cli train ...` trains it with two processes, each of
    which takes its share of every batch; with --device cuda each has a GPU of its own.
    `tensorboard --logdir runs` shows how it goes.
    """
    from nerd_ros.learning.training.train import train as run
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    spec = RobotSpec.load(robot)
    folder = output or Path('runs', spec.name)
    check_folder(folder)
    try:
        run(spec, data or Path('data', f'{spec.name}.h5'), folder, steps=steps, batch=batch,
            width=width, start=start, device=device, seed=seed, command=command_line())
    except KeyboardInterrupt:
        print(f'stopped; the same command goes on with {folder}')
        raise typer.Exit(130) from None
    if os.environ.get('RANK', '0') == '0':   # of torchrun, which starts several
        print(f'the best model is in {folder}')


def evaluate(
        robot: Robot = 'double_pendulum',
        model: Model = None,
        bag: Annotated[Optional[list[Path]], typer.Option(
            help='Recording of the real robot to compare with, instead of the teacher; may be '
            'given more than once.')] = None,
        effort: Annotated[str, typer.Option(
            help='With --bag: the effort to apply, commanded or measured.')] = 'commanded',
        states: States = '',
        commands: Commands = '',
        base: Base = '',
        count: Annotated[int, typer.Option(
            help='Rollouts in each condition; the published tables have 2048.')] = 256,
        seed: Seed = 1,
        output: Annotated[Path, typer.Option(help='Folder of the picture.')] = Path('runs'),
        write_card: Annotated[bool, typer.Option(
            '--write-card', help='Write the figures into the card of --model.')] = False,
        view: Annotated[bool, typer.Option(
            '--view', help='Measure nothing: play model and teacher side by side in the browser.'
        )] = False):
    """Compare a model with its teacher, or with recordings of the real robot."""
    if view:
        from nerd_ros.learning.evaluation.side_by_side import side_by_side
        player = side_by_side(robot, model, seed)
        print(f'Model and teacher can be seen at {player.url}; stop with Ctrl-C', flush=True)
        player.play()
        return
    check_folder(output)
    if bag:
        from nerd_ros.learning.bags.evaluate_bag import evaluate_bag
        from nerd_ros.learning.bags.bag_topics import Topics
        evaluate_bag(robot, bag, model, effort=effort, topics=Topics(states, commands, base),
                     output=output)
    else:
        from nerd_ros.learning.evaluation.evaluate import evaluate as run
        run(robot, model, count=count, seed=seed, output=output, write_card=write_card)
