# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Another learned model takes over a running simulation between two steps."""

from dataclasses import replace
import threading

import numpy as np
import pytest
import torch

from nerd_ros.dynamics.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.resources import resource_path
from nerd_ros.scene.simulation import Simulation

SHIPPED = resource_path('models', 'double_pendulum')
CONTACTLESS, AMONG_OBSTACLES = 'empty', 'obstacles'


def other_model(limit: float = 50.0):
    """Return the shipped model, but velocities change half as much again, and other limits."""
    learned = load_checkpoint(SHIPPED)
    learned.increment_scale *= 1.5
    learned.speed_limit.fill_(limit)
    return learned


def simulations(world, num_worlds=1, count=2):
    """Return equal simulations, each robot in a motion of its own."""
    result = []
    for _ in range(count):
        simulation = Simulation('double_pendulum', world, num_worlds=num_worlds)
        rng = np.random.default_rng(0)
        simulation.set_state(rng.uniform(-1.5, 1.5, (num_worlds, 2)),
                             rng.uniform(-3.0, 3.0, (num_worlds, 2)))
        simulation.set_effort(rng.uniform(-2.0, 2.0, (num_worlds, 2)))
        result.append(simulation)
    return result


def state(simulation):
    return np.concatenate([simulation.joint_q, simulation.joint_qd], axis=1)


@pytest.mark.parametrize('world, num_worlds', [
    (CONTACTLESS, 1), (CONTACTLESS, 3), (AMONG_OBSTACLES, 1), (AMONG_OBSTACLES, 3)])
