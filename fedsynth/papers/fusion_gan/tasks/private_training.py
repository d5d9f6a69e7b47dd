"""With privacy of records, the client half: DP-SGD of discriminator and classifier.

They alone see real rows, through :class:`~fedsynth.methods.training.rows.Row`. The sums of
its marks over the steps estimate how many rows there are: no denominator is a true count.
"""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.federation.client.progress import advance
from fedsynth.federation.client.steps import Steps
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.methods.training.generating import mode_seeking_ratio
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.rows import Row, Seen, Weights
from fedsynth.models import adversarial
from fedsynth.papers.fusion_gan.networks import Networks, records_of
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.papers.fusion_gan.tasks.local_training import read_settings
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.sampling import Poisson
from fedsynth.schema import build_schema

# A message may name any number of rows: those that noise takes below this count as none.
_FEWEST = 1.0


class PrivateGANTask:
    """A client's own GAN and classifier, learned from noisy sums alone."""

    name = "fusion-gan-private"

    def learn(self, steps: Steps, request: Request) -> NDArray[np.float64]:
        terms = request.terms
        networks = steps.board.read("networks", Networks.from_dict)
        settings = steps.board.read("settings", read_settings)
        # What the message shows of its draws gives a torch generator away, seed and all: the noise
        # on private rows has another source.
        source, secret = torch.Generator().manual_seed(steps.coins.seed()), steps.coins.generator()
        row = Row(
            networks.discriminator, networks.classifier, terms.clip, marks=networks.counts_dim
        )
        rate = terms.sampling.rate if isinstance(terms.sampling, Poisson) else 1.0
        training = _Training(networks, settings, row, rate, source)

        def rows(client: View, drawn: NDArray[np.int64]) -> FactoredRows:
            records = records_of(client.data, drawn, client.board.read("schema", build_schema))
            noise = secret.standard_normal(tuple(records.x.shape), np.float32)
            blurred = records.x + torch.from_numpy(noise) * (settings.smoothing or 0.0)
            labels = records.y if networks.conditional else None
            return row.of(Seen(records.x, blurred, labels, records.y), training.weights)

        while steps.left:
            training.step(steps.sum(rows))
        advance()
        return training.message()


PRIVATE_GAN = register(PrivateGANTask())


class _Training:
    """What a client makes of its noisy sums."""

    def __init__(
        self,
        networks: Networks,
        settings: FusionGANSettings,
        row: Row,
        rate: float,
        source: torch.Generator,
    ) -> None:
        self.networks, self.settings, self.row, self.rate = networks, settings, row, rate
        self.source, self.taken = source, 0
        self.marks = np.zeros(networks.counts_dim)
        self.generator = Learner(networks.generator.layers, settings.learning_rate, source)
        self.discriminator = Learner(
            networks.discriminator.layers, settings.discriminator_learning_rate, source
        )
        self.classifier = None
        if networks.classifier is not None:
            rates = settings.classifier_learning_rate
            self.classifier = Learner(networks.classifier.layers, rates, source, (0.9, 0.999))

    @property
    def weights(self) -> Weights:
        known = [] if self.classifier is None else self.classifier.weights
        return Weights(self.discriminator.weights, known)

    @property
    def mean_counts(self) -> NDArray[np.float64]:
        """Of each class, how many records a step draws on average: an estimate, at least 0."""
        return np.maximum(self.marks / (self.row.mark * max(1, self.taken)), 0.0)

    def add_noise(self, cells: Tensor) -> Tensor:
        """Generated cells with the noise that a discriminator sees."""
        noise = torch.randn(cells.shape, generator=self.source)
        return cells + noise * (self.settings.smoothing or 0.0)

    def step(self, released: NDArray[np.float64]) -> None:
        """One step of every network along a noisy sum [row.dim]."""
        real, known, marks = np.split(released, self.row.stops)
        self.marks += marks
        self.taken += 1
        expected = max(_FEWEST, float(self.mean_counts.sum()))
        gradient = torch.from_numpy(real / expected + self._fake_gradient()).float()
        self.discriminator.descend_along(gradient)
        if self.classifier is not None:
            self.classifier.descend_along(torch.from_numpy(known / expected).float())
            self.classifier.follow(self.settings.average)
        if self.taken % (self.settings.generator_every or 1) == 0:
            self._step_generator()

    def _fake_gradient(self) -> NDArray[np.float64]:
        latent, labels = self._latent(self.settings.batch), self._labels(self.settings.batch)
        with torch.no_grad():
            generator = self.networks.generator
            fakes = generator.draw(self.generator.weights, latent, labels, self.source)
        return self.row.generated_gradient(
            self.add_noise(fakes), labels, self.discriminator.weights
        )

    def _labels(self, count: int) -> Tensor | None:
        """Of generated rows, by the estimated shares of the classes."""
        if not self.networks.conditional:
            return None
        shares = torch.from_numpy(self.mean_counts + 1e-3 * self.mean_counts.sum() + 1e-9)
        return torch.multinomial(shares, count, True, generator=self.source)

    def _latent(self, count: int) -> Tensor:
        return torch.randn(count, self.networks.generator.latent, generator=self.source)

    def _step_generator(self) -> None:
        """Rows come in pairs of one label, which are to differ."""
        half = -(-self.settings.batch // 2)
        latent, labels = self._latent(2 * half), self._labels(half)
        labels = None if labels is None else labels.repeat(2)
        fakes = self.networks.generator.draw(self.generator.weights, latent, labels, self.source)
        scorer, classifier = self.networks.discriminator, self.networks.classifier
        logits = scorer.logits(self.discriminator.weights, self.add_noise(fakes))
        loss = functional.softplus(-adversarial.conditional_logits(logits, labels)).mean()
        if labels is not None and self.classifier is not None and classifier is not None:
            logits = classifier.logits(self.classifier.weights, fakes)
            loss = loss + (self.settings.auxiliary_loss or 0.0) * functional.cross_entropy(
                logits, labels
            )
        loss = loss + (self.settings.mode_seeking_loss or 0.0) * mode_seeking_ratio(
            latent, fakes, half
        )
        self.generator.descend(loss)
        self.generator.follow(self.settings.average)

    def message(self) -> NDArray[np.float64]:
        """Averaged weights, and the estimated number of rows of each class."""
        classifier = None if self.classifier is None else self.classifier.average
        return self.networks.message(
            self.generator.average, classifier, self.mean_counts / self.rate
        )
