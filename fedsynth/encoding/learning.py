"""What one column's noisy counts teach: bins or groups of its values, and their frequencies."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.cutting import Atoms, assemble, cell_units, cut
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.histogram import ColumnLayout
from fedsynth.encoding.tree import Estimates, refine
from fedsynth.schema import Schema
from fedsynth.schema.conditions import Condition, condition_on
from fedsynth.schema.constraints import Never

Array = NDArray[np.float64]

# A category beside a tree (missing, a spike) counts from this many standard deviations on.
PRESENT = 2.0


def learn_column(
    layout: ColumnLayout, tree: Estimates, total: float, sigma: float, bins: int
) -> tuple[Bins | None, Array]:
    """Bins (None for categories) and frequencies of one column from its consistent tree.

    total: of records; sigma: noise of a count; bins: wanted for a numeric column.
    """
    extras, present = _separate_extras(tree, total, sigma)
    if layout.grid is None:
        masses = refine(tree, present, np.ones(layout.levels[-1]), sigma)
        return None, _normalize(np.concatenate((masses, extras)))
    units = cell_units(layout.grid, layout.edges, layout.spikes)
    cells = refine(tree, present, units, sigma)
    spikes, missing = extras[: len(layout.spikes)], extras[len(layout.spikes) :]
    atoms = _atoms(layout, cells, spikes)
    column_bins, counts = (
        _assemble_fixed(layout, atoms) if layout.fixed else cut(atoms, bins, sigma)
    )
    return column_bins, _normalize(np.concatenate((counts, missing)))


def group_rare(
    values: int, frequencies: Array, least: float, conditions: Sequence[Condition]
) -> tuple[Groups | None, Array]:
    """Groups of categories rarer than `least` (a share), and the frequencies [codes].

    values: number of categories; frequencies [values, or with missing one more]: of each of them.
    conditions: only categories that agree on each of these share a group.
    """
    categories = np.arange(values)
    sides = [np.isin(categories, condition.codes) for condition in conditions]
    shares = frequencies[:values]
    groups = Groups.of(shares, least, np.array(sides, np.bool_).reshape(-1, values).T)
    if groups is None:
        return None, frequencies
    sums = np.bincount(groups.codes, shares, minlength=groups.size)
    return groups, np.concatenate((sums, frequencies[values:]))


def split_at_conditions(
    bins: Bins, frequencies: Array, conditions: Sequence[Condition]
) -> tuple[Bins, Array]:
    """Bins that no condition's range cuts through, and the frequencies [codes]."""
    if not conditions:
        return bins, frequencies
    parts, wholes = bins.split([condition.ranges for condition in conditions])
    cut = bins.cut_at(parts.starts)
    shares = np.bincount(parts.codes, cut.weights) / np.bincount(bins.codes, bins.weights)[wholes]
    return parts, np.concatenate((frequencies[wholes] * shares, frequencies[bins.size :]))


def public_bins(layout: ColumnLayout) -> tuple[Bins, Array]:
    """Bins of a column whose edges are public, even within, and the units in each."""
    assert layout.grid is not None
    units = cell_units(layout.grid, layout.edges, layout.spikes)
    return _assemble_fixed(layout, _atoms(layout, units, np.ones(len(layout.spikes))))


def _separate_extras(tree: Estimates, total: float, sigma: float) -> tuple[Array, float]:
    """Counts of the extras, without those that may be noise, and what is left for the tree."""
    noise = sigma * float(np.sqrt(tree.extra_variance))
    extras = np.where(tree.extras > PRESENT * noise, np.maximum(tree.extras, 0.0), 0.0)
    counted = float(extras.sum())
    present = total - counted
    if counted > 0 and present <= PRESENT * sigma:
        return extras * (total / counted), 0.0
    return extras, present


def _atoms(layout: ColumnLayout, cells: Array, spikes: Array) -> Atoms:
    assert layout.grid is not None
    return Atoms.of(layout.grid, layout.edges, cells, layout.spikes, spikes, layout.alone)


def _assemble_fixed(layout: ColumnLayout, atoms: Atoms) -> tuple[Bins, Array]:
    """Each public bin and each declared spike as it stands, and the records in each."""
    cell = np.searchsorted(layout.edges, atoms.starts, side="right") - 1
    spike = len(layout.edges) + np.searchsorted(layout.spikes, atoms.starts)
    group = np.where(atoms.alone, spike, cell)
    return assemble(atoms, group, atoms.masses)


def _normalize(masses: Array) -> Array:
    """Frequencies, uniform where nothing was counted."""
    total = masses.sum()
    return masses / total if total > 0 else np.full(len(masses), 1.0 / len(masses))


def conditions_of(schema: Schema, name: str) -> list[Condition]:
    """What constraints say of a column by itself: no code may stand for values on either side."""
    columns = {column.name: column for column in schema.columns}
    return [
        condition_on(columns[name], constraint.never[name])
        for constraint in schema.rules
        if isinstance(constraint, Never) and name in constraint.never
    ]
