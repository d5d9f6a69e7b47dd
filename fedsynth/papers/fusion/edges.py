"""What the edge servers of hybrid fusion hold, without privacy and with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.codec import GIVEN, Named
from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.errors import ReleaseError
from fedsynth.methods.copula.model import FusionModel, learn
from fedsynth.methods.copula.settings import PrivateFusionSettings
from fedsynth.methods.copula.statistics import restore_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.published import collect_messages
from fedsynth.papers.fusion.regenerated import Learned, with_classifier
from fedsynth.papers.fusion.regeneration import shares_of
from fedsynth.privacy.budget import Budget
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.schema import ImageSchema, Schema
from fedsynth.views import Outlined

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Points = list[tuple[Floats, Whole]]


def private_stage(budget: Budget, surviving: int, schema: Schema | ImageSchema) -> Stage:
    """One noisy sum of all edges' statistics."""
    mechanism = PrivateFusionSettings().resolved(budget, schema).mechanism
    return Stage(STATISTICS.name, 1.0, lambda m: statistics_terms(budget, m, surviving, mechanism))


@dataclass(frozen=True, eq=False, repr=False)
class PublishedEdges(Outlined):
    """The clients' messages, as published.

    Attributes:
        learned: of all clients; its classifier is the cloud's.
        owners: names of the clients with rows, as the source has them.
    """

    learned: Learned
    owners: Annotated[tuple[str, ...], GIVEN] = ()
    private: Literal[False] = False

    @property
    def classifier(self) -> Classifier | None:
        """The cloud's model; None without classes."""
        return self.learned.classifier

    @classmethod
    def ask(cls, session: Session, schema: Schema | ImageSchema, dealt: Mapping[str, int]) -> Self:
        """Ask every client once."""
        learned = collect_messages(session, schema)
        pairs = zip(learned.clients, learned.messages, strict=True)
        return cls(learned, tuple(name for name, message in pairs if message.any()))

    def check(self) -> None:
        self.learned.check()

    def points(self, dealt: Mapping[str, int], points: int, seed: int) -> Points:
        source = self.learned.source
        shares = shares_of(max(points, len(self.owners)), len(self.owners))
        sets = []
        for edge in range(1 + max(dealt.values())):
            members = [k for k, name in enumerate(self.owners) if dealt[name] == edge]
            rng = np.random.default_rng([seed, 1, edge])
            cells, labels = source.points_of(
                np.repeat(members, shares[members]).astype(np.int64), rng
            )
            sets.append((source.layout.inputs(cells), labels))
        return sets

    def with_classifier(self, classifier: Classifier, frequencies: Floats) -> PublishedEdges:
        """With the cloud's model, and the classes' shares among the points."""
        return replace(self, learned=with_classifier(self.learned, classifier, frequencies))

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """As :meth:`Learned.draw`."""
        return self.learned.draw(rows, where, proportions, seed)


@dataclass(frozen=True, eq=False, repr=False)
class PrivateEdges(Outlined):
    """Private Fusion's model of every edge, all of one noisy sum.

    Attributes:
        schema: of the table.
        models: one an edge.
        vector: of the cloud's classifier; empty without classes.
    """

    schema: Annotated[Schema, GIVEN]
    models: tuple[FusionModel, ...]
    vector: Annotated[Floats, Named("classifier")]
    private: Literal[True] = True

    @cached_property
    def classifier(self) -> Classifier | None:
        """The cloud's model; None without classes."""
        layout = Layout(self.schema)
        if not layout.classes:
            return None
        return Classifier.from_vector(self.vector, layout.width, layout.classes)

    def check(self) -> None:
        if not self.models:
            raise ReleaseError("the model's arrays do not fit the schema")
        for model in self.models:
            model.check()
        _ = self.classifier

    @classmethod
    def ask(cls, session: Session, schema: Schema | ImageSchema, dealt: Mapping[str, int]) -> Self:
        """Ask every client once, unless an interrupted run has the answer."""
        assert isinstance(schema, Schema)
        settings = PrivateFusionSettings().resolved(session.plan.budget, schema)
        question = {**settings.question(schema), "groups": dict(dealt)}
        statistics = restore_statistics(session, schema, question)
        session.progress("message", 1, 1)
        edges = range(1 + max(dealt.values()))
        models = tuple(learn(statistics, edge, settings.marginals) for edge in edges)
        return cls(schema, models, np.zeros(0))

    def points(self, dealt: Mapping[str, int], points: int, seed: int) -> Points:
        clients = np.bincount(list(dealt.values()), minlength=len(self.models))
        shares = shares_of(max(points, len(dealt)), len(dealt))
        schema, sets = self.schema, []
        for edge, (model, rows) in enumerate(
            zip(self.models, _blocks(shares, clients), strict=True)
        ):
            drawn = draw_table(
                schema, model.frequencies, rows, None, None, _seed(seed, edge), model.columns
            )
            columns = conform(drawn, schema, where="synthetic rows").columns
            labels = columns[str(schema.target)].astype(np.int64)
            sets.append((Design(schema).matrix(columns), labels))
        return sets

    def with_classifier(self, classifier: Classifier, frequencies: Floats) -> PrivateEdges:
        """With the cloud's model."""
        return replace(self, vector=classifier.to_vector())

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        """From the edges' models, in proportion to their estimated records of a class."""
        records = np.stack([model.profiles.records for model in self.models])
        frequencies = records.sum(axis=0) / records.sum()
        if not len(self.models[0].frequencies):
            frequencies = np.zeros(0)
        return draw_table(self.schema, frequencies, rows, where, proportions, seed, self._draw)

    def _draw(
        self, labels: Whole | None, rows: int, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """From an edge at random, in proportion to its records of the row's class."""
        records = np.stack([model.profiles.records for model in self.models])
        classes = np.zeros(rows, np.int64) if labels is None else labels
        reached = (records / records.sum(axis=0)).cumsum(axis=0)[:, classes]
        edges = np.minimum((reached < rng.random(rows)).sum(axis=0), len(self.models) - 1)
        columns: dict[str, NDArray[Any]] = {}
        for edge, model in enumerate(self.models):
            at = np.flatnonzero(edges == edge)
            samples = model.columns(None if labels is None else labels[at], len(at), rng)
            for name, values in samples.items():
                columns.setdefault(name, np.zeros(rows, values.dtype))[at] = values
        return columns


def _blocks(shares: Whole, sizes: Sequence[int] | NDArray[np.integer]) -> list[int]:
    """Sums of consecutive blocks of shares."""
    return [int(block.sum()) for block in np.split(shares, np.cumsum(sizes)[:-1])]


def _seed(seed: int, edge: int) -> int:
    return int(np.random.SeedSequence([seed, 1, edge]).generate_state(1)[0])
