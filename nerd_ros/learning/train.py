# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Train a model on a trajectory file, with resume and selection by free-running error."""

import json
from pathlib import Path
import time

import torch
from torch import Tensor
from tqdm import tqdm

from nerd_ros.dynamics import features
from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig
from nerd_ros.learning.free_running import FreeRunningCheck, held_out
from nerd_ros.learning.optimisation import Optimisation
from nerd_ros.learning.trajectories import TrajectoryError, TrajectoryFile
from nerd_ros.scene.robot_spec import RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts

# Rollouts that select the model, apart from training and from the seeds of `evaluate`.
VALIDATION_SEED, VALIDATION_COUNT, VALIDATION_SECONDS = 7, 64, 1.67
# Trajectories turned into tokens at once; bounds the memory of the conversion.
CHUNK = 2048
# Learning rate of a training that starts from a model, relative to one from scratch.
RESTART_RATE = 0.2
LOG = 'log.jsonl'


def train(spec: RobotSpec, data: Path | str, out: Path | str, *, steps: int = 30_000,
          batch: int = 16, width: int = 96, seed: int = 0, check_every: int = 2_000,
          start: Path | str | None = None, compiled: bool = True, command: str = '',
          progress: bool = True) -> NerdModel:
    """
    Train for `steps` batches of `batch` trajectories and keep the best model in folder `out`.

    The best is the one with the lowest free-running joint error on validation rollouts, measured
    every `check_every` steps. Training state is written there as well: the same call goes on
    where an interrupted one stopped. `start` is the folder of a model to refine, with its width
    and normalisers and at a lower learning rate. Only then are the speeds of rest learned: a
    network that has them from the beginning holds joints that should slide. `compiled` uses
    torch.compile, which needs a C++ compiler. Returns the averaged model of the last step. Raises
    TrajectoryError where the data cannot be used or is not of this robot, and TrainingError where
    `out` holds a training of other data or settings.
    """
    out = Path(out)
    torch.manual_seed(seed)
    teacher = TeacherRollouts(spec, VALIDATION_COUNT)
    model = None if start is None else load_checkpoint(
        start, teacher.layout).train().requires_grad_(True)
    card = _card(spec, data, command, seed, model)
    tokens, targets, model = _load(data, teacher.layout, model or TransformerConfig(width=width))
    model.rest_speed.requires_grad_(start is not None)
    predict = model.network if start is None else model.predict
    optimisation = Optimisation(
        model, steps, {'data': card['data'], 'batch': batch, 'seed': seed, 'start': str(start)},
        rate=1.0 if start is None else RESTART_RATE)
    checks = _checks(spec, teacher, optimisation.average)
    first, best = optimisation.resume(out)
    loss_of = torch.compile(_loss) if compiled else _loss
    order = _Order(len(tokens), batch, seed)
    began, recent = time.monotonic(), []
    bar = tqdm(range(first, steps), initial=first, total=steps, disable=not progress, unit='step')
    for step in bar:
        chosen = order.batch(step)
        loss = loss_of(predict, tokens[chosen], targets[chosen])
        optimisation.step(loss)
        recent.append(loss.detach())
        if (step + 1) % check_every and step + 1 < steps:
            continue
        errors = {name: check.error() for name, check in checks.items()}
        score = sum(errors.values())
        row = {'step': step + 1, 'loss': torch.stack(recent).mean().item(), **errors,
               'seconds': round(time.monotonic() - began)}
        recent.clear()
        bar.write('  '.join(f'{key} {value:.5g}' for key, value in row.items()))
        if score < best:
            best = score
            save_checkpoint(out, optimisation.average, {**card, 'validation': row})
        optimisation.save(out, step + 1, best)
        with open(out / LOG, 'a') as log:
            log.write(json.dumps(row) + '\n')
    return optimisation.average


