"""Categories of which the rare ones share a code, to be told apart again when rows are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.choice import choose
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
    def of(cls, masses: Array, least: float, sides: NDArray[np.bool_]) -> Groups | None:
        """Categories that hold less than `least` records share a group, by these masses; evenly
        where all of them are 0.

        sides [k, conditions]: only categories that agree on each condition share a group. None
        where no two do.
        """
        rare = np.flatnonzero(masses < least)
        _, kind = np.unique(sides[rare], axis=0, return_inverse=True)
        kind = kind.ravel()
        together = np.bincount(kind, minlength=1)[kind] > 1
        rare, kind = rare[together], kind[together]
        if not len(rare):
            return None
        alone = np.ones(len(masses), bool)
        alone[rare] = False
        codes = np.cumsum(alone) - 1
        codes[rare] = int(alone.sum()) + np.unique(kind, return_inverse=True)[1]
        weights = np.where(alone, 1.0, masses)
        empty = np.bincount(codes, weights) <= 0
        weights = np.where(empty[codes], 1.0, weights)
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
        return choose(self.codes, self.weights, codes, rng)

    def restrict(self, allowed: NDArray[np.bool_]) -> tuple[Groups, Array]:
        """Only the `allowed` categories [k], and the share of each group that they hold.

        Where none of them has weight, categories count evenly. Groups without an allowed category
        stay as they are, with share 0.
        """
        masses = self.weights
        if allowed.any() and not masses[allowed].any():
            masses = np.ones(len(masses))
        kept = np.where(allowed, masses, 0.0)
        shares = np.bincount(self.codes, kept) / np.bincount(self.codes, masses)
        weights = np.where(shares[self.codes] > 0, kept, self.weights)
        return Groups(self.codes, weights), shares

    def labels(self, names: Sequence[str]) -> list[str]:
        """Each group as a report names it: its category, or the first of several."""
        _, first, sizes = np.unique(self.codes, return_index=True, return_counts=True)
        return [
            names[place] if size == 1 else f"{names[place]} or {size - 1} more rare values"
            for place, size in zip(first, sizes, strict=True)
        ]

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
