# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Training on recordings through free motion."""

from collections.abc import Callable
import copy
from dataclasses import dataclass, replace
import math
from time import monotonic
from typing import NamedTuple

import torch
from torch import Tensor

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.finetuning.rollouts import differences, Rollouts
from nerd_ros.learning.finetuning.windows import HISTORY, Motions, Windows

WIDTH = 192
BATCH, WEIGHT_DECAY, MAX_NORM = 128, 1e-2, 1.0
# Times [s] after which free motion is compared to select the model.
HORIZONS = (0.05, 0.2, 0.5)
AVERAGE_DECAY = 0.99
# Number of checks, evenly spread.
CHECKS = 6
# Windows for validation, and those that the scale of the errors is taken from, at most.
WINDOWS = 512
# Errors below this share of a typical one count as none: they are noise.
_SMALL = 0.05


@dataclass(frozen=True)
class Recipe:
    """
    How a model learns from recordings.

    Attributes:
        steps: batches, at most.
        rate: learning rate of the residual.
        network_rate: that of the network that learned from the teacher, which takes small steps
            so that it keeps what it knows.
        horizon: length of the free motion that is learned from [s].
        forget: share of the windows that start without history, as a simulation does after a
            reset.
    """

    steps: int = 500
    rate: float = 4e-3
    network_rate: float = 4e-4
    horizon: float = 0.2
    forget: float = 0.1


class Check(NamedTuple):
    """How training goes: share that is done, loss and validation error (see `_Best`)."""

    done: float
    loss: float
    error: float


def with_residual(base: NerdModel, width: int = WIDTH) -> NerdModel:
    """Return a copy of `base` with a residual, one that adds nothing where it had none."""
    config = base.config if base.residual else replace(base.config, residual_width=width)
    model = NerdModel(base.layout, config, base.card)
    model.load_state_dict(base.state_dict(), strict=False)
    return model


def train(base: NerdModel, training: Motions, validation: Motions, rollouts: Rollouts, *,
          time_limit: float, seed: int, report: Callable[[Check], None],
          recipe: Recipe = Recipe(),
          penalty: Callable[[NerdModel], Tensor] | None = None) -> NerdModel:
    """
    Return the model, `base` with a residual, that ran best through the validation recordings.

    At most `recipe.steps` batches, fewer where `time_limit` [s] ends them; the schedule ends with
    either. The loss is the distance of free motion from the recording, each component and step in
    units of the distance of `base`, and a `penalty` if there is one.
    """
    torch.manual_seed(seed)
    generator = torch.Generator().manual_seed(seed)
    steps = round(recipe.horizon / base.layout.dt)
    model = with_residual(base).requires_grad_(True)
    if not base.residual:
        model.residual.fit_inputs(_tokens(model, training, rollouts, generator))
    fastest = training.joint_qd.abs().amax(0)
    model.speed_limit.copy_(torch.maximum(model.speed_limit, 2.0 * fastest))
    starts = training.starts(min(steps, int(training.room.max())))
    scale = _scale(base, training, rollouts, starts, steps, generator)
    best, average = _Best(model, base, validation, rollouts), copy.deepcopy(model)
    optimiser, schedule = _optimiser(model, recipe)
    begin, checked, recent = monotonic(), 0, []
    for step in range(recipe.steps):
        done = max(step / recipe.steps, (monotonic() - begin) / time_limit)
        if done >= 1.0:
            break
        schedule(step, done)
        chosen = starts[torch.randint(len(starts), (BATCH,), generator=generator)]
        forget = torch.rand(BATCH, generator=generator) < recipe.forget
        windows = training.at(chosen, steps, forget)
        loss = _loss(model, rollouts, windows, steps, scale)
        optimiser.zero_grad()
        loss.backward()
        if penalty is not None:
            penalty(model).backward()
        size = torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_NORM)
        if not size.isfinite():   # motion that ran away teaches nothing
            continue
        optimiser.step()
        recent = [*recent[-19:], loss.item()]
        # The early average forgets faster, or it would be of the start.
        weight = 1.0 - min(AVERAGE_DECAY, step / (step + 10.0))
        with torch.no_grad():
            torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), weight)
        if done * CHECKS >= checked + 1:
            checked += 1
            best.consider(average)
        if step % 10 == 0:
            report(Check(done, sum(recent) / len(recent), best.error))
    best.consider(average)
    report(Check(1.0, sum(recent) / max(1, len(recent)), best.error))
    return best.model.eval().requires_grad_(False)


