"""A record as a vector of public coordinates, with the largest norm that any record can have.

Numbers are scaled to [-1, 1] by their public bounds. Categories (a gap counts as one) are points of
a simplex around 0: k of them take k - 1 coordinates and have norm sqrt(1 - 1/k), while ones at
positions would have norm 1 and a coordinate that the others determine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.privacy.rows.clipping import Norm
from fedsynth.schema.columns import Boolean, Categorical, Discrete, Modelled, Numeric

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class NumberPart:
    """Coordinates of a number: its scaled value (0 where missing), then 1 where it is missing.

    A column with one possible value has no coordinate of its value.
    """

    column: Numeric
    start: int

    @property
    def middle(self) -> float:
        return (self.column.low + self.column.high) / 2

    @property
    def half(self) -> float:
        return (self.column.high - self.column.low) / 2

    @property
    def varies(self) -> bool:
        return self.column.high > self.column.low

    @property
    def width(self) -> int:
        return int(self.varies) + int(self.column.missing)

    def encode(self, values: NDArray[Any]) -> Floats:
        gaps = np.isnan(values)
        columns = []
        if self.varies:
            columns.append(np.where(gaps, 0.0, (values - self.middle) / self.half))
        if self.column.missing:
            columns.append(gaps.astype(np.float64))
        return np.stack(columns, axis=1) if columns else np.zeros((len(values), 0))

    def largest_norm(self, norm: Norm) -> float:
        """The largest norm of the coordinates: a gap has no value."""
        return float(self.width > 0)

    def terms(self) -> list[tuple[str, Floats, float]]:
        """Name, weights of the coordinates and constant of what is read off in natural units."""
        unit = np.eye(self.width)
        name = self.column.name
        value = self.half * unit[0] if self.varies else np.zeros(self.width)
        terms = [(name, value, self.middle)]
        if self.column.missing:
            terms.append((f"{name} missing", unit[-1], 0.0))
        return terms


@dataclass(frozen=True)
class CategoryPart:
    """Coordinates of a category: row `level` of :attr:`basis`; a gap is the last level."""

    column: Discrete
    start: int

    @property
    def levels(self) -> int:
        return len(self.column.categories) + int(self.column.missing)

    @property
    def width(self) -> int:
        return self.levels - 1

    @cached_property
    def basis(self) -> Floats:
        """Helmert's contrasts, [levels, levels - 1]: orthonormal columns that sum to 0."""
        k = self.levels
        contrasts = np.zeros((k, k - 1))
        for j in range(1, k):
            contrasts[:j, j - 1] = 1 / np.sqrt(j * (j + 1))
            contrasts[j, j - 1] = -j / np.sqrt(j * (j + 1))
        return contrasts

    def encode(self, values: NDArray[Any]) -> Floats:
        codes = values.astype(np.int64)
        return np.asarray(self.basis[np.where(codes < 0, self.levels - 1, codes)])

    def largest_norm(self, norm: Norm) -> float:
        sizes = np.abs(self.basis) if norm == "l1" else self.basis**2
        most = float(sizes.sum(axis=1).max()) if self.width else 0.0
        return most if norm == "l1" else float(np.sqrt(most))

    def terms(self) -> list[tuple[str, Floats, float]]:
        """As of a number; each is the share of a level."""
        name = self.column.name
        names = [f"{name}={value}" for value in self.column.categories]
        if self.column.missing:
            names.append(f"{name} missing")
        return [(n, self.basis[j], 1 / self.levels) for j, n in enumerate(names)]


Part = NumberPart | CategoryPart


@dataclass(frozen=True)
class Coordinates:
    """The coordinates of a table's columns, one part behind the other."""

    parts: tuple[Part, ...]

    @classmethod
    def of(cls, columns: Sequence[Modelled]) -> Coordinates:
        parts: list[Part] = []
        start = 0
        for column in columns:
            part: Part = (
                CategoryPart(column, start)
                if isinstance(column, Categorical | Boolean)
                else NumberPart(column, start)
            )
            parts.append(part)
            start += part.width
        return cls(tuple(parts))

    @cached_property
    def width(self) -> int:
        return sum(part.width for part in self.parts)

    def matrix(self, columns: Mapping[str, NDArray[Any]], rows: int) -> Floats:
        """Coordinates of conformed rows, float64 [rows, width], each in [-1, 1]."""
        if not self.width:
            return np.zeros((rows, 0))
        return np.concatenate(
            [part.encode(columns[part.column.name]) for part in self.parts], axis=1
        )

    def largest_norm(self, norm: Norm) -> float:
        """The largest norm of a record's coordinates, whatever the record."""
        each = [part.largest_norm(norm) for part in self.parts]
        return float(sum(each)) if norm == "l1" else float(np.sqrt(sum(e * e for e in each)))

    def terms(self) -> tuple[list[str], Floats]:
        """What is read off in natural units: names, and weights [terms, 1 + width] of (1, v)."""
        names: list[str] = []
        rows: list[Floats] = []
        for part in self.parts:
            for name, weights, constant in part.terms():
                row = np.zeros(1 + self.width)
                row[0] = constant
                row[1 + part.start : 1 + part.start + part.width] = weights
                names.append(name)
                rows.append(row)
        return names, np.array(rows).reshape(len(rows), 1 + self.width)
