"""What the classifier's tasks share: the announced model, and records as it sees them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.federation.client.view import View
from fedsynth.methods.classifier.features import Features
from fedsynth.models.classifier import Network
from fedsynth.models.layers import Stack

# Records whose gradients are computed at once: their factors stay within 128 MB.
_CHUNK, _FLOATS = 2048, 2**25


@dataclass(frozen=True)
class Model:
    """What the server announces: how a row becomes numbers, and the network that sees them."""

    features: Features
    network: Network | Stack

    def __post_init__(self) -> None:
        if (self.features.width, self.features.schema.classes) != (
            self.network.inputs,
            self.network.classes,
        ):
            raise ValueError("the network's inputs and classes are not the schema's")

    @property
    def chunk(self) -> int:
        """Records whose gradients fit in memory together."""
        return max(1, min(_CHUNK, _FLOATS // self.network.floats))

    def records_of(
        self, client: View, rows: NDArray[np.int64]
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """A client's records at these positions: numbers [n, inputs] and labels [n]."""
        data = client.data.take(rows)
        vectors, labels = self.features.vectors(data), self.features.labels(data)
        return torch.from_numpy(vectors), torch.from_numpy(labels)

    def to_dict(self) -> dict[str, Any]:
        return {"features": self.features.to_dict(), "network": self.network.to_dict()}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Model:
        features = Features.from_dict(plain["features"])
        network = plain["network"]
        kind: type[Network | Stack] = Stack if "layers" in network else Network
        return Model(features, kind.from_dict(network))
