# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The references that learned models are compared with on recordings of real machines."""

from dataclasses import replace

import numpy as np
import pytest
from real import cube_tosses, identified_pendulum
from real.identified_pendulum import acceleration, IDENTIFIED, mass_matrix, simulate
from real.pendulum_bags import kind_of, KINDS, pendulum_bags, SLOW_KINDS, with_recorded_velocity
from real.recordings import data_path, DataError, folds, interval, split_rows
from real.teacher_motion import TeacherMotion
from real.tuned_cube import Contact, CubeSimulation, tune
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint
from nerd_ros.learning.bags.recording import read_bag
from nerd_ros.learning.finetuning.training import with_residual
from nerd_ros.resources import resource_path
from nerd_ros.scene.robot.robot_spec import RobotSpec
from nerd_ros.scene.scene import build_scene
from nerd_ros.scene.teacher import TeacherRollouts
from nerd_ros.scene.world import World


@pytest.fixture(scope='module')
def tosses(shared_data) -> cube_tosses.Tosses:
    return cube_tosses.read_tosses(shared_data)


def test_folds_get_their_share_of_each_kind():
    kinds = ['a'] * 8 + ['b'] * 5 + ['c'] * 5
    fold = folds(kinds, 5, seed=3)
    assert sorted(np.bincount(fold)) == [3, 3, 4, 4, 4]
    for kind in 'abc':
        counts = np.bincount(fold[np.array(kinds) == kind], minlength=5)
        assert counts.min() >= 1 and np.ptp(counts) <= 1
    assert np.array_equal(fold, folds(kinds, 5, seed=3))
    assert not np.array_equal(fold, folds(kinds, 5, seed=4))
    training, test = split_rows(fold, 2)
    assert sorted([*training, *test]) == list(range(18)) and set(fold[test]) == {2}
    with pytest.raises(ValueError, match='18 recordings cannot be parted into 19 folds'):
        folds(kinds, 19, seed=0)


def test_interval_covers_the_mean_as_often_as_it_says():
    samples = np.random.default_rng(0).normal(0.5, 0.1, (60, 18))
    limits = [interval(values, seed=0) for values in samples]
    assert 0.85 <= np.mean([low < 0.5 < high for low, high in limits]) < 1.0
    assert np.mean([high - low for low, high in limits]) == pytest.approx(
        2 * 1.96 * 0.1 / np.sqrt(18), rel=0.1)


def test_missing_and_broken_recordings_are_named(tmp_path):
    with pytest.raises(DataError, match='cube_toss/tosses.npz is not there; name the folder'):
        cube_tosses.read_tosses(tmp_path)
    with pytest.raises(DataError, match='double_pendulum is not there'):
        pendulum_bags(tmp_path)
    path = tmp_path / 'cube_toss' / 'tosses.npz'
    path.parent.mkdir()
    for content in (b'', b'version https://git-lfs.github.com/spec/v1\n', b'PK\x03\x04'):
        path.write_bytes(content)
        with pytest.raises(DataError, match='tosses.npz is no archive of tosses'):
            cube_tosses.read_tosses(tmp_path)
    np.savez(path, toss_000=np.zeros((5, 12)))
    with pytest.raises(DataError, match=r'toss_000 has shape \(5, 12\), not \(T, 13\)'):
        cube_tosses.read_tosses(tmp_path)
    with pytest.raises(DataError, match='mine_01 begins like none of sys_id'):
        kind_of('mine_01')
    assert data_path(tmp_path, 'cube_toss') == path.parent


def test_velocities_of_tosses_are_those_of_their_poses(tosses):
    assert len(tosses.names) == 429
    recordings = cube_tosses.recordings(tosses)
    segment = recordings[7].segments[0]
    assert len(segment.time) == tosses.length[7] and segment.effort_command.shape[1] == 0
    # Central differences in the world, of the first samples: most are of free flight.
    q, qd = tosses.joint_q[:, :12], tosses.joint_qd[:, 1:11]
    turn = (Rotation.from_quat(q[:, 2:, 3:].reshape(-1, 4))
            * Rotation.from_quat(q[:, :-2, 3:].reshape(-1, 4)).inv())
    turning = turn.as_rotvec().reshape(qd[..., 3:].shape) / (2 * cube_tosses.DT)
    moving = (q[:, 2:, :3] - q[:, :-2, :3]) / (2 * cube_tosses.DT)
    assert np.median(np.linalg.norm(turning - qd[..., 3:], axis=-1)) < 0.1
    # Recorded is the difference from the sample before: in free flight, half a sample late.
    late = np.array([0.0, 0.0, 0.5 * 9.63 * cube_tosses.DT])
    assert np.median(np.linalg.norm(moving + late - qd[..., :3], axis=-1)) < 0.02


