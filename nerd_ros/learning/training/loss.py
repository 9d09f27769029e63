# Copyright 2026 nerd_ros contributors
# SPDX-License-Identifier: Apache-2.0
"""What a training makes small."""

from torch import nn, Tensor

from nerd_ros.dynamics.model import NerdModel
from nerd_ros.learning.training.training_data import Batch, convert


class OneStepLoss(nn.Module):
    """
    Mean of `sqrt(e^2 + 1e-7)` over the errors e of normalised increments of a Batch.

    Close to L1, smooth at zero. `resting` says whether the speeds of rest take part, see
    `NerdModel.predict`.
    """

    def __init__(self, model: NerdModel, resting: bool = True):
        super().__init__()
        self.model, self.resting = model, resting

    def forward(self, batch: Batch) -> Tensor:
        """Return the loss of a batch."""
        model = self.model
        tokens, increments = convert(model.layout, batch)
        predicted = model.predict(model.normalise(tokens), self.resting)
        error = predicted - increments / model.increment_scale
        return (error.square() + 1e-7).sqrt().mean()
