# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Processes that roll out random trajectories side by side, each with a teacher of its own."""

from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
import logging
import multiprocessing
import os
import signal
import threading

import numpy as np
import torch

from nerd_ros.learning.data.random_trajectories import sample_trajectories
from nerd_ros.learning.data.trajectories import Trajectories
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts


class ProcessError(ValueError):
    """A process of a generation ended too early; the message says what to do."""


def chunks(spec: RobotSpec, seed: int, sizes: dict[int, int], processes: int
           ) -> Iterator[tuple[int, Trajectories]]:
    """
    Yield index and trajectories of each chunk of `sizes`, which maps indices to numbers of them.

    A chunk is the same whichever process makes it: its random numbers hang on `seed` and index
    alone. The chunks come in the order in which they are done. One process is this one. Raises
    ProcessError where a process dies. When the generator is closed, the processes end at once.
    """
    if processes == 1:
        teacher = TeacherRollouts(spec, max(sizes.values()))
        for index, size in sizes.items():
            yield index, _chunk(spec, teacher, seed, index, size)
        return
    others = multiprocessing.active_children()
    pool = ProcessPoolExecutor(
        min(processes, len(sizes)), multiprocessing.get_context('spawn'), _start,
        (spec, seed, max(sizes.values())))
    try:
        left, running = iter(sizes.items()), set()
        while True:
            # Some more than are worked on, so that no process waits for this one.
            while len(running) < 2 * processes and (next_ := next(left, None)):
                running.add(_submit(pool, *next_))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()
    except BrokenProcessPool:
        raise ProcessError('a process that rolls out trajectories ended too early, by a lack of '
                           'memory most likely; the same command goes on where it stopped, with '
                           f'fewer than {processes} --processes it needs less.') from None
    finally:
        for process in multiprocessing.active_children():
            if process not in others:
                process.kill()   # nothing is left to be done, and an end in order takes seconds
        pool.shutdown(cancel_futures=True)


def _submit(pool: ProcessPoolExecutor, index: int, size: int):
    """Hand out a chunk; processes started by this are deaf to Ctrl-C, which is for this one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(_work, index, size)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


_worker = None   # what a process was started with: RobotSpec, seed, and its teacher


def _start(spec: RobotSpec, seed: int, num_worlds: int) -> None:
    """Make the teacher of a process, which does not outlive the one that started it."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # The process that started this one has told of the robot what there is to tell.
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    global _worker
    _worker = spec, TeacherRollouts(spec, num_worlds), seed


def _end_with_parent() -> None:
    multiprocessing.parent_process().join()
    os._exit(1)


def _work(index: int, size: int) -> tuple[int, Trajectories]:
    return index, _chunk(*_worker, index, size)


def _chunk(spec: RobotSpec, teacher: TeacherRollouts, seed: int, index: int,
           size: int) -> Trajectories:
    return sample_trajectories(spec, teacher, size, np.random.default_rng([seed, index]))
