"""Hypothesis strategies for schemas and for arrays that conform to them."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
from hypothesis import strategies as st

from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from fedsynth.schema.columns import text_of
from fedsynth.schema.columns.notation import parse_notation

# Text that a CSV file can hold and that is not taken for a missing cell.
_texts = st.text(
    st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=6
).filter(lambda text: text.strip() != "")
_values = (
    st.lists(_texts, min_size=1, max_size=5, unique_by=text_of)
    | st.lists(st.integers(-9, 99), min_size=1, max_size=5, unique=True)
    | st.lists(
        _texts | st.integers(0, 9) | st.floats(0, 9), min_size=1, max_size=5, unique_by=text_of
    )
)


@st.composite
def categoricals(draw, name="c"):
    return Categorical(name=name, values=draw(_values), missing=draw(st.booleans()))


NOTATIONS = (
    *("$1,234.5", "$ 1,234.50", "($1,234.50)", "1.234,5 \u20ac", "1.234,50", "1,234", "(1,234.5)"),
    *("1\u00a0234,5 kr", "CHF 1'234.50", "1234.5 %", "1234.50%", "1234 min", "1234 d", "1234 kg"),
    *("h:mm:ss", "hh:mm:ss", "h:mm", "hh:mm", "m:ss", "d days hh:mm:ss", "PT1H30M", "P1DT1H30M"),
)


def _spellings(draw):
    """A notation and a dtype of texts, or neither."""
    example = draw(st.none() | st.sampled_from(NOTATIONS))
    return {"format": example, "dtype": None if example is None else draw(_text_dtypes)}


_text_dtypes = st.sampled_from(["object", "string", "utf8[pyarrow]", None])


@st.composite
def integers(draw, name="i"):
    lower = draw(st.integers(-(10**12), 10**12))
    return Integer(
        name=name,
        lower=lower,
        upper=lower + draw(st.integers(0, 10**6)),
        missing=draw(st.booleans()),
        **_spellings(draw),
    )


@st.composite
def continuouses(draw, name="x"):
    spelling = _spellings(draw)
    example = spelling["format"]
    whole = example is not None and parse_notation(example).whole
    decimals = 0 if whole else draw(st.integers(0, 6))
    low, high = sorted(draw(st.tuples(*[st.integers(-(10**6), 10**6)] * 2)))
    return Continuous(
        name=name,
        lower=round(low / 10**decimals, decimals),
        upper=round(high / 10**decimals, decimals),
        decimals=decimals,
        missing=draw(st.booleans()),
        **spelling,
    )


@st.composite
def datetimes(draw, name="t"):
    seconds = {"year": 0, "month": 0, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1}
    resolution = draw(st.sampled_from(list(seconds)))
    if unit := seconds[resolution]:
        lower = datetime(1902, 1, 1) + draw(st.integers(0, 10**4)) * timedelta(seconds=unit)
        upper = lower + draw(st.integers(0, 10**5)) * timedelta(seconds=unit)
    else:
        first, last = sorted(draw(st.lists(st.integers(0, 3000), min_size=2, max_size=2)))
        months = 12 if resolution == "year" else 1
        first, last = (month // months * months for month in (first, last))
        lower, upper = (datetime(1902 + m // 12, m % 12 + 1, 1) for m in (first, last))
    return Datetime(
        name=name,
        lower=lower,
        upper=upper,
        resolution=resolution,
        missing=draw(st.booleans()),
        zone=draw(st.sampled_from([None, None, "UTC", "Europe/Berlin", "Asia/Kolkata", "-03:30"])),
        dtype=draw(st.sampled_from([None, "object"])),
    )


@st.composite
def schemas(draw):
    kinds = draw(
        st.lists(
            st.sampled_from([categoricals, integers, continuouses, datetimes, "boolean", "key"]),
            min_size=1,
            max_size=5,
        )
    )
    columns = [Boolean(name="self", missing=draw(st.booleans()))]
    for place, kind in enumerate(kinds):
        name = f"column {place}"
        if kind == "boolean":
            columns.append(Boolean(name=name, missing=draw(st.booleans())))
        elif kind == "key":
            columns.append(Identifier(name=name, prefix=draw(st.sampled_from(["", "P", "key 0"]))))
        else:
            columns.append(draw(kind(name=name)))
    markers = draw(st.sampled_from([("",), ("?",), ("NA", ""), ("", "n/a")]))
    return Schema(columns=columns, missing_values=markers)


def arrays(schema: Schema, rows: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Arrays such as `Conformed.columns`, drawn evenly; a fifth missing where it may be."""
    columns = {}
    for column in schema.modelled:
        gaps = column.missing & (rng.random(rows) < 0.2)
        if isinstance(column, Categorical | Boolean):
            codes = rng.integers(0, len(column.categories), rows)
            columns[column.name] = np.where(gaps, -1, codes)
        else:
            steps = rng.integers(0, round((column.high - column.low) / column.unit) + 1, rows)
            decimals = getattr(column, "decimals", 0)
            numbers = np.round(column.low + steps * column.unit, decimals)
            columns[column.name] = np.where(gaps, np.nan, np.clip(numbers, column.low, column.high))
    return columns
