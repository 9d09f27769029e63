# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The thread that steps the simulation at a chosen ratio of simulated to wall time."""

from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass
import threading
from time import perf_counter, sleep
from typing import Callable

import numpy as np

# The operating system wakes a sleeper this late at most, as a rule; the rest is waited for by
# looking at the clock [s].
SPIN_TIME = 150e-6
# From this wait on the loop listens for requests while it waits [s].
LONG_WAIT = 0.02
# Lag behind the wall clock that is made up for by stepping faster; a larger one is forgotten, or a
# loop that cannot keep up would fall ever further behind and then rush [s].
MAX_LAG = 0.1
# Steps that figures are taken over.
TIMING_STEPS = 2000


@dataclass(frozen=True)
class Mark:
    """A moment of a loop: the steps taken until then, and the wall time [s]."""

    steps: int
    time: float


@dataclass(frozen=True)
class Timing:
    """
    What the loop did since some mark, all times in s.

    `real_time_factor` is over that whole span, `lateness` (n,) how long after their deadlines the
    steps began, `cost` (n,) how long they took, `begins` (n,) when they began, for the last
    TIMING_STEPS of them at most. `mark` is its end: figures since then have the next step first.
    """

    real_time_factor: float
    lateness: np.ndarray
    cost: np.ndarray
    begins: np.ndarray
    mark: Mark


class SimulationLoop:
    """
    Calls `step` every `dt` s of simulated time, in a thread of its own.

    `real_time_factor` simulated seconds pass per wall second, 0: as fast as it can; it may be set
    at any time. Deadlines are absolute, so errors do not add up. `on_failure` is called when
    `step` raises, which ends the loop and leaves the exception in `failure`.
    """

    def __init__(self, step: Callable[[], None], dt: float, real_time_factor: float = 1.0,
                 paused: bool = False, on_failure: Callable[[], None] = lambda: None):
        self.dt = dt
        self.failure: Exception | None = None
        self._step, self._on_failure = step, on_failure
        self._factor, self._paused = real_time_factor, paused
        self._stopping = False
        self._wake = threading.Event()
        self._requests: deque = deque()
        self._records: deque = deque(maxlen=TIMING_STEPS)
        self._thread = threading.Thread(target=self._run, name='simulation', daemon=True)

    @property
    def real_time_factor(self) -> float:
        """Wanted ratio of simulated to wall time."""
        return self._factor

    @real_time_factor.setter
    def real_time_factor(self, value: float) -> None:
        self._factor = value
        self._wake.set()

    @property
    def paused(self) -> bool:
        """Whether steps are held back."""
        return self._paused

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float = 1.0) -> None:
        """End the thread after the step at hand; requests still waiting are cancelled."""
        self._stopping = True
        self._wake.set()
        if self._thread.is_alive():
            self._thread.join(timeout)
        while self._requests:
            self._requests.popleft()[1].cancel()

    def pause(self, paused: bool = True) -> None:
        """Hold the steps back or let them go on; when it returns it is so."""
        def apply():
            self._paused = paused
        self.call(apply)

    def call(self, function: Callable, timeout: float = 5.0):
        """
        Run `function` in the loop's thread, between two steps, and return what it returns.

        Raises what it raises, TimeoutError where it could not begin or end within `timeout` s, and
        CancelledError if the loop ends. What could not begin in time is given up.
        """
        answer: Future = Future()
        self._requests.append((function, answer))
        self._wake.set()
        try:
            return answer.result(timeout)
        except TimeoutError:
            answer.cancel()
            raise TimeoutError(f'the simulation took more than {timeout:g} s to answer') from None

    def mark(self) -> Mark:
        """Return a mark from which on `timing_since` can tell what happened."""
        return _mark(list(self._records))

    def timing_since(self, mark: Mark) -> Timing:
        """Return figures of the steps since `mark`."""
        records = list(self._records)
        now = _mark(records)
        steps = now.steps - mark.steps
        recent = records[-steps:] if steps else []
        _, lateness, cost, begins = np.array(recent).reshape(-1, 4).T
        return Timing(steps * self.dt / (now.time - mark.time), lateness, cost, begins, now)

    def _run(self) -> None:
        try:
            self._keep_time()
        except Exception as error:
            self.failure = error
            self._on_failure()

    def _keep_time(self) -> None:
        steps = 0
        last = perf_counter()  # the deadline of the last step
        while not self._stopping:
            self._answer()
            if self._paused:
                self._wake.wait()
                self._wake.clear()
                last = perf_counter()
                continue
            factor = self._factor
            deadline = last + self.dt / factor if factor > 0.0 else perf_counter()
            if self._disturbed_before(deadline):
                continue
            begin = perf_counter()
            self._step()
            end = perf_counter()
            steps += 1
            self._records.append((steps, begin - deadline, end - begin, begin))
            last = deadline if end - deadline < MAX_LAG else end

    def _disturbed_before(self, deadline: float) -> bool:
        """Wait until `deadline`; returns True at once when a request comes in a long wait."""
        if deadline - perf_counter() > LONG_WAIT:
            wait = deadline - perf_counter() - LONG_WAIT / 2
            if self._wake.wait(min(wait, threading.TIMEOUT_MAX)):
                self._wake.clear()
                return True
        pause = deadline - perf_counter() - SPIN_TIME
        if pause > 0.0:
            sleep(pause)
        while perf_counter() < deadline:
            pass
        return False

    def _answer(self) -> None:
        while self._requests:
            function, answer = self._requests.popleft()
            if not answer.set_running_or_notify_cancel():
                continue
            try:
                answer.set_result(function())
            except Exception as error:
                answer.set_exception(error)


def _mark(records: list) -> Mark:
    return Mark(records[-1][0] if records else 0, perf_counter())
