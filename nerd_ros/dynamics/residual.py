# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
What recordings of the real robot teach on top of the teacher.

A small perceptron sees the tokens of the last steps and adds to the change of velocity, as the
actuator network of Hwangbo et al. (2019) adds what motors do: friction, delay, wear. The network
that learned from the teacher stays as it is, so that nothing of it is forgotten.
"""

import torch
from torch import nn, Tensor

STEPS = 10
"""Steps whose tokens are seen, the current one included."""


class Residual(nn.Module):
    """
    Normalised velocity increments `(..., nqd)` from windows of normalised tokens.

    At first it adds nothing. Inputs of which `fit_inputs` sees no variation are left out: nothing
    can be learned of them.
    """

    def __init__(self, inputs: int, outputs: int, width: int):
        super().__init__()
        self.register_buffer('mean', torch.zeros(inputs))
        self.register_buffer('scale', torch.ones(inputs))
        self.first = nn.Linear(STEPS * inputs, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.out = nn.Linear(width, outputs)
        nn.init.zeros_(self.out.weight)
        nn.init.zeros_(self.out.bias)

    @torch.no_grad()
    def fit_inputs(self, tokens: Tensor) -> None:
        """Set the scaling from the normalised tokens `(N, F)` of the recordings."""
        std = tokens.std(0)
        self.mean.copy_(tokens.mean(0))
        self.scale.copy_(torch.where(std > 1e-3, 1.0 / std, torch.zeros_like(std)))

    def forward(self, window: Tensor) -> Tensor:
        """Read windows `(..., STEPS, F)`, newest token first."""
        x = nn.functional.silu(self.first(((window - self.mean) * self.scale).flatten(-2)))
        for layer in self.layers:
            x = x + nn.functional.silu(layer(x))
        return self.out(x)


def windows(tokens: Tensor) -> Tensor:
    """
    Windows `(B, T, STEPS, F)` of sequences `(B, T, F)`, newest token first.

    What lies before the start is as the first token.
    """
    before = tokens[:, :1].expand(-1, STEPS - 1, -1)
    return torch.cat([before, tokens], dim=1).unfold(1, STEPS, 1).flip(-1).transpose(-1, -2)


def advance(window: Tensor, token: Tensor, started: Tensor) -> Tensor:
    """
    Window `(W, STEPS, F)` with the new `token (W, F)` in front.

    Where it is the first token of a motion, not `started (W,)`, it fills the window.
    """
    moved = torch.cat([token[:, None], window[:, :-1]], dim=1)
    return torch.where(started[:, None, None], moved, token[:, None])
