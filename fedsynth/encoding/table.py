"""A table as a matrix of category codes and back, with bins learned from one noisy histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.tables import Conformed, restore
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.drawing import Draws, Fixed, order, restrict
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.histogram import HistogramLayout, column_layout, grid_of
from fedsynth.encoding.learning import (
    conditions_of,
    group_rare,
    learn_column,
    public_bins,
    split_at_conditions,
)
from fedsynth.encoding.tree import gather, make_consistent, shared_total
from fedsynth.errors import DataError, ReleaseError, SchemaError
from fedsynth.schema import Boolean, Categorical, Modelled, Schema
from fedsynth.schema.conditions import Condition

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """Codes of a table's d modelled columns.

    bins: per column of numbers its bins; of categories, groups of them, or None where each has a
    code of its own. frequencies: per column a float64 array [sizes[j]], nonnegative with sum 1,
    whose last entry is "missing" where the column may be. records: estimated number of records, at
    least 1 (1 when no question was asked).
    """

    schema: Schema
    bins: tuple[Bins | Groups | None, ...]
    frequencies: tuple[Array, ...]
    records: float

    def __post_init__(self) -> None:
        columns = self.schema.modelled
        if not len(columns) == len(self.bins) == len(self.frequencies):
            raise ReleaseError(f"encoding: the schema has {len(columns)} columns, the encoding not")
        if not (np.isfinite(self.records) and self.records >= 1):
            raise ReleaseError("encoding: records must be a number of at least 1")
        for column, bins, frequency in zip(columns, self.bins, self.frequencies, strict=True):
            size = _size(column, bins, column.name == self.schema.target)
            if frequency.shape != (size,):
                raise ReleaseError(
                    f"encoding: column {column.name!r} needs {size} frequencies, "
                    f"got shape {frequency.shape}"
                )
            if not ((frequency >= 0).all() and abs(frequency.sum() - 1) < 1e-6):
                raise ReleaseError(
                    f"encoding: frequencies of column {column.name!r} must be nonnegative, sum 1"
                )

    @classmethod
    def from_histogram(
        cls, schema: Schema, noisy: Array, sigma: float, bins: int = 24, rare: float = 3.0
    ) -> TableEncoding:
        """Bins, densities and frequencies from the noisy histogram of `HistogramLayout.of(schema)`.

        noisy: float64 [dim], each count with independent noise of standard deviation `sigma` >= 0.
        bins: bins wanted for a numeric column. rare: categories with fewer records than so many
        standard deviations share a code, unless the column is the target. No code stands for values
        on both sides of a constraint's condition. A pure function of its arguments. Raises
        DataError for a histogram of another shape or with values that are not finite.
        """
        layout = HistogramLayout.of(schema)
        noisy = np.asarray(noisy, np.float64)
        if noisy.shape != (layout.dim,) or not np.isfinite(noisy).all():
            raise DataError(
                f"histogram of shape {noisy.shape}: the schema needs {layout.dim} finite counts; "
                "use the same schema for asking and for encoding"
            )
        if not (np.isfinite(sigma) and sigma >= 0 and bins >= 1 and 0 <= rare < np.inf):
            raise DataError(
                "histogram: sigma and rare must be numbers of at least 0, bins at least 1"
            )
        slices = layout.slices
        trees = [gather(*column.split(noisy[slices[column.name]])) for column in layout.columns]
        total = max(1.0, shared_total(trees))
        columns: list[tuple[Bins | Groups | None, Array]] = []
        for column, own, tree in zip(schema.modelled, layout.columns, trees, strict=True):
            choices, frequencies = learn_column(
                own, make_consistent(tree, total), total, sigma, bins
            )
            conditions = conditions_of(schema, column.name)
            if choices is not None:
                columns.append(split_at_conditions(choices, frequencies, conditions))
            elif isinstance(column, Categorical) and column.name != schema.target:
                values, least = len(column.categories), rare * sigma / total
                columns.append(group_rare(values, frequencies, least, conditions))
            else:
                columns.append((None, frequencies))
        return cls(schema, tuple(b for b, _ in columns), tuple(f for _, f in columns), total)

    @classmethod
    def from_edges(cls, schema: Schema) -> TableEncoding:
        """Bins from public edges alone, with uniform frequencies: nothing is asked of anybody.

        Raises SchemaError naming a numeric column without declared edges.
        """
        bins: list[Bins | None] = []
        frequencies = []
        for column in schema.modelled:
            layout = column_layout(column)
            if layout.grid is not None and not layout.fixed:
                raise SchemaError(
                    f"column {column.name!r} has no public edges; declare `edges`, "
                    "or learn the bins from a histogram"
                )
            column_bins, shares = None, np.ones(layout.levels[0])
            if layout.grid is not None:
                column_bins, shares = public_bins(layout)
                column_bins, _ = split_at_conditions(
                    column_bins, shares, conditions_of(schema, column.name)
                )
                shares = np.ones(column_bins.size)
            bins.append(column_bins)
            size = len(shares) + column.missing
            frequencies.append(np.full(size, 1.0 / size))
        return cls(schema, tuple(bins), tuple(frequencies), 1.0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes per column; where a column may be missing, the last code says so."""
        return tuple(len(frequency) for frequency in self.frequencies)

    def encode(self, conformed: Conformed) -> NDArray[np.int32]:
        """Codes [n, d] of a conformed table."""
        codes = np.empty((conformed.rows, len(self.bins)), np.int32)
        for index, (column, bins) in enumerate(zip(self.schema.modelled, self.bins, strict=True)):
            values = conformed.columns[column.name]
            absent = np.isnan(values) if isinstance(bins, Bins) else values < 0
            if isinstance(bins, Bins):
                values = bins.encode(np.where(absent, bins.grid.lower, values))
            elif bins is not None:
                values = bins.encode(np.where(absent, 0, values).astype(np.int64))
            codes[:, index] = np.where(absent, self.sizes[index] - 1, values)
        return codes

    def decode(
        self,
        codes: NDArray[np.integer[Any]],
        rng: np.random.Generator,
        conditions: Mapping[str, Condition] | None = None,
        persons: NDArray[np.int64] | None = None,
    ) -> pd.DataFrame:
        """A table of the schema's columns from codes [n, d]; numbers are drawn within their bins.

        conditions: by column, what the drawn cells are to meet, where their code can. The schema's
        `ordered` constraints are met in every row, if need be by values beyond the codes. persons:
        whose each row is, [n], numbers from 0 without gaps; what is `of: person`, in whose codes a
        person's rows agree, has one value in all of them.
        Raises DataError for codes that are none, ConfigError where conditions leave none in order.
        """
        codes = np.asarray(codes)
        draws = self._draws(codes, conditions or {})
        if persons is not None:
            whole = self._draws(self._widest(codes, persons), conditions or {})
            alone = self._in_order(whole, rng)
            of = {name: alone[name][persons] for name in self.schema.of_person}
            draws |= {name: Fixed.at(values, draws[name]) for name, values in of.items()}
        return restore(self._in_order(draws, rng), self.schema, rng, persons)

    def _widest(
        self, codes: NDArray[np.integer[Any]], persons: NDArray[np.int64]
    ) -> NDArray[np.integer[Any]]:
        """A row of each person [persons, d], with a gap only where all its rows have one: a value
        that is in order beside all others that are known leaves some to every row."""
        rows = codes[np.unique(persons, return_index=True)[1]]
        for index, size in enumerate(self._present):
            known = np.flatnonzero(codes[:, index] < size)
            own, first = np.unique(persons[known], return_index=True)
            rows[own, index] = codes[known[first], index]
        return rows

    def _in_order(
        self, draws: Mapping[str, Draws], rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Values of all rows that meet the `ordered` constraints."""
        rows = np.arange(len(next(iter(draws.values())).codes))
        columns = {name: own.values(rows, rng) for name, own in draws.items()}
        order(columns, self.schema, draws, rng)
        return columns

    def columns(
        self, codes: NDArray[np.integer[Any]], rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """Arrays such as `Conformed.columns` of codes [n, d]: numbers are drawn within their bins.

        Constraints of the schema are not looked at. Raises DataError for codes that are none.
        """
        rows = np.arange(len(codes))
        draws = self._draws(np.asarray(codes), {})
        return {name: own.values(rows, rng) for name, own in draws.items()}

    def _draws(
        self, codes: NDArray[np.integer[Any]], conditions: Mapping[str, Condition]
    ) -> dict[str, Draws]:
        if codes.ndim != 2 or codes.shape[1] != len(self.bins):
            raise DataError(f"codes of shape {codes.shape}: expected [rows, {len(self.bins)}]")
        if len(codes) and ((codes < 0).any() or (codes >= np.array(self.sizes)).any()):
            raise DataError("codes: each must be at least 0 and below its column's size")
        return {
            column.name: Draws.of(choices, own.astype(np.int64), size, conditions.get(column.name))
            for column, choices, own, size in zip(
                self.schema.modelled, self.bins, codes.T, self._present, strict=True
            )
        }

    def likelihood(self, name: str, condition: Condition) -> Array:
        """The share [sizes[j]] of each code of a column that meets a condition on it.

        It is positive for some code, even where the noisy counts show no such value at all. Raises
        DataError where the schema has no such modelled column.
        """
        index = self._index(name)
        choices, shares = self.bins[index], np.zeros(self.sizes[index])
        if choices is None:
            shares[list(condition.codes)] = 1.0
        else:
            shares[: choices.size] = restrict(choices, condition)[1]
        if self.schema.modelled[index].missing:
            shares[-1] = float(condition.missing)
        return shares

    def labels(self, name: str) -> list[str]:
        """What each code of a column stands for, for reports."""
        index = self._index(name)
        column, choices = self.schema.modelled[index], self.bins[index]
        if isinstance(choices, Bins):
            known = choices.labels()
        else:
            assert isinstance(column, Categorical | Boolean)
            known = [str(value) for value in column.categories]
            known = known if choices is None else choices.labels(known)
        return known + ["missing"] * column.missing

    @property
    def _present(self) -> tuple[int, ...]:
        """Number of codes per column that are not "missing"."""
        columns = self.schema.modelled
        return tuple(
            size - column.missing for size, column in zip(self.sizes, columns, strict=True)
        )

    def _index(self, name: str) -> int:
        for index, column in enumerate(self.schema.modelled):
            if column.name == name:
                return index
        raise DataError(f"column {name!r} is not among the modelled columns of the schema")

    def to_dict(self) -> dict[str, Any]:
        """A document that JSON keeps exactly: the schema and noisy estimates, nothing else."""
        return {
            "schema": self.schema.to_dict(),
            "records": self.records,
            "columns": [
                {"bins": bins.to_dict() if bins else None, "frequencies": frequency.tolist()}
                for bins, frequency in zip(self.bins, self.frequencies, strict=True)
            ],
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> TableEncoding:
        """Inverse of `to_dict`; raises ReleaseError where the document is damaged."""
        try:
            schema = Schema.from_dict(document["schema"])
            parts = document["columns"]
            frequencies = tuple(np.array(part["frequencies"], np.float64) for part in parts)
            bins = tuple(
                (None if part["bins"] is None else Groups.from_dict(part["bins"]))
                if isinstance(column, Categorical | Boolean)
                else Bins.from_dict(part["bins"], grid_of(column))
                for part, column in zip(parts, schema.modelled, strict=True)
            )
            records = float(document["records"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ReleaseError("encoding: the document is damaged; write it again") from error
        return cls(schema, bins, frequencies, records)


def _size(column: Modelled, choices: Bins | Groups | None, is_target: bool) -> int:
    """Number of codes. Raises ReleaseError where the choices are not the column's."""
    if isinstance(column, Categorical | Boolean):
        values = len(column.categories)
        if choices is None:
            return values + column.missing
        if isinstance(choices, Groups) and len(choices.codes) == values and not is_target:
            return choices.size + column.missing
        raise ReleaseError(f"encoding: column {column.name!r} has other groups than categories")
    if not isinstance(choices, Bins):
        raise ReleaseError(f"encoding: numeric column {column.name!r} has no bins")
    return choices.size + column.missing
