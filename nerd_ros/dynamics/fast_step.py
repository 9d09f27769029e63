# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
The streaming step of one robot, compiled with numba: `NerdModel.step` without a framework.

Features, network, readout and increment are the same formulas as in `features.py`,
`transformer.py` and `readout.py`, written as loops over preallocated arrays; a test holds both
equal. Normalisers are folded into the matrices at both ends.
"""

import math

from numba import njit
import numpy as np

from nerd_ros.dynamics.features import (
    CREEP_SPEED, LIMIT_RANGE, SLOT_FEATURES, TOUCH_SCALE, velocity_columns)
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.readout import CORRECTIONS

_PRISMATIC, _BALL, _ANGLE = 0, 1, 2
_KINDS = {'prismatic': _PRISMATIC, 'ball': _BALL}
# Reassociation lets sums vectorise; NaN and infinity must stay what they are for the guard.
_compiled = njit(cache=True, fastmath={'reassoc', 'contract', 'nsz', 'arcp'}, error_model='numpy')


class FastStep:
    """
    One robot stepped by `model`, with its history.

    `step` takes and fills float32 arrays and allocates nothing.
    """

    def __init__(self, model: NerdModel):
        layout, config = model.layout, model.config
        self._geometry = (
            np.float32(layout.dt), layout.floating, np.array(layout.base_com, np.float32),
            np.array([_KINDS.get(joint.type, _ANGLE) for joint in layout.joints], np.int64),
            np.array(layout.q_start, np.int64), np.array(layout.qd_start, np.int64),
            np.float32(layout.contact_threshold), layout.mimic_q, layout.mimic_qd,
            layout.mimic_coeffs, *_limits(layout), layout.num_slots)
        weights = {k: v.detach().double().cpu().numpy() for k, v in model.state_dict().items()}
        columns = np.array(velocity_columns(layout), np.int64)
        self._outer = _outer_weights(weights)
        self._readout = _readout_weights(weights, columns, layout)
        self._layers = _layer_weights(weights, len(config.spans))
        ages = max(config.spans)
        frequency = 10.0 ** -np.linspace(0.0, 2.0, config.width // config.heads // 2)
        angle = np.arange(ages)[:, None] * frequency
        self._rotary = (np.cos(angle).astype(np.float32), np.sin(angle).astype(np.float32),
                        np.array(config.spans, np.int64), config.heads)
        width = config.width
        self._cache = np.zeros((len(config.spans), 2, ages, width), np.float32)
        self._known = np.zeros(1, np.int64)
        size, rank, n = len(weights['token_mean']), config.head_width, layout.nqd
        ramps = weights['readout.corrections.0.log_ramps'].size
        values = 2 * (n + len(layout.limited))
        self._scratch = tuple(np.zeros(k, np.float32) for k in (
            size, 2 * size, width, width, 3 * width, config.mlp_ratio * width, width, ages))
        self._forms = tuple(np.zeros(k, np.float32) for k in (
            rank, rank, size + n * (n + 1) // 2, values, ramps, 2 * n, 2 * n))

    @property
    def score(self) -> float:
        """Distance of the last token from the training data, see `NerdModel.ood_score`."""
        return float(np.abs(self._scratch[1]).max())

    def reset(self) -> None:
        """Forget the history."""
        self._known[0] = 0

    def step(self, joint_q: np.ndarray, joint_qd: np.ndarray, effort: np.ndarray,
             contacts: np.ndarray, gravity: np.ndarray, base_pose: np.ndarray,
             next_q: np.ndarray, next_qd: np.ndarray) -> None:
        """
        Fill `next_q (nq,)` and `next_qd (nqd,)`, which may be the inputs.

        Inputs are those of `features.tokens` without leading dimensions, float32.
        """
        _step(joint_q, joint_qd, effort, contacts, gravity, base_pose, next_q, next_qd,
              self._geometry, self._outer, self._layers, self._readout, self._rotary, self._cache,
              self._known, self._scratch, self._forms)


def _limits(layout) -> tuple:
    """First coordinate, first dof, lower and upper limit of each limited joint, (L,) each."""
    joints = [layout.joints[joint] for joint in layout.limited]
    return (np.array([layout.q_start[joint] for joint in layout.limited], np.int64),
            np.array([layout.qd_start[joint] for joint in layout.limited], np.int64),
            np.array([joint.lower for joint in joints], np.float32),
            np.array([joint.upper for joint in joints], np.float32))


def _outer_weights(w: dict) -> tuple:
    mean, std, scale = w['token_mean'], w['token_std'], w['increment_scale']
    embed = w['network.embed.weight'] / std
    reach = w['directions'] / std
    return tuple(np.ascontiguousarray(a, np.float32) for a in (
        embed, w['network.embed.bias'] - embed @ mean, reach, -reach @ mean,
        w['network.norm.weight'],
        np.log1p(np.exp(w['rest_speed'])) * scale[len(w['rest_speed']):]))


def _readout_weights(w: dict, columns: np.ndarray, layout) -> tuple:
    """Matrices of the readout on raw tokens, for increments in SI units."""
    mean, std, scale = w['token_mean'], w['token_std'], w['increment_scale']
    size, n = len(mean), len(columns)
    first, second = np.triu_indices(n)
    terms = w['readout.terms.weight'] / np.concatenate(
        [std, std[columns[first]] * std[columns[second]]])
    # Row by row: coefficients of the bilinear form, then those of the corrections, one matrix.
    names = [f'readout.corrections.{i}.' for i in range(CORRECTIONS)]
    coefficients = [np.concatenate([w[f'{name}coefficients.{part}'] for name in names])
                    for part in ('weight', 'bias')]
    limited = [layout.qd_start[joint] for joint in layout.limited] * 2
    units = np.concatenate([scale[n:], scale[n:], layout.dt * scale[n:][limited]])
    ramps = np.exp(np.stack([w[f'{name}log_ramps'] for name in names])) * units[:, None]
    return (columns, *(np.ascontiguousarray(a, np.float32) for a in (
        w['readout.head.weight'], w['readout.head.bias'],
        w['readout.out.weight'] * scale[:, None], w['readout.out.bias'] * scale,
        terms, w['readout.terms.bias'] - terms[:, :size] @ mean,
        w['readout.coefficients.weight'], w['readout.coefficients.bias'],
        w['readout.combine.weight'] * scale[:, None],
        1.0 / ramps, np.stack([w[f'{name}terms.weight'] for name in names]),
        *(c.reshape(CORRECTIONS, -1, *c.shape[1:]) for c in coefficients),
        np.stack([w[f'{name}combine.weight'] for name in names]) * scale[:, None])))


def _layer_weights(w: dict, layers: int) -> tuple:
    names = ('norm1.weight', 'attention.qkv.weight', 'attention.out.weight', 'norm2.weight',
             'expand.weight', 'expand.bias', 'contract.weight', 'contract.bias')
    return tuple(np.stack([w[f'network.blocks.{i}.{name}'] for i in range(layers)]
                          ).astype(np.float32) for name in names)


@_compiled
def _step(q, qd, effort, contacts, gravity, pose, next_q, next_qd, geometry, outer, layers,
          readout, rotary, cache, known, scratch, forms):
    token, reach, x, normed, qkv, hidden, mixed, scores = scratch
    embed, embed_bias, directions, directions_bias, norm, rest_speed = outer
    norm1, qkv_weight, out_weight, norm2, expand, expand_bias, contract, contract_bias = layers
    spans = rotary[2]
    _token(q, qd, effort, contacts, gravity, pose, geometry, token)
    _affine(directions, directions_bias, token, reach)
    _affine(embed, embed_bias, token, x)
    known[0] = min(known[0] + 1, cache.shape[2])
    for i in range(len(spans)):
        _rms_norm(x, norm1[i], normed)
        _product(qkv_weight[i], normed, qkv)
        _attend(qkv, cache[i], min(known[0], spans[i]), rotary, scores, mixed)
        _product(out_weight[i], mixed, normed)
        for j in range(len(x)):
            x[j] += normed[j]
        _rms_norm(x, norm2[i], normed)
        _affine(expand[i], expand_bias[i], normed, hidden)
        for j in range(len(hidden)):
            positive = max(hidden[j], np.float32(0.0))
            hidden[j] = positive * positive
        _affine(contract[i], contract_bias[i], hidden, normed)
        for j in range(len(x)):
            x[j] += normed[j]
    _rms_norm(x, norm, normed)
    _read(normed, token, geometry, readout, forms)
    columns, delta = readout[0], forms[5]
    _bring_to_rest(token, columns, rest_speed, delta)
    _advance(q, qd, delta, geometry, next_q, next_qd)


@_compiled
def _product(weight, x, out):
    """Four rows at a time share each load of x."""
    rows, columns = weight.shape
    whole = rows - rows % 4
    for i in range(0, whole, 4):
        a = b = c = d = np.float32(0.0)
        for j in range(columns):
            value = x[j]
            a += weight[i, j] * value
            b += weight[i + 1, j] * value
            c += weight[i + 2, j] * value
            d += weight[i + 3, j] * value
        out[i], out[i + 1], out[i + 2], out[i + 3] = a, b, c, d
    for i in range(whole, rows):
        a = np.float32(0.0)
        for j in range(columns):
            a += weight[i, j] * x[j]
        out[i] = a


@_compiled
def _affine(weight, bias, x, out):
    _product(weight, x, out)
    for i in range(len(out)):
        out[i] += bias[i]


@_compiled
def _rms_norm(x, weight, out):
    total = np.float32(0.0)
    for i in range(len(x)):
        total += x[i] * x[i]
    scale = np.float32(1.0 / math.sqrt(total / len(x) + 1e-6))
    for i in range(len(x)):
        out[i] = x[i] * scale * weight[i]


@_compiled
def _attend(qkv, cache, ages, rotary, scores, mixed):
    cos, sin, _, heads = rotary
    width = len(mixed)
    size = width // heads
    half = size // 2
    for age in range(ages - 1, 0, -1):
        for j in range(width):
            cache[0, age, j] = cache[0, age - 1, j]
            cache[1, age, j] = cache[1, age - 1, j]
    for j in range(width):
        cache[0, 0, j] = qkv[width + j]
        cache[1, 0, j] = qkv[2 * width + j]
    scale = np.float32(1.0 / math.sqrt(size))
    for h in range(heads):
        at = h * size
        largest = np.float32(-np.inf)
        for age in range(ages):
            total = np.float32(0.0)
            for j in range(half):
                first, second = qkv[at + j], qkv[at + half + j]
                total += ((first * cos[age, j] - second * sin[age, j]) * cache[0, age, at + j]
                          + (second * cos[age, j] + first * sin[age, j])
                          * cache[0, age, at + half + j])
            scores[age] = total * scale
            largest = max(largest, scores[age])
        total = np.float32(0.0)
        for age in range(ages):
            scores[age] = math.exp(scores[age] - largest)
            total += scores[age]
        for j in range(at, at + size):
            mixed[j] = np.float32(0.0)
        for age in range(ages):
            share = scores[age] / total
            for j in range(at, at + size):
                mixed[j] += share * cache[1, age, j]


@_compiled
def _read(hidden, token, geometry, weights, forms):
    """The forms of `Readout`, into forms[5]."""
    dt, limited, slots = geometry[0], geometry[11], geometry[14]
    (columns, head_weight, head_bias, out_weight, out_bias, terms_weight, terms_bias,
     coefficients_weight, coefficients_bias, combine, steepness, ramp_terms, ramp_weight,
     ramp_bias, ramp_combine) = weights
    head, values, terms, motion, ramps, delta, change = forms
    n = len(columns)
    _affine(head_weight, head_bias, hidden, head)
    for j in range(len(head)):
        head[j] = head[j] / (np.float32(1.0) + math.exp(-head[j]))
    _affine(out_weight, out_bias, head, delta)
    at = len(token)
    terms[:at] = token
    for i in range(n):
        for j in range(i, n):
            terms[at] = token[columns[i]] * token[columns[j]]
            at += 1
    _affine(terms_weight, terms_bias, terms, values)
    _affine(coefficients_weight, coefficients_bias, hidden, head)
    for j in range(len(head)):
        head[j] *= values[j]
    _product(combine, head, change)
    for j in range(2 * n):
        delta[j] += change[j]
    size, half = steepness.shape[2], np.float32(0.5)
    room = len(token) - SLOT_FEATURES * slots - 2 * len(limited)
    rank = ramp_bias.shape[1]
    for k in range(len(steepness)):
        for i in range(n):
            motion[i] = token[columns[i]]
            motion[n + i] = motion[i] + delta[n + i]
        for i in range(len(limited)):
            dof = limited[i]
            moved = dt * half * (motion[dof] + motion[n + dof])
            motion[2 * n + i] = token[room + i] + moved
            motion[2 * n + len(limited) + i] = token[room + len(limited) + i] - moved
        for i in range(len(motion)):
            for j in range(size):
                ramps[i * size + j] = min(max(motion[i] * steepness[k, i, j], np.float32(-1.0)),
                                          np.float32(1.0))
        _product(ramp_terms[k], ramps, values[:rank])
        _affine(ramp_weight[k], ramp_bias[k], hidden, head[:rank])
        for j in range(rank):
            head[j] *= values[j]
        _product(ramp_combine[k], head[:rank], change)
        for j in range(2 * n):
            delta[j] += change[j]


@_compiled
def _rotate(quat, x, y, z, sign):
    """Rotate a vector by `quat`, or by its inverse when `sign` is -1."""
    a, b, c, w = quat[0], quat[1], quat[2], quat[3] * sign
    tx = np.float32(2.0) * (b * z - c * y)
    ty = np.float32(2.0) * (c * x - a * z)
    tz = np.float32(2.0) * (a * y - b * x)
    return (x + w * tx + b * tz - c * ty, y + w * ty + c * tx - a * tz,
            z + w * tz + a * ty - b * tx)


@_compiled
def _token(q, qd, effort, contacts, gravity, pose, geometry, token):
    _, floating, _, kinds, q_start, _, threshold = geometry[:7]
    quat = pose[3:7]
    back = np.float32(-1.0)
    g = max(np.float32(math.sqrt(gravity[0] ** 2 + gravity[1] ** 2 + gravity[2] ** 2)),
            np.float32(1e-12))
    token[0], token[1], token[2] = _rotate(quat, gravity[0] / g, gravity[1] / g, gravity[2] / g,
                                           back)
    at, base = 3, 0
    if floating:
        base = 6
        token[3], token[4], token[5] = _rotate(quat, qd[0], qd[1], qd[2], back)
        token[6], token[7], token[8] = _rotate(quat, qd[3], qd[4], qd[5], back)
        at = 9
    for joint in range(len(kinds)):
        start = q_start[joint]
        if kinds[joint] == _PRISMATIC:
            token[at] = q[start]
            at += 1
        elif kinds[joint] == _BALL:
            one, zero, forth = np.float32(1.0), np.float32(0.0), np.float32(1.0)
            turn = q[start:start + 4]
            token[at], token[at + 1], token[at + 2] = _rotate(turn, one, zero, zero, forth)
            token[at + 3], token[at + 4], token[at + 5] = _rotate(turn, zero, one, zero, forth)
            at += 6
        else:
            token[at], token[at + 1] = math.sin(q[start]), math.cos(q[start])
            at += 2
    dofs = len(qd) - base
    for i in range(dofs):
        token[at + i] = qd[base + i]
        token[at + dofs + i] = math.tanh(qd[base + i] / CREEP_SPEED)
    at += 2 * dofs
    for i in range(len(effort)):
        token[at] = effort[i]
        at += 1
    limited, _, lower, upper = geometry[10:14]
    for i in range(len(limited)):
        position = q[limited[i]]
        token[at + i] = min(position - lower[i], np.float32(LIMIT_RANGE))
        token[at + len(limited) + i] = min(upper[i] - position, np.float32(LIMIT_RANGE))
    at += 2 * len(limited)
    for s in range(contacts.shape[0]):
        distance = contacts[s, 6]
        if distance < threshold:
            token[at], token[at + 1], token[at + 2] = _rotate(
                quat, contacts[s, 0] - pose[0], contacts[s, 1] - pose[1],
                contacts[s, 2] - pose[2], back)
            token[at + 3], token[at + 4], token[at + 5] = _rotate(
                quat, contacts[s, 3], contacts[s, 4], contacts[s, 5], back)
            token[at + 6] = np.float32(1.0) - distance / threshold
            token[at + 7] = 1.0 / (1.0 + math.exp(distance / TOUCH_SCALE))
        else:
            for i in range(SLOT_FEATURES):
                token[at + i] = np.float32(0.0)
        at += SLOT_FEATURES


@_compiled
def _bring_to_rest(token, columns, rest_speed, delta):
    n, square = len(columns), np.float32(0.0)
    for i in range(n):
        size = (token[columns[i]] + delta[n + i]) / rest_speed[i]
        square += size * size
    rest = np.float32(2.0) / math.sqrt(max(square, np.float32(1.0))) - np.float32(1.0)
    if rest > np.float32(0.0):
        for i in range(n):
            delta[i] -= rest * delta[i]
            delta[n + i] -= rest * (token[columns[i]] + delta[n + i])


@_compiled
def _advance(q, qd, delta, geometry, next_q, next_qd):
    dt, floating, com, kinds, q_start, qd_start = geometry[:6]
    mimic_q, mimic_qd, mimic_coeffs = geometry[7:10]
    n, base = len(qd), 0
    half, forth, back = np.float32(0.5), np.float32(1.0), np.float32(-1.0)
    if floating:
        base = 6
        quat = q[3:7].copy()
        wx, wy, wz = _rotate(quat, qd[3], qd[4], qd[5], back)
        wx, wy, wz = (wx + half * delta[n + 3], wy + half * delta[n + 4],
                      wz + half * delta[n + 5])
        vx, vy, vz = _rotate(quat, qd[0], qd[1], qd[2], back)
        vx += half * delta[n] - (wy * com[2] - wz * com[1])
        vy += half * delta[n + 1] - (wz * com[0] - wx * com[2])
        vz += half * delta[n + 2] - (wx * com[1] - wy * com[0])
        mx, my, mz = _rotate(quat, dt * vx + delta[0], dt * vy + delta[1], dt * vz + delta[2],
                             forth)
        next_q[0], next_q[1], next_q[2] = q[0] + mx, q[1] + my, q[2] + mz
        turn = _exponential(dt * wx + delta[3], dt * wy + delta[4], dt * wz + delta[5])
        _multiply((quat[0], quat[1], quat[2], quat[3]), turn, next_q[3:7])
        mx, my, mz = _rotate(quat, delta[n], delta[n + 1], delta[n + 2], forth)
        wx, wy, wz = _rotate(quat, delta[n + 3], delta[n + 4], delta[n + 5], forth)
    for joint in range(len(kinds)):
        i, j = q_start[joint], qd_start[joint]
        if kinds[joint] == _BALL:
            turn = _exponential(dt * (qd[j] + half * delta[n + j]) + delta[j],
                                dt * (qd[j + 1] + half * delta[n + j + 1]) + delta[j + 1],
                                dt * (qd[j + 2] + half * delta[n + j + 2]) + delta[j + 2])
            _multiply(turn, (q[i], q[i + 1], q[i + 2], q[i + 3]), next_q[i:i + 4])
        else:
            next_q[i] = q[i] + dt * (qd[j] + half * delta[n + j]) + delta[j]
    if floating:
        next_qd[0], next_qd[1], next_qd[2] = qd[0] + mx, qd[1] + my, qd[2] + mz
        next_qd[3], next_qd[4], next_qd[5] = qd[3] + wx, qd[4] + wy, qd[5] + wz
    for i in range(base, n):
        next_qd[i] = qd[i] + delta[n + i]
    for i in range(len(mimic_coeffs)):
        next_q[mimic_q[i, 0]] = (mimic_coeffs[i, 0] * next_q[mimic_q[i, 1]]
                                 + mimic_coeffs[i, 1])
        next_qd[mimic_qd[i, 0]] = mimic_coeffs[i, 0] * next_qd[mimic_qd[i, 1]]


@_compiled
def _exponential(x, y, z):
    angle = np.float32(math.sqrt(x * x + y * y + z * z + 1e-24))
    scale = np.float32(math.sin(0.5 * angle)) / angle
    return x * scale, y * scale, z * scale, np.float32(math.cos(0.5 * angle))


@_compiled
def _multiply(a, b, out):
    """Normalised product of two quaternions."""
    x = a[3] * b[0] + a[0] * b[3] + a[1] * b[2] - a[2] * b[1]
    y = a[3] * b[1] - a[0] * b[2] + a[1] * b[3] + a[2] * b[0]
    z = a[3] * b[2] + a[0] * b[1] - a[1] * b[0] + a[2] * b[3]
    w = a[3] * b[3] - a[0] * b[0] - a[1] * b[1] - a[2] * b[2]
    length = np.float32(math.sqrt(x * x + y * y + z * z + w * w))
    out[0], out[1], out[2], out[3] = x / length, y / length, z / length, w / length
