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
from fedsynth.federation.client.site import Site
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Plain, Request
from fedsynth.methods.copula.families import FAMILIES, POINT, Effort, Fit, Outcome
from fedsynth.methods.copula.fits import fit_features
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.papers.fusion.message import ClientModel, Feature, FeatureModel, Layout
from fedsynth.privacy.rows.clipping import DenseRows, Rows
from fedsynth.schema import ImageSchema, Schema

Cells = list[NDArray[Any]]


@dataclass(frozen=True)
class FusionTask:
    """A client's distributions and classifier; the row is its whole message."""

    name: str = "fusion"

    def contribute(
        self, sites: Sequence[Site], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record or request.terms.noise_multiplier:
            raise PrivacyError("fusion as published is not private: its terms must say so")
        if not sites:
            return
        effort, seed = _asked(request.settings), int(str(request.settings["seed"]))
        layout = layout_at(sites[0], request.settings)
        cells = [cells_of(site, layout) for site in sites]
        # All together, so that processes are started once.
        outcomes = iter(fit_features([v for own in cells for v in _numbers(layout, own)], effort))
        for index, (site, own) in enumerate(zip(sites, cells, strict=True)):
            model = None
            if site.records:
                features, failures = _models(layout, own, outcomes)
                model = ClientModel(features, failures, _classifier(layout, own, site, seed))
            yield index, DenseRows(layout.encode(model)[None])

    def keep(self, site: Site, values: NDArray[np.float64], request: Request) -> None:
        raise AssertionError("a message is sent, nothing of it is kept")


FUSION = register(FusionTask())


def layout_at(site: Site, settings: Mapping[str, Plain]) -> Layout:
    """The layout that a request asks for, under the announced schema."""
    kind: Any = ImageSchema if isinstance(site.data, Images) else Schema
    schema = site.board.read("schema", kind.from_dict)
    return Layout(schema, "numbers" if settings["categories"] == "numbers" else "frequencies")


def _asked(settings: Mapping[str, Plain]) -> Effort:
    return Effort(*(int(str(settings[own.name])) for own in fields(Effort)))


def cells_of(site: Site, layout: Layout) -> Cells:
    """A site's cells [n], one array a feature."""
    if isinstance(site.data, Images):
        assert isinstance(layout.schema, ImageSchema)
        flat = site.data.pixels.reshape(len(site.data), layout.schema.pixels)
        return list(np.minimum(flat, layout.schema.maximum).T.astype(np.float64))
    return [site.data.columns[f.column.name] for f in layout.features if f.column is not None]


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


def _classifier(layout: Layout, cells: Cells, site: Site, seed: int) -> Classifier | None:
    if not layout.classes:
        return None
    schema = layout.schema
    if isinstance(schema, ImageSchema):
        labels = np.asarray(site.data.labels, np.int64)
    else:
        labels = np.asarray(site.data.columns[str(schema.target)], np.int64)
    return Classifier.train(layout.inputs(cells), labels, layout.classes, seed=seed)
