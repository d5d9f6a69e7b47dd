"""What FedVAE's tasks share: the announced model, and draws of a client's coins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from fedsynth.models.spec import VAESpec

# Records whose gradients are computed at once: enough for speed, and few enough that what stands in
# memory for each, its one-hot cells or for convolutions its whole gradient, stays within 128 MB.
_CHUNK = 2048
_FLOATS = 2**25


@dataclass(frozen=True)
class Model:
    """What the server announces of the model: its spec, and how classes are told apart.

    Attributes:
        spec: of one VAE.
        parts: number of VAEs side by side: the classes under the scheme ``sep``, else 1.
    """

    spec: VAESpec
    parts: int

    def encoder_part(self, phi: torch.Tensor, part: int) -> torch.Tensor:
        size = self.spec.encoder_dim
        return phi[part * size : (part + 1) * size]

    def decoder_part(self, theta: torch.Tensor, part: int) -> torch.Tensor:
        size = self.spec.decoder_dim
        return theta[part * size : (part + 1) * size]

    @property
    def chunk(self) -> int:
        """Records whose gradients fit in memory together."""
        each = self.spec.width
        if self.spec.kind == "conv":
            each = self.spec.encoder_dim + self.spec.decoder_dim
        return max(1, min(_CHUNK, _FLOATS // each))

    def blocks(self, part: int, frozen: bool) -> tuple[list[int], int]:
        """Where a part's layers lie in a row, and how long a row is.

        A row is the encoders of all parts, unless frozen, then their decoders.
        """
        encoders = 0 if frozen else self.parts * self.spec.encoder_dim
        starts = []
        if not frozen:
            sizes = [layer.size for layer in self.spec.encoder_layers]
            starts += _starts(part * self.spec.encoder_dim, sizes)
        sizes = [layer.size for layer in self.spec.decoder_layers]
        starts += _starts(encoders + part * self.spec.decoder_dim, sizes)
        return starts, encoders + self.parts * self.spec.decoder_dim

    def to_dict(self) -> dict[str, Any]:
        return {"spec": self.spec.to_dict(), "parts": self.parts}

    @property
    def labelled(self) -> bool:
        """Whether a table's target is the label: it has no cells."""
        return self.spec.classes > 0 or self.parts > 1

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Model:
        return Model(VAESpec.from_dict(plain["spec"]), int(plain["parts"]))


def _starts(start: int, sizes: Sequence[int]) -> list[int]:
    return [start + sum(sizes[:i]) for i in range(len(sizes))]


def latent_draws(rng: np.random.Generator, rows: int, latent: int) -> torch.Tensor:
    """Standard normal draws, float32 [rows, latent], from the client's secret coins.

    Latent draws go with places in a sample. Were they known, removing a record would shift every
    later one to another draw and move the sum without bound; being secret and alike, they can be
    thought of as going with the records, and each record moves its own row alone.
    """
    return torch.from_numpy(rng.standard_normal((rows, latent), np.float32))
