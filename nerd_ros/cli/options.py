# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Options and arguments that several commands have."""

from pathlib import Path
from typing import Annotated, Optional

import typer

Robot = Annotated[str, typer.Option(help='Robot of the package, or path of a RobotSpec (YAML).')]
Seed = Annotated[int, typer.Option(help='Seed of all that is random.')]
Model = Annotated[Optional[Path], typer.Option(
    help='Folder of the model; by default the one that ships for the robot.')]
Store = Annotated[str, typer.Option(
    help='Folder of the store; by default that of the user, as of the simulator.')]
Namespace = Annotated[str, typer.Option(help='Namespace of the simulator.')]
Version = Annotated[str, typer.Argument(
    help='Version of a model, or `shipped` for the one of the package.')]
States = Annotated[str, typer.Option(
    help='JointState topics of the states in a bag, joined by commas; by default found.')]
Commands = Annotated[str, typer.Option(
    help='Topic of the commanded efforts in a bag; by default found.')]
Base = Annotated[str, typer.Option(
    help='Topic of the pose of a floating base in a bag, for TFMessage TOPIC:FRAME; by default '
    'found.')]
