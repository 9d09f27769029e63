# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""A model learns from recordings what its teacher did not know."""

from dataclasses import replace
import math

import numpy as np
import pytest
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.recording import BagRecording, Segment
from nerd_ros.learning.evaluation.free_running import free_run
from nerd_ros.learning.finetuning import training
from nerd_ros.learning.finetuning.comparison import AFTER, ANALYTIC, BEFORE, compare, HOLD
from nerd_ros.learning.finetuning.gate import judge
from nerd_ros.learning.finetuning.measured_lead import best_lead, lead_measured
from nerd_ros.learning.finetuning.rollouts import differences, Rollouts
from nerd_ros.learning.finetuning.split import split
from nerd_ros.learning.finetuning.training import Recipe, train, with_residual
from nerd_ros.learning.finetuning.windows import HISTORY, Motions
from nerd_ros.learning.training.validation import Validation
from nerd_ros.resources import resource_path
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.teacher import NO_GROUND, TeacherRollouts

SECONDS = 3.0


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def rollouts(spec):
    return Rollouts(spec, load_world('empty'), 64)


@pytest.fixture(scope='module')
def base(rollouts):
    return load_checkpoint(resource_path('models', 'double_pendulum'), rollouts.layout)


@pytest.fixture(scope='module')
def recordings(spec):
    """Motion of a robot whose motors give less than what is commanded, 10 ms late."""
    count, steps, rng = 8, round(SECONDS / spec.dt), np.random.default_rng(3)
    time = np.arange(steps + 1) * spec.dt
    phase, speed = rng.uniform(0, 6, (2, count, 2, 3)), rng.uniform(1, 12, (count, 2, 3))
    command = (np.sin(speed * time[:, None, None, None] + phase[0]).sum(-1)
               * (1.2, 0.5)).transpose(1, 0, 2)
    measured = 0.7 * np.concatenate([np.repeat(command[:, :1], 2, 1), command[:, :-2]], 1)
    teacher = TeacherRollouts(spec, count)
    q, qd = teacher.rollout(rng.uniform(-1, 1, (count, 2)), rng.uniform(-1, 1, (count, 2)),
                            measured[:, :-1], np.tile(NO_GROUND, (count, 1)))
    return [recording(f'bag_{k}', spec.dt, Segment(time, *(
        values[k].astype(np.float32) for values in (q, qd, command, measured))))
        for k in range(count)]


def recording(name, dt, *segments):
    return BagRecording(name, name, dt, segments, (), Topics(), SECONDS, (), ())


def test_recordings_are_split_by_the_seed_alone(recordings):
    parts = split(recordings, 0)
    names = [[one.name for one in part] for part in parts[:3]]
    assert [len(part) for part in names] == [4, 2, 2]
    assert sorted(sum(names, [])) == [one.name for one in recordings]
    assert split(recordings, 0)[:3] == parts[:3] and split(recordings, 1)[:3] != parts[:3]


def test_few_recordings_are_cut_in_time(recordings):
    parts = split(recordings[:1], 0)
    times = [np.concatenate([segment.time for segment in part[0].segments]) for part in parts[:3]]
    np.testing.assert_array_equal(np.concatenate(times), recordings[0].segments[0].time)
    assert [len(part) for part in times] == [361, 120, 120]
    assert 'cut in time' in parts.note


def test_windows_stay_within_their_segments(recordings):
    segment = recordings[0].segments[0]
    cut = [replace(segment, **{name: values[rows] for name, values in vars(segment).items()})
           for rows in (slice(0, 50), slice(50, 120))]
    motions = Motions([recording('a', 0.005, *cut), recordings[1]], 'commanded')
    windows = motions.cut(40, 20, 20)
    first = windows.source == 0
    assert windows.start[first].tolist() == pytest.approx([0.0, 0.1, 0.25, 0.35, 0.45])
    assert windows.history[first].tolist() == [0, HISTORY, 0, HISTORY, HISTORY]
    assert windows.length[first].tolist() == [40, 29, 40, 40, 29]
    for row in range(5):
        begin = round(float(windows.start[row]) / 0.005)
        known = np.arange(begin - int(windows.history[row]), begin + int(windows.length[row]) + 1)
        shown = slice(HISTORY - windows.history[row], HISTORY + windows.length[row] + 1)
        np.testing.assert_array_equal(windows.joint_q[row, shown], segment.joint_q[known])
        effort = windows.effort[row, shown.start:shown.stop - 1]
        np.testing.assert_array_equal(effort, segment.effort_command[known[:-1]])


def test_effort_that_was_not_recorded(recordings):
    blind = replace(recordings[0].segments[0], effort_command=None)
    with pytest.raises(BagError, match='bag_x: no commanded effort'):
        Motions([recording('bag_x', 0.005, blind)], 'commanded')


def test_the_lead_of_measured_effort_is_found(base, rollouts, recordings):
    """Recordings hold it when it acts; here it is measured 10 ms late."""
    assert best_lead(base, recordings, rollouts) == 0.0
    assert best_lead(base, lead_measured(recordings, -0.01), rollouts) == 0.01


@torch.no_grad()
def test_free_motion_is_that_of_the_simulation(spec, rollouts, base, recordings):
    """With the history that a running simulation has, and without."""
    motions = Motions(recordings[:2], 'commanded')
    starts = motions.starts(60)[::150]
    windows = motions.at(starts, 60, torch.ones(len(starts), dtype=torch.bool))
    motion = rollouts.run(base, windows, 60).numpy()
    simulation = Simulation(spec, 'empty', num_worlds=len(starts))
    run = free_run(simulation, windows.joint_q[:, HISTORY].numpy(),
                   windows.joint_qd[:, HISTORY].numpy(), windows.effort[:, HISTORY:].numpy())
    np.testing.assert_allclose(motion, run.joint_q, atol=2e-4)
    shown = rollouts.run(base, motions.at(starts, 60), 60).numpy()
    assert not np.allclose(shown, motion, atol=1e-6)


