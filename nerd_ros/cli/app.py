# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""All commands, put together."""

import sys

import typer

from nerd_ros.cli.bag import bag_app
from nerd_ros.cli.finetune import finetune
from nerd_ros.cli.learn import data_app, evaluate, generate, init, train
from nerd_ros.cli.models import models_app
from nerd_ros.cli.sim import sim

app = typer.Typer(no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
                  help='Learn the dynamics of a robot from its URDF, and simulate it.')
for command in (init, generate, train, evaluate, finetune, sim):
    app.command()(command)
app.add_typer(data_app, name='data')
app.add_typer(bag_app, name='bag')
app.add_typer(models_app, name='models')


def main() -> None:
    """Run the command line; errors of the user's are one sentence."""
    try:
        app()
    except ValueError as error:
        sys.exit(f'nerd-ros: {error}')
    except OSError as error:
        sys.exit(f'nerd-ros: {error.filename}: {error.strerror}.' if error.filename
                 else f'nerd-ros: {error}')
