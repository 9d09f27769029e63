# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The check of a bag, in a process of its own: no bag, however odd, harms who asks for it.

The process is `nerd-ros bag info --json`, at the lowest priority, with limits on time, memory and
disk.
"""

import json
import os
from pathlib import Path
import resource
import signal
import subprocess
import sys
from typing import NamedTuple

from nerd_ros.learning import helper_process
from nerd_ros.learning.store.store_files import StoreError

BAG_INFO = (sys.executable, '-m', 'nerd_ros.cli', 'bag', 'info')
# Of computing, for a bag of no size and for each byte of it [s].
TIME_LIMIT = 60.0
TIME_PER_BYTE = 1e-6
# How many times as long it may take on a busy machine.
PATIENCE = 10.0
# Share of the memory of the machine that reading a bag may take.
MEMORY_SHARE = 0.5
# Of what the process prints, this much is read [bytes].
_LONGEST_OUTPUT = 1 << 20


class BagSummary(NamedTuple):
    """What `nerd-ros bag info` tells of a bag."""

    duration: float
    """Usable joint motion [s]."""
    notes: tuple[str, ...]
    """What was found, what is usable, what was dropped and why, a sentence each."""


class BagCheck:
    """
    Checks bags of `robot` (a name, or the path of a RobotSpec), one at a time, by `command`.

    `time_limit` is of computing, for a bag of no size [s]; large ones get more.
    """

    def __init__(self, robot: str, time_limit: float = TIME_LIMIT,
                 command: tuple[str, ...] = BAG_INFO):
        self._robot, self._time_limit, self._command = robot, time_limit, command
        self._process: subprocess.Popen | None = None
        self._stopped = False

    def __call__(self, folder: Path, work: Path, shown_as: str, size: int,
                 disk: int) -> BagSummary:
        """
        Return the summary of the bag in `folder`, of `size` bytes.

        `work` is an empty folder for what the process writes, `disk` how large a file there may
        become [bytes]; messages call the bag `shown_as`. Raises StoreError, with a sentence of
        `bag info`, for a bag that cannot serve, and for one that crashes it or keeps it too long;
        InterruptedError after `stop`.
        """
        command = [*self._command, str(folder), '--robot', self._robot, '--json']
        with open(work / 'out', 'w+b') as out, open(work / 'err', 'w+b') as err:
            code = self._run(command, work, out, err, size, disk, shown_as)
            printed, told = (_content(file).replace(str(folder), shown_as) for file in (out, err))
        found = _json(printed)
        if 'error' in found:
            raise StoreError(found['error'])
        try:
            return BagSummary(float(found['duration']), tuple(map(str, found['notes'])))
        except (KeyError, TypeError):
            reason = helper_process.how_it_ended(code, told)
            raise StoreError(f'{shown_as}: damaged, or too much for this machine; reading it '
                             f'ended with: {reason}') from None

    def stop(self) -> None:
        """End a check at work, and let no other begin."""
        self._stopped = True
        process = self._process
        if process is not None:
            helper_process.send(process, signal.SIGKILL)

    def _run(self, command, work, out, err, size, disk, shown_as) -> int:
        """Run `command` within its limits and return its exit code."""
        time_limit = self._time_limit + TIME_PER_BYTE * size
        # What it unpacks goes to `work`, which is removed whatever becomes of it. Nothing is to be
        # computed on a GPU, whose address space would count as memory.
        environment = {**os.environ, 'TMPDIR': str(work), 'OMP_NUM_THREADS': '1',
                       'CUDA_VISIBLE_DEVICES': ''}
        process = self._process = helper_process.start(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, env=environment)
        try:
            _restrain(process.pid, time_limit, disk)
            if self._stopped:
                raise InterruptedError('the simulator ends')
            code = process.wait(PATIENCE * time_limit)
        except subprocess.TimeoutExpired:
            code = -signal.SIGXCPU
        finally:
            helper_process.send(process, signal.SIGKILL)
            process.wait()
            self._process = None
        if self._stopped:
            raise InterruptedError('the simulator ends')
        if code == -signal.SIGXCPU:
            raise StoreError(f'{shown_as}: reading it took more than {time_limit:.0f} s of '
                             'computing and was given up; record less at a time.')
        return code


def _restrain(pid: int, time_limit: float, disk: int) -> None:
    """Give the process its limits, if it has not ended already."""
    memory = int(os.sysconf('SC_PHYS_PAGES') * os.sysconf('SC_PAGE_SIZE') * MEMORY_SHARE)
    limits = {resource.RLIMIT_DATA: memory, resource.RLIMIT_CPU: int(time_limit) + 1,
              resource.RLIMIT_FSIZE: max(disk, _LONGEST_OUTPUT), resource.RLIMIT_CORE: 0}
    try:
        for kind, limit in limits.items():
            hard = resource.prlimit(pid, kind)[1]
            limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
            # Only a soft limit on time tells itself, by SIGXCPU.
            resource.prlimit(pid, kind, (limit, hard))
    except ProcessLookupError:
        pass


def _content(file) -> str:
    file.seek(0)
    return file.read(_LONGEST_OUTPUT).decode('utf-8', 'replace')


def _json(printed: str) -> dict:
    """Return the object in the last line; an empty one where there is none."""
    try:
        found = json.loads(printed.strip().rpartition('\n')[2])
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}
