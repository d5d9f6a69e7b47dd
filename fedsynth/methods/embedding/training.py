"""Training the generator to match the released means: free, for as long as wanted."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor

from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.generator import Generator
from fedsynth.methods.embedding.targets import Targets
from fedsynth.models.adam import Adam

# The patches' mean is of all classes together, so it is as much more precise than a class's.
_LEAST_SHARED = 30.0


def train(
    generator: Generator,
    targets: Targets,
    coins: torch.Generator,
    progress: Callable[[int, int], None],
) -> None:
    """Match the means of the features, by Adam on an unbiased estimate of the squared distance.

    A batch's own mean varies by chance; without a correction a generator would learn to vary less
    than the data do. The weights become the moving average of those along the way.
    """
    settings = generator.embedding.settings
    matching = Matching(generator.embedding, targets)
    each = max(4, settings.batch // matching.blocks)
    weights = list(generator.parameters())
    optimiser = Adam(weights, settings.learning_rate, betas=(0.9, 0.99))
    average = [w.detach().clone() for w in weights]
    for step in range(settings.steps):
        share = step / settings.steps
        optimiser.rate = settings.learning_rate * (1 + math.cos(math.pi * share)) / 2
        classes = torch.arange(matching.blocks).repeat_interleave(each)
        loss = matching.loss(generator(classes, coins), coins)
        optimiser.step(torch.autograd.grad(loss, weights))
        # A mean of few steps forgets the beginning sooner than its decay would.
        decay = min(settings.average, (1 + step) / (10 + step))
        with torch.no_grad():
            for kept, now in zip(average, weights, strict=True):
                kept.lerp_(now, 1 - decay)
        progress(step + 1, settings.steps)
    with torch.no_grad():
        for now, kept in zip(weights, average, strict=True):
            now.copy_(kept)


class Matching:
    """Squared distances between a batch's mean features and the released ones, unbiased."""

    def __init__(self, embedding: Embedding, targets: Targets) -> None:
        self.embedding = embedding
        self.moments = torch.as_tensor(targets.moments, dtype=torch.float32)
        self.fourier = torch.as_tensor(targets.fourier, dtype=torch.float32)
        self.patches = torch.as_tensor(targets.patches, dtype=torch.float32)

    @property
    def blocks(self) -> int:
        """Classes."""
        return len(self.moments)

    def loss(self, records: Tensor, coins: torch.Generator) -> Tensor:
        """The distance, of records [blocks * n, width] class by class, n at least 2."""
        moments, fourier, patches = self.embedding.shares
        loss = moments * self.of_moments(records) + fourier * self.of_fourier(records)
        if patches:
            factor = min(_LEAST_SHARED, float(self.blocks) ** 2)
            loss = loss + patches * factor * self.of_patches(records, coins)
        return loss

    def of_moments(self, records: Tensor) -> Tensor:
        """Summed over classes; Frobenius norms of matrices."""
        vectors = self.embedding.vectors(records)
        vectors = vectors.reshape(self.blocks, -1, vectors.shape[1])
        count = vectors.shape[1]
        mean = vectors.transpose(1, 2) @ vectors / count
        # The norm of an outer product is the square of the vector's.
        each = ((vectors**2).sum(dim=2) ** 2).mean(dim=1)
        return _distance(mean.flatten(1), self.moments.flatten(1), each, count)

    def of_fourier(self, records: Tensor) -> Tensor:
        """Summed over classes."""
        features = self.embedding.fourier(records).reshape(self.blocks, -1, self.fourier.shape[1])
        each = torch.ones(self.blocks)
        return _distance(features.mean(dim=1), self.fourier, each, features.shape[1])

    def of_patches(self, records: Tensor, coins: torch.Generator) -> Tensor:
        """Of all classes together: two halves of some records, each against the target."""
        chosen = torch.randperm(len(records), generator=coins)[:100]
        features = self.embedding.patches(records[chosen])
        half = len(features) // 2
        one, other = features[:half].mean(dim=0), features[half:].mean(dim=0)
        return ((one - self.patches) * (other - self.patches)).sum()


def _distance(mean: Tensor, target: Tensor, each: Tensor, count: int) -> Tensor:
    """Sum over classes of an unbiased ``|E f - target|^2``.

    ``|mean|^2`` exceeds ``|E f|^2`` by ``(E |f|^2 - |E f|^2) / count``.

    Args:
        mean: of ``count`` features, [blocks, d].
        each: mean of the features' squared norms, [blocks].
    """
    square = (mean**2).sum(dim=1)
    unbiased = square - (each - square) / (count - 1)
    return (unbiased - 2 * (mean * target).sum(dim=1) + (target**2).sum(dim=1)).sum()
