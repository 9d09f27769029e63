# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The causal transformer, once for whole sequences and once for one step with a cache.

Attention is local: layer `i` sees the last `spans[i]` steps, so that the receptive field of the
stack is `sum(spans) - len(spans) + 1` steps. Positions are rotary (RoFormer, arXiv 2104.09864)
and enter as the age of a key, 0 for the current step; that makes both forms equal and lets a
simulation run for ever without a position counter. Keys of steps before the start are masked:
the first prediction sees one token.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

# Largest sizes of a network. What is beyond is a slip, and would take all memory.
LARGEST = {'width': 4096, 'heads': 256, 'mlp_ratio': 16, 'head_width': 4096, 'spans': 64,
           'residual_width': 4096}


@dataclass(frozen=True)
class TransformerConfig:
    """
    Sizes of the network; the default spans give a receptive field of 10 steps.

    `residual_width` is that of `Residual`, which a fine-tuned model has; 0 is none.
    """

    width: int = 96
    heads: int = 4
    mlp_ratio: int = 4
    head_width: int = 64
    spans: tuple[int, ...] = (4, 4, 4)
    residual_width: int = 0

    def __post_init__(self):
        """Refuse sizes that cannot be."""
        if not isinstance(self.spans, tuple) or not 1 <= len(self.spans) <= LARGEST['spans']:
            raise ValueError(f'spans {self.spans!r} must be a list of 1 to {LARGEST["spans"]} '
                             'spans, one for each layer')
        for name, largest in LARGEST.items():
            values, least = getattr(self, name), int(name != 'residual_width')
            for value in values if name == 'spans' else (values,):
                if type(value) is not int or not least <= value <= largest:
                    raise ValueError(f'{name} {values!r} must be whole, from {least} to {largest}')
        if self.width % (2 * self.heads):
            raise ValueError(f'width {self.width} must be a multiple of 2 * heads {self.heads}')

    @property
    def receptive_field(self) -> int:
        """Number of steps, the current one included, that a prediction depends on."""
        return sum(self.spans) - len(self.spans) + 1


class LocalAttention(nn.Module):
    """Multi-head attention over the current step and the `span - 1` before it."""

    def __init__(self, width: int, heads: int, span: int):
        super().__init__()
        self.heads, self.span = heads, span
        self.head_size = width // heads
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        frequency = 10.0 ** -torch.linspace(0.0, 2.0, self.head_size // 2)
        angle = torch.arange(span)[:, None] * frequency
        self.register_buffer('cos', angle.cos(), persistent=False)  # (span, head_size / 2)
        self.register_buffer('sin', angle.sin(), persistent=False)

    def forward(self, x: Tensor) -> Tensor:
        """Attend within the sequences `x (B, T, D)`."""
        query, keys, values = self.qkv(x).chunk(3, dim=-1)
        steps = torch.arange(x.shape[1], device=x.device)
        known = steps[:, None] >= torch.arange(self.span, device=x.device)  # (T, span)
        return self._attend(query, self._window(keys), self._window(values), known)

    def step(self, x: Tensor, cache: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """
        Attend from one step `x (W, D)` to the keys and values of `cache (2, W, span, D)`.

        Ages run from the newest; `known (W, longest span)` says which lie after the start.
        Returns the attended step and the advanced cache; the old one is left alone, so that
        gradients can flow through a rollout.
        """
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        newest = torch.stack([key, value]).unsqueeze(2)
        cache = torch.cat([newest, cache[:, :, :-1]], dim=2)
        return self._attend(query, cache[0], cache[1], known[:, :self.span]), cache

    def _window(self, x: Tensor) -> Tensor:
        """`(B, T, D)` to `(B, T, span, D)`: what each step sees, newest first."""
        padded = F.pad(x, (0, 0, self.span - 1, 0))
        return padded.unfold(1, self.span, 1).flip(-1).transpose(-1, -2)

    def _attend(self, query: Tensor, keys: Tensor, values: Tensor, known: Tensor) -> Tensor:
        query = query.unflatten(-1, (self.heads, self.head_size))  # (..., H, d)
        keys = keys.unflatten(-1, (self.heads, self.head_size))  # (..., span, H, d)
        values = values.unflatten(-1, (self.heads, self.head_size))
        # Turning the query forward by the age of a key equals turning the key back.
        first, second = query.unsqueeze(-3).chunk(2, dim=-1)
        cos, sin = self.cos[:, None], self.sin[:, None]
        turned = torch.cat([first * cos - second * sin, second * cos + first * sin], dim=-1)
        scores = (turned * keys).sum(-1) * self.head_size ** -0.5  # (..., span, H)
        scores = scores.masked_fill(~known[..., None], float('-inf'))
        mixed = (scores.softmax(dim=-2).unsqueeze(-1) * values).sum(-3)
        return self.out(mixed.flatten(-2))


class Block(nn.Module):
    """Pre-norm attention and a two-layer perceptron with squared ReLU (arXiv 2109.08668)."""

    def __init__(self, width: int, heads: int, mlp_ratio: int, span: int):
        super().__init__()
        self.norm1 = nn.RMSNorm(width, eps=1e-6)
        self.attention = LocalAttention(width, heads, span)
        self.norm2 = nn.RMSNorm(width, eps=1e-6)
        self.expand = nn.Linear(width, mlp_ratio * width)
        self.contract = nn.Linear(mlp_ratio * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Map sequences `x (B, T, D)`."""
        return self._perceive(x + self.attention(self.norm1(x)))

    def step(self, x: Tensor, cache: Tensor, known: Tensor) -> tuple[Tensor, Tensor]:
        """Map one step `x (W, D)`; returns it with the advanced cache."""
        attended, cache = self.attention.step(self.norm1(x), cache, known)
        return self._perceive(x + attended), cache

    def _perceive(self, x: Tensor) -> Tensor:
        return x + self.contract(F.relu(self.expand(self.norm2(x))).square())


class Transformer(nn.Module):
    """Normalised tokens in, hidden states of `config.width` out."""

    def __init__(self, config: TransformerConfig, inputs: int):
        super().__init__()
        self.config = config
        self.embed = nn.Linear(inputs, config.width)
        self.blocks = nn.ModuleList(
            Block(config.width, config.heads, config.mlp_ratio, span) for span in config.spans)
        self.norm = nn.RMSNorm(config.width, eps=1e-6)

    def forward(self, tokens: Tensor) -> Tensor:
        """Map sequences `(B, T, inputs)` to `(B, T, D)`, each step from its past only."""
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.norm(x)

    def step(self, tokens: Tensor, caches: list[Tensor],
             known: Tensor) -> tuple[Tensor, list[Tensor]]:
        """Map one step `(W, inputs)` to `(W, D)`; returns it with the advanced caches."""
        x, advanced = self.embed(tokens), []
        for block, cache in zip(self.blocks, caches):
            x, cache = block.step(x, cache, known)
            advanced.append(cache)
        return self.norm(x), advanced
