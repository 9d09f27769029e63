# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Training lowers the loss, goes on where it stopped, and keeps a model that can be loaded."""

import json

import numpy as np
import pytest
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.dynamics.layout import JointLayout, RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig
from nerd_ros.learning import train as training
from nerd_ros.learning.generate import generate
from nerd_ros.learning.optimisation import Optimisation, TrainingError
from nerd_ros.learning.trajectories import TrajectoryError
from nerd_ros.scene.robot_spec import RobotSpec


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def data(spec, tmp_path_factory):
    path = tmp_path_factory.mktemp('data') / 'small.h5'
    generate(spec, path, 64, seed=3, progress=False)
    return path


def run(spec, data, out, **options):
    options = {'steps': 40, 'check_every': 20, 'batch': 8, 'width': 32, **options}
    return training.train(spec, data, out, compiled=False, progress=False, **options)


def test_a_training_leaves_a_model_with_its_card(spec, data, tmp_path, monkeypatch):
    monkeypatch.setattr(training, 'VALIDATION_COUNT', 4)
    run(spec, data, tmp_path, command='nerd-ros train')
    model = load_checkpoint(tmp_path)
    assert model.card['command'] == 'nerd-ros train'
    assert model.card['data']['trajectories'] == 64
    log = [json.loads(line) for line in (tmp_path / training.LOG).read_text().splitlines()]
    assert [row['step'] for row in log] == [20, 40]
    assert log[1]['loss'] < log[0]['loss']


def test_a_training_can_start_from_a_model(spec, data, tmp_path, monkeypatch):
    monkeypatch.setattr(training, 'VALIDATION_COUNT', 4)
    run(spec, data, tmp_path / 'first')
    first = load_checkpoint(tmp_path / 'first')
    run(spec, data, tmp_path / 'second', start=tmp_path / 'first')
    second = load_checkpoint(tmp_path / 'second')
    assert second.card['started_from']['data'] == first.card['data']
    assert torch.equal(second.token_mean, first.token_mean)
    weights = [m.network.embed.weight for m in (first, second)]
    assert 0.0 < (weights[0] - weights[1]).abs().mean() < 0.1 * weights[0].abs().mean()


def test_too_few_trajectories_are_refused(spec, data, tmp_path, monkeypatch):
    monkeypatch.setattr(training, 'VALIDATION_COUNT', 4)
    with pytest.raises(TrajectoryError, match='fewer than one batch'):
        run(spec, data, tmp_path, batch=100)


def test_a_jump_is_no_part_of_the_target(spec, data):
    from nerd_ros.learning.trajectories import TrajectoryFile
    with TrajectoryFile(data) as file:
        batch, layout = file.read(), file.layout
    targets = training._convert(layout, batch)[1][..., layout.nqd:].numpy()
    expected = np.diff(batch.joint_qd, axis=1) - batch.jump
    assert batch.jump.any()
    assert targets == pytest.approx(expected, abs=1e-4)


def small_optimisation(steps=20, **settings):
    torch.manual_seed(0)
    layout = RobotLayout('arm', 0.01, False,
                         (JointLayout('turn', 'continuous', -1e10, 1e10, 6.0),), (), 0.1,
                         (0.0, 0.0, 0.0), 'a')
    return Optimisation(NerdModel(layout, TransformerConfig(width=16)), steps, settings)


def update(optimisation, step):
    torch.manual_seed(step)
    tokens = torch.randn(4, 12, len(optimisation.model.token_mean))
    optimisation.step(optimisation.model(tokens).sub(tokens[..., :2]).abs().mean())


def test_a_resumed_optimisation_goes_on_as_if_never_stopped(tmp_path):
    whole = small_optimisation()
    for step in range(10):
        update(whole, step)
    whole.save(tmp_path, 10, 0.5)
    resumed = small_optimisation()
    assert resumed.resume(tmp_path) == (10, 0.5)
    for step in range(10, 15):
        update(whole, step)
        update(resumed, step)
    for mine, theirs in ((whole.model, resumed.model), (whole.average, resumed.average)):
        for a, b in zip(mine.parameters(), theirs.parameters()):
            assert torch.equal(a, b)


def test_other_settings_are_not_resumed(tmp_path):
    first = small_optimisation(batch=16)
    update(first, 0)
    first.save(tmp_path, 1, 1.0)
    with pytest.raises(TrainingError, match='batch 16 against 32'):
        small_optimisation(batch=32).resume(tmp_path)
