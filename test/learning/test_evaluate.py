# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a model against its teacher are those of the definitions."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.evaluate import (
    count_divergence, evaluate, FLOOR, HOLD, NEURAL, passive_motion)
from nerd_ros.learning.free_running import free_run, FreeRunningCheck, held_out, ground_world
from nerd_ros.scene.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.teacher import TeacherRollouts

COUNT, STEPS = 12, 40


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


@pytest.fixture(scope='module')
def held(spec, teacher):
    return held_out(spec, teacher, COUNT, 1, STEPS, passive=True, ground=True)


def model_that_keeps_velocity(teacher, acceleration=0.0):
    """Return a model whose velocity grows by `acceleration` [rad/s] in each step."""
    model = NerdModel(teacher.layout, card={'metrics': {'passive_error_with_ground': 0.125}})
    model.requires_grad_(False)
    model.increment_scale.fill_(1e-9)
    if acceleration:
        model.increment_scale[-teacher.layout.nqd:] = acceleration
        for parameter in model.network.parameters():
            parameter.zero_()
        list(model.network.parameters())[-1].fill_(1.0)
    return model.eval()


def test_held_out_motion_repeats_and_differs_by_seed(spec, teacher, held):
    again = held_out(spec, teacher, COUNT, 1, STEPS, passive=True, ground=True)
    other = held_out(spec, teacher, COUNT, 2, STEPS, passive=True, ground=True)
    np.testing.assert_array_equal(held.joint_q, again.joint_q)
    assert np.abs(held.joint_q[:, 0] - other.joint_q[:, 0]).min() > 1e-9
    assert held.joint_q.shape == (COUNT, STEPS + 1, 2)
    assert not held.effort.any()
    assert np.isfinite(held.ground).all()


def test_held_out_motion_has_the_ground_and_effort_asked_for(spec, teacher):
    free = held_out(spec, teacher, 2 * COUNT + 1, 1, 3, passive=False, ground=False)
    assert len(free.joint_q) == 2 * COUNT + 1
    assert np.isneginf(free.ground[:, 3]).all() and not free.touches.any()
    assert free.effort.any((1, 2)).all()
    assert len(np.unique(free.joint_q[:, 0, 0])) == 2 * COUNT + 1


def test_analytic_simulation_follows_the_teacher(spec, teacher, held):
    simulation = Simulation(spec, ground_world(spec), 'mujoco', num_worlds=COUNT)
    slow = (np.abs(held.joint_qd).max((1, 2)) < 15) & ~held.touches
    assert slow.any()
    run = free_run(simulation, held.joint_q[:, 0], held.joint_qd[:, 0], held.effort, held.ground)
    assert np.abs(run.joint_q - held.joint_q)[slow].max() < 0.02
    assert not run.diverged.any()


def test_model_that_keeps_its_velocity_scores_as_hold_last_velocity(teacher, held):
    motion = passive_motion(model_that_keeps_velocity(teacher), teacher, held, seed=1)
    np.testing.assert_allclose(motion.error[NEURAL], motion.error[HOLD], rtol=1e-3, atol=1e-4)
    dt = held.spec.dt * np.arange(STEPS + 1)[None, :, None]
    expected = np.abs(held.joint_q[:, :1] + dt * held.joint_qd[:, :1] - held.joint_q)[:, 1:]
    assert motion.mean(HOLD) == pytest.approx(expected.mean())
    assert motion.median(HOLD) == pytest.approx(np.median(expected.mean((1, 2))))
    assert 0.5e-4 < motion.median(FLOOR) < 1e-3
    assert motion.touching == held.touches.mean()
    assert motion.stopped == 0


def test_check_sees_the_model_as_it_is_now(teacher, held):
    model = model_that_keeps_velocity(teacher)
    check = FreeRunningCheck(model, held)
    before = check.error()
    assert check.error() == before
    model.load_state_dict(model_that_keeps_velocity(teacher, 1.0).state_dict())
    assert check.error() > 1.5 * before


def test_divergence_counts_what_gets_too_fast(spec, teacher):
    still = count_divergence(spec, model_that_keeps_velocity(teacher), teacher, COUNT, STEPS, 1)
    assert (still.diverged, still.rollouts, still.steps) == (0, COUNT, STEPS)
    assert (still.speed_limit > 1.0).all()
    runaway = model_that_keeps_velocity(teacher, 20.0)
    assert count_divergence(spec, runaway, teacher, COUNT, STEPS, 1).diverged == COUNT
    broken = model_that_keeps_velocity(teacher, float('nan'))
    assert count_divergence(spec, broken, teacher, COUNT, STEPS, 1).diverged == COUNT
    assert torch.isinf(runaway.speed_limit).all(), 'the model itself must stay as it is'


def test_evaluate_prints_all_figures(spec, teacher, tmp_path):
    text = StringIO()
    result = evaluate(spec, model_that_keeps_velocity(teacher), count=4, divergence_count=3,
                      divergence_steps=5, output=tmp_path,
                      console=Console(file=text, width=100))
    text = text.getvalue()
    for word in ('without ground', 'with ground', NEURAL, HOLD, FLOOR, '0.125', 'diverged',
                 'mujoco', 'MuJoCo C', 'touch the ground'):
        assert word in text
    assert set(result.metrics) == {'rollouts', 'seed', 'passive_error_without_ground',
                                   'passive_error_with_ground', 'diverged',
                                   'divergence_rollouts', 'divergence_steps'}
    assert all(cost.one > 0 and cost.many > 0 for cost in result.cost.values())
    assert (tmp_path / 'double_pendulum.png').stat().st_size > 10_000


def test_card_gets_the_figures(spec, teacher, tmp_path):
    model = model_that_keeps_velocity(teacher)
    save_checkpoint(tmp_path, model, {'licence': 'Apache-2.0'})
    console = Console(file=StringIO(), width=100)
    options = {'count': 4, 'divergence_count': 0, 'console': console}
    first = evaluate(spec, tmp_path, write_card=True, **options)
    card = load_checkpoint(tmp_path, teacher.layout).card
    assert card == {'licence': 'Apache-2.0', 'metrics': first.metrics}
    again = evaluate(spec, tmp_path, **options)
    assert again.card_error('with ground') == first.metrics['passive_error_with_ground']
    assert again.metrics == first.metrics
    with pytest.raises(ValueError, match='name the folder'):
        evaluate(spec, write_card=True)


def test_evaluate_refuses_a_robot_without_sampling(spec):
    with pytest.raises(RobotError, match='sampling'):
        evaluate(spec.model_copy(update={'sampling': None}))


@pytest.mark.parametrize('name, value', [('count', 0), ('divergence_count', -1),
                                         ('divergence_steps', 0)])
def test_evaluate_refuses_counts_without_sense(spec, name, value):
    with pytest.raises(ValueError, match='give at least'):
        evaluate(spec, **{name: value})
