"""The sufficient statistic of means and covariances, as one clipped sum.

A record with coordinates v (clipped to a public norm c) and class y contributes, with u = v / c,

- ``u u^T``, in a block of its class or in one block for all, and
- ``(h, sqrt(2 h) u)`` in the row of its class, h = :data:`COUNT`.

The squared norm is ``|u|^4 + h^2 + 2 h |u|^2 = (|u|^2 + h)^2``, so a record moves the sum by at
most 1 + h. The square ``u u^T`` is released whole: the mean of two mirrored cells carries the same
noise as one cell of the triangle at weight sqrt(2) would, which has the same norm.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.request import Plain
from fedsynth.methods.inference.coordinates import Coordinates
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.rows.clipping import Norm
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.terms import Terms
from fedsynth.queries.terms import terms_for_everyone
from fedsynth.schema import Schema
from fedsynth.schema.target import conditions

Floats = NDArray[np.float64]

COUNT = 0.5
"""Weight of the count: more would cost the second moments precision, less the count."""


@dataclass(frozen=True)
class Statistic:
    """What one record adds, and how sums of it are read.

    Attributes:
        coordinates: of all columns but the target, where the target has classes.
        classes: of the target; 0 where there is nothing to tell apart.
        by_class: whether each class has second moments of its own.
        clip: bound on the norm of a record's coordinates.
        norm: that the clip bounds.
    """

    coordinates: Coordinates
    classes: int
    by_class: bool
    clip: float
    norm: Norm

    @classmethod
    def of(cls, schema: Schema, settings: Mapping[str, Any], norm: Norm) -> Statistic:
        """From public values alone.

        Args:
            settings: `by_class`, and `clip` as a share of the largest norm.
        """
        classes = conditions(schema)
        others = [c for c in schema.modelled if not classes or c.name != schema.target]
        coordinates = Coordinates.of(others)
        clip = float(settings["clip"]) * coordinates.largest_norm(norm)
        by_class = bool(settings["by_class"]) and classes > 0
        return cls(coordinates, classes, by_class, clip or 1.0, norm)

    @property
    def width(self) -> int:
        return self.coordinates.width

    @property
    def rows_of_sums(self) -> int:
        return max(1, self.classes)

    @property
    def blocks(self) -> int:
        """Squares of second moments."""
        return self.rows_of_sums if self.by_class else 1

    @property
    def dim(self) -> int:
        return self.blocks * self.width**2 + self.rows_of_sums * (1 + self.width)

    @property
    def bound(self) -> float:
        """The largest norm of a record's contribution."""
        return 1 + COUNT if self.norm == "l2" else 1 + COUNT + float(np.sqrt(2 * COUNT))

    def clip_norms(self, v: Floats) -> Floats:
        """Coordinates [n, width] as records count: none with a norm above the clip."""
        norms = np.linalg.norm(v, 1 if self.norm == "l1" else 2, axis=1)
        return np.asarray(v * (self.clip / np.maximum(norms, self.clip))[:, None])

    def contributions(self, v: Floats, labels: NDArray[np.int64] | None) -> FactoredRows:
        """Of records with coordinates ``v`` [n, width] and, where there are any, classes [n]."""
        u = self.clip_norms(v) / self.clip
        ones = np.ones((len(v), 1)) if labels is None else np.eye(self.rows_of_sums)[labels]
        spread = u
        if self.by_class:
            spread = (ones[:, :, None] * u[:, None, :]).reshape(len(u), -1)
        sums = np.concatenate([np.full((len(u), 1), COUNT), np.sqrt(2 * COUNT) * u], axis=1)
        return FactoredRows([(spread, u), (ones, sums)])

    def second(self, values: Floats) -> Floats:
        """``sum v v^T`` of each block, [blocks, width, width]."""
        squares = values[: self.blocks * self.width**2]
        squares = squares.reshape(self.blocks, self.width, self.width) * self.clip**2
        return np.asarray((squares + squares.transpose(0, 2, 1)) / 2)

    def first(self, values: Floats) -> tuple[Floats, Floats]:
        """Counts [rows of sums] and ``sum v`` [rows of sums, width]."""
        sums = values[self.blocks * self.width**2 :].reshape(self.rows_of_sums, 1 + self.width)
        return sums[:, 0] / COUNT, sums[:, 1:] * (self.clip / np.sqrt(2 * COUNT))

    @cached_property
    def _cells(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
        """Which released number enters which cell of :meth:`joint`, and how much.

        Row, column, weight and number of the released value, each [entries].
        """
        d, y = self.width, 1 + self.width + np.arange(self.classes)
        b, i, j = (a.ravel() for a in np.indices((self.blocks, d, d)))
        number = np.arange(len(b))
        weight = np.where(i == j, 1.0, 0.5) * self.clip**2
        apart = i != j
        entries = [(1 + i, 1 + j, weight, number)]
        entries.append((1 + j[apart], 1 + i[apart], weight[apart], number[apart]))
        start = len(b)
        for row in range(self.rows_of_sums):
            at = start + row * (1 + d)
            places = [0, *y[row : row + 1].tolist()]
            for place in places:
                for other in places:
                    entries.append(_entries([place], [other], 1 / COUNT, [at]))
                k = np.arange(d)
                scale = self.clip / np.sqrt(2 * COUNT)
                entries.append(_entries(np.full(d, place), 1 + k, scale, at + 1 + k))
                entries.append(_entries(1 + k, np.full(d, place), scale, at + 1 + k))
        rows, columns, weights, numbers = (
            np.concatenate(part) for part in zip(*entries, strict=True)
        )
        return rows, columns, weights, numbers

    @property
    def size(self) -> int:
        """Length of q = (1, v, one-hot class)."""
        return 1 + self.width + self.classes

    def joint(self, values: Floats) -> Floats:
        """``sum q q^T`` over the records, [size, size]; the count is its first cell."""
        rows, columns, weights, numbers = self._cells
        flat = np.bincount(rows * self.size + columns, weights * values[numbers], self.size**2)
        return flat.astype(np.float64).reshape(self.size, self.size)

    def noise_variances(self) -> Floats:
        """Of the cells of :meth:`joint`, where every released number has noise of variance 1."""
        rows, columns, weights, _ = self._cells
        flat = np.bincount(rows * self.size + columns, weights**2, self.size**2)
        return flat.astype(np.float64).reshape(self.size, self.size)

    def times(self, r: Floats) -> Floats:
        """The covariance of ``E r``, [size, size], where E is the noise of :meth:`joint`.

        Every released number has independent noise of variance 1.
        """
        from scipy.sparse import csr_matrix

        rows, columns, weights, numbers = self._cells
        shape = (self.size, self.dim)
        weighed = csr_matrix((weights * r[columns], (rows, numbers)), shape=shape)
        return np.asarray((weighed @ weighed.T).toarray())

    def quadratic(self, r: Floats) -> float:
        """The variance of ``r^T E r``."""
        rows, columns, weights, numbers = self._cells
        each = np.bincount(numbers, weights * r[rows] * r[columns], self.dim)
        return float(each @ each)


def _entries(
    rows: Any, columns: Any, weight: float, numbers: Any
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    number = np.asarray(numbers, np.int64)
    return (
        np.asarray(rows, np.int64),
        np.asarray(columns, np.int64),
        np.full(len(number), weight),
        number,
    )


def moments_terms(
    statistic: Statistic,
    budget: Budget,
    noise_multiplier: float,
    survivors: int,
    mechanism: str,
) -> Terms:
    """Terms of the one message, asked of everybody."""
    return terms_for_everyone(budget, statistic.bound, noise_multiplier, survivors, mechanism)


def request_settings(clip: float, by_class: bool) -> dict[str, Plain]:
    """What a client needs beside the schema and the terms."""
    return {"clip": clip, "by_class": by_class}
