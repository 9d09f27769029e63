# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""From recordings of the real robot to a better model, with proof."""

from collections.abc import Callable, Sequence
import json
import math
import os
from pathlib import Path
from time import monotonic

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import BagRecording, read_bag
from nerd_ros.learning.data.sampling import check_seed
from nerd_ros.learning.finetuning.comparison import (
    AFTER, ANALYTIC, BEFORE, compare, Comparison, HOLD)
from nerd_ros.learning.finetuning.gate import judge
from nerd_ros.learning.finetuning.measured_lead import lead
from nerd_ros.learning.finetuning.progress import Outcome, Progress
from nerd_ros.learning.finetuning.report import write_report
from nerd_ros.learning.finetuning.rollouts import Rollouts
from nerd_ros.learning.finetuning.split import split, Split
from nerd_ros.learning.finetuning.training import BATCH, Check, train
from nerd_ros.learning.finetuning.windows import EFFORTS, have_effort, Motions
from nerd_ros.learning.training.validation import Validation
from nerd_ros.resources import resource_path
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.robot.urdf import read_urdf
from nerd_ros.scene.robot.urdf_joints import base_link as root_link
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.teacher import TeacherRollouts

OUTCOME, REPORT = 'outcome.json', 'report.html'
TIME_LIMIT = 360.0
"""Training time if none is given [s]."""
# Shares of the phases in the progress: reading is over, training is over.
_READ, _TRAINED = 0.1, 0.85
# Names of the parts of a Split in a card.
_PARTS = ('train', 'validation', 'test')


class FineTuningError(ValueError):
    """Fine-tuning is not possible; the message says what to do."""


def finetune(spec: RobotSpec, bags: Sequence[Path | str], out: Path | str, *,
             base: Path | str | None = None, base_name: str = '', topics: Topics = Topics(),
             base_link: str = '', world: str = 'empty', effort: str = 'commanded',
             time_limit: float = TIME_LIMIT, seed: int = 0, command: str = '',
             report: Callable[[Progress], None] = lambda progress: None) -> Outcome:
    """
    Read `bags`, train, and write model, card, report and outcome into the folder `out`.

    Args:
        spec: the robot.
        bags: recordings, see `bags.read_bag`, with `topics` and `base_link`, by default the root.
        base: folder of the model to start from; None: the one that ships for the robot.
        base_name: what the card calls it; by default its path.
        world: where the robot was recorded.
        effort: what drives the model, 'commanded' as in the running simulation, or 'measured'.
        time_limit: of the training [s].
        command: for the card of the model.
        report: is told how far it is.

    Raises BagError, FineTuningError or the ValueError of the robot, world or model.
    """
    if not bags:
        raise FineTuningError('there is nothing to learn from; give a recording.')
    report(Progress('reading', 0.0, math.nan))
    rollouts = Rollouts(spec, load_world(world), BATCH)
    if rollouts.layout.floating and not base_link:
        base_link = root_link(read_urdf(spec))
    recordings = []
    for number, bag in enumerate(bags):
        recordings.append(read_bag(bag, rollouts.layout, topics, base_link))
        report(Progress('reading', _READ * (number + 1) / len(bags), math.nan))
    return finetune_recordings(spec, recordings, out, base=base, base_name=base_name, world=world,
                               effort=effort, time_limit=time_limit, seed=seed, command=command,
                               report=report, rollouts=rollouts)


