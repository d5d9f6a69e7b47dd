"""Small tables for FedInfer's tests."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd

from fedsynth.privacy.budget import Budget
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
