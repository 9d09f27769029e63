# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What `nerd-ros data show` says of a trajectory file, by values that are known."""

import io

import numpy as np
import pytest
from rich.console import Console

from nerd_ros.dynamics.layout import JointLayout, RobotLayout, SlotLayout
from nerd_ros.learning.data import coverage as module
from nerd_ros.learning.data.coverage import coverage
from nerd_ros.learning.data.coverage_report import show
from nerd_ros.learning.data.trajectories import Trajectories, TrajectoryError, TrajectoryFile

COUNT, STEPS = 10, 4
LAYOUT = RobotLayout(
    robot='walker', dt=0.01, floating=True,
    joints=(JointLayout('turn', 'continuous', -1e10, 1e10, 2.0),
            JointLayout('slide', 'prismatic', 0.0, 1.0, 0.0),
            JointLayout('ball', 'ball', -1e10, 1e10, 1.0)),
    slots=(SlotLayout('hand', (0.0, 0.0, 0.1), 0.02), SlotLayout('foot', (0.0, 0.0, 0.1), 0.02),
           SlotLayout('hand', (0.0, 0.0, 0.2), 0.02)),
    contact_threshold=0.1, base_com=(0.0, 0.0, 0.0), fingerprint='abc')


@pytest.fixture
def path(tmp_path):
    q = np.zeros((COUNT, STEPS + 1, LAYOUT.nq))
    q[..., 3], q[..., 6] = np.sin(0.25), np.cos(0.25)     # 0.5 rad about x
    q[..., 7] = 2.0 * np.pi - 0.5
    q[:, :, 8] = np.arange(COUNT)[:, None] / 10.0
    q[..., 11], q[..., 12] = np.sin(1.0), -np.cos(1.0)    # 2 rad about z, the other sign
    qd = np.zeros((COUNT, STEPS + 1, LAYOUT.nqd))
    qd[..., 2] = 1.0                                      # up, in the world
    qd[3, 2, 7] = -4.0
    effort = np.zeros((COUNT, STEPS, LAYOUT.num_dofs))
    effort[:5, :, 0] = 1.5
    contacts = np.full((COUNT, STEPS, 3, 7), 0.1)
    contacts[0, 0, 0, 6], contacts[1, 1, 2, 6] = -0.003, 0.04
    jump = np.zeros((COUNT, STEPS, LAYOUT.nqd))
    jump[:2, 1, 0] = 1.0
    ground = np.tile([0.0, 0.0, 1.0, -np.inf], (COUNT, 1))
    ground[:3, 3] = 0.0
    box = np.zeros((COUNT, 10))
    box[:1, 7:] = 0.1
    rows = Trajectories(joint_q=q, joint_qd=qd, effort=effort, contacts=contacts, jump=jump,
                        gravity=np.zeros((COUNT, 3)), base_pose=q[:, 0, :7], ground=ground,
                        box=box)
    with TrajectoryFile.create(tmp_path / 'walker.h5', LAYOUT, COUNT, STEPS, 7, {},
                               'nerd-ros generate', COUNT) as file:
        file.write(0, rows)
    return tmp_path / 'walker.h5'


@pytest.mark.parametrize('piece', [1024, 3])
def test_inputs_and_shares(path, monkeypatch, piece):
    monkeypatch.setattr(module, '_PIECE', piece)
    result = coverage(path)
    assert result.shares == pytest.approx({
        'without effort': 0.5, 'with velocity jumps': 0.2, 'above ground': 0.3,
        'near a box': 0.1, 'in contact at some time': 0.1})
    inputs = {one.name: one for one in result.inputs}
    assert list(inputs) == [
        'base tilt', *(f'base {kind} {axis}' for kind in ('velocity', 'angular velocity')
                       for axis in 'xyz'),
        'turn position', 'slide position', 'ball position', 'turn velocity', 'slide velocity',
        *(f'ball velocity {axis}' for axis in 'xyz'), 'turn effort',
        *(f'ball effort {axis}' for axis in 'xyz'), 'hand contact distance',
        'foot contact distance']
    for name, unit, low, high in (
            ('base tilt', 'rad', 0.5, 0.5), ('base velocity y', 'm/s', np.sin(0.5), np.sin(0.5)),
            ('base velocity z', 'm/s', np.cos(0.5), np.cos(0.5)),
            ('turn position', 'rad', -0.5, -0.5), ('slide position', 'm', 0.0, 0.9),
            ('ball position', 'rad', 2.0, 2.0), ('slide velocity', 'm/s', -4.0, 0.0),
            ('turn effort', 'N m', 0.0, 1.5), ('hand contact distance', 'm', -0.003, 0.04)):
        one = inputs[name]
        assert (one.unit, one.minimum, one.maximum) == (
            unit, pytest.approx(low, abs=1e-6), pytest.approx(high, abs=1e-6)), name
    assert np.median(inputs['slide position'].values) == pytest.approx(0.45)
    assert inputs['hand contact distance'].touching == pytest.approx(1 / (COUNT * STEPS))
    assert inputs['hand contact distance'].values.size == 2
    assert inputs['foot contact distance'].touching == 0.0
    assert inputs['foot contact distance'].values.size == 0


def test_percentiles_come_from_an_even_choice(path, monkeypatch):
    monkeypatch.setattr(module, '_PIECE', 3)
    monkeypatch.setattr(module, '_SAMPLE', 20)
    slide = {one.name: one for one in coverage(path).inputs}['slide position']
    assert np.unique(slide.values) == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8])
    assert slide.maximum == pytest.approx(0.9)


def test_table_and_picture(path, tmp_path):
    text = io.StringIO()
    show(path, tmp_path / 'new', Console(file=text, width=80))
    for words in ('10 trajectories of 4 steps of 10 ms, robot walker, seed 7',
                  'made by: nerd-ros generate', '50.0% without effort', 'steps in',
                  'slide position [m]', '0.450', '2.5%', 'walker_coverage.png'):
        assert words in text.getvalue()
    assert (tmp_path / 'new' / 'walker_coverage.png').stat().st_size > 10_000


def test_a_missing_file_is_one_sentence(nerd_ros, tmp_path):
    with pytest.raises(TrajectoryError, match='gone.h5: no such trajectory file'):
        show(tmp_path / 'gone.h5', tmp_path)
    result = nerd_ros('data', 'show', 'gone.h5', '--output', tmp_path)
    assert result.returncode == 1
    assert result.stderr == ('nerd-ros: gone.h5: no such trajectory file; make one by '
                             '`nerd-ros generate`.\n')
