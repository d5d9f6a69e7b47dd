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
from fedsynth.encoding.constraints import boundaries
from fedsynth.encoding.constraints import settle as settle_order
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.histogram import ColumnLayout, HistogramLayout, column_layout, grid_of
from fedsynth.encoding.tree import Gathered, gather, refine, settle, shared_total
from fedsynth.errors import DataError, ReleaseError, SchemaError
from fedsynth.schema import Boolean, Categorical, Modelled, Schema
from fedsynth.schema.conditions import Condition

Array = NDArray[np.float64]

# A category beside a tree (missing, a spike) counts from this many standard deviations on.
PRESENT = 2.0


@dataclass(frozen=True, eq=False)
class TableEncoding:
    """Codes of a table's d modelled columns.

    bins: per column of numbers its bins; of categories, groups of them, or None where each has a
    code of its own. frequencies: per column a float64 array
    [sizes[j]], nonnegative with sum 1, whose last entry is "missing" where the column may be.
    records: estimated number of records, at least 1 (1 when no question was asked).
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
            discrete = isinstance(column, Categorical | Boolean)
            if isinstance(bins, Groups if discrete else Bins):
                size = bins.size + column.missing
            elif isinstance(column, Categorical | Boolean) and bins is None:
                size = len(column.categories) + column.missing
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
        cls, schema: Schema, noisy: Array, sigma: float, bins: int = 24, rare: float = 3.0
    ) -> TableEncoding:
        """Bins, densities and frequencies from the noisy histogram of `HistogramLayout.of(schema)`.

        noisy: float64 [dim], each count with independent noise of standard deviation `sigma` >= 0.
        bins: bins wanted for a numeric column. rare: categories that hold fewer records than so
        many standard deviations share one code, unless they are the target's. A pure function of
        its arguments. Raises DataError for a histogram of another shape or with values that are
        not finite.
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
        shared = [
            _shared(declared, own, total, 0.0 if schema.target == name else rare * sigma)
            if isinstance(declared, Categorical)
            else _parted(*own, boundaries(schema, name))
            for own, declared in zip(learned, schema.modelled, strict=True)
            for name in (declared.name,)
        ]
        return cls(schema, tuple(b for b, _ in shared), tuple(f for _, f in shared), total)

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
        given: Mapping[str, Condition] | None = None,
    ) -> pd.DataFrame:
        """A table of the schema's columns from codes [n, d]; numbers are drawn within their bins.

        given: by column, a condition that the drawn cells are to meet, where their code can. The
        schema's `ordered` constraints are met as well. Raises DataError for codes that are none.
        """
        codes = np.asarray(codes)
        if codes.ndim != 2 or codes.shape[1] != len(self.bins):
            raise DataError(f"codes of shape {codes.shape}: expected [rows, {len(self.bins)}]")
        if len(codes) and ((codes < 0).any() or (codes >= np.array(self.sizes)).any()):
            raise DataError("codes: each must be at least 0 and below its column's size")
        columns: dict[str, NDArray[Any]] = {}
        drawn_from: dict[str, Bins | Groups | None] = {}
        by_name: dict[str, NDArray[np.int64]] = {}
        for column, bins, own in zip(self.schema.modelled, self.bins, codes.T, strict=True):
            if bins is not None and given and column.name in given:
                bins, _ = _within(bins, given[column.name])
            drawn_from[column.name], by_name[column.name] = bins, own.astype(np.int64)
            columns[column.name] = _drawn(column, bins, by_name[column.name], rng)
        modelled = {column.name: column for column in self.schema.modelled}

        def redraw(name: str, rows: NDArray[np.int64]) -> NDArray[Any]:
            return _drawn(modelled[name], drawn_from[name], by_name[name][rows], rng)

        settle_order(columns, self.schema, redraw)
        return restore(columns, self.schema, rng)

    def likelihood(self, name: str, condition: Condition) -> Array:
        """The share [sizes[j]] of each code of a column that meets a condition on it."""
        for column, bins, frequency in zip(
            self.schema.modelled, self.bins, self.frequencies, strict=True
        ):
            if column.name != name:
                continue
            shares = np.zeros(len(frequency))
            if bins is None:
                shares[list(condition.codes)] = 1.0
            else:
                shares[: bins.size] = _within(bins, condition)[1]
            if column.missing:
                shares[-1] = float(condition.missing)
            return shares
        raise DataError(f"column {name!r} is not among the modelled columns of the schema")

    def bins_of(self, name: str) -> Bins:
        """The bins of a numeric column. Raises DataError where there are none."""
        for column, bins in zip(self.schema.modelled, self.bins, strict=True):
            if column.name == name and isinstance(bins, Bins):
                return bins
        raise DataError(f"column {name!r} is no numeric column of the schema")

    def labels(self, name: str) -> list[str]:
        """What each code of a column stands for, for reports."""
        for column, bins in zip(self.schema.modelled, self.bins, strict=True):
            if column.name == name:
                known = bins.labels() if isinstance(bins, Bins) else []
                if isinstance(column, Categorical | Boolean):
                    known = [str(value) for value in column.categories]
                    known = bins.labels(known) if isinstance(bins, Groups) else known
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
                (None if part["bins"] is None else Groups.from_dict(part["bins"]))
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


def _shared(
    declared: Categorical, learned: tuple[Bins | None, Array], total: float, least: float
) -> tuple[Bins | Groups | None, Array]:
    """Groups in which categories of fewer than ``least`` records share a code, and frequencies."""
    _, frequencies = learned
    values = len(declared.categories)
    groups = Groups.of(frequencies[:values] * total, least)
    if groups is None:
        return None, frequencies
    held = np.bincount(groups.codes, frequencies[:values], minlength=groups.size)
    return groups, np.concatenate((held, frequencies[values:]))


def _parted(
    own: Bins | None, frequencies: Array, ranges: list[tuple[float, float]]
) -> tuple[Bins | Groups | None, Array]:
    """Bins that no constraint's range cuts through, and the frequencies of the codes."""
    if own is None or not ranges:
        return own, frequencies
    parted = own.parted(ranges)
    cut = own.cut_at(parted.starts)
    share = cut.weights / np.bincount(cut.codes, cut.weights)[cut.codes]
    held = np.bincount(parted.codes, frequencies[cut.codes] * share, minlength=parted.size)
    return parted, np.concatenate((held, frequencies[own.size :]))


def _within(bins: Bins | Groups, condition: Condition) -> tuple[Bins | Groups, Array]:
    if isinstance(bins, Bins):
        return bins.within(condition.ranges)
    return bins.within(np.isin(np.arange(len(bins.codes)), condition.codes))


def _drawn(
    column: Modelled, bins: Bins | Groups | None, codes: NDArray[np.int64], rng: np.random.Generator
) -> NDArray[Any]:
    """Conformed values [n] of one column from its codes."""
    if isinstance(column, Categorical | Boolean):
        size = len(column.categories) if bins is None else bins.size
        present = codes < size
        values = codes if bins is None else bins.decode(np.where(present, codes, 0), rng)
        return np.where(present, values, -1)
    assert bins is not None
    present = codes < bins.size
    return np.where(present, bins.decode(np.where(present, codes, 0), rng), np.nan)


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
