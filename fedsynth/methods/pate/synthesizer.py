"""PATE across clients: their teachers vote on rows without labels, and a student learns from it.

Paper 000 with Papernot et al. 2017 and 2018: n teachers on disjoint data, noisy vote counts, a
student trained on the rows so labelled. Only the votes see real rows (and the statistics that rows
are drawn from, where none are public); everything else is post-processing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from pydantic import BaseModel

from fedsynth.codec import Arrays
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.federation.client.progress import watch
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.model import learn
from fedsynth.methods.copula.settings import PrivateFusionSettings
from fedsynth.methods.copula.statistics import ask_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS, read_question
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.pate.learned import Learned
from fedsynth.methods.pate.settings import PATESettings, demand_classes
from fedsynth.methods.pate.sources import Drawn, Public, public_rows, size_of
from fedsynth.methods.pate.student import train
from fedsynth.methods.pate.tasks import VOTES
from fedsynth.methods.pate.votes import ask_votes
from fedsynth.methods.sampling.predicting import conform_unlabelled
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.queries.votes import Votes, vote_terms
from fedsynth.schema import ImageSchema, Schema

Floats = NDArray[np.float64]
# Rows beside the queries that the student learns the denoised shares of.
_OTHERS = 8_000


class PATE(Synthesizer[Learned]):
    """PATE for tables and images with a target of categories.

    What hides a teacher is the number of the others: one vote stands against noise of about
    ``3.7 sqrt(2 queries)`` votes at epsilon 1, and teachers agree or the noise drowns them. Where
    clients are protected each has one vote, so ten clients teach nothing at epsilon 1; hundreds
    do. Where records are protected a client brings many teachers, each of few records.

    The student is what it is good at: on Adult its rows teach a classifier less than those that the
    same statistics give by themselves (private fusion with the whole budget).

    A sampled row is a public row, or one like those that were drawn from released statistics, with
    a label by the student. Public rows themselves are part of the release.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`PATESettings`; or its fields as keywords.
        public: rows or images that anybody may see, to be labelled by the teachers; labels of
            theirs are not looked at. Tables can do without; images cannot.

    Raises:
        ConfigError: a schema without a target of categories, settings that are none, public rows
            that do not fit the schema.
    """

    name: ClassVar[str] = "pate"
    settings_type = PATESettings
    no_persons = ""
    learned_type = Learned
    settings: PATESettings

    def __init__(
        self,
        schema: Schema | ImageSchema | None = None,
        settings: BaseModel | Mapping[str, Any] | None = None,
        *,
        public: pd.DataFrame | Images | Public | None = None,
        **overrides: Any,
    ) -> None:
        super().__init__(schema, settings, **overrides)
        demand_classes(self.schema)
        self.public: Public | None
        if public is None or isinstance(public, Public):
            self.public = public
        else:
            self.public = public_rows(public, self.schema)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {**super().get_params(deep), "public": self.public}

    def __sklearn_clone__(self, **params: Any) -> Self:
        return super().__sklearn_clone__(**{"public": self.public, **params})

    def resolved(self, budget: Budget) -> PATESettings:
        """Settings with all defaults; no more queries than there are public rows."""
        settings = self.settings.resolved(budget, self.schema)
        if self.public is None:
            if isinstance(self.schema, ImageSchema):
                raise ConfigError(
                    "pate: teachers need images to label, and none can be drawn from statistics: "
                    "give images that anybody may see, public=..., or use fedvae or fedgan"
                )
            return settings
        most = size_of(self.public.rows)
        return settings.model_copy(update={"queries": min(settings.queries, most)})

    def stages(
        self, settings: PATESettings, budget: Budget, clients: int, surviving: int
    ) -> list[Stage]:
        """The votes, and before them the statistics that rows are drawn from."""
        noise = settings.noise

        def statistics(multiplier: float) -> Terms:
            return statistics_terms(budget, multiplier, surviving, noise)

        def votes(multiplier: float) -> Terms:
            return vote_terms(budget, multiplier, surviving, settings.queries, noise)

        if self.public is not None:
            return [Stage(VOTES.name, 1.0, votes)]
        return [
            Stage(STATISTICS.name, settings.row_share, statistics),
            Stage(VOTES.name, 1 - settings.row_share, votes),
        ]

    def learn(self, session: Session) -> Learned:
        job = _Vote(session, self.schema, session.settings, self.public)
        return job.train(self.public or job.candidates())

    def known(self) -> dict[str, Any]:
        cells = TableCells.of(self.schema) if isinstance(self.schema, Schema) else None
        return {"inputs": Inputs(self.schema), "cells": cells}

    @classmethod
    def from_state(
        cls, schema: Schema | ImageSchema, arrays: Arrays, meta: Mapping[str, Any]
    ) -> Self:
        synthesizer = super().from_state(schema, arrays, meta)
        if isinstance(synthesizer.learned.source, Public):
            synthesizer.public = synthesizer.learned.source
        return synthesizer

    def probabilities(self, data: pd.DataFrame | Images) -> Floats:
        """The student's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; their labels are not looked at.

        Raises:
            ConfigError, DataError: data that do not fit the schema.
        """
        rows = self.learned.inputs.matrix(conform_unlabelled(data, self.schema))
        return self.learned.probabilities(rows)


@dataclass
class _Vote:
    """The releases of a fit, each saved before the next is asked for."""

    session: Session
    schema: Schema | ImageSchema
    settings: PATESettings
    public: Public | None

    def candidates(self) -> Drawn:
        """Rows from released statistics."""
        assert isinstance(self.schema, Schema)
        question, terms = _question(self.schema), self.session.plan.terms(STATISTICS.name)
        if "statistics" in self._arrays:
            whole = read_question(self.schema, question, terms.norm)
            sigma = float(self._meta["statistics_sigma"])
            statistics = whole.answer(np.asarray(self._arrays["statistics"]), sigma)
        else:
            self.session.progress("statistics", 0, 1)
            statistics = ask_statistics(self.session.channel, terms, self.schema, question)
            values, sigma = statistics.released
            self._save({"statistics": values}, {"statistics_sigma": sigma})
            self.session.progress("statistics", 1, 1)
        return Drawn(learn(statistics))

    def train(self, source: Public | Drawn) -> Learned:
        """The student of the teachers' votes on rows of the source."""
        settings, seed = self.settings, self.session.options.seed
        inputs = Inputs(self.schema)
        rng = np.random.default_rng(seed)
        rows, more = source.queries(settings.queries, _OTHERS, rng)
        queries = inputs.matrix(rows)
        votes = self._votes(queries, inputs.classes)
        student = train(inputs, queries, votes, inputs.matrix(more), settings.labels, seed)
        return Learned.of(inputs, source, student)

    def _votes(self, queries: Floats, classes: int) -> Votes:
        arrays, meta = self._arrays, self._meta
        if "votes" in arrays:
            counts = np.asarray(arrays["votes"], np.float64)
            return Votes(counts, float(meta["votes_sigma"]), int(meta["teachers"]))
        channel, settings = self.session.channel, self.settings
        assert settings.teachers is not None
        total, done = channel.clients * settings.teachers, 0

        def report(teachers: int) -> None:
            nonlocal done
            done += teachers
            self.session.progress("teachers", done, total)

        with watch(report):
            terms = self.session.plan.terms(VOTES.name)
            votes = ask_votes(channel, terms, queries, classes, settings.teachers, settings.steps)
        self._save(
            {"votes": votes.counts}, {"votes_sigma": votes.sigma, "teachers": votes.teachers}
        )
        return votes

    @property
    def _arrays(self) -> Mapping[str, NDArray[Any]]:
        return {} if self.session.restored is None else self.session.restored[0]

    @property
    def _meta(self) -> Mapping[str, Any]:
        meta = {} if self.session.restored is None else self.session.restored[1]
        if meta and meta.get("public") != self._digest:
            raise ConfigError(
                "pate: the job to resume was started with other public rows: give the same ones"
            )
        return meta

    @property
    def _digest(self) -> str | None:
        return None if self.public is None else self.public.digest

    def _save(self, arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> None:
        whole = {**self._arrays, **arrays}, {**self._meta, **meta, "public": self._digest}
        self.session.checkpoint(*whole)
        self.session.restored = whole


def _question(schema: Schema) -> dict[str, Any]:
    """What is asked of the rows that are drawn: as private fusion by default."""
    return PrivateFusionSettings().question(schema)
