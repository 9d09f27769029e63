# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The page that shows what came out of a fine-tuning."""

import os
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, PackageLoader, StrictUndefined
import numpy as np

from nerd_ros.learning.finetuning.comparison import (
    AFTER, ANALYTIC, BEFORE, Comparison, HOLD, HORIZONS, mean_of_known)
from nerd_ros.learning.finetuning.report_plots import draw, MEASURED, STYLES
from nerd_ros.learning.finetuning.split import Split
from nerd_ros.learning.report import duration, number
from nerd_ros.scene.robot.robot_spec import RobotSpec

TEMPLATE = 'report.html.jinja'
_SOLVERS = (AFTER, BEFORE, ANALYTIC, HOLD)


class _Row(NamedTuple):
    """A line of a table: its name, and its values by column."""

    name: str
    values: tuple[float, ...]


class _QuantityErrors(NamedTuple):
    """Errors of one quantity and their ratios, by horizon."""

    name: str
    errors: tuple[_Row, ...]
    ratios: tuple[_Row, ...]


class _BagErrors(NamedTuple):
    """Mean errors on one recording by solver, and the mean ratio to those before."""

    name: str
    windows: int
    errors: tuple[float, ...]
    ratio: float


def write_report(path: Path, spec: RobotSpec, parts: Split, comparisons: dict[str, Comparison],
                 card: dict) -> None:
    """
    Write one HTML page that needs nothing else, whole or not at all.

    `comparisons` are by effort; that which the model was trained for is drawn. Section
    `fine_tuning` of `card` says how it was trained (effort, base, measured_lead) and judged
    (better, reason).
    """
    about = card['fine_tuning']
    chosen = comparisons[about['effort']]
    efforts = sorted(comparisons, key=lambda effort: effort != about['effort'])
    environment = Environment(
        loader=PackageLoader('nerd_ros.learning.finetuning', ''), autoescape=True,
        undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    environment.filters.update(number=number, duration=duration, ratio=_ratio)
    page = environment.get_template(TEMPLATE).render(
        card=card, about=about, robot=spec.name, split=parts, parts=_named(parts),
        reason=about['reason'][:1].upper() + about['reason'][1:],
        solvers=_SOLVERS, measured=MEASURED, styles=STYLES, horizons=HORIZONS,
        unit=' or '.join(sorted({quantity.unit for quantity in chosen.quantities})),
        means={solver: float(mean_of_known(chosen.rms(solver))) for solver in _SOLVERS},
        ratio=float(mean_of_known(_ratios(chosen, BEFORE))),
        tables={effort: _quantity_errors(comparisons[effort]) for effort in efforts},
        bags=_bag_errors(chosen), pictures=draw(chosen))
    part = path.with_name(f'.{path.name}')
    # Names of files may hold what UTF-8 does not know.
    part.write_text(page, encoding='utf-8', errors='xmlcharrefreplace')
    os.replace(part, path)


def _named(parts: Split) -> dict:
    return dict(zip(Split._fields, parts[:3]))


def _quantity_errors(comparison: Comparison) -> list[_QuantityErrors]:
    """Return means over recordings, quantity by quantity."""
    errors = {solver: comparison.mean_rms(solver) for solver in _SOLVERS}
    ratios = {to: mean_of_known(_ratios(comparison, to), 0) for to in (BEFORE, ANALYTIC)}
    return [_QuantityErrors(f'{quantity.name} [{quantity.unit}]',
                            tuple(_Row(name, tuple(rms[:, k])) for name, rms in errors.items()),
                            tuple(_Row(name, tuple(to[:, k])) for name, to in ratios.items()))
            for k, quantity in enumerate(comparison.quantities)]


def _bag_errors(comparison: Comparison) -> list[_BagErrors]:
    """Return means over horizons and quantities, recording by recording."""
    errors = [mean_of_known(comparison.rms(solver), (1, 2)) for solver in _SOLVERS]
    ratios = mean_of_known(_ratios(comparison, BEFORE), (1, 2))
    windows = np.bincount(comparison.windows.source.numpy(), minlength=len(comparison.bags))
    return [_BagErrors(name, int(windows[k]), tuple(rms[k] for rms in errors), ratios[k])
            for k, name in enumerate(comparison.bags)]


def _ratios(comparison: Comparison, to: str) -> np.ndarray:
    """Errors of the new model in those of another (N, horizons, K); NaN where there are none."""
    reference = comparison.rms(to)
    return comparison.rms(AFTER) / np.where(reference > 0.0, reference, np.nan)


def _ratio(value: float) -> str:
    return f'{value:.2f}' if np.isfinite(value) else '-'
