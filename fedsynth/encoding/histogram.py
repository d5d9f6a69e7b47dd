"""The one question the encoding asks: a flat histogram whose shape the schema alone fixes."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.tables import Conformed
from fedsynth.encoding.grid import BRANCHING, Grid
from fedsynth.errors import DataError
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Integer,
    Modelled,
    Schema,
)

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
NOTHING: Whole = np.zeros(0, np.int64)


@dataclass(frozen=True, eq=False)
class ColumnLayout:
    """How one column is counted.

    levels: counts per level, coarse to fine (one level for categories and for declared edges).
    Every level is followed by one count a spike and, where the column may be missing, one for that,
    so a record touches each level exactly once. `edges`: first unit of each finest cell; `spikes`:
    units counted apart from the cells; `alone`: which of them the schema declares.
    """

    name: str
    levels: tuple[int, ...]
    missing: bool
    grid: Grid | None = None
    edges: Whole = field(default_factory=NOTHING.copy)
    spikes: Whole = field(default_factory=NOTHING.copy)
    alone: NDArray[np.bool_] = field(default_factory=lambda: np.zeros(0, np.bool_))
    fixed: bool = False

    @property
    def extras(self) -> int:
        """Counts beside the tree at each level."""
        return len(self.spikes) + self.missing

    @property
    def dim(self) -> int:
        """Counts of the column."""
        return sum(self.levels) + len(self.levels) * self.extras

    def split(self, counts: Array) -> tuple[list[Array], Array]:
        """The column's counts [dim] as its levels and its extras [levels, extras]."""
        levels, extras, start = [], [], 0
        for size in self.levels:
            levels.append(counts[start : start + size])
            extras.append(counts[start + size : start + size + self.extras])
            start += size + self.extras
        return levels, np.array(extras).reshape(len(self.levels), self.extras)

    def positions(self, values: Array | Whole) -> Whole:
        """Positions [n, levels] that each record touches within this column's counts."""
        absent = np.isnan(values) if self.grid else values < 0
        if absent.any() and not self.missing:
            raise DataError(
                f"column {self.name!r}: a value is missing but the schema says none is; "
                "conform the table to the schema first, or declare missing: true"
            )
        extra = np.where(absent, len(self.spikes), -1)
        if self.grid is None:
            cells = np.where(absent, 0, values).astype(np.int64)
        else:
            offsets = self.grid.offsets(np.where(absent, self.grid.lower, values))
            cells = np.searchsorted(self.edges, offsets, side="right") - 1
            for index, spike in enumerate(self.spikes):
                extra[~absent & (offsets == spike)] = index
        touched: list[Whole] = []
        start = self.dim
        for size in reversed(self.levels):
            start -= size + self.extras
            touched.insert(0, start + np.where(extra < 0, cells, size + extra))
            cells = cells // BRANCHING
        return np.stack(touched, axis=1)


def column_layout(column: Modelled) -> ColumnLayout:
    """The layout of one modelled column."""
    if isinstance(column, Categorical | Boolean):
        return ColumnLayout(column.name, (len(column.categories),), column.missing)
    grid = grid_of(column)
    declared = () if isinstance(column, Datetime) else column.spikes
    public = None if isinstance(column, Datetime) else column.edges
    if public:
        starts = np.unique([grid.ceiling(edge) for edge in public[:-1]])
        edges = np.concatenate(([0], starts[(starts > 0) & (starts < grid.units)]))
        levels: tuple[int, ...] = (len(edges),)
    else:
        edges, levels = grid.starts, grid.levels
    alone = grid.offsets(np.array(declared, np.float64))
    spikes = np.unique(alone)
    if public is None and len(levels) > 1:
        # Real columns pile up on these. Counted at every level they cost no sensitivity, and show
        # where a cell is too wide for a single value.
        spikes = np.union1d(spikes, grid.offsets(np.array([grid.lower, 0.0, grid.upper])))
    return ColumnLayout(
        column.name,
        levels,
        column.missing,
        grid,
        edges.astype(np.int64),
        spikes,
        np.isin(spikes, alone),
        public is not None,
    )


def grid_of(column: Integer | Continuous | Datetime) -> Grid:
    """The grid of a numeric column; a datetime counts resolution steps from its lower bound."""
    decimals = column.decimals if isinstance(column, Continuous) else 0
    origin = not isinstance(column, Datetime)
    return Grid(column.low, column.high, decimals, origin=origin, step=column.stride)


@dataclass(frozen=True, eq=False)
class HistogramLayout:
    """The flat histogram [dim] that a schema asks for.

    A record touches `per_record` positions, each by exactly 1, so adding or removing one record
    moves the histogram by sqrt(per_record) in L2 norm and by per_record in L1 norm.
    """

    columns: tuple[ColumnLayout, ...]

    @classmethod
    def of(cls, schema: Schema) -> HistogramLayout:
        return cls(tuple(column_layout(column) for column in schema.modelled))

    @property
    def dim(self) -> int:
        """Length of the histogram."""
        return sum(column.dim for column in self.columns)

    @property
    def per_record(self) -> int:
        """Positions that each record touches."""
        return sum(len(column.levels) for column in self.columns)

    @property
    def starts(self) -> Whole:
        """Where each level of each column begins: a record touches one position of each."""
        widths = [size + column.extras for column in self.columns for size in column.levels]
        return np.cumsum([0, *widths[:-1]])

    @property
    def slices(self) -> dict[str, slice]:
        """Where each column's counts stand."""
        stops = np.cumsum([column.dim for column in self.columns]).tolist()
        return {
            column.name: slice(stop - column.dim, stop)
            for column, stop in zip(self.columns, stops, strict=True)
        }

    def positions(self, conformed: Conformed) -> Whole:
        """Positions [n, per_record] in the histogram that each record touches."""
        slices = self.slices
        return np.concatenate(
            [
                slices[column.name].start + column.positions(conformed.columns[column.name])
                for column in self.columns
            ],
            axis=1,
        )
