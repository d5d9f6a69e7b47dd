"""The client half: a client's records as the statistic has them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.methods.inference.statistic import Statistic
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.schema import Schema

_CHUNK = 4096


@dataclass(frozen=True)
class MomentsTask:
    """A client's records, as the statistic has them.

    At the client level a client sends the mean over its records, so that none weighs more.
    """

    name: str = "moments"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            schema = client.board.read("schema", Schema.from_dict)
            statistic = Statistic.of(schema, request.settings, request.terms.norm)
            total = np.zeros(statistic.dim)
            for start in range(0, len(sample), _CHUNK):
                chunk = sample[start : start + _CHUNK]
                columns = {name: values[chunk] for name, values in client.data.columns.items()}
                labels = columns[str(schema.target)] if statistic.classes else None
                v = statistic.coordinates.matrix(columns, len(chunk))
                rows = statistic.contributions(v, labels)
                if request.terms.protects.per_record:
                    yield index, rows
                else:
                    total += rows.weighted_sum(np.ones(len(rows)))
            if not request.terms.protects.per_record:
                yield index, DenseRows(total[None] / max(1, len(sample)))


MOMENTS = register(MomentsTask())
