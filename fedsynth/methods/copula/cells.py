"""Public cells of every column, from the schema alone, and public scores of them.

A column of numbers has a *ladder* of cells: the union of equal widths and of widths that grow with
the distance from 0, so that ages and skewed amounts of money are both resolved, and no row has been
seen. The scores are what second moments are taken of: the place on the ladder, so they grow like a
logarithm where the ladder does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.grid import MAX_CELLS, Grid
from fedsynth.encoding.histogram import grid_of
from fedsynth.schema import Boolean, Categorical, Datetime, Modelled, Schema
from fedsynth.schema.target import conditions

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Columns of up to so many values have a cell for each.
_SINGLE = 128
_EQUAL = 32
# Octaves of growing widths, and steps an octave, of ladders that run from 0 (or the bound nearest
# to it) one way, and for the longer and the shorter way of those that run both ways. Wider bounds
# have as many octaves as there are.
_OCTAVES, _STEPS = 16, 4
_OCTAVES_BOTH, _STEPS_SHORT = 12, 2

# A record's score where it has a coordinate of its own.
HOT = 0.5**0.5


@dataclass(frozen=True, eq=False)
class ColumnCells:
    """The cells of one column.

    A missing value has code 0 where the column may be missing; behind it come categories in the
    schema's order, or cells of numbers in rising order.

    Attributes:
        column: of the schema.
        grid: of a column of numbers, else None.
        starts: first unit of each cell of numbers, rising from 0.
        apart: whether every category has a score coordinate of its own (two categories need but
            one); else one coordinate rises with the code.
    """

    column: Modelled
    grid: Grid | None = None
    starts: Whole = field(default_factory=lambda: np.zeros(0, np.int64))
    apart: bool = False

    @property
    def name(self) -> str:
        return self.column.name

    @property
    def missing(self) -> bool:
        return self.column.missing

    @property
    def size(self) -> int:
        """Number of codes."""
        if isinstance(self.column, Categorical | Boolean):
            return len(self.column.categories) + self.missing
        return len(self.starts) + self.missing

    @property
    def lengths(self) -> Whole:
        """Units in each cell of numbers."""
        assert self.grid is not None
        return np.diff(self.starts, append=self.grid.units)

    def codes(self, values: NDArray[np.generic]) -> Whole:
        """Codes [n] of conformed values."""
        if self.grid is None:
            return values.astype(np.int64) + self.missing
        numbers = values.astype(np.float64)
        absent = np.isnan(numbers)
        offsets = self.grid.offsets(np.where(absent, self.grid.lower, numbers))
        cells = np.searchsorted(self.starts, offsets, side="right") - 1
        return np.where(absent, 0, cells + self.missing).astype(np.int64)

    def values(self, codes: Whole, shares: Floats) -> NDArray[np.generic]:
        """Conformed values [n] at the given shares, in [0, 1), of the codes' cells."""
        if self.grid is None:
            return codes - self.missing
        cells = np.maximum(codes - self.missing, 0)
        offsets = self.starts[cells] + np.floor(shares * self.lengths[cells]).astype(np.int64)
        return np.where(codes < self.missing, np.nan, self.grid.values(offsets))

    @property
    def edges(self) -> Floats:
        """Edges [cells + 1] of the cells of numbers, half a unit below their first values."""
        assert self.grid is not None
        unit = self.grid.step * 10.0**-self.grid.decimals
        low = self.grid.values(self.starts) - unit / 2
        return np.append(low, self.grid.upper + unit / 2)

    @property
    def measure(self) -> Floats:
        """What share of records a cell holds before anything is known, [size], sum 1."""
        if self.grid is None:
            return np.full(self.size, 1.0 / self.size)
        cells = len(self.starts)
        mixed = 0.5 * self.lengths / self.grid.units + 0.5 / cells
        if not self.missing:
            return mixed
        return np.append(1.0, mixed * cells) / (cells + 1)

    @property
    def scores(self) -> Floats:
        """Public scores [size, width] of the codes; no row's norm exceeds 1."""
        if self.single:
            reach = HOT if self.size == 2 else 1.0 - 1.0 / self.size
            return (reach * np.linspace(-1, 1, self.size) if self.size > 1 else np.zeros(1))[
                :, None
            ]
        return HOT * np.eye(self.size)

    @property
    def single(self) -> bool:
        """Whether the scores have one coordinate."""
        return not self.apart or self.size <= 2


