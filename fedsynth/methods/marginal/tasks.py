"""The client half: a network of a client's own rows as its vote."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request, whole
from fedsynth.marginals import Domain, count
from fedsynth.methods.marginal.network import network
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.queries.tasks.records import codes_of

Array = NDArray[np.float64]


@dataclass(frozen=True)
class VoteTask:
    """A client's network of its own rows, as one vote for every pair of child and parent.

    The vote depends on all of a client's records, so it is one row for the whole client.
    """

    name: str = "network-votes"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record:
            raise PrivacyError(f"{self.name} gives a row a client, not a {request.terms.unit}")
        for index, client in enumerate(clients):
            domain = Domain(client.board.read("encoding", TableEncoding.from_dict).sizes)
            degree, first, limit = (
                whole(request.settings, name) for name in ("degree", "first", "limit")
            )
            votes = np.zeros((len(domain), len(domain)))
            if client.records:
                scores = _own_scores(domain, codes_of(client))
                for family in network(scores, domain, degree, first, limit):
                    votes[family.child, list(family.parents)] = 1.0
            votes = np.triu(votes + votes.T)[np.triu_indices(len(domain), 1)]
            yield index, DenseRows(votes[None] / max(1.0, float(np.linalg.norm(votes))))


VOTE = register(VoteTask())


def _own_scores(domain: Domain, codes: NDArray[np.int32]) -> Array:
    """Half the L1 distance of each pair from independence (PrivBayes, score R), [d, d]."""
    scores = np.zeros((len(domain), len(domain)))
    for pair in itertools.combinations(range(len(domain)), 2):
        shares = count(domain, codes, pair) / len(codes)
        apart = np.abs(shares - np.outer(shares.sum(axis=1), shares.sum(axis=0))).sum() / 2
        scores[pair] = scores[pair[::-1]] = apart
    return scores
