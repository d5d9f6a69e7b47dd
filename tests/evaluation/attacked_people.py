"""A made-up population of every kind of column, for attacks to look at."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Schema,
)

COLOURS = ("red", "green", "blue")
SCHEMA = Schema(
    columns=(
        Identifier(name="id"),
        Categorical(name="colour", values=COLOURS, missing=True),
        Integer(name="count", lower=0, upper=100),
        Continuous(name="x", lower=-5, upper=5, decimals=2, missing=True),
        Continuous(name="y", lower=-9, upper=9, decimals=2),
        Datetime(name="day", lower="2020-01-01", upper="2020-12-30", missing=True),
        Boolean(name="flag"),
    ),
    target="flag",
)


def people(rows: int, seed: int) -> pd.DataFrame:
    """An independent sample of the population: dependent columns, gaps, a column mostly 0."""
    rng = np.random.default_rng([11, seed])
    group = rng.integers(3, size=rows)
    x = rng.normal(group - 1, 0.7, rows).clip(-5, 5).round(2)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(365, size=rows), "D")
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "colour": np.where(rng.random(rows) < 0.1, None, np.array(COLOURS)[group]),
            "count": np.where(rng.random(rows) < 0.8, 0, rng.integers(101, size=rows)),
            "x": np.where(rng.random(rows) < 0.1, np.nan, x),
            "y": (2 * x + rng.normal(0, 0.5, rows)).clip(-9, 9).round(2),
            "day": pd.Series(days).where(rng.random(rows) < 0.9),
            "flag": rng.random(rows) < 1 / (1 + np.exp(-x)),
        }
    )


def drawn_rows(rows: int, seed: int) -> Rows:
    return read_rows(people(rows, seed), SCHEMA, "people")
