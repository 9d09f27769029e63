# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Pieces of recordings that a model runs through freely, with the history before them."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from nerd_ros.dynamics.residual import STEPS
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.recording import BagRecording, Segment

HISTORY = STEPS - 1
"""Measured steps before the start of a window, which a model is shown."""
EFFORTS = ('commanded', 'measured')


class Windows(NamedTuple):
    """
    W pieces of T steps after HISTORY steps of history.

    `joint_q (W, HISTORY + T + 1, nq)`, `joint_qd (W, HISTORY + T + 1, nqd)` as measured and
    `effort (W, HISTORY + T, num_dofs)`; free motion starts from state HISTORY. Known are the last
    `history (W,)` steps before it and the first `length (W,)` steps after it; what lies beyond
    repeats the nearest. `source (W,)` is the number of the recording, `start (W,)` the time [s].
    """

    joint_q: Tensor
    joint_qd: Tensor
    effort: Tensor
    history: Tensor
    length: Tensor
    source: Tensor
    start: Tensor


def have_effort(recordings: Sequence[BagRecording], effort: str) -> bool:
    """Return whether all `recordings` hold that kind of effort."""
    return all(_effort(segment, effort) is not None
               for recording in recordings for segment in recording.segments)


def _effort(segment: Segment, effort: str):
    return segment.effort_command if effort == 'commanded' else segment.effort_measured


class Motions:
    """
    All segments of some recordings, to cut windows from.

    `effort`, one of EFFORTS, is what drives the model. Raises BagError where a recording has none
    of that kind.
    """

    def __init__(self, recordings: Sequence[BagRecording], effort: str):
        parts, bounds, first = [], [], 0
        for source, recording in enumerate(recordings):
            for segment in recording.segments:
                values = _effort(segment, effort)
                if values is None:
                    raise BagError(f'{recording.path}: no {effort} effort was recorded.')
                arrays = segment.time, segment.joint_q, segment.joint_qd, values
                parts.append([torch.as_tensor(array, dtype=torch.float32) for array in arrays])
                last = first + len(segment.time) - 1
                bounds.append((first, last, source))
                first = last + 1
        self.names = tuple(recording.name for recording in recordings)
        self._time, self.joint_q, self.joint_qd, self.effort = (
            torch.cat(values) for values in zip(*parts))
        # By sample: first and last sample of its segment, and number of the recording.
        self._bounds = torch.cat([torch.tensor(bound).expand(bound[1] - bound[0] + 1, 3)
                                  for bound in bounds])
        self.room = self._bounds[:, 1] - torch.arange(len(self._bounds))

    def cut(self, steps: int, every: int, shortest: int) -> Windows:
        """Return windows of `steps` that start `every` steps and have `shortest` at least."""
        since = torch.arange(len(self.room)) - self._bounds[:, 0]
        starts = ((since % every == 0) & (self.room >= shortest)).nonzero()[:, 0]
        return self._windows(starts, steps)

    def starts(self, shortest: int) -> Tensor:
        """Return the samples after which `shortest` steps follow in their segment."""
        return (self.room >= shortest).nonzero()[:, 0]

    def at(self, starts: Tensor, steps: int, forget: Tensor | None = None) -> Windows:
        """Return the windows from `starts (W,)`; those in `forget (W,)` without history."""
        windows = self._windows(starts, steps)
        if forget is None:
            return windows
        return windows._replace(history=windows.history.masked_fill(forget, 0))

    def _windows(self, starts: Tensor, steps: int) -> Windows:
        first, last, source = self._bounds[starts].unbind(1)
        rows = starts[:, None] + torch.arange(-HISTORY, steps + 1)
        rows = torch.minimum(torch.maximum(rows, first[:, None]), last[:, None])
        return Windows(self.joint_q[rows], self.joint_qd[rows], self.effort[rows[:, :-1]],
                       (starts - first).clamp(max=HISTORY), (last - starts).clamp(max=steps),
                       source, self._time[starts])