def column_cells(column: Modelled, apart: bool = False) -> ColumnCells:
    """The cells of one modelled column; ``apart`` is for categories."""
    if isinstance(column, Categorical | Boolean):
        return ColumnCells(column, apart=apart)
    grid = grid_of(column)
    spikes = () if isinstance(column, Datetime) else column.spikes
    edges = None if isinstance(column, Datetime) else column.edges
    if edges:
        cuts = np.array([grid.ceiling(edge) for edge in edges[:-1]], np.int64)
        single = grid.offsets(np.array(spikes, np.float64))
    elif grid.units <= _SINGLE:
        return ColumnCells(column, grid, np.arange(grid.units, dtype=np.int64))
    else:
        cuts = ladder(grid)
        # Real columns pile up on these.
        single = grid.offsets(np.array([*spikes, grid.lower, 0.0, grid.upper]))
    starts = np.unique(np.concatenate([[0], cuts, single, single + 1]))
    return ColumnCells(column, grid, starts[starts < grid.units].astype(np.int64))


def ladder(grid: Grid) -> Whole:
    """First units of the cells: equal widths, and widths growing with the distance from 0."""
    equal = np.arange(_EQUAL) * grid.units // _EQUAL
    anchor = int(grid.offsets(np.zeros(1))[0])
    below, above = anchor, grid.units - 1 - anchor
    both = min(below, above) > 0
    cuts = [equal]
    for span, way in ((above, 1), (below, -1)):
        steps = _STEPS_SHORT if both and span < max(below, above) else _STEPS
        octaves = _OCTAVES_BOTH if both else _OCTAVES
        if grid.origin and grid.units > MAX_CELLS:
            octaves = max(octaves, span.bit_length())
        far = span * 2.0 ** (-np.arange(1, steps * octaves + 1) / steps)
        cuts.append(anchor + way * np.ceil(far[far >= 1]).astype(np.int64) + (way < 0))
    return np.concatenate(cuts)


@dataclass(frozen=True, eq=False)
class TableCells:
    """The cells of a table's columns.

    Attributes:
        columns: those that are modelled; without the target where it has classes.
        target: its name where records fall into classes by it, else None.
        classes: number of classes, at least 1.
    """

    columns: tuple[ColumnCells, ...]
    target: str | None
    classes: int

    @classmethod
    def of(cls, schema: Schema, apart: int = 0) -> TableCells:
        """The cells that a schema gives.

        Args:
            apart: columns of at most so many categories have a score coordinate for each.
        """
        classes = conditions(schema)
        target = str(schema.target) if classes else None
        columns = []
        for column in schema.modelled:
            if column.name == target:
                continue
            few = isinstance(column, Categorical | Boolean) and len(column.categories) <= apart
            columns.append(column_cells(column, few))
        return cls(tuple(columns), target, max(1, classes))

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(column.size for column in self.columns)

    @property
    def cells(self) -> int:
        """Number of cells of all columns together."""
        return sum(self.sizes)

    @property
    def starts(self) -> Whole:
        """Where each column's cells begin among all."""
        return np.cumsum([0, *self.sizes[:-1]]).astype(np.int64)

    def slices(self) -> list[slice]:
        """Where each column's cells stand among all."""
        stops = np.cumsum(self.sizes).tolist()
        return [slice(b - size, b) for b, size in zip(stops, self.sizes, strict=True)]

    def codes(self, columns: Mapping[str, NDArray[np.generic]]) -> Whole:
        """Codes [n, columns] of conformed columns."""
        return np.stack([column.codes(columns[column.name]) for column in self.columns], axis=1)

    def labels(self, columns: Mapping[str, NDArray[np.generic]]) -> Whole:
        """The class of each record, [n]."""
        if self.target is None:
            return np.zeros(len(columns[self.columns[0].name]), np.int64)
        return columns[self.target].astype(np.int64)
