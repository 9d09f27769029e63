# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
Loops of `FastStep`, compiled with numba: from state and contacts to the next state.

They are one file because numba, which keeps what it has compiled, does not notice when functions
change that are in another one.
"""

import math

from numba import njit
import numpy as np

from nerd_ros.dynamics.features import CREEP_SPEED, LIMIT_RANGE, SLOT_FEATURES, TOUCH_SCALE

PRISMATIC, BALL, ANGLE = 0, 1, 2   # kinds of joints
# Reassociation lets sums vectorise; NaN and infinity must stay what they are for the guard.
_compiled = njit(cache=True, fastmath={'reassoc', 'contract', 'nsz', 'arcp'}, error_model='numpy')


@_compiled
def step(q, qd, effort, contacts, gravity, pose, next_q, next_qd, geometry, ends, blocks, readout,
         residual, history, scratch):
    """See `FastStep.step`."""
    token, x, normed, hidden = scratch.token, scratch.x, scratch.normed, scratch.hidden
    known = history.known
    _token(q, qd, effort, contacts, gravity, pose, geometry, token)
    _affine(ends.directions, ends.directions_bias, token, scratch.reach)
    _affine(ends.embed, ends.embed_bias, token, x)
    known[0] = min(known[0] + 1, history.cache.shape[2])
    for i in range(len(history.spans)):
        _rms_norm(x, blocks.norm1[i], normed)
        _product(blocks.qkv[i], normed, scratch.qkv)
        _attend(history, i, min(known[0], history.spans[i]), scratch)
        _product(blocks.out[i], scratch.mixed, normed)
        for j in range(len(x)):
            x[j] += normed[j]
        _rms_norm(x, blocks.norm2[i], normed)
        _affine(blocks.expand[i], blocks.expand_bias[i], normed, hidden)
        for j in range(len(hidden)):
            positive = max(hidden[j], np.float32(0.0))
            hidden[j] = positive * positive
        _affine(blocks.contract[i], blocks.contract_bias[i], hidden, normed)
        for j in range(len(x)):
            x[j] += normed[j]
    _rms_norm(x, ends.norm, normed)
    _read(geometry, readout, scratch)
    if len(residual.columns):
        _add_residual(residual, history, scratch)
    _bring_to_rest(geometry, ends.rest_speed, scratch)
    _advance(q, qd, scratch.delta, geometry, next_q, next_qd)


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
def _attend(history, layer, ages, scratch):
    cos, sin, cache = history.cos, history.sin, history.cache[layer]
    qkv, scores, mixed = scratch.qkv, scratch.scores, scratch.mixed
    width, heads = len(mixed), history.heads
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
def _read(geometry, readout, scratch):
    """The forms of `readout.Readout`, into `scratch.delta`."""
    token, hidden, columns = scratch.token, scratch.normed, geometry.velocities
    head, values, terms, delta = scratch.head, scratch.values, scratch.terms, scratch.delta
    n = len(columns)
    _affine(readout.head, readout.head_bias, hidden, head)
    _silu(head)
    _affine(readout.out, readout.out_bias, head, delta)
    at = len(token)
    terms[:at] = token
    for i in range(n):
        for j in range(i, n):
            terms[at] = token[columns[i]] * token[columns[j]]
            at += 1
    _affine(readout.terms, readout.terms_bias, terms, values)
    _affine(readout.coefficients, readout.coefficients_bias, hidden, head)
    _add_form(readout.combine, head, values, scratch)
    rank = readout.ramp_terms.shape[1]
    for k in range(len(readout.steepness)):
        _ramps(geometry, readout.steepness[k], scratch)
        _product(readout.ramp_terms[k], scratch.ramps, values[:rank])
        _affine(readout.ramp_coefficients[k], readout.ramp_coefficients_bias[k], hidden,
                head[:rank])
        _add_form(readout.ramp_combine[k], head[:rank], values[:rank], scratch)


@_compiled
def _add_form(combine, coefficients, values, scratch):
    for j in range(len(coefficients)):
        coefficients[j] *= values[j]
    _product(combine, coefficients, scratch.change)
    for j in range(len(scratch.delta)):
        scratch.delta[j] += scratch.change[j]


@_compiled
def _add_residual(residual, history, scratch):
    """What `residual.Residual` adds to `scratch.delta`; the first token fills the window."""
    columns, window = residual.columns, history.window
    x, layer, change = scratch.residual, scratch.residual_layer, scratch.change
    steps, size = window.shape
    for age in range(steps - 1, 0, -1):
        for j in range(size):
            window[age, j] = window[age - 1, j]
    for j in range(size):
        window[0, j] = scratch.token[columns[j]]
    if history.known[0] == 1:
        for age in range(1, steps):
            window[age] = window[0]
    _affine(residual.first, residual.first_bias, window.reshape(steps * size), x)
    _silu(x)
    for k in range(len(residual.layers)):
        _affine(residual.layers[k], residual.layers_bias[k], x, layer)
        _silu(layer)
        for j in range(len(x)):
            x[j] += layer[j]
    n = len(residual.out)
    _affine(residual.out, residual.out_bias, x, change[:n])
    for i in range(n):
        scratch.delta[n + i] += change[i]


@_compiled
def _silu(x):
    for j in range(len(x)):
        x[j] = x[j] / (np.float32(1.0) + math.exp(-x[j]))


@_compiled
def _ramps(geometry, steepness, scratch):
    """Ramps of the velocities before and after `scratch.delta`, and of the room then left."""
    token, delta, motion, ramps = scratch.token, scratch.delta, scratch.motion, scratch.ramps
    columns, limited = geometry.velocities, geometry.limited_qd
    n, room, half = len(columns), geometry.room, np.float32(0.5)
    for i in range(n):
        motion[i] = token[columns[i]]
        motion[n + i] = motion[i] + delta[n + i]
    for i in range(len(limited)):
        dof = limited[i]
        moved = geometry.dt * half * (motion[dof] + motion[n + dof])
        motion[2 * n + i] = token[room + i] + moved
        motion[2 * n + len(limited) + i] = token[room + len(limited) + i] - moved
    size = steepness.shape[1]
    for i in range(len(motion)):
        for j in range(size):
            ramps[i * size + j] = min(max(motion[i] * steepness[i, j], np.float32(-1.0)),
                                      np.float32(1.0))


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
    kinds, q_start, threshold = geometry.kinds, geometry.q_start, geometry.contact_threshold
    floating, quat = geometry.floating, pose[3:7]
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
        if kinds[joint] == PRISMATIC:
            token[at] = q[start]
            at += 1
        elif kinds[joint] == BALL:
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
    limited = geometry.limited_q
    for i in range(len(limited)):
        below = q[limited[i]] - geometry.lower[i]
        above = geometry.upper[i] - q[limited[i]]
        token[at + i] = min(below, np.float32(LIMIT_RANGE))
        token[at + len(limited) + i] = min(above, np.float32(LIMIT_RANGE))
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
def _bring_to_rest(geometry, rest_speed, scratch):
    token, columns, delta = scratch.token, geometry.velocities, scratch.delta
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
    dt, com, floating, kinds = geometry.dt, geometry.base_com, geometry.floating, geometry.kinds
    q_start, qd_start = geometry.q_start, geometry.qd_start
    mimic_q, mimic_qd, mimic_coeffs = geometry.mimic_q, geometry.mimic_qd, geometry.mimic_coeffs
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
        if kinds[joint] == BALL:
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
