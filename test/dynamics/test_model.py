# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Sequence form, streaming form and compiled step are the same function of the same past."""

from copy import copy

from dynamics.conftest import random_inputs
import numpy as np
import pytest
import torch

from nerd_ros.dynamics import features
from nerd_ros.dynamics.fast_step import FastStep
from nerd_ros.dynamics.transformer import Transformer, TransformerConfig

STEPS, WORLDS = 25, 4


def sequence(layout):
    return random_inputs(layout, WORLDS, STEPS, generator=torch.Generator().manual_seed(5))


@torch.no_grad()
def test_streaming_equals_the_sequence_form(model):
    layout, inputs = model.layout, sequence(model.layout)
    expected = model(features.tokens(layout, *inputs))
    stream = model.start(WORLDS)
    for t in range(STEPS):
        now = [x[:, t] for x in inputs]
        next_q, next_qd = model.step(stream, *now)
        wanted = features.apply_increment(layout, now[0], now[1], expected[:, t])
        torch.testing.assert_close(next_q, wanted[0], rtol=1e-5, atol=1e-5)
        torch.testing.assert_close(next_qd, wanted[1], rtol=1e-5, atol=1e-5)


@torch.no_grad()
def test_the_compiled_step_equals_the_streaming_form(model):
    inputs = sequence(model.layout)
    stream, fast = model.start(1), FastStep(model)
    next_q, next_qd = (np.zeros(n, np.float32) for n in (model.layout.nq, model.layout.nqd))
    for t in range(STEPS):
        if t == 15:
            stream.reset()
            fast.reset()
        wanted = model.step(stream, *[x[:1, t] for x in inputs])
        fast.step(*[x[0, t].numpy() for x in inputs], next_q, next_qd)
        np.testing.assert_allclose(next_q, wanted[0][0], rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(next_qd, wanted[1][0], rtol=1e-4, atol=1e-5)
        assert fast.score == pytest.approx(stream.score.item(), rel=1e-4)


@torch.no_grad()
def test_a_reset_world_forgets_and_the_others_do_not(model):
    inputs = sequence(model.layout)
    stream, fresh = model.start(WORLDS), model.start(WORLDS)
    for t in range(8):
        model.step(stream, *[x[:, t] for x in inputs])
    kept = copy(stream)   # a step leaves the tensors of a stream alone
    stream.reset(torch.tensor([False, True, False, False]))
    now = [x[:, 8] for x in inputs]
    after_reset = model.step(stream, *now)[1]
    from_start = model.step(fresh, *now)[1]
    without_reset = model.step(kept, *now)[1]
    torch.testing.assert_close(after_reset[1], from_start[1])
    torch.testing.assert_close(after_reset[[0, 2, 3]], without_reset[[0, 2, 3]])
    assert not torch.allclose(after_reset[1], without_reset[1])


@pytest.mark.parametrize('spans', [(4, 4, 4), (3, 5)])
def test_the_receptive_field_is_exact_and_causal(spans):
    torch.manual_seed(0)
    config = TransformerConfig(width=32, spans=spans)
    network = Transformer(config, 6)
    tokens = torch.randn(1, 30, 6, requires_grad=True)
    network(tokens)[0, 20].sum().backward()
    seen = tokens.grad[0].abs().sum(-1) > 0
    assert seen.nonzero().flatten().tolist() == list(range(21 - config.receptive_field, 21))


@pytest.mark.parametrize('name, value', [
    ('width', 30), ('width', -96), ('width', 10**9), ('width', 96.0), ('heads', 0),
    ('mlp_ratio', 0), ('mlp_ratio', 4096), ('head_width', 0), ('head_width', 10**9),
    ('spans', (0, 0, 0)), ('spans', (4, 65)), ('spans', (4, 1.5)), ('spans', ()), ('spans', 4)])
def test_sizes_that_cannot_be_are_refused(name, value):
    with pytest.raises(ValueError, match=f'^{name} '):
        TransformerConfig(**{name: value})


def test_gradients_flow_through_a_rollout(model):
    """The gradient with respect to the first effort equals finite differences."""
    model, layout = model.double(), model.layout
    inputs = [x.double() for x in random_inputs(layout, 1)]
    efforts = torch.randn(1, 12, layout.num_dofs, dtype=torch.double, requires_grad=True)

    def final_speed(effort):
        _, speeds = model.rollout(inputs[0], inputs[1], effort, lambda q, qd: inputs[3],
                                  inputs[4], inputs[5])
        return speeds[:, -1].sum()

    final_speed(efforts).backward()
    step = torch.zeros_like(efforts)
    step[0, 0, 0] = 1e-5
    with torch.no_grad():
        slope = (final_speed(efforts + step) - final_speed(efforts - step)) / 2e-5
    torch.testing.assert_close(efforts.grad[0, 0, 0], slope, rtol=1e-5, atol=1e-8)


def test_the_score_rises_away_from_the_training_data(model):
    size = features.token_size(model.layout)
    usual = torch.randn(500, size) * torch.linspace(0.5, 3.0, size) + 0.3
    assert (model.ood_score(usual) > 1.0).float().mean() < 0.05
    assert (model.ood_score(3.0 * usual) > 1.0).float().mean() > 0.95


@torch.no_grad()
def test_joints_rest_when_all_are_slow(model):
    inputs = random_inputs(model.layout, 6)
    base = model.layout.num_base_dofs
    model.rest_speed.fill_(1e6)  # so large that softplus is the identity
    assert model.step(model.start(6), *inputs)[1][:, base:].abs().max() < 1e-5
    model.rest_speed[0] = -20.0  # one is always fast
    assert model.step(model.start(6), *inputs)[1][:, base:].all()
