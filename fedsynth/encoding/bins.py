"""Bins of a numeric column, and the density within each.

A column's units are cut into *pieces*, runs of units of one density. Each piece belongs to one bin;
a bin may own several pieces, also with another bin's between them (40 hours amid 37 to 45).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.choice import choose
from fedsynth.encoding.grid import Grid
from fedsynth.errors import ReleaseError

Array = NDArray[np.float64]
Whole = NDArray[np.int64]
Mask = NDArray[np.bool_]
Ranges = Sequence[tuple[float, float]]
"""Closed ranges of values on the column's grid, rising and apart."""


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
        piece = choose(self.codes, self.weights, codes, rng)
        within = (rng.random(len(codes)) * self.lengths[piece]).astype(np.int64)
        return self.grid.values(self.starts[piece] + within)

    @property
    def bounds(self) -> tuple[Array, Array]:
        """The lowest and the highest value [size] that each bin holds, drawable or not."""
        first = np.full(self.size, self.grid.units)
        last = np.zeros(self.size, np.int64)
        np.minimum.at(first, self.codes, self.starts)
        np.maximum.at(last, self.codes, self.starts + self.lengths - 1)
        return self.grid.values(first), self.grid.values(last)

    def cut_at(self, edges: Whole) -> Bins:
        """The same pieces, cut at the units `edges`, each part as dense as the whole."""
        inner = edges[(edges > 0) & (edges < self.grid.units)]
        starts = np.union1d(self.starts, inner)
        whole = np.searchsorted(self.starts, starts, side="right") - 1
        parts = np.diff(starts, append=self.grid.units) / self.lengths[whole]
        return Bins(self.grid, starts, self.codes[whole], self.weights[whole] * parts)

    def split(self, sets: Sequence[Ranges]) -> tuple[Bins, Whole]:
        """Bins that lie within or without each of the sets, never across, and the one of these that
        each is a part of.
        """
        cut = self.cut_at(np.concatenate([_edges(self.grid, ranges) for ranges in sets]))
        sides = np.stack([_lie_within(cut, ranges) for ranges in sets], axis=1)
        kinds = np.column_stack((cut.codes, sides))
        _, first, code = np.unique(kinds, axis=0, return_index=True, return_inverse=True)
        code = np.argsort(np.argsort(first))[code.ravel()]
        # A part that nobody seems to be in is still drawn from evenly, if ever.
        empty = np.bincount(code, cut.weights) <= 0
        weights = np.where(empty[code], cut.lengths, cut.weights)
        return Bins(self.grid, cut.starts, code, weights), cut.codes[np.sort(first)]

    def restrict(self, ranges: Ranges) -> tuple[Bins, Array]:
        """Only what lies in the ranges, and the share [size] of each bin that does.

        Where no bin has weight there, values count evenly: a range is met by some bin in any case.
        Bins outside all ranges stay as they are, with share 0.
        """
        cut = self.cut_at(_edges(self.grid, ranges))
        inside, masses = _lie_within(cut, ranges), cut.weights
        if inside.any() and not masses[inside].any():
            masses = cut.lengths.astype(np.float64)
        kept = np.where(inside, masses, 0.0)
        shares = np.bincount(cut.codes, kept) / np.bincount(cut.codes, masses)
        weights = np.where(shares[cut.codes] > 0, kept, cut.weights)
        return Bins(self.grid, cut.starts, cut.codes, weights), shares

    def round_up(self, values: Array, codes: Whole) -> Array:
        """The lowest value of each one's bin that can be drawn and is not below; else inf."""
        units = self._units(values)
        units += self.grid.values(units) < values
        stops = self.starts + self.lengths - 1
        lowest = np.full(len(values), np.inf)
        for code in np.unique(codes):
            own = (self.codes == code) & (self.weights > 0)
            starts, ends = self.starts[own], stops[own]
            rows = np.flatnonzero(codes == code)
            place = np.searchsorted(ends, units[rows])
            rows, place = rows[place < len(ends)], place[place < len(ends)]
            lowest[rows] = self.grid.values(np.maximum(starts[place], units[rows]))
        return lowest

    def round_down(self, values: Array, codes: Whole) -> Array:
        """The highest value of each one's bin that can be drawn and is not above; else -inf."""
        units = self._units(values)
        units -= self.grid.values(units) > values
        stops = self.starts + self.lengths - 1
        highest = np.full(len(values), -np.inf)
        for code in np.unique(codes):
            own = (self.codes == code) & (self.weights > 0)
            starts, ends = self.starts[own], stops[own]
            rows = np.flatnonzero(codes == code)
            place = np.searchsorted(starts, units[rows], side="right") - 1
            rows, place = rows[place >= 0], place[place >= 0]
            highest[rows] = self.grid.values(np.minimum(ends[place], units[rows]))
        return highest

    def _units(self, values: Array) -> Whole:
        return self.grid.offsets(np.clip(values, self.grid.lower, self.grid.upper))

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


def _edges(grid: Grid, ranges: Ranges) -> Whole:
    """Units at which the ranges begin, and the first ones behind them."""
    lows, highs = np.array(ranges, np.float64).reshape(-1, 2).T
    return np.union1d(grid.offsets(lows), grid.offsets(highs) + 1)


def _lie_within(bins: Bins, ranges: Ranges) -> Mask:
    """Which pieces lie in one of the ranges; none may lie across an end of one."""
    lows, highs = np.array(ranges, np.float64).reshape(-1, 2).T
    index = np.searchsorted(bins.grid.offsets(lows), bins.starts, side="right") - 1
    ends = np.append(bins.grid.offsets(highs), -1)
    inside: Mask = (index >= 0) & (bins.starts <= ends[index])
    return inside


def _spell(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(float(value))
