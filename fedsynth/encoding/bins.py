"""Bins of a numeric column, and the density within each, from a refined histogram.

A column's units are cut into *pieces*, runs of units of one density. Each piece belongs to one bin;
a bin may own several pieces, also with another bin's between them (40 hours amid 37 to 45).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.grid import Grid
from fedsynth.errors import ReleaseError

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]

# All in standard deviations of a count's noise: what a quantile bin must hold to be kept; what a
# cell must hold to be a bin of its own (the levels above have vouched for it already); what the
# rest beside such cells must hold to be believed in. The first two are low because learners lose
# more to bins that are too wide than to bins that are too many.
SUPPORT = 1.0
HEAVY = 2.0
BELIEVED = 4.0
# Most values that the rest of a column is spread over where single values hold the better part.
POINTS = 200


@dataclass(frozen=True, eq=False)
class Bins:
    """Pieces of a grid: starts [k] rising from unit 0, each one's bin [k] and weight [k] >= 0.

    Bins are numbered from 0 without gaps; every bin has a piece of positive weight.
    """

    grid: Grid
    starts: Whole
    codes: Whole
    weights: Array

    def __post_init__(self) -> None:
        starts, codes, weights = self.starts, self.codes, self.weights
        if not (starts.ndim == 1 and len(starts) and starts.shape == codes.shape == weights.shape):
            raise ReleaseError("bins: starts, codes and weights must be lists of one length, not 0")
        if starts[0] != 0 or (np.diff(starts) <= 0).any() or starts[-1] >= self.grid.units:
            raise ReleaseError("bins: starts must rise from 0 and stay within the column's bounds")
        if (codes < 0).any() or (codes >= len(codes)).any():
            raise ReleaseError("bins: codes must be 0 .. number of bins - 1")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ReleaseError("bins: weights must be finite and not negative")
        if (np.bincount(codes, weights) <= 0).any():
            raise ReleaseError("bins: every bin must have a piece of positive weight")

    @property
    def size(self) -> int:
        """Number of bins."""
        return int(self.codes.max()) + 1

    @property
    def lengths(self) -> Whole:
        """Units in each piece."""
        return np.diff(self.starts, append=self.grid.units)

    def encode(self, values: Array) -> Whole:
        """The bin of each finite value; one outside the bounds counts as the bound."""
        offsets = self.grid.offsets(values)
        return self.codes[np.searchsorted(self.starts, offsets, side="right") - 1]

    def decode(self, codes: Whole, rng: np.random.Generator) -> Array:
        """A value for each bin: a piece by its weight, then one of its units evenly."""
        order = np.argsort(self.codes, kind="stable")
        sums = np.cumsum(self.weights[order])
        ends = np.cumsum(np.bincount(self.codes))
        below = np.concatenate(([0.0], sums[ends[:-1] - 1]))
        uniform = rng.random(len(codes))
        target = below[codes] + uniform * (sums[ends - 1] - below)[codes]
        found = np.searchsorted(sums, target, side="right")
        # A target rounded up to its bin's last sum must not fall into the next bin.
        drawable = np.where(self.weights[order] > 0, np.arange(len(order)), -1)
        last = np.maximum.accumulate(drawable)[ends - 1]
        piece = order[np.minimum(found, last[codes])]
        within = (rng.random(len(codes)) * self.lengths[piece]).astype(np.int64)
        return self.grid.values(self.starts[piece] + within)

    @property
    def reach(self) -> tuple[Whole, Whole]:
        """The lowest and the highest unit of each bin that can be drawn."""
        live = np.flatnonzero(self.weights > 0)
        first = np.full(self.size, self.grid.units)
        last = np.zeros(self.size, np.int64)
        np.minimum.at(first, self.codes[live], self.starts[live])
        np.maximum.at(last, self.codes[live], (self.starts + self.lengths - 1)[live])
        return first, last

    def cut_at(self, edges: Whole) -> Bins:
        """The same pieces, cut at the units `edges`, each part as dense as the whole."""
        inner = edges[(edges > 0) & (edges < self.grid.units)]
        starts = np.union1d(self.starts, inner)
        whole = np.searchsorted(self.starts, starts, side="right") - 1
        parts = np.diff(starts, append=self.grid.units) / self.lengths[whole]
        return Bins(self.grid, starts, self.codes[whole], self.weights[whole] * parts)

    def parted(self, ranges: Sequence[tuple[float, float]]) -> Bins:
        """Bins that lie within or without each of the closed `ranges` of values, never across."""
        if not ranges:
            return self
        cut = self.cut_at(_edges(self.grid, ranges))
        sides = np.stack([_inside(cut, [one]) for one in ranges], axis=1)
        _, group = np.unique(np.column_stack((cut.codes, sides)), axis=0, return_inverse=True)
        group = group.ravel()
        _, first, code = np.unique(group, return_index=True, return_inverse=True)
        code = np.argsort(np.argsort(first))[code]
        # A part that nobody seems to be in is still drawn from evenly, if ever.
        empty = np.bincount(code, cut.weights) <= 0
        weights = np.where(empty[code], cut.lengths, cut.weights)
        return Bins(self.grid, cut.starts, code, weights)

    def within(self, ranges: Sequence[tuple[float, float]]) -> tuple[Bins, Array]:
        """Only what lies in the closed `ranges` of values, and the share of each bin that does.

        Bins outside all of them stay as they are, with share 0.
        """
        cut = self.cut_at(_edges(self.grid, ranges))
        kept = np.where(_inside(cut, ranges), cut.weights, 0.0)
        shares = np.bincount(cut.codes, kept) / np.bincount(cut.codes, cut.weights)
        weights = np.where(shares[cut.codes] > 0, kept, cut.weights)
        return Bins(self.grid, cut.starts, cut.codes, weights), shares

    def labels(self) -> list[str]:
        """Each bin as a report names it: a single value, or its lowest and highest."""
        stops = self.starts + self.lengths - 1
        names = []
        for code in range(self.size):
            own = self.codes == code
            low, high = self.grid.values(np.array([self.starts[own].min(), stops[own].max()]))
            names.append(_spell(low) if low == high else f"{_spell(low)} to {_spell(high)}")
        return names

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers that JSON keeps exactly."""
        return {
            "starts": self.starts.tolist(),
            "codes": self.codes.tolist(),
            "weights": self.weights.tolist(),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], grid: Grid) -> Bins:
        """Inverse of `to_dict`; raises ReleaseError where the document is damaged."""
        try:
            starts = np.array(document["starts"], np.int64)
            codes = np.array(document["codes"], np.int64)
            weights = np.array(document["weights"], np.float64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ReleaseError(
                "bins: starts, codes and weights must be lists of numbers; write the encoding again"
            ) from error
        return cls(grid, starts, codes, weights)


def _edges(grid: Grid, ranges: Sequence[tuple[float, float]]) -> Whole:
    """Units at which the ranges begin, and the first ones behind them."""
    firsts = [grid.ceiling(low) for low, _ in ranges]
    behind = [_behind(grid, high) for _, high in ranges]
    return np.unique(np.array([*firsts, *behind], np.int64))


def _behind(grid: Grid, high: float) -> int:
    """The first unit whose value is above `high`."""
    unit = grid.ceiling(high)
    if unit < grid.units and float(grid.values(np.array([unit]))[0]) == high:
        return unit + 1
    return unit


def _inside(bins: Bins, ranges: Sequence[tuple[float, float]]) -> Mask:
    """Which pieces lie in one of the ranges; none may lie across an end of one."""
    found = np.zeros(len(bins.starts), bool)
    for low, high in ranges:
        first, behind = bins.grid.ceiling(low), _behind(bins.grid, high)
        found |= (bins.starts >= first) & (bins.starts < behind)
    return found


def _spell(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))


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
        starts = np.unique(np.concatenate((edges, spikes, spikes + 1)))
        starts = starts[starts < grid.units]
        cell = np.searchsorted(edges, starts, side="right") - 1
        single = np.isin(starts, spikes)
        lengths = np.where(single, 0, np.diff(starts, append=grid.units))
        room = np.bincount(cell, lengths, minlength=len(edges))[cell]
        masses = np.divide(counts[cell] * lengths, room, out=np.zeros(len(starts)), where=room > 0)
        masses[np.searchsorted(starts, spikes)] = spike_counts
        return cls(grid, starts, masses, np.isin(starts, spikes[alone]))

    def thinned(self, keep: Mask) -> Atoms:
        """The same, with what is not to `keep` moved to single units at POINTS of its quantiles."""
        rest = np.where(keep, 0.0, self.masses)
        step = float(rest.sum()) / POINTS
        spots = np.searchsorted(np.cumsum(rest), (np.arange(POINTS) + 0.5) * step)
        spots = np.minimum(spots, len(rest) - 1)
        middles = self.starts[spots] + self.lengths[spots] // 2
        starts = np.unique(np.concatenate((self.starts, middles, middles + 1)))
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
    heavy = _heavy(atoms, bins, sigma)
    if sigma > 0 and _sparse(atoms, heavy):
        atoms = atoms.thinned(heavy)
        heavy = atoms.alone
    singles, left = int(heavy.sum()), float(atoms.masses[~heavy].sum())
    weights = atoms.masses
    group = np.zeros(len(heavy), np.int64)
    if heavy.all():
        group = np.arange(singles)
    elif singles and (left <= 0 or left <= BELIEVED * sigma):
        weights = np.where(heavy, weights, 0.0)
        group = _nearest(atoms.middles[heavy], atoms.middles)
    else:
        wanted = max(1, bins - singles, bins // 2)
        group[~heavy] = _quantiles(atoms.masses[~heavy], wanted, sigma)
        group[heavy] = bins + np.arange(singles)
    # A declared spike that nobody has still means its value, whatever joins it.
    weights = np.where(heavy & (weights <= 0), 1.0, weights)
    return assemble(atoms, group, weights)


def _sparse(atoms: Atoms, heavy: Mask) -> bool:
    """Whether the heavy values hold the better part, and the others more values than POINTS.

    Amounts that are mostly 0 take few other values, which noise cannot show. Spread evenly, they
    would also leave a learner's quantile bins too coarse to see any of them.
    """
    rest = ~heavy & (atoms.masses > 0)
    return bool(
        atoms.lengths[rest].sum() > POINTS
        and atoms.masses[rest].sum() < atoms.masses[heavy].sum() / 2
    )


def _heavy(atoms: Atoms, bins: int, sigma: float) -> Mask:
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


def _nearest(spots: Array, places: Array) -> Whole:
    """Index of the nearest of the rising `spots` for each of `places`."""
    between = (spots[1:] + spots[:-1]) / 2
    return np.searchsorted(between, places)


def _quantiles(masses: Array, bins: int, sigma: float) -> Whole:
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
