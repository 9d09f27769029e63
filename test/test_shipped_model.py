# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The models that ship do what their cards say."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.learning.bags.evaluate_bag import HOLD as HOLD_STATE
from nerd_ros.learning.bags.evaluate_bag import evaluate_bag
from nerd_ros.learning.data.held_out import held_out
from nerd_ros.learning.evaluation.accuracy import groups
from nerd_ros.learning.evaluation.divergence import count_divergence
from nerd_ros.learning.evaluation.evaluate import METRICS_VERSION
from nerd_ros.learning.evaluation.free_accuracy import (
    conditions, free_accuracy, FreeRunner, NEURAL)
from nerd_ros.resources import resource_path
from nerd_ros.scene.energy import MechanicalEnergy
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers.make_solver import shipped_model
from nerd_ros.scene.teacher import TeacherRollouts

ROBOTS = sorted(card.parent.name for card in resource_path('models').glob('*/model.yaml'))
COUNT = 64   # rollouts, where the card has thousands


@pytest.fixture(scope='module', params=ROBOTS)
def spec(request):
    return RobotSpec.load(request.param)


@pytest.fixture(scope='module')
def pendulum():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def model(spec):
    return load_checkpoint(shipped_model(spec))


@pytest.fixture(scope='module')
def metrics(model):
    return model.card['metrics']


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


def test_the_card_says_how_it_was_made_and_measured(spec, model, metrics):
    assert model.card['command'].startswith('nerd-ros train')
    assert model.card['data']['command'].startswith('nerd-ros generate')
    assert metrics['version'] == METRICS_VERSION
    assert metrics['rollouts'] >= 2048
    assert metrics['duration'] == spec.evaluation.duration
    assert set(metrics['free_running']) == {c.key for c in conditions(spec, model.layout)}
    for part in metrics['divergence'].values():
        assert part['rollouts'] >= 2048 and part['seconds'] >= 10.0
        assert part['diverged'] == 0


def test_free_motion_is_as_good_as_the_card_says(spec, model, metrics, teacher):
    runner = FreeRunner(spec, model, COUNT)
    steps = round(spec.evaluation.duration / spec.dt)
    for condition in conditions(spec, teacher.layout):
        # Other rollouts than those of the card: no model can be good on those alone.
        held = held_out(spec, teacher, COUNT, metrics['seed'] + 1, steps, condition.passive,
                        condition.ground)
        motion = free_accuracy(runner, teacher, held, condition, MechanicalEnergy(spec), 1)
        claimed = metrics['free_running'][condition.key]
        # Means hang on a few chaotic rollouts, so a sample cannot tell; medians and shares can.
        for g, group in enumerate(groups(teacher.layout)):
            median = np.median(motion.distances[NEURAL].mean[:, -1, g])
            assert 0.4 < median / claimed[group]['median'] < 2.5, (condition, group)
        share = claimed['within_share']
        deviation = np.sqrt(share * (1.0 - share) / COUNT)
        assert abs(motion.within.mean() - share) < 4.0 * deviation + 0.02, condition
        assert motion.stopped == 0


def test_random_efforts_do_not_make_it_diverge(spec, model, metrics, teacher):
    for passive in (True, False):
        if ('passive' if passive else 'random') in metrics['divergence']:
            part = count_divergence(spec, model, teacher, COUNT, 2.5, 3, passive)
            assert part.diverged == 0


@pytest.mark.parametrize('start', [(0.0, 0.0), (0.6, -0.4)])
def test_a_pendulum_at_rest_does_not_creep(pendulum, start):
    simulation = Simulation(pendulum, 'empty', 'neural')
    simulation.set_state(start, (0.0, 0.0))
    simulation.step(round(6.0 / pendulum.dt))   # longer than friction lets it swing
    first, largest = simulation.joint_q[0].copy(), 0.0
    for _ in range(round(2.0 / pendulum.dt)):
        simulation.step()
        largest = max(largest, np.abs(simulation.joint_q[0] - first).max())
    assert largest < 1e-3


def test_it_follows_the_real_machine(pendulum, shared_data):
    bag = shared_data / 'double_pendulum' / 'sys_id_143524'
    result = evaluate_bag(pendulum, bag, solvers=('neural',), console=Console(file=StringIO()))
    for horizon in (0.05, 0.2):
        step = round(horizon / pendulum.dt)
        assert (result.rms('neural')[step] < 0.3 * result.rms(HOLD_STATE)[step]).all()
