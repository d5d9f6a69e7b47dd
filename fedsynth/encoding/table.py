"""A table as a matrix of category codes and back, with bins learned from one noisy histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.tables import Conformed, restore
from fedsynth.encoding.bins import Atoms, Bins, assemble, cell_units, cut
from fedsynth.encoding.histogram import ColumnLayout, HistogramLayout, column_layout, grid_of
from fedsynth.encoding.tree import Gathered, gather, refine, settle, shared_total
from fedsynth.errors import DataError, ReleaseError, SchemaError
from fedsynth.schema import Boolean, Categorical, Schema

Array = NDArray[np.float64]

# A category beside a tree (missing, a spike) counts from this many standard deviations on.
PRESENT = 2.0


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """Codes of a table's d modelled columns.

    bins: per column its bins, None for categories. frequencies: per column a float64 array
    [sizes[j]], nonnegative with sum 1, whose last entry is "missing" where the column may be.
    records: estimated number of records, at least 1 (1 when no question was asked).
    """

    schema: Schema
    bins: tuple[Bins | None, ...]
    frequencies: tuple[Array, ...]
    records: float

    def __post_init__(self) -> None:
        columns = self.schema.modelled
        if not len(columns) == len(self.bins) == len(self.frequencies):
            raise ReleaseError(f"encoding: the schema has {len(columns)} columns, the encoding not")
        if not (np.isfinite(self.records) and self.records >= 1):
            raise ReleaseError("encoding: records must be a number of at least 1")
        for column, bins, frequency in zip(columns, self.bins, self.frequencies, strict=True):
            if isinstance(column, Categorical | Boolean):
                size = len(column.categories) + column.missing
            elif bins is not None:
                size = bins.size + column.missing
            else:
                raise ReleaseError(f"encoding: numeric column {column.name!r} has no bins")
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
        cls, schema: Schema, noisy: Array, sigma: float, bins: int = 24
    ) -> TableEncoding:
        """Bins, densities and frequencies from the noisy histogram of `HistogramLayout.of(schema)`.

        noisy: float64 [dim], each count with independent noise of standard deviation `sigma` >= 0.
        bins: bins wanted for a numeric column. A pure function of its arguments. Raises DataError
        for a histogram of another shape or with values that are not finite.
        """
        layout = HistogramLayout.of(schema)
        noisy = np.asarray(noisy, np.float64)
        if noisy.shape != (layout.dim,) or not np.isfinite(noisy).all():
            raise DataError(
                f"histogram of shape {noisy.shape}: the schema needs {layout.dim} finite counts; "
                "use the same schema for asking and for encoding"
            )
        if not (np.isfinite(sigma) and sigma >= 0 and bins >= 1):
            raise DataError("histogram: sigma must be a number of at least 0, bins at least 1")
        slices = layout.slices
        trees = [gather(*column.split(noisy[slices[column.name]])) for column in layout.columns]
        total = max(1.0, shared_total(trees))
        learned = [
            _learn(column, settle(tree, total), total, sigma, bins)
            for column, tree in zip(layout.columns, trees, strict=True)
        ]
        return cls(schema, tuple(b for b, _ in learned), tuple(f for _, f in learned), total)

    @classmethod
    def from_edges(cls, schema: Schema) -> TableEncoding:
        """Bins from public edges alone, with uniform frequencies: nothing is asked of anybody.

        Raises SchemaError naming a numeric column without declared edges.
        """
        found: list[Bins | None] = []
        frequencies = []
        for column in schema.modelled:
            layout = column_layout(column)
            if layout.grid is not None and not layout.fixed:
                raise SchemaError(
                    f"column {column.name!r} has no public edges; declare `edges`, "
                    "or learn the bins from a histogram"
                )
            size, own = layout.levels[0], None
            if layout.grid is not None:
                counts = cell_units(layout.grid, layout.edges, layout.spikes)
                own, _ = _fixed(layout, _atoms(layout, counts, np.ones(len(layout.spikes))))
                size = own.size
            found.append(own)
            frequencies.append(np.full(size + column.missing, 1.0 / (size + column.missing)))
        return cls(schema, tuple(found), tuple(frequencies), 1.0)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of codes per column; where a column may be missing, the last code says so."""
        return tuple(len(frequency) for frequency in self.frequencies)

    def encode(self, conformed: Conformed) -> NDArray[np.int32]:
        """Codes [n, d] of a conformed table."""
        codes = np.empty((conformed.rows, len(self.bins)), np.int32)
        for index, (column, bins) in enumerate(zip(self.schema.modelled, self.bins, strict=True)):
            values = conformed.columns[column.name]
            absent = values < 0 if bins is None else np.isnan(values)
            if bins is not None:
                values = bins.encode(np.where(absent, bins.grid.lower, values))
            codes[:, index] = np.where(absent, self.sizes[index] - 1, values)
        return codes

    def decode(self, codes: NDArray[np.integer[Any]], rng: np.random.Generator) -> pd.DataFrame:
        """A table of the schema's columns from codes [n, d]; numbers are drawn within their bins.

        Raises DataError for codes that are none.
        """
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.bins):
            raise DataError(f"codes of shape {codes.shape}: expected [rows, {len(self.bins)}]")
        if len(codes) and ((codes < 0).any() or (codes >= np.array(self.sizes)).any()):
            raise DataError("codes: each must be at least 0 and below its column's size")
        columns: dict[str, NDArray[Any]] = {}
        for column, bins, own in zip(self.schema.modelled, self.bins, codes.T, strict=True):
            own = own.astype(np.int64)
            if isinstance(column, Categorical | Boolean):
                columns[column.name] = np.where(own < len(column.categories), own, -1)
            elif bins is not None:
                present = own < bins.size
                drawn = bins.decode(np.where(present, own, 0), rng)
                columns[column.name] = np.where(present, drawn, np.nan)
        return restore(columns, self.schema, rng)

    def labels(self, name: str) -> list[str]:
        """What each code of a column stands for, for reports."""
        for column, bins in zip(self.schema.modelled, self.bins, strict=True):
            if column.name == name:
                known = [] if bins is None else bins.labels()
                if isinstance(column, Categorical | Boolean):
                    known = [str(value) for value in column.categories]
                return known + ["missing"] * column.missing
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
                None
                if isinstance(column, Categorical | Boolean)
                else Bins.from_dict(part["bins"], grid_of(column))
                for part, column in zip(parts, schema.modelled, strict=True)
            )
            records = float(document["records"])
        except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise ReleaseError("encoding: the document is damaged; write it again") from error
        return cls(schema, bins, frequencies, records)


