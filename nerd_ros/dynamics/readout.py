# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
From what the transformer has seen to the increment of the state, in the form of mechanics.

The equations of motion are linear in efforts and quadratic in velocities, with coefficients that
depend on the pose: the increment is such a form of the token, and the transformer gives the
coefficients. Dry friction and the limits of joints are not smooth: they act where a velocity, or
the room that is left, passes through zero, within a thousandth of the values that occur. So the
velocities and the room that are reached are looked at again, through ramps that end near zero,
and the increment is corrected by them, twice, since what stops one joint moves the others.
"""

import torch
from torch import Tensor, nn

from nerd_ros.dynamics import features
from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.transformer import TransformerConfig

CORRECTIONS = 2
# Where the ramps end at first: of velocities in units of their increments, and of the room to a
# limit in units of what such an increment moves in a step.
RAMPS = (0.01, 0.03, 0.1, 0.3)
ROOM_RAMPS = (0.1, 0.3, 1.0, 3.0)


class Correction(nn.Module):
    """Changes an increment by ramps of the motion that it leads to."""

    def __init__(self, layout: RobotLayout, width: int, rank: int):
        super().__init__()
        self.limited = [layout.qd_start[joint] for joint in layout.limited]
        values = 2 * layout.nqd, 2 * len(self.limited)
        ramps = torch.tensor([RAMPS] * values[0] + [ROOM_RAMPS] * values[1])
        self.log_ramps = nn.Parameter(ramps.log())
        self.terms = nn.Linear(ramps.numel(), rank, bias=False)
        self.coefficients = nn.Linear(width, rank)
        self.combine = nn.Linear(rank, 2 * layout.nqd, bias=False)
        nn.init.zeros_(self.combine.weight)

    def forward(self, hidden: Tensor, velocity: Tensor, room: Tensor, delta: Tensor) -> Tensor:
        """
        Correct `delta (..., 2 nqd)`.

        `velocity (..., nqd)` is in units of its increments, `room (..., 2 L)` in units of what
        these move in a step.
        """
        reached = velocity + delta[..., velocity.shape[-1]:]
        moved = 0.5 * (velocity + reached)[..., self.limited]
        values = torch.cat([velocity, reached, room + torch.cat([moved, -moved], dim=-1)], dim=-1)
        ramps = (values[..., None] / self.log_ramps.exp()).clamp(-1.0, 1.0)
        return delta + self.combine(self.coefficients(hidden) * self.terms(ramps.flatten(-2)))


class Readout(nn.Module):
    """Normalised increments `(..., 2 nqd)` of hidden states and the tokens they belong to."""

    def __init__(self, layout: RobotLayout, config: TransformerConfig):
        super().__init__()
        width, rank, nqd = config.width, config.head_width, layout.nqd
        pairs = torch.triu_indices(nqd, nqd)
        self.register_buffer('pairs', pairs, persistent=False)
        self.head = nn.Linear(width, rank)
        self.out = nn.Linear(rank, 2 * nqd)
        self.terms = nn.Linear(features.token_size(layout) + pairs.shape[1], rank)
        self.coefficients = nn.Linear(width, rank)
        self.combine = nn.Linear(rank, 2 * nqd, bias=False)
        self.corrections = nn.ModuleList(
            Correction(layout, width, max(1, rank // 2)) for _ in range(CORRECTIONS))

    def forward(self, hidden: Tensor, tokens: Tensor, scaled: Tensor, velocity: Tensor,
                room: Tensor) -> Tensor:
        """
        Read `hidden (..., D)` with the normalised `tokens (..., F)`.

        Velocities of all dofs in the base frame come twice, `(..., nqd)`: `scaled` by their
        spread in the data, and in units of their increments; `room (..., 2 L)` to the limits in
        units of what these move in a step.
        """
        products = scaled[..., self.pairs[0]] * scaled[..., self.pairs[1]]
        terms = self.terms(torch.cat([tokens, products], dim=-1))
        delta = (self.out(nn.functional.silu(self.head(hidden)))
                 + self.combine(self.coefficients(hidden) * terms))
        for correction in self.corrections:
            delta = correction(hidden, velocity, room, delta)
        return delta
