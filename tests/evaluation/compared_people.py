"""Small mixed tables to compare, with gaps, spikes and columns that hang together."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema

SCHEMA = Schema(
    columns=(
        Categorical(name="colour", values=("red", "green", "blue"), missing=True),
        Categorical(name="shape", values=("round", "square", "odd")),
        Integer(name="count", lower=0, upper=100),
        Continuous(name="x", lower=-5, upper=5, decimals=2, missing=True),
        Datetime(name="day", lower="2020-01-01", upper="2020-12-30", missing=True),
        Boolean(name="flag"),
    ),
    target="flag",
)
COLOURS = np.array(["red", "green", "blue", None], dtype=object)
SHAPES = np.array(["round", "square", "odd"], dtype=object)


def table(rows: int, seed: int = 0, tilt: float = 0.0) -> pd.DataFrame:
    """Rows of one population, or with a tilt of another: more red, a higher x, later days."""
    rng = np.random.default_rng(seed)
    colour = rng.choice(4, rows, p=np.array([0.4 + tilt, 0.3 - tilt, 0.2, 0.1]))
    shape = np.where(rng.random(rows) < 0.7, colour % 3, rng.integers(3, size=rows))
    x = (rng.normal(size=rows) + tilt).clip(-5, 5).round(2)
    count = np.where(rng.random(rows) < 0.4, 0, np.clip(40 + 15 * x, 0, 100).astype(int))
    days = (180 + 50 * x + rng.normal(scale=20, size=rows)).clip(0, 364).astype(int)
    day = pd.Series(pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D"))
    return pd.DataFrame(
        {
            "colour": COLOURS[colour],
            "shape": SHAPES[shape],
            "count": count,
            "x": np.where(rng.random(rows) < 0.1, np.nan, x),
            "day": day.where(rng.random(rows) < 0.9),
            "flag": x + rng.normal(size=rows) > 0,
        }
    )


def people(rows: int, seed: int = 0, tilt: float = 0.0, **changes: object) -> Rows:
    """The same, read; `changes` are columns set otherwise."""
    return read_rows(table(rows, seed, tilt).assign(**changes), SCHEMA, "people")
