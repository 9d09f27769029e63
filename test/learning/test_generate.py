# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Generation: reproducible, resumable, and distributed as the RobotSpec says."""

import multiprocessing

import numpy as np
import pytest

from nerd_ros.learning.data.generate import generate
from nerd_ros.learning.data.random_trajectories import sample_trajectories
from nerd_ros.learning.data.sampling import Sampler
from nerd_ros.learning.data.teacher_processes import ProcessError
from nerd_ros.learning.data.trajectories import TrajectoryError, TrajectoryFile
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.teacher import TeacherRollouts

COUNT = 256


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


@pytest.fixture(scope='module')
def sample(spec, teacher):
    return sample_trajectories(spec, teacher, COUNT, np.random.default_rng(0))


@pytest.fixture
def quick(spec):
    return spec.model_copy(update={'sampling': spec.sampling.model_copy(
        update={'steps': 10, 'settle_steps': 5})})


def read(path):
    with TrajectoryFile(path) as file:
        return file.read()


def same(first, second):
    return all(np.array_equal(values, getattr(second, name))
               for name, values in vars(first).items())


def test_reproducible_and_resumable(quick, tmp_path, monkeypatch):
    """A file that was begun by processes, of which one died, is that of one process."""
    options = {'num_trajectories': 20, 'seed': 3, 'chunk': 1, 'progress': False}
    generate(quick, tmp_path / 'a.h5', **options)
    write = TrajectoryFile.write

    def die(self, index, batch):
        write(self, index, batch)
        multiprocessing.active_children()[0].kill()
    monkeypatch.setattr(TrajectoryFile, 'write', die)
    with pytest.raises(ProcessError, match='ended too early.*goes on where it stopped.*than 2'):
        generate(quick, tmp_path / 'b.h5', processes=2, **options)
    assert not multiprocessing.active_children()
    monkeypatch.undo()
    with TrajectoryFile(tmp_path / 'b.h5') as file:
        assert 0 < len(file.missing_chunks) < 20
    generate(quick, tmp_path / 'b.h5', **options)
    whole = read(tmp_path / 'a.h5')
    assert same(whole, read(tmp_path / 'b.h5'))
    generate(quick, tmp_path / 'c.h5', **{**options, 'seed': 4})
    assert not np.array_equal(whole.joint_q, read(tmp_path / 'c.h5').joint_q)


def test_what_is_done_stays_after_ctrl_c(quick, tmp_path, monkeypatch):
    options = {'num_trajectories': 20, 'chunk': 8, 'progress': False}
    write = TrajectoryFile.write

    def stop_at_second(self, index, batch):
        if index == 1:
            raise KeyboardInterrupt
        write(self, index, batch)
    monkeypatch.setattr(TrajectoryFile, 'write', stop_at_second)
    with pytest.raises(KeyboardInterrupt):
        generate(quick, tmp_path / 'a.h5', **options)
    monkeypatch.undo()
    with TrajectoryFile(tmp_path / 'a.h5') as file:
        assert file.missing_chunks == [1, 2]
    generate(quick, tmp_path / 'a.h5', **options)
    generate(quick, tmp_path / 'b.h5', **options)
    assert same(read(tmp_path / 'a.h5'), read(tmp_path / 'b.h5'))


def test_other_trajectories_are_not_mixed_in(quick, tmp_path):
    path = tmp_path / 'a.h5'
    generate(quick, path, 4, progress=False)
    with pytest.raises(TrajectoryError, match=r'a.h5: holds trajectories of another number \(4 in '
                       r'chunks of 4; 5 in chunks of 5 asked for\) and seed \(0; 1 asked for\);'):
        generate(quick, path, 5, seed=1, progress=False)
    path.write_bytes(damaged := path.read_bytes()[:-100])
    with pytest.raises(TrajectoryError, match='choose another file, or delete this one'):
        generate(quick, path, 4, progress=False)
    assert path.read_bytes() == damaged
    with pytest.raises(TrajectoryError, match='give at least one'):
        generate(quick, tmp_path / 'b.h5', 0)
    with pytest.raises(TrajectoryError, match='0 processes'):
        generate(quick, tmp_path / 'b.h5', 4, processes=0)
    with pytest.raises(ValueError, match='-1 is no seed; .* 0 to 4294967295'):
        generate(quick, tmp_path / 'b.h5', 4, seed=-1)
    with pytest.raises(RobotError, match='sampling is missing'):
        generate(quick.model_copy(update={'sampling': None}), tmp_path / 'b.h5', 4)


