"""What a generative adversarial network's records are made of: see :mod:`fedsynth.models.gan`."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# Sides of an image over those of the first layer of a generator of convolutions.
UPSAMPLING = 4


@dataclass(frozen=True)
class Cells:
    """What a record's cells are: exactly one of `columns` and `shape` is given.

    Attributes:
        columns: of a table: 0 for a number, or the number of a column's categories, at least 1.
        shape: of an image: height and width, and channels where there are several.

    Raises:
        ValueError: neither or both, or sizes that are none.
    """

    columns: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for name in ("columns", "shape"):
            object.__setattr__(self, name, tuple(int(size) for size in getattr(self, name)))
        if bool(self.columns) == bool(self.shape):
            raise ValueError("give either a table's columns or an image's shape")
        if min(self.columns, default=0) < 0 or min(self.shape, default=1) < 1:
            raise ValueError("sizes of columns must not be negative, those of images positive")
        if self.shape and len(self.shape) not in (2, 3):
            raise ValueError(f"shape is {self.shape}; it must be height, width (and channels)")

    @property
    def width(self) -> int:
        """Cells of a record."""
        return sum(max(1, size) for size in self.columns) if self.columns else math.prod(self.shape)

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return self.shape[2] if len(self.shape) == 3 else 1

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` gives the same cells back."""
        return {"columns": list(self.columns), "shape": list(self.shape)}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Cells:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        return Cells(tuple(plain["columns"]), tuple(plain["shape"]))

    @property
    def convolves(self) -> bool:
        """Whether convolutions suit: an image of at least 16 pixels a side, divisible by 4."""
        sides = self.shape[:2]
        return bool(sides) and min(sides) >= 16 and not any(s % UPSAMPLING for s in sides)