class _Order:
    """Trajectories of each batch: a new shuffle every epoch, the same after a resume."""

    def __init__(self, count: int, batch: int, seed: int):
        if count < batch:
            raise TrajectoryError(f'{count} trajectories are fewer than one batch of {batch}; '
                                  'generate more.')
        self.count, self.size, self.seed = count, batch, seed
        self.epoch = -1

    def batch(self, step: int) -> Tensor:
        epoch, index = divmod(step, self.count // self.size)
        if epoch != self.epoch:
            generator = torch.Generator().manual_seed(self.seed * 1_000_003 + epoch)
            self.epoch, self.shuffle = epoch, torch.randperm(self.count, generator=generator)
        return self.shuffle[index * self.size:(index + 1) * self.size]


def _loss(predict, tokens: Tensor, targets: Tensor) -> Tensor:
    """Mean of `sqrt(e^2 + 1e-6)` over normalised increments: close to L1, smooth at zero."""
    error = predict(tokens) - targets
    return (error.square() + 1e-6).sqrt().mean()


def _load(path, layout, start) -> tuple[Tensor, Tensor, NerdModel]:
    """Normalised tokens (N, T, F) and increments (N, T, 2 nqd), and the model to train."""
    with TrajectoryFile(path) as file:
        if lines := file.layout.differences(layout):
            raise TrajectoryError(f'{path}: trajectories of another robot: {"; ".join(lines)}.')
        model = start if isinstance(start, NerdModel) else NerdModel(file.layout, start)
        count, steps = file.num_trajectories, file.steps
        tokens = torch.empty(count, steps, features.token_size(layout))
        targets = torch.empty(count, steps, 2 * layout.nqd)
        speeds = torch.empty(count, steps, layout.nqd)
        for first in range(0, count, CHUNK):
            part = slice(first, min(first + CHUNK, count))
            tokens[part], targets[part], speeds[part] = _convert(
                layout, file.read(part.start, part.stop))
    if model is not start:
        sample = torch.randperm(count)[:10_000]
        model.fit_normalisers(tokens[sample].flatten(0, 1), targets[sample].flatten(0, 1),
                              speeds[sample].flatten(0, 1))
    for first in range(0, count, CHUNK):
        part = slice(first, first + CHUNK)
        tokens[part] = model.normalise(tokens[part])
        targets[part] /= model.increment_scale
    return tokens, targets, model


def _convert(layout, trajectories) -> tuple[Tensor, Tensor, Tensor]:
    q, qd = (torch.from_numpy(a) for a in (trajectories.joint_q, trajectories.joint_qd))
    steps = q.shape[1] - 1
    gravity = torch.from_numpy(trajectories.gravity)[:, None].expand(-1, steps, -1)
    pose = torch.from_numpy(trajectories.base_pose)[:, None].expand(-1, steps, -1)
    if layout.floating:
        pose = q[:, :-1, :7]
    tokens = features.tokens(layout, q[:, :-1], qd[:, :-1], torch.from_numpy(trajectories.effort),
                             torch.from_numpy(trajectories.contacts), gravity, pose)
    # A jump comes from outside: it is not what the robot did, but later tokens show it.
    reached = qd[:, 1:] - torch.from_numpy(trajectories.jump)
    return tokens, features.increment(layout, q[:, :-1], qd[:, :-1], q[:, 1:], reached), qd[:, 1:]


def _checks(spec, teacher, model) -> dict[str, FreeRunningCheck]:
    steps = round(VALIDATION_SECONDS / spec.dt)
    return {name: FreeRunningCheck(model, held_out(
        spec, teacher, count=VALIDATION_COUNT, seed=VALIDATION_SEED, steps=steps, passive=True,
        ground=ground)) for name, ground in (('free', False), ('ground', True))}


def _card(spec: RobotSpec, data, command: str, seed: int, start: NerdModel | None) -> dict:
    with TrajectoryFile(data) as file:
        return {
            'robot': spec.name,
            'command': command,
            'seed': seed,
            'data': file.about,
            **({} if start is None else {'started_from': start.card}),
            'licence': 'Apache-2.0',
        }
