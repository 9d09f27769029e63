# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Simulated against recorded motion: the recording of a known motion gives known errors."""

from io import StringIO

from bag_writing import message, ODOMETRY, pose_message, swing, write_bag
import numpy as np
import pytest
from rich.console import Console
from scipy.spatial.transform import Rotation
import torch

from nerd_ros.dynamics.checkpoint import save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.bags.bag_files import BagError
from nerd_ros.learning.bags.bag_topics import Topics
from nerd_ros.learning.bags.evaluate_bag import cut_windows, evaluate_bag, HOLD
from nerd_ros.learning.bags.recording import read_bag
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.sdf import load_world
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.teacher import TeacherRollouts

RATE = 200
HISTORY = 9


@pytest.fixture(scope='module')
def spec():
    return RobotSpec.load('double_pendulum')


@pytest.fixture(scope='module')
def layout(spec):
    return build_scene(spec, load_world('empty')).layout


@pytest.fixture(scope='module')
def teacher_bag(spec, tmp_path_factory):
    """Recording of 2 s of the teacher's own motion under known efforts; measured is double."""
    time = np.arange(0.0, 2.0, 1 / RATE)
    effort = np.stack([0.8 * np.sin(7 * time), 0.5 * np.cos(11 * time)], 1)
    joint_q, joint_qd = TeacherRollouts(spec, 1).rollout(
        np.zeros((1, 2)), np.zeros((1, 2)), effort[None], np.array([[0.0, 0.0, 1.0, -np.inf]]))
    names = ('shoulder', 'elbow')
    return write_bag(tmp_path_factory.mktemp('bags') / 'teacher', {
        '/joint_states': [message(t, names, q, qd, 2 * e) for t, q, qd, e in zip(
            time, joint_q[0], joint_qd[0], effort)],
        '/joint_commands': [message(t, names, effort=e) for t, e in zip(time, effort)]})


def run(spec, bag, tmp_path, model=None, solvers=('mujoco',), **options):
    text = StringIO()
    result = evaluate_bag(spec, bag, model, solvers=solvers, output=tmp_path,
                          console=Console(file=text, width=100), **options)
    return result, text.getvalue()


def test_the_solver_that_made_the_motion_follows_it(spec, teacher_bag, tmp_path):
    result, text = run(spec, teacher_bag, tmp_path)
    assert result.num_windows(0.05) == 20 and result.num_windows(1.0) == 10
    for horizon, bound in ((0.05, 3e-3), (0.2, 0.01), (0.5, 0.015), (1.0, 0.02)):
        assert (result.rms('mujoco')[round(horizon * RATE)] < bound).all()
        assert (result.rms(HOLD)[round(horizon * RATE)] > 5 * bound).all()
    for word in ('mujoco', HOLD, 'shoulder [rad]', 'elbow [rad]', '50 ms', '200 ms', '500 ms',
                 '1 s', 'n = 10', 'states: /joint_states', 'commanded effort'):
        assert word in text
    assert (tmp_path / 'teacher.png').stat().st_size > 10_000


def test_learned_model_moves_as_it_predicts(spec, layout, teacher_bag, tmp_path):
    model = NerdModel(layout)
    model.increment_scale.fill_(1e-9)   # velocity hardly ever changes
    save_checkpoint(tmp_path / 'model', model, {})
    result, text = run(spec, teacher_bag, tmp_path, tmp_path / 'model', ('neural', 'mujoco'))
    windows = result.windows
    time = layout.dt * np.arange(windows.joint_q.shape[1])[None, :, None]
    expected = windows.joint_q[:, :1] + time * windows.joint_qd[:, :1]
    np.testing.assert_allclose(result.motion['neural'], expected, atol=1e-3)
    assert 'neural' in text


def with_memory(layout):
    """An untrained model whose prediction depends on the steps before."""
    torch.manual_seed(3)
    model = NerdModel(layout).eval().requires_grad_(False)
    model.increment_scale.copy_(torch.tensor([1e-2, 1e-2, 0.2, 0.2]))
    return model


def test_learned_model_knows_the_measured_steps_before(spec, layout, teacher_bag, tmp_path):
    model = with_memory(layout)
    save_checkpoint(tmp_path / 'model', model, {})
    result, _ = run(spec, teacher_bag, tmp_path, tmp_path / 'model', ('neural',))
    windows, history = result.windows, result.windows.history
    assert set(history.known) == {0, HISTORY}   # the first window begins with its segment
    one = Simulation(spec, 'empty', 'neural', tmp_path / 'model')

    def end_of_step(states, efforts):
        one.reset()
        for state, effort in zip(states, efforts):
            one.set_state(*state, keep_history=True)
            one.set_effort(effort)
            one.step()
        return one.joint_q[0].copy()
    for k in (0, 1, 7):
        measured = slice(HISTORY - history.known[k], HISTORY)
        states = [*zip(history.joint_q[k, measured], history.joint_qd[k, measured]),
                  (windows.joint_q[k, 0], windows.joint_qd[k, 0])]
        efforts = [*history.effort[k, measured], windows.effort[k, 0]]
        warm, cold = end_of_step(states, efforts), end_of_step(states[-1:], efforts[-1:])
        np.testing.assert_allclose(result.motion['neural'][k, 1], warm, atol=1e-5)
        assert (np.abs(warm - cold).max() > 1e-4) == (k > 0)