def _learn(
    layout: ColumnLayout, tree: Gathered, total: float, sigma: float, bins: int
) -> tuple[Bins | None, Array]:
    """Bins (None for categories) and frequencies of one column from its consistent tree."""
    extras, present = _apart(tree, total, sigma)
    if layout.grid is None:
        masses = refine(tree, present, np.ones(layout.levels[-1]), sigma)
        return None, _share(np.concatenate((masses, extras)))
    units = cell_units(layout.grid, layout.edges, layout.spikes)
    cells = refine(tree, present, units, sigma)
    spikes, missing = extras[: len(layout.spikes)], extras[len(layout.spikes) :]
    atoms = _atoms(layout, cells, spikes)
    found, held = _fixed(layout, atoms) if layout.fixed else cut(atoms, bins, sigma)
    return found, _share(np.concatenate((held, missing)))


def _apart(tree: Gathered, total: float, sigma: float) -> tuple[Array, float]:
    """Counts of the extras, without those that may be noise, and what is left for the tree."""
    noise = sigma * float(np.sqrt(tree.extra_variance))
    extras = np.where(tree.extras > PRESENT * noise, np.maximum(tree.extras, 0.0), 0.0)
    held = float(extras.sum())
    present = total - held
    if held > 0 and present <= PRESENT * sigma:
        return extras * (total / held), 0.0
    return extras, present


def _atoms(layout: ColumnLayout, cells: Array, spikes: Array) -> Atoms:
    assert layout.grid is not None
    return Atoms.of(layout.grid, layout.edges, cells, layout.spikes, spikes, layout.alone)


def _fixed(layout: ColumnLayout, atoms: Atoms) -> tuple[Bins, Array]:
    """Each public bin and each declared spike as it stands, and the records in each."""
    cell = np.searchsorted(layout.edges, atoms.starts, side="right") - 1
    spike = len(layout.edges) + np.searchsorted(layout.spikes, atoms.starts)
    group = np.where(atoms.alone, spike, cell)
    return assemble(atoms, group, atoms.masses)


def _share(masses: Array) -> Array:
    """Frequencies, uniform where nothing was counted."""
    total = masses.sum()
    return masses / total if total > 0 else np.full(len(masses), 1.0 / len(masses))
