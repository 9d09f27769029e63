# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Figures of a model against its teacher are those of the definitions."""

from io import StringIO

import numpy as np
import pytest
from rich.console import Console
import torch

from nerd_ros.dynamics.checkpoint import load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.data.held_out import held_out
from nerd_ros.learning.evaluation import divergence
from nerd_ros.learning.evaluation.accuracy import position_errors
from nerd_ros.learning.evaluation.divergence import count_divergence
from nerd_ros.learning.evaluation.evaluate import evaluate
from nerd_ros.learning.evaluation.free_accuracy import (
    Condition, conditions, FLOOR, free_accuracy, FreeRunner, NEURAL)
from nerd_ros.learning.evaluation.free_running import free_run, ground_world
from nerd_ros.learning.evaluation.one_step import one_step_errors
from nerd_ros.learning.evaluation.side_by_side import side_by_side
from nerd_ros.scene.energy import MechanicalEnergy
from nerd_ros.scene.robot.robot_spec import RobotError, RobotSpec
from nerd_ros.scene.simulation import Simulation
from nerd_ros.scene.teacher import TeacherRollouts

COUNT, STEPS = 12, 40
PASSIVE = Condition(passive=True, ground=True)
# Of the double pendulum, a tenth of a second long.
CONDITIONS = ('passive_without_ground', 'passive_with_ground', 'random_without_ground',
              'random_with_ground')


def shortened(name: str, duration: float) -> RobotSpec:
    """Return a robot with another duration of its evaluation [s]."""
    spec = RobotSpec.load(name)
    return spec.model_copy(update={
        'evaluation': spec.evaluation.model_copy(update={'duration': duration})})


@pytest.fixture(scope='module')
def spec():
    return shortened('double_pendulum', 0.2)


@pytest.fixture(scope='module')
def teacher(spec):
    return TeacherRollouts(spec, COUNT)


@pytest.fixture(scope='module')
def held(spec, teacher):
    return held_out(spec, teacher, COUNT, 1, STEPS, passive=True, ground=True)


def model_that_keeps_velocity(layout) -> NerdModel:
    model = NerdModel(layout).requires_grad_(False)
    model.increment_scale.fill_(1e-9)
    return model.eval()


class Accelerating(NerdModel):
    """Model of which all velocities grow by `rate` [rad/s] in each step."""

    rate = 0.0

    def step(self, stream, joint_q, joint_qd, *surroundings):
        return joint_q + self.layout.dt * joint_qd, joint_qd + self.rate


def kept_velocity(held) -> np.ndarray:
    """Distance (N, T) of motion at the first velocity, mean of the joints."""
    times = held.spec.dt * np.arange(1, STEPS + 1)[None, :, None]
    return np.abs(held.joint_q[:, :1] + times * held.joint_qd[:, :1]
                  - held.joint_q[:, 1:]).mean(-1)


def test_analytic_simulation_follows_the_teacher(spec, held):
    simulation = Simulation(spec, ground_world(spec), 'mujoco', num_worlds=COUNT)
    slow = (np.abs(held.joint_qd).max((1, 2)) < 15) & ~held.touches
    assert slow.any()
    run = free_run(simulation, held.joint_q[:, 0], held.joint_qd[:, 0], held.effort, held.ground)
    assert np.abs(run.joint_q - held.joint_q)[slow].max() < 0.02
    assert not run.diverged.any()


