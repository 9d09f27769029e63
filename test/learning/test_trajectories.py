# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The trajectory file: what is written comes back, and misuse is one sentence."""

import fcntl
from pathlib import Path
import shutil
import subprocess

import h5py
import numpy as np
import pytest

from nerd_ros.dynamics.layout import JointLayout, RobotLayout, SlotLayout
from nerd_ros.learning.data.trajectories import Trajectories, TrajectoryError, TrajectoryFile

LAYOUT = RobotLayout(
    robot='arm', dt=0.01, floating=False,
    joints=(JointLayout('turn', 'continuous', -1e10, 1e10, 2.0),
            JointLayout('slide', 'prismatic', 0.0, 1.0, 5.0)),
    slots=(SlotLayout('hand', (0.0, 0.0, 0.1), 0.02),),
    contact_threshold=0.1, base_com=(0.0, 0.0, 0.0), fingerprint='abc')


def batch(count, steps=4):
    rng = np.random.default_rng(count)
    shapes = {'joint_q': (steps + 1, 2), 'joint_qd': (steps + 1, 2), 'effort': (steps, 2),
              'contacts': (steps, 1, 7), 'jump': (steps, 2), 'gravity': (3,), 'base_pose': (7,),
              'ground': (4,), 'box': (10,)}
    return Trajectories(**{name: rng.normal(size=(count, *shape)).astype(np.float32)
                           for name, shape in shapes.items()})


def create(path, count=5, chunk=3):
    return TrajectoryFile.create(path, LAYOUT, count, 4, seed=7, settings={'arm': 'long'},
                                 command='nerd-ros generate arm', chunk=chunk)


def test_round_trip(tmp_path):
    path = tmp_path / 'new' / 'arm.h5'
    first, second = batch(3), batch(2)
    with create(path) as file:
        assert file.missing_chunks == [0, 1]
        file.write(1, second)
        file.write(0, first)
    with TrajectoryFile(path) as file:
        assert (file.num_trajectories, file.steps, file.seed, file.chunk) == (5, 4, 7, 3)
        assert file.layout == LAYOUT
        assert file.about == {'command': 'nerd-ros generate arm', 'seed': 7, 'trajectories': 5,
                              'steps': 4, 'arm': 'long'}
        everything, middle = file.read(), file.read(2, 4)
    assert len(everything) == 5 and len(middle) == 2
    for name, values in vars(everything).items():
        expected = np.concatenate([getattr(first, name), getattr(second, name)])
        assert np.array_equal(values, expected)
        assert np.array_equal(getattr(middle, name), expected[2:4])


def test_what_is_not_finite_is_named(tmp_path):
    with create(tmp_path / 'arm.h5') as file:
        first, second = batch(3), batch(2)
        second.effort[1, 2] = np.nan
        file.write(0, first)
        file.write(1, second)
        assert len(file.read(0, 4)) == 4
        with pytest.raises(TrajectoryError, match='arm.h5: effort of trajectory 4 is not finite'):
            file.read()


def test_a_place_that_cannot_be_written_is_one_sentence(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises((TrajectoryError, OSError)):
        create(tmp_path / 'file' / 'arm.h5')
    with pytest.raises(TrajectoryError, match='/proc/arm.h5: .*; choose another place'):
        create(Path('/proc/arm.h5'))


def test_unfinished_files_are_not_read(tmp_path):
    with create(tmp_path / 'arm.h5') as file:
        file.write(0, batch(3))
        with pytest.raises(TrajectoryError, match='arm.h5: 1 of 2 chunks are missing'):
            file.read()


def test_misuse_is_named(tmp_path):
    with pytest.raises(TrajectoryError, match='gone.h5: no such.*`nerd-ros generate`'):
        TrajectoryFile(tmp_path / 'gone.h5')
    with pytest.raises(TrajectoryError, match='is a folder; give the name of a file'):
        TrajectoryFile(tmp_path)
    (tmp_path / 'text.h5').write_text('text')
    with pytest.raises(TrajectoryError, match='text.h5: damaged, or not an HDF5 file; choose '
                                              'another file, or delete this one'):
        TrajectoryFile(tmp_path / 'text.h5')
    create(tmp_path / 'arm.h5').close()
    with pytest.raises(TrajectoryError, match='arm.h5: exists already'):
        create(tmp_path / 'arm.h5')
    for version in (1, 99):   # files of version 1 have no boxes
        with h5py.File(tmp_path / 'arm.h5', 'r+') as file:
            file.attrs['format_version'] = version
        with pytest.raises(TrajectoryError, match=f'arm.h5: format version {version}, this '
                                                  'program reads 2; .* generate it anew'):
            TrajectoryFile(tmp_path / 'arm.h5')
    h5py.File(tmp_path / 'other.h5', 'w').close()
    with pytest.raises(TrajectoryError, match='other.h5: format version None'):
        TrajectoryFile(tmp_path / 'other.h5')


@pytest.mark.parametrize('mode', ['r', 'r+'])
def test_a_file_that_is_still_written_is_not_to_be_deleted(tmp_path, mode):
    create(tmp_path / 'arm.h5').close()
    with open(tmp_path / 'arm.h5', 'r+b') as file:
        fcntl.flock(file, fcntl.LOCK_EX)   # as HDF5 does
        with pytest.raises(TrajectoryError, match='arm.h5: open elsewhere.*; wait for its end'):
            TrajectoryFile(tmp_path / 'arm.h5', mode)
    TrajectoryFile(tmp_path / 'arm.h5', mode).close()


def test_what_the_system_refuses_is_not_called_damaged(tmp_path):
    # A program that runs cannot be opened for writing, whoever asks.
    path = Path(shutil.copy(shutil.which('sleep'), tmp_path / 'arm.h5'))
    with subprocess.Popen([path, '60']) as process:
        try:
            with pytest.raises(TrajectoryError, match='arm.h5: cannot be opened: Text file busy; '
                                                      'check permissions'):
                TrajectoryFile(path, 'r+')
        finally:
            process.kill()


def without_layout(file):
    del file.attrs['layout']


def with_another_layout(file):
    file.attrs['layout'] = '{"robot": "arm"}'


def with_settings_cut_off(file):
    file.attrs['settings'] = '{"sampling": {'


def without_efforts(file):
    del file['effort']


def with_fewer_states(file):
    del file['joint_qd']
    file['joint_qd'] = np.zeros((5, 4, 2), np.float32)


@pytest.mark.parametrize('damage, words', [
    (without_layout, 'layout'), (with_another_layout, 'dt'), (with_settings_cut_off, 'Expecting'),
    (without_efforts, 'effort'), (with_fewer_states, r'joint_qd has the shape \(5, 4, 2\)')])
def test_damage_is_named(tmp_path, damage, words):
    path = tmp_path / 'arm.h5'
    create(path).close()
    with h5py.File(path, 'r+') as file:
        damage(file)
    with pytest.raises(TrajectoryError, match=f'arm.h5: damaged.*{words}.*generate it anew'):
        TrajectoryFile(path)


def test_damaged_values_are_named(tmp_path):
    path = tmp_path / 'arm.h5'
    resting = {name: np.zeros_like(values) for name, values in vars(batch(5)).items()}
    with create(path, chunk=5) as file:
        file.write(0, Trajectories(**resting))
    with h5py.File(path) as file:
        place = file['contacts'].id.get_chunk_info(0)
    with open(path, 'r+b') as file:
        file.seek(place.byte_offset)
        file.write(b'\xff' * place.size)
    with TrajectoryFile(path) as file:
        with pytest.raises(TrajectoryError, match='arm.h5: damaged.*generate it anew'):
            file.read()
