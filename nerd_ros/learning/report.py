# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What all reports have in common."""

from pathlib import Path

import numpy as np


def save(figure, path: Path) -> None:
    """Write a picture; folders of `path` are made when missing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)


def number(value: float | None) -> str:
    """Return an error or a count; errors below 0.0001 matter to nobody."""
    if value is None or not np.isfinite(value):
        return '-'
    return f'{value:.4f}' if 0 < abs(value) < 1 else f'{value:.4g}'


def duration(seconds: float) -> str:
    """Return a horizon, in ms below a second."""
    return f'{seconds * 1e3:.0f} ms' if seconds < 1.0 else f'{seconds:g} s'