# In one part, and in parts of which the last is not full.
@pytest.mark.parametrize('worlds', [COUNT, 5])
def test_free_motion_of_a_model_that_keeps_its_velocity(spec, held, worlds):
    teacher = TeacherRollouts(spec, worlds)
    energy = MechanicalEnergy(spec)
    runner = FreeRunner(spec, model_that_keeps_velocity(teacher.layout), worlds)
    done = []
    motion = free_accuracy(runner, teacher, held, PASSIVE, energy, 1, done.append)
    expected = kept_velocity(held)
    neural, floor = motion.distances[NEURAL], motion.distances[FLOOR]
    # At 0.1 s and at the end.
    np.testing.assert_allclose(neural.mean[..., 0],
                               np.stack([expected[:, :20].mean(1), expected.mean(1)], axis=1),
                               rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(neural.last[..., 0], expected[:, [19, 39]], rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(neural.curve[:, 0], expected.mean(0), rtol=1e-3, atol=1e-4)
    assert 0.5e-4 < np.median(floor.mean) < 1e-3
    assert motion.touching == held.touches.mean()
    assert motion.stopped == 0 and sum(done) == COUNT
    both = np.abs(held.joint_q[:, 0] + 0.2 * held.joint_qd[:, 0] - held.joint_q[:, -1])
    np.testing.assert_array_equal(motion.within, (both < 0.1).all(1))
    # Its kinetic energy changes with its form alone, and gravity does no work on it.
    kinetic, potential = energy(held.joint_q, held.joint_qd)
    own = sum(energy(held.joint_q[:, 0] + 0.2 * held.joint_qd[:, 0], held.joint_qd[:, 0]))
    scale = kinetic.max(1) + np.ptp(potential, axis=1)
    np.testing.assert_allclose(motion.energy_drift,
                               np.abs(own - kinetic[:, -1] - potential[:, -1]) / scale, atol=1e-3)


def test_a_perfect_model_has_no_error_of_one_step(teacher, held):
    class Perfect:
        """Stands for the model that knows the held-out motion, and what it is asked."""

        asked = []

        def start(self, num_worlds):
            assert num_worlds == COUNT

        def step(self, stream, joint_q, joint_qd, effort, contacts, gravity, base_pose):
            step = len(self.asked)
            np.testing.assert_allclose(joint_q, held.joint_q[:, step], atol=1e-5)
            np.testing.assert_allclose(base_pose, np.tile(teacher.base_pose, (COUNT, 1)))
            self.asked.append(contacts.numpy().copy())
            return tuple(torch.from_numpy(np.float32(values[:, step + 1]))
                         for values in (held.joint_q, held.joint_qd))

    model = Perfect()
    errors = one_step_errors(model, teacher, held)
    assert errors.position.shape == errors.velocity.shape == (COUNT * STEPS, 2)
    assert not errors.position.any() and not errors.velocity.any()
    np.testing.assert_allclose(np.stack(model.asked, 1),
                               teacher.contacts(held.joint_q[:, :-1], held.ground))


def test_one_step_starts_from_the_teacher_each_time(teacher, held):
    errors = one_step_errors(model_that_keeps_velocity(teacher.layout), teacher, held)
    apart = held.joint_q[:, :-1] + held.spec.dt * held.joint_qd[:, :-1] - held.joint_q[:, 1:]
    expected = np.abs(apart).swapaxes(0, 1).reshape(-1, 2)
    np.testing.assert_allclose(errors.position, expected, atol=1e-5)
    np.testing.assert_allclose(
        errors.velocity, np.abs(np.diff(held.joint_qd, axis=1)).swapaxes(0, 1).reshape(-1, 2),
        atol=1e-4)


def test_conditions_are_those_that_a_robot_can_be_in(teacher):
    pendulum, cartpole, cube = (RobotSpec.load(name) for name in
                                ('double_pendulum', 'cartpole', 'cube'))
    assert tuple(c.key for c in conditions(pendulum, teacher.layout)) == CONDITIONS
    assert [c.key for c in conditions(cartpole, TeacherRollouts(cartpole, 1).layout)] == [
        'passive_without_ground', 'random_without_ground']
    assert [c.key for c in conditions(cube, TeacherRollouts(cube, 1).layout)] == [
        'passive_with_ground']


def test_divergence_counts_what_gets_too_fast(spec, teacher):
    model = Accelerating(teacher.layout)
    for passive in (True, False):
        for model.rate, expected in ((0.0, 0), (20.0, COUNT + 1), (float('nan'), COUNT + 1)):
            part = count_divergence(spec, model, teacher, COUNT + 1, 0.2, 1, passive)
            assert (part.diverged, part.rollouts, part.seconds) == (expected, COUNT + 1, 0.2)
            assert (part.speed_limit > 1.0).all() and part.excused == 0
    assert torch.isinf(model.speed_limit).all(), 'the model itself must stay as it is'


def test_what_the_teacher_does_as_well_is_no_divergence(spec, teacher, monkeypatch):
    # Usual speeds are those of one rollout: in others the teacher is faster than twice that.
    monkeypatch.setattr(divergence, '_SPEED_ROLLOUTS', 1)
    model = Accelerating(teacher.layout)
    part = count_divergence(spec, model, teacher, 40, 0.02, 1, True)
    held = held_out(spec, teacher, 40, 2, 1, True, None)
    fast = (np.abs(held.joint_qd[:, 0]) > part.speed_limit).any(1).sum()
    assert part.diverged == 0 and part.excused == fast > 0
    model.rate = float('nan')
    part = count_divergence(spec, model, teacher, 40, 0.02, 1, True)
    assert part.diverged == 40 - part.excused > 0


@pytest.mark.parametrize('name, keys, words', [
    ('double_pendulum', CONDITIONS, ('shoulder', 'elbow', 'joints [rad]', 'random efforts, no')),
    ('cube', ('passive_with_ground',), ('base [m]', 'base [rad]', 'rad/s'))])
def test_evaluate_prints_and_draws_all_figures(name, keys, words, tmp_path):
    spec = shortened(name, 0.2)
    layout = TeacherRollouts(spec, 1).layout
    model = model_that_keeps_velocity(layout)
    model.card = {'metrics': {
        'free_running': {'passive_with_ground': {
            'joint_rad': {'mean': 0.1234}, 'base_m': {'mean': 0.1234}, 'base_rad': 'unknown'}},
        'divergence': {'passive': {'diverged': 7, 'rollouts': 2000, 'seconds': 10.0}}}}
    text = StringIO()
    result = evaluate(spec, model, count=4, divergence_seconds=0.05, output=tmp_path,
                      console=Console(file=text, width=80))
    text = text.getvalue()
    for word in (*words, 'passive, with ground', 'median', FLOOR, '0.1234',
                 'card: 7 of 2000', 'energy', 'diverged',
                 'guard', 'neural', 'mujoco', 'MuJoCo C', '0.1 s', '0.2 s', '99 % below', ' ms'):
        assert word in text
    *figures, picture = text.splitlines()
    assert '…' not in text and max(map(len, figures)) <= 80
    assert picture == f'drawn in {tmp_path}/{name}.png'
    assert all(cost.one > 0 and cost.many > 0 for cost in result.cost.values())
    assert (tmp_path / f'{name}.png').stat().st_size > 10_000
    free = result.metrics['free_running']
    assert tuple(free) == keys
    for key in keys:
        assert set(free[key]) - {'energy_drift'} == {
            *(('base_m', 'base_rad') if layout.floating else ('joint_rad',)), 'within_share',
            'stopped'}
        assert ('energy_drift' in free[key]) == key.startswith('passive')


def test_card_gets_the_figures(spec, teacher, tmp_path):
    model = model_that_keeps_velocity(teacher.layout)
    save_checkpoint(tmp_path, model, {'licence': 'Apache-2.0'})
    console = Console(file=StringIO(), width=100)
    options = {'count': 4, 'divergence_seconds': 0.0, 'console': console}
    result = evaluate(spec, tmp_path, write_card=True, **options)
    card = load_checkpoint(tmp_path, teacher.layout).card
    assert card == {'licence': 'Apache-2.0', 'metrics': result.metrics}
    figures = card['metrics']['free_running']['passive_with_ground']['joint_rad']
    assert figures['mean'] == figures['mean_up_to']['0.2 s']
    assert not card['metrics']['divergence']
    held = held_out(spec, teacher, 4, 1, STEPS, True, True)
    assert figures['mean'] == pytest.approx(kept_velocity(held).mean(), rel=1e-3)
    with pytest.raises(ValueError, match='name the folder'):
        evaluate(spec, write_card=True)


@pytest.mark.parametrize('section', ['sampling', 'evaluation'])
def test_evaluate_refuses_a_robot_that_does_not_say_how(spec, section):
    with pytest.raises(RobotError, match=section):
        evaluate(spec.model_copy(update={section: None}))


@pytest.mark.parametrize('name, value', [('count', 0), ('count', 10**13),
                                         ('divergence_seconds', -1.0)])
def test_evaluate_refuses_numbers_without_sense(spec, name, value):
    with pytest.raises(ValueError, match='give at least'):
        evaluate(spec, **{name: value})


def test_evaluate_refuses_the_motion_that_selected_the_model(spec):
    with pytest.raises(ValueError, match='seed 7 has selected'):
        evaluate(spec, seed=7)


def test_model_and_teacher_are_played_side_by_side(spec, teacher, tmp_path):
    save_checkpoint(tmp_path, model_that_keeps_velocity(teacher.layout), {})
    player = side_by_side(spec, tmp_path, port=18600)
    try:
        names = [condition.name for condition in conditions(spec, teacher.layout)]
        playbacks = player._playbacks
        assert [playback.title for playback in playbacks[:5]] == [*names, names[0]]
        assert all(playback.joint_q.shape == (2, STEPS + 1, 2) for playback in playbacks)
        both = playbacks[0].joint_q
        np.testing.assert_allclose(both[0, 0], both[1, 0], atol=1e-6)
        assert position_errors(teacher.layout, *both)[-1].max() > 0.01
    finally:
        player.stop()
        player.play()
