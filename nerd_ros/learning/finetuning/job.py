# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A fine-tuning in a process of its own, which leaves the machine to the simulation."""

from collections.abc import Callable, Sequence
import os
import signal
import subprocess
import sys
from tempfile import TemporaryFile
from threading import Lock, Timer

from nerd_ros.learning import helper_process
from nerd_ros.learning.finetuning.progress import Kept, Progress, read_line

FINETUNE = (sys.executable, '-m', 'nerd_ros.cli', 'finetune', '--json', '--until-input-ends')
# Of what the process says on its standard error, the end is read [bytes].
_LAST = 4096


class JobError(ValueError):
    """A fine-tuning failed; the message is one sentence."""


class FineTuningJob:
    """
    `nerd-ros finetune` with `arguments`, once, at the lowest priority.

    The process ends with this one, in whatever way this one ends, and a model is in the store
    whole or not at all, in whatever way that one does.
    """

    def __init__(self, arguments: Sequence[str]):
        self._command = [*FINETUNE, *arguments]
        self._process: subprocess.Popen | None = None
        self._lock, self._cancelled = Lock(), False

    def run(self, report: Callable[[Progress], None]) -> Kept:
        """
        Return what came out; takes minutes, in which `report` is called.

        Raises InterruptedError after `cancel`, and JobError, with the sentence of the process, or
        the signal that ended it.
        """
        with TemporaryFile() as errors:
            kept, process = None, self._start(errors)
            try:
                for line in process.stdout:
                    told = read_line(line)
                    if isinstance(told, Progress):
                        report(told)
                    elif told is not None:
                        kept = told
                code = process.wait()
            finally:
                helper_process.send(process, signal.SIGKILL)
                process.wait()
                process.stdin.close()
                process.stdout.close()
            if kept is not None:
                return kept
            if self._cancelled:
                raise InterruptedError('the fine-tuning was cancelled')
            errors.seek(max(0, errors.seek(0, os.SEEK_END) - _LAST))
            reason = helper_process.how_it_ended(code, errors.read().decode('utf-8', 'replace'))
        raise JobError(reason.removeprefix('nerd-ros: ') if code == 1 else
                       f'the process of the fine-tuning ended with: {reason}')

    def cancel(self) -> None:
        """End it, from any thread, without waiting; a model that is complete by then is kept."""
        with self._lock:
            self._cancelled = True
            process = self._process
        if process is None:
            return
        helper_process.send(process, signal.SIGTERM)
        killer = Timer(helper_process.GRACE, _kill, (process,))
        killer.daemon = True
        killer.start()

    def _start(self, errors) -> subprocess.Popen:
        # A core is left to the simulation.
        threads = max(1, len(os.sched_getaffinity(0)) - 1)
        environment = {**os.environ, 'OMP_NUM_THREADS': str(threads)}
        with self._lock:
            if self._cancelled:
                raise InterruptedError('the fine-tuning was cancelled')
            self._process = helper_process.start(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors,
                env=environment, text=True, errors='replace')
        return self._process


def _kill(process: subprocess.Popen) -> None:
    if process.poll() is None:
        helper_process.send(process, signal.SIGKILL)
