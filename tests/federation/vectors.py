"""A task to test the door with: a site's data are the vectors that it contributes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from fedsynth.federation.client.site import Site
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request
from fedsynth.federation.server.channel import Ask, LocalChannel
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import DenseRows, Rows
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger


class Vectors:
    """A row a drawn record, or at the client level the sum of all its records as one row."""

    name = "test-vectors"

    def contribute(
        self, sites: Sequence[Site], samples: Sequence[np.ndarray], request: Request
    ) -> Iterator[tuple[int, Rows]]:
        for index, (site, sample) in enumerate(zip(sites, samples, strict=True)):
            rows = site.data[sample]
            yield (
                index,
                DenseRows(
                    rows if request.terms.unit == "record" else rows.sum(axis=0, keepdims=True)
                ),
            )

    def keep(self, site: Site, values: np.ndarray, request: Request) -> None:
        site.state.save(values)


class TooMany(Vectors):
    """Breaks the promise of one row a unit."""

    name = "test-too-many"

    def contribute(self, sites, samples, request):
        for index, (site, sample) in enumerate(zip(sites, samples, strict=True)):
            yield index, DenseRows(site.data[sample])
            yield index, DenseRows(site.data[:1])


class TooWide(Vectors):
    """Gives rows of another length than asked for."""

    name = "test-too-wide"

    def contribute(self, sites, samples, request):
        yield 0, DenseRows(np.ones((1, request.dim + 1)))


for task in (Vectors(), TooMany(), TooWide()):
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


def sites(count: int = 4, dim: int = 3, records: int = 1, value: float = 0.1) -> list[Site]:
    return [Site(f"c{i}", np.full((records, dim), value), records) for i in range(count)]


def ledger(
    unit: str = "client",
    epsilon: float = math.inf,
    path: Path | None = None,
    *,
    trust: str = "central",
    insecure: bool = False,
    participations: int | None = None,
) -> Ledger:
    budget = Budget(epsilon=epsilon, delta=1e-5, unit=unit, trust=trust)
    job = Job(budget=budget, insecure=insecure, participations=participations)
    return Ledger.create(job, path)


def channel(
    owners: list[Site],
    account: Ledger | None = None,
    *,
    seed: int | None = None,
    ask: Ask | None = None,
    quorum: float = 0.5,
) -> LocalChannel:
    account = account or ledger(insecure=seed is not None)
    return LocalChannel(owners, account, NoiseSource(seed), quorum=quorum, ask=ask)
