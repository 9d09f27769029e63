# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The command finetune."""

from contextlib import nullcontext
from pathlib import Path
import sys
from typing import Annotated, Optional

import typer

from nerd_ros.cli.options import Base, Commands, Namespace, Robot, Seed, States, Store
from nerd_ros.cli.results import check_folder, command_line
from nerd_ros.cli.simulator import check_namespace, tell_simulator
from nerd_ros.cli.stores import bag_store, model_store


def finetune(
        paths: Annotated[Optional[list[Path]], typer.Argument(
            metavar='[BAG]...', show_default=False,
            help='Recordings to learn from; by default all that were uploaded.')] = None,
        robot: Robot = 'double_pendulum',
        bag: Annotated[Optional[list[str]], typer.Option(
            help='Name of an uploaded recording to learn from; may be given more than once.'
        )] = None,
        base: Annotated[str, typer.Option(
            help='Model to start from: a version or a folder; by default the one in use.')] = '',
        effort: Annotated[str, typer.Option(
            help='The effort that drives the model, commanded or measured.')] = 'commanded',
        time_limit: Annotated[float, typer.Option(help='Time of the training, in s.')] = 360.0,
        seed: Seed = 0,
        world: Annotated[str, typer.Option(
            help='World of the package, or SDF file, that the robot was recorded in.')] = 'empty',
        states: States = '',
        commands: Commands = '',
        base_topic: Base = '',
        base_link: Annotated[str, typer.Option(
            help='Link of a floating base whose pose is in the bag; by default the root.')] = '',
        output: Annotated[Optional[Path], typer.Option(
            help='New folder for the model, instead of the store.')] = None,
        store: Store = '',
        activate: Annotated[bool, typer.Option(
            '--activate/--no-activate', help='Use the model from now on if it is better.')] = True,
        namespace: Namespace = '',
        as_json: Annotated[bool, typer.Option(
            '--json', help='Print progress and result as lines of JSON, and tell no simulator.'
        )] = False,
        until_input_ends: Annotated[bool, typer.Option(hidden=True)] = False):
    """Let a model learn from recordings of the real robot, and say whether it is better."""
    if until_input_ends:   # of the simulator that started this
        from nerd_ros.learning.helper_process import end_with_input
        end_with_input()
    from nerd_ros.learning.finetuning.command import finetune_and_keep, recordings
    from nerd_ros.learning.finetuning.progress import line_of
    from nerd_ros.learning.finetuning.terminal import progress_bar, show_result
    from nerd_ros.learning.bags.bag_topics import Topics
    from nerd_ros.scene.robot.robot_spec import RobotSpec
    check_namespace(namespace)
    if output is not None:
        check_folder(output.absolute().parent)
    spec, models = RobotSpec.load(robot), model_store(robot, store)
    bags = recordings(bag_store(robot, store), paths or (), bag or ())

    def tell(told):
        print(line_of(told), flush=True)
    with nullcontext(tell) if as_json else progress_bar() as report:
        try:
            kept = finetune_and_keep(
                spec, bags, models, output, base=base, activate=activate, report=report,
                topics=Topics(states, commands, base_topic), base_link=base_link, world=world,
                effort=effort, time_limit=time_limit, seed=seed, command=command_line())
        except KeyboardInterrupt:
            print('stopped; nothing is kept', file=sys.stderr)
            raise typer.Exit(130) from None
    if as_json:
        tell(kept)
        return
    show_result(kept)
    if kept.activated:
        tell_simulator(spec.name, kept.version, namespace)
