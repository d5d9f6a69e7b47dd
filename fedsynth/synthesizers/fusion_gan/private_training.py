"""With privacy of records, the client half: DP-SGD of discriminator and classifier.

They alone see real rows. A step's noisy sum holds, of every drawn record, the gradient of the
discriminator's loss on it as real, that of the classifier's loss, and a small mark in the place of
its class, whose sums over the steps estimate how many rows there are: no denominator is a true
count. The discriminator's loss on generated rows and all of the generator are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.errors import PrivacyError
from fedsynth.federation.request import Request
from fedsynth.federation.site import Site
from fedsynth.federation.steps import Steps
from fedsynth.federation.tasks import register
from fedsynth.federation.watching import advanced
from fedsynth.models import gan
from fedsynth.privacy.clipping import FactoredRows, clip_and_sum, factors
from fedsynth.privacy.terms import Poisson
from fedsynth.synthesizers.adversarial.learner import Learner
from fedsynth.synthesizers.fusion_gan.local_training import read_settings
from fedsynth.synthesizers.fusion_gan.networks import Networks, Records, records_of, schema_of
from fedsynth.synthesizers.fusion_gan.settings import FusionGANSettings

# Of the squared clip: the marks' part, and of the rest the discriminator's where there is a
# classifier.
_MARKS, _DISCRIMINATOR = 0.01, 0.5
# A message may name any number of rows: those that noise takes below this count as none.
_FEWEST = 1.0

# Below it pairs count as equal.
_LEAST_RATIO = 1e-2

Factors = list[tuple[NDArray[np.float32], NDArray[np.float32]]]


class PrivateGANTask:
    """A client's own GAN and classifier, learned from noisy sums alone."""

    name = "fusion-gan-private"

    def learn(self, steps: Steps, request: Request) -> NDArray[np.float64]:
        terms = request.terms
        if terms.unit != "record" or terms.trust != "local":
            raise PrivacyError(f"{self.name} hides records, in a message private on its own")
        networks = steps.board.read("networks", Networks.from_dict)
        settings = steps.board.read("settings", read_settings)
        # What the message shows of its draws gives a torch generator away, seed and all: the noise
        # on private rows has another source.
        source, secret = torch.Generator().manual_seed(steps.coins.seed()), steps.coins.generator()
        rate = terms.sampling.rate if isinstance(terms.sampling, Poisson) else 1.0
        training = _Training(networks, settings, Row(networks, terms.clip), rate, source)

        def rows(site: Site, drawn: NDArray[np.int64]) -> FactoredRows:
            records = records_of(site.data, drawn, schema_of(site.board))
            noise = secret.standard_normal(tuple(records.x.shape), np.float32)
            seen = records.x + torch.from_numpy(noise) * (settings.smoothing or 0.0)
            return training.row.of(records, training.weights, seen)

        while steps.left:
            training.step(steps.sum(rows))
        advanced()
        return training.message()


PRIVATE_GAN = register(PrivateGANTask())


@dataclass(frozen=True)
class Row:
    """What a record adds to a step: gradients of discriminator and classifier, and its mark.

    Each part is clipped to its own share of the clip, so that a classifier with large gradients
    does not shrink the discriminator's, and marks stay whole.

    Attributes:
        networks: whose gradients they are.
        clip: L2 bound on a row.
    """

    networks: Networks
    clip: float

    @property
    def mark(self) -> float:
        """The number in the place of a record's class."""
        return self.clip * math.sqrt(_MARKS)

    @property
    def discriminator_clip(self) -> float:
        share = _DISCRIMINATOR if self.networks.classifier else 1.0
        return self.clip * math.sqrt((1 - _MARKS) * share)

    @property
    def classifier_clip(self) -> float:
        return self.clip * math.sqrt((1 - _MARKS) * (1 - _DISCRIMINATOR))

    @property
    def dim(self) -> int:
        """Length of a row: discriminator, classifier, marks."""
        networks = self.networks
        return networks.discriminator.dim + networks.classifier_dim + networks.counts_dim

    def of(self, records: Records, weights: Weights, seen: Tensor) -> FactoredRows:
        """Rows of records [b]; a row depends on its own record alone, and on secret noise.

        Args:
            seen: the records' cells as the discriminator sees them, [b, width].
        """
        networks = self.networks
        given = records.y if networks.conditional else None
        parts = self.verdict_gradients(seen, given, weights.discriminator, real=True)
        if networks.classifier is not None:
            assert records.y is not None
            labels = records.y
            found = gan.record_gradients(
                networks.classifier,
                weights.classifier,
                records.x,
                lambda logits: functional.cross_entropy(logits, labels, reduction="none"),
            )
            parts += _clipped(found, self.classifier_clip)
        places = torch.zeros(len(records), dtype=torch.int64) if records.y is None else records.y
        marks = (functional.one_hot(places, networks.counts_dim).float() * self.mark).numpy()
        parts.append((np.ones((len(records), 1), np.float32), marks))
        return FactoredRows(parts, width=self.dim)

    def verdict_gradients(
        self, cells: Tensor, labels: Tensor | None, weights: Sequence[Tensor], real: bool
    ) -> Factors:
        """Of the discriminator's loss on records as real ones or as generated, clipped."""
        sign = -1.0 if real else 1.0
        found = gan.record_gradients(
            self.networks.discriminator,
            weights,
            cells,
            lambda logits: functional.softplus(sign * gan.judged(logits, labels)),
        )
        return _clipped(found, self.discriminator_clip)


