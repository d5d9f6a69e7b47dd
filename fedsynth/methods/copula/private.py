"""Private Fusion: one noisy message of histograms and second moments, regenerated at the server.

The idea of Fusion Learning (paper 004, Algorithm 2: fit every feature, send once, regenerate) with
a privacy guarantee and with correlations. Everything after the one released sum is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import Field

from fedsynth.codec import GIVEN
from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.federation.request import Plain
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.model import FusionModel, Marginals, learn
from fedsynth.methods.copula.statistics import statistics_once, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.settings import MethodSettings
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.mechanisms.stable import best_alpha
from fedsynth.privacy.terms import Budget, Terms
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.schema import ImageSchema, Schema

Mechanism = Literal["gaussian", "laplace", "stable"]

# Rows that the classifier learns from: as many as there are records, within these.
_LEAST_ROWS, _MOST_ROWS = 1_000, 20_000


class PrivateFusionSettings(MethodSettings):
    """What is asked, and what is made of it.

    Attributes:
        mechanism: gaussian noise for a bounded L2 norm; or for a bounded L1 norm laplace (under
            central or local trust, since shares of it do not add up to it), or stable, symmetric
            alpha-stable noise.
        alpha: index of stable noise, in [1, 2); by default the one of the least mean magnitude at
            equal epsilon, about 1.7. None for other mechanisms.
        correlations: copula (from noisy second moments), or none: columns independent within a
            class, the whole budget for the histograms.
        moment_share: share of a record's squared norm (laplace, stable: of its norm) that goes to
            second moments rather than histograms; unused without correlations.
        marginals: of numbers within a class. histogram: the smoothed noisy histogram; families: of
            paper 004's 25 distributions the one nearest to the noisy histogram, wherever it fits
            within the noise; auto: such a family where the noise is large beside the class. On
            small tables families bring columns nearer (wdbc, voice, audit), teach a classifier
            more on one and less on another, and take a third of a second a column and class.
        learned_orders: columns of at most so many categories have a score each, so that the order
            in which the copula takes them is learned; others are taken in the schema's order. On
            the tables measured it brings pairs of columns nearer and teaches a classifier no more;
            messages grow with the square of the scores.
    """

    method: ClassVar[str] = "private-fusion"

    mechanism: Annotated[Mechanism, Field(description="gaussian, laplace or stable")] = "gaussian"
    alpha: Annotated[float | None, Field(ge=1, lt=2, description="a number in [1, 2)")] = None
    correlations: Annotated[Literal["copula", "none"], Field(description="copula or none")] = (
        "copula"
    )
    moment_share: Annotated[float, Field(gt=0, lt=1, description="a share in (0, 1)")] = 0.3
    marginals: Annotated[Marginals, Field(description="auto, families or histogram")] = "histogram"
    learned_orders: Annotated[int, Field(ge=0, description="a whole number of at least 0")] = 0

    def resolved(self, budget: Budget, schema: Schema | ImageSchema) -> PrivateFusionSettings:
        """All defaults filled in.

        Raises:
            ConfigError: a schema of images, or an alpha for another mechanism than stable.
        """
        if not isinstance(schema, Schema):
            raise ConfigError("private-fusion is for tables: use fedvae or fusion-gan for images")
        alpha = self.alpha
        if self.mechanism == "stable":
            alpha = best_alpha() if alpha is None else alpha
        elif alpha is not None:
            raise ConfigError(f"alpha is for stable noise, and mechanism is {self.mechanism}")
        return self.model_copy(update={"alpha": alpha})

    def question(self, schema: Schema) -> dict[str, Plain]:
        """The public settings of the request, without groups.

        Args:
            schema: of the table.
        """
        joined = self.correlations == "copula" and len(TableCells.of(schema).columns) > 1
        return {
            "share": self.moment_share if joined else 0.0,
            "apart": self.learned_orders,
        }


@dataclass(frozen=True, eq=False)
class Learned:
    """What a fit leaves behind: the model, and the schema of its rows."""

    model: FusionModel
    schema: Annotated[Schema, GIVEN]

    def check(self) -> None:
        self.model.check()

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
        rows = int(np.clip(self.model.profiles.records.sum(), _LEAST_ROWS, _MOST_ROWS))
        drawn = conform(self.draw(rows, None, None, 0), self.schema, where="synthetic rows").columns
        labels = drawn[str(self.schema.target)].astype(np.int64)
        x = Design(self.schema).matrix(drawn)
        return Classifier.train(x, labels, self.schema.classes, seed=0)


class PrivateFusion(Synthesizer[Learned]):
    """One round, one message a client, one entry in the ledger."""

    name: ClassVar[str] = "private-fusion"
    settings_type = PrivateFusionSettings
    learned_type = Learned
    images = False
    schema: Schema
    settings: PrivateFusionSettings

    def stages(
        self, settings: PrivateFusionSettings, budget: Budget, clients: int, surviving: int
    ) -> list[Stage]:
        def terms(multiplier: float) -> Terms:
            own = settings.mechanism, settings.alpha
            return statistics_terms(budget, multiplier, surviving, *own)

        return [Stage(STATISTICS.name, 1.0, terms)]

    def learn(self, session: Session) -> Learned:
        settings: PrivateFusionSettings = session.settings
        statistics = statistics_once(session, self.schema, settings.question(self.schema))
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
