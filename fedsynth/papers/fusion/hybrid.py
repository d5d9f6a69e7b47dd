"""Hybrid fusion (paper 004, Algorithms 3 to 5): clients to edge servers to a cloud.

Clients send once to their edge server (Fusion, one round); each edge regenerates points and trains
on them, and the cloud averages the edges' models after every epoch (FedAvg). Without privacy the
messages are those of Fusion as published. With a finite epsilon they are those of Private Fusion: a
block of noisy statistics an edge, all in one noisy sum, so that every edge's are private by the one
event. All that follows is post-processing.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.synthesizer import Trained, settled
from fedsynth.papers.fusion.averaging import Exchange, Timing, average, deal
from fedsynth.papers.fusion.edges import Edges, PrivateEdges, PublishedEdges, private_plan
from fedsynth.papers.fusion.published import published_plan
from fedsynth.papers.fusion.regenerated import classify
from fedsynth.papers.fusion.settings import HybridFusionSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions


class HybridFusion(Trained[Edges]):
    """Hybrid fusion for tables, and without privacy for images.

    Args:
        schema: what the parties agreed on.
        settings: see :class:`HybridFusionSettings`; or its fields as keywords.
    """

    name: ClassVar[str] = "hybrid-fusion"
    settings_type = HybridFusionSettings

    def __init__(
        self,
        schema: Schema | ImageSchema,
        settings: HybridFusionSettings | None = None,
        **overrides: Any,
    ) -> None:
        self.schema = schema
        self.settings = settled(HybridFusionSettings, settings, overrides)
        self._timing: Timing | None = None

    @property
    def timing(self) -> Timing:
        """The time model of the last fit. Raises ConfigError before one."""
        if self._timing is None:
            raise ConfigError("this synthesizer was not fitted here, so no time was measured")
        return self._timing

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Ask every owner once, regenerate at the edges, and average their models at the cloud.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what the one release may cost.
            options: see :class:`fedsynth.queries.fit.Options`.

        Raises:
            ConfigError, DataError: more edges than clients; data, schema and settings that do not
                go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered, or not what was asked.
        """
        settings = self.settings.resolved(budget, self.schema)
        run = Options(**options)

        def plan(resolved: Budget, clients: int) -> tuple[Sequence[Planned], int | None]:
            if settings.edges > clients:
                raise ConfigError(
                    f"hybrid-fusion: {settings.edges} edges and {clients} clients: every edge "
                    "needs one, so set edges lower"
                )
            whole = run.surviving(clients)
            if resolved.private:
                return private_plan(resolved, whole, self.schema), None
            return published_plan(), None

        with begin(owners, self.schema, budget, plan, run, settings) as fitting:
            self._begin(fitting)
            self._learned, self._timing = self._fused(fitting, settings)
        return self

    def _fused(self, fitting: Fitting, settings: HybridFusionSettings) -> tuple[Edges, Timing]:
        started = time.perf_counter()
        dealt = deal(fitting.channel.names, settings.edges)
        kind = PrivateEdges if fitting.ledger.job.budget.private else PublishedEdges
        edges: Edges = kind.asked(fitting, self.schema, settings, dealt)
        exchange, seed = Exchange(), fitting.options.seed
        classes = conditions(self.schema)
        points = edges.points(dealt, settings.points, seed) if classes else []
        fused = time.perf_counter() - started
        if classes:
            model, exchange = average(
                points,
                classes,
                settings.epochs,
                seed,
                lambda done: fitting.progress("epochs", done, settings.epochs),
            )
            labels = np.concatenate([own for _, own in points])
            edges = edges.trained(model, np.bincount(labels, minlength=classes) / len(labels))
        traffic = fitting.channel.traffic
        return edges, Timing(
            settings.edge_cloud_latency,
            settings.client_edge_latency,
            exchange.rounds,
            len(fitting.ledger.events),
            fused,
            exchange.seconds,
            round(traffic.requests + traffic.answers),
            round(traffic.down + traffic.up),
            exchange.calls,
            exchange.bytes,
        )

    def sample(
        self,
        rows: int,
        where: Mapping[str, Any] | None = None,
        proportions: Mapping[Any, float] | None = None,
        seed: int | None = None,
    ) -> pd.DataFrame | Images:
        """Draw synthetic rows; costs nothing, as often as wanted.

        Without privacy as :meth:`Fusion.sample`; with it from the edges' models, in proportion to
        their estimated records of a class.

        Args:
            rows: how many, at least 1. A public choice: the true number of records is private.
            where: conditions by column; of images, on the target.
            proportions: shares of the target's values, instead of their estimated frequencies.
            seed: makes the draw repeatable.

        Raises:
            ConfigError: rows below 1, or conditions that make no sense or that hardly a row meets.
        """
        return self.learned.sample(self.schema, rows, where, proportions, seed)

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """The cloud's model's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; labels are not looked at and may be absent.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that the schema does not fit.
        """
        return classify(self.schema, self.learned.classifier, data)

    def model_state(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
        """Everything :meth:`sample` and :meth:`probabilities` need: nothing that was not sent."""
        learned = self.learned
        return learned.to_arrays(), {
            "settings": self.settings.model_dump(exclude_unset=True, mode="json"),
            "private": isinstance(learned, PrivateEdges),
        }

    @classmethod
    def from_state(
        cls,
        schema: Schema | ImageSchema,
        arrays: Mapping[str, NDArray[Any]],
        meta: Mapping[str, Any],
    ) -> Self:
        """The inverse of :meth:`model_state`. Raises ReleaseError where the parts do not fit."""
        try:
            found = cls(schema, **meta["settings"])
            kind = PrivateEdges if meta["private"] else PublishedEdges
        except (KeyError, TypeError, ValueError, ConfigError):
            raise ReleaseError("the model's files do not fit together") from None
        found._learned = kind.from_arrays(schema, arrays, found.settings)
        return found
