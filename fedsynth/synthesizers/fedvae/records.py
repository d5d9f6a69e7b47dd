"""What FedVAE's tasks share: the announced model, a site's records as it sees them, its coins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import PrivacyError
from fedsynth.federation.request import Request
from fedsynth.federation.site import Site
from fedsynth.models.spec import VAESpec
from fedsynth.synthesizers.counting import target_index
from fedsynth.synthesizers.owners import codes_of, pixels_of

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
            starts += _running(part * self.spec.encoder_dim, sizes)
        sizes = [layer.size for layer in self.spec.decoder_layers]
        starts += _running(encoders + part * self.spec.decoder_dim, sizes)
        return starts, encoders + self.parts * self.spec.decoder_dim

    def to_dict(self) -> dict[str, Any]:
        return {"spec": self.spec.to_dict(), "parts": self.parts}

    @staticmethod
    def from_dict(plain: dict[str, Any]) -> Model:
        return Model(VAESpec.from_dict(plain["spec"]), int(plain["parts"]))


def _running(start: int, sizes: Sequence[int]) -> list[int]:
    return [start + sum(sizes[:i]) for i in range(len(sizes))]


@dataclass(frozen=True)
class Batch:
    """Records of one site as the model sees them: ``x`` [b, ...], ``y`` [b] or None."""

    x: torch.Tensor
    y: torch.Tensor | None


def batch_of(site: Site, rows: NDArray[np.int64], model: Model) -> Batch:
    if model.spec.shape:
        labels = site.data.labels
        y = None if labels is None else torch.from_numpy(labels[rows])
        return Batch(torch.from_numpy(pixels_of(site, rows)), y)
    codes = codes_of(site)[rows]
    if not model.spec.classes and model.parts == 1:
        return Batch(torch.from_numpy(codes), None)
    target = site.board.read("encoding", _target_of)
    y = torch.from_numpy(codes[:, target].astype(np.int64))
    return Batch(torch.from_numpy(np.delete(codes, target, axis=1)), y)


def _target_of(encoding: dict[str, Any]) -> int:
    return target_index(TableEncoding.from_dict(encoding).schema)


def latent_draws(rng: np.random.Generator, rows: int, latent: int) -> torch.Tensor:
    """Standard normal draws, float32 [rows, latent], from the site's secret coins.

    Latent draws go with places in a sample. Were they known, removing a record would shift every
    later one to another draw and move the sum without bound; being secret and alike, they can be
    thought of as going with the records, and each record moves its own row alone.
    """
    return torch.from_numpy(rng.standard_normal((rows, latent), np.float32))


def tensor(array: NDArray[np.generic]) -> torch.Tensor:
    return torch.from_numpy(np.asarray(array, np.float32))


def number(request: Request, name: str) -> float:
    value = request.settings[name]
    if not isinstance(value, int | float):
        raise PrivacyError(f"the request's setting {name} is no number")
    return float(value)
