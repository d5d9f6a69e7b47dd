"""Columns counted finer, each by itself, than tables of several columns can afford."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ReleaseError

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Refinement:
    """An encoding whose codes each lie within one of another, coarser one's.

    Attributes:
        finer: bins cut wherever those of either of two encodings are, and every category apart.
        parents: per column the coarse code of each fine one; None where none is finer.
    """

    finer: TableEncoding
    parents: tuple[Whole | None, ...]

    @classmethod
    def of(cls, coarse: TableEncoding, narrow: TableEncoding) -> Refinement:
        """The refinement of ``coarse`` by the bins of ``narrow``, of the same histogram."""
        bins, frequencies = list(coarse.bins), list(coarse.frequencies)
        parents: list[Whole | None] = [None] * len(bins)
        for k, (wide, other) in enumerate(zip(coarse.bins, narrow.bins, strict=True)):
            if isinstance(wide, Groups):
                bins[k], frequencies[k], parents[k] = _part(wide, coarse.frequencies[k])
            elif isinstance(wide, Bins) and isinstance(other, Bins) and other.size > wide.size:
                bins[k], frequencies[k], parents[k] = _cut(wide, other, coarse.frequencies[k])
        finer = TableEncoding(coarse.schema, tuple(bins), tuple(frequencies), coarse.records)
        return cls(finer, tuple(parents))

    @property
    def columns(self) -> list[int]:
        """Those that have finer codes."""
        return [k for k, parents in enumerate(self.parents) if parents is not None]

    def spread(
        self, coarse: TableEncoding, column: int, counts: Array, deviations: Array, sigma: float
    ) -> Bins | Groups:
        """The coarse codes of a column, with values spread within each by its finer counts.

        Counts of categories are joined to the histogram's by inverse variance. Those of bins
        correct what it showed, the more the further they are from it for their noise: the squared
        distance, less the noise's, is taken for the histogram's own error (the positive part of
        James and Stein's estimator).

        Args:
            coarse: the encoding that this refines.
            counts, deviations: of records in the column's finer codes, [codes], and of their noise.
            sigma: of the noise of a count of the histogram.
        """
        wide, parents = coarse.bins[column], self.parents[column]
        finer = self.finer.bins[column]
        assert parents is not None and wide is not None
        known = self.finer.frequencies[column] * self.finer.records
        apart, noise = counts - known, np.broadcast_to(deviations**2, counts.shape)
        if isinstance(wide, Groups):
            share = sigma**2 / np.maximum(sigma**2 + noise, 1e-300)
            masses = np.maximum(known + share * apart, 0.0)[: len(wide.codes)]
            empty = np.bincount(wide.codes, masses) <= 0
            return Groups(wide.codes, np.where(empty[wide.codes], wide.weights, masses))
        distance = float(apart @ apart)
        trusted = max(0.0, 1 - float(noise.sum()) / distance) if distance > 0 else 0.0
        masses = np.maximum(known + trusted * apart, 0.0)
        assert isinstance(finer, Bins)
        held = np.bincount(finer.codes, finer.weights)[finer.codes]
        weights, codes = masses[finer.codes] * finer.weights / held, parents[finer.codes]
        empty = np.bincount(codes, weights, minlength=wide.size) <= 0
        weights = np.where(empty[codes], wide.cut_at(finer.starts).weights, weights)
        return Bins(wide.grid, finer.starts, codes, weights)

    def to_dict(self) -> dict[str, Any]:
        """A document that JSON keeps exactly."""
        parents = [None if own is None else own.tolist() for own in self.parents]
        return {"encoding": self.finer.to_dict(), "parents": parents}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Refinement:
        """Inverse of `to_dict`; raises ReleaseError where the document is damaged."""
        try:
            finer = TableEncoding.from_dict(document["encoding"])
            parents = tuple(
                None if own is None else np.array(own, np.int64) for own in document["parents"]
            )
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ReleaseError("refinement: the document is damaged; write it again") from error
        return cls(finer, parents)


def _cut(wide: Bins, other: Bins, shares: Array) -> tuple[Bins, Array, Whole]:
    """Bins of both, their shares [codes], and the code of ``wide`` that each lies in."""
    pieces, others = wide.cut_at(other.starts), other.cut_at(wide.starts)
    both = np.column_stack((pieces.codes, others.codes))
    _, first, codes = np.unique(both, axis=0, return_index=True, return_inverse=True)
    codes = np.argsort(np.argsort(first))[codes.ravel()]
    parents = pieces.codes[np.sort(first)]
    held = np.bincount(codes, pieces.weights)
    within = held / np.bincount(parents, held)[parents]
    # What nobody seems to be in is still drawn from evenly, if ever.
    weights = np.where(held[codes] > 0, pieces.weights, pieces.lengths)
    missing = np.arange(wide.size, len(shares))
    return (
        Bins(wide.grid, pieces.starts, codes, weights),
        np.concatenate((shares[parents] * within, shares[wide.size :])),
        np.concatenate((parents, missing)),
    )


def _part(wide: Groups, shares: Array) -> tuple[None, Array, Whole]:
    """Every category apart: its share, and its group."""
    within = wide.weights / np.bincount(wide.codes, wide.weights)[wide.codes]
    missing = np.arange(wide.size, len(shares))
    return (
        None,
        np.concatenate((shares[wide.codes] * within, shares[wide.size :])),
        np.concatenate((wide.codes, missing)),
    )