def test_the_same_model_goes_on_as_before(world, num_worlds):
    swapped, left = simulations(world, num_worlds)
    # While little is known, with all there is to know, and with a history of some worlds alone.
    for steps, forget in ((0, None), (4, None), (30, None), (3, 0), (20, None)):
        for simulation in (swapped, left):
            if forget is not None:
                mask = np.arange(num_worlds) == forget
                simulation.set_state([0.5, 0.3], [1.0, -1.0], mask)
            simulation.step(steps)
        swapped.set_model(SHIPPED)
        for _ in range(12):
            swapped.step()
            left.step()
            np.testing.assert_allclose(state(swapped), state(left), rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(swapped.body_q, left.body_q, atol=1e-4)
        assert swapped.score == pytest.approx(left.score, rel=1e-4)
    assert np.abs(state(left)).max() > 0.5


@pytest.mark.parametrize('num_worlds', [1, 3])
def test_what_recordings_taught_knows_the_last_steps_too(num_worlds):
    shipped = load_checkpoint(SHIPPED)
    torch.manual_seed(0)
    learned = NerdModel(shipped.layout, replace(shipped.config, residual_width=8))
    learned.load_state_dict(shipped.state_dict(), strict=False)
    torch.nn.init.normal_(learned.residual.out.weight, std=0.1)
    learned = learned.eval().requires_grad_(False)
    swapped, left, untaught = simulations(CONTACTLESS, num_worlds, count=3)
    for simulation in (swapped, left):
        simulation.set_model(learned)
    for steps in (4, 30):
        for simulation in (swapped, left, untaught):
            simulation.step(steps)
        swapped.set_model(learned)
        for _ in range(12):
            swapped.step()
            left.step()
            np.testing.assert_allclose(state(swapped), state(left), rtol=1e-5, atol=1e-5)
        untaught.step(12)
    assert np.abs(state(left) - state(untaught)).max() > 1e-2


def test_the_history_counts():
    """Or the test above would tell nothing."""
    swapped, left = simulations(CONTACTLESS)
    for simulation in (swapped, left):
        simulation.step(30)
    solver = swapped.solver
    swapped.set_model(SHIPPED)
    solver._network.reset(None)
    swapped.step()
    left.step()
    assert np.abs(state(swapped) - state(left)).max() > 1e-4


@pytest.mark.parametrize('world, num_worlds', [(CONTACTLESS, 1), (AMONG_OBSTACLES, 1),
                                               (AMONG_OBSTACLES, 2)])
def test_another_model_takes_over_without_a_jump(world, num_worlds):
    swapped, left = simulations(world, num_worlds)
    for simulation in (swapped, left):
        simulation.step(25)
    before, time, effort = state(swapped).copy(), swapped.time, swapped.effort.copy()
    bodies = swapped.body_q.copy()
    swapped.set_model(other_model())
    np.testing.assert_array_equal(state(swapped), before)
    np.testing.assert_array_equal(swapped.body_q, bodies)
    np.testing.assert_array_equal(swapped.effort, effort)
    assert swapped.time == time
    for simulation in (swapped, left):
        simulation.step()
    change, usual = state(swapped) - before, state(left) - before
    # It is another motion from here on, by no more than the models differ in a step.
    assert 1e-3 < np.abs(change - usual).max() < 0.5
    if world == CONTACTLESS:
        np.testing.assert_allclose(change[:, 2:], 1.5 * usual[:, 2:], atol=0.05)
    np.testing.assert_allclose(change[:, :2], usual[:, :2], atol=2e-3)


def test_it_is_the_rollout_of_the_new_model(tmp_path):
    """Captured graphs, the compiled step and its history are those of the new one."""
    swapped, = simulations(CONTACTLESS, count=1)
    save_checkpoint(tmp_path, other_model(), {})
    fresh = Simulation('double_pendulum', CONTACTLESS, model=tmp_path)
    swapped.step(10)
    swapped.set_model(tmp_path)
    for simulation in (swapped, fresh):
        simulation.set_state([1.0, -0.5], [2.0, 0.0])
        simulation.set_effort([0.3, 0.1])
        simulation.step(40)
    np.testing.assert_array_equal(state(swapped), state(fresh))


def test_the_limits_of_the_guard_follow():
    simulation, = simulations(CONTACTLESS, count=1)
    simulation.step(3)
    simulation.set_model(other_model(limit=0.01))
    assert simulation.guard_events == 0
    simulation.step()
    assert simulation.guard_events == 1 and 'its limit of 0.0' in simulation.last_guard_message
    simulation.set_model(SHIPPED)
    simulation.step(50)
    assert simulation.guard_events == 1


def test_a_model_that_does_not_fit_changes_nothing(tmp_path):
    swapped, left = simulations(CONTACTLESS)
    for simulation in (swapped, left):
        simulation.step(5)
    (tmp_path / 'model.yaml').write_text('format_version: 1\n')
    for model, told in ((tmp_path, 'model.yaml'), (tmp_path / 'gone', 'is not a folder'),
                        (resource_path('models', 'cartpole'), 'another robot')):
        with pytest.raises(CheckpointError, match=told):
            swapped.set_model(model)
    with pytest.raises(ValueError, match='another robot than double_pendulum'):
        swapped.set_model(load_checkpoint(resource_path('models', 'cartpole')))
    for simulation in (swapped, left):
        simulation.step(20)
    np.testing.assert_array_equal(state(swapped), state(left))


def test_a_simulation_without_a_learned_model_takes_none():
    simulation = Simulation('double_pendulum', CONTACTLESS, 'mujoco')
    with pytest.raises(ValueError, match='choose the solver neural'):
        simulation.set_model(SHIPPED)


def test_models_are_prepared_beside_the_running_steps():
    swapped, left = simulations(AMONG_OBSTACLES)
    prepared = []

    def prepare():
        for _ in range(5):
            prepared.append(swapped.prepare_model(SHIPPED))
    thread = threading.Thread(target=prepare)
    thread.start()
    for _ in range(200):
        swapped.step()
        left.step()
    thread.join()
    np.testing.assert_array_equal(state(swapped), state(left))
    swapped.set_model(prepared[-1])
    for _ in range(20):
        swapped.step()
        left.step()
    np.testing.assert_allclose(state(swapped), state(left), rtol=1e-4, atol=1e-4)
