# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""
A model on disk: `model.safetensors` (weights and normalisers) beside `model.yaml` (the card).

The card holds the format version, the robot's layout, the size of the network, and what its
makers say: command, seed, data, metrics, licence.
"""

from dataclasses import asdict, dataclass
from pathlib import Path
import os

from pydantic import ConfigDict
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
import yaml

from nerd_ros.dynamics.layout import from_plain, RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig
from nerd_ros.resources import shown

FORMAT_VERSION = 1
WEIGHTS, CARD = 'model.safetensors', 'model.yaml'
# Largest magnitude of a weight: products of those beyond it leave single precision.
_LARGEST = 1e6
_SCALES = ('token_std', 'increment_scale')   # which are above 0
_REMEDY = 'take it from a copy, or train the model anew'


class CheckpointError(ValueError):
    """A model that cannot be loaded, and why."""


@dataclass(frozen=True)
class _Shape:
    """What of the card the model is made of; the rest is for people."""

    __pydantic_config__ = ConfigDict(extra='forbid')
    layout: RobotLayout
    network: TransformerConfig


def save_checkpoint(folder: Path | str, model: NerdModel, card: dict) -> None:
    """
    Write `model` and `card` into `folder`, which is made when missing.

    Each file is replaced in one step, the card last: a reader never sees half a file.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    text = yaml.safe_dump({
        'format_version': FORMAT_VERSION,
        **card,
        'network': {**asdict(model.config), 'spans': list(model.config.spans)},
        'layout': model.layout.to_dict(),
    }, sort_keys=False, width=99)
    weights = {name: value.detach().cpu().contiguous()
               for name, value in model.state_dict().items()}
    save_file(weights, folder / f'.{WEIGHTS}')
    (folder / f'.{WEIGHTS}').chmod(0o644)  # safetensors writes it for its owner alone
    (folder / f'.{CARD}').write_text(text)
    for name in (WEIGHTS, CARD):
        os.replace(folder / f'.{name}', folder / name)


def load_checkpoint(folder: Path | str, layout: RobotLayout | None = None) -> NerdModel:
    """
    Load the model in `folder` and, when `layout` is given, make sure that it fits that robot.

    Raises CheckpointError that names the file, and for another robot what differs.
    """
    folder = Path(folder)
    if not os.path.isdir(folder):
        raise CheckpointError(f'{shown(folder)} is not a folder. A model is a folder with '
                              f'{WEIGHTS} and {CARD}.')
    card = _read_card(folder / CARD)
    path = folder / WEIGHTS
    try:
        shape = from_plain(_Shape, {name: card.pop(name) for name in ('layout', 'network')
                                    if name in card})
    except ValueError as error:
        raise CheckpointError(f'{folder / CARD}: not a model card: {error}; {_REMEDY}.') from None
    if layout is not None and (lines := shape.layout.differences(layout)):
        raise CheckpointError(
            f'{folder} is a model of another robot than {layout.robot!r} as described now. '
            'Model against robot:\n  ' + '\n  '.join(lines)
            + '\nTrain a model for this robot or choose its own.')
    model = NerdModel(shape.layout, shape.network, card)
    try:
        weights = load_file(path)
    except FileNotFoundError as error:
        raise CheckpointError(f'{path}: no such file. A model is a folder with {WEIGHTS} and '
                              f'{CARD}.') from error
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f'{path}: damaged, or not a safetensors file ({error}); '
                              f'{_REMEDY}.') from error
    problem = _misfit(weights, model.state_dict())
    if not problem:
        model.load_state_dict(weights)
        problem = _senseless(model.state_dict())
    if problem:
        raise CheckpointError(f'{path}: {problem}; {_REMEDY}.')
    return model.eval().requires_grad_(False)


def _misfit(weights: dict[str, Tensor], wanted: dict[str, Tensor]) -> str:
    """Say which tensor is not as the card wants it; nothing where all are."""
    for name in {**wanted, **weights}:
        if name not in weights or name not in wanted:
            problem = 'is missing' if name in wanted else 'is no part of this model'
        elif weights[name].shape != wanted[name].shape:
            problem = f'has the shape {[*weights[name].shape]}, not {[*wanted[name].shape]}'
        else:
            continue
        return f'the weights do not belong to {CARD} beside them: {shown(name)} {problem}'
    return ''


def _senseless(weights: dict[str, Tensor]) -> str:
    """Say which tensor holds values that no training gives; nothing where none does."""
    for name, value in weights.items():
        if name == 'speed_limit':
            value = value.clamp(max=_LARGEST)   # infinite where there is none
        if not (value.abs() <= _LARGEST).all():   # nor is what is not a number
            return f'{name} holds a value that is not finite or beyond {_LARGEST:g}'
        if name in _SCALES and not (value > 0.0).all():
            return f'{name} holds a value that is not above 0'
    return ''


def _read_card(path: Path) -> dict:
    try:
        card = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise CheckpointError(f'{path}: no such file. A model is a folder with {WEIGHTS} and '
                              f'{CARD}.') from error
    except OSError as error:
        raise CheckpointError(f'{path}: cannot be read: {error.strerror}.') from error
    except (UnicodeDecodeError, yaml.YAMLError) as error:
        reason = ' '.join(str(getattr(error, 'problem', None) or error).split())
        mark = getattr(error, 'problem_mark', None)
        line = '' if mark is None else f', line {mark.line + 1}'
        raise CheckpointError(f'{path}{line}: not a YAML file: {reason}; '
                              f'{_REMEDY}.') from error
    if not isinstance(card, dict) or 'format_version' not in card:
        raise CheckpointError(f'{path}: not a model card: it has no format_version; {_REMEDY}.')
    version = card.pop('format_version')
    if version != FORMAT_VERSION:
        raise CheckpointError(f'{path}: format_version {version}; this release reads '
                              f'{FORMAT_VERSION}; update nerd_ros or train the model anew.')
    return card
