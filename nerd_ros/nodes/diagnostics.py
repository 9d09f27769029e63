# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The health of the running simulation, once per second."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np
from rclpy.qos import QoSProfile

from nerd_ros.nodes.conversions import split_time

# Below this share of the wanted real-time factor the simulation counts as too slow.
SLOW = 0.95


class DiagnosticsPublisher:
    """
    `/diagnostics` (diagnostic_msgs/DiagnosticArray): speed, step time, model, score, guard.

    The level is WARN when the simulation is slower than wanted or the guard had to act since the
    last message. `facts` are texts that do not change.
    """

    def __init__(self, node, simulation, loop, facts: dict[str, str]):
        self._simulation, self._loop, self._facts = simulation, loop, facts
        self._name = node.get_fully_qualified_name().lstrip('/')
        self._guard_events, self._mark = 0, loop.mark()
        self._publisher = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=10))

    def publish(self, time_ns: int, score: float, refused_commands: int) -> None:
        """Publish the figures since the last call; `score` is the largest of that span."""
        timing, wanted = self._loop.timing_since(self._mark), self._loop.real_time_factor
        self._mark = self._loop.mark()
        level, message = DiagnosticStatus.OK, 'running'
        if self._loop.paused:
            message = 'paused'
        elif timing.real_time_factor < SLOW * wanted:
            level = DiagnosticStatus.WARN
            message = (f'slower than wanted: real-time factor {timing.real_time_factor:.2f} '
                       f'of {wanted:g}')
        if self._simulation.guard_events > self._guard_events:
            level = DiagnosticStatus.WARN
            message = f'guard: {self._simulation.last_guard_message}'
        self._guard_events = self._simulation.guard_events
        values = {
            **self._facts,
            'real_time_factor': f'{timing.real_time_factor:.3f}',
            'real_time_factor_wanted': f'{wanted:g}',
            **_percentiles('step_time', timing.cost),
            **_percentiles('lateness', timing.lateness),
            'out_of_distribution_score': f'{score:.3f}',
            'guard_events': str(self._guard_events),
            'refused_commands': str(refused_commands),
        }
        status = DiagnosticStatus(
            level=level, name=f'{self._name}: simulation', message=message,
            hardware_id=self._facts['robot'],
            values=[KeyValue(key=key, value=value) for key, value in values.items()])
        array = DiagnosticArray(status=[status])
        array.header.stamp.sec, array.header.stamp.nanosec = split_time(time_ns)
        self._publisher.publish(array)


def _percentiles(name: str, seconds: np.ndarray) -> dict[str, str]:
    """Median and 99th percentile as texts in ms; empty texts where there was no step."""
    if not len(seconds):
        return {f'{name}_p50_ms': '', f'{name}_p99_ms': ''}
    p50, p99 = np.percentile(seconds, (50, 99)) * 1e3
    return {f'{name}_p50_ms': f'{p50:.3f}', f'{name}_p99_ms': f'{p99:.3f}'}
