# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Processes that work for the simulation without getting in its way, nor outliving it."""

from collections.abc import Sequence
import os
from pathlib import Path
import signal
import subprocess
from threading import Thread
import time

NICENESS = 19
# Within which a process that was asked to end does so [s].
GRACE = 5.0


def start(command: Sequence[str], **options) -> subprocess.Popen:
    """Start a process, `options` as of Popen, with the lowest priority and a group of its own."""
    # In a session of its own, Linux may weigh it against the whole session of the simulation,
    # whatever its priority (autogroups).
    process = subprocess.Popen(command, process_group=0, **options)
    try:
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
        # Where memory ends, the system is to take this process and not the simulation.
        Path(f'/proc/{process.pid}/oom_score_adj').write_text('1000')
    except (ProcessLookupError, FileNotFoundError):   # it has ended already
        pass
    return process


def send(process: subprocess.Popen, number: int) -> None:
    """Send a signal to a process of `start` and those that it started."""
    try:
        # Its group bears its number, which nobody else has while some of it are left.
        os.killpg(process.pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def how_it_ended(code: int, told: str) -> str:
    """Return why a process ended: its signal, else the last line it `told`, else its exit code."""
    if code >= 0:
        return told.strip().rpartition('\n')[2] or str(code)
    try:
        return signal.Signals(-code).name
    except ValueError:
        return f'signal {-code}'


def end_with_input() -> None:
    """
    Let this process end when its standard input does, since whoever started it is gone then.

    It ends as by SIGTERM, and in any case within GRACE.
    """
    Thread(target=_watch_input, name='input', daemon=True).start()


def _watch_input() -> None:
    # Not by sys.stdin, whose lock would be held when Python ends.
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(GRACE)
    os.kill(os.getpid(), signal.SIGKILL)
