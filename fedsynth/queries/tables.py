"""Marginals asked through the door: several tables of columns in one noisy sum."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.server.channel import Channel
from fedsynth.federation.server.counts import Blocks
from fedsynth.marginals import Clique, Domain, Measurement
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.counting import deviation_of
from fedsynth.queries.tasks.marginals import MARGINALS
from fedsynth.queries.terms import terms_for_everyone

PAIRS = "marginals: pairs"
"""Label of tables of two columns that are asked before a training of many rounds."""


def table_terms(
    budget: Budget, noise_multiplier: float, survivors: int, mechanism: str = "gaussian"
) -> Terms:
    """Terms of one message of marginals, asked of everybody."""
    return terms_for_everyone(budget, 1.0, noise_multiplier, survivors, mechanism)


def table_arrays(
    cliques: Sequence[Clique], weights: NDArray[np.float64]
) -> dict[str, NDArray[np.generic]]:
    """The arrays of a request that names tables."""
    return {
        "cliques": np.concatenate([np.array(clique, np.int64) for clique in cliques]),
        "widths": np.array([len(clique) for clique in cliques], np.int64),
        "weights": weights,
    }


def ask_marginals(
    channel: Channel,
    terms: Terms,
    domain: Domain,
    cliques: Sequence[Clique],
    weights: Sequence[float],
) -> list[Measurement]:
    """Release the tables of ``cliques`` in one noisy sum.

    Args:
        weights: positive, how precisely each is wanted beside the others: noise goes with the
            inverse.
    """
    shares = np.asarray(weights, np.float64)
    # A row has this norm, whatever it holds.
    shares = shares / (shares.sum() if terms.norm == "l1" else np.sqrt(shares @ shares))
    sizes = [domain.cells(clique) for clique in cliques]
    blocks = Blocks(np.cumsum([0, *sizes[:-1]]), shares)
    arrays = table_arrays(cliques, shares)
    released = channel.count(MARGINALS.name, terms, sum(sizes), blocks, arrays=arrays)
    sigma = deviation_of(terms, released.answered)
    parts = np.split(released.value, blocks.starts[1:])
    return [
        Measurement(clique, part.reshape(domain.shape(clique)) / share, sigma / share)
        for clique, part, share in zip(cliques, parts, shares, strict=True)
    ]
