# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Pictures of a comparison with recordings, to stand in a web page."""

from base64 import b64encode
from io import BytesIO
from typing import NamedTuple

from matplotlib import rc_context
# A Figure of its own draws without a window; pyplot would look for a display.
from matplotlib.figure import Figure
import numpy as np

from nerd_ros.dynamics.layout import RobotLayout
from nerd_ros.learning.evaluation.accuracy import Quantity
from nerd_ros.learning.finetuning.comparison import (
    AFTER, ANALYTIC, BEFORE, Comparison, HOLD, HORIZONS)
from nerd_ros.learning.finetuning.windows import HISTORY

MEASURED = 'measured'
STYLES = {MEASURED: ('#000000', 'solid'), AFTER: ('#0072b2', 'solid'),
          BEFORE: ('#d55e00', 'dashed'), ANALYTIC: ('#009e73', 'dotted'),
          HOLD: ('#999999', 'solid')}
"""Colour and kind of line, of the same names in CSS and matplotlib."""
SHOWN_WINDOWS = 4
# Around the measured motion at least as much is shown: what runs away must not flatten it, and
# what stands still must not be magnified.
_MARGIN = {'rad': 0.1, 'm': 0.02}
# Text stays text, drawn by the browser, and the same figures give the same file.
_SVG = {'svg.fonttype': 'none', 'svg.hashsalt': 'nerd_ros', 'font.size': 9.0}


class Picture(NamedTuple):
    """An SVG as a data URI, and what is written below it."""

    source: str
    caption: str


class QuantityPictures(NamedTuple):
    """How the error of one quantity grows, and simulated against measured motion."""

    name: str
    growth: Picture
    motion: tuple[Picture, ...]


def draw(comparison: Comparison) -> list[QuantityPictures]:
    """Draw error growth and some windows of each quantity."""
    errors = {solver: comparison.errors(solver) for solver in (AFTER, BEFORE, ANALYTIC, HOLD)}
    shown = shown_windows(comparison)
    with rc_context(_SVG):
        return [QuantityPictures(
            f'{quantity.name} [{quantity.unit}]',
            _growth(comparison, quantity, {name: rows[..., k] for name, rows in errors.items()}),
            tuple(_motion(comparison, quantity, k, window, errors) for window in shown))
            for k, quantity in enumerate(comparison.quantities)]


def shown_windows(comparison: Comparison) -> list[int]:
    """Return some of the longest windows, spread evenly over the recordings, not chosen."""
    length = comparison.windows.length.numpy()
    whole = np.flatnonzero(length == length.max())
    places = np.linspace(0, len(whole) - 1, SHOWN_WINDOWS + 2).round().astype(int)[1:-1]
    return [int(whole[place]) for place in np.unique(places)]


def coordinates(layout: RobotLayout, quantity: Quantity) -> list[tuple[str, int]]:
    """Name columns of `joint_q` that show a quantity; none where it is a rotation in 3D."""
    if quantity.group == 'base_m':
        return [('x', 0), ('y', 1), ('z', 2)]
    if quantity.group == 'base_rad':
        return []
    place = layout.joint_names.index(quantity.name)
    return [] if layout.joints[place].type == 'ball' else [('', layout.q_start[place])]


def _growth(comparison: Comparison, quantity: Quantity, errors: dict[str, np.ndarray]) -> Picture:
    figure = Figure(figsize=(4.2, 2.6), layout='constrained')
    axes = figure.subplots()
    end = int(comparison.windows.length.max()) + 1
    time = np.arange(end) * comparison.layout.dt
    for solver, apart in errors.items():
        squares = np.square(apart[:, :end])
        rms = np.sqrt(np.ma.array(squares, mask=np.isnan(squares)).mean(0).filled(np.nan))
        axes.plot(time[1:], rms[1:], **_style(solver))
    # Nothing may be there to show on a logarithmic axis: a robot that stands still.
    if any(np.nanmax(apart, initial=0.0) > 0.0 for apart in errors.values()):
        axes.set_yscale('log')
    for horizon in HORIZONS:
        axes.axvline(horizon, color='0.85', linewidth=0.8, zorder=0)
    axes.set(xlabel='time after the start [s]', ylabel=f'RMS error [{quantity.unit}]')
    return Picture(_uri(figure), f'Error over time, all {len(comparison.windows.length)} windows')


def _motion(comparison: Comparison, quantity: Quantity, k: int, window: int,
            errors: dict[str, np.ndarray]) -> Picture:
    windows, columns = comparison.windows, coordinates(comparison.layout, quantity)
    end = int(windows.length[window]) + 1
    time = np.arange(end) * comparison.layout.dt
    rows = max(1, len(columns))
    figure = Figure(figsize=(4.2, 1.0 + 1.6 * rows), layout='constrained')
    axes = figure.subplots(rows, squeeze=False, sharex=True)[:, 0]
    for row, (name, column) in zip(axes, columns):
        true = windows.joint_q[window, HISTORY:HISTORY + end, column].numpy()
        row.plot(time, true, **_style(MEASURED))
        for solver in (AFTER, BEFORE, ANALYTIC):
            row.plot(time, comparison.motion[solver][window, :end, column], **_style(solver))
        margin = max(_MARGIN[quantity.unit], 0.5 * np.ptp(true))
        row.set_ylim(true.min() - margin, true.max() + margin)
        row.set_ylabel(f'{name} [{quantity.unit}]'.strip())
    if not columns:
        for solver in (AFTER, BEFORE, ANALYTIC):
            axes[0].plot(time, errors[solver][window, :end, k], **_style(solver))
        axes[0].set_ylabel(f'error [{quantity.unit}]')
    axes[-1].set_xlabel('time after the start [s]')
    # Names of recordings stand in the page: matplotlib would take $ for mathematics.
    return Picture(_uri(figure), f'{comparison.bags[int(windows.source[window])]}, '
                                 f'from {float(windows.start[window]):.1f} s')


def _style(name: str) -> dict:
    color, line = STYLES[name]
    # Recorded motion lies below, so that a model that hits it is seen.
    below = name == MEASURED
    return {'color': color, 'linestyle': line, 'linewidth': 3.0 if below else 1.5,
            'zorder': 1.5 if below else 2.0}


def _uri(figure: Figure) -> str:
    content = BytesIO()
    figure.savefig(content, format='svg', metadata={'Date': None})
    return f'data:image/svg+xml;base64,{b64encode(content.getvalue()).decode()}'
