"""What teachers and students see of a row, by the schema alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding import image
from fedsynth.methods.sampling.classifier import standardisation
from fedsynth.methods.sampling.intervals import Encoding
from fedsynth.schema import ImageSchema, Schema

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

# Standard deviations of an input beyond which it counts as this many.
_FARTHEST = 10.0


@dataclass(frozen=True)
class Inputs:
    """A table's columns but the target in their public cells, or an image's pixels in [0, 1]."""

    schema: Schema | ImageSchema

    @property
    def classes(self) -> int:
        """Of the target."""
        return self.schema.classes

    @property
    def width(self) -> int:
        """Numbers of a row."""
        if isinstance(self.schema, ImageSchema):
            return self.schema.pixels
        return Encoding(self.schema).cells.width

    def matrix(self, data: Any) -> Floats:
        """Rows [n, width] of `Images`, or of something with conformed `columns`."""
        if isinstance(self.schema, ImageSchema):
            return np.asarray(image.encode(data, self.schema), np.float64)
        return np.asarray(Encoding(self.schema).encode(data.columns), np.float64)

    def labels(self, data: Any) -> Whole:
        """Codes [n] of the target."""
        if isinstance(self.schema, ImageSchema):
            return np.asarray(data.labels, np.int64)
        return np.asarray(data.columns[str(self.schema.target)], np.int64)

    def standards(self, rows: Floats) -> tuple[Floats, Floats]:
        """Mean and scale [width] by which inputs are standardised, from public rows [n, width].

        All pixels have one scale: a pixel that is hardly ever lit would loom large by its own.
        """
        mean, scale = standardisation(rows)
        if isinstance(self.schema, ImageSchema):
            spread = float(np.sqrt(np.mean((rows - mean) ** 2))) if rows.size else 0.0
            scale = np.full(self.width, spread if spread > 0 else 1.0)
        return mean, scale


def standardise(rows: Floats, mean: Floats, scale: Floats) -> Floats:
    """Rows [n, width] in standard deviations from the mean, within +-10."""
    return np.asarray(np.clip((rows - mean) / scale, -_FARTHEST, _FARTHEST))
