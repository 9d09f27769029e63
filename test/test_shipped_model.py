# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The model that ships for the double pendulum does what its card says."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.learning.evaluate import count_divergence, DURATION, HOLD, NEURAL, passive_motion
from nerd_ros.learning.evaluate_bag import evaluate_bag
from nerd_ros.learning.evaluate_bag import HOLD as HOLD_STATE
from nerd_ros.learning.free_running import held_out
from nerd_ros.scene.robot_spec import RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.solvers import shipped_model
from nerd_ros.scene.teacher import TeacherRollouts


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def model(spec):
    return load_checkpoint(shipped_model(spec))


@pytest.fixture(scope='module')
def metrics(model):
    return model.card['metrics']


@pytest.fixture(scope='module')
def teacher(spec, metrics):
    return TeacherRollouts(spec, metrics['rollouts'])


def test_the_card_says_how_it_was_made_and_measured(model, metrics):
    assert model.card['command'].startswith('nerd-ros train')
    assert model.card['data']['command'].startswith('nerd-ros generate')
    assert metrics['rollouts'] >= 256
    assert metrics['divergence_rollouts'] >= 1000 and metrics['divergence_steps'] >= 1000
    assert metrics['diverged'] == 0


@pytest.mark.parametrize('ground', [False, True])
def test_passive_motion_is_as_good_as_the_card_says(spec, model, metrics, teacher, ground):
    held = held_out(spec, teacher, metrics['rollouts'], metrics['seed'],
                    round(DURATION / spec.dt), passive=True, ground=ground)
    motion = passive_motion(model, teacher, held, metrics['seed'])
    # The very rollouts of the card: what the rounding of another processor changes in the few
    # chaotic ones moves the mean by a percent.
    claimed = metrics['passive_error_with_ground' if ground else 'passive_error_without_ground']
    assert motion.mean(NEURAL) == pytest.approx(claimed, rel=0.1)
    assert motion.mean(NEURAL) < 0.1 * motion.mean(HOLD)
    assert motion.median(NEURAL) < 0.03 * motion.median(HOLD)


def test_random_efforts_do_not_make_it_diverge(spec, model, teacher):
    assert count_divergence(spec, model, teacher, 64, 500, seed=3).diverged == 0


@pytest.mark.parametrize('start', [(0.0, 0.0), (0.6, -0.4)])
def test_a_pendulum_at_rest_does_not_creep(spec, start):
    simulation = Simulation(spec, 'empty', 'neural')
    simulation.set_state(start, (0.0, 0.0))
    simulation.step(round(6.0 / spec.dt))   # longer than friction lets it swing
    first, largest = simulation.joint_q[0].copy(), 0.0
    for _ in range(round(2.0 / spec.dt)):
        simulation.step()
        largest = max(largest, np.abs(simulation.joint_q[0] - first).max())
    assert largest < 1e-3


def test_it_follows_the_real_machine(spec, shared_data):
    bag = shared_data / 'double_pendulum' / 'sys_id_143524'
    result = evaluate_bag(spec, bag, solvers=('neural',), console=Console(file=StringIO()))
    for horizon in (0.05, 0.2):
        step = round(horizon / spec.dt)
        assert (result.rms('neural')[step] < 0.3 * result.rms(HOLD_STATE)[step]).all()
