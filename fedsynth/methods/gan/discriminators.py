"""How the networks that see real rows learn, at the server: one way a kind of game.

What comes out of a round is a released mean, so all of this is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.federation.request import Plain
from fedsynth.federation.server.channel import Channel
from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.matching import Matcher
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.methods.gan.tasks.local_training import plain_conditions
from fedsynth.methods.training.aggregation.choosing import aggregation_of
from fedsynth.methods.training.generating import Discriminate, GeneratorTrainer
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.rows import Row
from fedsynth.methods.training.saving import Arrays, Part
from fedsynth.models import gan
from fedsynth.privacy.trail.job import Planned


@dataclass(frozen=True, eq=False)
class Round:
    """What every round of the training asks.

    Attributes:
        planned: the task, and its terms.
        expected: units in a round on average, which a sum is divided by.
    """

    channel: Channel
    planned: Planned
    expected: float

    def ask(
        self,
        weights: Sequence[Tensor],
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
        settings: Mapping[str, Plain] | None = None,
    ) -> Tensor:
        """The released mean of what units say of these flat weights, as long as they are."""
        flat = torch.cat(list(weights)).numpy()
        released = self.channel.sum(
            self.planned.label,
            self.planned.terms,
            dim=len(flat),
            arrays={"weights": flat, **(arrays or {})},
            settings=settings,
        )
        return torch.from_numpy(released.value / self.expected).float()


@dataclass(frozen=True, eq=False)
class Auxiliary:
    """An auxiliary classifier of real rows (Odena et al. 2017, AC-GAN), for the generator's loss.

    Attributes:
        average: decay of the moving average of its weights.
    """

    network: gan.Scorer
    learner: Learner
    average: float

    def step(self, gradient: Tensor) -> None:
        """One step along the released mean gradient of its loss."""
        self.learner.descend_along(gradient)
        self.learner.follow(self.average)

    def classify(self, cells: Tensor) -> Tensor:
        """Logits [b, classes] of records."""
        return self.network.logits(self.learner.weights, cells)


class Discriminators(Protocol):
    """The discriminators of all parts of a game, and how a round teaches them."""

    def announce(self, channel: Channel, trainers: Sequence[GeneratorTrainer]) -> None:
        """Tell clients what else they need to know before the first round."""
        ...

    def learn(self, asking: Round, trainers: Sequence[GeneratorTrainer], rate: float) -> None:
        """A round's release, and what the discriminators make of it."""
        ...

    def discriminate(self, part: int) -> Discriminate:
        """The discriminator of one part, for its generator's loss."""
        ...

    def close(self, trainers: Sequence[GeneratorTrainer]) -> None:
        """After the generators' steps of a round."""
        ...

    def parts(self) -> dict[str, Part]:
        """All that learns, by name."""
        ...


class _Networks:
    """Discriminators that are networks at the server too."""

    def __init__(self, game: Game, learners: Sequence[Learner], source: torch.Generator) -> None:
        self.game, self.learners, self.source = game, learners, source

    def announce(self, channel: Channel, trainers: Sequence[GeneratorTrainer]) -> None:
        pass

    def discriminate(self, part: int) -> Discriminate:
        weights = self.learners[part].weights
        return lambda cells, labels: self.game.discriminate(weights, self._add_noise(cells), labels)

    def close(self, trainers: Sequence[GeneratorTrainer]) -> None:
        pass

    def parts(self) -> dict[str, Part]:
        return {f"discriminator{part}": learner for part, learner in enumerate(self.learners)}

    def _add_noise(self, cells: Tensor) -> Tensor:
        """Cells with the noise that a discriminator sees."""
        if not self.game.smoothing:
            return cells
        return cells + self.game.smoothing * torch.randn(cells.shape, generator=self.source)


