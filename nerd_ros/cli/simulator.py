# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What commands need to reach the simulator that runs."""

from importlib.util import find_spec

from nerd_ros.arguments import ArgumentError, NAMESPACE


def tell_simulator(robot: str, version: str, namespace: str) -> None:
    """Say that a model is in use now, and swap that of the simulator that runs."""
    print(f'model {version} of {robot} is in use from now on', flush=True)
    if find_spec('rclpy') is not None:
        from nerd_ros.nodes.model_client import swap_model
        print(swap_model(robot, version, namespace))


def check_namespace(namespace: str) -> None:
    """Raise ArgumentError for what ROS does not take as a namespace."""
    if not NAMESPACE.fullmatch(namespace):
        raise ArgumentError(f'--namespace {namespace} is not possible; a namespace is made of '
                            'letters, digits and underscores, in parts that begin with no digit '
                            'and are joined by /.')


def needs_ros(command: str) -> None:
    """Raise ArgumentError where there is no ROS 2."""
    if find_spec('rclpy') is None:
        raise ArgumentError(f'{command} needs ROS 2, and there is none here; README.md says for '
                            'which machines there are wheels of it.')
