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
import yaml

from nerd_ros.dynamics.layout import from_plain, RobotLayout
from nerd_ros.dynamics.model import NerdModel
from nerd_ros.dynamics.transformer import TransformerConfig
from nerd_ros.resources import shown

FORMAT_VERSION = 1
WEIGHTS, CARD = 'model.safetensors', 'model.yaml'


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
        raise CheckpointError(f'{folder / CARD}: not a model card: {error}. Export the model '
                              'again.') from None
    if layout is not None and (lines := shape.layout.differences(layout)):
        raise CheckpointError(
            f'{folder} is a model of another robot than {layout.robot!r} as described now. '
            'Model against robot:\n  ' + '\n  '.join(lines)
            + '\nTrain a model for this robot or choose its own.')
    model = NerdModel(shape.layout, shape.network, card)
    try:
        model.load_state_dict(load_file(path))
    except FileNotFoundError as error:
        raise CheckpointError(f'{path}: no such file. A model is a folder with {WEIGHTS} and '
                              f'{CARD}.') from error
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f'{path}: damaged, or not a safetensors file ({error}); take it '
                              'from a copy, or train the model anew.') from error
    except RuntimeError as error:
        first = str(error).split('\n')[1 if '\n' in str(error) else 0].strip()
        raise CheckpointError(f'{path}: the weights do not belong to the card: {first}') from error
    broken = [name for name, value in model.state_dict().items()
              if value.isnan().any() or (value.isinf().any() and name != 'speed_limit')]
    if broken:
        raise CheckpointError(f'{path}: {broken[0]} holds values that are not finite.')
    return model.eval().requires_grad_(False)


def _read_card(path: Path) -> dict:
    try:
        card = yaml.safe_load(path.read_text())
    except FileNotFoundError as error:
        raise CheckpointError(f'{path}: no such file. A model is a folder with {WEIGHTS} and '
                              f'{CARD}.') from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = ' '.join(str(getattr(error, 'problem', None) or error).split())
        mark = getattr(error, 'problem_mark', None)
        line = '' if mark is None else f', line {mark.line + 1}'
        raise CheckpointError(f'{path}{line}: not a YAML file: {reason}. Export the model '
                              'again.') from error
    if not isinstance(card, dict) or 'format_version' not in card:
        raise CheckpointError(f'{path}: not a model card: it has no format_version.')
    version = card.pop('format_version')
    if version != FORMAT_VERSION:
        raise CheckpointError(f'{path}: format_version {version}; this release reads '
                              f'{FORMAT_VERSION}.')
    return card
