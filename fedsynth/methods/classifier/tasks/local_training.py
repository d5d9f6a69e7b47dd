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
from fedsynth.methods.training.aggregation.local import local_rule
from fedsynth.methods.training.batches import tensor
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows

# Clients, and numbers in their records, that are trained side by side: 128 MB.
_STACK, _FLOATS = 256, 2**25


class TrainingTask:
    """Local training; the row is how far the weights moved, and what an aggregation adds to it."""

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
            moved = _train(model, clients[first:stop], start, request)
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
    """Each client's row: how far its weights moved in its epochs, and what the rule adds.

    The clients' networks lie side by side, and none depends on another.
    """
    settings = {"proximal": 0.0, "momentum": 0.0, "rule": "plain", **request.settings}
    rate, decay = number(settings, "learning_rate"), number(settings, "weight_decay")
    size, proximal = whole(settings, "batch_size"), number(settings, "proximal")
    memory = tensor(request.arrays["memory"]) if "memory" in request.arrays else start
    rule = local_rule(
        str(settings["rule"]), clients, start, memory, rate, number(settings, "momentum")
    )
    owned = [model.records_of(client, np.arange(client.records)) for client in clients]
    coins = [client.coins.generator() for client in clients]
    weights, steps = start.repeat(len(clients), 1), torch.zeros(len(clients), 1)
    penalty = decay * model.network.decayed
    for _ in range(whole(settings, "local_epochs")):
        orders = [
            torch.from_numpy(rng.permutation(len(y)))
            for rng, (_, y) in zip(coins, owned, strict=True)
        ]
        for first in range(0, max(map(len, orders)), size):
            batch = [
                (x[order[first : first + size]], y[order[first : first + size]])
                for order, (x, y) in zip(orders, owned, strict=True)
            ]
            active = torch.tensor([[float(len(y) > 0)] for _, y in batch])
            gradients = _gradients(model, weights, batch)
            # Apart from the loss, whose mean has nothing to say of who has no records.
            if decay:
                gradients += penalty * weights
            if proximal:
                gradients += proximal * (weights - start)
            weights = rule.step(weights, gradients, active)
            steps += active

    def full(at: torch.Tensor) -> torch.Tensor:
        return _gradients(model, at, owned) + penalty * at

    return rule.rows(weights - start, steps, full)


def _gradients(
    model: Model, weights: torch.Tensor, batch: Sequence[tuple[torch.Tensor, torch.Tensor]]
) -> torch.Tensor:
    """Of each client's mean loss over its records, [clients, dim]; 0 of one without."""
    most = max(len(y) for _, y in batch)
    x = torch.zeros(len(batch), most, model.network.inputs)
    y = torch.zeros(len(batch), most, dtype=torch.int64)
    shares = torch.zeros(len(batch), most)
    for place, (own_x, own_y) in enumerate(batch):
        x[place, : len(own_y)], y[place, : len(own_y)] = own_x, own_y
        shares[place, : len(own_y)] = 1 / max(1, len(own_y))
    return model.network.client_gradients(weights, x, y, shares)


TRAINING = register(TrainingTask())
