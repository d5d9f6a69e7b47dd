"""Hybrid fusion (paper 004, Algorithms 3 to 5): clients to edge servers to a cloud.

Clients send once to their edge server (Fusion, one round); each edge regenerates points and trains
on them, and the cloud averages the edges' models after every epoch (FedAvg). Without privacy the
messages are those of Fusion as published. With a finite epsilon they are those of Private Fusion: a
block of noisy statistics an edge, all in one noisy sum, so that every edge's are private by the one
event. All that follows is post-processing.
"""

from __future__ import annotations

import time
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.papers.fusion.averaging import Exchange, Timing, average, deal
from fedsynth.papers.fusion.edges import (
    PrivateEdges,
    PublishedEdges,
    private_stage,
)
from fedsynth.papers.fusion.published import known_of, published_plan
from fedsynth.papers.fusion.regenerated import classify
from fedsynth.papers.fusion.settings import HybridFusionSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.plan import count_survivors
from fedsynth.queries.session import Session
from fedsynth.queries.shares import share_out
from fedsynth.schema import Schema
from fedsynth.schema.target import conditions

Edges = PublishedEdges | PrivateEdges


class HybridFusion(Synthesizer[Edges]):
    """Hybrid fusion for tables, and without privacy for images."""

    name: ClassVar[str] = "hybrid-fusion"
    settings_type = HybridFusionSettings
    learned_type = Edges
    settings: HybridFusionSettings
    no_persons = "as published it protects nobody"
    _timing: Timing | None = None

    @property
    def timing(self) -> Timing:
        """The time model of the last fit. Raises ConfigError before one."""
        if self._timing is None:
            raise ConfigError("this synthesizer was not fitted here, so no time was measured")
        return self._timing

    def releases(
        self, settings: HybridFusionSettings, budget: Budget, clients: int, survivors: float
    ) -> tuple[Planned, ...]:
        if settings.edges > clients:
            raise ConfigError(
                f"hybrid-fusion: {settings.edges} edges and {clients} clients: every edge "
                "needs one, so set edges lower"
            )
        if not budget.private:
            return published_plan()
        stage = private_stage(budget, count_survivors(survivors, clients), self.schema)
        return share_out([stage], budget)

    def learn(self, session: Session) -> Edges:
        """Ask every owner once, regenerate at the edges, and average their models at the cloud."""
        started = time.perf_counter()
        settings: HybridFusionSettings = session.settings
        dealt = deal(session.channel.names, settings.edges)
        kind = PrivateEdges if session.plan.budget.private else PublishedEdges
        edges: Edges = kind.ask(session, self.schema, dealt)
        exchange, seed = Exchange(), session.options.seed
        classes = conditions(self.schema)
        points = edges.points(dealt, settings.points, seed) if classes else []
        fused = time.perf_counter() - started
        if classes:
            model, exchange = average(
                points,
                classes,
                settings.epochs,
                seed,
                lambda done: session.progress("epochs", done, settings.epochs),
            )
            labels = np.concatenate([codes for _, codes in points])
            edges = edges.with_classifier(
                model, np.bincount(labels, minlength=classes) / len(labels)
            )
        traffic = session.channel.traffic
        self._timing = Timing(
            settings.edge_cloud_latency,
            settings.client_edge_latency,
            exchange.rounds,
            len(session.ledger.events),
            fused,
            exchange.seconds,
            round(traffic.requests + traffic.answers),
            round(traffic.down + traffic.up),
            exchange.calls,
            exchange.bytes,
        )
        return edges

    def known(self) -> dict[str, Any]:
        cells = TableCells.of(self.schema) if isinstance(self.schema, Schema) else None
        return {**known_of(self.schema, self.settings), "cells": cells, "owners": ()}

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """The cloud's model's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; labels are not looked at and may be absent.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that the schema does not fit.
        """
        return classify(self.schema, self.learned.classifier, data)
