"""Fusion as published (paper 004, Algorithm 2): one round, no privacy.

Every client fits each feature by one of 25 families, trains a classifier and sends both once. The
server draws points from every client's distributions, labels them by that client's classifier and
trains the global classifier on their union. Features are independent of each other within a client:
what joins them is the label alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.federation.client.progress import watch
from fedsynth.methods.copula.families import FAMILIES, Effort
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.papers.fusion.message import Layout
from fedsynth.papers.fusion.regenerated import (
    Learned,
    classify,
    fuse,
)
from fedsynth.papers.fusion.settings import FusionSettings
from fedsynth.papers.fusion.tasks import FUSION
from fedsynth.papers.unprotected import unprotected_terms
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.session import Session
from fedsynth.schema import ImageSchema, Schema

_ALL = 2**31 - 1


def effort_of(settings: FusionSettings) -> Effort:
    """How thoroughly features are fitted under resolved settings."""
    return {
        "quick": Effort(screened=50, points=100, finalists=2, evaluations=15),
        "thorough": Effort(),
        "full": Effort(screened=_ALL, points=_ALL, finalists=len(FAMILIES), evaluations=_ALL),
    }[settings.effort or "thorough"]


def published_plan() -> tuple[Planned, ...]:
    """A message a client, without noise."""
    return (Planned(FUSION.name, unprotected_terms(), 1),)


class Fusion(Synthesizer[Learned]):
    """Fusion for tables and images, as published: without privacy.

    Example:
        >>> synth = Fusion(schema)                                         # doctest: +SKIP
        >>> synth.fit(clients, Budget(epsilon=math.inf)).probabilities(test) # doctest: +SKIP
    """

    name: ClassVar[str] = "fusion"
    settings_type = FusionSettings
    learned_type = Learned
    settings: FusionSettings
    no_persons = "as published it protects nobody"

    def releases(
        self, settings: FusionSettings, budget: Budget, clients: int, survivors: float
    ) -> tuple[Planned, ...]:
        return published_plan()

    def learn(self, session: Session) -> Learned:
        settings: FusionSettings = session.settings
        learned = collect_messages(session, self.schema)
        session.progress("global classifier", 0, 1)
        learned = fuse(learned, settings.points, session.options.seed)
        failed = ", ".join(f"{name} {count}" for name, count in learned.failures.items())
        session.progress(f"fits that failed: {failed or 'none'}", 1, 1)
        return learned

    def known(self) -> dict[str, Any]:
        return known_of(self.schema, self.settings)

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """The global classifier's probability of every class, float64 [n, classes].

        Args:
            data: rows or images under the schema; labels are not looked at and may be absent.

        Raises:
            ConfigError: the schema has no target of categories beside other columns.
            DataError: data that the schema does not fit.
        """
        return classify(self.schema, self.learned.classifier, data)

    @property
    def failures(self) -> dict[str, int]:
        """For how many features, of all clients together, each family failed to fit, by name."""
        return self.learned.failures


def known_of(schema: Schema | ImageSchema, settings: FusionSettings) -> dict[str, Any]:
    """How messages are read, and points labelled."""
    return {
        "schema": schema,
        "layout": Layout(schema, settings.categories),
        "labelling": settings.labelling,
        "clients": (),
    }


def collect_messages(session: Session, schema: Schema | ImageSchema) -> Learned:
    """Every client's message, without a classifier yet; those of an interrupted run stand.

    Raises:
        As :meth:`Learned.source`.
    """
    settings: FusionSettings = session.settings
    known = known_of(schema, settings)
    layout: Layout = known["layout"]
    numbers = sum(not feature.size for feature in layout.features)
    done, total = 0, max(1, numbers * session.channel.clients)

    def report(fits: int) -> None:
        nonlocal done
        done = min(done + fits, total)
        session.progress("features", done, total)

    def read(messages: NDArray[np.float64], clients: Sequence[str]) -> Learned:
        fields = {**known, "clients": tuple(clients)}
        model = Learned(messages, np.zeros(layout.classes), np.zeros(0), **fields)
        _ = model.source
        return model

    session.progress("features", 0, total)
    if session.restored is not None:
        arrays, meta = session.restored
        return read(np.asarray(arrays["messages"], np.float64), meta["clients"])
    request = {
        "categories": settings.categories,
        **asdict(effort_of(settings)),
        "seed": session.options.seed,
    }
    terms = session.plan.terms(FUSION.name)
    with watch(report):
        collected = session.channel.collect(FUSION.name, terms, layout.dim, settings=request)
    session.checkpoint({"messages": collected.values}, {"clients": list(collected.clients)})
    session.progress("features", total, total)
    return read(collected.values, collected.clients)
