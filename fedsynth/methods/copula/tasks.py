"""The client half: counts of cells and sums of products."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Plain, Request, number, whole
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.question import Question
from fedsynth.privacy.rows.clipping import Norm, Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.schema import Schema

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class StatisticsTask:
    """Count cells and sum products; at the client level the means over a client's own records."""

    keeps_order: ClassVar[bool] = True
    name: str = "fusion-statistics"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[Whole], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            schema = client.board.read("schema", Schema.from_dict)
            question = read_question(schema, request.settings, request.terms.norm)
            columns = {name: values[sample] for name, values in client.data.columns.items()}
            rows = question.rows(columns, _group(client, request.settings))
            if request.terms.protects.per_record:
                yield index, rows
            else:
                total = rows.weighted_sum(np.ones(len(rows)))
                yield index, DenseRows(total[None] / max(1, len(rows)))


STATISTICS = register(StatisticsTask())


def read_question(schema: Schema, settings: Mapping[str, Plain], norm: Norm) -> Question:
    """The question that a request's settings state: share, apart, and perhaps groups by client."""
    groups = settings.get("groups")
    count = 1
    if isinstance(groups, Mapping):
        count = 1 + max((whole(groups, client) for client in groups), default=0)
    cells = TableCells.of(schema, whole(settings, "apart"))
    return Question(cells, number(settings, "share"), norm, count)


def _group(client: View, settings: Mapping[str, Plain]) -> int:
    groups = settings.get("groups")
    if not isinstance(groups, Mapping):
        return 0
    if client.name not in groups:
        raise FederationError(f"the request names no group of the client {client.name!r}")
    return whole(groups, client.name)
