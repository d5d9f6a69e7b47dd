"""What records are scored by: the recipe of a scorer, and what it turns records into.

Synthetic rows are public, so whoever has them makes the same scorer: an owner is sent rows and
plain settings, never code. What a record is turned into depends on that record and the scorer, not
on the records beside it, to the last bit: trees add up a row at a time, and images pass the network
one by one.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import demand_columns
from fedsynth.data.images import Images, check_images, demand_rows
from fedsynth.data.persons import demand_persons
from fedsynth.errors import DataError
from fedsynth.evaluation.reading.rows import Rows, conform_rows, read_rows
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.frames import demand_frame

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]
Records = Rows | Images


@dataclass(frozen=True, eq=False)
class Recipe:
    """All that a scorer is made from; equal where schema, settings and rows are.

    Attributes:
        bins: quantile bins of a number; categories of a column that are told apart, the commonest.
        seed: of the classifier.
    """

    schema: Schema | ImageSchema
    synthetic: Records
    bins: int
    seed: int

    @cached_property
    def digest(self) -> str:
        """SHA-256 of everything."""
        found = hashlib.sha256(f"{self.schema.digest} {self.bins} {self.seed}".encode())
        for name, array in sorted(arrays_of(self.synthetic).items()):
            found.update(f"{name} {array.dtype} {array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Recipe) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)


@dataclass(frozen=True, eq=False)
class LabelTable:
    """The table of true labels by what the classifier says.

    Attributes:
        classes: true labels; the table has one line more, for records without one.
        right: bool [classes, outcomes]: an outcome that is right for a label.
        ordered: two classes, whose outcomes are bins of the score of the last one, rising.
    """

    classes: int
    right: NDArray[np.bool_]
    ordered: bool

    @property
    def outcomes(self) -> int:
        return int(self.right.shape[1])

    @property
    def cells(self) -> int:
        return (self.classes + 1) * self.outcomes


@dataclass(frozen=True, eq=False)
class Layout:
    """What is counted: each record is in one cell of every column and of the label table.

    Attributes:
        names: of the d columns.
        sizes: cells of each; a table's last two are values outside the schema, and gaps.
        gaps: whether the columns have these two.
        shares: of the synthetic rows in each column's cells.
        labels: None where nothing can be classified.
        why: why not, in a sentence; None where there are labels.
    """

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    gaps: bool
    shares: tuple[Floats, ...]
    labels: LabelTable | None
    why: str | None


@dataclass(frozen=True, eq=False)
class Scorer:
    """Turns records into cells.

    Attributes:
        cells: of records, int64 [n, d].
        outcomes: of records, int64 [n], the classifier's, None without one.
        truths: of records, their label, int64 [n]; `classes` where there is none.
    """

    layout: Layout
    cells: Callable[[Records], Codes]
    outcomes: Callable[[Records], Codes] | None
    truths: Callable[[Records], Codes]

    def codes(self, records: Records) -> Codes:
        """The cell of every record in each column and, behind them, the label table: [n, d(+1)]."""
        found = self.cells(records)
        table = self.layout.labels
        if table is None or self.outcomes is None:
            return found
        place = self.truths(records) * table.outcomes + self.outcomes(records)
        return np.column_stack([found, place])


def records_of(owned: object, schema: Schema | ImageSchema, where: str) -> Records:
    """Rows as found, none for an owner without rows.

    Raises:
        DataError: they do not fit the schema.
    """
    owned = demand_rows(owned, where)
    if isinstance(schema, Schema) != isinstance(owned, pd.DataFrame):
        raise DataError(f"{where}: the schema is of tables and the data are images, or reversed")
    if isinstance(owned, Images) or not isinstance(schema, Schema):
        assert isinstance(owned, Images) and isinstance(schema, ImageSchema)
        return check_images(owned, schema, where)
    if len(owned):
        return read_rows(owned, schema, where)
    demand_columns(owned, schema, where, whole=True)
    width = len(schema.observed)
    nobody = None if schema.person is None else np.zeros(0, np.int64)
    return Rows(schema, np.empty((0, width)), np.zeros((0, width), dtype=bool), nobody)


def owned_records_of(owned: object, schema: Schema | ImageSchema, where: str) -> Records:
    """An owner's rows as they are scored: what lies outside the schema is what is learned from it.

    Whether a row stays hangs on its own cells alone.

    Raises:
        DataError: they do not fit the schema.
    """
    records = records_of(owned, schema, where)
    if isinstance(records, Rows):
        demand_persons(demand_frame(owned, where), records.schema, where)
    return conform_rows(records) if isinstance(records, Rows) else records


def arrays_of(records: Records) -> dict[str, NDArray[np.generic]]:
    """Synthetic rows as the arrays that owners are sent."""
    if isinstance(records, Rows):
        return {"values": records.values, "outside": records.outside}
    labels = records.labels
    return {"pixels": records.pixels, **({} if labels is None else {"labels": labels})}


def from_arrays(arrays: Mapping[str, NDArray[np.generic]], schema: Schema | ImageSchema) -> Records:
    """Inverse of `arrays_of`."""
    if isinstance(schema, Schema):
        return Rows(
            schema,
            np.asarray(arrays["values"], np.float64),
            np.asarray(arrays["outside"], np.bool_),
        )
    labels = arrays.get("labels")
    return Images(
        np.asarray(arrays["pixels"], np.uint8),
        None if labels is None else np.asarray(labels, np.int64),
    )
