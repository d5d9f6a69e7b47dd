"""What a fitted Fusion gives: rows and probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.codec import GIVEN, Named
from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ConfigError, FederationError, ReleaseError
from fedsynth.methods.copula.families import FAMILIES
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.labels import demand_shares, draw_labels
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.regeneration import Labelling, Source, source_of, union
from fedsynth.schema import ImageSchema, Schema
from fedsynth.views import Outlined

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Outlined):
    """What Fusion leaves behind.

    Attributes:
        messages: as the clients sent them, [clients, dim].
        frequencies: shares of the classes among the regenerated points; empty without classes.
        vector: of the classifier that was trained on these; empty without classes.
        schema, layout, labelling: how messages are read, and points labelled.
        clients: names of who sent the messages, where they are known.
    """

    messages: Floats
    frequencies: Floats
    vector: Annotated[Floats, Named("classifier")]
    schema: Annotated[Schema | ImageSchema, GIVEN]
    layout: Annotated[Layout, GIVEN]
    labelling: Annotated[Labelling, GIVEN]
    clients: Annotated[tuple[str, ...], GIVEN] = ()

    @cached_property
    def source(self) -> Source:
        """Of points.

        Raises:
            FederationError: a message that is none.
            ConfigError: none of clients with rows.
        """
        names = self.clients or [f"client {k + 1}" for k in range(len(self.messages))]
        return source_of(self.layout, self.messages, names, self.labelling)

    @cached_property
    def classifier(self) -> Classifier | None:
        """None without classes."""
        layout = self.layout
        if not layout.classes:
            return None
        return Classifier.from_vector(self.vector, layout.width, layout.classes)

    @property
    def failures(self) -> dict[str, int]:
        """For how many features, of all clients together, each family failed to fit."""
        total = sum((model.failures for model in self.source.models), np.zeros(len(FAMILIES)))
        return {name: int(count) for name, count in zip(FAMILIES, total, strict=True) if count}

    def check(self) -> None:
        try:
            _ = self.source
        except (KeyError, TypeError, ValueError, ConfigError, FederationError):
            raise ReleaseError("the model's arrays do not fit the schema") from None
        demand_shares(self.frequencies, self.layout.classes)
        _ = self.classifier

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Features of a client drawn at random, and its classifier's label; conditions on the
        label are met by drawing until there are enough."""
        schema, source = self.schema, self.source
        if isinstance(schema, ImageSchema):
            return self._images(schema, rows, where, proportions, seed)

        def draw(
            labels: NDArray[np.int64] | None, count: int, rng: np.random.Generator
        ) -> dict[str, NDArray[Any]]:
            if labels is not None:
                return source.layout.name_columns(source.points_labelled(labels, rng))
            cells, predicted = source.points(count, rng)
            columns = source.layout.name_columns(cells)
            return {**columns, str(schema.target): predicted} if source.layout.classes else columns

        # Where no label is asked for it is drawn with the row, as the paper does.
        labelled = bool(proportions) or str(schema.target) in (where or {})
        frequencies = self.frequencies if labelled else np.zeros(0)
        return draw_table(schema, frequencies, rows, where, proportions, seed, draw)

    def _images(
        self,
        schema: ImageSchema,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> Images:
        rng = np.random.default_rng(seed)
        labels = draw_labels(schema, self.frequencies, rows, where, proportions, rng)
        if labels is not None and (where or proportions):
            cells = self.source.points_labelled(labels, rng)
        else:
            cells, predicted = self.source.points(rows, rng)
            labels = predicted if schema.classes else None
        return Images(image.decode(np.column_stack(cells) / schema.maximum, schema), labels)


def fuse(learned: Learned, points: int, seed: int) -> Learned:
    """Regenerate in equal shares of the clients, and train the global classifier on the union."""
    classes = learned.layout.classes
    if not classes:
        return learned
    x, labels = union(learned.source, points, seed)
    classifier = Classifier.train(x, labels, classes, seed=seed)
    return with_classifier(
        learned, classifier, np.bincount(labels, minlength=classes) / len(labels)
    )


def with_classifier(learned: Learned, classifier: Classifier, frequencies: Floats) -> Learned:
    """With a classifier, and the classes' shares among the points that it learned from."""
    return replace(learned, vector=classifier.to_vector(), frequencies=frequencies)


def classify(
    schema: Schema | ImageSchema, classifier: Classifier | None, data: pd.DataFrame | Images
) -> NDArray[np.float64]:
    """Probabilities of every class: see :meth:`Fusion.probabilities`."""
    layout = Layout(schema)
    cells: list[NDArray[Any]]
    if isinstance(schema, Schema):
        columns = conform_unlabelled(data, schema).columns
        cells = [columns[f.column.name] for f in layout.features if f.column]
    else:
        pixels = image.encode(conform_unlabelled(data, schema), schema)
        cells = list(pixels.astype(np.float64).T * schema.maximum)
    assert classifier is not None
    return classifier.probabilities(layout.inputs(cells))