def finetune_recordings(spec: RobotSpec, recordings: Sequence[BagRecording], out: Path | str, *,
                        base: Path | str | None = None, base_name: str = '',
                        world: str = 'empty', effort: str = 'commanded',
                        time_limit: float = TIME_LIMIT, seed: int = 0, command: str = '',
                        rollouts: Rollouts | None = None,
                        report: Callable[[Progress], None] = lambda progress: None) -> Outcome:
    """Do what `finetune` does with recordings that are read already."""
    if effort not in EFFORTS:
        raise FineTuningError(f'effort {effort!r} is unknown; choose {" or ".join(EFFORTS)}.')
    if not time_limit > 0.0:
        raise FineTuningError(f'a time limit of {time_limit:g} s leaves no time; give more.')
    check_seed(seed)
    out, started, place = Path(out), monotonic(), load_world(world)
    rollouts = rollouts or Rollouts(spec, place, BATCH)
    before = load_checkpoint(base or resource_path('models', spec.name), rollouts.layout)

    def trained(check: Check) -> None:
        spent = monotonic() - started
        fraction = _READ + (_TRAINED - _READ) * check.done
        report(Progress('training', fraction, spent * (1.0 / fraction - 1.0), check.loss,
                        check.error))

    parts, measured_lead = lead(split(recordings, seed), before, rollouts)
    training, validation = (Motions(part, effort) for part in parts[:2])
    after = train(before, training, validation, rollouts, time_limit=time_limit, seed=seed,
                  report=trained)
    spent = monotonic() - started
    report(Progress('evaluating', _TRAINED, spent * (1.0 / _TRAINED - 1.0)))
    models = {AFTER: after, BEFORE: before}
    comparisons = {kind: compare(spec, place, parts.test, kind, models, rollouts)
                   for kind in EFFORTS if have_effort(parts.test, kind)}
    chosen = comparisons[effort]
    verdict = judge(chosen, *_teacher_errors(spec, before, after))
    outcome = Outcome(*verdict, *(chosen.error(solver)
                                  for solver in (BEFORE, AFTER, ANALYTIC, HOLD)))
    card = _card(spec, parts, measured_lead, before, base_name or str(base or 'shipped'), effort,
                 seed, command, comparisons, outcome)
    save_checkpoint(out, after, card)
    write_report(out / REPORT, spec, parts, comparisons, card)
    _write(out / OUTCOME, json.dumps(outcome._asdict()))
    report(Progress('evaluating', 1.0, 0.0))
    return outcome


def load_outcome(folder: Path) -> Outcome:
    """Return what `finetune` wrote into `folder` last of all; OSError where it did not."""
    return Outcome(**json.loads((folder / OUTCOME).read_text()))


def _teacher_errors(spec: RobotSpec, before: NerdModel, after: NerdModel):
    """Return the errors of both models on the teacher's motion, None where there is none."""
    if spec.evaluation is None:
        return None, None
    teacher = TeacherRollouts(spec, Validation.count)
    return [Validation(spec, teacher, model).check(model).score for model in (before, after)]


def _card(spec: RobotSpec, parts: Split, measured_lead: float | None, before: NerdModel, base: str,
          effort: str, seed: int, command: str, comparisons: dict[str, Comparison],
          outcome: Outcome) -> dict:
    """Return what the model card says beside layout and network."""
    figures = {kind: {solver: _rounded(comparison.mean_rms(solver).tolist())
                      for solver in comparison.motion}
               for kind, comparison in comparisons.items()}
    return {
        'robot': spec.name, 'command': command, 'seed': seed, 'licence': 'Apache-2.0',
        'fine_tuning': {
            'base': base, 'effort': effort, 'seed': seed,
            'bags': {kind: [recording.name for recording in part]
                     for kind, part in zip(_PARTS, parts[:3])},
            'seconds': {kind: round(sum(recording.duration for recording in part), 1)
                        for kind, part in zip(_PARTS, parts[:3])},
            'measured_lead': measured_lead, 'better': outcome.better, 'reason': outcome.reason,
            'error': _rounded({'before': outcome.error_before, 'after': outcome.error_after,
                               'analytic': outcome.error_analytic, 'hold': outcome.error_hold}),
            'rms': figures},
        'started_from': before.card}


def _rounded(value):
    """Return numbers in dicts and lists with three digits; None for what is not known."""
    if isinstance(value, dict):
        return {name: _rounded(entry) for name, entry in value.items()}
    if isinstance(value, list):
        return [_rounded(entry) for entry in value]
    return float(f'{value:.3g}') if math.isfinite(value) else None


def _write(path: Path, text: str) -> None:
    """Write a file that is there whole or not at all."""
    part = path.with_name(f'.{path.name}')
    part.write_text(text)
    os.replace(part, path)
