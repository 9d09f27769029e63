# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""NerdModel: from state, contacts, effort and gravity of the last 10 steps to the next state."""

import torch
from torch import Tensor, nn

from nerd_ros.dynamics import features, residual
from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.readout import Readout
from nerd_ros.dynamics.transformer import Transformer, TransformerConfig


class Stream:
    """History of W robots that are simulated step by step, and their last score."""

    def __init__(self, model: 'NerdModel', num_worlds: int):
        config, zeros = model.config, model.token_mean.new_zeros
        self.caches = [zeros(2, num_worlds, span, config.width) for span in config.spans]
        self.known = zeros(num_worlds, max(config.spans), dtype=torch.bool)
        self.window = (zeros(num_worlds, residual.STEPS, len(model.token_mean))
                       if model.residual else None)
        self.score = zeros(num_worlds)
        """Distance of the last token from the training data, see `NerdModel.ood_score`."""

    def reset(self, world_mask: Tensor | None = None) -> None:
        """Forget the history of the worlds in `world_mask (W,)`, of all by default."""
        if world_mask is None:
            world_mask = torch.ones_like(self.known[:, 0])
        self.known = self.known & ~world_mask[:, None]


class NerdModel(nn.Module):
    """
    Neural robot dynamics of one robot (arXiv 2508.15755).

    `layout` is the robot, `config` the size of the network, `card` what the model card says.
    Normalisers are buffers of the model: they are set once by `fit_normalisers` and travel with
    the weights.

    Dry friction brings a robot to rest within a step and keeps it there, which a smooth function
    only comes close to. So next velocities that are all small become zero, see `predict`.
    """

    def __init__(self, layout: RobotLayout, config: TransformerConfig | None = None,
                 card: dict | None = None):
        super().__init__()
        self.layout, self.config, self.card = layout, config or TransformerConfig(), card or {}
        inputs, outputs = features.token_size(layout), 2 * layout.nqd
        self.network = Transformer(self.config, inputs)
        self.readout = Readout(layout, self.config)
        self.residual = (residual.Residual(inputs, layout.nqd, self.config.residual_width)
                         if self.config.residual_width else None)
        # Speeds of rest, in units of increments, before softplus; at first there is no rest.
        self.rest_speed = nn.Parameter(torch.full((layout.nqd,), -20.0))
        self.register_buffer('token_mean', torch.zeros(inputs))
        self.register_buffer('token_std', torch.ones(inputs))
        self.register_buffer('increment_scale', torch.ones(outputs))
        # What the score looks at: single inputs and principal directions, scaled.
        self.register_buffer('directions', torch.zeros(2 * inputs, inputs))
        # Above this speed [rad/s, m/s] of a dof, shape (nqd,), a state is not to be trusted: twice
        # the largest in training, which the robot itself can exceed a little.
        self.register_buffer('speed_limit', torch.full((layout.nqd,), torch.inf))

    @torch.no_grad()
    def fit_normalisers(self, tokens: Tensor, increments: Tensor, joint_qd: Tensor) -> None:
        """
        Set normalisers, score and speed limit from training data.

        `tokens (N, F)`, `increments (N, 2 nqd)`, `joint_qd (N, nqd)`. Increments of velocities
        are scaled by their mean magnitude, since impacts would dominate a standard deviation;
        those of positions by what such a change of velocity moves in a step, so that errors of
        both count by what they lead to.
        """
        self.token_mean.copy_(tokens.mean(0))
        std = tokens.std(0)
        # A constant input carries nothing; dividing by its rounding noise would.
        self.token_std.copy_(torch.where(std > 1e-4, std, torch.ones_like(std)))
        magnitude = increments[:, self.layout.nqd:].abs().mean(0)
        magnitude = torch.where(magnitude > 1e-8, magnitude, torch.ones_like(magnitude))
        self.increment_scale.copy_(torch.cat([0.5 * self.layout.dt * magnitude, magnitude]))
        self._fit_score(self.normalise(tokens))
        self.speed_limit.copy_(2.0 * joint_qd.abs().amax(0))

    def _fit_score(self, normed: Tensor) -> None:
        vector = torch.linalg.eigh(normed.T.double() @ normed.double())[1].to(normed.dtype)
        directions = torch.cat([torch.eye(len(vector)), vector.T])
        for direction in directions:
            # Directions in which the data hardly varies are not to be resolved further than this.
            direction /= _quantile((normed @ direction).abs(), 0.999).clamp(min=1e-2)
        self.directions.copy_(directions)
        largest = torch.cat([self._reach(part) for part in normed.split(100_000)])
        self.directions /= _quantile(largest, 0.99)

    def _reach(self, normed: Tensor) -> Tensor:
        return (normed @ self.directions.T).abs().amax(-1)

    def normalise(self, tokens: Tensor) -> Tensor:
        """Tokens `(..., F)` as the network sees them."""
        return (tokens - self.token_mean) / self.token_std

    def ood_score(self, tokens: Tensor) -> Tensor:
        """
        Distance `(...)` of tokens `(..., F)` from the training data.

        The largest reach along single inputs and principal directions, each in units of its
        99.9th percentile in training, the whole divided by its 99th percentile there: above 1
        the model is asked about something that it has hardly seen.
        """
        return self._reach(self.normalise(tokens))

    def forward(self, tokens: Tensor) -> Tensor:
        """Increments `(B, T, 2 nqd)` of the sequences of raw tokens `(B, T, F)`."""
        return self.predict(self.normalise(tokens)) * self.increment_scale

    def predict(self, normed: Tensor, rest: bool = True) -> Tensor:
        """
        Normalised increments `(B, T, 2 nqd)` of normalised tokens `(B, T, F)`.

        Without `rest` nothing is brought to rest.
        """
        window = residual.windows(normed) if self.residual else None
        return self._read(self.network(normed), normed, window, rest)

    def _read(self, hidden: Tensor, normed: Tensor, window: Tensor | None,
              rest: bool = True) -> Tensor:
        columns = features.velocity_columns(self.layout)
        std = self.token_std[columns]
        # Without the mean: what is zero stays zero.
        scaled = normed[..., columns] + self.token_mean[columns] / std
        unit = self.increment_scale[self.layout.nqd:]
        velocity = scaled * std / unit
        columns = list(features.room_columns(self.layout))
        room = normed[..., columns] * self.token_std[columns] + self.token_mean[columns]
        limited = [self.layout.qd_start[joint] for joint in self.layout.limited]
        room = room / (self.layout.dt * unit[limited].repeat(2))
        delta = self.readout(hidden, normed, scaled, velocity, room)
        if self.residual:
            delta = delta + nn.functional.pad(self.residual(window), (self.layout.nqd, 0))
        return self._bring_to_rest(velocity, delta) if rest else delta

    def _bring_to_rest(self, velocity: Tensor, delta: Tensor) -> Tensor:
        """
        Apply firm shrinkage (Gao and Bruce, 1997) to the next velocities, taken together.

        With the learned speeds of rest as unit, those of a norm below 1 become zero, those above 2
        stay as they are; what positions do beyond the mean velocity goes along.
        """
        n = self.layout.nqd
        reached = velocity + delta[..., n:]
        size = (reached / nn.functional.softplus(self.rest_speed)).norm(dim=-1, keepdim=True)
        rest = (2.0 / size.clamp(min=1.0) - 1.0).clamp(min=0.0)
        return delta - rest * torch.cat([delta[..., :n], reached], dim=-1)

    def start(self, num_worlds: int = 1) -> Stream:
        """Histories of `num_worlds` robots, all empty."""
        return Stream(self, num_worlds)

    def step(self, stream: Stream, joint_q: Tensor, joint_qd: Tensor, effort: Tensor,
             contacts: Tensor, gravity: Tensor, base_pose: Tensor) -> tuple[Tensor, Tensor]:
        """
        State of W robots one `dt` later, `(W, nq)` and `(W, nqd)`.

        Inputs are those of `features.tokens` with one leading dimension W; the stream advances.
        """
        tokens = features.tokens(self.layout, joint_q, joint_qd, effort, contacts, gravity,
                                 base_pose)
        newest = torch.ones_like(stream.known[:, :1])
        stream.known = torch.cat([newest, stream.known[:, :-1]], dim=1)
        normed = self.normalise(tokens)
        hidden, stream.caches = self.network.step(normed, stream.caches, stream.known)
        if self.residual:
            stream.window = residual.advance(stream.window, normed, stream.known[:, 1])
        delta = self._read(hidden, normed, stream.window)
        stream.score = self.ood_score(tokens)
        return features.apply_increment(self.layout, joint_q, joint_qd,
                                        delta * self.increment_scale)

    def rollout(self, joint_q: Tensor, joint_qd: Tensor, effort: Tensor, contacts, gravity: Tensor,
                base_pose: Tensor) -> tuple[Tensor, Tensor]:
        """
        Free-running motion under `effort (W, T, num_dofs)` from `(W, nq)`, `(W, nqd)`.

        `contacts` is a function of `(joint_q, joint_qd)` that returns `(W, S, 7)`. The base pose
        of a floating base is taken from the state. Returns `(W, T + 1, nq)`, `(W, T + 1, nqd)`.
        Gradients flow to the first state and the efforts when torch records them.
        """
        stream = self.start(len(joint_q))
        all_q, all_qd = [joint_q], [joint_qd]
        for t in range(effort.shape[1]):
            pose = joint_q[:, :7] if self.layout.floating else base_pose
            joint_q, joint_qd = self.step(stream, joint_q, joint_qd, effort[:, t],
                                          contacts(joint_q, joint_qd), gravity, pose)
            all_q.append(joint_q)
            all_qd.append(joint_qd)
        return torch.stack(all_q, 1), torch.stack(all_qd, 1)


def _quantile(values: Tensor, share: float) -> Tensor:
    """Quantile of a vector of any length; `torch.quantile` has a limit."""
    return values.kthvalue(max(1, round(share * len(values))))[0]
