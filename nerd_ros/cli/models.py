# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The commands of models: those that came of recordings."""

from typing import Annotated

import typer

from nerd_ros.arguments import ArgumentError
from nerd_ros.cli.options import Namespace, Robot, Store, Version
from nerd_ros.cli.simulator import check_namespace, tell_simulator
from nerd_ros.cli.stores import model_store

models_app = typer.Typer(help='Models that came of recordings: which there are, which is in use.')


@models_app.callback(invoke_without_command=True)
def models(context: typer.Context, robot: Robot = 'double_pendulum', store: Store = ''):
    """List the models of a robot, where no command is given."""
    if context.invoked_subcommand is None:
        list_models(robot, store)
    elif context.args or (robot, store) != ('double_pendulum', ''):
        raise ArgumentError(f'give options behind the command: nerd-ros models '
                            f'{context.invoked_subcommand} --help')


@models_app.command('list')
def list_models(robot: Robot = 'double_pendulum', store: Store = ''):
    """List the models of a robot, what they came of and how well they did."""
    from nerd_ros.learning.store.models_report import models_table
    from rich import print as show
    models = model_store(robot, store)
    show(models_table(models.robot, models.versions()))


@models_app.command()
def compare(
        versions: Annotated[list[str], typer.Argument(metavar='VERSION...')],
        robot: Robot = 'double_pendulum', store: Store = ''):
    """Show models side by side, with their errors on the recordings that tested them."""
    from nerd_ros.learning.store.models_report import comparison_table
    from rich import print as show
    models = model_store(robot, store)
    show(comparison_table([models.stored(version) for version in versions]))


@models_app.command()
def activate(version: Version, robot: Robot = 'double_pendulum', store: Store = '',
             namespace: Namespace = ''):
    """Use a model from now on, in the simulator that runs as well."""
    check_namespace(namespace)
    models = model_store(robot, store)
    models.activate(version)
    tell_simulator(models.robot, version, namespace)


@models_app.command('roll-back')
def roll_back(robot: Robot = 'double_pendulum', store: Store = '', namespace: Namespace = ''):
    """Use the model again that was in use before."""
    check_namespace(namespace)
    models = model_store(robot, store)
    tell_simulator(models.robot, models.roll_back(), namespace)


@models_app.command('remove')
def remove_model(version: Version, robot: Robot = 'double_pendulum', store: Store = ''):
    """Remove a model that is not in use."""
    model_store(robot, store).remove(version)
    print(f'model {version} is removed')
