"""Small tables and federations for FedInfer's tests."""

from __future__ import annotations

import math

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
        Continuous(name="weight", lower=20, upper=220, decimals=1, missing=True),
        Boolean(name="smoker"),
        Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)
EXACT = Budget(epsilon=math.inf, trust="central")
LOOSE = Budget(epsilon=50.0, delta=1e-5, trust="central")


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows whose dose and colour depend on the outcome, and whose weight depends on the age."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.3
    colour = np.where(ill, "red", rng.choice(["green", "blue"], rows)).astype(object)
    colour[rng.random(rows) < 0.1] = None
    age = rng.integers(18, 91, rows)
    weight = np.round(50 + 0.5 * age + rng.normal(0, 5, rows), 1)
    return pd.DataFrame(
        {
            "age": age,
            "colour": colour,
            "dose": np.round(np.where(ill, 7, 2) + rng.random(rows), 1),
            "weight": np.where(rng.random(rows) < 0.2, np.nan, weight),
            "smoker": rng.random(rows) < 0.5,
            "outcome": np.where(ill, "ill", "well"),
        }
    )


def owners(*sizes: int) -> dict[str, pd.DataFrame]:
    return {f"site-{i}": table(size, seed=i) for i, size in enumerate(sizes)}


def silent_channel(tables: dict[str, pd.DataFrame], unit: str = "record") -> LocalChannel:
    """A federation that adds no noise, for comparing releases with exact answers."""
    sites = sites_of(tables, SCHEMA)
    budget = Budget(epsilon=math.inf, unit=unit, trust="central", units=len(sites))
    channel = LocalChannel(sites, Ledger.create(Job(budget=budget, insecure=True)), NoiseSource(0))
    channel.announce("schema", SCHEMA.to_dict())
    return channel
