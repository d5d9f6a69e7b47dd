"""Histograms, the client half: the cells that a client's records fall in."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.counting import IndicatorRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.queries.tasks.records import codes_of
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class CountTask:
    """Count the positions that a client's records touch.

    Attributes:
        name: of the task.
        positions: of a client's records, int64 [records, ones], distinct within a record.
    """

    keeps_order: ClassVar[bool] = True
    name: str
    positions: Callable[[View], Positions]

    def contribute(
        self, clients: Sequence[View], samples: Sequence[Positions], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            touched = self.positions(client)[sample]
            if request.terms.protects.per_record:
                yield index, IndicatorRows(touched, request.dim)
            else:
                counts = np.bincount(touched.ravel(), minlength=request.dim)
                yield index, DenseRows(counts[None] / max(1, len(touched)))


def _schema_positions(client: View) -> Positions:
    return client.board.read("schema", _layout_of).positions(client.data)


def _layout_of(schema: dict[str, object]) -> HistogramLayout:
    return HistogramLayout.of(Schema.from_dict(schema))


def _label_positions(client: View) -> Positions:
    if isinstance(client.data, Images):
        labels = client.data.labels
    else:
        schema = client.board.read("schema", Schema.from_dict)
        labels = client.data.columns[schema.target].astype(np.int64) if schema.classes else None
    return np.zeros((client.records, 1), np.int64) if labels is None else labels[:, None]


def _pair_positions(client: View) -> Positions:
    encoding = client.board.read("encoding", TableEncoding.from_dict)
    codes = codes_of(client).astype(np.int64)
    target = target_index(encoding.schema)
    starts, _ = pair_starts(encoding.sizes, target)
    others = [j for j in range(codes.shape[1]) if j != target]
    sizes = np.array([encoding.sizes[j] for j in others], np.int64)
    return starts[None, :] + codes[:, [target]] * sizes + codes[:, others]


HISTOGRAM = register(CountTask("histogram", _schema_positions))


LABELS = register(CountTask("labels", _label_positions))


LABEL_TABLES = register(CountTask("label-tables", _pair_positions))


def pair_starts(sizes: Sequence[int], target: int) -> tuple[Positions, int]:
    """Where the table [labels, size_j] of every other column starts, and the length of them all."""
    cells = [size * sizes[target] for j, size in enumerate(sizes) if j != target]
    stops = np.cumsum([0, *cells])
    return stops[:-1].astype(np.int64), int(stops[-1])
