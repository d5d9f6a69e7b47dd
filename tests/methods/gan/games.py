"""Small games on small federations, at whose boards everything is posted that tasks read."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch

from fedsynth.data.images import Images
from fedsynth.data.tables import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.federation.request import Request
from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.tasks.local_training import plain_conditions
from fedsynth.methods.training.generating import Conditions
from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.privacy.terms import Terms
from fedsynth.schema import Categorical, ImageSchema
from tests.methods.small import SCHEMA, table
from tests.methods.small import federation as clients_of

CLIP = 0.5
RECORD = Terms(unit="record", trust="central", clip=CLIP, noise_multiplier=0.0)
CLIENT = Terms(unit="client", trust="central", clip=CLIP, noise_multiplier=0.0)
PIXELS = ImageSchema(shape=(16, 16), maximum=16, target=Categorical(name="digit", values=[0, 1]))


@cache
def encoding():
    layout = HistogramLayout.of(SCHEMA)
    positions = layout.positions(conform(table(200, seed=9), SCHEMA))
    noisy = np.bincount(positions.ravel(), minlength=layout.dim).astype(float)
    return TableEncoding.from_histogram(SCHEMA, noisy, 0.0, bins=4)


TABLE = Cells(columns=encoding().sizes[:-1])
IMAGE = Cells(shape=(16, 16))
# Any public point will do.
CENTRE = np.random.default_rng(0).dirichlet(np.ones(TABLE.width), size=2)


def quadratic_game(*, classifier=False):
    """A game of a quadratic discriminator, on tables."""
    return Game(
        Generator(TABLE, "residual", 3, 2, (4,)),
        Scorer(TABLE, "quadratic", 1, (4,)),
        Scorer(TABLE, "mlp", 2, (6,)) if classifier else None,
        parts=1,
        classes=2,
        asks=False,
        loss="wasserstein",
        smoothing=0.0,
        penalty=0.0,
    )


def game_on(cells=TABLE, *, classifier=False, parts=1, asks=False, **rules):
    """Two classes; rules are those of :class:`Game`, by default the plainest."""
    kind, hidden = ("conv", (2, 2, 2)) if cells.shape else ("mlp", (6,))
    labels = (2 if parts == 1 else 0) + (cells.width if asks else 0)
    generator = "conv" if cells.shape else "residual"
    own = {"loss": "logistic", "smoothing": 0.0, "penalty": 0.0, **rules}
    return Game(
        Generator(cells, generator, 3, labels, (2,) if cells.shape else (4,)),
        Scorer(cells, kind, 1 + labels, hidden),
        Scorer(cells, kind, 2, hidden) if classifier else None,
        parts,
        2,
        asks,
        **own,
    )


def conditions_on(game):
    classes = np.array([0.7, 0.3]) if game.parts == 1 else np.zeros(0)
    if not game.asks:
        return Conditions(classes)
    shares = encoding().frequencies[:-1]
    return Conditions(classes, np.concatenate(shares)[None], game.cells.columns)


def announcements(game):
    """What tasks read beside the schema."""
    return {
        "encoding": encoding().to_dict(),
        "game": game.to_dict(),
        "centre": CENTRE.tolist(),
        "conditions": plain_conditions(conditions_on(game)),
    }


def federation(owners, game):
    """Clients with coins of their own, to which all was announced that tasks read."""
    schema = PIXELS if game.cells.shape else SCHEMA
    return clients_of(owners, schema, **announcements(game))


def pictures(count, seed=0):
    """Class 0 is bright on the left, class 1 on the right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 3, (count, 16, 16))
    for side in (0, 1):
        pixels[labels == side, :, 8 * side : 8 * side + 8] += 13
    return Images(pixels.astype(np.uint8), labels.astype(np.int64))


def initial(networks, scale=1.0, seed=0):
    """Weights of networks behind one another; those of a quadratic one have no biases."""
    source = torch.Generator().manual_seed(seed)
    return torch.cat(
        [
            torch.randn(one.dim, generator=source) * scale
            if one.layers[0].bias is False
            else gan.initial(one.layers, source) * scale
            for one in networks
        ]
    ).numpy()


def request(task, game, terms, weights=None, **settings):
    """A round's question, of drawn weights if none are given."""
    seeing = [game.discriminator] * game.parts
    seeing += [] if game.classifier is None else [game.classifier]
    own = initial(seeing) if weights is None else weights
    asked = {"steps": 3, "batch_size": 4, "learning_rate": 0.02, **settings}
    generators = initial([game.generator] * game.parts, seed=5)
    return Request(
        task.name, terms, dim=len(own), arrays={"weights": own, "generators": generators},
        settings=asked if terms.unit == "client" else {},
    )  # fmt: skip
