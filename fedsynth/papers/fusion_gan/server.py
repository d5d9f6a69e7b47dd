"""Fusion GAN, the server half: rows from every generator, united, and the global classifier.

Everything here is made of the clients' messages, so all of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.codec import GIVEN
from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.methods.sampling.drawing import Columns, draw_table
from fedsynth.methods.sampling.intervals import Encoding, cells_of
from fedsynth.methods.sampling.labels import demand_shares, draw_labels
from fedsynth.methods.training.learner import Learner
from fedsynth.models.vae import unflatten
from fedsynth.papers.fusion_gan.networks import Networks, Records
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions
from fedsynth.views import Outlined

_BATCH = 128
_CHUNK = 2000
# Draws of a row by its label until its client's classifier agrees; the last one stands.
_TRIES = 5
# Draws for each row wanted, or in all, after which a class counts as one that no generator draws.
_DRAWS, _LEAST_DRAWS = 200, 20_000

Floats = NDArray[np.float32]
Labels = NDArray[np.int64]


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Outlined):
    """What a fit leaves behind, all of it from the clients' messages.

    Attributes:
        networks: their shapes.
        generators, classifiers: flat weights [clients, .]; classifiers [clients, 0] without any.
        counts: rows of each class at each client, [clients, classes], or [clients, 1] of all;
            nonnegative, and estimates where noise is in them.
        frequencies: of the target's classes among the united rows [classes]; empty without any.
        classifier: flat weights of the global one, [.].
        schema: of the rows.
    """

    networks: Networks
    generators: Floats
    classifiers: Floats
    counts: NDArray[np.float64]
    frequencies: NDArray[np.float64]
    classifier: Floats
    schema: Annotated[Schema | ImageSchema, GIVEN]

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Rows whose labels are those that a conditional generator was given, or what the
        classifier of the generator's client says; then conditions on the target are met by drawing
        until there are enough rows."""
        schema = self.schema
        if isinstance(schema, ImageSchema):
            rng = np.random.default_rng(seed)
            labels = draw_labels(schema, self.frequencies, rows, where, proportions, rng)
            cells, labels = self.cells(labels, rows, rng)
            return Images(image.decode(cells, schema), labels)
        encoding = Encoding(schema)

        def draw(labels: Labels | None, count: int, rng: np.random.Generator) -> Columns:
            return encoding.decode(self.cells(labels, count, rng)[0])

        return draw_table(schema, self.frequencies, rows, where, proportions, seed, draw)

    def cells(
        self, labels: Labels | None, rows: int, rng: np.random.Generator
    ) -> tuple[Floats, Labels | None]:
        """Cells [rows, width], and labels [rows]: those given, else those that come.

        Raises:
            ConfigError: hardly a row that the generators draw is of a class that is asked for.
        """
        if self.networks.conditional:
            if labels is None:
                labels = rng.choice(len(self.frequencies), rows, p=self.frequencies)
            return self._sample_by_label(labels, rng), labels
        if labels is None or not self.networks.classes:
            return self._from_all(None, rows, rng)
        return self._sample_by_prediction(labels, rng)

    def _sample_by_label(self, labels: Labels, rng: np.random.Generator) -> Floats:
        """Rows drawn by their labels, again where the client's classifier says another."""
        rows = np.zeros((len(labels), self.networks.generator.cells.width), np.float32)
        pending = np.arange(len(labels))
        for _ in range(_TRIES):
            cells, predicted = self._from_all(labels[pending], len(pending), rng)
            rows[pending] = cells
            pending = pending[predicted != labels[pending]]
            if not len(pending):
                break
        return rows

    def _sample_by_prediction(
        self, labels: Labels, rng: np.random.Generator
    ) -> tuple[Floats, Labels]:
        """Rows whose labels the classifiers say are those given: drawn until there are enough."""
        rows = np.zeros((len(labels), self.networks.generator.cells.width), np.float32)
        pending = np.arange(len(labels))
        left = max(_DRAWS * len(labels), _LEAST_DRAWS)
        while len(pending):
            if left <= 0:
                raise ConfigError(
                    f"{len(labels) - len(pending)} of {len(labels)} rows after "
                    f"{max(_DRAWS * len(labels), _LEAST_DRAWS):,} draws: the generators hardly "
                    "draw a row of a class that is asked for; fit with conditional: true, which "
                    "draws by class"
                )
            count = min(left, 2 * len(pending) + 500)
            cells, predicted = self._from_all(None, count, rng)
            assert predicted is not None
            left -= count
            waiting = []
            for label in np.unique(labels[pending]):
                places, drawn = (
                    pending[labels[pending] == label],
                    np.flatnonzero(predicted == label),
                )
                most = min(len(places), len(drawn))
                rows[places[:most]] = cells[drawn[:most]]
                waiting.append(places[most:])
            pending = np.concatenate(waiting)
        return rows, labels

    def _from_all(
        self, labels: Labels | None, rows: int, rng: np.random.Generator
    ) -> tuple[Floats, Labels | None]:
        """Rows from the clients' generators in shares of their counts, and the classifiers' labels.

        With `labels` a generator is drawn by its share of the label.
        """
        cells = np.zeros((rows, self.networks.generator.cells.width), np.float32)
        predicted = np.zeros(rows, np.int64)
        source = torch.Generator().manual_seed(int(rng.integers(2**62)))
        owner = self._owners(labels, rows, rng)
        for client in np.unique(owner):
            at = np.flatnonzero(owner == client)
            given = None if labels is None else torch.from_numpy(labels[at])
            drawn = self._generate(int(client), given, len(at), source)
            cells[at] = drawn.numpy()
            if self.networks.classifier is not None:
                logits = self._logits(self.classifiers[client], drawn)
                predicted[at] = logits.argmax(1).numpy()
        return cells, predicted if self.networks.classes else None

    def _owners(self, labels: Labels | None, rows: int, rng: np.random.Generator) -> Labels:
        if labels is None:
            return _choose_clients(self.counts.sum(axis=1), rows, rng)
        owner = np.zeros(rows, np.int64)
        for label in np.unique(labels):
            at = np.flatnonzero(labels == label)
            owner[at] = _choose_clients(self.counts[:, label], len(at), rng)
        return owner

    def _generate(
        self, client: int, labels: Tensor | None, rows: int, source: torch.Generator
    ) -> Tensor:
        generator = self.networks.generator
        weights = unflatten(torch.from_numpy(self.generators[client]), generator.layers)
        return generator.sample(weights, labels, rows, source)

    def _logits(self, flat: Floats, cells: Tensor) -> Tensor:
        scorer = self.networks.classifier
        assert scorer is not None
        weights = unflatten(torch.from_numpy(flat), scorer.layers)
        with torch.no_grad():
            return torch.cat([scorer.logits(weights, part) for part in torch.split(cells, _CHUNK)])

    def check(self) -> None:
        """Raises ReleaseError where the parts do not fit the schema or one another."""
        networks, clients = self.networks, len(self.generators)
        classes, schema = conditions(self.schema), self.schema
        demands = {
            "the networks' cells": (networks.generator.cells, cells_of(schema)),
            "the networks' classes": (networks.classes, classes),
            "the generators": (self.generators.shape, (clients, networks.generator.dim)),
            "the classifiers": (self.classifiers.shape, (clients, networks.classifier_dim)),
            "the counts": (self.counts.shape, (clients, networks.counts_dim)),
            "the global classifier": (self.classifier.shape, (networks.classifier_dim,)),
        }
        for what, (actual, expected) in demands.items():
            if actual != expected or not clients:
                raise ReleaseError(f"{what} are not those of the schema and the other parts")
        demand_shares(self.frequencies, classes)

    def probabilities(self, cells: Tensor) -> NDArray[np.float64]:
        """The global classifier's, of cells [n, width]: [n, classes]."""
        probabilities: NDArray[np.float64] = (
            self._logits(self.classifier, cells).double().softmax(1).numpy()
        )
        return probabilities


