"""Marginals, the client half: a client's records in several tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.marginals import Clique
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.counting import MarginalRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.queries.tasks.records import codes_of, finer_codes_of


@dataclass(frozen=True)
class MarginalTask:
    """Count a client's records in several tables, each weighted; the squared weights sum to 1.

    Columns are those of the announced encoding and, behind them, once more those of the finer one,
    where a table has such a column.

    At the client level a client sends its counts divided by its number of records, so that no
    client weighs more than another.
    """

    keeps_order: ClassVar[bool] = True
    name: str = "marginals"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        cliques, weights = _tables(request)
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            codes = codes_of(client)[sample]
            sizes = client.board.read("encoding", TableEncoding.from_dict).sizes
            if any(column >= len(sizes) for clique in cliques for column in clique):
                codes = np.hstack((codes, finer_codes_of(client)[sample]))
                sizes = (*sizes, *client.board.read("finer", TableEncoding.from_dict).sizes)
            rows = MarginalRows(codes, sizes, cliques, weights.tolist())
            if request.terms.protects.per_record:
                yield index, rows
            else:
                total = rows.weighted_sum(np.ones(len(rows)))
                yield index, DenseRows(total[None] / max(1, len(rows)))


MARGINALS = register(MarginalTask())


def _tables(request: Request) -> tuple[list[Clique], NDArray[np.float64]]:
    flat = np.asarray(request.arrays["cliques"], np.int64).tolist()
    stops = np.cumsum(np.asarray(request.arrays["widths"], np.int64)).tolist()
    starts = [0, *stops[:-1]]
    cliques = [tuple(flat[a:b]) for a, b in zip(starts, stops, strict=True)]
    return cliques, np.asarray(request.arrays["weights"], np.float64)
