# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What `fast_kernels` works on: constants of a robot, weights, history and scratch, by name."""

from typing import NamedTuple

import numpy as np


class Geometry(NamedTuple):
    """What the kernels know of the robot, see `RobotLayout`; L joints have limits."""

    dt: np.float32
    floating: bool
    base_com: np.ndarray
    kinds: np.ndarray            # of the joints
    q_start: np.ndarray          # first coordinate of each joint
    qd_start: np.ndarray         # first dof of each joint
    contact_threshold: np.float32
    mimic_q: np.ndarray
    mimic_qd: np.ndarray
    mimic_coeffs: np.ndarray
    limited_q: np.ndarray        # coordinate of each joint with limits (L,)
    limited_qd: np.ndarray       # its dof (L,)
    lower: np.ndarray            # (L,)
    upper: np.ndarray            # (L,)
    velocities: np.ndarray       # places of all velocities in a token (nqd,)
    room: int                    # place of the room to the limits in a token


class Ends(NamedTuple):
    """Weights before and after the blocks, on raw tokens."""

    embed: np.ndarray
    embed_bias: np.ndarray
    directions: np.ndarray
    directions_bias: np.ndarray
    norm: np.ndarray
    rest_speed: np.ndarray       # in SI units


class Blocks(NamedTuple):
    """Weights of all blocks, one after the other along the first axis."""

    norm1: np.ndarray
    qkv: np.ndarray
    out: np.ndarray
    norm2: np.ndarray
    expand: np.ndarray
    expand_bias: np.ndarray
    contract: np.ndarray
    contract_bias: np.ndarray


class Readout(NamedTuple):
    """Weights of the readout, from raw tokens to increments in SI units."""

    head: np.ndarray
    head_bias: np.ndarray
    out: np.ndarray
    out_bias: np.ndarray
    terms: np.ndarray
    terms_bias: np.ndarray
    coefficients: np.ndarray
    coefficients_bias: np.ndarray
    combine: np.ndarray
    # Those of the corrections, one after the other along the first axis.
    steepness: np.ndarray
    ramp_terms: np.ndarray
    ramp_coefficients: np.ndarray
    ramp_coefficients_bias: np.ndarray
    ramp_combine: np.ndarray


class Residual(NamedTuple):
    """Weights of the residual, from raw tokens to velocity increments in SI units."""

    columns: np.ndarray          # of a token that it looks at (C,); none without a residual
    first: np.ndarray            # (width, STEPS * C)
    first_bias: np.ndarray
    layers: np.ndarray           # (2, width, width)
    layers_bias: np.ndarray
    out: np.ndarray
    out_bias: np.ndarray


class History(NamedTuple):
    """Keys and values of past steps, newest first, and how they are attended to."""

    cos: np.ndarray              # (span, head_size / 2)
    sin: np.ndarray
    spans: np.ndarray            # of the layers
    heads: int
    cache: np.ndarray            # (layers, 2, span, D)
    known: np.ndarray            # steps since the start, (1,)
    window: np.ndarray           # what the residual sees, (STEPS, C)


class Scratch(NamedTuple):
    """Room for intermediate results."""

    token: np.ndarray
    reach: np.ndarray
    x: np.ndarray
    normed: np.ndarray
    qkv: np.ndarray
    hidden: np.ndarray
    mixed: np.ndarray
    scores: np.ndarray
    head: np.ndarray
    values: np.ndarray
    terms: np.ndarray
    motion: np.ndarray
    ramps: np.ndarray
    delta: np.ndarray
    change: np.ndarray
    residual: np.ndarray
    residual_layer: np.ndarray
