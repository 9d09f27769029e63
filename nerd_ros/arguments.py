# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The arguments of a simulation, the same for `ros2 launch`, `make sim` and `nerd-ros sim`."""

from collections.abc import Iterable
from dataclasses import dataclass
import re

from nerd_ros.resources import names

SOLVERS = ('neural', 'mujoco', 'featherstone')
BOOLEAN = ('true', 'false')
# Names joined by slashes, as ROS has them.
NAMESPACE = re.compile(r'/?([A-Za-z_]\w*(/[A-Za-z_]\w*)*/?)?', re.ASCII)


class ArgumentError(ValueError):
    """An argument that does not exist or has no such value; the message says what there is."""


@dataclass(frozen=True)
class Argument:
    """One argument: its name, default, meaning, and values if only some are allowed."""

    name: str
    default: str
    description: str
    choices: tuple[str, ...] = ()


ARGUMENTS = (
    Argument('robot', 'double_pendulum',
             f'robot of this package ({", ".join(names("config/robots", ".yaml"))}) or path of a '
             'RobotSpec (YAML)'),
    Argument('world', '',
             f'world of this package ({", ".join(names("worlds", ".sdf"))}) or path of an SDF '
             'file; empty: the one that goes with the robot'),
    Argument('solver', 'neural', 'what moves the robot: its learned model, or an analytic solver',
             SOLVERS),
    Argument('model', '', 'learned model: a version of the store (`nerd-ros models`), shipped, or '
             'a folder; empty: the version in use'),
    Argument('namespace', '', 'namespace of the node and its relative topics'),
    Argument('gui', 'false', 'serve a view of the scene to the browser on 127.0.0.1', BOOLEAN),
    Argument('rviz', 'false', 'show the robot and the obstacles in RViz', BOOLEAN),
    Argument('headless', 'false', 'neither view nor RViz, whatever the other arguments say',
             BOOLEAN),
)
# Those that are parameters of the node under the same name.
PARAMETERS = ('robot', 'world', 'solver', 'model', 'gui')


def read_arguments(words: Iterable[str], **defaults: str) -> dict[str, str]:
    """
    Return the value of every argument, `words` being like 'world:=empty'.

    `defaults` go before those of ARGUMENTS. `headless` is worked into `gui` and `rviz`. Raises
    ArgumentError for an unknown name, a wrong value or a word of another form.
    """
    known = {argument.name: argument for argument in ARGUMENTS}
    values = {name: defaults.get(name, argument.default) for name, argument in known.items()}
    for word in words:
        name, separator, value = word.partition(':=')
        if not separator or name not in known:
            raise ArgumentError(f'there is no argument {word}; write name:=value with one of '
                                f'{", ".join(known)}.')
        choices = known[name].choices
        if choices and value not in choices:
            raise ArgumentError(f'{word} is not possible; {name} is one of {", ".join(choices)}.')
        if name == 'namespace' and not NAMESPACE.fullmatch(value):
            raise ArgumentError(f'{word} is not possible; a namespace is made of letters, digits '
                                'and underscores, in parts that begin with no digit and are '
                                'joined by /.')
        values[name] = value
    if values['headless'] == 'true':
        values['gui'] = values['rviz'] = 'false'
    return values
