"""Private Fusion: one noisy message of histograms and second moments, regenerated at the server.

The idea of Fusion Learning (paper 004, Algorithm 2: fit every feature, send once, regenerate) with
a privacy guarantee and with correlations. Everything after the one released sum is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.codec import GIVEN
from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.model import FusionModel, learn
from fedsynth.methods.copula.settings import PrivateFusionSettings
from fedsynth.methods.copula.statistics import restore_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS, read_question
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.schema import Schema
from fedsynth.views import Outlined

# Rows that the classifier learns from: as many as there are records, within these.
_LEAST_ROWS, _MOST_ROWS = 1_000, 20_000


@dataclass(frozen=True, eq=False, repr=False)
class Learned(Outlined):
    """What a fit leaves behind: the model, and the schema of its rows."""

    model: FusionModel
    schema: Annotated[Schema, GIVEN]

    def check(self) -> None:
        self.model.check()

    @property
    def records(self) -> float:
        """How many there are, estimated from noisy counts."""
        return float(self.model.profiles.records.sum())

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        """Rows that meet conditions on the target exactly, and others by drawing again."""
        model = self.model
        return draw_table(
            self.schema, model.frequencies, rows, where, proportions, seed, model.columns
        )

    @cached_property
    def classifier(self) -> Classifier:
        """Of regenerated rows."""
        rows = int(np.clip(self.records, _LEAST_ROWS, _MOST_ROWS))
        drawn = conform(self.draw(rows, None, None, 0), self.schema, where="synthetic rows").columns
        labels = drawn[str(self.schema.target)].astype(np.int64)
        x = Design(self.schema).matrix(drawn)
        return Classifier.train(x, labels, self.schema.classes, seed=0)


class PrivateFusion(Synthesizer[Learned]):
    """One round, one message a client, one entry in the ledger."""

    name: ClassVar[str] = "private-fusion"
    settings_type = PrivateFusionSettings
    no_persons = ""
    learned_type = Learned
    images = False
    schema: Schema
    settings: PrivateFusionSettings

    def stages(
        self, settings: PrivateFusionSettings, budget: Budget, clients: int, surviving: int
    ) -> list[Stage]:
        def terms(multiplier: float) -> Terms:
            mechanism = settings.mechanism, settings.alpha
            return statistics_terms(budget, multiplier, surviving, *mechanism)

        return [Stage(STATISTICS.name, 1.0, terms)]

    def expect(
        self, settings: PrivateFusionSettings, plan: Plan, records: int | None = None
    ) -> Expected:
        norm = plan.terms(STATISTICS.name).norm
        asked = read_question(self.schema, settings.question(self.schema), norm)
        return Expected({STATISTICS.name: float(asked.dim)}, {STATISTICS.name: 0.0})

    def learn(self, session: Session) -> Learned:
        settings: PrivateFusionSettings = session.settings
        statistics = restore_statistics(session, self.schema, settings.question(self.schema))
        model = learn(statistics, marginals=settings.marginals)
        session.progress("message", 1, 1)
        return Learned(model, self.schema)

    def known(self) -> dict[str, Any]:
        return {"schema": self.schema, "cells": TableCells.of(self.schema)}

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """Of every class of the target, [n, classes], by a classifier of regenerated rows.

        It is trained at the first call, as post-processing.

        Args:
            data: rows of the schema's columns; the target's may be absent.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: a table that the schema does not fit.
        """
        learned, columns = self.learned, conform_unlabelled(data, self.schema).columns
        return learned.classifier.probabilities(Design(self.schema).matrix(columns))
