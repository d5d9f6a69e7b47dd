"""A column that another one settles, by a table of values that everybody may know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, Field

from fedsynth.agreed import Agreed, plain, suggestion
from fedsynth.errors import SchemaError
from fedsynth.schema.cells import Cells, read_cells, violations
from fedsynth.schema.columns import Boolean, Categorical, Identifier, Modelled, text_of
from fedsynth.schema.rounding import round_to_grid

Columns = Mapping[str, Modelled | Identifier]
Arrays = Mapping[str, NDArray[Any]]


def _spell_keys(value: object) -> object:
    if not isinstance(value, Mapping):
        return value
    return {text_of(plain(key)): plain(entry) for key, entry in value.items()}


class Table(Agreed):
    """Which value of a column goes with each value of another."""

    source: Annotated[str, Field(description="the name of a column")]
    column: Annotated[str, Field(description="the name of a column")]
    values: Annotated[
        dict[str, Any],
        BeforeValidator(_spell_keys),
        Field(min_length=1, description="by value of the source, the value of the column"),
    ]

    @classmethod
    def whereabouts(cls, values: Mapping[str, Any]) -> str:
        return "determines"


class Determines(Agreed):
    """A column of categories whose value settles another column's, gaps included: that one follows.

    ``determines``: source, column, and by value of the source the value of the column, such as
    ``{source: education, column: years, values: {Bachelors: 13, Masters: 14}}``.
    """

    determines: Annotated[
        Table, Field(description="{source: a column, column: a column, values: {value: value}}")
    ]

    @property
    def source(self) -> str:
        """The column that settles the other."""
        return self.determines.source

    @property
    def column(self) -> str:
        """The column that follows."""
        return self.determines.column

    def names(self) -> tuple[str, ...]:
        """The columns that it is about, the one that follows last."""
        return (self.source, self.column)

    def rename(self, names: Mapping[str, str]) -> Determines:
        """The same of columns that are called otherwise."""
        source, column = (names.get(name, name) for name in self.names())
        return Determines(
            determines=Table(source=source, column=column, values=self.determines.values)
        )

    def words(self) -> str:
        """What the columns are to be, for reports."""
        return f"{self.source} settles {self.column}"

    def demand(self, columns: Columns) -> None:
        """Raises SchemaError where the table does not fit the columns."""
        source, column = (columns[name] for name in self.names())
        if self.source == self.column:
            raise SchemaError("names a column twice")
        if not isinstance(source, Categorical | Boolean):
            raise SchemaError(f"what settles another is a category, and {source.name!r} is none")
        assert not isinstance(column, Identifier)
        if source.missing != column.missing:
            raise SchemaError(
                f"{column.name!r} is a gap where {source.name!r} is: declare `missing` alike"
            )
        codes = self._codes(source)
        for key, code in zip(self.determines.values, codes.tolist(), strict=True):
            if code < 0:
                known = [text_of(value) for value in source.categories]
                raise SchemaError(f"{source.name!r} has no value {key!r}{suggestion(key, known)}")
        counts = np.bincount(codes, minlength=len(source.categories))
        if (counts != 1).any():
            wrong = source.categories[int(np.flatnonzero(counts != 1)[0])]
            raise SchemaError(
                f"give one value of {column.name!r} for each value of {source.name!r}: "
                f"{text_of(wrong)!r} has {int(counts[counts != 1][0])}"
            )
        cells = self._cells(column)
        wrong_cells = cells.missing | cells.unreadable
        for mask in violations(cells, column).values():
            wrong_cells = wrong_cells | mask
        if wrong_cells.any():
            given = list(self.determines.values.values())[int(np.flatnonzero(wrong_cells)[0])]
            raise SchemaError(f"{given!r} is no value of {column.name!r}")

    def table(self, columns: Columns) -> NDArray[Any]:
        """Conformed values of the column by code of the source, [categories]."""
        source, column = (columns[name] for name in self.names())
        assert isinstance(source, Categorical | Boolean) and not isinstance(column, Identifier)
        values: NDArray[Any] = self._cells(column).values
        if not isinstance(column, Categorical | Boolean):
            values = round_to_grid(np.asarray(values, np.float64), column)
        by_code: NDArray[Any] = np.empty_like(values)
        by_code[self._codes(source)] = values
        return by_code

    def broken(self, arrays: Arrays, columns: Columns) -> NDArray[np.bool_]:
        """Which rows [n] of conformed columns break it."""
        wanted, found = follow(arrays[self.source], self.table(columns)), arrays[self.column]
        same = np.isclose(wanted, found, rtol=1e-9, atol=1e-9, equal_nan=True)
        return np.asarray(~same)

    def _codes(self, source: Categorical | Boolean) -> NDArray[np.int64]:
        import pandas as pd

        keys = pd.Series(list(self.determines.values), dtype=object)
        return np.asarray(read_cells(keys, source, ()).values, np.int64)

    def _cells(self, column: Modelled) -> Cells:
        import pandas as pd

        values = pd.Series(list(self.determines.values.values()), dtype=object)
        return read_cells(values, column, ())


def follow(codes: NDArray[Any], table: NDArray[Any]) -> NDArray[Any]:
    """Values [n] by the codes [n] of what settles them; gaps where these are."""
    gap = -1 if table.dtype.kind == "i" else np.nan
    place = np.maximum(np.asarray(codes, np.int64), 0)
    return np.asarray(np.where(codes < 0, gap, table[place]))
