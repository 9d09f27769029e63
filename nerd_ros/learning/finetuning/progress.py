# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a fine-tuning tells: how far it is, and what came out; also to other processes."""

import json
import math
from typing import NamedTuple


class Progress(NamedTuple):
    """
    How far it is: `fraction` of all, `remaining` [s], and NaN where something is unknown.

    `error` is that on the recordings for validation, in units of that of the model it began with.
    """

    phase: str
    fraction: float
    remaining: float
    loss: float = math.nan
    error: float = math.nan


class Outcome(NamedTuple):
    """
    What came out: whether the model is better, why, and mean errors on the test recordings.

    Errors [rad, m] are the mean over recordings, horizons and quantities, with the effort that
    the model was trained for.
    """

    better: bool
    reason: str
    error_before: float
    error_after: float
    error_analytic: float
    error_hold: float


class Kept(NamedTuple):
    """Where the model is that came out: `version` of the store, '' if it is in `folder` alone."""

    outcome: Outcome
    folder: str
    report: str
    version: str = ''
    activated: bool = False
    """Whether it is the version in use now."""


def line_of(told: Progress | Kept) -> str:
    """Return a line of JSON, with null for numbers that are none."""
    values = told._asdict()
    if isinstance(told, Kept):
        values['outcome'] = _finite(told.outcome._asdict())
    return json.dumps(_finite(values), allow_nan=False)


def read_line(line: str) -> Progress | Kept | None:
    """Return what `line_of` wrote; None of another line."""
    try:
        values = json.loads(line)
        if 'outcome' in values:
            outcome = Outcome(**_numbers(values.pop('outcome')))
            return Kept(outcome, **values)
        return Progress(**_numbers(values))
    except (ValueError, TypeError, AttributeError):
        return None


def _finite(values: dict) -> dict:
    return {name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in values.items()}


def _numbers(values: dict) -> dict:
    return {name: math.nan if value is None else value for name, value in values.items()}
