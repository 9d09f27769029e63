# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Copies of recordings that lack something, to measure what that costs."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer

KINDS = ('no velocity', 'no measured effort', 'sensor drops out', 'stamp jitter')
JITTER = 0.01
"""Standard deviation of what is added to each stamp [s]."""
DROPOUT = 0.3
"""Share of the time, in one piece, for which the last joint says the same position."""
_JOINT_STATE = 'sensor_msgs/msg/JointState'


def degrade(bags: Sequence[Path], kind: str, folder: Path, seed: int) -> list[Path]:
    """Write copies of `bags` that are degraded in one of KINDS into `folder`; returns them."""
    random, copies = np.random.default_rng(seed), []
    for bag in bags:
        copy = folder / bag.name
        with AnyReader([bag]) as reader, Writer(copy, version=9,
                                                storage_plugin=StoragePlugin.MCAP) as writer:
            _copy(reader, writer, kind, random)
        copies.append(copy)
    return copies


def _copy(reader: AnyReader, writer: Writer, kind: str, random: np.random.Generator) -> None:
    store = reader.typestore
    connections = {connection.id: writer.add_connection(
        connection.topic, connection.msgtype, typestore=store)
        for connection in reader.connections}
    start, end = reader.start_time, reader.end_time
    drop = start + random.uniform(0.0, 1.0 - DROPOUT) * (end - start)
    stuck = None
    for connection, time, data in reader.messages():
        if connection.msgtype == _JOINT_STATE:
            message = store.deserialize_cdr(data, connection.msgtype)
            if kind == 'stamp jitter':
                time = _move(message.header.stamp, time, random.normal(0.0, JITTER))
            elif len(message.position):
                if kind == 'no velocity':
                    message.velocity = np.zeros(0)
                elif kind == 'no measured effort':
                    message.effort = np.zeros(0)
                elif drop <= time < drop + DROPOUT * (end - start):
                    stuck = message.position[-1] if stuck is None else stuck
                    message.position[-1] = stuck
            data = store.serialize_cdr(message, connection.msgtype)
        writer.write(connections[connection.id], time, data)


def _move(stamp, time: int, seconds: float) -> int:
    """Move a stamp and a time of arrival [ns]; returns the latter."""
    shift = round(seconds * 1e9)
    total = stamp.sec * 10**9 + stamp.nanosec + shift
    stamp.sec, stamp.nanosec = divmod(total, 10**9)
    return time + shift
