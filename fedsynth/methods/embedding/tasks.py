"""The client half: features of a client's records, summed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.client.joining import pieces
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.methods.embedding.features import Embedding, embedding_of
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.schema.target import conditions

BOARD = "embedding"


# Records whose features are written out at once: bounds memory.
_CHUNK = 500


@dataclass(frozen=True)
class EmbeddingTask:
    """Sum the features of a client's records, a block a class, then the shared block.

    At the client level a client sends its mean over its records, so that no client weighs more than
    another.
    """

    keeps_order: ClassVar[bool] = True
    name: str = "mean-embedding"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            embedding = client.board.read(BOARD, embedding_of)
            if request.terms.protects.per_record:
                for piece in pieces([client], [sample], request, _CHUNK):
                    yield index, feature_rows(embedding, client, sample[piece])
            else:
                yield index, DenseRows(_mean(embedding, client, sample, request.dim)[None])


EMBEDDING = register(EmbeddingTask())


def blocks(embedding: Embedding) -> int:
    """Blocks of a class each; 1 where nothing can be conditioned on."""
    return max(1, conditions(embedding.schema))


def feature_rows(embedding: Embedding, client: View, sample: NDArray[np.int64]) -> FactoredRows:
    """One row a record, sparse in the classes: a one-hot class times features.

    Norms are those of the features; nothing of length classes times features is written out.
    """
    coding = embedding.coding
    features, shared = embedding.rows(coding.coordinates(client.data, sample))
    classes = coding.classes_of(client.data, sample)
    one_hot = np.eye(blocks(embedding))[classes]
    layers = [(one_hot, features)]
    if embedding.shared:
        layers.append((np.ones((len(sample), 1)), shared))
    return FactoredRows(layers)


def _mean(
    embedding: Embedding, client: View, sample: NDArray[np.int64], dim: int
) -> NDArray[np.float64]:
    total = np.zeros(dim)
    for start in range(0, len(sample), _CHUNK):
        rows = feature_rows(embedding, client, sample[start : start + _CHUNK])
        total += rows.weighted_sum(np.ones(len(rows)))
    return total / max(1, len(sample))
