"""Tables as evaluation reads them: as found, or what their schema makes of them.

Synthetic rows are judged as found: numbers are not clamped, and what breaks a rule is counted. What
a schema cannot say no synthetic table can hold, so real rows are taken as owners' rows are learned
from, and how much that changes is told beside.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import demand_columns
from fedsynth.data.persons import number, persons_of, shuffle_people
from fedsynth.errors import DataError
from fedsynth.schema import Boolean, Categorical, Continuous, Schema
from fedsynth.schema.cells import read_cells, violations
from fedsynth.schema.columns import Discrete
from fedsynth.schema.rounding import round_to_grid

_FAR = 1e6
"""Numbers are kept up to so many declared ranges outside their own, so that sums stay finite."""


@dataclass(frozen=True, eq=False)
class Rows:
    """A table's n > 0 rows over a schema's d modelled columns.

    Attributes:
        schema: what each column is.
        values: float64 [n, d], in the order of `schema.observed`. Numbers rounded to the schema's
            decimals, also outside their bounds (dates in units since the column's lower bound);
            codes of categories from 0. A value that the schema does not list is its column's
            `other`; without one, all such share the code behind the last one. NaN is a gap, or a
            number that cannot be read.
        outside: of each column, bool [n]: the cell breaks a rule of the schema.
        persons: int64 [n], whose each row is; None where nobody says.
    """

    schema: Schema
    values: NDArray[np.float64]
    outside: NDArray[np.bool_]
    persons: NDArray[np.int64] | None = None

    def __len__(self) -> int:
        return len(self.values)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.schema.observed)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Codes of each column [d], the one for undeclared values included; 0 for numbers."""
        return tuple(
            len(column.categories) + 1 if isinstance(column, Categorical | Boolean) else 0
            for column in self.schema.observed
        )

    def take(self, positions: NDArray[np.int64] | NDArray[np.bool_]) -> Rows:
        """The rows at these positions."""
        persons = None if self.persons is None else self.persons[positions]
        return Rows(self.schema, self.values[positions], self.outside[positions], persons)

    @property
    def people(self) -> NDArray[np.int64]:
        """Whose each row is, numbers from 0 [n]; each somebody's own where nobody says."""
        return np.arange(len(self)) if self.persons is None else number(self.persons)

    def one_each(self, seed: int) -> Rows:
        """A random row of each person, in order; all rows where persons are not told apart."""
        if self.persons is None:
            return self
        order = np.random.default_rng(seed).permutation(len(self))
        return self.take(np.sort(order[np.unique(self.persons[order], return_index=True)[1]]))

    def sample_people(self, most: int, seed: int) -> Rows:
        """As `sample`, but all rows of a person or none."""
        if self.persons is None or len(self) <= most:
            return self.sample(most, seed)
        places, ranks = shuffle_people(self.people, np.random.default_rng(seed))
        # Up to the last person whose rows fit.
        fitting = int(np.searchsorted(ranks, ranks[most])) or int((ranks == 0).sum())
        return self.take(np.sort(places[:fitting]))

    def sample(self, most: int, seed: int) -> Rows:
        """At most `most` rows at random, each once; all of them, in order, if they are few."""
        if len(self) <= most:
            return self
        drawn = np.random.default_rng(seed).choice(len(self), most, replace=False)
        return self.take(np.sort(drawn))


def read_rows(frame: pd.DataFrame, schema: Schema, where: str) -> Rows:
    """A frame's rows; `where` names the frame in errors.

    Raises:
        DataError: the frame is empty, its columns are not the schema's, or a row is nobody's.
    """
    frame = demand_columns(frame, schema, where, whole=True)
    if frame.empty:
        raise DataError(f"{where}: has no rows")
    values = np.empty((len(frame), len(schema.observed)))
    outside = np.zeros(values.shape, dtype=bool)
    for j, column in enumerate(schema.observed):
        cells = read_cells(frame[column.name], column, schema.missing_values)
        for broken in violations(cells, column).values():
            outside[:, j] |= broken
        if isinstance(column, Categorical | Boolean):
            known = np.where(cells.unreadable, _undeclared_code(column), cells.values)
            values[:, j] = np.where(cells.missing, np.nan, known)
        else:
            span = max(column.high - column.low, 1.0) * _FAR
            values[:, j] = np.clip(cells.values, column.low - span, column.high + span)
            if isinstance(column, Continuous):
                # To the precision that was agreed on, or finer real numbers equal no synthetic one.
                values[:, j] = np.round(values[:, j], column.decimals) + 0.0
    return Rows(schema, values, outside, persons_of(frame, schema, where))


def _undeclared_code(column: Discrete) -> int:
    other = column.other_code if isinstance(column, Categorical) else None
    return len(column.categories) if other is None else other


def conform_rows(rows: Rows) -> Rows:
    """What the schema makes of rows, as `conform` of a frame: nothing is outside.

    Rows with a cell that fits nowhere are left out; there may be none left.
    """
    values, kept = rows.values.copy(), np.ones(len(rows), dtype=bool)
    for j, column in enumerate(rows.schema.observed):
        cells = values[:, j]
        if isinstance(column, Categorical | Boolean):
            cells[cells == len(column.categories)] = np.nan
            other = column.other_code if isinstance(column, Categorical) else None
            if other is not None and not column.missing:
                cells[np.isnan(cells)] = other
        else:
            cells[:] = round_to_grid(cells, column)
        if not column.missing:
            kept &= ~np.isnan(cells)
    inside = np.zeros((int(kept.sum()), values.shape[1]), bool)
    return Rows(
        rows.schema, values[kept], inside, None if rows.persons is None else rows.persons[kept]
    )


def read_real_rows(frame: pd.DataFrame, schema: Schema, where: str) -> Rows:
    """A frame's rows as its schema can hold them.

    Raises:
        DataError: `read_rows` does, or none fits.
    """
    return demand_fitting(conform_rows(read_rows(frame, schema, where)), where)


def demand_fitting(rows: Rows, where: str) -> Rows:
    """The rows; DataError where conforming left none."""
    if not len(rows):
        raise DataError(
            f"{where}: every row has a cell outside the schema that may be neither `other` nor "
            "missing; `fedsynth schema check` shows which"
        )
    return rows


def shuffle_columns(rows: Rows, seed: int) -> Rows:
    """The rows with every column shuffled on its own: columns as they were, relations gone."""
    rng = np.random.default_rng(seed)
    order = rng.permuted(np.tile(np.arange(len(rows)), (rows.values.shape[1], 1)), axis=1).T
    return Rows(
        rows.schema,
        np.take_along_axis(rows.values, order, axis=0),
        np.take_along_axis(rows.outside, order, axis=0),
    )
