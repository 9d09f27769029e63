# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Robots and models with random weights, of every joint type."""

import pytest
import torch

from nerd_ros.dynamics import features
from nerd_ros.dynamics.layout import JointLayout, RobotLayout, SlotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig

SLOTS = tuple(SlotLayout('leg', (0.0, 0.0, 0.1 * i), 0.02) for i in range(3))
FIXED = RobotLayout(
    'arm', 0.005, False,
    (JointLayout('turn', 'continuous', -1e10, 1e10, 6.0),
     JointLayout('slide', 'prismatic', -1.0, 1.0, 20.0)),
    SLOTS, 0.1, (0.0, 0.0, 0.0), 'a' * 64)
FLOATING = RobotLayout(
    'walker', 0.01, True,
    (JointLayout('hip', 'ball', -1.0, 1.0, 5.0), JointLayout('knee', 'revolute', -1.0, 1.0, 6.0)),
    SLOTS, 0.1, (0.05, -0.02, 0.1), 'b' * 64)


@pytest.fixture(params=[FIXED, FLOATING], ids=['fixed', 'floating'])
def layout(request):
    """Robot with a fixed and one with a floating base."""
    return request.param


@pytest.fixture(params=[0, 24], ids=['', 'with residual'])
def model(request, layout):
    """Model with random weights, speeds of rest and normalisers that are not trivial."""
    torch.manual_seed(1)
    config = TransformerConfig(width=32, head_width=16, residual_width=request.param)
    model = NerdModel(layout, config).eval()
    size = features.token_size(layout)
    model.fit_normalisers(torch.randn(2000, size) * torch.linspace(0.5, 3.0, size) + 0.3,
                          0.1 * torch.randn(2000, 2 * layout.nqd),
                          torch.randn(2000, layout.nqd))
    torch.nn.init.normal_(model.rest_speed)
    for correction in model.readout.corrections:
        torch.nn.init.normal_(correction.combine.weight, std=0.3)
    if model.residual:
        tokens = model.normalise(torch.randn(100, size) + 0.2)
        tokens[:, 4] = 0.0   # an input that never varies
        model.residual.fit_inputs(tokens)
        torch.nn.init.normal_(model.residual.out.weight, std=0.3)
    return model


def random_inputs(layout, *leading, generator=None):
    """State and surroundings with leading dimensions, in the order of `features.tokens`."""
    def normal(*shape, scale=1.0):
        return scale * torch.randn(*leading, *shape, generator=generator)

    def unit(*shape):
        return torch.nn.functional.normalize(normal(*shape), dim=-1)

    joint_q = normal(layout.nq)
    if layout.floating:
        joint_q[..., 3:7] = unit(4)
    for joint, start in zip(layout.joints, layout.q_start):
        if joint.type == 'ball':
            joint_q[..., start:start + 4] = unit(4)
    pose = joint_q[..., :7] if layout.floating else torch.cat([normal(3), unit(4)], dim=-1)
    contacts = torch.cat([normal(layout.num_slots, 3), unit(layout.num_slots, 3),
                          normal(layout.num_slots, 1, scale=0.1)], dim=-1)
    return [joint_q, normal(layout.nqd), normal(layout.num_dofs), contacts, 9.81 * unit(3),
            pose]
