"""Rows from what a fit left behind; all of it is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.methods.gan.networks import Learned, tables_of
from fedsynth.methods.sampling.drawing import Columns, demanded
from fedsynth.methods.sampling.labels import wanted_labels
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.conditions import condition_on
from fedsynth.schema.target import conditions, target_index

Labels = NDArray[np.int64]


def _cells(
    learned: Learned,
    labels: Labels | None,
    rows: int,
    rng: np.random.Generator,
    wish: NDArray[np.float64] | None = None,
) -> NDArray[np.float32]:
    """Cells [rows, width] of rows with given classes, or of no class where there are none.

    Args:
        wish: shares [classes, width] or [1, width] of the cells that rows are asked for, instead of
            the released ones.
    """
    game, weights = learned.game, torch.from_numpy(learned.generators)
    source = torch.Generator().manual_seed(int(rng.integers(2**62)))
    own = None if labels is None else torch.from_numpy(labels)
    if game.parts == 1:
        asked = own
        if game.asks:
            given = learned.conditions
            if wish is not None:
                given = replace(given, cells=wish)
            asked = given.complete(own, rows, source)
        part = game.generator_weights(weights, 0)
        return np.asarray(game.generator.sample(part, asked, rows, source).numpy())
    assert labels is not None
    found = np.zeros((rows, game.cells.width), np.float32)
    for number in np.unique(labels):
        at = np.flatnonzero(labels == number)
        part = game.generator_weights(weights, int(number))
        found[at] = game.generator.sample(part, None, len(at), source).numpy()
    return found


def table_columns(
    learned: Learned,
    labels: Labels | None,
    rows: int,
    rng: np.random.Generator,
    wish: NDArray[np.float64] | None,
) -> Columns:
    """Columns of rows with given classes, or of no class where there are none: see
    :data:`fedsynth.methods.sampling.drawing.Draw`.

    Args:
        wish: see :class:`Wish`.
    """
    encoding = learned.known.encoding
    assert encoding is not None
    cells = _cells(learned, labels, rows, rng, wish)
    stops = np.cumsum(learned.game.cells.columns)[:-1]
    codes = np.stack([part.argmax(1) for part in np.split(cells, stops, axis=1)], axis=1)
    if labels is not None:
        codes = np.insert(codes, target_index(encoding.schema), labels, axis=1)
    return encoding.columns(codes, rng)


@dataclass(frozen=True)
class Wish:
    """What rows of a table are drawn by.

    Attributes:
        frequencies: of the classes [classes]; empty without classes.
        cells: shares [classes, width] or [1, width] of the cells that rows are asked for; None for
            the released ones.
    """

    frequencies: NDArray[np.float64]
    cells: NDArray[np.float64] | None = None


def wished(learned: Learned, schema: Schema, where: Mapping[str, Any] | None) -> Wish:
    """Asks for the first condition that the generator can be asked.

    By the released tables, class and cell are then drawn as they are among the rows that meet it:
    were every class asked for the cell as often as it comes, the condition would move no class.
    """
    encoding, game, known = learned.known.encoding, learned.game, learned.known
    frequencies = known.frequencies if conditions(schema) else np.zeros(0)
    tables = tables_of(game, known)
    if not game.asks or encoding is None or tables is None:
        return Wish(frequencies)
    if len(frequencies) and known.profiles is None:
        return Wish(frequencies)
    modelled = [column.name for column in schema.modelled]
    names = [n for n in modelled if not (game.labelled and n == schema.target)]
    for name, value in (where or {}).items():
        if name not in names:
            continue
        start = sum(game.cells.columns[: names.index(name)])
        at = slice(start, start + game.cells.columns[names.index(name)])
        # A category that the noise has emptied can be asked for all the same.
        own = tables[:, at] + 1e-9
        own = own * encoding.likelihood(name, condition_on(schema.column(name), value))
        cells = np.zeros_like(tables)
        cells[:, at] = own / own.sum(axis=1, keepdims=True)
        if len(frequencies):
            frequencies = frequencies * own.sum(axis=1)
            frequencies = frequencies / frequencies.sum()
        return Wish(frequencies, cells)
    return Wish(frequencies)


def drawn_images(
    learned: Learned,
    schema: ImageSchema,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    seed: int | None,
) -> Images:
    """Images of the classes asked for. Raises as :meth:`FedGAN.sample`."""
    rng = demanded(rows, seed)
    labels = wanted_labels(schema, learned.known.frequencies, rows, where, proportions, rng)
    return Images(image.decode(_cells(learned, labels, rows, rng), schema), labels)
