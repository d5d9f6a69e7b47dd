"""The server half of a fit: ask, step the discriminators, train the generators, look at them.

It sees released values alone, so everything here is post-processing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.codec import pack
from fedsynth.federation.client.tasks import Task
from fedsynth.methods.gan.game import Game, started
from fedsynth.methods.gan.matching import Matcher
from fedsynth.methods.gan.networks import conditions_of, game_of, tables_of
from fedsynth.methods.gan.sampling import Learned
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.methods.gan.tasks.gradient import GRADIENT, row_of
from fedsynth.methods.gan.tasks.local_training import TRAINING, plain_conditions
from fedsynth.methods.training.generating import GeneratorTrainer, Objective
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.saving import Part, packed, unpack
from fedsynth.methods.training.watch import Watch
from fedsynth.privacy.budget import Budget
from fedsynth.queries.preliminaries import Preliminaries, ask_preliminaries
from fedsynth.queries.rounds import expected
from fedsynth.queries.session import Session
from fedsynth.schema import ImageSchema, Schema


def training_task(budget: Budget) -> Task:
    """What clients are asked in the training's rounds."""
    return GRADIENT if budget.protects.per_record else TRAINING


def trainer_of(
    settings: FedGANSettings, game: Game, known: Preliminaries, source: torch.Generator
) -> GeneratorTrainer:
    """The generator of one part, that starts from the released tables and strives as set."""
    tables = tables_of(game, known)
    profiles = None if tables is None else torch.from_numpy(tables).float()
    start = started(game.generator, profiles, source, game.asks)
    learner = Learner(game.generator.layers, settings.learning_rate, source, start=start)
    objective = Objective(
        game.loss,
        matching=settings.matching or 0.0,
        conditional_loss=settings.conditional_loss or 0.0,
        auxiliary_loss=settings.auxiliary_loss or 0.0,
        mode_seeking_loss=settings.mode_seeking_loss or 0.0,
        max_gradient_norm=settings.max_gradient_norm,
    )
    # Tables of all rows together are no aim for the rows of one class.
    aim = profiles if game.parts == 1 else None
    return GeneratorTrainer(
        game.generator, learner, objective, conditions_of(game, known), aim, source
    )