class Descending(_Networks):
    """Record level: a step along the mean gradient of real rows and of generated ones."""

    def __init__(
        self,
        game: Game,
        learners: Sequence[Learner],
        source: torch.Generator,
        row: Row,
        auxiliary: Auxiliary | None,
        batch: int,
    ) -> None:
        super().__init__(game, learners, source)
        self.row, self.auxiliary, self.batch = row, auxiliary, batch

    def learn(self, asking: Round, trainers: Sequence[GeneratorTrainer], rate: float) -> None:
        learner, size = self.learners[0], self.game.discriminator.dim
        real = asking.ask(_flats([learner], self.auxiliary))
        learner.pace(rate)
        cells, labels = trainers[0].rows(self.batch)
        fakes = self.row.generated_gradient(self._add_noise(cells), labels, learner.weights)
        gradient = real[:size] + torch.from_numpy(fakes).float()
        if self.game.penalty:
            slope = self.game.penalty_gradient(learner.weights, cells, labels)
            gradient = gradient + self.game.penalty * slope
        learner.descend_along(gradient)
        if self.auxiliary is not None:
            self.auxiliary.step(real[size:])


class _Memory:
    """What an aggregation remembers, in checkpoints."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        self.vectors = vectors

    def state(self) -> Arrays:
        return {"vectors": self.vectors}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        self.vectors = arrays["vectors"].astype(np.float32, copy=True)


class Averaging(_Networks):
    """Client level: the mean of how far the clients' discriminators moved (paper 001, Algorithm 3).

    Args:
        settings: of the clients' training.
    """

    def __init__(
        self,
        game: Game,
        learners: Sequence[Learner],
        source: torch.Generator,
        settings: FedGANSettings,
    ) -> None:
        super().__init__(game, learners, source)
        self.settings, self.aggregation = settings, aggregation_of(settings)
        self.memory = _Memory(self.aggregation.start(sum(len(one.flat) for one in learners)))

    def parts(self) -> dict[str, Part]:
        return {**super().parts(), "aggregation": self.memory}

    def announce(self, channel: Channel, trainers: Sequence[GeneratorTrainer]) -> None:
        channel.announce("conditions", plain_conditions(trainers[0].conditions))

    def learn(self, asking: Round, trainers: Sequence[GeneratorTrainer], rate: float) -> None:
        generators = torch.cat([trainer.learner.flat for trainer in trainers]).numpy()
        moved = asking.ask(
            _flats(self.learners, None),
            {"generators": generators},
            {
                "steps": self.settings.local_steps or 1,
                "batch_size": self.settings.batch_size or 1,
                "learning_rate": rate,
                "proximal": self.settings.proximal,
            },
        )
        before = torch.cat(_flats(self.learners, None)).numpy()
        after = before.copy()
        self.aggregation.step(after, moved.numpy(), self.memory.vectors)
        parts = torch.split(torch.from_numpy(after - before), self.game.discriminator.dim)
        for learner, part in zip(self.learners, parts, strict=True):
            learner.move(part)


class Matching:
    """A quadratic discriminator, whose released mean gradients the generator matches."""

    def __init__(self, matcher: Matcher, auxiliary: Auxiliary | None, batch: int) -> None:
        self.matcher, self.auxiliary, self.batch = matcher, auxiliary, batch

    def announce(self, channel: Channel, trainers: Sequence[GeneratorTrainer]) -> None:
        channel.announce("centre", self.matcher.centre.tolist())

    def learn(self, asking: Round, trainers: Sequence[GeneratorTrainer], rate: float) -> None:
        vectors = self.matcher.weights.flatten()
        real = asking.ask([vectors, *_flats([], self.auxiliary)])
        self.matcher.remember(real[: len(vectors)])
        if self.auxiliary is not None:
            self.auxiliary.step(real[len(vectors) :])

    def discriminate(self, part: int) -> Discriminate:
        # How near all rows together come: the mean of one logit is its loss.
        return lambda cells, labels: -self.matcher.gap(cells, labels)[None]

    def close(self, trainers: Sequence[GeneratorTrainer]) -> None:
        self.matcher.turn(*trainers[0].rows(4 * self.batch))

    def parts(self) -> dict[str, Part]:
        return {"matcher": self.matcher}


def _flats(learners: Sequence[Learner], auxiliary: Auxiliary | None) -> list[Tensor]:
    """Flat weights of the networks that see real rows."""
    flats = [learner.flat for learner in learners]
    return flats if auxiliary is None else [*flats, auxiliary.learner.flat]