def test_history_lies_within_the_segment(tmp_path, layout):
    bag = write_bag(tmp_path / 'bag', swing(duration=2.5, skip=lambda t: 1.0 < t < 1.1))
    windows = cut_windows((read_bag(bag, layout),), 'commanded', 1000)
    history = windows.history
    assert (history.known == 0).sum() == 2   # one window begins with each of the two segments
    for k, known in enumerate(history.known):
        time = windows.start[k] - layout.dt * np.arange(known, 0, -1)
        np.testing.assert_allclose(history.joint_q[k, HISTORY - known:, 0], np.sin(3 * time),
                                   atol=2e-3)


def test_named_topics(spec, layout, teacher_bag, tmp_path):
    with pytest.raises(BagError, match='/other'):
        run(spec, teacher_bag, tmp_path, topics=Topics(states='/other'))


def test_floating_base(tmp_path):
    """A cube that flies by the law of gravity is followed, in position and rotation."""
    def pose(time):
        rotation = Rotation.from_rotvec([0.0, 0.0, 3.0 * time])
        return np.concatenate([[time, 0.0, 9.0 - 0.5 * 9.81 * time**2], rotation.as_quat()])

    def twist(time):
        back = Rotation.from_rotvec([0.0, 0.0, -3.0 * time])
        return np.concatenate([back.apply([1.0, 0.0, -9.81 * time]), [0.0, 0.0, 3.0]])
    bag = write_bag(tmp_path / 'bag', {'/odom': [
        pose_message(t, pose(t), twist(t), ODOMETRY) for t in np.arange(0.0, 1.2, 0.005)]})
    cube = RobotSpec.load('cube')
    result, text = run(cube, bag, tmp_path, topics=Topics(base='/odom'))
    rms = result.rms('mujoco')
    assert rms.shape[1] == 2
    steps = round(0.5 / cube.dt)
    assert (rms[:steps + 1] < [0.01, 0.01]).all()
    assert result.rms(HOLD)[steps, 1] == pytest.approx(1.5, abs=0.01)
    assert 'base [m]' in text and 'base [rad]' in text
    assert (tmp_path / 'bag.png').stat().st_size > 10_000


def test_effort_can_be_the_measured_one(spec, teacher_bag, tmp_path):
    measured, _ = run(spec, teacher_bag, tmp_path, effort='measured')
    commanded, _ = run(spec, teacher_bag, tmp_path)
    np.testing.assert_allclose(measured.windows.effort, 2 * commanded.windows.effort, atol=1e-6)
    assert (measured.rms('mujoco')[40] > 10 * commanded.rms('mujoco')[40]).all()


def test_rms_is_over_what_was_recorded(spec, teacher_bag, tmp_path):
    result, _ = run(spec, teacher_bag, tmp_path)
    windows = result.windows
    whole = windows.length >= 200
    error = result.motion[HOLD][whole, 200] - windows.joint_q[whole, 200]
    np.testing.assert_allclose(result.rms(HOLD)[200], np.sqrt(np.square(error).mean(0)))


def test_windows_lie_within_segments(tmp_path, layout):
    bag = write_bag(tmp_path / 'bag', swing(duration=2.5, skip=lambda t: 1.0 < t < 1.1))
    recording = read_bag(bag, layout)
    assert len(recording.segments) == 2
    windows = cut_windows((recording,), 'commanded', 1000)
    ends = windows.start + windows.length * layout.dt
    assert not ((windows.start < 1.05) & (ends > 1.05)).any()
    np.testing.assert_allclose(np.diff(windows.start)[:5], 0.1)
    assert windows.length.min() >= 10 and windows.length.max() == 200
    for k in range(len(windows.length)):
        time = windows.start[k] + layout.dt * np.arange(windows.length[k] + 1)
        np.testing.assert_allclose(windows.joint_q[k, :len(time), 0], np.sin(3 * time), atol=2e-3)


def test_many_windows_are_thinned_and_bags_are_pooled(tmp_path, layout):
    recordings = tuple(read_bag(write_bag(tmp_path / name, swing()), layout) for name in 'ab')
    windows = cut_windows(recordings, 'measured', 7)
    assert len(windows.length) == 7 and set(windows.source) == {0, 1}


def test_refusals(spec, tmp_path, layout):
    bag = write_bag(tmp_path / 'bag', {'/joint_states': swing()['/joint_states']})
    with pytest.raises(BagError, match='no commanded effort was recorded; choose measured'):
        run(spec, bag, tmp_path)
    with pytest.raises(BagError, match='unknown'):
        run(spec, bag, tmp_path, effort='felt')
    with pytest.raises(BagError, match='no such file'):
        run(spec, tmp_path / 'nothing', tmp_path)


def test_recording_of_the_real_machine(spec, shared_data, tmp_path):
    result, _ = run(spec, shared_data / 'double_pendulum' / 'sys_id_143524', tmp_path)
    # Friction, delay and play of the real machine stay; see the figures of its makers.
    assert (result.rms('mujoco')[40] < [0.08, 0.15]).all()
    assert (result.rms('mujoco')[40] < 0.5 * result.rms(HOLD)[40]).all()
