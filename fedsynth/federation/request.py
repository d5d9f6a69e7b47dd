"""What passes between server and client: data, never code."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.spelling import spell

Plain = None | bool | int | float | str | Sequence["Plain"] | Mapping[str, "Plain"]

PLAN = "plan"
"""Under which a job announces what it means to ask before it asks: the first time counts."""


@dataclass(frozen=True)
class Request:
    """A question to clients: the name of a task that their own fedsynth knows, arrays, settings.

    Attributes:
        task: name in the task registry.
        terms: how the answers are protected; a client clips and adds noise by them, or refuses.
        dim: length of an answer.
        kept: leading coordinates of a contribution that stay at the client. They are clipped
            together with the rest and noised there in full, whatever the trust.
        arrays: public arrays, for instance decoder weights.
        settings: public plain values.
        job, round: name the release; an answer to another is refused.
        steps: of a client's own training, each protected by the terms; None for a sum.
        participations: rounds of this job in which a drawn client takes part at the most; None
            where everybody is asked, or drawing is secret.
        most_records: that a client has, as agreed before the job; None where nothing was agreed.
    """

    task: str
    terms: Terms
    dim: int
    kept: int = 0
    arrays: Mapping[str, NDArray[np.generic]] = field(default_factory=dict)
    settings: Mapping[str, Plain] = field(default_factory=dict)
    job: str = ""
    round: int = 0
    steps: int | None = None
    participations: int | None = None
    most_records: int | None = None

    @property
    def event(self) -> Event:
        """As ledgers write it down, the job's and the clients' own."""
        return Event(self.task, self.round, self.terms, self.job, self.steps or 1)

    @property
    def digest(self) -> str:
        """SHA-256 of all that is asked: a round is given again to the same request alone."""
        plain = {key: value for key, value in vars(self).items() if key != "arrays"}
        plain["terms"] = spell(self.terms)
        found = hashlib.sha256(json.dumps(plain, sort_keys=True, default=dict).encode())
        for name, array in sorted(self.arrays.items()):
            found.update(f"{len(name)}{name}{array.dtype.str}{array.shape}".encode())
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()


def number(settings: Mapping[str, Plain], name: str) -> float:
    """A finite number among a request's settings; it comes from elsewhere. Raises FederationError
    where there is none."""
    value = settings.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise FederationError(f"the request's setting {name} is no number")
    return float(value)


def whole(settings: Mapping[str, Plain], name: str) -> int:
    """As :func:`number`, of a whole number."""
    value = number(settings, name)
    if not value.is_integer():
        raise FederationError(f"the request's setting {name} is no whole number")
    return int(value)


@dataclass(frozen=True)
class Answer:
    """One client's clipped sum, with the noise that the terms ask of the client; or what its own
    training made of such sums."""

    client: str
    job: str
    round: int
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Incident:
    """Why a client's answer is missing from a round: names the client, never its data."""

    client: str
    round: int
    reason: str


@dataclass(frozen=True)
class Summed:
    """What a carrier brings of a round: a sum of answers, none of which it shows.

    Attributes:
        total: float64 [dim].
        answered: how many answers it holds.
        incidents: clients whose answers it does not hold, and why.
        needed: how many answers the carrier opens no sum without; of fewer the total is zeros.
    """

    total: NDArray[np.float64]
    answered: int
    incidents: tuple[Incident, ...] = ()
    needed: int = 0


@dataclass(frozen=True)
class Released:
    """The value that a round released.

    Attributes:
        value: float64 [dim]: noisy sum of clipped contributions.
        asked, answered: number of clients. Who was drawn may be secret: neither goes on a release.
        incidents: clients that were dropped, and why.
    """

    value: NDArray[np.float64]
    asked: int
    answered: int
    incidents: tuple[Incident, ...] = ()


@dataclass(frozen=True)
class Collected:
    """The messages that a round released, each private on its own.

    Attributes:
        values: float64 [answered, dim].
        clients: their names, in the same order.
        asked: number of clients.
        incidents: clients that were dropped, and why.
    """

    values: NDArray[np.float64]
    clients: tuple[str, ...]
    asked: int
    incidents: tuple[Incident, ...] = ()
