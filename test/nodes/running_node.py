# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A running node, and somebody who listens to it over DDS."""

from contextlib import contextmanager
import os
import subprocess
import sys
import threading
import time

import rclpy
from rclpy.executors import SingleThreadedExecutor

START_TIMEOUT = 120.0  # kernels may have to be compiled [s]


class Listener:
    """A node of the test: subscriptions that keep what arrives, and plain calls of services."""

    def __init__(self, name: str):
        self.context = rclpy.Context()
        rclpy.init(context=self.context)
        self.node = rclpy.create_node(name, context=self.context)
        self._executor = SingleThreadedExecutor(context=self.context)
        self._executor.add_node(self.node)
        self._thread = threading.Thread(target=self._executor.spin, daemon=True)
        self._thread.start()

    def collect(self, message_type, topic: str, qos=100) -> list:
        """Subscribe to `topic`; the list returned grows with every message."""
        messages = []
        self.node.create_subscription(message_type, topic, messages.append, qos)
        self._executor.wake()
        return messages

    def publisher(self, message_type, topic: str):
        """Return a publisher that the simulator listens to."""
        publisher = self.node.create_publisher(message_type, topic, 10)
        wait_for(publisher.get_subscription_count, f'a subscriber of {topic}', START_TIMEOUT)
        return publisher

    def call(self, service_type, name: str, request):
        """Call a service and return its response."""
        client = self.node.create_client(service_type, name)
        assert client.wait_for_service(START_TIMEOUT), f'no service {name}'
        future = client.call_async(request)
        wait_for(future.done, f'an answer of {name}')
        self.node.destroy_client(client)
        return future.result()

    def close(self) -> None:
        """End the node."""
        self._executor.shutdown()
        self._thread.join(5.0)
        self.context.try_shutdown()


class RunningNode:
    """A simulator in a process of its own."""

    def __init__(self, *arguments: str):
        self.process = subprocess.Popen(
            [sys.executable, '-m', 'nerd_ros.nodes.sim_node', *ros_arguments(arguments)],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={**os.environ, 'OMP_NUM_THREADS': '1', 'RCUTILS_LOGGING_BUFFERED_STREAM': '0'})
        self.lines = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    @property
    def output(self) -> str:
        """Return what the node has printed so far."""
        return ''.join(self.lines)

    def end(self, number: int) -> tuple[int, float]:
        """Send a signal; returns exit code and the time it took [s]."""
        begin = time.monotonic()
        self.process.send_signal(number)
        code = self.process.wait(20.0)
        took = time.monotonic() - begin
        self._reader.join(5.0)
        return code, took

    def output_at_end(self) -> str:
        """Return all that was printed by a node that has ended."""
        self._reader.join(5.0)
        return self.output

    def kill(self) -> None:
        """End the process whatever it does."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def _read(self) -> None:
        for line in self.process.stdout:
            self.lines.append(line)


def ros_arguments(arguments) -> list[str]:
    """Turn `name:=value` into arguments of a node; others are handed on."""
    result = ['--ros-args']
    for argument in arguments:
        result += argument.split() if argument.startswith('-') else ['-p', argument]
    return result


def wait_for(condition, what: str, timeout: float = 40.0):
    """Wait until `condition()` is true and return its value."""
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = condition()
        if value:
            return value
        time.sleep(0.01)
    raise AssertionError(f'waited {timeout:g} s in vain for {what}')


@contextmanager
def running_node(*arguments: str):
    """Start a simulator with parameters `name:=value`; it is killed at the end if need be."""
    node = RunningNode(*arguments)
    try:
        yield node
    finally:
        node.kill()
