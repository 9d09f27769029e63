# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Training lowers the loss, goes on where it stopped, and keeps a model that can be loaded."""

from pathlib import Path
import subprocess
import sys

import pytest
from safetensors import safe_open
from safetensors.torch import load_file
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.dynamics.layout import JointLayout, RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig
from nerd_ros.learning.data.generate import generate
from nerd_ros.learning.data.trajectories import TrajectoryError
from nerd_ros.learning.training import train as train_module
from nerd_ros.learning.training.optimisation import Optimisation, STATE, TrainingError
from nerd_ros.learning.training.train import train
from nerd_ros.learning.training.validation import Validation
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec


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
    monkeypatch.setattr(Validation, 'count', 4)
    monkeypatch.setattr(Validation, 'longest', 0.2)


def run(spec, data, out, **options):
    options = {'steps': 40, 'check_every': 20, 'batch': 8, 'width': 32, **options}
    return train(spec, data, out, compiled=False, progress=False, **options)


def logged(folder) -> dict[str, list[tuple[int, float]]]:
    """Steps and values of each tag in TensorBoard's log, but how fast it went."""
    log = EventAccumulator(str(folder)).Reload()
    return {tag: [(event.step, event.value) for event in log.Scalars(tag)]
            for tag in log.Tags()['scalars'] if tag != 'steps_per_second'}


def test_a_training_leaves_a_model_with_its_card_and_a_log(spec, data, tmp_path, capsys):
    run(spec, data, tmp_path, command='nerd-ros train')
    model = load_checkpoint(tmp_path)
    assert model.card['command'] == 'nerd-ros train'
    assert model.card['data']['trajectories'] == 64
    log = logged(tmp_path)
    free = [f'free_running/{motion}_{where}_ground' for motion in ('passive', 'random')
            for where in ('with', 'without')]
    assert set(log) == {'loss/training', 'loss/validation', 'learning_rate/Muon',
                        'learning_rate/AdamW', *free}
    assert [step for step, _ in log['loss/training']] == list(range(1, 41))
    assert log['learning_rate/Muon'][-1][1] < 0.1 * log['learning_rate/Muon'][5][1]
    for tag in ('loss/validation', *free):
        assert [step for step, _ in log[tag]] == [20, 40]
    assert log['loss/validation'][1][1] < log['loss/validation'][0][1]
    assert model.card['validation']['passive_with_ground'] in [
        pytest.approx(value) for _, value in log['free_running/passive_with_ground']]
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[:3] for line in lines] == [['step', '20', 'loss'], ['step', '40', 'loss']]


def test_a_training_can_start_from_a_model(spec, data, tmp_path):
    run(spec, data, tmp_path / 'first')
    first = load_checkpoint(tmp_path / 'first')
    run(spec, data, tmp_path / 'second', start=tmp_path / 'first')
    second = load_checkpoint(tmp_path / 'second')
    assert second.card['started_from']['data'] == first.card['data']
    assert torch.equal(first.token_mean, second.token_mean)
    weights = [m.network.embed.weight for m in (first, second)]
    assert 0.0 < (weights[0] - weights[1]).abs().mean() < 0.1 * weights[0].abs().mean()


def test_a_stopped_training_goes_on_as_if_never_stopped(spec, data, tmp_path, monkeypatch):
    monkeypatch.setattr(train_module, 'RECORDS', 2)   # so the state is saved every ten steps
    whole = run(spec, data, tmp_path / 'whole')
    step = Optimisation.step

    def stop_at_35(self, loss):
        if self.schedules[0].last_epoch == 35:
            raise KeyboardInterrupt
        step(self, loss)
    monkeypatch.setattr(Optimisation, 'step', stop_at_35)
    with pytest.raises(KeyboardInterrupt):
        run(spec, data, tmp_path / 'stopped')
    monkeypatch.setattr(Optimisation, 'step', step)
    with safe_open(tmp_path / 'stopped' / STATE, 'pt') as state:
        assert state.metadata()['step'] == '30'
    resumed = run(spec, data, tmp_path / 'stopped')
    for name, value in whole.state_dict().items():
        assert torch.equal(value, resumed.state_dict()[name]), name
    # The steps that were taken twice are in the log once.
    assert logged(tmp_path / 'whole') == logged(tmp_path / 'stopped')
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


def test_two_processes_train_as_one_does(spec, data, tmp_path):
    def torchrun(steps: int):
        subprocess.run(
            [sys.executable, '-m', 'torch.distributed.run', '--standalone', '--nproc-per-node=2',
             Path(__file__).with_name('train_in_processes.py'), data, tmp_path / 'two',
             str(steps)], check=True)
        return [load_file(tmp_path / 'two' / f'rank{rank}.safetensors') for rank in (0, 1)]

    one = run(spec, data, tmp_path / 'one', steps=8, check_every=4)
    weights = torchrun(8)
    for name, value in weights[0].items():
        assert torch.equal(value, weights[1][name]), name
        if name not in dict(one.named_parameters()):   # normalisers
            assert torch.equal(value, one.state_dict()[name]), name
    alone, together = logged(tmp_path / 'one'), logged(tmp_path / 'two')
    assert alone.keys() == together.keys()
    for tag, values in alone.items():
        assert [step for step, _ in together[tag]] == [step for step, _ in values]
        # Rounding is all that differs, and free motion makes more of it than a step does.
        near = pytest.approx([value for _, value in values], rel=1e-2 if 'free' in tag else 1e-3)
        assert [value for _, value in together[tag]] == near, tag
    # One process goes on where two stopped, if need be.
    again = run(spec, data, tmp_path / 'two', steps=8, check_every=4)
    assert torch.equal(again.network.embed.weight, weights[0]['network.embed.weight'])


def test_a_robot_with_a_floating_base_is_trained(tmp_path):
    spec = RobotSpec.load('cube')
    generate(spec, tmp_path / 'cube.h5', 16, progress=False)
    run(spec, tmp_path / 'cube.h5', tmp_path, steps=4, check_every=2)
    checked = load_checkpoint(tmp_path).card['validation']
    assert set(checked) == {'step', 'one_step', 'passive_with_ground'}


def test_what_cannot_be_trained_is_refused(spec, data, tmp_path):
    with pytest.raises(TrajectoryError, match='fewer than one batch of 100; generate more'):
        run(spec, data, tmp_path, batch=100)
    with pytest.raises(RobotError, match='section evaluation is missing'):
        run(spec.model_copy(update={'evaluation': None}), data, tmp_path)
    for wrong in ({'batch': 0}, {'batch': -3}, {'steps': 0}):
        with pytest.raises(TrainingError, match='give at least one of each'):
            run(spec, data, tmp_path, **wrong)
    with pytest.raises(ValueError, match='is no seed'):
        run(spec, data, tmp_path, seed=2**70)
    with pytest.raises(TrainingError, match='no device tpu; choose cpu or cuda'):
        run(spec, data, tmp_path, device='tpu')
    if not torch.cuda.is_available():
        with pytest.raises(TrainingError, match='no GPU'):
            run(spec, data, tmp_path, device='cuda')


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