class Training:
    """The server half of one fit: a discriminator and a generator a part, perhaps a classifier."""

    def __init__(
        self,
        schema: Schema | ImageSchema,
        session: Session,
        known: Preliminaries,
    ) -> None:
        settings: FedGANSettings = session.settings
        self.schema, self.settings, self.session, self.known = schema, settings, session, known
        self.channel, self.training = session.channel, session.plan.releases[-1]
        self.record = self.training.terms.protects.per_record
        self.game = game = game_of(settings, schema, known.encoding)
        self.source = torch.Generator().manual_seed(session.options.seed)
        units = known.records if self.record else self.channel.clients
        self.expected = expected(self.training.terms, units)
        self.discriminators = [
            Learner(game.discriminator.layers, settings.discriminator_learning_rate, self.source)
            for _ in range(game.parts)
            if not game.quadratic
        ]
        self.classifier = None
        if game.classifier is not None:
            rate = settings.discriminator_learning_rate
            self.classifier = Learner(game.classifier.layers, rate, self.source, (0.9, 0.999))
        self.trainers = [trainer_of(settings, game, known, self.source) for _ in range(game.parts)]
        self.watches = [
            Watch(trainer.learner.average.clone(), patience=settings.patience)
            for trainer in self.trainers
        ]
        self.row = row_of(game, self.training.terms.clip)
        self.matcher = None
        if game.quadratic:
            (units,), centre = game.discriminator.hidden, self.trainers[0].profiles
            assert centre is not None
            self.matcher = Matcher(units, centre, self.row.discriminator_clip, self.source)
        self.round = 0

    def run(self) -> Learned:
        channel, rounds = self.channel, self.training.count
        channel.announce("game", self.game.to_dict())
        if not self.record:
            channel.announce("conditions", plain_conditions(self.trainers[0].conditions))
        if self.matcher is not None:
            channel.announce("centre", self.matcher.centre.tolist())
        every = self.session.options.checkpoint_every
        while self.round < rounds and not self._over():
            # Rounds that an interrupted run lost stay charged, so a resumed one may end early.
            if channel.ledger.would_exceed(self.training.terms):
                break
            self._step()
            self.round += 1
            if self.round % self.settings.look_every == 0 or self.round == rounds:
                self._look()
            self.session.progress("training", self.round, rounds)
            if self.round % every == 0 and self.round < rounds:
                self.save()
        if not all(watch.looks and watch.looks[-1].round == self.round for watch in self.watches):
            # Lost rounds may end a resumed job between two looks.
            self._look()
        self.save()
        return self._learned()

    def _over(self) -> bool:
        return any(watch.diverged for watch in self.watches) or all(
            watch.stalled for watch in self.watches
        )

    def _look(self) -> None:
        for trainer, watch in zip(self.trainers, self.watches, strict=True):
            watch.look(trainer, trainer.learner.average, self.round, self.session.options.seed)

    def _learned(self) -> Learned:
        kept: list[Tensor] = []
        remarks: list[str] = []
        for part, (trainer, watch) in enumerate(zip(self.trainers, self.watches, strict=True)):
            name = "the generator" if len(self.trainers) == 1 else f"the generator of class {part}"
            found = watch.remarks(name)
            remarks += found
            kept.append(watch.kept if found or watch.patience else trainer.learner.average)
        flat = torch.cat(kept).numpy().astype(np.float32)
        return Learned(self.game, flat, self.known, tuple(remarks), self.schema)

    def _step(self) -> None:
        settings, done = self.settings, self.round / max(1, self.training.count)
        left = 1.0 if settings.schedule == "constant" else 1.0 - done
        rate = left * (settings.discriminator_learning_rate or 1e-3)
        if self.matcher is not None:
            self._match(self.matcher)
        elif self.record:
            self._descend(rate)
        else:
            self._average(rate)
        for part, trainer in enumerate(self.trainers):
            trainer.learner.pace(left * (settings.learning_rate or 1e-3))
            for _ in range(settings.generator_steps or 0):
                trainer.step(
                    settings.generator_batch or 2, self._discriminate(part), self._classify()
                )
                trainer.learner.follow(min(settings.average, (self.round + 1) / (self.round + 10)))
        if self.matcher is not None:
            rows = 4 * (settings.generator_batch or 2)
            self.matcher.turn(*self.trainers[0].rows(rows))

    def _match(self, matcher: Matcher) -> None:
        """A round of a quadratic discriminator: what its present vectors say of real rows."""
        size = self.game.discriminator.dim
        real = self._asked({}, {})
        matcher.remember(real[:size])
        self._step_classifier(real[size:])

    def _asked(self, arrays: dict[str, NDArray[Any]], asked: dict[str, float]) -> Tensor:
        """The round's released mean, [weights]."""
        held = [learner.flat for learner in self._seeing()]
        if self.matcher is not None:
            held.insert(0, self.matcher.weights.flatten())
        weights = torch.cat(held).numpy()
        released = self.channel.sum(
            self.training.label,
            self.training.terms,
            dim=len(weights),
            arrays={"weights": weights, **arrays},
            settings=asked,
        )
        return torch.from_numpy(released.value / self.expected).float()

    def _seeing(self) -> list[Learner]:
        """The networks that see real rows."""
        return self.discriminators + ([] if self.classifier is None else [self.classifier])

    def _descend(self, rate: float) -> None:
        """Record level: one step along the mean gradient of real rows and of generated ones."""
        real = self._asked({}, {})
        discriminator, trainer = self.discriminators[0], self.trainers[0]
        discriminator.pace(rate)
        cells, labels = trainer.rows(self.settings.generator_batch or 2)
        fakes = self.row.generated_gradient(self._blurred(cells), labels, discriminator.weights)
        size = self.game.discriminator.dim
        gradient = real[:size] + torch.from_numpy(fakes).float()
        if self.game.penalty:
            gradient = gradient + self.game.penalty * self.game.penalty_gradient(
                discriminator.weights, cells, labels
            )
        discriminator.descend_along(gradient)
        self._step_classifier(real[size:])

    def _step_classifier(self, gradient: Tensor) -> None:
        """A step of the classifier, if there is one."""
        if self.classifier is not None:
            self.classifier.descend_along(gradient)
            self.classifier.follow(self.settings.average)

    def _average(self, rate: float) -> None:
        """Client level: the mean of the clients' ways (Algorithm 3)."""
        generators = torch.cat([trainer.learner.flat for trainer in self.trainers]).numpy()
        asked = {
            "steps": self.settings.local_steps or 1,
            "batch_size": self.settings.batch_size or 1,
            "learning_rate": rate,
        }
        moved = self._asked({"generators": generators}, asked)
        parts = torch.split(moved, self.game.discriminator.dim)
        for learner, way in zip(self.discriminators, parts, strict=True):
            learner.move(way)

    def _discriminate(self, part: int) -> Any:
        matcher = self.matcher
        if matcher is not None:
            # How near all rows together come: the mean of one logit is its loss.
            return lambda cells, labels: -matcher.gap(cells, labels)[None]
        weights = self.discriminators[part].weights
        return lambda cells, labels: self.game.discriminate(weights, self._blurred(cells), labels)

    def _classify(self) -> Any:
        learner, network = self.classifier, self.game.classifier
        if learner is None or network is None:
            return None
        return lambda cells: network.logits(learner.weights, cells)

    def _blurred(self, cells: Tensor) -> Tensor:
        if not self.game.smoothing:
            return cells
        return cells + self.game.smoothing * torch.randn(cells.shape, generator=self.source)

    def save(self) -> None:
        """Checkpoint everything that :meth:`restore` needs."""
        arrays, meta = pack(self.known)
        arrays["source"] = self.source.get_state().numpy()
        arrays |= packed(self._parts())
        self.session.checkpoint(arrays, {"round": self.round, **meta})

    def restore(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        if self.session.restored is None:
            return
        arrays, meta = self.session.restored
        self.round = int(meta["round"])
        self.source.set_state(torch.from_numpy(arrays["source"].copy()))
        unpack(self._parts(), arrays)

    def _parts(self) -> dict[str, Part]:
        """All that learns or watches, by name."""
        found: dict[str, Part] = {}
        for part, (trainer, watch) in enumerate(zip(self.trainers, self.watches, strict=True)):
            found |= {f"generator{part}": trainer.learner, f"watch{part}": watch}
        found |= {f"discriminator{part}": own for part, own in enumerate(self.discriminators)}
        if self.classifier is not None:
            found["classifier"] = self.classifier
        if self.matcher is not None:
            found["matcher"] = self.matcher
        return found


def trained(schema: Schema | ImageSchema, session: Session) -> Learned:
    """A whole fit, or the rest of an interrupted one."""
    known = session.saved(Preliminaries)
    if known is None:
        known = ask_preliminaries(session, schema, session.settings.bins)
    elif known.encoding is not None:
        session.channel.announce("encoding", known.encoding.to_dict())
    training = Training(schema, session, known)
    training.restore()
    if session.restored is None:
        training.save()
    return training.run()