class _Best:
    """
    The model that ran best through the validation recordings, at first `model`.

    Its `error` is that of free motion in units of the error of `base`, the mean over components
    and HORIZONS.
    """

    def __init__(self, model: NerdModel, base: NerdModel, motions: Motions, rollouts: Rollouts):
        dt = base.layout.dt
        self._rows = [round(horizon / dt) for horizon in HORIZONS]
        windows = motions.cut(self._rows[-1], max(1, round(0.1 / dt)), self._rows[0])
        keep = torch.linspace(0, len(windows.length) - 1, min(WINDOWS, len(windows.length))).long()
        self._windows = Windows(*(value[keep] for value in windows))
        self._rollouts = rollouts
        self._unit = self._rms(base)
        self.model, self.error = copy.deepcopy(model), 1.0

    def consider(self, model: NerdModel) -> None:
        """Keep a copy of `model` if it is better."""
        ratio = self._rms(model) / self._unit.clamp(min=1e-9)
        error = float(ratio[self._unit > 0].mean())
        if error < self.error:
            self.model.load_state_dict(model.state_dict())
            self.error = error

    @torch.no_grad()
    def _rms(self, model: NerdModel) -> Tensor:
        motion = self._rollouts.run(model, self._windows, self._rows[-1])[:, self._rows]
        true = self._windows.joint_q[:, HISTORY:][:, self._rows]
        error = differences(model.layout, motion, true)
        known = (torch.tensor(self._rows) <= self._windows.length[:, None])[..., None]
        return ((error.square() * known).sum(0) / known.sum(0).clamp(min=1)).sqrt()


def _loss(model: NerdModel, rollouts: Rollouts, windows: Windows, steps: int,
          scale: Tensor) -> Tensor:
    motion = rollouts.run(model, windows, steps)[:, 1:]
    error = differences(model.layout, motion, windows.joint_q[:, HISTORY + 1:]) / scale
    known = torch.arange(1, steps + 1) <= windows.length[:, None]
    # Close to L1, smooth at zero.
    return ((error.square() + _SMALL**2).sqrt().mean(-1) * known).sum() / known.sum()


@torch.no_grad()
def _scale(base: NerdModel, motions: Motions, rollouts: Rollouts, starts: Tensor, steps: int,
           generator: torch.Generator) -> Tensor:
    """RMS distance `(steps, nqd)` of `base` from the recordings after each step."""
    chosen = starts[torch.randint(len(starts), (WINDOWS,), generator=generator)]
    windows = motions.at(chosen, steps)
    motion = rollouts.run(base, windows, steps)[:, 1:]
    error = differences(base.layout, motion, windows.joint_q[:, HISTORY + 1:])
    rms = error.square().mean(0).sqrt()
    # Not below a share of its mean, or the first steps, which are noise, would count the most.
    return rms.clamp(min=1e-6).maximum(_SMALL * rms.mean(0).clamp(min=1e-6))


def _tokens(model: NerdModel, motions: Motions, rollouts: Rollouts,
            generator: torch.Generator) -> Tensor:
    """Normalised tokens of measured states, some thousands of them."""
    count = len(motions.joint_q)
    chosen = torch.randperm(count, generator=generator)[:8 * rollouts.num_worlds]
    parts = [rollouts.tokens(motions.joint_q[rows], motions.joint_qd[rows], motions.effort[rows])
             for rows in chosen.split(rollouts.num_worlds)]
    return model.normalise(torch.cat(parts))


def _optimiser(model: NerdModel, recipe: Recipe):
    """Return AdamW, and a function that sets its rates for a step and the share that is done."""
    residual = list(model.residual.parameters())
    others = {id(p) for p in residual}
    groups = [(recipe.rate, WEIGHT_DECAY, residual),
              (recipe.network_rate, 0.0, [p for p in model.parameters() if id(p) not in others])]
    optimiser = torch.optim.AdamW([{'params': params, 'lr': rate, 'weight_decay': decay}
                                   for rate, decay, params in groups])

    def schedule(step: int, done: float) -> None:
        share = min(1.0, (step + 1) / 30) * (
            0.01 + 0.99 * 0.5 * (1.0 + math.cos(math.pi * done)))
        for group, (rate, *_) in zip(optimiser.param_groups, groups):
            group['lr'] = rate * share
    return optimiser, schedule
