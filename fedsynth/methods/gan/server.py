"""The server half of a fit: ask, step the discriminators, train the generators, look at them.

It sees released values alone, so everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from fedsynth.codec import pack
from fedsynth.encoding.resolution import undivided_remarks
from fedsynth.federation.client.tasks import Task
from fedsynth.methods.gan.discriminators import (
    Auxiliary,
    Averaging,
    Descending,
    Discriminators,
    Matching,
    Round,
)
from fedsynth.methods.gan.game import Game, initialise
from fedsynth.methods.gan.matching import Matcher
from fedsynth.methods.gan.networks import conditions_of, game_of, tables_of
from fedsynth.methods.gan.sampling import Learned
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.methods.gan.tasks.gradient import GRADIENT, row_of
from fedsynth.methods.gan.tasks.local_training import TRAINING
from fedsynth.methods.training.generating import GeneratorTrainer, Objective
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.saving import Part, pack_parts, unpack_parts
from fedsynth.methods.training.watch import Watch
from fedsynth.privacy.budget import Budget
from fedsynth.queries.preliminaries import Preliminaries, ask_preliminaries
from fedsynth.queries.rounds import expected_units
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
    start = initialise(game.generator, profiles, source, game.asks)
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
        expected = expected_units(self.training.terms.sampling, units)
        self.asking = Round(self.channel, self.training, expected)
        rate = settings.discriminator_learning_rate
        learners = [
            Learner(game.discriminator.layers, rate, self.source)
            for _ in range(game.parts)
            if not game.quadratic
        ]
        self.auxiliary = None
        if game.classifier is not None:
            learner = Learner(game.classifier.layers, rate, self.source, (0.9, 0.999))
            self.auxiliary = Auxiliary(game.classifier, learner, settings.average)
        self.trainers = [trainer_of(settings, game, known, self.source) for _ in range(game.parts)]
        self.watches = [
            Watch(trainer.learner.average.clone(), patience=settings.patience)
            for trainer in self.trainers
        ]
        self.discriminators = self._discriminators(learners)
        self.round = 0

    def _discriminators(self, learners: Sequence[Learner]) -> Discriminators:
        """How the networks that see real rows learn in this game."""
        game, batch = self.game, self.settings.generator_batch or 2
        row = row_of(game, self.training.terms.clip)
        if game.quadratic:
            (units,), centre = game.discriminator.hidden, self.trainers[0].profiles
            assert centre is not None
            matcher = Matcher(units, centre, row.discriminator_clip, self.source)
            return Matching(matcher, self.auxiliary, batch)
        if self.record:
            return Descending(game, learners, self.source, row, self.auxiliary, batch)
        return Averaging(game, learners, self.source, self.settings)

    def run(self) -> Learned:
        channel, rounds = self.channel, self.training.count
        channel.announce("game", self.game.to_dict())
        self.discriminators.announce(channel, self.trainers)
        every = self.session.options.checkpoint_every
        while self.round < rounds and not self._finished():
            # A round that an interrupted run lost stays charged, so a resumed one may end early.
            if not channel.affords(self.training.terms):
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
        return self._to_learned()

    def _finished(self) -> bool:
        return any(watch.diverged for watch in self.watches) or all(
            watch.stalled for watch in self.watches
        )

    def _look(self) -> None:
        for trainer, watch in zip(self.trainers, self.watches, strict=True):
            watch.look(trainer, trainer.learner.average, self.round, self.session.options.seed)

    def _to_learned(self) -> Learned:
        kept: list[Tensor] = []
        remarks = [*undivided_remarks(self.known.encoding)]
        for part, (trainer, watch) in enumerate(zip(self.trainers, self.watches, strict=True)):
            name = "the generator" if len(self.trainers) == 1 else f"the generator of class {part}"
            warnings = watch.remarks(name)
            remarks += warnings
            kept.append(watch.kept if warnings or watch.patience else trainer.learner.average)
        flat = torch.cat(kept).numpy().astype(np.float32)
        return Learned(self.game, flat, self.known, tuple(remarks), self.schema)

    def _step(self) -> None:
        settings, done = self.settings, self.round / max(1, self.training.count)
        left = 1.0 if settings.schedule == "constant" else 1.0 - done
        rate = left * (settings.discriminator_learning_rate or 1e-3)
        self.discriminators.learn(self.asking, self.trainers, rate)
        classify = None if self.auxiliary is None else self.auxiliary.classify
        for part, trainer in enumerate(self.trainers):
            trainer.learner.pace(left * (settings.learning_rate or 1e-3))
            discriminate = self.discriminators.discriminate(part)
            for _ in range(settings.generator_steps or 0):
                trainer.step(settings.generator_batch or 2, discriminate, classify)
                trainer.learner.follow(min(settings.average, (self.round + 1) / (self.round + 10)))
        self.discriminators.close(self.trainers)

    def save(self) -> None:
        """Checkpoint everything that :meth:`restore` needs."""
        arrays, meta = pack(self.known)
        arrays["source"] = self.source.get_state().numpy()
        arrays |= pack_parts(self._parts())
        self.session.checkpoint(arrays, {"round": self.round, **meta})

    def restore(self) -> None:
        """Go on from the last checkpoint, if there is one."""
        if self.session.restored is None:
            return
        arrays, meta = self.session.restored
        self.round = int(meta["round"])
        self.source.set_state(torch.from_numpy(arrays["source"].copy()))
        unpack_parts(self._parts(), arrays)

    def _parts(self) -> dict[str, Part]:
        """All that learns or watches, by name."""
        parts: dict[str, Part] = {}
        for part, (trainer, watch) in enumerate(zip(self.trainers, self.watches, strict=True)):
            parts |= {f"generator{part}": trainer.learner, f"watch{part}": watch}
        if self.auxiliary is not None:
            parts["classifier"] = self.auxiliary.learner
        return parts | self.discriminators.parts()


def train(schema: Schema | ImageSchema, session: Session) -> Learned:
    """A whole fit, or the rest of an interrupted one."""
    known = session.restore(Preliminaries)
    if known is None:
        known = ask_preliminaries(session, schema, session.settings.bins)
    elif known.encoding is not None:
        session.channel.announce("encoding", known.encoding.to_dict())
    training = Training(schema, session, known)
    training.restore()
    if session.restored is None:
        training.save()
    return training.run()
