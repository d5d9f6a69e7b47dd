"""The server half of Fusion (paper 004, Algorithm 2): regenerate, label, unite, train."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.methods.sampling.labels import draw_codes
from fedsynth.papers.fusion.message import ClientModel, Layout

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Cells = list[NDArray[Any]]
Labelling = Literal["likeliest", "drawn"]

# Points drawn for each row wanted, or in all, after which a class counts as too rare.
_DRAWS, _LEAST_DRAWS, _BATCH = 100, 20_000, 10_000


@dataclass(frozen=True, eq=False)
class Source:
    """What points are regenerated from: the messages of clients with rows.

    Attributes:
        layout: of the messages.
        models: of the clients, at least one.
        labelling: the likeliest class by a client's classifier, or one drawn by its probabilities.
    """

    layout: Layout
    models: tuple[ClientModel, ...]
    labelling: Labelling

    def points(self, rows: int, rng: np.random.Generator) -> tuple[Cells, Whole]:
        """Points of clients drawn evenly: cells [rows] of every feature, labels [rows]."""
        return self.points_of(rng.integers(len(self.models), size=rows), rng)

    def points_of(self, owners: Whole, rng: np.random.Generator) -> tuple[Cells, Whole]:
        """A point of each client named, labelled by that client's classifier.

        Args:
            owners: positions in `models`, [n].
        """
        labels = np.zeros(len(owners), np.int64)
        points: Cells = []
        for one in np.unique(owners) if len(owners) else [0]:
            at = np.flatnonzero(owners == one)
            cells, predicted = self._of(self.models[one], len(at), rng)
            points = points or [np.zeros(len(owners), values.dtype) for values in cells]
            for whole, values in zip(points, cells, strict=True):
                whole[at] = values
            labels[at] = predicted
        return points, labels

    def _of(self, model: ClientModel, rows: int, rng: np.random.Generator) -> tuple[Cells, Whole]:
        features = zip(self.layout.features, model.features, strict=True)
        cells = [feature.draw(fitted, rows, rng) for feature, fitted in features]
        if model.classifier is None:
            return cells, np.zeros(rows, np.int64)
        chances = model.classifier.probabilities(self.layout.inputs(cells))
        if self.labelling == "likeliest":
            return cells, chances.argmax(axis=1).astype(np.int64)
        return cells, draw_codes(chances, rng)

    def points_labelled(self, labels: Whole, rng: np.random.Generator) -> Cells:
        """Cells [n] of points that are labelled so, by drawing until there are enough.

        Raises:
            ConfigError: classes that hardly a point is labelled with.
        """
        most = max(_DRAWS * len(labels), _LEAST_DRAWS)
        pending = [np.flatnonzero(labels == c) for c in range(self.layout.classes)]
        points, left = self.points_of(np.zeros(0, np.int64), rng)[0], most
        points = [np.zeros(len(labels), values.dtype) for values in points]
        while missing := sum(map(len, pending)):
            if left <= 0:
                raise ConfigError(
                    f"{len(labels) - missing} of {len(labels)} rows after {most:,} draws: the "
                    "clients' classifiers hardly ever give the class asked for; ask for fewer "
                    "rows, or use a method that conditions exactly, such as private-fusion or aim"
                )
            count = min(_BATCH, left, 2 * self.layout.classes * missing)
            cells, predicted = self.points(count, rng)
            for c, places in enumerate(pending):
                fits = np.flatnonzero(predicted == c)[: len(places)]
                for whole, values in zip(points, cells, strict=True):
                    whole[places[: len(fits)]] = values[fits]
                pending[c] = places[len(fits) :]
            left -= count
        return points


def source_of(
    layout: Layout, messages: Floats, clients: Sequence[str], labelling: Labelling
) -> Source:
    """What points can be drawn from.

    Raises:
        FederationError: a message that is none.
        ConfigError: none of clients with rows.
    """
    decoded = [
        layout.decode(message, name) for message, name in zip(messages, clients, strict=True)
    ]
    models = tuple(model for model in decoded if model is not None)
    if not models:
        raise ConfigError("no client that answered has any rows: there is nothing to learn from")
    return Source(layout, models, labelling)


def shares_of(points: int, clients: int) -> Whole:
    """How many points each client has: equal shares, the first ones more by one."""
    each, more = divmod(points, clients)
    return np.full(clients, each, np.int64) + (np.arange(clients) < more)


def union(source: Source, points: int, seed: int) -> tuple[Floats, Whole]:
    """Regenerated points of all clients in equal shares: inputs [points, width], labels."""
    count = len(source.models)
    owners = np.repeat(np.arange(count), shares_of(max(points, count), count))
    cells, labels = source.points_of(owners, np.random.default_rng([seed, 1]))
    return source.layout.inputs(cells), labels
