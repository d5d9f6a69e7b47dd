"""The client half of Fusion (paper 004, Algorithm 2): fit, train, send once.

Nothing here is private: fitted parameters, the choice of a family and a classifier's weights are
all computed from the rows without noise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import PrivacyError
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Plain, Request, whole
from fedsynth.methods.copula.families import FAMILIES, POINT, Effort, Fit, Outcome
from fedsynth.methods.copula.fits import fit_features
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.papers.fusion.message import ClientModel, Feature, FeatureModel, Layout
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.schema import ImageSchema, build_schema

Cells = list[NDArray[Any]]


@dataclass(frozen=True)
class FusionTask:
    """A client's distributions and classifier; the row is its whole message."""

    name: str = "fusion"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record or request.terms.noise_multiplier:
            raise PrivacyError("fusion as published is not private: its terms must say so")
        if not clients:
            return
        effort, seed = _read_effort(request.settings), whole(request.settings, "seed")
        layout = layout_at(clients[0], request.settings)
        cells = [cells_of(client, layout) for client in clients]
        # All together, so that processes are started once.
        outcomes = iter(
            fit_features([v for values in cells for v in _numbers(layout, values)], effort)
        )
        for index, (client, values) in enumerate(zip(clients, cells, strict=True)):
            model = None
            if client.records:
                features, failures = _models(layout, values, outcomes)
                model = ClientModel(features, failures, _classifier(layout, values, client, seed))
            yield index, DenseRows(layout.encode(model)[None])


FUSION = register(FusionTask())


def layout_at(client: View, settings: Mapping[str, Plain]) -> Layout:
    """The layout that a request asks for, under the announced schema."""
    schema = client.board.read("schema", build_schema)
    return Layout(schema, "numbers" if settings["categories"] == "numbers" else "frequencies")


def _read_effort(settings: Mapping[str, Plain]) -> Effort:
    return Effort(*(whole(settings, field.name) for field in fields(Effort)))


def cells_of(client: View, layout: Layout) -> Cells:
    """A client's cells [n], one array a feature."""
    if isinstance(client.data, Images):
        assert isinstance(layout.schema, ImageSchema)
        flat = client.data.pixels.reshape(len(client.data), layout.schema.pixels)
        return list(np.minimum(flat, layout.schema.maximum).T.astype(np.float64))
    return [client.data.columns[f.column.name] for f in layout.features if f.column is not None]


def _numbers(layout: Layout, cells: Cells) -> Iterator[NDArray[np.float64]]:
    for feature, values in zip(layout.features, cells, strict=True):
        if not feature.size and len(values):
            yield feature.known(values).astype(np.float64)


def _models(
    layout: Layout, cells: Cells, outcomes: Iterator[Outcome]
) -> tuple[tuple[FeatureModel, ...], NDArray[np.int64]]:
    failures = np.zeros(len(FAMILIES), np.int64)
    models = []
    for feature, values in zip(layout.features, cells, strict=True):
        known = feature.known(values)
        missing = 1 - len(known) / len(values)
        if feature.size:
            models.append(FeatureModel(None, _shares(feature, known), missing))
            continue
        outcome = next(outcomes)
        failures[list(outcome.failed)] += 1
        fit = outcome.fit
        if fit is None and len(known):
            # No family at all applies: the middle row stands for the feature.
            fit = Fit(POINT, (float(np.sort(known)[len(known) // 2]),), 1.0)
        models.append(FeatureModel(fit, None, missing))
    return tuple(models), failures


def _shares(feature: Feature, known: NDArray[np.int64]) -> NDArray[np.float64]:
    counts = np.bincount(known, minlength=feature.size)
    return counts / max(1, len(known))


def _classifier(layout: Layout, cells: Cells, client: View, seed: int) -> Classifier | None:
    if not layout.classes:
        return None
    schema = layout.schema
    if isinstance(schema, ImageSchema):
        labels = np.asarray(client.data.labels, np.int64)
    else:
        labels = np.asarray(client.data.columns[str(schema.target)], np.int64)
    return Classifier.train(layout.inputs(cells), labels, layout.classes, seed=seed)
