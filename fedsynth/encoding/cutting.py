"""Bins from a numeric column's refined histogram: heavy values alone, the rest at quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.grid import Grid, merge

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

# All in standard deviations of a count's noise: what a quantile bin must hold to be kept; what a
# cell must hold to be a bin of its own (it has passed at the levels above already); what the
# rest beside such cells must hold to be believed in. The first two are low because learners lose
# more to bins that are too wide than to bins that are too many.
SUPPORT = 1.0
HEAVY = 2.0
BELIEVED = 4.0
# Most values that the rest of a column is spread over where single values hold the better part.
POINTS = 200


@dataclass(frozen=True, eq=False)
class Atoms:
    """The finest pieces a histogram tells apart: its cells, and single values taken out of them.

    starts [k] (units), masses [k] (records, >= 0), alone [k] (declared to be a bin of its own).
    """

    grid: Grid
    starts: Whole
    masses: Array
    alone: Mask

    @property
    def lengths(self) -> Whole:
        """Units in each atom."""
        return np.diff(self.starts, append=self.grid.units)

    @property
    def middles(self) -> Array:
        """The centre of each atom, in units."""
        return np.asarray(self.starts + self.lengths / 2, np.float64)

    @classmethod
    def of(
        cls,
        grid: Grid,
        edges: Whole,
        counts: Array,
        spikes: Whole,
        spike_counts: Array,
        alone: Mask,
    ) -> Atoms:
        """Atoms of cells [edges[i], edges[i + 1]) holding `counts`, and of single units `spikes`.

        `alone`: which spikes are to be bins of their own whatever they hold.
        """
        starts = merge(edges, spikes, spikes + 1)
        starts = starts[starts < grid.units]
        cell = np.searchsorted(edges, starts, side="right") - 1
        single = np.isin(starts, spikes)
        lengths = np.where(single, 0, np.diff(starts, append=grid.units))
        room = np.bincount(cell, lengths, minlength=len(edges))[cell]
        masses = np.divide(counts[cell] * lengths, room, out=np.zeros(len(starts)), where=room > 0)
        masses[np.searchsorted(starts, spikes)] = spike_counts
        return cls(grid, starts, masses, np.isin(starts, spikes[alone]))

    def thin(self, keep: Mask) -> Atoms:
        """The same, with what is not to `keep` moved to single units at POINTS of its quantiles."""
        rest = np.where(keep, 0.0, self.masses)
        step = float(rest.sum()) / POINTS
        spots = np.searchsorted(np.cumsum(rest), (np.arange(POINTS) + 0.5) * step)
        spots = np.minimum(spots, len(rest) - 1)
        middles = self.starts[spots] + self.lengths[spots] // 2
        starts = merge(self.starts, middles, middles + 1)
        starts = starts[starts < self.grid.units]
        hits = np.bincount(np.searchsorted(starts, middles), minlength=len(starts))
        masses = np.asarray(step * hits, np.float64)
        alone = np.isin(starts, self.starts[keep])
        masses[alone] = self.masses[keep]
        return Atoms(self.grid, starts, masses, alone)


def cell_units(grid: Grid, edges: Whole, spikes: Whole) -> Array:
    """Units that each cell [edges[i], edges[i + 1]) holds beside the spikes."""
    taken = np.bincount(np.searchsorted(edges, spikes, side="right") - 1, minlength=len(edges))
    return (np.diff(edges, append=grid.units) - taken).astype(np.float64)


def cut(atoms: Atoms, bins: int, sigma: float) -> tuple[Bins, Array]:
    """About `bins` bins, and the records in each: heavy cells alone, the rest at its quantiles.

    sigma: noise of a count, in records. A rest that does not stand out of the noise joins the
    nearest heavy cell, without weight; a quantile bin that does not is merged with its neighbour.
    """
    heavy = _find_heavy(atoms, bins, sigma)
    if sigma > 0 and _is_sparse(atoms, heavy):
        atoms = atoms.thin(heavy)
        heavy = atoms.alone
    singles, left = int(heavy.sum()), float(atoms.masses[~heavy].sum())
    weights = atoms.masses
    group = np.zeros(len(heavy), np.int64)
    if heavy.all():
        group = np.arange(singles)
    elif singles and (left <= 0 or left <= BELIEVED * sigma):
        weights = np.where(heavy, weights, 0.0)
        group = _find_nearest(atoms.middles[heavy], atoms.middles)
    else:
        wanted = max(1, bins - singles, bins // 2)
        group[~heavy] = _group_at_quantiles(atoms.masses[~heavy], wanted, sigma)
        group[heavy] = bins + np.arange(singles)
    # A declared spike that nobody has still means its value, whatever joins it.
    weights = np.where(heavy & (weights <= 0), 1.0, weights)
    return assemble(atoms, group, weights)


def _is_sparse(atoms: Atoms, heavy: Mask) -> bool:
    """Whether the heavy values hold the better part, and the others more values than POINTS.

    Amounts that are mostly 0 take few other values, which noise cannot show. Spread evenly, they
    would also leave a learner's quantile bins too coarse to see any of them.
    """
    rest = ~heavy & (atoms.masses > 0)
    return bool(
        atoms.lengths[rest].sum() > POINTS
        and atoms.masses[rest].sum() < atoms.masses[heavy].sum() / 2
    )


def _find_heavy(atoms: Atoms, bins: int, sigma: float) -> Mask:
    """Atoms that nearly fill a bin: half of its share of all records, or of those in the rest."""
    total = float(atoms.masses.sum())
    heavy: Mask = atoms.alone | (atoms.masses > max(HEAVY * sigma, total / (2 * bins)))
    while (room := bins - int(heavy.sum())) > 1:
        least = max(HEAVY * sigma, float(atoms.masses[~heavy].sum()) / (2 * room))
        more = ~heavy & (atoms.masses > least)
        if not more.any():
            break
        heavy |= more
    return heavy


def _find_nearest(spots: Array, places: Array) -> Whole:
    """Index of the nearest of the rising `spots` for each of `places`."""
    between = (spots[1:] + spots[:-1]) / 2
    return np.searchsorted(between, places)


def _group_at_quantiles(masses: Array, bins: int, sigma: float) -> Whole:
    """Group atoms in order into at most `bins` of about equal mass, each of SUPPORT * sigma."""
    total = float(masses.sum())
    if total <= 0:
        return np.zeros(len(masses), np.int64)
    least = SUPPORT * sigma
    if least > 0:
        bins = max(1, int(min(bins, total / least)))
    middles = np.cumsum(masses) - masses / 2
    raw = np.minimum(middles / total * bins, bins - 1).astype(np.int64)
    held = np.bincount(raw, masses, minlength=bins)
    merged = np.zeros(bins, np.int64)
    current, mass = 0, 0.0
    for index in range(bins):
        merged[index] = current
        mass += held[index]
        if mass > 0 and mass >= least:
            current, mass = current + 1, 0.0
    # What is left over at the top is too little for a bin: it joins the one before.
    return np.minimum(merged, max(current - 1, 0))[raw]


def assemble(atoms: Atoms, group: Whole, weights: Array) -> tuple[Bins, Array]:
    """Bins numbered by their lowest value, and the records in each.

    group, weights [k]: which atoms make a bin, and how they share it; one without weight is even
    over its units. Neighbouring atoms of one bin and density become one piece.
    """
    _, first, code = np.unique(group, return_index=True, return_inverse=True)
    code = np.argsort(np.argsort(first))[code]
    empty = np.bincount(code, weights) <= 0
    weights = np.where(empty[code], atoms.lengths, weights)
    density = weights / atoms.lengths
    change = np.abs(np.diff(density)) > 1e-9 * np.maximum(density[1:], density[:-1])
    heads = np.flatnonzero(np.concatenate(([True], change | (np.diff(code) != 0))))
    bins = Bins(atoms.grid, atoms.starts[heads], code[heads], np.add.reduceat(weights, heads))
    return bins, np.asarray(np.bincount(code, atoms.masses), np.float64)
