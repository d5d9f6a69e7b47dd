"""The networks of a job, and what was released as their conditions and tables."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.methods.training.generating import Conditions
from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.queries.preliminaries import Preliminaries
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions, target_index

Floats = NDArray[np.float32]


def conditions_of(game: Game, known: Preliminaries) -> Conditions:
    """Labels that generated rows get, by what was released."""
    classes = known.frequencies if game.parts == 1 and game.classes else np.zeros(0)
    if not game.asks:
        return Conditions(classes)
    return Conditions(classes, tables_of(game, known), game.cells.columns)


def tables_of(game: Game, known: Preliminaries) -> NDArray[np.float64] | None:
    """Shares of the cells in each class [classes, width], or in all [1, width], as released."""
    if known.encoding is None:
        return None
    if known.profiles is not None:
        return known.profiles
    shares = known.encoding.frequencies
    if game.labelled:
        target = target_index(known.encoding.schema)
        shares = shares[:target] + shares[target + 1 :]
    return np.concatenate(shares)[None]


def game_of(
    settings: FedGANSettings, schema: Schema | ImageSchema, encoding: TableEncoding | None
) -> Game:
    """The networks of resolved settings."""
    classes = conditions(schema)
    parts = classes if settings.scheme == "sep" and classes > 1 else 1
    if isinstance(schema, ImageSchema):
        cells = Cells(shape=schema.shape)
    else:
        assert encoding is not None
        sizes = encoding.sizes
        if classes:
            target = target_index(schema)
            sizes = sizes[:target] + sizes[target + 1 :]
        cells = Cells(columns=sizes)
    asks = bool(settings.asks)
    labels = (classes if parts == 1 else 0) + (cells.width if asks else 0)
    architecture = settings.architecture or "mlp"
    kind: gan.Kind = settings.discriminator or "mlp"
    outputs = 1 if kind == "quadratic" else 1 + labels
    classifier = None
    if settings.auxiliary_loss:
        own: gan.Kind = "conv" if kind == "conv" else "mlp"
        classifier = Scorer(cells, own, classes, settings.classifier_hidden or ())
    return Game(
        Generator(cells, architecture, settings.latent or 1, labels, settings.hidden or ()),
        Scorer(cells, kind, outputs, settings.discriminator_hidden or ()),
        classifier,
        parts,
        classes,
        asks,
        settings.loss or "logistic",
        settings.smoothing or 0.0,
        settings.penalty or 0.0,
    )
