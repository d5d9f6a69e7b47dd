"""The one message: what a client sums, how it is protected, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.client.site import Site
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Plain, Request
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.embedding.features import Embedding, embedding_of
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.rows.clipping import DenseRows, Rows
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.queries.counting import conditions, released_scale

BOARD = "embedding"
# Records whose features are written out at once: bounds memory.
_CHUNK = 500
# A hair above the norm of a row, so that clipping leaves honest rows as they are.
_HAIR = 1 + 1e-5


@dataclass(frozen=True)
class EmbeddingTask:
    """Sum the features of a site's records, a block a class, then the shared block.

    At the client level a client sends its mean over its records, so that no client weighs more than
    another.
    """

    name: str = "mean-embedding"

    def contribute(
        self, sites: Sequence[Site], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (site, sample) in enumerate(zip(sites, samples, strict=True)):
            embedding = site.board.read(BOARD, embedding_of)
            if request.terms.protects.per_record:
                for start in range(0, len(sample), _CHUNK):
                    yield index, feature_rows(embedding, site, sample[start : start + _CHUNK])
            else:
                yield index, DenseRows(_mean(embedding, site, sample, request.dim)[None])

    def keep(self, site: Site, values: NDArray[np.float64], request: Request) -> None:
        raise AssertionError("features are sent, nothing of them is kept")


EMBEDDING = register(EmbeddingTask())


def length(embedding: Embedding) -> int:
    """Numbers in the message."""
    return blocks(embedding) * embedding.own + embedding.shared


def blocks(embedding: Embedding) -> int:
    """Blocks of a class each; 1 where nothing can be conditioned on."""
    return max(1, conditions(embedding.schema))


def feature_rows(embedding: Embedding, site: Site, sample: NDArray[np.int64]) -> FactoredRows:
    """One row a record, sparse in the classes: a one-hot class times features.

    Norms are those of the features; nothing of length classes times features is written out.
    """
    coding = embedding.coding
    own, shared = embedding.rows(coding.coordinates(site.data, sample))
    classes = coding.classes_of(site.data, sample)
    one_hot = np.eye(blocks(embedding))[classes]
    layers = [(one_hot, own)]
    if embedding.shared:
        layers.append((np.ones((len(sample), 1)), shared))
    return FactoredRows(layers)


def _mean(
    embedding: Embedding, site: Site, sample: NDArray[np.int64], dim: int
) -> NDArray[np.float64]:
    total = np.zeros(dim)
    for start in range(0, len(sample), _CHUNK):
        rows = feature_rows(embedding, site, sample[start : start + _CHUNK])
        total += rows.weighted_sum(np.ones(len(rows)))
    return total / max(1, len(sample))


def embedding_terms(
    embedding: Embedding, budget: Budget, noise_multiplier: float, survivors: int
) -> Terms:
    """Terms of the message, asked of everybody."""
    clip = embedding.settings.clip
    assert clip is not None
    return Terms(
        unit=budget.unit,
        trust=budget.trust,
        clip=clip * _HAIR,
        noise_multiplier=noise_multiplier,
        sampling=Everyone(),
        survivors=survivors,
    )


@dataclass(frozen=True)
class Sums:
    """What was released.

    Attributes:
        own: of each class, [classes, own].
        shared: [shared].
        sigma: standard deviation of the noise in every number.
    """

    own: NDArray[np.float64]
    shared: NDArray[np.float64]
    sigma: float


def announced(embedding: Embedding) -> dict[str, Plain]:
    """What clients need to know to compute the features."""
    return {
        "schema": embedding.schema.to_dict(),
        "settings": embedding.settings.model_dump(mode="json"),
    }


def ask(channel: Channel, embedding: Embedding, terms: Terms) -> Sums:
    """Release the sums, in one message a client."""
    channel.announce(BOARD, announced(embedding))
    released = channel.sum(EMBEDDING.name, terms, length(embedding))
    return split(embedding, released.value, released_scale(terms, released.answered))


def split(embedding: Embedding, values: NDArray[np.float64], sigma: float) -> Sums:
    """The message's parts."""
    count = blocks(embedding) * embedding.own
    return Sums(values[:count].reshape(-1, embedding.own), values[count:], sigma)
