"""Records as public coordinates and back: what the features are computed of.

Nothing here is learned. An image's coordinates are its pixels in [0, 1], sheared upright, and how
far it leaned. A table's are, for a number, its place between the bounds in [-1, 1], and for a
category one coordinate each. Where more numbers than `MAX_CELLS` lie between the bounds, which then
may be far from the values, its place is that on the copula's ladder of cells, which grow with the
distance from 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.data.images import Images
from fedsynth.data.tables import Conformed
from fedsynth.encoding import image
from fedsynth.encoding.grid import MAX_CELLS
from fedsynth.encoding.histogram import grid_of
from fedsynth.methods.copula.cells import ladder
from fedsynth.methods.embedding.upright import LARGEST, shear, slants_of
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.columns import Boolean, Categorical, Modelled, Numeric
from fedsynth.schema.target import conditions

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ImageCoding:
    """Pixels, [height, width, channels] flattened; upright ones have their slant behind them."""

    schema: ImageSchema
    upright: bool

    @property
    def shape(self) -> tuple[int, int, int]:
        height, width, *rest = self.schema.shape
        return height, width, rest[0] if rest else 1

    @property
    def width(self) -> int:
        """Coordinates of a record."""
        return self.schema.pixels + self.upright

    def coordinates(self, data: Images, rows: NDArray[np.int64]) -> Floats:
        """float64 [len(rows), width]."""
        flat = image.encode(data.take(rows), self.schema).astype(np.float64)
        if not self.upright:
            return flat
        images = flat.reshape(-1, *self.shape)
        slants = slants_of(images)
        return np.column_stack([shear(images, -slants).reshape(flat.shape), slants / LARGEST])

    def intensities(self, records: Floats) -> Floats:
        """Pixels [n, pixels] in [0, 1] of finished records [n, width]."""
        flat = records[:, : self.schema.pixels].clip(0, 1)
        if not self.upright:
            return flat
        images = flat.reshape(-1, *self.shape)
        return shear(images, records[:, -1] * LARGEST).reshape(flat.shape).clip(0, 1)

    def classes_of(self, data: Images, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of the classes, all 0 without labels."""
        if data.labels is None:
            return np.zeros(len(rows), np.int64)
        return np.asarray(data.labels[rows], np.int64)

    def finish(self, raw: Tensor, generator: torch.Generator) -> Tensor:
        """Records from what the generator puts out, [n, width]."""
        pixels, slants = raw[:, : self.schema.pixels], raw[:, self.schema.pixels :]
        return torch.cat([torch.sigmoid(pixels), slants.clamp(-1, 1)], dim=1)


@dataclass(frozen=True)
class Slot:
    """Where a column stands: ``start``, then ``size`` categories; or a number, and its gap."""

    column: Modelled
    start: int
    size: int
    gap: bool

    @property
    def numeric(self) -> bool:
        return self.size == 0

    @property
    def cells(self) -> tuple[int, int]:
        """Where one-hot coordinates begin and end; nothing for a number that has no gaps."""
        if self.numeric:
            return self.start + 1, self.start + (3 if self.gap else 1)
        return self.start, self.start + self.size


