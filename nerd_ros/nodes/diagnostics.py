# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The health of the running simulation, once per second."""

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
import numpy as np
from rclpy.qos import QoSProfile

from nerd_ros.nodes.conversions import split_time

# Below this share of the wanted real-time factor the simulation counts as too slow.
SLOW = 0.95
# From this share of steps with a score above 1 on the model counts as asked about what it has not
# learned: ten times the share in its training data.
FAR_SHARE = 0.1


class DiagnosticsPublisher:
    """
    `/diagnostics` (diagnostic_msgs/DiagnosticArray): speed, step time, model, score, guard.

    The level is WARN when, since the last message, the simulation was slower than wanted, the
    robot was often outside what its model has learned, the guard had to act or commands were
    refused. `facts` are texts, each time as they are then.
    """

    def __init__(self, node, simulation, loop, facts: dict[str, str]):
        self._simulation, self._loop, self._facts = simulation, loop, facts
        self._name = node.get_fully_qualified_name().lstrip('/')
        self._guard_events, self._refused, self._mark = 0, 0, loop.mark()
        self._publisher = node.create_publisher(
            DiagnosticArray, '/diagnostics', QoSProfile(depth=10))

    def publish(self, time_ns: int, scores: list[float], refused_commands: int) -> None:
        """Publish the figures since the last call; `scores` are those of the steps since then."""
        timing, wanted = self._loop.timing_since(self._mark), self._loop.real_time_factor
        self._mark = timing.mark
        far_share = np.mean(np.greater(scores, 1.0)) if scores else 0.0
        problems = []
        if not self._loop.paused and timing.real_time_factor < SLOW * wanted:
            problems.append(f'slower than wanted: real-time factor {timing.real_time_factor:.2f} '
                            f'of {wanted:g}')
        if far_share > FAR_SHARE:
            problems.append(f'outside what the model has learned in {far_share:.0%} of the steps; '
                            'do not trust its motion')
        if self._simulation.guard_events > self._guard_events:
            problems.append(f'guard: {self._simulation.last_guard_message}')
        self._guard_events = self._simulation.guard_events
        if refused_commands > self._refused:
            problems.append(f'{refused_commands - self._refused} commands refused')
        self._refused = refused_commands
        values = {
            **self._facts,
            'real_time_factor': f'{timing.real_time_factor:.3f}',
            'real_time_factor_wanted': f'{wanted:g}',
            **_percentiles('step_time', timing.cost),
            **_percentiles('lateness', timing.lateness),
            'out_of_distribution_score': f'{np.mean(scores) if scores else 0.0:.3f}',
            'out_of_distribution_share': f'{far_share:.3f}',
            'guard_events': str(self._guard_events),
            'refused_commands': str(refused_commands),
        }
        status = DiagnosticStatus(
            level=DiagnosticStatus.WARN if problems else DiagnosticStatus.OK,
            name=f'{self._name}: simulation',
            message='; '.join(problems) or ('paused' if self._loop.paused else 'running'),
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
