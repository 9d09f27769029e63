# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Gradients flow through a rollout, to the first state and to every effort."""

from dataclasses import replace

from dynamics.conftest import random_inputs
import pytest
import torch

from nerd_ros.dynamics.frames import quat_rotate

STEPS = 4


@pytest.fixture
def layout(layout):
    """Robot whose slots see the ground wherever it goes: where one begins to see is a kink."""
    return replace(layout, contact_threshold=10.0)


def contacts_above_ground(layout, base_pose):
    """Return the contacts of points of the base, or of the arm's slide, with the plane z = 0."""
    points = torch.tensor([slot.point for slot in layout.slots]).double()

    def contacts(joint_q, joint_qd):
        pose = joint_q[:, :7] if layout.floating else base_pose
        reach = points if layout.floating else points + joint_q[:, None, 1:2]
        place = pose[:, None, :3] + quat_rotate(pose[:, None, 3:].expand(-1, len(points), 4),
                                                reach.expand(len(pose), -1, 3))
        normal = torch.tensor([0.0, 0.0, 1.0], dtype=torch.double).expand_as(place)
        # Scaled, so that `touch` is neither 0 nor 1.
        return torch.cat([place, normal, 0.005 * place[..., 2:]], dim=-1)

    return contacts


def test_gradients_of_a_rollout_equal_finite_differences(layout, model):
    model = model.double().requires_grad_(False)
    torch.manual_seed(2)
    joint_q, joint_qd, _, _, gravity, pose = (
        value.double() for value in random_inputs(layout, 1))
    effort = torch.randn(1, STEPS, layout.num_dofs, dtype=torch.double)
    contacts = contacts_above_ground(layout, pose)
    weights = torch.randn(layout.nq + layout.nqd, dtype=torch.double)

    def loss(joint_q, joint_qd, effort):
        motion = torch.cat(model.rollout(joint_q, joint_qd, effort, contacts, gravity, pose), -1)
        return (motion[:, 1:] * weights).square().mean()

    inputs = [value.requires_grad_() for value in (joint_q, joint_qd, effort)]
    assert torch.autograd.gradcheck(loss, inputs, eps=1e-6, atol=1e-7, rtol=1e-4)
    for gradient in torch.autograd.grad(loss(*inputs), inputs):
        assert gradient.isfinite().all() and (gradient != 0.0).all()
