# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Starts the simulator node, and RViz if asked for; ends when the node ends.

Time: the simulator publishes `/clock`, which runs at the node's `real_time_factor` and stands
still while it is paused, so it never takes `use_sim_time` itself. Give `use_sim_time:=true` to
every other node that works with its stamps (controllers, filters, recorders); RViz gets it here.

No robot_state_publisher is needed: the node sends the transforms of all links.
"""

from launch import LaunchDescription
from launch.actions import DeclareLaunchArgument, Shutdown
from launch.conditions import IfCondition
from launch.substitutions import AndSubstitution, LaunchConfiguration, NotSubstitution
from launch_ros.actions import Node
from launch_ros.parameter_descriptions import ParameterValue

from nerd_ros.arguments import ARGUMENTS, PARAMETERS
from nerd_ros.resources import resource_path


def generate_launch_description() -> LaunchDescription:
    """Return the node and RViz behind the arguments of `nerd_ros.arguments`."""
    declared = [
        DeclareLaunchArgument(argument.name, default_value=argument.default,
                              description=argument.description, choices=argument.choices or None)
        for argument in ARGUMENTS]
    values = {argument.name: LaunchConfiguration(argument.name) for argument in ARGUMENTS}
    seen = NotSubstitution(values['headless'])
    parameters = {name: ParameterValue(values[name], value_type=str)
                  for name in PARAMETERS if name != 'gui'}
    parameters['gui'] = ParameterValue(AndSubstitution(values['gui'], seen), value_type=bool)
    simulator = Node(
        package='nerd_ros', executable='sim_node', namespace=values['namespace'],
        parameters=[parameters], output='screen', on_exit=Shutdown(reason='the simulator ended'))
    rviz = Node(
        package='rviz2', executable='rviz2', namespace=values['namespace'],
        arguments=['-d', str(resource_path('config', 'rviz', 'nerd_ros.rviz'))],
        parameters=[{'use_sim_time': True}],
        condition=IfCondition(AndSubstitution(values['rviz'], seen)))
    return LaunchDescription([*declared, simulator, rviz])
