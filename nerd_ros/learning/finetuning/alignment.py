# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
When a recorded effort acted.

Recordings made with different software hold commands that are carried out after different times.
A model can learn one latency, the usual one: the others are moved there. A measured effort lags
behind the motion that it causes, because it is filtered: it is moved to where the base model,
which knows mechanics, makes the most of it.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.bags.recording import BagRecording
from nerd_ros.learning.finetuning.rollouts import differences, Rollouts
from nerd_ros.learning.finetuning.split import Split
from nerd_ros.learning.finetuning.windows import have_effort, HISTORY, Motions

# Leads [s] of measured effort that are tried.
LEADS = (0.0, 0.005, 0.01, 0.015, 0.02)
# Free motion that they are compared by [s], and how many pieces of it at most.
_HORIZON, _WINDOWS = 0.1, 256


def aligned(parts: Split, base: NerdModel, rollouts: Rollouts) -> tuple[Split, dict]:
    """
    Return `parts` with efforts moved to when they acted, and what a card says of it.

    Usual latency and lead are those of the training recordings.
    """
    usual = usual_latency(parts.training)
    moved, notes = zip(*(align_commands(recordings, usual) for recordings in parts[:3]))
    about = {'latency': [None if np.isnan(value) else round(value, 4) for value in usual],
             'moved': sum(notes, [])}
    if all(have_effort(recordings, 'measured') for recordings in moved):
        lead = best_lead(base, moved[0], rollouts)
        moved = [lead_measured(recordings, lead) for recordings in moved]
        about['measured_lead'] = lead
    return Split(*map(tuple, moved), parts.note), {'alignment': about}


def usual_latency(recordings: Sequence[BagRecording]) -> tuple[float, ...]:
    """
    Return the median of the latencies of each joint [s]; NaN where none can be told.

    Recordings that are too coarse to tell, see `_told`, are left out.
    """
    known = [recording.latency for recording in recordings if _told(recording)]
    columns = zip(*known) if known else ()
    return tuple(float(np.median(values)) if values else np.nan for values in (
        [value for value in column if value is not None] for column in columns))


def align_commands(recordings: Sequence[BagRecording], usual: Sequence[float]
                   ) -> tuple[list[BagRecording], list[str]]:
    """
    Move the commands of each joint to the latency `usual` [s], by whole steps.

    Returns the recordings and a sentence for each that was changed. Where a latency is unknown,
    nothing is moved.
    """
    moved, notes = [], []
    for recording in recordings:
        latency = recording.latency if _told(recording) else ()
        steps = [0 if value is None or np.isnan(wanted) else round((value - wanted) / recording.dt)
                 for value, wanted in zip(latency, usual)]
        if any(steps):
            recording = replace(recording, segments=tuple(
                _moved(segment, 'effort_command', steps) for segment in recording.segments))
            notes.append(f'{recording.name}: commands are moved by '
                         f'{", ".join(f"{1e3 * recording.dt * step:.0f}" for step in steps)} ms, '
                         'to the usual latency')
        moved.append(recording)
    return moved, notes


def _told(recording: BagRecording) -> bool:
    """Return whether states come often enough to tell a latency: every second step or oftener."""
    return bool(recording.latency) and min(recording.rates) * recording.dt >= 0.5


def lead_measured(recordings: Sequence[BagRecording], lead: float) -> list[BagRecording]:
    """Move measured efforts `lead` [s] earlier."""
    return [replace(recording, segments=tuple(
        _moved(segment, 'effort_measured', -round(lead / recording.dt))
        for segment in recording.segments)) for recording in recordings]


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


def _moved(segment, name: str, steps: Sequence[int] | int):
    """Return a segment whose efforts come later by `steps`, one number for each or all joints."""
    efforts = getattr(segment, name)
    if efforts is None:
        return segment
    rows = np.arange(len(efforts))[:, None] - np.broadcast_to(steps, efforts.shape[1:])
    return replace(segment, **{name: np.take_along_axis(
        efforts, rows.clip(0, len(efforts) - 1), axis=0)})
