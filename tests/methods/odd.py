"""Odd schemas, each with a table of a few rows."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Schema,
)


def schema_of(*columns, target=None):
    return Schema(columns=columns, target=target)


ODD = {
    "numbers only": (
        schema_of(
            Integer(name="a", lower=0, upper=9), Continuous(name="b", lower=0, upper=1, decimals=2)
        ),
        pd.DataFrame({"a": [1, 2, 3], "b": [0.5, 0.25, 1.0]}),
    ),
    "categories only": (
        schema_of(Categorical(name="a", values=["x", "y"]), Boolean(name="b")),
        pd.DataFrame({"a": ["x", "y"], "b": [True, False]}),
    ),
    "one column": (
        schema_of(Integer(name="a", lower=0, upper=9)),
        pd.DataFrame({"a": [1, 2]}),
    ),
    "one column of one category": (
        schema_of(Categorical(name="a", values=["x"])),
        pd.DataFrame({"a": ["x", "x"]}),
    ),
    "the target alone": (
        schema_of(Categorical(name="t", values=["x", "y"]), target="t"),
        pd.DataFrame({"t": ["x", "y"]}),
    ),
    "one class, in a column that is called as methods of pandas call their own": (
        schema_of(
            Integer(name="name", lower=0, upper=9),
            Categorical(name="self", values=["x"]),
            target="self",
        ),
        pd.DataFrame({"name": [1, 2], "self": ["x", "x"]}),
    ),
    "a single row": (
        schema_of(Integer(name="a", lower=0, upper=9), Boolean(name="b"), target="b"),
        pd.DataFrame({"a": [1], "b": [True]}),
    ),
    "infinite, huge and constant values": (
        schema_of(
            Integer(name="a", lower=0, upper=9),
            Integer(name="k", lower=5, upper=5),
            Categorical(name="t", values=["x", "y"]),
            target="t",
        ),
        pd.DataFrame({"a": [np.inf, -np.inf, 1e300], "k": [5] * 3, "t": ["x", "y", "y"]}),
    ),
    "all missing": (
        schema_of(
            Integer(name="a", lower=0, upper=9, missing=True),
            Categorical(name="c", values=["x", "y", "z"], missing=True),
            Boolean(name="b"),
            target="b",
        ),
        pd.DataFrame({"a": [None, None], "c": [None, None], "b": [True, False]}),
    ),
    "a numeric target, dates and keys": (
        schema_of(
            Integer(name="index", lower=0, upper=9),
            Datetime(name="d", lower="2020-01-01", upper="2021-01-01", resolution="day"),
            Identifier(name="id", prefix="P"),
            Boolean(name="count"),
            target="index",
        ),
        pd.DataFrame(
            {
                "index": [1, 2],
                "d": ["2020-02-03", "2020-05-06"],
                "id": [1, 2],
                "count": [True, False],
            }
        ),
    ),
}
