# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Batches come from all trajectories, alike for any number of processes; jumps are not learned."""

import numpy as np
import pytest
import torch

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.generate import generate
from nerd_ros.learning.data.trajectories import TrajectoryFile
from nerd_ros.learning.training import training_data
from nerd_ros.learning.training.optimisation import TrainingError
from nerd_ros.learning.training.training_data import Batch, convert, fit_normalisers, TrainingData
from nerd_ros.scene.robot.robot_spec import RobotSpec


@pytest.fixture(scope='module')
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp('data') / 'small.h5'
    generate(RobotSpec.load('double_pendulum'), path, 70, seed=3, progress=False)
    with TrajectoryFile(path) as file:
        yield file


@pytest.fixture(autouse=True)
def several_blocks(monkeypatch):
    monkeypatch.setattr(training_data, '_BLOCK', 25)


def stored(file) -> Batch:
    """All trajectories of a file; a slot out of sight of anything is put at the origin."""
    batch = Batch.of(file.read())
    batch.contacts[batch.contacts[..., 6] >= file.layout.contact_threshold, :6] = 0.0
    return batch


def test_an_epoch_is_each_trajectory_once_in_a_new_order(file):
    everything = stored(file)
    data = TrainingData(file, batch=16, seed=0)
    epochs = [[data.batch(4 * epoch + step) for step in range(4)] for epoch in range(2)]
    for batches in epochs:
        for values, expected in zip(map(torch.cat, zip(*batches)), everything):
            assert values.dtype == torch.float32
            # 70 trajectories are four batches, and six are left over.
            assert torch.equal(*(array.flatten(1).unique(dim=0)
                                 for array in (values, expected[:64])))
    assert not torch.equal(epochs[0][0].joint_q, epochs[1][0].joint_q)
    assert not torch.equal(TrainingData(file, 16, seed=1).batch(0).joint_q,
                           epochs[0][0].joint_q)
    # Whatever was asked for before, as after a resume.
    assert torch.equal(TrainingData(file, 16, seed=0).batch(6).joint_q, epochs[1][2].joint_q)


@pytest.mark.parametrize('processes', [2, 4])
def test_processes_share_each_batch(file, processes):
    whole = TrainingData(file, 16, 0)
    parts = [TrainingData(file, 16, 0, rank, processes) for rank in range(processes)]
    for step in (0, 5):
        together = Batch(*map(torch.cat, zip(*(part.batch(step) for part in parts))))
        for values, expected in zip(together, whole.batch(step)):
            assert torch.equal(values, expected)
    for part in parts:
        assert len(part) == 64 // processes


def test_contacts_out_of_sight_are_nothing_to_a_model(file):
    data = TrainingData(file, 64, seed=0)
    batch, everything = data.batch(0), Batch.of(file.read(0, 64))
    order = torch.tensor([int((everything.joint_q == joint_q).flatten(1).all(1).nonzero())
                          for joint_q in batch.joint_q])
    assert not torch.equal(batch.contacts, everything.contacts[order])
    for values, expected in zip(convert(file.layout, batch), convert(file.layout, everything)):
        torch.testing.assert_close(values, expected[order], rtol=0.0, atol=1e-5)


def test_a_batch_that_cannot_be_shared_is_refused(file):
    with pytest.raises(TrainingError, match='batch of 16 .* among 3 processes; choose a batch'):
        TrainingData(file, 16, 0, 0, 3)


def test_a_jump_is_no_part_of_the_target(file):
    trajectories, layout = file.read(), file.layout
    _, increments = convert(layout, Batch.of(trajectories))
    expected = np.diff(trajectories.joint_qd, axis=1) - trajectories.jump
    assert trajectories.jump.any()
    assert increments[..., layout.nqd:].numpy() == pytest.approx(expected, abs=1e-4)


def test_normalisers_come_from_a_part_of_all_steps(file, monkeypatch):
    whole, part = NerdModel(file.layout), NerdModel(file.layout)
    fit_normalisers(whole, file, 0)
    tokens, _ = convert(file.layout, Batch.of(file.read()))
    torch.testing.assert_close(whole.token_mean, tokens.flatten(0, 1).mean(0))
    monkeypatch.setattr(training_data, '_SAMPLE_STEPS', 2000)
    monkeypatch.setattr(training_data, '_SAMPLE_PART', 16)
    fit_normalisers(part, file, 0)
    # The 2000 of 7000 are not quite the same.
    spread = (part.token_mean - whole.token_mean).abs() / whole.token_std
    assert 0.0 < spread.max() < 0.1
