# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What the card of a model says of its fine-tuning, read without the model."""

from pathlib import Path
from typing import NamedTuple

import yaml

from nerd_ros.learning.store.store_files import StoreError

CARD = 'model.yaml'
PARTS = ('train', 'validation', 'test')
ERRORS = ('after', 'before', 'analytic', 'hold')
# libyaml is ten times as fast, where PyYAML comes with it.
_LOADER = getattr(yaml, 'CSafeLoader', yaml.SafeLoader)


class FineTuningCard(NamedTuple):
    """Section `fine_tuning` of a card; empty where it says nothing."""

    base: str = ''
    """Version of the model it began with."""
    bags: dict[str, tuple[str, ...]] = {}
    """Names of the recordings, by part: train, validation, test."""
    effort: str = ''
    """Which one it takes: commanded or measured."""
    seed: int | None = None
    error: dict[str, float] = {}
    """On the test recordings, relative: after and before, of the analytic solver, of holding."""
    better: bool | None = None
    """Whether it passed the gate."""
    reason: str = ''


def read_fine_tuning(folder: Path) -> FineTuningCard:
    """Return what the card in `folder` says, which may be nothing; raise StoreError if damaged."""
    path = folder / CARD
    try:
        card = yaml.load(path.read_text(), _LOADER)
    except OSError as error:
        raise StoreError(f'{path}: {error.strerror}.') from None
    except (UnicodeDecodeError, yaml.YAMLError):
        raise StoreError(f'{path}: not a YAML file.') from None
    if not isinstance(card, dict):
        raise StoreError(f'{path}: not a model card.')
    section = _section(card, 'fine_tuning')
    bags, error, seed = _section(section, 'bags'), _section(section, 'error'), section.get('seed')
    return FineTuningCard(
        str(section.get('base', '')),
        {part: tuple(map(str, bags[part])) for part in PARTS
         if isinstance(bags.get(part), list)},
        str(section.get('effort', '')), seed if isinstance(seed, int) else None,
        {name: float(error[name]) for name in ERRORS
         if isinstance(error.get(name), (int, float))},
        section['better'] if isinstance(section.get('better'), bool) else None,
        str(section.get('reason', '')))


def _section(card: dict, name: str) -> dict:
    section = card.get(name)
    return section if isinstance(section, dict) else {}
