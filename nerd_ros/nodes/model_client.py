# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Swaps the model of the running simulator: `nerd-ros models activate`."""

from pathlib import Path
from threading import Event

from rcl_interfaces.srv import GetParameters, SetParameters
from rclpy.parameter import Parameter

from nerd_ros.nodes.client_node import client_node
from nerd_ros.scene.robot.robot_spec import RobotSpec

# Until a simulator is found, and until it answers [s].
DISCOVERY_TIMEOUT, ANSWER_TIMEOUT = 3.0, 30.0


class SwapFailed(ValueError):
    """The running simulator did not take the model; the message is one sentence."""


def swap_model(robot: str, version: str, namespace: str = '') -> str:
    """
    Let the simulator in `namespace` go on with a model of its store; return what came of it.

    One that is not there, or runs another robot than `robot`, is left alone. Raises SwapFailed
    where it refuses the model.
    """
    with client_node('nerd_models', namespace) as node:
        def call(service_type, name, request):
            client = node.create_client(service_type, f'nerd_sim/{name}')
            if not client.wait_for_service(DISCOVERY_TIMEOUT):
                return None
            future, answered = client.call_async(request), Event()
            future.add_done_callback(lambda _: answered.set())
            if not answered.wait(ANSWER_TIMEOUT):
                raise SwapFailed(f'{client.service_name} does not answer; the model {version} is '
                                 'used from the next start on.')
            return future.result()
        answer = call(GetParameters, 'get_parameters', GetParameters.Request(names=['robot']))
        if answer is None or not answer.values:
            return 'no simulator runs here that could take it at once'
        running = _robot_name(answer.values[0].string_value)
        if running != robot:
            return f'the simulator that runs here simulates {running} and goes on as it was'
        answer = call(SetParameters, 'set_parameters', SetParameters.Request(
            parameters=[Parameter('model', value=version).to_parameter_msg()]))
    if answer is None:
        raise SwapFailed(f'the simulator has ended; the model {version} is used from the next '
                         'start on.')
    result, = answer.results
    if not result.successful:
        raise SwapFailed(f'the simulator goes on with its model and did not take {version}: '
                         f'{result.reason}')
    return 'the running simulator has swapped its model'


def _robot_name(robot: str) -> str:
    """Return the name of a robot given by name or path, also by one of another machine."""
    try:
        return RobotSpec.load(robot).name
    except ValueError:
        return Path(robot).stem
