"""Tables under a schema: into plain arrays and back, with whatever lies outside handled by rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.persons import number, persons_of
from fedsynth.errors import DataError
from fedsynth.schema import Schema
from fedsynth.schema.cells import Cells, read_cells, violations
from fedsynth.schema.columns import Boolean, Categorical, Discrete, Identifier
from fedsynth.schema.completing import complete
from fedsynth.schema.differences import fold_name
from fedsynth.schema.frames import demand_frame
from fedsynth.schema.persons import count_varying
from fedsynth.schema.rounding import round_to_grid
from fedsynth.schema.spelling import draw_identifiers, spell

Array = NDArray[np.float64] | NDArray[np.int64]


@dataclass(frozen=True)
class Conformed:
    """The n rows of a table that its schema can hold, as arrays of values that it allows.

    `columns`: for each modelled column, in order, float64 [n] within its bounds and on its grid, or
    int64 [n] codes into its categories; NaN and -1 mean missing and occur only where declared.
    `outside`: how many cells of each column broke a rule, in all rows of the table; `left_out`: how
    many rows are not among the n for it. These are exact counts of private rows: for the owner's
    eyes, never to be sent.

    `persons`: int64 [n], whose each row is: numbers from 0 in the order of first appearance, this
    table's own. None where the schema names no person, or the table lacks that column.
    """

    columns: dict[str, Array]
    outside: dict[str, int]
    rows: int
    left_out: int = 0
    persons: NDArray[np.int64] | None = None

    @property
    def shares_outside(self) -> dict[str, float]:
        """Shares of each column's cells that broke a rule, of the columns where any did."""
        found = self.rows + self.left_out
        return {name: count / found for name, count in self.outside.items() if count}

    def count_varying(self, schema: Schema) -> dict[str, int]:
        """How many persons have several values in a column that is `of: person`, by its name, where
        any has; for the owner's eyes."""
        if self.persons is None:
            return {}
        counts = {
            name: count_varying(self.persons, self.columns[name]) for name in schema.of_person
        }
        return {name: count for name, count in counts.items() if count}

    def take(self, rows: NDArray[np.int64]) -> Conformed:
        """The rows at these positions, in that order; what broke a rule is of the whole table, and
        a person keeps its number."""
        columns = {name: values[rows] for name, values in self.columns.items()}
        persons = None if self.persons is None else self.persons[rows]
        return Conformed(columns, self.outside, len(rows), self.left_out, persons)


def conform(frame: pd.DataFrame, schema: Schema, where: str = "table") -> Conformed:
    """Turn a frame into arrays of the schema's shape.

    Identifiers are dropped, and columns that follow from others; of the person's identifier only
    which rows have the same is kept.

    A number outside its bounds is clamped, one between two of its column's values (a fraction of an
    integer, a price between two steps) rounded to the nearer. An undeclared
    category becomes `other`; without one, and for anything unreadable, the cell becomes missing if
    it may be, else its row is left out: it becomes no other value. Each is counted. Whether a row
    stays hangs on its own cells alone, so a record more or less is still one row more or less.

    Args:
        frame: any mixture of dtypes; text is parsed.
        schema: what the parties agreed on.
        where: how to call the table in messages, a file or a client's name.

    Raises:
        DataError: if the table is empty, its columns are not the schema's, or a row is nobody's.
    """
    frame = demand_columns(frame, schema, where)
    if frame.empty:
        raise DataError(f"{where}: has no rows")
    persons = persons_of(frame, schema, where)
    columns: dict[str, Array] = {}
    outside: dict[str, int] = {}
    kept = np.ones(len(frame), dtype=bool)
    for column in schema.modelled:
        cells = read_cells(frame[column.name], column, schema.missing_values)
        broken = violations(cells, column)
        outside[column.name] = sum(int(mask.sum()) for mask in broken.values())
        if isinstance(column, Categorical | Boolean):
            codes = _conform_codes(cells, column)
            columns[column.name], absent = codes, codes < 0
        else:
            numbers = round_to_grid(cells.values.astype(np.float64), column)
            columns[column.name], absent = numbers, np.isnan(numbers)
        if not column.missing:
            kept &= ~absent
    rows = int(kept.sum())
    if rows < len(frame):
        columns = {name: values[kept] for name, values in columns.items()}
        if persons is not None:
            persons = number(persons[kept])
    return Conformed(columns, outside, rows, len(frame) - rows, persons)


