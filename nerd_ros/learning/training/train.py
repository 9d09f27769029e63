# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Train a model on a trajectory file, with resume and selection by free-running error.

Started by `torchrun`, all processes train one model: see `Processes`.
"""

from collections.abc import Iterator
from pathlib import Path

import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig
from nerd_ros.learning.data.trajectories import TrajectoryError, TrajectoryFile
from nerd_ros.learning.data.sampling import check_seed
from nerd_ros.learning.evaluation.evaluate import evaluated_robot
from nerd_ros.learning.training.loss import OneStepLoss
from nerd_ros.learning.training.optimisation import Optimisation, TrainingError
from nerd_ros.learning.training.processes import Processes
from nerd_ros.learning.training.training_data import fit_normalisers, TrainingData
from nerd_ros.learning.training.training_log import TrainingLog
from nerd_ros.learning.training.validation import Validation
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts

# Learning rate of a training that starts from a model, relative to one from scratch.
RESTART_RATE = 0.2
# Where the speeds of rest start to be learned, see `NerdModel`: 0.05 of the mean increment.
FIRST_REST = -3.0
# How often between two checks the loss is logged and the training state written.
RECORDS = 20


def train(spec: RobotSpec, data: Path | str, out: Path | str, *, steps: int = 30_000,
          batch: int = 16, width: int = 96, seed: int = 0, check_every: int = 2_000,
          start: Path | str | None = None, device: str = 'cpu', compiled: bool = True,
          command: str = '', progress: bool = True) -> NerdModel:
    """
    Train for `steps` batches of `batch` trajectories and keep the best model in folder `out`.

    The best is the one with the lowest free-running error on validation rollouts, measured every
    `check_every` steps. Training state, twenty times as often, and log are written there as well:
    the same call goes on where an interrupted one stopped. `start` is the folder of a model to
    refine, with its width and normalisers and at a lower learning rate. Only then are the speeds
    of rest learned: a network that has them from the beginning holds joints that should slide.
    `device` is 'cpu' or 'cuda'. `compiled` uses torch.compile, which needs a C++ compiler.

    Started by `torchrun`, each process takes its share of every batch. Number and kind of
    processes change nothing but rounding, and a training can go on with others.

    Returns the averaged model of the last step. Raises RobotError where the robot does not say
    how it is evaluated, TrajectoryError where the data cannot be used or is not of this robot,
    ValueError for a seed that is none, and TrainingError where `out` holds a training of other
    data or settings, or where steps, batch, `device` or the number of processes is not possible.
    """
    out, spec = Path(out), evaluated_robot(spec)
    check_seed(seed)
    if steps < 1 or batch < 1:
        raise TrainingError(f'{steps} steps of {batch} trajectories asked for; give at least one '
                            'of each.')
    torch.manual_seed(seed)
    with Processes(device) as processes, TrajectoryFile(data) as file:
        model = (NerdModel(file.layout, TransformerConfig(width=width)) if start is None else
                 load_checkpoint(start, file.layout).train().requires_grad_(True))
        card = _card(spec, file, command, seed, None if start is None else model)
        teacher = _teacher(spec, file) if processes.first else None
        examples = TrainingData(file, batch, seed, processes.rank, processes.count)
        if start is None and processes.first:
            fit_normalisers(model, file, seed)
        processes.share(model.to(processes.device))
        model.rest_speed.requires_grad_(start is not None)
        if start is not None:
            model.rest_speed.data.clamp_(min=FIRST_REST)
        optimisation = Optimisation(
            model, steps, {'data': file.about, 'batch': batch, 'seed': seed, 'start': str(start)},
            rate=1.0 if start is None else RESTART_RATE)
        first, best = optimisation.resume(out)
        validation = Validation(spec, teacher, model) if processes.first else None
        loss_of = OneStepLoss(model, resting=start is not None)
        loss_of = processes.with_mean_gradients(torch.compile(loss_of) if compiled else loss_of)
        with TrainingLog(out, range(first, steps), progress and processes.first) as log:
            for done, loss in _optimise(log.steps, check_every, optimisation, loss_of, examples,
                                        processes):
                if not processes.first:
                    continue
                log.training(done, loss, optimisation.rates)
                if done % check_every == 0 or done == steps:
                    log.doing('checking')
                    checked = validation.check(optimisation.average)
                    log.validation(done, checked)
                    if checked.score < best:
                        best = checked.score
                        save_checkpoint(out, optimisation.average, {**card, 'validation': {
                            'step': done, 'one_step': checked.one_step, **checked.free_running}})
                optimisation.save(out, done, best)
    return optimisation.average


def _optimise(steps, check_every: int, optimisation: Optimisation, loss_of,
              examples: TrainingData, processes: Processes) -> Iterator[tuple[int, float]]:
    """Take the steps; yields now and then how many are done and the mean loss since the last."""
    every, recent = max(1, check_every // RECORDS), []
    for step in steps:
        loss = loss_of(examples.batch(step).to(processes.device))
        optimisation.step(loss)
        recent.append(loss.detach())
        done = step + 1
        if done % check_every % every == 0 or done == optimisation.steps:
            yield done, processes.mean(torch.stack(recent).mean())
            recent.clear()


def _teacher(spec: RobotSpec, file: TrajectoryFile) -> TeacherRollouts:
    """Return the teacher that validates; the file has to be of the robot as it is now."""
    teacher = TeacherRollouts(spec, Validation.count)
    if lines := file.layout.differences(teacher.layout):
        raise TrajectoryError(f'{file.path}: trajectories of another robot: {"; ".join(lines)}.')
    return teacher


def _card(spec: RobotSpec, file: TrajectoryFile, command: str, seed: int,
          start: NerdModel | None) -> dict:
    return {'robot': spec.name, 'command': command, 'seed': seed, 'data': file.about,
            **({} if start is None else {'started_from': start.card}), 'licence': 'Apache-2.0'}