def test_a_new_residual_changes_nothing(rollouts, base, recordings):
    windows = Motions(recordings[:2], 'commanded').cut(20, 50, 20)
    with torch.no_grad():
        torch.testing.assert_close(rollouts.run(with_residual(base), windows, 20),
                                   rollouts.run(base, windows, 20))


def test_rotations_differ_by_the_angle_between_them():
    layout = RobotSpec.load('cube')
    layout = Rollouts(layout, load_world('empty'), 1).layout
    pose = torch.tensor([0.0, 0.0, 0.1, 0.0, 0.0, 0.0, 1.0])
    turned = torch.tensor([0.0, 0.2, 0.1, 0.0, 0.0, math.sin(0.15), math.cos(0.15)])
    expected = torch.tensor([0.0, 0.2, 0.0, 0.0, 0.0, 0.3])
    torch.testing.assert_close(differences(layout, turned, pose), expected)


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, Validation.count)


@pytest.fixture(scope='module')
def trained(base, rollouts, recordings):
    """Model after a short training, and what it reported."""
    parts, checks = split(recordings, 0), []
    model = train(base, *(Motions(part, 'commanded') for part in parts[:2]), rollouts,
                  time_limit=math.inf, seed=0, report=checks.append, recipe=Recipe(steps=40))
    return model, checks


def test_the_model_gets_better_on_recordings_kept_back(spec, trained, base, rollouts, recordings):
    model, checks = trained
    comparison = compare(spec, load_world('empty'), split(recordings, 0).test, 'commanded',
                         {AFTER: model, BEFORE: base}, rollouts)
    assert comparison.ratio(AFTER, BEFORE) < 0.7
    assert comparison.ratio(BEFORE, ANALYTIC) == pytest.approx(1.0, abs=0.1)
    assert comparison.error(HOLD) > comparison.error(BEFORE) > comparison.error(AFTER)
    assert comparison.rms(AFTER).shape == (2, 4, 2)
    assert [check.done for check in checks] == sorted(check.done for check in checks)
    assert checks[-1].error < 0.7 and judge(comparison, 0.1, 0.2).better


def test_a_model_on_disk_is_the_same(trained, base, rollouts, recordings, tmp_path):
    model = trained[0]
    save_checkpoint(tmp_path, model, {})
    loaded = load_checkpoint(tmp_path, base.layout)
    windows = Motions(recordings[:1], 'commanded').cut(20, 50, 20)
    with torch.no_grad():
        torch.testing.assert_close(rollouts.run(loaded, windows, 20),
                                   rollouts.run(model, windows, 20))
    assert (loaded.speed_limit >= base.speed_limit).all()
    assert loaded.residual.out.weight.abs().max() > 0


def test_the_teacher_is_not_forgotten(trained, base, spec, teacher):
    """Passive motion of 2 s stays near; a model without any knowledge is off by 1 rad."""
    before, after = (Validation(spec, teacher, model).check(model).free_running
                     for model in (base, trained[0]))
    assert after['passive_without_ground'] < before['passive_without_ground'] + 0.4
    assert after['passive_with_ground'] < before['passive_with_ground'] + 0.4


@pytest.mark.filterwarnings('error::RuntimeWarning')
def test_recordings_that_are_too_short_for_a_horizon_are_left_out(spec, rollouts, recordings):
    short = recording('short', spec.dt, Segment(*(
        values[:round(0.6 / spec.dt)] for values in vars(recordings[0].segments[0]).values())))
    both, alone = (compare(spec, load_world('empty'), some, 'commanded', {}, rollouts)
                   for some in ((recordings[1], short), (short,)))
    rms, mean = both.rms(HOLD), both.mean_rms(HOLD)
    assert np.isfinite(mean).all()
    np.testing.assert_allclose(mean[:3], rms[:, :3].mean(0))
    np.testing.assert_array_equal(mean[3], rms[0, 3])
    assert np.isfinite(alone.mean_rms(HOLD)[:3]).all() and np.isnan(alone.mean_rms(HOLD)[3]).all()


def test_motion_that_is_no_number_counts_as_far(trained, base, spec, rollouts, recordings):
    comparison = compare(spec, load_world('empty'), split(recordings, 0).test, 'commanded',
                         {AFTER: trained[0], BEFORE: base}, rollouts)
    comparison.motion[AFTER][0, 5:] = np.nan
    assert comparison.error(AFTER) == np.inf and not judge(comparison, None, None).better


def test_a_model_that_got_worse_stays_out(trained, base, spec, rollouts, recordings):
    worse = with_residual(base)
    torch.nn.init.normal_(worse.residual.out.weight, std=0.5)
    comparison = compare(spec, load_world('empty'), split(recordings, 0).test, 'commanded',
                         {AFTER: worse, BEFORE: base}, rollouts)
    assert not judge(comparison, None, None).better
    assert 'not better' in judge(comparison, None, None).reason


def test_the_time_limit_is_kept(base, rollouts, recordings, monkeypatch):
    monkeypatch.setattr(training, 'CHECKS', 1)
    checks = []
    train(base, *(Motions(recordings[k:k + 1], 'commanded') for k in range(2)), rollouts,
          time_limit=1.0, seed=0, report=checks.append)
    assert checks[-1].done == 1.0 and len(checks) < 20