def _choose_clients(shares: NDArray[np.float64], rows: int, rng: np.random.Generator) -> Labels:
    """Clients [rows] in proportion to shares [clients]; evenly where none has any."""
    even = np.ones(len(shares)) if shares.sum() <= 0 else shares
    return rng.choice(len(even), rows, p=even / even.sum()).astype(np.int64)


def fuse(
    networks: Networks,
    messages: NDArray[np.float64],
    settings: FusionGANSettings,
    seed: int,
    schema: Schema | ImageSchema,
) -> Learned:
    """Unite rows of all generators and train the global classifier on them (Algorithm 6).

    Args:
        messages: of the clients, [clients, dim].
        settings: resolved.
    """
    generators, classifiers, counts = networks.parts(messages)
    counts = np.maximum(counts, 0.0)
    empty = np.zeros(0)
    shares = counts.sum(axis=0) / counts.sum() if counts.sum() > 0 else np.ones(counts.shape[1])
    learned = Learned(
        networks,
        generators,
        classifiers,
        counts,
        shares / shares.sum() if networks.classes else empty,
        empty.astype(np.float32),
        schema,
    )
    if not networks.classes:
        return learned
    rng = np.random.default_rng(seed)
    cells, labels = learned.cells(None, settings.union, rng)
    assert labels is not None
    frequencies = learned.frequencies
    if not networks.conditional:
        frequencies = np.bincount(labels, minlength=networks.classes) / len(labels)
    united = Records(torch.from_numpy(cells), torch.from_numpy(labels))
    classifier = _train_classifier(networks, united, settings, int(rng.integers(2**62)))
    return replace(learned, frequencies=frequencies, classifier=classifier)


def _train_classifier(
    networks: Networks, united: Records, settings: FusionGANSettings, seed: int
) -> Floats:
    """The global classifier's flat weights, trained by Adam on the cross-entropy."""
    scorer = networks.classifier
    assert scorer is not None and united.y is not None
    source = torch.Generator().manual_seed(seed)
    learner = Learner(scorer.layers, 1e-3, source, (0.9, 0.999))
    for _ in range(settings.union_steps or 0):
        rows = torch.randint(len(united), (min(_BATCH, len(united)),), generator=source)
        logits = scorer.logits(learner.weights, united.x[rows])
        learner.descend(functional.cross_entropy(logits, united.y[rows]))
        learner.follow(0.98)
    return np.asarray(learner.average.numpy(), np.float32)
