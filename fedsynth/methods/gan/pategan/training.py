"""The server half: a student that learns from noisy votes, and the generator that faces it.

It sees released values alone, so everything here is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.codec import pack
from fedsynth.federation.client.groups import GROUPS
from fedsynth.methods.gan.networks import game_of
from fedsynth.methods.gan.pategan.settings import PATEGANSettings
from fedsynth.methods.gan.pategan.tasks import TEACHER_VOTES
from fedsynth.methods.gan.sampling import Learned
from fedsynth.methods.gan.server import trainer_of
from fedsynth.methods.training.learner import Learner
from fedsynth.methods.training.saving import Arrays, Part, pack_parts, unpack_parts
from fedsynth.methods.training.watch import Watch
from fedsynth.queries.preliminaries import Preliminaries, ask_preliminaries
from fedsynth.queries.session import Session
from fedsynth.queries.votes import Votes
from fedsynth.schema import ImageSchema, Schema


class StudentTraining:
    """The server half of one fit.

    The student sees generated rows alone, and what the teachers together said of them (Jordon et
    al. 2019). The noise in their shares is centred, so the squared error of the student's
    probabilities finds the shares themselves.
    """

    def __init__(
        self,
        schema: Schema | ImageSchema,
        session: Session,
        known: Preliminaries,
    ) -> None:
        settings: PATEGANSettings = session.settings
        self.schema, self.settings, self.session, self.known = schema, settings, session, known
        self.training = session.plan.releases[-1]
        self.game = game_of(settings, schema, known.encoding)
        self.source = torch.Generator().manual_seed(session.options.seed)
        rate = settings.discriminator_learning_rate
        self.student = Learner(self.game.discriminator.layers, rate, self.source)
        self.trainer = trainer_of(settings, self.game, known, self.source)
        start = self.trainer.learner.average.clone()
        self.watch = Watch(start, patience=settings.patience)
        self.round = 0

    def run(self) -> Learned:
        """All rounds that are left."""
        channel, rounds = self.session.channel, self.training.count
        channel.announce("game", self.game.to_dict())
        while self.round < rounds and not (self.watch.diverged or self.watch.stalled):
            # A round that an interrupted run lost stays charged, so a resumed one may end early.
            if not channel.affords(self.training.terms):
                break
            self._step()
            self.round += 1
            if self.round % self.settings.look_every == 0:
                self._look()
            self.session.progress("training", self.round, rounds)
            if self.round % self.session.options.checkpoint_every == 0 and self.round < rounds:
                self.save()
        if not self.watch.looks or self.watch.looks[-1].round < self.round:
            self._look()
        self.save()
        remarks = self.watch.remarks("the generator")
        average = self.trainer.learner.average
        kept = self.watch.kept if remarks or self.watch.patience else average
        flat = kept.numpy().astype(np.float32)
        return Learned(self.game, flat, self.known, remarks, self.schema)

    def _look(self) -> None:
        average, seed = self.trainer.learner.average, self.session.options.seed
        self.watch.look(self.trainer, average, self.round, seed)

    def _step(self) -> None:
        """One round: a release of votes, the student's steps and the generator's."""
        settings, done = self.settings, self.round / max(1, self.training.count)
        left = 1.0 if settings.schedule == "constant" else 1.0 - done
        self.student.pace(left * (settings.discriminator_learning_rate or 1e-3))
        self.trainer.learner.pace(left * (settings.learning_rate or 1e-3))
        queries, labels = self.trainer.rows(settings.queries)
        targets = self._ask_shares(queries, labels)
        for _ in range(settings.student_steps):
            probabilities = self._discriminate(queries, labels).sigmoid()
            self.student.descend(
                (probabilities - targets).square().mean(), settings.max_gradient_norm
            )
        for _ in range(settings.generator_steps or 0):
            self.trainer.step(settings.generator_batch or 2, self._discriminate)
            self.trainer.learner.follow(min(settings.average, (self.round + 1) / (self.round + 10)))

    def _discriminate(self, cells: Tensor, labels: Tensor | None) -> Tensor:
        """The student's logits [b]."""
        if self.game.smoothing:
            noise = torch.randn(cells.shape, generator=self.source)
            cells = cells + self.game.smoothing * noise
        return self.game.discriminate(self.student.weights, cells, labels)

    def _ask_shares(self, queries: Tensor, labels: Tensor | None) -> Tensor:
        """Released noisy shares [queries] of the teachers that take a row for real."""
        settings, terms = self.settings, self.training.terms
        fakes, fake_labels = self.trainer.rows(settings.generator_batch or 2)
        arrays: Arrays = {"queries": self._to_message(queries), "fakes": self._to_message(fakes)}
        if labels is not None and fake_labels is not None:
            arrays |= {"query_labels": labels.numpy(), "fake_labels": fake_labels.numpy()}
        teachers = settings.teachers or 1
        released = self.session.channel.sum(
            TEACHER_VOTES.name,
            terms,
            2 * len(queries),
            arrays=arrays,
            settings={
                GROUPS: teachers,
                "steps": settings.local_steps or 1,
                "warmup": settings.warmup,
                "batch_size": settings.batch_size or 1,
                "learning_rate": settings.discriminator_learning_rate or 1e-3,
            },
        )
        votes = Votes.of(released, terms, len(queries), teachers)
        return torch.from_numpy(votes.shares[:, 1]).float()

    def _to_message(self, cells: Tensor) -> NDArray[np.generic]:
        """Records as they travel: a table's codes [b, columns], or pixels [b, width]."""
        if self.game.cells.shape:
            return np.asarray(cells.numpy())
        parts = torch.split(cells, list(self.game.cells.columns), dim=1)
        return np.stack([part.argmax(1).numpy() for part in parts], axis=1).astype(np.int32)

    def save(self) -> None:
        """Checkpoint everything that :meth:`restore` needs; the teachers are their clients'."""
        arrays, meta = pack(self.known)
        arrays |= {"source": self.source.get_state().numpy(), **pack_parts(self._parts())}
        self.session.checkpoint(arrays, {**meta, "round": self.round})

    def restore(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        """Go on from a checkpoint."""
        self.round = int(meta["round"])
        self.source.set_state(torch.from_numpy(arrays["source"].copy()))
        unpack_parts(self._parts(), arrays)

    def _parts(self) -> dict[str, Part]:
        """All that learns or watches, by name."""
        return {"student": self.student, "generator": self.trainer.learner, "watch": self.watch}


def train_student(schema: Schema | ImageSchema, session: Session) -> Learned:
    """A whole fit, or the rest of an interrupted one."""
    known = session.restore(Preliminaries)
    if known is None or session.restored is None:
        known = ask_preliminaries(session, schema, session.settings.bins)
        training = StudentTraining(schema, session, known)
        training.save()
        return training.run()
    if known.encoding is not None:
        session.channel.announce("encoding", known.encoding.to_dict())
    training = StudentTraining(schema, session, known)
    training.restore(*session.restored)
    return training.run()
