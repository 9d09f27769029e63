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
from nerd_ros.learning.optimisation import Optimisation, STATE, TrainingError
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


@pytest.fixture(autouse=True)
def short_checks(monkeypatch):
    monkeypatch.setattr(training, 'VALIDATION_COUNT', 4)
    monkeypatch.setattr(training, 'VALIDATION_SECONDS', 0.2)


def run(spec, data, out, **options):
    options = {'steps': 40, 'check_every': 20, 'batch': 8, 'width': 32, **options}
    return training.train(spec, data, out, compiled=False, progress=False, **options)


def test_a_training_leaves_a_model_with_its_card(spec, data, tmp_path):
    run(spec, data, tmp_path, command='nerd-ros train')
    model = load_checkpoint(tmp_path)
    assert model.card['command'] == 'nerd-ros train'
    assert model.card['data']['trajectories'] == 64
    log = [json.loads(line) for line in (tmp_path / training.LOG).read_text().splitlines()]
    assert [row['step'] for row in log] == [20, 40]
    assert log[1]['loss'] < log[0]['loss']


def test_a_training_can_start_from_a_model(spec, data, tmp_path):
    run(spec, data, tmp_path / 'first')
    first = load_checkpoint(tmp_path / 'first')
    run(spec, data, tmp_path / 'second', start=tmp_path / 'first')
    second = load_checkpoint(tmp_path / 'second')
    assert second.card['started_from']['data'] == first.card['data']
    assert torch.equal(second.token_mean, first.token_mean)
    weights = [m.network.embed.weight for m in (first, second)]
    assert 0.0 < (weights[0] - weights[1]).abs().mean() < 0.1 * weights[0].abs().mean()


def test_a_stopped_training_goes_on_as_if_never_stopped(spec, data, tmp_path, monkeypatch):
    whole = run(spec, data, tmp_path / 'whole')
    step = Optimisation.step

    def stop_at_30(self, loss):
        if self.schedules[0].last_epoch == 30:   # ten steps after the state was saved
            raise KeyboardInterrupt
        step(self, loss)
    monkeypatch.setattr(Optimisation, 'step', stop_at_30)
    with pytest.raises(KeyboardInterrupt):
        run(spec, data, tmp_path / 'stopped')
    monkeypatch.setattr(Optimisation, 'step', step)
    resumed = run(spec, data, tmp_path / 'stopped')
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    logs = [[{key: row[key] for key in ('step', 'loss', 'free', 'ground')} for row in map(
        json.loads, (tmp_path / folder / training.LOG).read_text().splitlines())]
        for folder in ('whole', 'stopped')]
    assert logs[0] == logs[1]
    kept = [load_checkpoint(tmp_path / folder) for folder in ('whole', 'stopped')]
    assert torch.equal(*(model.network.embed.weight for model in kept))


def test_a_training_goes_on_with_its_own_data_only(spec, data, tmp_path):
    here, out = tmp_path / 'here.h5', tmp_path / 'out'
    here.write_bytes(data.read_bytes())
    run(spec, here, out)
    here.rename(tmp_path / 'moved.h5')
    run(spec, tmp_path / 'moved.h5', out)
    generate(spec, here, 64, seed=4, progress=False)
    with pytest.raises(TrainingError, match=r'other data or settings: data.seed 3 against 4\. Go'):
        run(spec, here, out)
    here.unlink()
    rougher = spec.model_copy(update={'joints': {
        name: joint.model_copy(update={'friction': 0.5}) for name, joint in spec.joints.items()}})
    generate(rougher, here, 64, seed=3, progress=False)
    with pytest.raises(TrainingError, match='data.joints.shoulder.friction None against 0.5'):
        run(spec, here, out)


def test_too_few_trajectories_are_refused(spec, data, tmp_path):
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


@pytest.mark.parametrize('content', [b'', b'text', 'cut off', 'changed', 'without version'])
def test_a_damaged_state_is_one_sentence(tmp_path, content):
    optimisation = small_optimisation()
    update(optimisation, 0)
    optimisation.save(tmp_path, 1, 1.0)
    path = tmp_path / STATE
    whole = path.read_bytes()
    path.write_bytes({'cut off': whole[:-100],
                      'changed': whole.replace(b'model.token_mean', b'model.token_moan'),
                      'without version': whole.replace(b'format_version', b'format_virsion'),
                      }.get(content, content))
    with pytest.raises(TrainingError, match=f'{STATE}: .*; delete it to train from the start'):
        small_optimisation().resume(tmp_path)
