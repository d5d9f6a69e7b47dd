"""Images as flat intensities in [0, 1] and back."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.tables import Images
from fedsynth.errors import DataError
from fedsynth.schema import ImageSchema


def encode(images: Images, schema: ImageSchema) -> NDArray[np.float32]:
    """Intensities [n, pixels]: 0 is black, 1 the schema's white; a brighter pixel counts as white.

    Raises DataError for images of another shape than the schema's.
    """
    if images.pixels.shape[1:] != schema.shape:
        raise DataError(
            f"images of shape {list(images.pixels.shape[1:])}: the schema says {list(schema.shape)}"
        )
    flat = images.pixels.reshape(len(images.pixels), schema.pixels).astype(np.float32)
    return np.asarray(np.minimum(flat / schema.maximum, 1), np.float32)


def decode(
    intensities: NDArray[np.floating[Any]],
    schema: ImageSchema,
    rng: np.random.Generator | None = None,
) -> NDArray[np.uint8]:
    """Pixels [n, *shape] from intensities [n, pixels] in [0, 1], each rounded to the nearest.

    With `rng` the fraction decides by chance instead, which keeps the mean intensity exact. Raises
    DataError for another shape, or values that are not in [0, 1].
    """
    values = np.asarray(intensities, np.float64)
    if values.ndim != 2 or values.shape[1] != schema.pixels:
        raise DataError(f"intensities of shape {values.shape}: expected [images, {schema.pixels}]")
    if not ((values >= 0) & (values <= 1)).all():
        raise DataError("intensities must lie in [0, 1]; apply a sigmoid to logits first")
    scaled = values * schema.maximum
    shift = 0.5 if rng is None else rng.random(scaled.shape)
    # A product just below a whole number plus a shift just below 1 may round up to one too many.
    whole = np.minimum(np.floor(scaled + shift), schema.maximum)
    return whole.astype(np.uint8).reshape(len(values), *schema.shape)
