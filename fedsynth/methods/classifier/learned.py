"""What a fit of the federated classifier leaves behind, and what it answers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed
from fedsynth.data.images import Images
from fedsynth.errors import ReleaseError
from fedsynth.methods.classifier.records import Model
from fedsynth.views import Outlined

_CHUNK = 8192


@dataclass(frozen=True, repr=False)
class Learned(Outlined):
    """All of it released or computed from released values.

    Attributes:
        model: how a row becomes numbers, and the network.
        weights: its flat vector.
        frequencies: estimated share of each class, [classes].
        records: estimated number; None where clients are protected, of whom nobody's records count.
    """

    model: Model
    weights: NDArray[np.float32]
    frequencies: NDArray[np.float64]
    records: float | None = None

    def check(self) -> None:
        if self.weights.shape != (self.model.network.dim,):
            raise ReleaseError("the model's weights are not of the length that its network says")
        if not np.isfinite(self.weights).all():
            raise ReleaseError("the model's weights are not all numbers")
        if self.frequencies.shape != (self.model.network.classes,):
            raise ReleaseError("the model's frequencies are not those of its classes")

    def probabilities(self, data: Conformed | Images) -> NDArray[np.float64]:
        """Of every class, float64 [n, classes], rows summing to 1."""
        features, network = self.model.features, self.model.network
        weights = torch.from_numpy(self.weights)
        rows = np.arange(len(data) if isinstance(data, Images) else data.rows)
        found = np.zeros((len(rows), network.classes))
        with torch.no_grad():
            for start in range(0, len(rows), _CHUNK):
                at = rows[start : start + _CHUNK]
                x = torch.from_numpy(features.vectors(data.take(at)))
                found[at] = torch.softmax(network.answers(weights, x).double(), 1).numpy()
        return found