def test_each_step_leads_to_the_next(spec, teacher, sample):
    """State t, effort t and the jump after step t give state t + 1."""
    rows = np.arange(32)
    for t in (0, 50, 99):
        q, qd = teacher.rollout(
            sample.joint_q[rows, t], sample.joint_qd[rows, t], sample.effort[rows, t:t + 1],
            sample.ground[rows], sample.jump[rows, t:t + 1], box=sample.box[rows])
        assert q[:, 1] == pytest.approx(sample.joint_q[rows, t + 1], abs=1e-4)
        assert qd[:, 1] == pytest.approx(sample.joint_qd[rows, t + 1], abs=1e-2)
    seen = teacher.contacts(sample.joint_q[:, 7:8], sample.ground, sample.box)[:, 0]
    assert seen == pytest.approx(sample.contacts[:, 7], abs=1e-5)


def test_shares_and_ranges(spec, sample):
    sampling = spec.sampling
    passive = (sample.effort == 0).all(axis=(1, 2)).mean()
    assert passive == pytest.approx(sampling.passive_share, abs=0.1)
    assert np.abs(sample.effort).max() <= 6.0
    no_ground = np.isneginf(sample.ground[:, 3]).mean()
    assert no_ground == pytest.approx(sampling.no_ground_share, abs=0.1)
    box = (sample.box[:, 7] > 0.0).mean()
    assert box == pytest.approx(sampling.box_share, abs=0.06)
    jumps = (sample.jump != 0).sum(axis=(1, 2)) / spec.sampling.steps
    slow = jumps > 0.1
    assert slow.mean() == pytest.approx(sampling.slow_share, abs=0.1)
    assert (jumps[~slow] > 0).mean() == pytest.approx(sampling.jump_share, abs=0.1)
    speed = np.abs(sample.joint_qd)
    assert 4.0 * np.median(speed[slow]) < np.median(speed[~slow])
    assert np.linalg.norm(sample.ground[:, :3], axis=1) == pytest.approx(np.ones(COUNT))
    assert np.isfinite(sample.joint_q).all() and np.isfinite(sample.contacts).all()


def test_initial_states_do_not_reach_into_the_ground(sample):
    assert sample.contacts[:, 0, :, 6].min() > -0.01   # settled ones press a little
    grounded = ~np.isneginf(sample.ground[:, 3])
    touched = (sample.contacts[grounded][..., 6] < 0.0).any(axis=(1, 2)).mean()
    assert touched > 0.25


def test_distance_of_base_and_plane(spec, teacher, sample):
    grounded = ~np.isneginf(sample.ground[:, 3])
    distance = sample.ground[:, :3] @ teacher.base_pose[:3] - sample.ground[:, 3]
    low, high = spec.sampling.ground_distance
    assert (distance[grounded] > low - 1e-6).all() and (distance[grounded] < high + 1e-6).all()


def test_efforts_are_held_or_smooth(spec, teacher):
    held, smooth = (Sampler(teacher.layout, spec.sampling.model_copy(update={
        'passive_share': 0.0, 'single_joint_share': 0.0, 'smooth_share': share}),
        np.random.default_rng(1)).efforts(50, 100) for share in (0.0, 1.0))
    changes = (np.diff(held, axis=1) != 0).mean()
    assert 1 / 30 < changes < 1 / 8
    assert (np.diff(smooth, axis=1) != 0).mean() > 0.95
    single = Sampler(teacher.layout, spec.sampling.model_copy(update={
        'passive_share': 0.0, 'single_joint_share': 1.0}), np.random.default_rng(1)
    ).efforts(50, 100)
    assert ((single != 0).any(axis=1).sum(axis=1) == 1).all()


def test_walls_and_ceilings_are_among_the_planes(spec, teacher):
    planes = Sampler(teacher.layout, spec.sampling, np.random.default_rng(0)).planes(
        2000, teacher.base_pose)
    up = planes[:, 2]
    assert (up < -0.7).mean() > 0.03 and (np.abs(up) < 0.5).mean() > 0.05
    assert (up > 0.69).mean() > 0.6


def test_boxes_lie_around_the_base(spec, teacher):
    boxes = Sampler(teacher.layout, spec.sampling, np.random.default_rng(0)).boxes(
        500, teacher.base_pose)
    low, high = spec.sampling.box_size
    assert (2.0 * boxes[:, 7:] >= low).all() and (2.0 * boxes[:, 7:] <= high).all()
    assert np.linalg.norm(boxes[:, 3:7], axis=1) == pytest.approx(np.ones(500))
    away = np.linalg.norm(boxes[:, :3] - teacher.base_pose[:3], axis=1)
    assert (away > spec.sampling.box_distance[0] + boxes[:, 7:].min(axis=1)).all()
    assert (away < spec.sampling.box_distance[1] + np.linalg.norm(boxes[:, 7:], axis=1)).all()
    # In the plane in which the robot swings, to all of its sides.
    assert np.abs(boxes[:, 1]).max() < 0.2
    assert (boxes[:, 0] > 0.2).mean() > 0.2 and (boxes[:, 2] < 0.4).mean() > 0.2
