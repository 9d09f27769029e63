# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands of bag: recordings of the real robot."""

from pathlib import Path
from typing import Annotated, Optional

import typer

from nerd_ros.cli.options import Base, Commands, Namespace, Robot, States, Store
from nerd_ros.cli.results import check_folder
from nerd_ros.cli.simulator import check_namespace, needs_ros
from nerd_ros.cli.stores import bag_store

bag_app = typer.Typer(no_args_is_help=True, help='Recordings of the real robot.')


@bag_app.command()
def upload(
        bag: Annotated[Path, typer.Argument(help='Folder or file of the recording.')],
        name: Annotated[Optional[str], typer.Option(
            help='Name to keep it under; by default that of the folder or file.')] = None,
        namespace: Namespace = '',
        by_path: Annotated[Optional[bool], typer.Option(
            '--copy/--chunks', show_default='copy where the simulator sees the path',
            help='Let the simulator copy it, or send it to another machine.')] = None):
    """Hand a recording to the running simulator; goes on where it stopped."""
    needs_ros('nerd-ros bag upload')
    from nerd_ros.nodes.upload_client import upload as run
    check_namespace(namespace)
    try:
        print(run(bag, name, namespace, by_path))
    except KeyboardInterrupt:
        print('stopped; the same command goes on where it stopped')
        raise typer.Exit(130) from None


@bag_app.command('info')
def show_bag(
        bags: Annotated[list[Path], typer.Argument(
            metavar='BAG...', help='Recordings: folders of rosbag2, or .mcap, .db3, .bag files.')],
        robot: Robot = 'double_pendulum',
        states: States = '',
        commands: Commands = '',
        base: Base = '',
        output: Annotated[Path, typer.Option(help='Folder of the pictures.')] = Path('runs'),
        as_json: Annotated[bool, typer.Option(
            '--json', help='Print a line of JSON for each and draw nothing.')] = False):
    """Print and draw what is usable of recordings for a robot, what was dropped and why."""
    from nerd_ros.learning.bags.bag_info import bag_info
    from nerd_ros.learning.bags.bag_topics import Topics
    if not as_json:
        check_folder(output)
    failed = bag_info(robot, bags, Topics(states, commands, base),
                      output=None if as_json else output, as_json=as_json)
    if failed:
        raise typer.Exit(1)


@bag_app.command('list')
def list_bags(robot: Robot = 'double_pendulum', store: Store = ''):
    """List the recordings that were handed to the simulator."""
    from nerd_ros.learning.store.bags_report import bags_table
    from rich import print as show
    bags = bag_store(robot, store)
    show(bags_table(bags.robot, bags.bags()))


@bag_app.command('remove')
def remove_bag(
        name: Annotated[str, typer.Argument(help='Name of the bag in the store.')],
        robot: Robot = 'double_pendulum', store: Store = ''):
    """Remove a recording from the store of the simulator."""
    bag_store(robot, store).remove(name)
    print(f'bag {name} is removed')
