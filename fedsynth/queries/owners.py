"""What a site holds: an owner's rows in the schema's arrays, prepared at the owner."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.data.tables import Conformed, conform
from fedsynth.encoding import image
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import DataError
from fedsynth.federation.client.site import Site
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.columns import Boolean, Categorical

Owned = pd.DataFrame | Images
Owners = Mapping[str, Owned] | Sequence[Owned] | Owned


def sites_of(owners: Owners, schema: Schema | ImageSchema) -> list[Site]:
    """One site an owner, each with its rows conformed to the schema.

    Args:
        owners: tables or image sets by owner's name, or a list of them, or a single one.

    Raises:
        DataError: no owner, no rows at all, or rows that the schema does not fit.
    """
    if isinstance(owners, pd.DataFrame | Images):
        owners = [owners]
    if not isinstance(owners, Mapping):
        owners = {f"client-{i:0{len(str(len(owners)))}d}": o for i, o in enumerate(owners)}
    if not owners:
        raise DataError("no owner of data was given: pass at least one table")
    if not any(len(owned) for owned in owners.values()):
        raise DataError("no owner has any rows: there is nothing to learn from")
    sites = []
    for name, owned in owners.items():
        data = _prepared(owned, schema, str(name))
        sites.append(Site(str(name), data, len(owned)))
    return sites


def _prepared(owned: Owned, schema: Schema | ImageSchema, name: str) -> Conformed | Images:
    if isinstance(schema, ImageSchema):
        if not isinstance(owned, Images):
            raise DataError(f"{name}: the schema describes images, but this owner has a table")
        return _fitting(owned, schema, name)
    if isinstance(owned, Images):
        raise DataError(f"{name}: the schema describes a table, but this owner has images")
    if len(owned):
        return conform(owned, schema, where=name)
    # An owner without rows answers like any other: only the noise tells.
    empty: dict[str, Any] = {
        c.name: np.zeros(0, np.int64 if isinstance(c, Categorical | Boolean) else np.float64)
        for c in schema.modelled
    }
    return Conformed(empty, dict.fromkeys(empty, 0), 0)


def _fitting(images: Images, schema: ImageSchema, name: str) -> Images:
    if images.pixels.shape[1:] != schema.shape:
        raise DataError(
            f"{name}: images of {list(images.pixels.shape[1:])}, the schema says "
            f"{list(schema.shape)}"
        )
    if (schema.target is None) != (images.labels is None):
        raise DataError(f"{name}: the schema and the images disagree about having labels")
    labels = images.labels
    top = schema.classes - 1
    if labels is not None and len(labels) and not 0 <= labels.min() <= labels.max() <= top:
        raise DataError(f"{name}: image labels are codes from 0 to {top}")
    return images


def codes_of(site: Site) -> NDArray[np.int32]:
    """A table's rows under the announced encoding, [n, d]; encoded once a site."""
    if "codes" not in site.derived:
        encoding = site.board.read("encoding", TableEncoding.from_dict)
        site.derived["codes"] = encoding.encode(site.data)
    codes: NDArray[np.int32] = site.derived["codes"]
    return codes


def pixels_of(site: Site, rows: NDArray[np.int64]) -> NDArray[np.float32]:
    """Images as rows of pixels in [0, 1], [len(rows), pixels]."""
    schema = site.board.read("schema", ImageSchema.from_dict)
    return image.encode(site.data.take(rows), schema)