@dataclass(frozen=True)
class TableCoding:
    """Modelled columns, without the target where the model has classes.

    One-hot coordinates are 1 or 0 less one over their number. A missing category is a category
    more; a missing number stands in the middle, and one of two coordinates beside it says so.
    """

    schema: Schema

    @cached_property
    def slots(self) -> tuple[Slot, ...]:
        slots, start = [], 0
        for column in self.schema.modelled:
            if conditions(self.schema) and column.name == self.schema.target:
                continue
            size = 0
            if isinstance(column, Categorical | Boolean):
                size = len(column.categories) + column.missing
            slot = Slot(column, start, size, column.missing)
            slots.append(slot)
            start = max(slot.cells[1], start + 1)
        return tuple(slots)

    @property
    def width(self) -> int:
        """Coordinates of a record."""
        last = self.slots[-1]
        return max(last.cells[1], last.start + 1)

    def coordinates(self, data: Conformed, rows: NDArray[np.int64]) -> Floats:
        """float64 [len(rows), width], each in [-1, 1]."""
        coordinates = np.zeros((len(rows), self.width))
        for slot in self.slots:
            values = data.columns[slot.column.name][rows]
            start, stop = slot.cells
            if slot.numeric:
                numbers = values.astype(np.float64)
                gaps = np.isnan(numbers)
                coordinates[:, slot.start] = np.where(gaps, 0.0, _scale(numbers, slot.column))
                codes = gaps.astype(np.int64)
            else:
                codes = np.where(values < 0, slot.size - 1, values).astype(np.int64)
            if stop > start:
                coordinates[:, start:stop] = -1 / (stop - start)
                coordinates[np.arange(len(rows)), start + codes] += 1
        return coordinates

    def classes_of(self, data: Conformed, rows: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of the classes, all 0 without a categorical target."""
        if not conditions(self.schema):
            return np.zeros(len(rows), np.int64)
        return np.asarray(data.columns[str(self.schema.target)][rows], np.int64)

    def finish(self, raw: Tensor, generator: torch.Generator) -> Tensor:
        """Records from what the generator puts out: numbers clamped, categories drawn.

        Both act on the record alone: gradients pass as if numbers were free and categories their
        probabilities (Jang, Gu, Poole 2017, straight-through Gumbel-softmax).
        """
        parts = []
        for slot in self.slots:
            start, stop = slot.cells
            if slot.numeric:
                number = raw[:, slot.start : slot.start + 1]
                parts.append(number + (number.clamp(-1, 1) - number).detach())
            if stop > start:
                parts.append(_sample_categories(raw[:, start:stop], generator))
        return torch.cat(parts, dim=1)

    def columns(self, records: Floats) -> Mapping[str, NDArray[Any]]:
        """Columns as `Conformed.columns` of finished records [n, width]."""
        columns: dict[str, NDArray[Any]] = {}
        for slot in self.slots:
            start, stop = slot.cells
            codes = records[:, start:stop].argmax(axis=1) if stop > start else None
            if slot.numeric:
                assert not isinstance(slot.column, Categorical | Boolean)
                values = _unscale(records[:, slot.start].clip(-1, 1), slot.column)
                columns[slot.column.name] = (
                    values if codes is None else _insert_gaps(values, codes == 1)
                )
            else:
                assert codes is not None
                gone = slot.gap & (codes == slot.size - 1)
                columns[slot.column.name] = np.where(gone, -1, codes).astype(np.int64)
        return columns


Coding = ImageCoding | TableCoding


def coding_of(schema: Schema | ImageSchema, upright: bool) -> Coding:
    """How records of a schema become coordinates; whether images are sheared upright."""
    return ImageCoding(schema, upright) if isinstance(schema, ImageSchema) else TableCoding(schema)


def _scale(values: Floats, column: Modelled) -> Floats:
    """Places in [-1, 1] between the bounds; 0 where these are one."""
    assert not isinstance(column, Categorical | Boolean)
    if (rungs := _rungs(column)) is not None:
        return np.asarray(np.interp(values, rungs, np.linspace(-1, 1, len(rungs))), np.float64)
    # Halves first: the distance between huge bounds may overflow.
    half = column.high / 2 - column.low / 2
    if half == 0:
        return np.zeros(len(values))
    places: Floats = (values / 2 - column.low / 2) / half * 2 - 1
    return places


def _unscale(places: Floats, column: Numeric) -> Floats:
    """Values of places in [-1, 1]."""
    if (rungs := _rungs(column)) is not None:
        return np.asarray(np.interp(places, np.linspace(-1, 1, len(rungs)), rungs), np.float64)
    share = (places + 1) / 2
    return column.low * (1 - share) + column.high * share


def _rungs(column: Numeric) -> Floats | None:
    """Rising values from bound to bound that lie evenly apart; None if the bounds alone do."""
    grid = grid_of(column)
    if not grid.origin or grid.units <= MAX_CELLS:
        return None
    return grid.values(np.unique(np.append(ladder(grid), (0, grid.units - 1))))


def _insert_gaps(values: Floats, gaps: NDArray[np.bool_]) -> Floats:
    return np.where(gaps, np.nan, values)


def _sample_categories(logits: Tensor, generator: torch.Generator) -> Tensor:
    """One-hot draws less their mean coordinate, by the Gumbel-max trick."""
    size = logits.shape[1]
    uniform = torch.rand(logits.shape, generator=generator).clamp(1e-6, 1 - 1e-6)
    noisy = logits - torch.log(-torch.log(uniform))
    soft = noisy.softmax(dim=1)
    hard = functional.one_hot(noisy.argmax(dim=1), size).to(soft.dtype)
    return soft + (hard - soft).detach() - 1 / size
