"""What a fitted Fusion gives: rows, probabilities, and itself as arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ConfigError, FederationError, ReleaseError
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.drawing import demanded, draw_table
from fedsynth.methods.sampling.labels import wanted_labels
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.papers.fusion.message import Categories, Layout
from fedsynth.papers.fusion.regeneration import Labelling, Learned, source_of
from fedsynth.schema import ImageSchema, Schema


def draw_rows(
    schema: Schema | ImageSchema,
    learned: Learned,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    seed: int | None,
) -> pd.DataFrame | Images:
    """Synthetic rows of a fitted Fusion: see :meth:`Fusion.sample`."""
    source = learned.source
    if isinstance(schema, ImageSchema):
        return _images(schema, learned, rows, where, proportions, seed)

    def draw(
        labels: NDArray[np.int64] | None, count: int, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        if labels is not None:
            return source.layout.named(source.points_labelled(labels, rng))
        cells, own = source.points(count, rng)
        found = source.layout.named(cells)
        return {**found, str(schema.target): own} if source.layout.classes else found

    # Without a wish for the label it is drawn with the row, as the paper does.
    labelled = bool(proportions) or str(schema.target) in (where or {})
    frequencies = learned.frequencies if labelled else np.zeros(0)
    return draw_table(schema, frequencies, rows, where, proportions, seed, draw)


def _images(
    schema: ImageSchema,
    learned: Learned,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    seed: int | None,
) -> Images:
    rng = demanded(rows, seed)
    labels = wanted_labels(schema, learned.frequencies, rows, where, proportions, rng)
    if labels is not None and (where or proportions):
        cells = learned.source.points_labelled(labels, rng)
    else:
        cells, own = learned.source.points(rows, rng)
        labels = own if schema.classes else None
    return Images(image.decode(np.column_stack(cells) / schema.maximum, schema), labels)


def classify(
    schema: Schema | ImageSchema, classifier: Classifier | None, data: pd.DataFrame | Images
) -> NDArray[np.float64]:
    """Probabilities of every class: see :meth:`Fusion.probabilities`."""
    layout = Layout(schema)
    if isinstance(schema, Schema):
        columns = conform_unlabelled(data, schema).columns
        cells: list[NDArray[Any]] = [columns[f.column.name] for f in layout.features if f.column]
    else:
        if not isinstance(data, Images):
            raise ConfigError("the schema describes images, and a table was given")
        if not schema.classes:
            raise ConfigError("there is no classifier: the schema has no target of categories")
        cells = list(image.encode(data, schema).astype(np.float64).T * schema.maximum)
    assert classifier is not None
    return classifier.probabilities(layout.inputs(cells))


def arrays_of(learned: Learned) -> dict[str, NDArray[Any]]:
    """A fitted Fusion's arrays."""
    classifier = learned.classifier
    return {
        "messages": learned.messages,
        "frequencies": learned.frequencies,
        "classifier": np.zeros(0) if classifier is None else classifier.to_vector(),
    }


def learned_from(
    schema: Schema | ImageSchema,
    arrays: Mapping[str, NDArray[Any]],
    categories: Categories,
    labelling: Labelling,
) -> Learned:
    """The inverse of :func:`arrays_of`. Raises ReleaseError where the arrays do not fit."""
    layout = Layout(schema, categories)
    try:
        messages = np.asarray(arrays["messages"], np.float64)
        frequencies = np.asarray(arrays["frequencies"], np.float64)
        vector = np.asarray(arrays["classifier"], np.float64)
        names = [f"client {k + 1}" for k in range(len(messages))]
        source = source_of(layout, messages, names, labelling)
    except (KeyError, TypeError, ValueError, ConfigError, FederationError):
        raise ReleaseError("the model's arrays do not fit the schema") from None
    if frequencies.shape != (layout.classes,) or not (frequencies >= 0).all():
        raise ReleaseError("the model's shares of the classes do not fit the schema")
    classifier = (
        Classifier.from_vector(vector, layout.width, layout.classes) if layout.classes else None
    )
    return Learned(source, messages, frequencies, classifier)
