# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the simulator node: one table of names, defaults, units, ranges and choices."""

from dataclasses import dataclass, field, fields

from rcl_interfaces.msg import (FloatingPointRange, IntegerRange, ParameterDescriptor,
                                SetParametersResult)
from rclpy.exceptions import InvalidParameterTypeException, InvalidParameterValueException

from nerd_ros.arguments import ARGUMENTS


class ParameterError(ValueError):
    """A parameter has a value that the node cannot use; the message names it."""


def _parameter(default, description, *, limits=None, choices=(), changeable=False):
    return field(default=default, metadata={
        'description': description, 'limits': limits, 'choices': choices,
        'changeable': changeable})


def _argument(name, *, changeable=False):
    """Return the parameter that is an argument of the simulation as well."""
    argument = next(item for item in ARGUMENTS if item.name == name)
    return _parameter(argument.default, argument.description, choices=argument.choices,
                      changeable=changeable)


@dataclass
class SimParameters:
    """Values of the node's parameters; `config/sim.yaml` lists them for users."""

    robot: str = _argument('robot')
    world: str = _argument('world')
    solver: str = _argument('solver')
    model: str = _argument('model', changeable=True)
    guard: str = _parameter(
        'hold', 'reaction to a robot state that is not finite or too fast: keep the last good '
        'position, reset the simulation, or let the analytic solver go on; commands stay in '
        'effect', choices=('hold', 'reset', 'analytic'))
    real_time_factor: float = _parameter(
        1.0, 'simulated time over wall time [1]; 0: as fast as it can',
        limits=(0.0, 1000.0), changeable=True)
    start_paused: bool = _parameter(
        False, 'wait for ~/pause with data false before the first step')
    joint_states_topic: str = _parameter(
        'joint_states', 'name of the joint state topic; give another one beside the '
        'joint_state_broadcaster of ros2_control')
    joint_state_rate: float = _parameter(
        0.0, 'joint states and odometry per simulated second [Hz]; 0: every step',
        limits=(0.0, 10000.0), changeable=True)
    tf_rate: float = _parameter(
        50.0, 'transforms per simulated second [Hz]; 0: every step',
        limits=(0.0, 10000.0), changeable=True)
    marker_rate: float = _parameter(
        10.0, 'obstacle markers per simulated second [Hz]; 0: every step',
        limits=(0.0, 10000.0), changeable=True)
    publish_tf: str = _parameter(
        'all', 'transforms to publish: of all links, or only of the base where '
        'robot_state_publisher runs, each with the obstacles; or none',
        choices=('all', 'base', 'none'))
    frame_prefix: str = _parameter('', 'put before the frame names of the robot, e.g. left/')
    world_frame: str = _parameter('world', 'frame of the world')
    command_timeout: float = _parameter(
        0.5, 'how long an effort is applied without a new one [s of simulated time]; 0: for ever',
        limits=(0.0, 3600.0), changeable=True)
    timeout_reaction: str = _parameter(
        'zero', 'effort of a joint after command_timeout', choices=('hold', 'zero'),
        changeable=True)
    store: str = _parameter(
        '', 'folder for uploaded bags and the models that came of them; empty: nerd_ros in '
        '$XDG_DATA_HOME or ~/.local/share')
    max_bag_size: float = _parameter(
        2000.0, 'size of the largest bag to take [MB]', limits=(0.0, 1e9), changeable=True)
    min_free_space: float = _parameter(
        1000.0, 'disk space that a bag has to leave free where the store is [MB]',
        limits=(0.0, 1e9), changeable=True)
    gui: bool = _parameter(False, 'serve a view of the scene to the browser')
    gui_port: int = _parameter(8080, 'port of the view on 127.0.0.1', limits=(1, 65535))


def declare_parameters(node) -> SimParameters:
    """
    Declare all parameters on `node` and return their values.

    Values that are set later are checked likewise; who uses them adds a post-set callback.
    Raises ParameterError, naming the parameter, for a value of the wrong type, out of range, not
    among the choices, or not the name of a topic.
    """
    values = SimParameters()
    for item in fields(SimParameters):
        try:
            value = node.declare_parameter(item.name, item.default, _descriptor(item)).value
        except InvalidParameterTypeException:
            raise ParameterError(_wrong_type(item)) from None
        except InvalidParameterValueException:
            low, high = item.metadata['limits']
            raise ParameterError(f'parameter {item.name} has to be from {low:g} to {high:g} '
                                 f'({item.metadata["description"]}).') from None
        problem = _problem(item, value)
        if problem:
            raise ParameterError(problem)
        setattr(values, item.name, value)
    try:
        node.resolve_topic_name(values.joint_states_topic)
    except RuntimeError:  # of rcl, with a path of its source in it
        raise ParameterError(
            f'parameter joint_states_topic is {values.joint_states_topic!r}; the name of a topic '
            'is made of letters, digits and underscores, in parts that begin with no digit and '
            'are joined by /.') from None
    node.add_on_set_parameters_callback(_check)
    return values


def _descriptor(item) -> ParameterDescriptor:
    descriptor = ParameterDescriptor(
        description=item.metadata['description'], read_only=not item.metadata['changeable'])
    if item.metadata['choices']:
        descriptor.additional_constraints = f'one of {_listed(item)}'
    if item.metadata['limits']:
        low, high = item.metadata['limits']
        if item.type is int:
            descriptor.integer_range = [IntegerRange(from_value=low, to_value=high, step=1)]
        else:
            descriptor.floating_point_range = [FloatingPointRange(from_value=low, to_value=high)]
    return descriptor


def _check(parameters) -> SetParametersResult:
    """Refuse a value that is not among the choices of a parameter, and `use_sim_time`."""
    known = {item.name: item for item in fields(SimParameters)}
    for parameter in parameters:
        if parameter.name in known:
            problem = _problem(known[parameter.name], parameter.value)
            if problem:
                return SetParametersResult(successful=False, reason=problem)
        if parameter.name == 'use_sim_time' and parameter.value:
            return SetParametersResult(successful=False, reason=(
                'this node publishes /clock; set use_sim_time to true for all other nodes'))
    return SetParametersResult(successful=True)


def _problem(item, value) -> str | None:
    choices = item.metadata['choices']
    if choices and value not in choices:
        return f'parameter {item.name} is {value!r}; give one of {_listed(item)}.'
    if item.type is float and value != value:
        return f'parameter {item.name} is not a number.'
    return None


def _wrong_type(item) -> str:
    example = {float: 'a number with a decimal point, such as 1.0', int: 'a whole number',
               bool: 'true or false', str: 'a text'}[item.type]
    return f'parameter {item.name} has to be {example} ({item.metadata["description"]}).'


def _listed(item) -> str:
    return ', '.join(item.metadata['choices'])
