# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
When a measured effort acted.

It is filtered and so lags behind the motion that it causes: it is moved to where the base model,
which knows mechanics, makes the most of it. Commands stay as they are, since a running simulation
gets them like that.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.bags.recording import BagRecording, Segment
from nerd_ros.learning.finetuning.rollouts import differences, Rollouts
from nerd_ros.learning.finetuning.split import Split
from nerd_ros.learning.finetuning.windows import have_effort, HISTORY, Motions

# Leads [s] of measured effort that are tried.
LEADS = (0.0, 0.005, 0.01, 0.015, 0.02)
# Free motion that they are compared by [s], and how many pieces of it at most.
_HORIZON, _WINDOWS = 0.1, 256


def lead(parts: Split, base: NerdModel, rollouts: Rollouts) -> tuple[Split, float | None]:
    """
    Return `parts` with measured efforts moved to when they acted, and how far [s].

    The lead is that of the training recordings; None, and nothing is moved, where a recording has
    no measured effort.
    """
    if not all(have_effort(recordings, 'measured') for recordings in parts[:3]):
        return parts, None
    best = best_lead(base, parts.training, rollouts)
    return Split(*(tuple(lead_measured(recordings, best)) for recordings in parts[:3]),
                 parts.note), best


def lead_measured(recordings: Sequence[BagRecording], lead: float) -> list[BagRecording]:
    """Move measured efforts `lead` [s] earlier."""
    return [replace(recording, segments=tuple(
        _moved(segment, round(lead / recording.dt)) for segment in recording.segments))
        for recording in recordings]


@torch.no_grad()
def best_lead(base: NerdModel, recordings: Sequence[BagRecording], rollouts: Rollouts) -> float:
    """Return that of LEADS with which `base` comes closest to the recorded motion [s]."""
    return min(LEADS, key=lambda lead: _error(base, lead_measured(recordings, lead), rollouts))


def _error(base: NerdModel, recordings: Sequence[BagRecording], rollouts: Rollouts) -> float:
    motions, steps = Motions(recordings, 'measured'), round(_HORIZON / base.layout.dt)
    starts = motions.starts(steps)
    chosen = starts[torch.linspace(0, len(starts) - 1, min(_WINDOWS, len(starts))).long()]
    windows = motions.at(chosen, steps)
    end = differences(base.layout, rollouts.run(base, windows, steps)[:, -1],
                      windows.joint_q[:, HISTORY + steps])
    return float(end.square().mean(0).sqrt().sum())


def _moved(segment: Segment, steps: int) -> Segment:
    """Return a segment whose measured efforts come `steps` earlier."""
    efforts = segment.effort_measured
    rows = np.arange(len(efforts)) + steps
    return replace(segment, effort_measured=efforts[rows.clip(0, len(efforts) - 1)])
