"""The one message: what a client sums, how it is protected, and what it costs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.request import Plain
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.embedding.features import Embedding
from fedsynth.methods.embedding.tasks import BOARD, EMBEDDING, blocks
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.terms import terms_for_everyone


def length(embedding: Embedding) -> int:
    """Numbers in the message."""
    return blocks(embedding) * embedding.own + embedding.shared


def embedding_terms(
    embedding: Embedding, budget: Budget, noise_multiplier: float, survivors: int
) -> Terms:
    """Terms of the message, asked of everybody."""
    clip = embedding.settings.clip
    assert clip is not None
    return terms_for_everyone(budget, clip, noise_multiplier, survivors)


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


def announcement(embedding: Embedding) -> dict[str, Plain]:
    """What clients need to know to compute the features."""
    return {
        "schema": embedding.schema.to_dict(),
        "settings": embedding.settings.model_dump(mode="json"),
    }


def ask(channel: Channel, embedding: Embedding, terms: Terms) -> Sums:
    """Release the sums, in one message a client."""
    channel.announce(BOARD, announcement(embedding))
    released = channel.sum(EMBEDDING.name, terms, length(embedding))
    return split(embedding, released.value, terms.summed_scale(released.answered))


def split(embedding: Embedding, values: NDArray[np.float64], sigma: float) -> Sums:
    """The message's parts."""
    count = blocks(embedding) * embedding.own
    return Sums(values[:count].reshape(-1, embedding.own), values[count:], sigma)
