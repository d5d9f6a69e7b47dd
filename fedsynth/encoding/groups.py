"""Categories of which the rare ones share a code, to be told apart again when rows are drawn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ReleaseError

Array = NDArray[np.float64]
Whole = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Groups:
    """The code of every category [k], and its weight [k] >= 0 among those of the same code.

    Codes are numbered from 0 without gaps; every code has a category of positive weight.
    """

    codes: Whole
    weights: Array

    def __post_init__(self) -> None:
        codes, weights = self.codes, self.weights
        if not (codes.ndim == 1 and len(codes) and codes.shape == weights.shape):
            raise ReleaseError("groups: codes and weights must be lists of one length, not 0")
        if (codes < 0).any() or (codes >= len(codes)).any():
            raise ReleaseError("groups: codes must be 0 .. number of groups - 1")
        if not np.isfinite(weights).all() or (weights < 0).any():
            raise ReleaseError("groups: weights must be finite and not negative")
        if (np.bincount(codes, weights) <= 0).any():
            raise ReleaseError("groups: every group must have a category of positive weight")

    @classmethod
    def of(cls, masses: Array, least: float) -> Groups | None:
        """Categories that hold less than ``least`` records as one group; None for fewer than two.

        Rare categories share their group by their masses, evenly where all of them are 0.
        """
        rare = masses < least
        if int(rare.sum()) < 2:
            return None
        codes = np.cumsum(~rare) - 1
        codes[rare] = int((~rare).sum())
        weights = np.where(rare, masses, 1.0)
        if not weights[rare].any():
            weights[rare] = 1.0
        return cls(codes.astype(np.int64), weights.astype(np.float64))

    @property
    def size(self) -> int:
        """Number of groups."""
        return int(self.codes.max()) + 1

    def encode(self, values: Whole) -> Whole:
        """The group of each category."""
        return self.codes[values]

    def decode(self, codes: Whole, rng: np.random.Generator) -> Whole:
        """A category for each group, by its weight."""
        order = np.argsort(self.codes, kind="stable")
        sums = np.cumsum(self.weights[order])
        ends = np.cumsum(np.bincount(self.codes))
        below = np.concatenate(([0.0], sums[ends[:-1] - 1]))
        target = below[codes] + rng.random(len(codes)) * (sums[ends - 1] - below)[codes]
        found = np.searchsorted(sums, target, side="right")
        # A target rounded up to its group's last sum must not fall into the next group.
        drawable = np.where(self.weights[order] > 0, np.arange(len(order)), -1)
        last = np.maximum.accumulate(drawable)[ends - 1]
        return order[np.minimum(found, last[codes])]

    def within(self, allowed: NDArray[np.bool_]) -> tuple[Groups, Array]:
        """Only the ``allowed`` categories [k], and the share of each group that they hold.

        Groups without an allowed category stay as they are, with share 0.
        """
        kept = np.where(allowed, self.weights, 0.0)
        shares = np.bincount(self.codes, kept) / np.bincount(self.codes, self.weights)
        weights = np.where(shares[self.codes] > 0, kept, self.weights)
        return Groups(self.codes, weights), shares

    def labels(self, names: list[str]) -> list[str]:
        """Each group as a report names it: its category, or how many share it."""
        found = []
        for code in range(self.size):
            own = np.flatnonzero(self.codes == code)
            found.append(names[own[0]] if len(own) == 1 else f"{len(own)} rare values")
        return found

    def to_dict(self) -> dict[str, Any]:
        """Lists of numbers that JSON keeps exactly."""
        return {"codes": self.codes.tolist(), "weights": self.weights.tolist()}

    @classmethod
    def from_dict(cls, document: Mapping[str, Any]) -> Groups:
        """Inverse of `to_dict`; raises ReleaseError where the document is damaged."""
        try:
            codes = np.array(document["codes"], np.int64)
            weights = np.array(document["weights"], np.float64)
        except (KeyError, TypeError, ValueError, OverflowError) as error:
            raise ReleaseError("groups: codes and weights must be lists of numbers") from error
        return cls(codes, weights)
