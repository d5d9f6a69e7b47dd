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
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows

# Clients, and numbers in their records, that are trained side by side: 128 MB.
_STACK, _FLOATS = 256, 2**25


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
        first = 0
        while first < len(clients):
            stop = first + _stack_size(model, clients[first:])
            moved = _train(model, clients[first:stop], start, request) - start
            for index, row in enumerate(moved.numpy(), first):
                yield index, DenseRows(row[None])
            first = stop


def _stack_size(model: Model, clients: Sequence[View]) -> int:
    """How many of the clients, at least one, are trained side by side."""
    floats = np.cumsum([client.records * model.network.inputs for client in clients])
    return max(1, min(_STACK, int(np.searchsorted(floats, _FLOATS, side="right"))))


def _train(
    model: Model, clients: Sequence[View], start: torch.Tensor, request: Request
) -> torch.Tensor:
    """Each client's weights after its epochs, [clients, dim]; the start's of one without records.

    The clients' networks lie side by side, and none depends on another.
    """
    settings, layers = request.settings, model.network.layers
    rate, decay = number(settings, "learning_rate"), number(settings, "weight_decay")
    size, proximal = (
        whole(settings, "batch_size"),
        number({"proximal": 0.0, **settings}, "proximal"),
    )
    owned = [model.records_of(client, np.arange(client.records)) for client in clients]
    coins = [client.coins.generator() for client in clients]
    weights = leaves(start.repeat(len(clients), 1), layers)
    starts = [weight.detach().clone() for weight in weights]
    for _ in range(whole(settings, "local_epochs")):
        orders = [
            torch.from_numpy(rng.permutation(len(y)))
            for rng, (_, y) in zip(coins, owned, strict=True)
        ]
        for first in range(0, max(map(len, orders)), size):
            x = torch.zeros(len(clients), size, model.network.inputs)
            y = torch.zeros(len(clients), size, dtype=torch.int64)
            shares = torch.zeros(len(clients), size)
            for place, (order, (own_x, own_y)) in enumerate(zip(orders, owned, strict=True)):
                at = order[first : first + size]
                x[place, : len(at)], y[place, : len(at)] = own_x[at], own_y[at]
                shares[place, : len(at)] = 1 / max(1, len(at))
            with torch.enable_grad():
                logits = model.network.logits(weights, x)
                found = losses(logits.flatten(0, 1), y.flatten()) * shares.flatten()
                gradients = torch.autograd.grad(found.sum(), weights)
            # Who has come to the end of its records takes no step.
            steps = rate * (shares[:, 0] > 0).float()
            with torch.no_grad():
                for weight, gradient, begun in zip(weights, gradients, starts, strict=True):
                    own = steps.view(-1, *[1] * (weight.dim() - 1))
                    moved = rate * gradient + proximal * own * (weight - begun)
                    if weight.dim() > 2:
                        weight.mul_(1 - decay * own)
                    weight.sub_(moved)
    return flatten(weights)


TRAINING = register(TrainingTask())
