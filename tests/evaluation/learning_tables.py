"""Tables whose answer is known to be learnable, for tests of what models learn."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsynth.evaluation.reading.labelled import Examples, label_rows
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema

COLUMNS = (
    Continuous(name="x", lower=-5, upper=5, decimals=3, missing=True),
    Integer(name="size", lower=0, upper=9),
    Categorical(name="colour", values=("red", "green", "blue"), missing=True),
    Boolean(name="flag"),
)
BINARY = Schema(columns=(*COLUMNS, Categorical(name="y", values=("no", "yes"))), target="y")
THREE = Schema(columns=(*COLUMNS, Categorical(name="y", values=("a", "b", "c"))), target="y")
NUMBER = Schema(
    columns=(*COLUMNS, Continuous(name="y", lower=-50, upper=50, decimals=3, missing=True)),
    target="y",
)
DATE = Schema(
    columns=(*COLUMNS, Datetime(name="y", lower="2020-01-01", upper="2020-12-30")), target="y"
)


def frame(n: int, schema: Schema = BINARY, seed: int = 0, noise: float = 0.3) -> pd.DataFrame:
    """n rows whose answer rises with x, the size and blue; some x and colours are missing."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n).clip(-4, 4).round(3)
    size = rng.integers(0, 10, n)
    colour = rng.choice(np.array(["red", "green", "blue"], object), n)
    latent = x + (size - 4.5) / 3 + 1.5 * (colour == "blue") - 0.5 + noise * rng.normal(size=n)
    target = schema.column("y")
    if isinstance(target, Continuous):
        answer = (5 * latent).clip(-50, 50).round(3)
    elif isinstance(target, Datetime):
        days = (180 + 30 * latent).clip(0, 364).astype(int)
        answer = pd.Timestamp("2020-01-01") + pd.to_timedelta(days, "D")
    else:
        cuts = [0.0] if schema.classes == 2 else [-0.7, 0.7]
        answer = np.array(target.categories, object)[np.searchsorted(cuts, latent)]
    gone = rng.random((n, 2)) < 0.1
    return pd.DataFrame(
        {
            "x": np.where(gone[:, 0], np.nan, x),
            "size": size,
            "colour": np.where(gone[:, 1], None, colour),
            "flag": rng.random(n) < 0.5,
            "y": answer,
        }
    )


def rows(n: int, schema: Schema = BINARY, seed: int = 0, **changes: object) -> Rows:
    """The same, read; `changes` are columns set otherwise."""
    return read_rows(frame(n, schema, seed).assign(**changes), schema, "rows")


def taught(n: int, schema: Schema = BINARY, seed: int = 0, **changes: object) -> Examples:
    """The same, as examples."""
    return label_rows(rows(n, schema, seed, **changes))
