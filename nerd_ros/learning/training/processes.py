# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""The processes that train one model together: one, or those that torchrun started."""

import os

import torch
from torch import nn, Tensor
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from nerd_ros.learning.training.optimisation import TrainingError

DEVICES = ('cpu', 'cuda')


class Processes:
    """
    This process among those of a training; use as a context manager, which connects them.

    `device` is 'cpu', where gloo connects the processes, or 'cuda', where each has a GPU of its
    own and nccl does. Raises TrainingError where there is no such device.

    Attributes:
        rank: number of this process, from 0 on; 0 validates, saves and logs.
        count: number of processes.
        device: torch.device of this process.
    """

    def __init__(self, device: str = 'cpu'):
        self._launched = dist.is_torchelastic_launched()
        self.rank, self.count, local = (
            int(os.environ[name]) if self._launched else default
            for name, default in (('RANK', 0), ('WORLD_SIZE', 1), ('LOCAL_RANK', 0)))
        self.device = _device(device, local)

    @property
    def first(self) -> bool:
        """Whether this is the process that validates, saves and logs."""
        return self.rank == 0

    def __enter__(self) -> 'Processes':
        if self._launched:
            dist.init_process_group('nccl' if self.device.type == 'cuda' else 'gloo')
        return self

    def __exit__(self, *exc_info) -> None:
        if self._launched:
            dist.destroy_process_group()

    def share(self, module: nn.Module) -> None:
        """Give weights and buffers of the first process to all."""
        if self._launched:
            for value in module.state_dict().values():
                dist.broadcast(value, 0)

    def with_mean_gradients(self, module: nn.Module) -> nn.Module:
        """Return `module` such that gradients are the mean over the processes."""
        if not self._launched:
            return module
        return DistributedDataParallel(module)

    def mean(self, value: Tensor) -> float:
        """Return the mean over the processes of a single number."""
        if self._launched:
            dist.all_reduce(value)
        return value.item() / self.count


def _device(name: str, local_rank: int) -> torch.device:
    """Return the device called `name` for the process `local_rank` of this machine."""
    if name not in DEVICES:
        raise TrainingError(f'there is no device {name}; choose {" or ".join(DEVICES)}.')
    if name == 'cpu':
        return torch.device('cpu')
    if not torch.cuda.is_available():
        raise TrainingError('PyTorch finds no GPU to train on; choose the device cpu, or install '
                            'a PyTorch with CUDA by `make setup TORCH=torch`.')
    if local_rank >= torch.cuda.device_count():
        raise TrainingError(f'{torch.cuda.device_count()} GPUs are too few for this many '
                            'processes; start one process per GPU.')
    torch.cuda.set_device(local_rank)
    return torch.device('cuda', local_rank)