def _clipped(found: list[tuple[Tensor, Tensor]], clip: float) -> Factors:
    """Factors of gradients [b] with the norm of each at most `clip`."""
    pairs = [(left.numpy(), right.numpy()) for left, right in found]
    scale = factors(FactoredRows(pairs), clip).astype(np.float32)[:, None]
    return [(left * scale, right) for left, right in pairs]


def _sameness(latent: Tensor, cells: Tensor, half: int) -> Tensor:
    """How little rows of a pair differ for what their latent vectors do, mean over pairs.

    The inverse of the ratio of mean absolute differences (Mao et al. 2019, "Mode seeking generative
    adversarial networks").
    """
    apart = (cells[:half] - cells[half:]).abs().mean(1)
    latents = (latent[:half] - latent[half:]).abs().mean(1)
    return (1 / (apart / latents.clamp_min(1e-6) + _LEAST_RATIO)).mean()


@dataclass(frozen=True)
class Weights:
    """Of the networks that see real rows, matrices and biases in turn."""

    discriminator: Sequence[Tensor]
    classifier: Sequence[Tensor]


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
    def drawn(self) -> NDArray[np.float64]:
        """Of each class, how many records a step draws on average: an estimate, at least 0."""
        return np.maximum(self.marks / (self.row.mark * max(1, self.taken)), 0.0)

    def smoothed(self, cells: Tensor) -> Tensor:
        """Generated cells with the noise that a discriminator sees."""
        noise = torch.randn(cells.shape, generator=self.source)
        return cells + noise * (self.settings.smoothing or 0.0)

    def step(self, released: NDArray[np.float64]) -> None:
        """One step of every network along a noisy sum [row.dim]."""
        stops = [self.networks.discriminator.dim, self.row.dim - self.networks.counts_dim]
        real, known, marks = np.split(released, stops)
        self.marks += marks
        self.taken += 1
        expected = max(_FEWEST, float(self.drawn.sum()))
        gradient = torch.from_numpy(real / expected + self._fake_gradient()).float()
        self.discriminator.descend_along(gradient)
        if self.classifier is not None:
            self.classifier.descend_along(torch.from_numpy(known / expected).float())
            self.classifier.follow(self.settings.average)
        if self.taken % (self.settings.generator_every or 1) == 0:
            self._step_generator()

    def _fake_gradient(self) -> NDArray[np.float64]:
        """Mean gradient of the discriminator's loss on generated rows, each clipped as a real
        one's: else the generated would weigh more."""
        latent, labels = self._latent(self.settings.batch), self._labels(self.settings.batch)
        with torch.no_grad():
            generator = self.networks.generator
            fakes = generator.draw(self.generator.weights, latent, labels, self.source)
        weights = self.discriminator.weights
        seen = self.smoothed(fakes)
        rows = FactoredRows(self.row.verdict_gradients(seen, labels, weights, real=False))
        return clip_and_sum(rows, self.row.clip).values / len(fakes)

    def _labels(self, count: int) -> Tensor | None:
        """Of generated rows, by the estimated shares of the classes."""
        if not self.networks.conditional:
            return None
        shares = torch.from_numpy(self.drawn + 1e-3 * self.drawn.sum() + 1e-9)
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
        logits = scorer.logits(self.discriminator.weights, self.smoothed(fakes))
        loss = functional.softplus(-gan.judged(logits, labels)).mean()
        if labels is not None and self.classifier is not None and classifier is not None:
            logits = classifier.logits(self.classifier.weights, fakes)
            loss = loss + (self.settings.guidance or 0.0) * functional.cross_entropy(logits, labels)
        loss = loss + (self.settings.diversity or 0.0) * _sameness(latent, fakes, half)
        self.generator.descend(loss)
        self.generator.follow(self.settings.average)

    def message(self) -> NDArray[np.float64]:
        """Averaged weights, and the estimated number of rows of each class."""
        classifier = None if self.classifier is None else self.classifier.average
        return self.networks.message(self.generator.average, classifier, self.drawn / self.rate)
