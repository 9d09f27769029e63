# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""Optimisers, schedule, weight average and the state that a training resumes from."""

import copy
import json
import math
import os
from pathlib import Path

from safetensors import safe_open, SafetensorError
from safetensors.torch import save_file
import torch
from torch import Tensor

from nerd_ros.dynamics.model import NerdModel

FORMAT_VERSION = 2
STATE = 'training.safetensors'
WARM_UP, FINAL_RATE = 0.03, 0.01
AVERAGE_DECAY = 0.997
MAX_NORM = 1.0


class TrainingError(ValueError):
    """A training cannot go on; the message names the folder and what to do."""


class Optimisation:
    """
    Muon for the hidden matrices, AdamW for the rest, cosine schedule, average of the weights.

    `settings`, plain values and dicts of them, identifies the training: a resume with others is
    refused. `rate` scales the learning rates. `average` is the model whose weights are the
    exponential moving average; it is updated in place.
    """

    def __init__(self, model: NerdModel, steps: int, settings: dict, rate: float = 1.0):
        self.model, self.average = model, copy.deepcopy(model).requires_grad_(False).eval()
        self.steps = steps
        self.settings = {**settings, 'steps': steps, 'width': model.config.width}
        hidden = [p for p in model.network.blocks.parameters() if p.ndim == 2]
        chosen = {id(p) for p in hidden}
        rest = [p for p in model.parameters() if p.requires_grad and id(p) not in chosen]
        self.optimisers = (
            torch.optim.Muon(hidden, lr=0.01 * rate, weight_decay=0.0),
            torch.optim.AdamW(rest, lr=2e-3 * rate, betas=(0.9, 0.99), weight_decay=0.0))
        self.schedules = [torch.optim.lr_scheduler.LambdaLR(optimiser, _rate(steps))
                          for optimiser in self.optimisers]

    @property
    def rates(self) -> dict[str, float]:
        """Learning rates by the name of the optimiser."""
        return {type(optimiser).__name__: optimiser.param_groups[0]['lr']
                for optimiser in self.optimisers}

    def step(self, loss: Tensor) -> None:
        """One update from the loss of a batch."""
        for optimiser in self.optimisers:
            optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), MAX_NORM)
        for optimiser, schedule in zip(self.optimisers, self.schedules):
            optimiser.step()
            schedule.step()
        # The early average forgets faster, or it would be of the random start.
        done = self.schedules[0].last_epoch
        weight = 1.0 - min(AVERAGE_DECAY, done / (done + 10.0))
        with torch.no_grad():
            torch._foreach_lerp_(list(self.average.parameters()),
                                 list(self.model.parameters()), weight)

    def save(self, folder: Path, step: int, best: float) -> None:
        """Write all that `resume` needs, replacing the file in one step."""
        folder.mkdir(parents=True, exist_ok=True)
        tensors = {name: value.contiguous() for name, value in self._tensors().items()}
        save_file(tensors, folder / f'.{STATE}', metadata={
            'format_version': str(FORMAT_VERSION), 'step': str(step), 'best': str(best),
            'settings': json.dumps(self.settings)})
        # What safetensors writes is for its owner alone.
        (folder / f'.{STATE}').chmod(0o644)
        os.replace(folder / f'.{STATE}', folder / STATE)

    def resume(self, folder: Path) -> tuple[int, float]:
        """
        Load the state in `folder`, if any; returns the next step and the best score.

        Raises TrainingError where it is of another training, of another format or damaged.
        """
        path = folder / STATE
        if not path.exists():
            return 0, math.inf
        try:
            with safe_open(path, 'pt') as file:
                about = file.metadata() or {}
                self._check(path, about)
                for optimiser in self.optimisers:
                    _make_state(optimiser)
                with torch.no_grad():
                    for name, value in self._tensors().items():
                        value.copy_(file.get_tensor(name))
        except (SafetensorError, OSError) as error:
            raise TrainingError(f'{path}: not a training state, or damaged ({error}); delete it '
                                'to train from the start.') from None
        step = int(about['step'])
        for schedule in self.schedules:
            schedule.last_epoch = step - 1
            schedule.step()
        return step, float(about['best'])

    def _check(self, path: Path, about: dict[str, str]) -> None:
        """Refuse the state of another format or training."""
        version = about.get('format_version')
        if version != str(FORMAT_VERSION):
            raise TrainingError(f'{path}: format version {version}, this program goes on with '
                                f'{FORMAT_VERSION}; delete it to train from the start.')
        if other := _differences(json.loads(about['settings']), self.settings):
            raise TrainingError(f'{path.parent} holds a training of other data or settings: '
                                f'{"; ".join(other)}. Go on with those, choose another folder or '
                                'delete this one.')

    def _tensors(self) -> dict[str, Tensor]:
        """Weights, averaged weights and optimiser states by name; the tensors themselves."""
        tensors = {f'model.{k}': v for k, v in self.model.state_dict().items()}
        tensors |= {f'average.{k}': v for k, v in self.average.state_dict().items()}
        for i, optimiser in enumerate(self.optimisers):
            for j, p in enumerate(optimiser.param_groups[0]['params']):
                tensors |= {f'optimiser{i}.{j}.{k}': v for k, v in optimiser.state[p].items()}
        return tensors


def _differences(stored: dict, wanted: dict, within: str = '') -> list[str]:
    """One phrase for each value in which `stored` is not as `wanted`."""
    phrases = []
    for key in {**stored, **wanted}:
        old, new = stored.get(key), wanted.get(key)
        if isinstance(old, dict) and isinstance(new, dict):
            phrases += _differences(old, new, f'{within}{key}.')
        elif old != new:
            phrases.append(f'{within}{key} {old} against {new}')
    return phrases


def _make_state(optimiser) -> None:
    """Let an optimiser allocate its state without changing weights that are loaded next."""
    rates = [group['lr'] for group in optimiser.param_groups]
    for group in optimiser.param_groups:
        group['lr'] = 0.0
        for p in group['params']:
            p.grad = torch.zeros_like(p)
    optimiser.step()
    for group, rate in zip(optimiser.param_groups, rates):
        group['lr'] = rate


def _rate(steps: int):
    def rate(step: int) -> float:
        warm = max(1.0, WARM_UP * steps)
        if step < warm:
            return (step + 1) / warm
        done = min(1.0, (step - warm) / max(1.0, steps - warm))
        return FINAL_RATE + (1.0 - FINAL_RATE) * 0.5 * (1.0 + math.cos(math.pi * done))
    return rate
