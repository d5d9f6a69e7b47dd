"""As published, the client half: a GAN and a classifier learn the client's rows (paper 004,
Algorithm 6). Nothing hides the rows in what they learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.progress import advance
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Request
from fedsynth.methods.training.learner import Learner
from fedsynth.models import adversarial
from fedsynth.papers.fusion_gan.networks import Networks, Records, records_of
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.schema import build_schema


class LocalGANTask:
    """A client's own GAN and classifier; the row is its whole message."""

    name = "fusion-gan"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[NDArray[np.int64]], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        if request.terms.protects.per_record or request.terms.noise_multiplier:
            raise PrivacyError(f"{self.name} trains without privacy: its terms must say so")
        threads = torch.get_num_threads()
        try:
            # Clients side by side, each on one thread: torch's own threads wait for one another in
            # every one of these small steps.
            with ThreadPoolExecutor(threads, initializer=partial(torch.set_num_threads, 1)) as pool:
                for index, message in enumerate(pool.map(_message, clients)):
                    advance()
                    yield index, DenseRows(message[None])
        finally:
            torch.set_num_threads(threads)


LOCAL_GAN = register(LocalGANTask())


def _message(client: View) -> NDArray[np.float64]:
    networks = client.board.read("networks", Networks.from_dict)
    settings = client.board.read("settings", read_settings)
    schema = client.board.read("schema", build_schema)
    records = records_of(client.data, np.arange(client.records), schema)
    source = torch.Generator().manual_seed(client.coins.seed())
    return train(networks, records, settings, source)


def read_settings(plain: dict[str, object]) -> FusionGANSettings:
    """The announced settings."""
    return FusionGANSettings(**plain)


def train(
    networks: Networks, records: Records, settings: FusionGANSettings, source: torch.Generator
) -> NDArray[np.float64]:
    """A client's message [dim] from ordinary training; without rows, of untrained networks.

    Args:
        records: the client's.
        settings: resolved.
        source: the only randomness.
    """
    trainer = _Trainer(networks, settings, _shares(networks, records), source)
    order = torch.zeros(0, dtype=torch.int64)
    batch = min(settings.batch, len(records))
    for step in range((settings.steps or 0) if batch else 0):
        if len(order) < batch:
            order = torch.randperm(len(records), generator=source)
        drawn, order = order[:batch], order[batch:]
        trainer.step(records.take(drawn), step)
    labels = torch.zeros(len(records), dtype=torch.int64) if records.y is None else records.y
    counts = torch.bincount(labels, minlength=networks.counts_dim)
    return networks.message(*trainer.averages(), counts.numpy())


def _shares(networks: Networks, records: Records) -> Tensor:
    """Of the classes among a client's rows, [classes]; even without rows."""
    if records.y is None or not len(records):
        return torch.ones(max(1, networks.classes))
    return torch.bincount(records.y, minlength=networks.classes).double()


class _Trainer:
    """One step after another of discriminator, classifier and generator (Goodfellow et al. 2014,
    with the generator's non-saturating loss)."""

    def __init__(
        self,
        networks: Networks,
        settings: FusionGANSettings,
        shares: Tensor,
        source: torch.Generator,
    ) -> None:
        self.networks, self.settings, self.shares = networks, settings, shares
        self.source = source
        self.generator = Learner(networks.generator.layers, settings.learning_rate, source)
        self.discriminator = Learner(
            networks.discriminator.layers, settings.discriminator_learning_rate, source
        )
        self.classifier = None
        if networks.classifier is not None:
            rate = settings.classifier_learning_rate
            self.classifier = Learner(networks.classifier.layers, rate, source, (0.9, 0.999))

    def averages(self) -> tuple[Tensor, Tensor | None]:
        """The flat weights of generator and classifier that are sent."""
        classifier = None if self.classifier is None else self.classifier.average
        return self.generator.average, classifier

    def step(self, records: Records, number: int) -> None:
        labels = None
        if self.networks.conditional:
            labels = torch.multinomial(self.shares, len(records), True, generator=self.source)
        generator = self.networks.generator
        latent = torch.randn(len(records), generator.latent, generator=self.source)
        fakes = generator.draw(self.generator.weights, latent, labels, self.source)
        real = records.y if self.networks.conditional else None
        loss = functional.softplus(-self._logits(records.x, real)).mean()
        loss = loss + functional.softplus(self._logits(fakes.detach(), labels)).mean()
        self.discriminator.descend(loss)
        if self.classifier is not None and records.y is not None:
            assert self.networks.classifier is not None
            logits = self.networks.classifier.logits(self.classifier.weights, records.x)
            self.classifier.descend(functional.cross_entropy(logits, records.y))
            self.classifier.follow(self.settings.average)
        if number % (self.settings.generator_every or 1) == 0:
            self.generator.descend(functional.softplus(-self._logits(fakes, labels)).mean())
            self.generator.follow(self.settings.average)

    def _logits(self, cells: Tensor, labels: Tensor | None) -> Tensor:
        noise = torch.randn(cells.shape, generator=self.source) * (self.settings.smoothing or 0.0)
        scorer = self.networks.discriminator
        return adversarial.conditional_logits(
            scorer.logits(self.discriminator.weights, cells + noise), labels
        )
