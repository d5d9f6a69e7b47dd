"""The conditional generator: a Gaussian's draw, corrected by a small network."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedsynth.methods.embedding.coding import ImageCoding
from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.targets import Targets
from fedsynth.models.allocating import allocate

# How logits follow from intensities, and from one-hot coordinates, before training.
_GAIN, _MIDDLE, _SHARPNESS = 6.0, 0.5, 6.0
# Corrections start small: a network's output of 1 moves few coordinates by so much of their norm.
_STEP = 0.1
_LARGEST = 0.98
_SAMPLED = 500


@dataclass(frozen=True)
class Start:
    """The Gaussians of each class, float32: means [c, k] and roots [c, k, k]."""

    means: NDArray[np.float32]
    roots: NDArray[np.float32]

    @staticmethod
    def of(targets: Targets) -> Start:
        return Start(targets.means.astype(np.float32), targets.roots.astype(np.float32))


class Generator(nn.Module):
    """Records from noise and classes.

    Few coordinates are drawn from the class's Gaussian and lifted to all of them; two dense layers
    correct both, and convolutions refine an image. The corrections are 0 before training.
    """

    def __init__(
        self, embedding: Embedding, start: Start, generator: torch.Generator | None
    ) -> None:
        super().__init__()
        self.embedding = embedding
        settings, coding = embedding.settings, embedding.coding
        self.means, self.roots = torch.from_numpy(start.means), torch.from_numpy(start.roots)
        energies = (self.means**2).sum(dim=1) + (self.roots**2).sum(dim=(1, 2))
        self.norms = energies.sqrt().clamp(max=_LARGEST)
        self.lift = torch.as_tensor(embedding.projection.lift, dtype=torch.float32)
        components, classes, hidden = embedding.components, len(start.means), settings.hidden
        images = isinstance(coding, ImageCoding)
        # An image's corrections are smooth: those of its few coordinates, and a factor.
        corrected = components + 1 if images else components + coding.width
        self.first = nn.Linear(2 * components + classes, hidden, device="meta")
        self.second = nn.Linear(hidden, hidden, device="meta")
        self.last = nn.Linear(hidden, corrected, device="meta")
        self.sharpness = torch.ones(coding.width)
        if not isinstance(coding, ImageCoding):
            for slot in coding.slots:
                self.sharpness[slice(*slot.cells)] = _SHARPNESS
            self._begin(generator)
            return
        self.line = nn.Linear(1, 1, device="meta")
        channels, depth = settings.channels, coding.shape[2]
        if channels:
            self.conv1 = nn.Conv2d(2 * depth, channels, 5, padding=2, device="meta")
            self.conv2 = nn.Conv2d(channels, channels, 3, padding=1, device="meta")
            self.conv3 = nn.Conv2d(channels, depth, 5, padding=2, device="meta")
        self._begin(generator)

    @property
    def length(self) -> int:
        """How many weights it has."""
        return sum(part.numel() for part in self.parameters())

    def _begin(self, generator: torch.Generator | None) -> None:
        """Glorot uniform weights from the generator alone, zero biases and corrections; without
        one, no weights, nor memory for them."""
        if generator is None:
            return
        for layer in self.children():
            if not isinstance(layer, nn.Linear | nn.Conv2d):
                continue
            allocate(layer)
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            assert layer.bias is not None
            nn.init.zeros_(layer.bias)
        for name in ("last", "conv3"):
            if hasattr(self, name):
                nn.init.zeros_(getattr(self, name).weight)
        if hasattr(self, "line"):
            nn.init.constant_(self.line.weight, _GAIN)
            nn.init.constant_(self.line.bias, -_GAIN * _MIDDLE)

    def forward(
        self, classes: Tensor, generator: torch.Generator, spreads: Tensor | None = None
    ) -> Tensor:
        """Records [n, width] of classes [n], from noise of standard deviations [n], or of 1."""
        rows, components = len(classes), self.means.shape[1]
        noise = torch.randn((rows, components), generator=generator)
        if spreads is not None:
            noise = noise * spreads[:, None]
        drawn = self.means[classes] + torch.einsum("nk,nik->ni", noise, self.roots[classes])
        drawn = self._bound(drawn, classes)
        one_hot = functional.one_hot(classes, len(self.means)).to(torch.float32)
        inputs = torch.cat([drawn * math.sqrt(components), noise, one_hot], dim=1)
        hidden = torch.relu(self.second(torch.relu(self.first(inputs))))
        change = self.last(hidden)
        moved = self._bound(drawn + _STEP * change[:, :components], classes)
        energy = (moved**2).sum(dim=1, keepdim=True)
        whole = (moved * torch.sqrt(self.embedding.floor / (1 - energy))) @ self.lift
        return self.embedding.coding.finish(
            self._raw(whole, change[:, components:], generator), generator
        )

    def _bound(self, vectors: Tensor, classes: Tensor) -> Tensor:
        """Vectors with a norm below 1, which a Gaussian's draws need not have.

        Images of a class have all the same norm, or faint ones would come of draws near the
        middle; how bright one is is the network's to say.
        """
        norms = vectors.norm(dim=1, keepdim=True)
        factors = _LARGEST / norms.clamp(min=_LARGEST)
        if isinstance(self.embedding.coding, ImageCoding):
            factors = self.norms[classes, None] / norms.clamp(min=1e-6)
        bounded: Tensor = vectors * factors
        return bounded

    def _raw(self, whole: Tensor, change: Tensor, generator: torch.Generator) -> Tensor:
        """What the coding finishes, from lifted coordinates and the other corrections."""
        coding = self.embedding.coding
        if not isinstance(coding, ImageCoding):
            return (whole + _STEP * change) * self.sharpness
        pixels, others = whole[:, : coding.schema.pixels], whole[:, coding.schema.pixels :]
        pixels = pixels * (1 + _STEP * change)
        if hasattr(self, "conv1"):
            pixels = pixels + self._refine(pixels, coding, generator)
        return torch.cat([pixels * self.line.weight[0] + self.line.bias, others], dim=1)

    def _refine(self, whole: Tensor, coding: ImageCoding, generator: torch.Generator) -> Tensor:
        height, width, channels = coding.shape
        images = whole.reshape(-1, height, width, channels).permute(0, 3, 1, 2)
        noise = torch.randn(images.shape, generator=generator)
        maps = torch.relu(self.conv1(torch.cat([images, noise], dim=1)))
        maps = torch.relu(self.conv2(maps))
        refined: Tensor = self.conv3(maps)
        return refined.permute(0, 2, 3, 1).flatten(1)

    def draw(
        self, classes: NDArray[np.int64], seed: int, spreads: NDArray[np.float32] | None = None
    ) -> NDArray[np.float64]:
        """Records float64 [n, width] of classes [n], the same for a seed.

        Args:
            spreads: of each one's noise, [n]; 1 as in the training by default.
        """
        generator = torch.Generator().manual_seed(seed)
        if spreads is None:
            spreads = np.ones(len(classes), np.float32)
        records = [np.zeros((0, self.embedding.coding.width))]
        with torch.no_grad():
            for start in range(0, len(classes), _SAMPLED):
                part = slice(start, start + _SAMPLED)
                chosen = torch.from_numpy(classes[part]), generator, torch.from_numpy(spreads[part])
                records.append(self(*chosen).double().numpy())
        return np.concatenate(records)

    def vector(self) -> NDArray[np.float32]:
        """All weights, flat."""
        with torch.no_grad():
            return torch.cat([p.flatten() for p in self.parameters()]).numpy().astype(np.float32)

    def take(self, vector: NDArray[np.float32]) -> None:
        """Set all weights. Raises ValueError for a vector of another length."""
        parts = list(self.parameters())
        if vector.shape != (self.length,):
            raise ValueError("a generator's weights are of another length")
        with torch.no_grad():
            for part, values in zip(parts, _cut(vector, parts), strict=True):
                part.copy_(torch.from_numpy(values.copy()).reshape(part.shape))


def _cut(vector: NDArray[np.float32], parts: list[nn.Parameter]) -> Iterator[NDArray[np.float32]]:
    start = 0
    for part in parts:
        yield vector[start : start + part.numel()]
        start += part.numel()
