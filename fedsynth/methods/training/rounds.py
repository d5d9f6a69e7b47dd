"""Methods that train in many rounds, after counts that these are scaled by."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from fedsynth.methods.fitted import L
from fedsynth.methods.fitting import Method
from fedsynth.methods.synthesizer import G, Synthesizer
from fedsynth.methods.training.threads import small_products
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.counting import CountQuestion, question
from fedsynth.queries.rounds import participations_of, plan_rounds
from fedsynth.queries.session import Session


class InRounds(Method[L]):
    """A method whose last release is a training of many rounds.

    Its settings are :class:`fedsynth.queries.rounds.Rounds`.
    """

    @abstractmethod
    def task(self, budget: Budget) -> str:
        """Name of what clients are asked in the training's rounds."""

    @abstractmethod
    def train(self, session: Session) -> L:
        """The whole training, or the rest of an interrupted one."""

    def first_question(self, settings: Any) -> CountQuestion:
        """What is counted before the training: of how many records, at the least."""
        return question(self.schema)

    def pair_share(self, settings: Any) -> float:
        """Of the budget, what tables of two columns are asked by; 0 for none."""
        return 0.0

    def releases(
        self, settings: Any, budget: Budget, clients: int, survivors: float
    ) -> tuple[Planned, ...]:
        task, counted = self.task(budget), self.first_question(settings)
        pairs = self.pair_share(settings)
        return plan_rounds(settings, self.schema, budget, clients, survivors, task, counted, pairs)

    def participations(self, settings: Any, budget: Budget, clients: int) -> int | None:
        return participations_of(settings, budget, clients)

    def learn(self, session: Session) -> L:
        with small_products():
            return self.train(session)


class RoundsSynthesizer(InRounds[G], Synthesizer[G]):
    """A synthesizer whose last release is a training of many rounds."""
