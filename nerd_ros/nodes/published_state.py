# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""All that tells the state of the running simulation, each message at the rate asked for."""

from nerd_ros.nodes.conversions import robot_description, urdf_tree
from nerd_ros.nodes.parameters import SimParameters
from nerd_ros.nodes.publishers import (ClockPublisher, JointStatePublisher, MarkerPublisher,
                                       OdometryPublisher, publish_description, Schedule)

RATES = ('joint_state_rate', 'tf_rate', 'marker_rate')
"""The parameters that say how often something is published."""


class PublishedState:
    """
    Publishes the description of the robot at once, and the state by `publish`.

    That is the clock with every step, and joint states, odometry of a floating base, transforms
    and obstacles at the rates in `parameters`.
    """

    def __init__(self, node, simulation, parameters: SimParameters):
        self._node = node
        description = robot_description(simulation.spec.urdf_path)
        base_frame = parameters.frame_prefix + urdf_tree(description)[0]
        self._description_publisher = publish_description(node, description)
        self._clock = ClockPublisher(node)
        states = [JointStatePublisher(node, simulation, parameters.joint_states_topic)]
        self._sole_topics = {'/clock', node.resolve_topic_name(parameters.joint_states_topic)}
        if simulation.layout.floating:
            states.append(
                OdometryPublisher(node, simulation, parameters.world_frame, base_frame))
        transforms = _transforms(node, simulation, description, parameters)
        markers = ([MarkerPublisher(node, simulation, parameters.world_frame)]
                   if simulation.obstacles else [])
        self._schedules = {name: Schedule(getattr(parameters, name)) for name in RATES}
        self._due = list(zip(self._schedules.values(), (states, transforms, markers)))

    def publish(self, time_ns: int) -> None:
        """Publish what is due at `time_ns`; to be called once per step."""
        self._clock.publish(time_ns)
        for schedule, publishers in self._due:
            if schedule.due(time_ns):
                for publisher in publishers:
                    publisher.publish(time_ns)

    def set_rate(self, name: str, rate: float) -> None:
        """Change the rate [Hz] `name`, one of RATES; 0 means every step."""
        self._schedules[name].set_rate(rate)

    def warn_of_others(self) -> None:
        """Warn, once for each, of topics that others publish as well though they must not."""
        for topic in sorted(self._sole_topics):
            others = self._node.count_publishers(topic) - 1
            if others > 0:
                self._sole_topics.remove(topic)
                own_name = '' if topic == '/clock' else ', namespace or joint_states_topic'
                self._node.get_logger().warning(
                    f'{others} other publisher(s) on {topic}: subscribers get a mixture; stop '
                    f'one, or start it with another ROS_DOMAIN_ID{own_name}')


def _transforms(node, simulation, description: str, parameters: SimParameters) -> list:
    if parameters.publish_tf == 'none':
        return []
    try:
        from nerd_ros.nodes.transforms import TransformPublisher
    except ModuleNotFoundError as error:
        node.get_logger().warning(
            f'no transforms are published: {error.name} is not installed; it comes with a '
            'ROS 2 desktop, elsewhere `make` builds it')
        return []
    return [TransformPublisher(
        node, simulation, description, parameters.publish_tf == 'all', parameters.world_frame,
        parameters.frame_prefix)]
