"""The messages of a fit, as they were released."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.federation.server.channel import Channel
from fedsynth.methods.inference.coordinates import Floats
from fedsynth.methods.inference.settings import FedInferSettings
from fedsynth.methods.inference.statistic import Statistic, moments_terms, request_settings
from fedsynth.methods.inference.tasks import MOMENTS
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Planned
from fedsynth.queries.counting import released_scale
from fedsynth.queries.shares import Stage, share_out


@dataclass(frozen=True)
class Learned:
    """The messages that were released.

    Attributes:
        messages: float64 [messages, dim]: one a client under local trust, else their sum.
        scales: standard deviation of the noise in each message's numbers, [messages].
        clients: whose records each message holds.
        unit: that the noise hides.
    """

    messages: Floats
    scales: Floats
    clients: tuple[tuple[str, ...], ...]
    unit: str

    def first(self, count: int) -> tuple[Floats, float, tuple[str, ...]]:
        """Sum of the first messages, noise in it, and whose records it holds."""
        sigma = float(np.sqrt((self.scales[:count] ** 2).sum()))
        names = tuple(name for group in self.clients[:count] for name in group)
        return self.messages[:count].sum(axis=0), sigma, names


def one_message(
    statistic: Statistic, budget: Budget, survivors: int, mechanism: str
) -> tuple[Planned, ...]:
    """The plan of a job that releases the statistic once, with the whole budget."""

    def terms(multiplier: float) -> Terms:
        return moments_terms(statistic, budget, multiplier, survivors, mechanism)

    return share_out([Stage(MOMENTS.name, 1.0, terms)], budget)


def ask(
    channel: Channel,
    terms: Terms,
    statistic: Statistic,
    settings: FedInferSettings,
    names: tuple[str, ...],
) -> Learned:
    """Have every client answer once; under local trust each message is kept for itself.

    Args:
        names: of all clients.
    """
    asked = request_settings(settings.clip, settings.class_conditional)
    if terms.trusts.alone:
        found = channel.collect(MOMENTS.name, terms, statistic.dim, settings=asked)
        scales = np.full(len(found.clients), terms.noise.deviation(terms.client_scale))
        groups = tuple((name,) for name in found.clients)
        return Learned(found.values, scales, groups, terms.unit)
    released = channel.sum(MOMENTS.name, terms, statistic.dim, settings=asked)
    scale = terms.noise.deviation(released_scale(terms, released.answered))
    absent = {incident.client for incident in released.incidents}
    group = tuple(name for name in names if name not in absent)
    return Learned(released.value[None], np.array([scale]), (group,), terms.unit)


def to_arrays(learned: Learned) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    clients = [list(group) for group in learned.clients]
    return (
        {"messages": learned.messages, "scales": learned.scales},
        {"clients": clients, "unit": learned.unit},
    )


def from_arrays(arrays: Mapping[str, NDArray[Any]], meta: Mapping[str, Any]) -> Learned:
    return Learned(
        np.asarray(arrays["messages"], np.float64),
        np.asarray(arrays["scales"], np.float64),
        tuple(tuple(str(name) for name in group) for group in meta["clients"]),
        str(meta["unit"]),
    )
