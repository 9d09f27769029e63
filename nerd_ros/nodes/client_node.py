# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A node for as long as a command of the command line talks to the simulator."""

from collections.abc import Iterator
from contextlib import contextmanager
import os
from threading import Thread

import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node


@contextmanager
def client_node(name: str, namespace: str) -> Iterator[Node]:
    """Provide a node of its own context; its callbacks run in a thread of their own."""
    context = rclpy.Context()
    rclpy.init(args=[], context=context)
    node = rclpy.create_node(f'{name}_{os.getpid()}', namespace=namespace, context=context,
                             enable_rosout=False, start_parameter_services=False)
    executor = SingleThreadedExecutor(context=context)
    executor.add_node(node)
    # Not spin_until_future_complete, which makes a timer for each call and keeps them all.
    spinning = Thread(target=executor.spin, daemon=True)
    spinning.start()
    try:
        yield node
    finally:
        executor.shutdown()
        spinning.join(5.0)
        context.try_shutdown()
