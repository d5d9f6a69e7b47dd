"""Small tables, schemas and federations for the synthesizers' tests."""

from __future__ import annotations

import numpy as np
import pandas as pd
from fedsynth.queries.owners import sites_of

from fedsynth.federation.server.channel import LocalChannel
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import Boolean, Categorical, Continuous, Integer, Schema

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


def silent_channel(tables: dict[str, pd.DataFrame], unit: str = "record") -> LocalChannel:
    """A federation that adds no noise, for comparing releases with exact answers."""
    sites = sites_of(tables, SCHEMA)
    budget = Budget(epsilon=float("inf"), unit=unit, trust="central", units=len(sites))
    channel = LocalChannel(sites, Ledger.create(Job(budget=budget, insecure=True)), NoiseSource(0))
    channel.announce("schema", SCHEMA.to_dict())
    return channel
