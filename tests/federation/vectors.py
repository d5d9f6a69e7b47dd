"""A task to test the door with: a client's data are the vectors that it contributes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import Floor, Tally
from fedsynth.federation.client.tasks import register
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Answer, Incident, Request, Summed
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import Rows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger


class Vectors:
    """A row a drawn record, or at the client level the sum of all its records as one row."""

    name = "test-vectors"

    def contribute(
        self, clients: Sequence[View], samples: Sequence[np.ndarray], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            rows = client.data[sample]
            yield (
                index,
                DenseRows(
                    rows if request.terms.unit == "record" else rows.sum(axis=0, keepdims=True)
                ),
            )

    def keep(self, client: View, values: np.ndarray, request: Request) -> None:
        client.vector.save(values)


class TooMany(Vectors):
    """Breaks the promise of one row a unit."""

    name = "test-too-many"

    def contribute(self, clients, samples, request):
        for index, (client, sample) in enumerate(zip(clients, samples, strict=True)):
            yield index, DenseRows(client.data[sample])
            yield index, DenseRows(client.data[:1])


class Backwards(Vectors):
    """Gives the rows of the last client first."""

    name = "test-backwards"

    def contribute(self, clients, samples, request):
        yield from reversed(list(super().contribute(clients, samples, request)))


class Sending:
    """Keeps nothing of what it gives."""

    name = "test-sending"

    def contribute(self, clients, samples, request):
        for index, _ in enumerate(clients):
            yield index, DenseRows(np.zeros((0, request.kept + request.dim)))


class Nobody(Vectors):
    """Looks at the first of its clients, as tasks do that read an announcement once."""

    name = "test-nobody"

    def contribute(self, clients, samples, request):
        assert clients[0].name
        yield from super().contribute(clients, samples, request)


class TooWide(Vectors):
    """Gives rows of another length than asked for."""

    name = "test-too-wide"

    def contribute(self, clients, samples, request):
        yield 0, DenseRows(np.ones((1, request.dim + 1)))


for task in (Vectors(), TooMany(), Backwards(), Sending(), Nobody(), TooWide()):
    register(task)


def terms(**changes) -> Terms:
    fields = {
        "unit": "client",
        "trust": "central",
        "clip": 1.0,
        "noise_multiplier": 1.0,
        "sampling": Everyone(),
        **changes,
    }
    return Terms(**fields)


class Anything(Floor):
    """A floor of clients that obey whatever they are asked: for tests of all else."""

    def demand(self, event: Event, tally: Tally) -> None:
        pass


OBEDIENT = Anything(budget=Budget(epsilon=math.inf))


def clients(count: int = 4, dim: int = 3, records: int = 1, value: float = 0.1) -> list[Client]:
    return [
        Client(f"c{i}", np.full((records, dim), value), records, floor=OBEDIENT)
        for i in range(count)
    ]


def answered(owners: Sequence[Client], request: Request) -> list[Answer]:
    """The answers of clients that all consent, and do not mind having answered the round before."""
    for owner in owners:
        owner.memory(request.job).latest = -1
    replies = list(answer(owners, request))
    assert all(isinstance(one, Answer) for one in replies)
    return replies


class Watched(LocalRuntime):
    """Honest clients, some of whose answers never arrive or are changed on the way."""

    def __init__(self, owners, *, answering=None, before=None, change=list, total=None) -> None:
        super().__init__(owners)
        self.answering, self.before, self.change, self.total = answering, before, change, total
        self.asked: list[list[str]] = []
        self.requests: list[Request] = []

    def _note(self, request: Request, cohort: Sequence[str]) -> Sequence[str]:
        self.asked.append(list(cohort))
        self.requests.append(request)
        if self.before is not None:
            self.before(request)
        return cohort[: self.answering]

    def sum(self, request: Request, cohort: Sequence[str]) -> Summed:
        summed = super().sum(request, self._note(request, cohort))
        silent = [] if self.answering is None else cohort[self.answering :]
        missing = tuple(Incident(name, request.round, "did not answer") for name in silent)
        summed = replace(summed, incidents=summed.incidents + missing)
        return summed if self.total is None else self.total(summed)

    def collect(self, request: Request, cohort: Sequence[str]):
        messages, refusals = super().collect(request, self._note(request, cohort))
        return self.change(messages), refusals


def ledger(
    unit: str = "client",
    epsilon: float = math.inf,
    path: Path | None = None,
    *,
    trust: str = "central",
    insecure: bool = False,
    participations: int | None = None,
    **job: Any,
) -> Ledger:
    budget = Budget(epsilon=epsilon, delta=1e-5, unit=unit, trust=trust)
    fields = {"insecure": insecure, "participations": participations, **job}
    return Ledger.create(Job(budget=budget, **fields), path)


def channel(
    owners: Sequence[Client] | LocalRuntime,
    account: Ledger | None = None,
    *,
    seed: int | None = None,
    quorum: float = 0.5,
) -> Channel:
    account, noise = account or ledger(insecure=seed is not None), NoiseSource(seed)
    if not isinstance(owners, LocalRuntime):
        for client in owners:
            client.coins, client.floor = noise, client.floor or OBEDIENT
        owners = LocalRuntime(owners)
    return Channel(owners, account, noise, quorum=quorum)