def test_toss_errors_are_means_over_recorded_samples(tosses):
    some = tosses.take(np.array([0, 1, 2]))
    assert cube_tosses.toss_errors(some.joint_q, some) == pytest.approx(0.0, abs=1e-9)
    moved = some.joint_q.copy()
    moved[:, 1:, 2] += 0.3
    turn = Rotation.from_rotvec([0.0, 0.0, 2.0])
    for motion, length in zip(moved, some.length):
        motion[length // 2:, 3:] = -(turn * Rotation.from_quat(motion[length // 2:, 3:])).as_quat()
        motion[length:] = 7.0
    errors = cube_tosses.toss_errors(moved, some)
    assert errors[:, 0] == pytest.approx(0.3 * (1 - 1 / some.length))
    assert errors[:, 1] == pytest.approx(2.0 * (1 - some.length // 2 / some.length))


def test_plain_mujoco_follows_the_tosses_as_published(tosses):
    some = tosses.take(np.arange(0, 429, 4))
    simulation = CubeSimulation()
    motion = simulation.run(Contact(), some)
    assert np.array_equal(motion[:, 0], some.joint_q[:, 0])
    position, rotation = cube_tosses.toss_errors(motion, some).mean(0)
    assert position == pytest.approx(0.0146, rel=0.1)
    assert rotation == pytest.approx(0.311, rel=0.1)
    position, _ = cube_tosses.toss_errors(
        simulation.run(Contact(friction=0.12), some), some).mean(0)
    assert position == pytest.approx(0.043, rel=0.1)


def test_tuning_finds_a_better_contact_again_and_again(tosses):
    some = tosses.take(np.arange(3))
    found = tune(some, seed=0, evaluations=10)
    assert found == tune(some, seed=0, evaluations=10)
    simulation = CubeSimulation(5)
    before, after = ((cube_tosses.toss_errors(simulation.run(contact, some), some).mean(0)
                      / [0.015, 0.3]).sum() for contact in (Contact(), found))
    assert after < 0.95 * before


def test_identified_model_keeps_its_energy_without_friction():
    smooth = replace(IDENTIFIED, friction=(0.0, 0.0), damping=(0.0, 0.0))

    def energy(q: np.ndarray, qd: np.ndarray) -> float:
        m11, m12, m22 = mass_matrix(q[None], smooth)
        kinetic = 0.5 * m11 * qd[0] ** 2 + m12 * qd[0] * qd[1] + 0.5 * m22 * qd[1] ** 2
        heights = (-smooth.center[0] * np.cos(q[0]),
                   -smooth.length * np.cos(q[0]) - smooth.center[1] * np.cos(q.sum()))
        return float(kinetic[0] + smooth.gravity * np.dot(smooth.mass, heights))

    def rates(_, state):
        qd = state[2:]
        return [*qd, *acceleration(state[None, :2], qd[None], np.zeros((1, 2)), smooth)[0]]

    start = np.array([2.0, -0.7, 1.5, -3.0])
    end = solve_ivp(rates, (0.0, 2.0), start, rtol=1e-10, atol=1e-10).y[:, -1]
    assert energy(end[:2], end[2:]) == pytest.approx(energy(start[:2], start[2:]), abs=1e-6)
    assert np.abs(end - start).max() > 1.0


def test_identified_model_is_integrated_as_its_equations_say():
    random, dt = np.random.default_rng(0), 0.005
    q, qd = random.uniform(-2.0, 2.0, (2, 3, 2))
    torque = random.uniform(-2.0, 2.0, (3, 40, 2))
    motion = simulate(q, qd, torque, dt)
    assert motion.shape == (3, 41, 2) and np.array_equal(motion[:, 0], q)
    for k in range(3):
        state = np.concatenate([q[k], qd[k]])
        for step in range(40):
            def rates(_, state, held=torque[k, step]):
                return [*state[2:], *acceleration(state[None, :2], state[None, 2:], held[None])[0]]
            state = solve_ivp(rates, (0.0, dt), state, rtol=1e-7, atol=1e-9).y[:, -1]
        assert motion[k, -1] == pytest.approx(state[:2], abs=5e-3)
        assert np.abs(motion[k, -1] - q[k]).max() > 0.1


def test_identified_model_follows_recordings_as_published(shared_data):
    spec = RobotSpec.load('double_pendulum')
    layout = build_scene(spec, World('empty'), visuals=False).layout
    bags = pendulum_bags(shared_data)
    assert len(bags) == 18 and {kind_of(bag.name) for bag in bags} == set(KINDS)
    assert len(pendulum_bags(shared_data, SLOW_KINDS)) == 10
    read = read_bag(shared_data / 'double_pendulum' / 'acrobot_ilqr_tvlqr_lqr_02', layout)
    recording = with_recorded_velocity(read, layout)
    segment, = recording.segments
    smoothed = read.segments[0].joint_qd
    assert segment.joint_qd.shape == smoothed.shape and not np.array_equal(segment.joint_qd,
                                                                           smoothed)
    assert np.sqrt(np.mean(np.square(segment.joint_qd - smoothed))) < 0.3
    starts, steps = np.arange(0, len(segment.time) - 41, 20), 40
    motion = identified_pendulum.simulate(
        segment.joint_q[starts], segment.joint_qd[starts],
        segment.effort_measured[starts[:, None] + np.arange(steps)], layout.dt)
    error = motion[:, -1] - segment.joint_q[starts + steps]
    rms = np.sqrt(np.mean(np.square(error), axis=0))
    assert rms == pytest.approx([0.039, 0.059], rel=0.4)


@torch.no_grad()
def test_the_motion_of_the_teacher_is_known_to_the_base():
    """By definition the loss of the base is 1 on average; a model that is off has more."""
    spec = RobotSpec.load('double_pendulum')
    teacher = TeacherRollouts(spec, 64)
    base = load_checkpoint(resource_path('models', spec.name), teacher.layout)
    motion, worse = TeacherMotion(spec, teacher, base, 0), with_residual(base)
    torch.nn.init.normal_(worse.residual.out.weight, std=0.5)
    assert np.mean([motion(base).item() for _ in range(20)]) == pytest.approx(1.0, rel=0.2)
    assert motion(worse).item() > 5.0
