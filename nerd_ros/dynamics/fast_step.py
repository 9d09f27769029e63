# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The streaming step of one robot, compiled with numba: `NerdModel.step` without a framework.

Features, network, readout and increment are the same formulas as in `features.py`,
`transformer.py` and `readout.py`, written as loops over preallocated arrays; a test holds both
equal. Normalisers are folded into the matrices at both ends.
"""

import numpy as np

from nerd_ros.dynamics import fast_kernels as kernels
from nerd_ros.dynamics.fast_arrays import (
    Blocks, Ends, Geometry, History, Readout, Residual, Scratch)
from nerd_ros.dynamics.features import room_columns, velocity_columns
from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.readout import CORRECTIONS
from nerd_ros.dynamics.residual import STEPS
from nerd_ros.dynamics.transformer import TransformerConfig

_KINDS = {'prismatic': kernels.PRISMATIC, 'ball': kernels.BALL}


class FastStep:
    """
    One robot stepped by `model`, with its history.

    `step` takes and fills float32 arrays and allocates nothing.
    """

    def __init__(self, model: NerdModel):
        layout, config = model.layout, model.config
        weights = {k: v.detach().double().cpu().numpy() for k, v in model.state_dict().items()}
        self._geometry = _geometry(layout)
        self._ends, self._readout = _ends(weights), _readout(weights, self._geometry)
        self._blocks = _blocks(weights, len(config.spans))
        self._residual = _residual(weights, config)
        self._history = _history(config, len(self._residual.columns))
        width, rank, n = config.width, config.head_width, layout.nqd
        size, ramps = len(weights['token_mean']), weights['readout.corrections.0.log_ramps'].size
        self._scratch = Scratch(*(np.zeros(k, np.float32) for k in (
            size, 2 * size, width, width, 3 * width, config.mlp_ratio * width, width,
            max(config.spans), rank, rank, size + n * (n + 1) // 2,
            2 * (n + len(layout.limited)), ramps, 2 * n, 2 * n, config.residual_width,
            config.residual_width)))

    @property
    def score(self) -> float:
        """Distance of the last token from the training data, see `NerdModel.ood_score`."""
        return float(np.abs(self._scratch.reach).max())

    def reset(self) -> None:
        """Forget the history."""
        self._history.known[0] = 0

    def step(self, joint_q: np.ndarray, joint_qd: np.ndarray, effort: np.ndarray,
             contacts: np.ndarray, gravity: np.ndarray, base_pose: np.ndarray,
             next_q: np.ndarray, next_qd: np.ndarray) -> None:
        """
        Fill `next_q (nq,)` and `next_qd (nqd,)`, which may be the inputs.

        Inputs are those of `features.tokens` without leading dimensions, float32.
        """
        kernels.step(joint_q, joint_qd, effort, contacts, gravity, base_pose, next_q, next_qd,
                     self._geometry, self._ends, self._blocks, self._readout, self._residual,
                     self._history, self._scratch)


def _geometry(layout: RobotLayout) -> Geometry:
    limited = [layout.joints[joint] for joint in layout.limited]
    return Geometry(
        np.float32(layout.dt), layout.floating, np.array(layout.base_com, np.float32),
        np.array([_KINDS.get(joint.type, kernels.ANGLE) for joint in layout.joints], np.int64),
        np.array(layout.q_start, np.int64), np.array(layout.qd_start, np.int64),
        np.float32(layout.contact_threshold), layout.mimic_q, layout.mimic_qd,
        layout.mimic_coeffs,
        np.array([layout.q_start[joint] for joint in layout.limited], np.int64),
        np.array([layout.qd_start[joint] for joint in layout.limited], np.int64),
        np.array([joint.lower for joint in limited], np.float32),
        np.array([joint.upper for joint in limited], np.float32),
        np.array(velocity_columns(layout), np.int64), min(room_columns(layout), default=0))


def _ends(w: dict) -> Ends:
    mean, std, scale = w['token_mean'], w['token_std'], w['increment_scale']
    embed, reach = w['network.embed.weight'] / std, w['directions'] / std
    rest_speed = np.log1p(np.exp(w['rest_speed'])) * scale[len(w['rest_speed']):]
    return Ends(*_float32(embed, w['network.embed.bias'] - embed @ mean, reach, -reach @ mean,
                          w['network.norm.weight'], rest_speed))


def _readout(w: dict, geometry: Geometry) -> Readout:
    mean, std, scale = w['token_mean'], w['token_std'], w['increment_scale']
    size, n = len(mean), len(geometry.velocities)
    first, second = geometry.velocities[np.array(np.triu_indices(n))]
    terms = w['readout.terms.weight'] / np.concatenate([std, std[first] * std[second]])
    room = geometry.dt * scale[n:][geometry.limited_qd]
    units = np.concatenate([scale[n:], scale[n:], room, room])

    def corrections(name: str) -> np.ndarray:
        return np.stack([w[f'readout.corrections.{i}.{name}'] for i in range(CORRECTIONS)])
    return Readout(*_float32(
        w['readout.head.weight'], w['readout.head.bias'],
        w['readout.out.weight'] * scale[:, None], w['readout.out.bias'] * scale,
        terms, w['readout.terms.bias'] - terms[:, :size] @ mean,
        w['readout.coefficients.weight'], w['readout.coefficients.bias'],
        w['readout.combine.weight'] * scale[:, None],
        1.0 / (np.exp(corrections('log_ramps')) * units[:, None]),
        corrections('terms.weight'), corrections('coefficients.weight'),
        corrections('coefficients.bias'), corrections('combine.weight') * scale[:, None]))


def _blocks(w: dict, layers: int) -> Blocks:
    names = ('norm1.weight', 'attention.qkv.weight', 'attention.out.weight', 'norm2.weight',
             'expand.weight', 'expand.bias', 'contract.weight', 'contract.bias')
    return Blocks(*_float32(*(
        np.stack([w[f'network.blocks.{i}.{name}'] for i in range(layers)]) for name in names)))


def _residual(w: dict, config: TransformerConfig) -> Residual:
    mean, std, scale = w['token_mean'], w['token_std'], w['increment_scale']
    if not config.residual_width:
        return Residual(np.zeros(0, np.int64), *_float32(*(
            np.zeros((0,) * dimensions) for dimensions in (2, 1, 3, 2, 2, 1))))
    columns = np.flatnonzero(w['residual.scale'])
    gain = (w['residual.scale'] / std)[columns]
    offset = mean[columns] + w['residual.mean'][columns] * std[columns]
    first = w['residual.first.weight'].reshape(config.residual_width, STEPS, -1)[:, :, columns]
    first = first * gain
    bias = w['residual.first.bias'] - first.sum(1) @ offset
    velocity = scale[len(scale) // 2:]
    return Residual(columns, *_float32(
        first.reshape(config.residual_width, -1), bias,
        *(np.stack([w[f'residual.layers.{i}.{name}'] for i in range(2)])
          for name in ('weight', 'bias')),
        w['residual.out.weight'] * velocity[:, None], w['residual.out.bias'] * velocity))


def _history(config: TransformerConfig, columns: int) -> History:
    ages = max(config.spans)
    frequency = 10.0 ** -np.linspace(0.0, 2.0, config.width // config.heads // 2)
    angle = np.arange(ages)[:, None] * frequency
    return History(
        *_float32(np.cos(angle), np.sin(angle)), np.array(config.spans, np.int64), config.heads,
        np.zeros((len(config.spans), 2, ages, config.width), np.float32), np.zeros(1, np.int64),
        np.zeros((STEPS, columns), np.float32))


def _float32(*arrays: np.ndarray) -> tuple[np.ndarray, ...]:
    return tuple(np.ascontiguousarray(array, np.float32) for array in arrays)
