"""Values are put in order within their codes wherever their codes allow it."""

from __future__ import annotations

import numpy as np
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedsynth.data.conforming import conform
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.grid import Grid
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Categorical, Datetime, Identifier, Integer, Schema


def test_a_value_that_noise_gave_no_weight_is_taken_before_a_code_is_left():
    """Since 19 at the earliest by its weights, in a row of 0 to 17 years."""
    schema = Schema(
        columns=[
            Integer(name="age", lower=0, upper=99),
            Integer(name="since", lower=0, upper=99),
            Categorical(name="status", values=["child", "adult"]),
        ],
        constraints=[
            {"never": {"age": {"from": 18}, "status": "child"}},
            {"ordered": ["since", "age"]},
        ],
    )
    grid = Grid(0, 99)
    ages = Bins(grid, np.array([0, 18]), np.array([0, 1]), np.array([1.0, 1.0]))
    since = Bins(grid, np.array([0, 19, 20]), np.array([0, 0, 0]), np.array([0.0, 1.0, 0.0]))
    encoding = TableEncoding(
        schema, (ages, since, None), (np.full(2, 0.5), np.ones(1), np.full(2, 0.5)), 100.0
    )
    codes = np.tile([0, 0, 0], (50, 1))
    rows = encoding.decode(codes, np.random.default_rng(0))
    assert (rows["age"] < 18).all() and (rows["since"] <= rows["age"]).all()


def test_moments_and_durations_of_any_units_are_drawn_in_order():
    def moment(name, resolution):
        return Datetime(
            name=name, lower="2020-02-27", upper="2020-03-02", resolution=resolution, missing=True
        )

    schema = Schema(
        columns=[
            moment("called", "minute"),
            moment("admitted", "day"),
            moment("seen", "hour"),
            Integer(name="wait", lower=0, upper=30, format="h:mm"),
            Integer(name="stay", lower=0, upper=2_000, format="h:mm:ss"),
        ],
        constraints=[{"ordered": ["called", "admitted", "seen"]}, {"ordered": ["wait", "stay"]}],
    )
    rng = np.random.default_rng(0)
    counts = rng.exponential(20, HistogramLayout.of(schema).dim)
    encoding = TableEncoding.from_histogram(schema, counts, 1.0, 5)
    codes = np.stack([rng.integers(0, size, 400) for size in encoding.sizes], axis=1)
    rows = encoding.decode(codes, rng)
    assert not schema.broken(conform(rows, schema).columns).any()
    plain = Schema(columns=schema.columns)
    free = TableEncoding(plain, encoding.bins, encoding.frequencies, 1.0).decode(codes, rng)
    assert schema.broken(conform(free, schema).columns).mean() > 0.5


@given(st.integers(0, 2**32 - 1))
@example(2)
@settings(max_examples=5, deadline=None)
def test_persons_keep_one_value_and_the_order_however_few_values_it_leaves(seed):
    """Of chained columns the first and the last are of a person; codes are of all kinds."""
    rng = np.random.default_rng(seed)
    columns = [
        Integer(name="born", lower=0, upper=30, of="person", missing=True),
        Integer(name="seen", lower=0, upper=30, missing=True),
        Integer(name="died", lower=0, upper=30, of="person"),
        Categorical(name="sex", values=["f", "m", "x"], of="person", missing=True),
    ]
    schema = Schema(
        columns=[Identifier(name="who"), *columns],
        person="who",
        constraints=[{"ordered": ["born", "seen", "died"]}],
    )
    counts = rng.exponential(20, HistogramLayout.of(schema).dim)
    encoding = TableEncoding.from_histogram(schema, counts, 1.0, 4)
    persons = np.repeat(np.arange(20), rng.integers(1, 5, 20))
    codes = np.stack([rng.integers(0, size, len(persons)) for size in encoding.sizes], axis=1)
    first = np.unique(persons, return_index=True)[1]
    own = [0, 2, 3]
    codes[:, own] = codes[first][persons][:, own]
    rows = encoding.decode(codes, rng, persons=persons)
    assert (rows.groupby("who")[["born", "died", "sex"]].nunique(dropna=False) == 1).all(axis=None)
    assert rows["who"].nunique() == 20
    assert not schema.broken(conform(rows, schema).columns).any()
    gone = [size - 1 for size in encoding.sizes]
    assert (rows["born"].isna() == (codes[:, 0] == gone[0])).all()
    assert (rows["sex"].isna() == (codes[:, 3] == gone[3])).all()
