"""Record level, the client half: gradients of drawn records, one global step a round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.joining import pieces
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.methods.classifier.records import Model
from fedsynth.methods.training.batches import cut_by_owner, tensor
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.factored import FactoredRows


class GradientTask:
    """A row for every drawn record: the gradient of its cross-entropy in all weights."""

    name = "classifier-gradient"
    keeps_order = True

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if not request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a record, not a {request.terms.unit}")
        model = clients[0].board.read("classifier", Model.from_dict)
        weights = tensor(request.arrays["weights"])
        owners = np.repeat(np.arange(len(clients)), [len(sample) for sample in samples])
        drawn = np.concatenate(samples)
        for at in pieces(clients, samples, request, model.chunk):
            members = owners[at]
            several = [
                model.records_of(clients[index], drawn[at][members == index])
                for index in np.unique(members).tolist()
            ]
            x, y = (torch.cat(parts) for parts in zip(*several, strict=True))
            factors = model.network.factors(weights, x, y)
            rows = FactoredRows([(left.numpy(), right.numpy()) for left, right in factors])
            yield from cut_by_owner(rows, members)


GRADIENT = register(GradientTask())
