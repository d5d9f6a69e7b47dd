"""Marginals asked through the door: several tables of columns in one noisy sum."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.site import Site
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request
from fedsynth.federation.server.channel import Channel
from fedsynth.marginals import Clique, Domain, Measurement
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.rows.clipping import DenseRows, Rows
from fedsynth.privacy.rows.counting import MarginalRows
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.queries.counting import released_scale
from fedsynth.queries.owners import codes_of

# A hair above the norm of a row, so that clipping leaves honest counts as they are.
CLIP = 1 + 1e-5


@dataclass(frozen=True)
class MarginalTask:
    """Count a site's records in several tables, each weighted; the squared weights sum to 1.

    At the client level a client sends its counts divided by its number of records, so that no
    client weighs more than another.
    """

    name: str = "marginals"

    def contribute(
        self, sites: Sequence[Site], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        cliques, weights = _tables(request)
        for index, (site, sample) in enumerate(zip(sites, samples, strict=True)):
            sizes = site.board.read("encoding", TableEncoding.from_dict).sizes
            rows = MarginalRows(codes_of(site)[sample], sizes, cliques, weights.tolist())
            if request.terms.protects.per_record:
                yield index, rows
            else:
                total = rows.weighted_sum(np.ones(len(rows)))
                yield index, DenseRows(total[None] / max(1, len(rows)))

    def keep(self, site: Site, values: NDArray[np.float64], request: Request) -> None:
        raise AssertionError("counts are sent, nothing of them is kept")


MARGINALS = register(MarginalTask())


def _tables(request: Request) -> tuple[list[Clique], NDArray[np.float64]]:
    flat = np.asarray(request.arrays["cliques"], np.int64).tolist()
    stops = np.cumsum(np.asarray(request.arrays["widths"], np.int64)).tolist()
    starts = [0, *stops[:-1]]
    cliques = [tuple(flat[a:b]) for a, b in zip(starts, stops, strict=True)]
    return cliques, np.asarray(request.arrays["weights"], np.float64)


def table_terms(
    budget: Budget, noise_multiplier: float, survivors: int, mechanism: str = "gaussian"
) -> Terms:
    """Terms of one message of marginals, asked of everybody."""
    return Terms(
        unit=budget.unit,
        trust=budget.trust,
        clip=CLIP,
        noise_multiplier=noise_multiplier,
        norm=norm_of(mechanism),
        mechanism=mechanism,
        sampling=Everyone(),
        survivors=survivors,
    )


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
    shares = shares / np.sqrt(shares @ shares)
    sizes = [domain.cells(clique) for clique in cliques]
    released = channel.sum(MARGINALS.name, terms, sum(sizes), arrays=table_arrays(cliques, shares))
    sigma = released_scale(terms, released.answered)
    parts = np.split(released.value, np.cumsum(sizes)[:-1])
    return [
        Measurement(clique, part.reshape(domain.shape(clique)) / share, sigma / share)
        for clique, part, share in zip(cliques, parts, shares, strict=True)
    ]
