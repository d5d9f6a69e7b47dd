"""The messages of a fit, as they were released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pandas as pd

from fedsynth.codec import GIVEN
from fedsynth.errors import ReleaseError
from fedsynth.methods.inference.coordinates import Floats
from fedsynth.methods.inference.estimate import Estimate
from fedsynth.methods.inference.settings import FedInferSettings
from fedsynth.methods.inference.statistic import Statistic, request_settings
from fedsynth.methods.inference.tasks import MOMENTS
from fedsynth.queries.session import Session
from fedsynth.schema import Schema
from fedsynth.views import Outlined


@dataclass(frozen=True, repr=False)
class Learned(Outlined):
    """The messages that were released.

    Attributes:
        messages: float64 [messages, dim]: one a client under local trust, else their sum.
        scales: standard deviation of the noise in each message's numbers, [messages].
        clients: whose records each message holds.
        unit: that the noise hides.
        schema, statistic: what the messages are of.
    """

    messages: Floats
    scales: Floats
    clients: tuple[tuple[str, ...], ...]
    unit: str
    schema: Annotated[Schema, GIVEN]
    statistic: Annotated[Statistic, GIVEN]

    def check(self) -> None:
        count = len(self.clients)
        shapes = (self.messages.shape, self.scales.shape)
        if not count or shapes != ((count, self.statistic.dim), (count,)):
            raise ReleaseError("the model's messages are not of the length that its schema says")

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame:
        """Rows that meet conditions on the target exactly, and others by drawing again."""
        return self.estimate(len(self.messages)).sample(rows, where, proportions, seed)

    def estimate(self, count: int) -> Estimate:
        """What the first messages say."""
        return Estimate(self.schema, self.statistic, *self.first(count))

    def first(self, count: int) -> tuple[Floats, float, tuple[str, ...]]:
        """Sum of the first messages, noise in it, and whose records it holds."""
        sigma = float(np.sqrt((self.scales[:count] ** 2).sum()))
        names = tuple(name for group in self.clients[:count] for name in group)
        return self.messages[:count].sum(axis=0), sigma, names


def ask(session: Session, schema: Schema, statistic: Statistic) -> Learned:
    """Have every client answer once; under local trust each message is kept for itself."""
    settings: FedInferSettings = session.settings
    channel, terms = session.channel, session.plan.terms(MOMENTS.name)
    request = request_settings(settings.clip, settings.class_conditional)
    if terms.trusts.alone:
        collected = channel.collect(MOMENTS.name, terms, statistic.dim, settings=request)
        scales = np.full(len(collected.clients), terms.noise.deviation(terms.client_scale))
        groups = tuple((name,) for name in collected.clients)
        return Learned(collected.values, scales, groups, terms.unit, schema, statistic)
    released = channel.sum(MOMENTS.name, terms, statistic.dim, settings=request)
    scale = terms.noise.deviation(terms.summed_scale(released.answered))
    absent = {incident.client for incident in released.incidents}
    group = tuple(name for name in channel.names if name not in absent)
    scales = np.array([scale])
    return Learned(released.value[None], scales, (group,), terms.unit, schema, statistic)
