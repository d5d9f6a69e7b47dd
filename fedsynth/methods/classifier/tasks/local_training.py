"""Client level, the client half: some epochs of SGD on a client's records.

DP-FedAvg (McMahan et al. 2018, "Learning differentially private recurrent language models"): the
whole client is the unit, and how far its weights moved is all that leaves, clipped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request, number, whole
from fedsynth.methods.classifier.records import Model
from fedsynth.methods.training.batches import tensor
from fedsynth.models.classifier import losses
from fedsynth.models.gan import flatten, leaves
from fedsynth.privacy.rows.clipping import DenseRows, Rows


class TrainingTask:
    """Local training; the row is how far the weights moved."""

    name = "classifier-training"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a client, not a {request.terms.unit}")
        model = clients[0].board.read("classifier", Model.from_dict)
        start = tensor(request.arrays["weights"])
        for index, client in enumerate(clients):
            trained = _train(model, client, start, request)
            yield index, DenseRows((trained - start).numpy()[None])


def _train(model: Model, client: View, start: torch.Tensor, request: Request) -> torch.Tensor:
    """The weights after the epochs, [dim]; those of the start at a client without records."""
    rate, decay = (
        number(request.settings, "learning_rate"),
        number(request.settings, "weight_decay"),
    )
    batch, layers = whole(request.settings, "batch_size"), model.network.layers
    weights, rng = leaves(start, layers), client.coins.generator()
    with torch.enable_grad():
        for _ in range(whole(request.settings, "local_epochs")):
            order = rng.permutation(client.records)
            for first in range(0, len(order), batch):
                x, y = model.records_of(client, order[first : first + batch])
                loss = losses(model.network.logits(weights, x), y).mean()
                gradients = torch.autograd.grad(loss, weights)
                with torch.no_grad():
                    for weight, gradient in zip(weights, gradients, strict=True):
                        if weight.dim() > 1:
                            weight.mul_(1 - rate * decay)
                        weight.sub_(rate * gradient)
    return flatten(weights)


TRAINING = register(TrainingTask())
