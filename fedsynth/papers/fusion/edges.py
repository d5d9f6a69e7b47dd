"""What the edge servers of hybrid fusion hold, without privacy and with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import conform
from fedsynth.data.images import Images
from fedsynth.errors import ReleaseError
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.model import FusionModel, learn
from fedsynth.methods.copula.settings import PrivateFusionSettings
from fedsynth.methods.copula.statistics import ask_statistics, statistics_terms
from fedsynth.methods.copula.tasks import STATISTICS, asked
from fedsynth.methods.sampling.classifier import Classifier
from fedsynth.methods.sampling.design import Design
from fedsynth.methods.sampling.drawing import draw_table
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.published import messages_of
from fedsynth.papers.fusion.regenerated import arrays_of, draw_rows, learned_from
from fedsynth.papers.fusion.regeneration import Learned, shares_of, source_of
from fedsynth.papers.fusion.settings import FusionSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting
from fedsynth.queries.shares import Stage, share_out
from fedsynth.schema import ImageSchema, Schema

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Points = list[tuple[Floats, Whole]]


class Edges(Protocol):
    """What the edges hold, and the model that the cloud has made of it."""

    @property
    def classifier(self) -> Classifier | None:
        """The cloud's model; None without classes."""
        ...

    def points(self, dealt: Mapping[str, int], points: int, seed: int) -> Points:
        """Regenerated points of each edge, in equal shares of the clients."""
        ...

    def trained(self, classifier: Classifier, frequencies: Floats) -> Edges:
        """With the cloud's model, and the classes' shares among the points."""
        ...

    def sample(
        self,
        schema: Schema | ImageSchema,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images: ...

    def to_arrays(self) -> dict[str, NDArray[Any]]: ...


def private_plan(
    budget: Budget, survivors: int, schema: Schema | ImageSchema
) -> tuple[Planned, ...]:
    """One noisy sum of all edges' statistics."""
    mechanism = PrivateFusionSettings().resolved(budget, schema).mechanism
    stage = Stage(STATISTICS.name, 1.0, lambda m: statistics_terms(budget, m, survivors, mechanism))
    return share_out([stage], budget)


@dataclass(frozen=True, eq=False)
class PublishedEdges:
    """The clients' messages, as published.

    Attributes:
        learned: of all clients; its classifier is the cloud's.
        owners: names of the clients with rows, as the source has them.
    """

    learned: Learned
    owners: tuple[str, ...] = ()

    @property
    def classifier(self) -> Classifier | None:
        return self.learned.classifier

    @classmethod
    def asked(
        cls,
        fitting: Fitting,
        schema: Schema | ImageSchema,
        settings: FusionSettings,
        dealt: Mapping[str, int],
    ) -> Self:
        """Ask every client once."""
        layout = Layout(schema, settings.categories)
        messages, names = messages_of(fitting, layout, settings)
        source = source_of(layout, messages, names, settings.labelling)
        owners = tuple(name for name, own in zip(names, messages, strict=True) if own.any())
        return cls(Learned(source, messages, np.zeros(layout.classes), None), owners)

    def points(self, dealt: Mapping[str, int], points: int, seed: int) -> Points:
        source = self.learned.source
        shares = shares_of(max(points, len(self.owners)), len(self.owners))
        found = []
        for edge in range(1 + max(dealt.values())):
            own = [k for k, name in enumerate(self.owners) if dealt[name] == edge]
            rng = np.random.default_rng([seed, 1, edge])
            cells, labels = source.points_of(np.repeat(own, shares[own]).astype(np.int64), rng)
            found.append((source.layout.inputs(cells), labels))
        return found

    def trained(self, classifier: Classifier, frequencies: Floats) -> PublishedEdges:
        known = replace(self.learned, classifier=classifier, frequencies=frequencies)
        return replace(self, learned=known)

    def sample(
        self,
        schema: Schema | ImageSchema,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        return draw_rows(schema, self.learned, rows, where, proportions, seed)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        return arrays_of(self.learned)

    @classmethod
    def from_arrays(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        settings: FusionSettings,
    ) -> Self:
        """The inverse of :meth:`to_arrays`. Raises ReleaseError where the arrays do not fit."""
        return cls(learned_from(schema, arrays, settings.categories, settings.labelling))


@dataclass(frozen=True, eq=False)
class PrivateEdges:
    """Private Fusion's model of every edge, all of one noisy sum.

    Attributes:
        schema: of the table.
        models: one an edge.
        classifier: the cloud's; None without classes.
    """

    schema: Schema
    models: tuple[FusionModel, ...]
    classifier: Classifier | None = None

    @classmethod
    def asked(
        cls,
        fitting: Fitting,
        schema: Schema | ImageSchema,
        settings: FusionSettings,
        dealt: Mapping[str, int],
    ) -> Self:
        """Ask every client once, unless an interrupted run has the answer."""
        assert isinstance(schema, Schema)
        (planned,) = fitting.ledger.job.plan
        own = PrivateFusionSettings().resolved(fitting.ledger.job.budget, schema)
        question = {**own.question(schema), "groups": dict(dealt)}
        fitting.progress("message", 0, 1)
        if fitting.restored is not None:
            arrays, meta = fitting.restored
            whole = asked(schema, question, planned.terms.norm)
            statistics = whole.answer(np.asarray(arrays["values"]), float(meta["sigma"]))
        else:
            statistics = ask_statistics(fitting.channel, planned.terms, schema, question)
            values, sigma = statistics.released
            fitting.checkpoint({"values": values}, {"sigma": sigma})
        fitting.progress("message", 1, 1)
        edges = range(1 + max(dealt.values()))
        models = tuple(learn(statistics, edge, own.marginals) for edge in edges)
        return cls(schema, models)

    def points(self, dealt: Mapping[str, int], points: int, seed: int) -> Points:
        clients = np.bincount(list(dealt.values()), minlength=len(self.models))
        shares = shares_of(max(points, len(dealt)), len(dealt))
        schema, found = self.schema, []
        for edge, (model, rows) in enumerate(
            zip(self.models, _blocks(shares, clients), strict=True)
        ):
            drawn = draw_table(
                schema, model.frequencies, rows, None, None, _seed(seed, edge), model.draw
            )
            columns = conform(drawn, schema, where="synthetic rows").columns
            labels = columns[str(schema.target)].astype(np.int64)
            found.append((Design(schema).matrix(columns), labels))
        return found

    def trained(self, classifier: Classifier, frequencies: Floats) -> PrivateEdges:
        return replace(self, classifier=classifier)

    def sample(
        self,
        schema: Schema | ImageSchema,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        assert isinstance(schema, Schema)
        records = np.stack([model.profiles.records for model in self.models])
        frequencies = records.sum(axis=0) / records.sum()
        if not len(self.models[0].frequencies):
            frequencies = np.zeros(0)
        return draw_table(schema, frequencies, rows, where, proportions, seed, self._draw)

    def _draw(
        self, labels: Whole | None, rows: int, rng: np.random.Generator
    ) -> dict[str, NDArray[Any]]:
        """From an edge at random, in proportion to its records of the row's class."""
        records = np.stack([model.profiles.records for model in self.models])
        classes = np.zeros(rows, np.int64) if labels is None else labels
        reached = (records / records.sum(axis=0)).cumsum(axis=0)[:, classes]
        edges = np.minimum((reached < rng.random(rows)).sum(axis=0), len(self.models) - 1)
        found: dict[str, NDArray[Any]] = {}
        for edge, model in enumerate(self.models):
            at = np.flatnonzero(edges == edge)
            drawn = model.draw(None if labels is None else labels[at], len(at), rng)
            for name, values in drawn.items():
                found.setdefault(name, np.zeros(rows, values.dtype))[at] = values
        return found

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        found: dict[str, NDArray[Any]] = {
            f"{edge} {name}": values
            for edge, model in enumerate(self.models)
            for name, values in model.to_arrays().items()
        }
        vector = np.zeros(0) if self.classifier is None else self.classifier.to_vector()
        return {**found, "classifier": vector}

    @classmethod
    def from_arrays(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        settings: FusionSettings,
    ) -> Self:
        """The inverse of :meth:`to_arrays`. Raises ReleaseError where the arrays do not fit."""
        count = len({name.split(" ")[0] for name in arrays if " " in name})
        if not isinstance(schema, Schema) or not count or "classifier" not in arrays:
            raise ReleaseError("the model's arrays do not fit the schema")
        cells = TableCells.of(schema)
        models = tuple(
            FusionModel.from_arrays(
                cells,
                {
                    name.split(" ", 1)[1]: values
                    for name, values in arrays.items()
                    if name.startswith(f"{edge} ")
                },
            )
            for edge in range(count)
        )
        layout = Layout(schema)
        vector = np.asarray(arrays["classifier"], np.float64)
        if not layout.classes:
            return cls(schema, models)
        return cls(schema, models, Classifier.from_vector(vector, layout.width, layout.classes))


def _blocks(shares: Whole, sizes: Sequence[int] | NDArray[np.integer]) -> list[int]:
    """Sums of consecutive blocks of shares."""
    return [int(block.sum()) for block in np.split(shares, np.cumsum(sizes)[:-1])]


def _seed(seed: int, edge: int) -> int:
    return int(np.random.SeedSequence([seed, 1, edge]).generate_state(1)[0])
