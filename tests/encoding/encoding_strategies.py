"""Strategies for schemas of every kind of column, and for frames under them."""

from __future__ import annotations

import pandas as pd
from hypothesis import strategies as st

from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Integer,
    Schema,
)


@st.composite
def columns(draw, name):
    kind = draw(st.sampled_from(("categorical", "boolean", "integer", "continuous", "datetime")))
    missing = draw(st.booleans())
    if kind == "categorical":
        values = tuple(f"v{i}" for i in range(draw(st.integers(1, 40))))
        return Categorical(name=name, values=values, missing=missing)
    if kind == "boolean":
        return Boolean(name=name, missing=missing)
    if kind == "datetime":
        return Datetime(
            name=name,
            lower="2020-02-28",
            upper=draw(st.sampled_from(("2020-02-28", "2020-03-01", "2031-07-01"))),
            resolution=draw(st.sampled_from(("day", "minute", "second"))),
            missing=missing,
        )
    lower = draw(st.integers(-(10**6), 10**6))
    upper = lower + draw(st.sampled_from((0, 1, 30, 1000, 10**7)))
    spikes = tuple(sorted({lower, upper})) if draw(st.booleans()) else ()
    edges = (
        (lower, (lower + upper) // 2, upper) if upper > lower + 1 and draw(st.booleans()) else None
    )
    step = 10 if (upper - lower) % 10 == 0 and draw(st.booleans()) else None
    if kind == "integer":
        return Integer(
            name=name,
            lower=lower,
            upper=upper,
            missing=missing,
            spikes=spikes,
            edges=edges,
            step=step,
        )
    return Continuous(
        name=name,
        lower=lower,
        upper=upper,
        decimals=draw(st.integers(0, 3)),
        missing=missing,
        spikes=spikes,
        edges=edges,
        step=step,
    )


@st.composite
def schemas(draw):
    count = draw(st.integers(1, 3))
    return Schema(columns=tuple(draw(columns(f"c{index}")) for index in range(count)))


def cells(column):
    if isinstance(column, Categorical | Boolean):
        present = st.sampled_from(column.categories)
    elif isinstance(column, Datetime):
        present = st.datetimes(column.lower, column.upper)
    elif isinstance(column, Integer):
        present = st.integers(column.lower, column.upper)
    else:
        present = st.floats(column.lower, column.upper)
    return present | st.none() if column.missing else present


@st.composite
def frames(draw, schema):
    rows = draw(st.integers(1, 12))
    return pd.DataFrame(
        {
            column.name: pd.Series(
                draw(st.lists(cells(column), min_size=rows, max_size=rows)), dtype=object
            )
            for column in schema.columns
        }
    )
