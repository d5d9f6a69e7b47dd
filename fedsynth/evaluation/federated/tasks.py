"""The client half of federated scores: one row a record, or one a client."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError
from fedsynth.evaluation.federated.estimates import Counts, estimate
from fedsynth.evaluation.federated.recipe import Codes, Floats, Layout, Recipe, Scorer, from_arrays
from fedsynth.evaluation.federated.scorer import scorer_of
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.counting import MarginalRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.schema import build_schema

NAME = "federated-scores"
SCORES = (
    "mean_distance",
    "worst_distance",
    "accuracy",
    "balanced_accuracy",
    "auroc",
    "missing",
)
_COLUMNS, _LABELS = 0.75, 0.25
"""Shares of a row's squared norm: one label table tells more than one column of many."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Where a record's row has its weights.

    A record touches one cell of each column's table and of the label table, in the block of all
    records and, with ``owners``, in that of its owner: as many cells and the same weights whatever
    the record, of norm 1. A block of all records beside those of the owners costs half of the
    squared norm; the sum of the owners' blocks would carry the noise of all of them.
    """

    layout: Layout
    owners: int

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Of the code columns: the owner, the layout's columns, the label table."""
        labels = self.layout.labels
        own = (max(1, self.owners), *self.layout.sizes)
        return own if labels is None else (*own, labels.cells)

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """Of the tables of one block."""
        columns = len(self.layout.sizes)
        labels = self.layout.labels is not None
        share = (_COLUMNS if labels else 1.0) / columns
        shares = [share] * columns + [_LABELS] * labels
        return tuple((s / (2 if self.owners else 1)) ** 0.5 for s in shares)

    def rows(self, codes: Codes, owner: int) -> MarginalRows:
        """Rows of an owner's records with these codes [n, d(+1)]."""
        full = np.column_stack([np.full(len(codes), owner), codes])
        tables = range(1, len(self.sizes))
        cliques: list[tuple[int, ...]] = [(j,) for j in tables]
        weights = self.weights
        if self.owners:
            cliques += [(0, j) for j in tables]
            weights = weights * 2
        return MarginalRows(full, self.sizes, cliques, weights)

    @property
    def dim(self) -> int:
        return sum(self.sizes[1:]) * (1 + self.owners)

    def split(self, total: Floats, scale: float) -> tuple[Counts, list[Counts]]:
        """Released rows as the counts of all records and of each owner's.

        Args:
            scale: standard deviation of the noise in every coordinate.
        """
        cells = sum(self.sizes[1:])
        common = self._counts([t[0] for t in self._tables(total[:cells], 1)], scale)
        if not self.owners:
            return common, []
        tables = self._tables(total[cells:], self.owners)
        return common, [self._counts([t[k] for t in tables], scale) for k in range(self.owners)]

    def _tables(self, part: Floats, owners: int) -> list[Floats]:
        stops = np.cumsum([owners * size for size in self.sizes[1:]])[:-1]
        return [
            table.reshape(owners, -1) / weight
            for table, weight in zip(np.split(part, stops), self.weights, strict=True)
        ]

    def _counts(self, tables: list[Floats], scale: float) -> Counts:
        columns, table = len(self.layout.sizes), self.layout.labels
        labels = tables[columns].reshape(-1, table.outcomes) if table is not None else None
        label_sigma = scale / self.weights[-1] if table is not None else 0.0
        return Counts(tuple(tables[:columns]), labels, scale / self.weights[0], label_sigma)


def client_scores(layout: Layout) -> tuple[str, ...]:
    """The scores that a client's row holds."""
    labels = layout.labels
    absent = set()
    if labels is None:
        absent |= {"accuracy", "balanced_accuracy", "auroc"}
    elif not labels.ordered:
        absent.add("auroc")
    if not layout.gaps:
        absent.add("missing")
    return tuple(score for score in SCORES if score not in absent)


def client_row(codes: Codes, layout: Layout, cap: int | None) -> Floats:
    """A client's row: weight * (1, c, c^2) for each of its scores, c the score less one half.

    A score that it has not (one class alone, no records) gives zeros. Less one half, because the
    squared norm is then at most 1 + 1/4 + 1/16 a score instead of 3.
    """
    table = layout.labels
    columns = tuple(
        np.bincount(column, minlength=size).astype(np.float64)
        for column, size in zip(codes.T, layout.sizes, strict=False)
    )
    labels = None
    if table is not None:
        labels = np.bincount(codes[:, -1], minlength=table.cells).reshape(-1, table.outcomes)
    own = estimate(
        Counts(columns, None if labels is None else labels.astype(np.float64), 0.0, 0.0), layout, ""
    ).scores
    weight = 1.0 if cap is None else min(len(codes), cap) / cap
    row = np.zeros((len(client_scores(layout)), 3))
    for triple, name in zip(row, client_scores(layout), strict=True):
        figure = getattr(own, name)
        if figure is not None:
            triple[:] = weight * np.power(figure.value - 0.5, [0, 1, 2])
    return row.ravel()


def client_norm(layout: Layout) -> float:
    """The largest norm that a client's row can have."""
    return float(np.sqrt(len(client_scores(layout)) * (1 + 1 / 4 + 1 / 16)))


class ScoreTask:
    """Counts of cells that records fall in (record level), or scores of a client (client level)."""

    name = NAME

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        scorer, settings = _scorer(clients[0], request), request.settings
        owners: Any = settings["owners"]
        blocks = Blocks(scorer.layout, len(owners))
        places = {name: k for k, name in enumerate(owners)}
        cap: Any = settings["cap"]
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            codes = scorer.codes(client.data.take(sample))
            if not request.terms.protects.per_record:
                yield index, DenseRows(client_row(codes, scorer.layout, cap)[None])
            elif owners and client.name not in places:
                raise FederationError(f"{client.name}: the server's list of owners lacks this one")
            else:
                yield index, blocks.rows(codes, places.get(client.name, 0))


def _scorer(client: View, request: Request) -> Scorer:
    settings: Mapping[str, Any] = request.settings
    schema = client.board.read("schema", build_schema)
    made = from_arrays(request.arrays, schema)
    return scorer_of(Recipe(schema, made, settings["bins"], settings["seed"]))


TASK = register(ScoreTask())
