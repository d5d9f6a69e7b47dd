"""Small tables, schemas and federations for the synthesizers' tests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedsynth.federation.client.answering import _clip_sums
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.memory import Board
from fedsynth.federation.client.tasks import Task
from fedsynth.federation.client.view import View
from fedsynth.federation.request import Incident, Plain, Request, Summed
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.federation.simulation.simulation import (
    AnySchema,
    Owners,
    Simulation,
    by_name,
    prepare_rows,
)
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import Boolean, Categorical, Continuous, Integer, Schema
from tests.federation.vectors import OBEDIENT

SCHEMA = Schema(
    columns=[
        Integer(name="age", lower=18, upper=90),
        Categorical(name="colour", values=["red", "green", "blue"], missing=True),
        Continuous(name="dose", lower=0, upper=10, decimals=1),
        Boolean(name="smoker"),
        Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows whose dose and colour depend on the outcome."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.3
    colour = np.where(ill, "red", rng.choice(["green", "blue"], rows)).astype(object)
    colour[rng.random(rows) < 0.1] = None
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows),
            "colour": colour,
            "dose": np.round(np.where(ill, 7, 2) + rng.random(rows), 1),
            "smoker": rng.random(rows) < 0.5,
            "outcome": np.where(ill, "ill", "well"),
        }
    )


def owners(*sizes: int) -> dict[str, pd.DataFrame]:
    return {f"site-{i}": table(size, seed=i) for i, size in enumerate(sizes)}


def federation(
    tables: Owners, schema: AnySchema = SCHEMA, *, job: str = "", **announced: Plain
) -> list[Client]:
    """Clients with known coins of their own, to whom a job's server announced the schema and what
    is named: on one board, as of all that are simulated."""
    clients, board = [], Board()
    for key, value in {"schema": schema.to_dict(), **announced}.items():
        board.post(key, value)
    for seed, (name, owned) in enumerate(by_name(tables).items()):
        data = prepare_rows(owned, schema, name)
        clients.append(Client(name, data, len(owned), coins=NoiseSource(seed), floor=OBEDIENT))
        clients[-1].memory(job).board = board
    return clients


def views(clients: Sequence[Client], job: str = "") -> list[View]:
    """What the tasks of a job see of clients."""
    return [View(client, job) for client in clients]


def sums(task: Task, clients: Sequence[Client], request: Request) -> np.ndarray:
    """Each client's sum of clipped rows [clients, kept + dim], before any noise."""
    return np.array(list(_clip_sums(task, views(clients, request.job), request)))


def channel_to(
    tables: Owners,
    budget: Budget,
    schema: AnySchema = SCHEMA,
    *,
    seed: int = 0,
    most_records: int | None = None,
) -> Channel:
    """A channel to simulated clients whose noise has a known seed, the schema announced."""
    noise = NoiseSource(seed)
    runtime = Simulation(tables, schema).open(noise, {}, None, budget, most_records)
    ledger = Ledger.create(Job(budget=budget, insecure=True))
    channel = Channel(runtime, ledger, noise, most_records=most_records)
    channel.announce("schema", schema.to_dict())
    return channel


def silent_channel(tables: Owners, unit: str = "record", schema: AnySchema = SCHEMA) -> Channel:
    """A federation that adds no noise, for comparing releases with exact answers."""
    units = len(by_name(tables))
    budget = Budget(epsilon=float("inf"), unit=unit, trust="central", units=units)
    return channel_to(tables, budget, schema)


def answering(monkeypatch: pytest.MonkeyPatch, count: int) -> None:
    """Has only the first clients of every cohort answer."""
    genuine = LocalRuntime.sum

    def some(self: LocalRuntime, request: Request, cohort: Sequence[str]) -> Summed:
        summed = genuine(self, request, cohort[:count])
        silent = (Incident(name, request.round, "did not answer") for name in cohort[count:])
        return replace(summed, incidents=(*summed.incidents, *silent))

    monkeypatch.setattr(LocalRuntime, "sum", some)