def conform_all(frame: pd.DataFrame, schema: Schema, where: str) -> Conformed:
    """As `conform`, of a table whose every row is to be answered, whoever's it is.

    Raises:
        DataError: `conform` does, or would leave rows out.
    """
    conformed = conform(frame, schema.model_copy(update={"person": None}), where)
    if conformed.left_out:
        raise DataError(
            f"{where}: {conformed.left_out} of {len(frame)} rows have cells outside the schema "
            f"that may be neither `other` nor missing (columns with such cells: "
            f"{_join_names(list(conformed.shares_outside))}). Mend these rows or leave them out"
        )
    return conformed


def demand_columns(
    table: object, schema: Schema, where: str, *, whole: bool = False
) -> pd.DataFrame:
    """The table, of any library, as a frame of the schema's columns, each once, and no others.

    Identifiers may be absent, what a sum tells (:func:`~fedsynth.schema.completing.complete`) and,
    unless it is to be `whole`, columns that follow from others.

    Raises:
        DataError: it is no table, or has other columns.
    """
    frame = demand_frame(table, where)
    declared = [column.name for column in schema.columns]
    needed = [column.name for column in (schema.observed if whole else schema.modelled)]
    frame = complete(frame, schema, needed)
    names = list(frame.columns)
    absent = [name for name in needed if name not in names]
    if absent:
        raise DataError(
            f"{where}: lacks columns of the schema: {_join_names(absent)}. "
            f"It has {_join_names(names)}{_hint(absent, names)}"
        )
    extra = [name for name in names if name not in declared]
    if extra:
        raise DataError(
            f"{where}: has columns that the schema does not declare: {_join_names(extra)}. "
            f"Drop them, or add them to the schema"
        )
    return frame


def restore(
    columns: Mapping[str, NDArray[np.generic]],
    schema: Schema,
    rng: np.random.Generator,
    persons: NDArray[np.int64] | None = None,
) -> pd.DataFrame:
    """Turn arrays such as `Conformed.columns` into a frame: the inverse of `conform`.

    Columns, order, dtypes and spelling are the schema's. Columns that follow from others (`equal`,
    `sum`) are made of these. Identifiers are made anew, each once, in
    an order drawn from `rng`, so that they say nothing about where a row stands.

    Args:
        persons: whose each row is [n], numbers from 0 without gaps: rows of one have the same new
            key in the schema's `person`. By default each is somebody's own.

    Raises:
        DataError: if an array is absent, of another length, or holds a value not allowed.
    """
    absent = [column.name for column in schema.modelled if column.name not in columns]
    if absent:
        raise DataError(f"arrays lack columns of the schema: {_join_names(absent)}")
    lengths = {len(columns[column.name]) for column in schema.modelled}
    if len(lengths) > 1:
        raise DataError(f"arrays differ in length: {sorted(lengths)}")
    rows, columns = lengths.pop(), schema.derive(columns)
    series = {}
    for column in schema.columns:
        if not isinstance(column, Identifier):
            series[column.name] = spell(columns[column.name], column)
        elif persons is None or column.name != schema.person:
            series[column.name] = draw_identifiers(column, rows, rng)
        else:
            keys = draw_identifiers(column, int(persons.max(initial=-1)) + 1, rng)
            series[column.name] = keys.take(persons).reset_index(drop=True)
    return pd.DataFrame(series, columns=[column.name for column in schema.columns])


def _conform_codes(cells: Cells, column: Discrete) -> NDArray[np.int64]:
    """Codes [n], -1 also where a cell fits nowhere."""
    other = column.other_code if isinstance(column, Categorical) else None
    rest = -1 if other is None else other
    missing = -1 if column.missing else rest
    codes = np.where(cells.missing, missing, cells.values).astype(np.int64)
    return np.where(cells.unreadable, rest, codes)


def _hint(absent: list[str], names: list[str]) -> str:
    """Which columns may be those that are absent."""
    folded = {fold_name(name) for name in absent}
    near = [name for name in names if fold_name(name) in folded]
    return f". Rename what may be one of them: {_join_names(near)}" if near else ""


def _join_names(names: list[str]) -> str:
    shown = ", ".join(repr(str(name)) for name in names[:10])
    return shown if len(names) <= 10 else f"{shown} and {len(names) - 10} more"
