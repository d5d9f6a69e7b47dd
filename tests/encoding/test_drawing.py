"""Values drawn within their codes so that conditions hold, and in the order that is declared."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import binom

from fedsynth.data.tables import conform
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.grid import Grid
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError, DataError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from fedsynth.schema.conditions import condition_on
from tests.encoding.encoding_strategies import schemas

ONE_SIXTH = 1 / 6


def noisy_encoding(schema, seed, sigma=3.0, bins=24):
    rng = np.random.default_rng(seed)
    layout = HistogramLayout.of(schema)
    counts = rng.exponential(20, layout.dim) * (rng.random(layout.dim) < 0.5)
    return TableEncoding.from_histogram(schema, counts + rng.normal(0, sigma, layout.dim), sigma)


def random_codes(encoding, rows, seed):
    rng = np.random.default_rng(seed)
    return np.stack([rng.integers(0, size, rows) for size in encoding.sizes], axis=1)


def by_hand(**columns):
    """An encoding of whole numbers 0 to 9; each column's pieces as (start, code, weight)."""
    made, bins = [], []
    for name, pieces in columns.items():
        starts, codes, weights = zip(*pieces, strict=True)
        grid = Grid(0, 9)
        made.append(Integer(name=name, lower=0, upper=9))
        bins.append(Bins(grid, np.array(starts), np.array(codes), np.array(weights, float)))
    names = list(columns)
    constraints = ({"ordered": names},) if len(names) > 1 else ()
    schema = Schema(columns=tuple(made), constraints=constraints)
    frequencies = tuple(np.full(b.size, 1 / b.size) for b in bins)
    return TableEncoding(schema, tuple(bins), frequencies, 1.0)


@st.composite
def conditions(draw, column):
    given_ = []
    if column.missing and draw(st.booleans()):
        given_.append(None)
    if isinstance(column, Categorical | Boolean):
        given_ += draw(st.lists(st.sampled_from(column.categories), min_size=not given_))
        return given_
    if isinstance(column, Datetime):
        cells = st.datetimes(column.lower, column.upper)
        return dict(zip(("from", "to"), sorted([draw(cells), draw(cells)]), strict=True))
    low, high = draw(st.integers(0, 1000)), draw(st.integers(0, 1000))
    width = column.upper - column.lower
    ends = sorted(round(column.lower + width * end / 1000, 1) for end in (low, high))
    keys = draw(st.sampled_from((("from", "to"), ("from",), ("to",))))
    return {key: ends[("from", "to").index(key)] for key in keys}


@given(schemas(), st.data(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_conditions_hold_in_every_row_whose_codes_can_meet_them(schema, data, seed):
    wanted = {}
    for column in schema.modelled:
        try:
            wanted[column.name] = condition_on(column, data.draw(conditions(column)))
        except ConfigError:
            assume(False)
    encoding = noisy_encoding(schema, seed)
    codes = random_codes(encoding, 60, seed)
    table = encoding.decode(codes, np.random.default_rng(seed), wanted)
    drawn = conform(table, schema).columns
    for k, column in enumerate(schema.modelled):
        likelihood = encoding.likelihood(column.name, wanted[column.name])
        assert ((likelihood >= 0) & (likelihood <= 1 + 1e-12)).all() and likelihood.any()
        assert (
            wanted[column.name].holds(drawn[column.name]) == (likelihood[codes[:, k]] > 0)
        ).all()
    assert (encoding.encode(conform(table, schema)) == codes).all()


@given(schemas(), st.data(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_the_likelihood_is_how_often_unconditional_draws_meet_the_condition(schema, data, seed):
    column = schema.modelled[0]
    try:
        wanted = condition_on(column, data.draw(conditions(column)))
    except ConfigError:
        assume(False)
    encoding = noisy_encoding(schema, seed)
    likelihood, rows = encoding.likelihood(column.name, wanted), 400
    codes = np.zeros((rows * encoding.sizes[0], len(encoding.sizes)), np.int32)
    codes[:, 0] = np.repeat(np.arange(encoding.sizes[0]), rows)
    drawn = conform(encoding.decode(codes, np.random.default_rng(seed)), schema).columns
    met = wanted.holds(drawn[column.name]).reshape(-1, rows).sum(axis=1)
    # Where the counts show no such value, the likelihood is of another draw.
    shown = encoding.sizes[0] - column.missing
    assume(met[:shown].any() or not likelihood[:shown].any())
    low, high = binom.ppf([[1e-12], [1 - 1e-12]], rows, likelihood.clip(0, 1))
    assert ((low <= met) & (met <= high)).all()


def test_the_likelihood_of_a_bin_partly_inside_is_the_share_of_its_mass():
    # One bin of 0 to 4 with three quarters of its mass on 4; another of 5 to 9.
    encoding = by_hand(a=[(0, 0, 1.0), (4, 0, 3.0), (5, 1, 1.0)])
    column = encoding.schema.column("a")

    def likelihood(given_):
        return encoding.likelihood("a", condition_on(column, given_)).tolist()

    assert likelihood({"to": 1}) == pytest.approx([0.125, 0.0])
    assert likelihood({"from": 3}) == pytest.approx([0.0625 + 0.75, 1.0])
    assert likelihood([2, 4, 7]) == pytest.approx([0.0625 + 0.75, 0.2])
    assert likelihood({"from": 6, "to": 7}) == pytest.approx([0.0, 0.4])


def test_a_condition_on_values_that_the_counts_do_not_show_is_met_evenly():
    # All mass is on 0 and 1 (one bin) and on 8 (another), each with values without any.
    encoding = by_hand(a=[(0, 0, 1.0), (2, 0, 0.0), (6, 1, 0.0), (8, 1, 1.0), (9, 1, 0.0)])
    wanted = condition_on(encoding.schema.column("a"), {"from": 3, "to": 6})
    assert encoding.likelihood("a", wanted) == pytest.approx([0.5, 0.25])
    codes = np.repeat([[0], [1]], 9000, axis=0)
    drawn = encoding.decode(codes, np.random.default_rng(0), {"a": wanted})["a"]
    assert np.bincount(drawn[:9000])[3:] == pytest.approx([3000] * 3, abs=250)
    assert (drawn[9000:] == 6).all()


def test_values_under_a_condition_keep_their_proportions():
    encoding = by_hand(a=[(0, 0, 1.0), (4, 0, 3.0), (5, 0, 1.0)])
    wanted = condition_on(encoding.schema.column("a"), {"from": 3, "to": 5})
    codes = np.zeros((30_000, 1), np.int32)
    drawn = encoding.decode(codes, np.random.default_rng(0), {"a": wanted})["a"]
    shares = drawn.value_counts(normalize=True)
    # Unconditional masses: 0.25 of the value 3, 3 of the value 4, 0.2 of the value 5.
    assert shares[3] == pytest.approx(0.25 / 3.45, abs=0.006)
    assert shares[4] == pytest.approx(3 / 3.45, abs=0.008)
    assert shares[5] == pytest.approx(0.2 / 3.45, abs=0.006)


def test_without_conditions_and_constraints_the_draw_is_the_same_as_ever():
    encoding = by_hand(a=[(0, 0, 1.0), (4, 1, 3.0)])
    codes = random_codes(encoding, 50, 0)
    first = encoding.decode(codes, np.random.default_rng(7))
    pd.testing.assert_frame_equal(first, encoding.decode(codes, np.random.default_rng(7), {}))


def test_an_unknown_column_has_no_likelihood():
    encoding = by_hand(a=[(0, 0, 1.0)])
    with pytest.raises(DataError, match="'b'"):
        encoding.likelihood("b", condition_on(encoding.schema.column("a"), 1))


def test_rows_out_of_order_are_drawn_anew_from_what_is_in_order():
    # Both columns even on 0 to 2: of the nine pairs, six are in order, each as likely.
    encoding = by_hand(
        a=[(0, 0, 3.0), (3, 1, 7.0)],
        b=[(0, 0, 3.0), (3, 1, 7.0)],
    )
    table = encoding.decode(np.zeros((60_000, 2), np.int32), np.random.default_rng(0))
    shares = table.value_counts(normalize=True)
    assert set(shares.index) == {(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)}
    assert shares.to_numpy() == pytest.approx(ONE_SIXTH, abs=0.008)


def test_rows_that_are_hardly_ever_in_order_are_moved_within_their_codes():
    # In order only if a is 0 and b is 9: one draw in 10^8.
    encoding = by_hand(
        a=[(0, 0, 1e-4), (1, 1, 1.0), (9, 0, 1.0)],
        b=[(0, 0, 1.0), (1, 1, 1.0), (8, 0, 1e-4), (9, 1, 1.0)],
    )
    table = encoding.decode(np.zeros((200, 2), np.int32), np.random.default_rng(0))
    assert (table["a"] <= table["b"]).all()
    assert set(table["a"]) <= {0, 9} and set(table["b"]) <= {0, 8}


def test_codes_that_hold_nothing_in_order_give_way():
    # Pair by pair each can be in order, but 5 <= b <= 3 is none.
    encoding = by_hand(
        a=[(0, 0, 1.0), (5, 1, 1.0), (6, 0, 1.0)],
        b=[(0, 0, 1.0)],
        c=[(0, 0, 1.0), (4, 1, 1.0)],
    )
    table = encoding.decode(np.array([[1, 0, 0]] * 50), np.random.default_rng(0))
    assert (table["a"] <= table["b"]).all() and (table["b"] <= table["c"]).all()


def test_conditions_that_leave_nothing_in_order_are_refused():
    encoding = by_hand(a=[(0, 0, 1.0)], b=[(0, 0, 1.0)])
    column = encoding.schema.column
    wanted = {
        "a": condition_on(column("a"), {"from": 6}),
        "b": condition_on(column("b"), {"to": 5}),
    }
    with pytest.raises(ConfigError, match="order"):
        encoding.decode(np.zeros((3, 2), np.int32), np.random.default_rng(0), wanted)
    wanted["b"] = condition_on(column("b"), {"to": 6})
    table = encoding.decode(np.zeros((3, 2), np.int32), np.random.default_rng(0), wanted)
    assert (table == 6).all().all()


@st.composite
def ordered_schemas(draw):
    """Columns of numbers with different decimals, or of dates with different beginnings."""
    dates, columns = draw(st.booleans()), []
    for k in range(draw(st.integers(2, 4))):
        name, missing = f"c{k}", draw(st.booleans())
        start = draw(st.integers(-20, 20))
        if dates:
            lower = datetime.datetime(2020, 3, 1) + datetime.timedelta(days=start)
            upper = lower + datetime.timedelta(days=draw(st.integers(40, 400)))
            columns.append(Datetime(name=name, lower=lower, upper=upper, missing=missing))
        else:
            upper = start + draw(st.integers(40, 400))
            decimals = draw(st.integers(0, 3))
            columns.append(
                Integer(name=name, lower=start, upper=upper, missing=missing)
                if draw(st.booleans())
                else Continuous(
                    name=name, lower=start, upper=upper, decimals=decimals, missing=missing
                )
            )
    names = [column.name for column in columns]
    orders = [{"ordered": names}]
    if len(names) > 2 and draw(st.booleans()):
        orders = [{"ordered": names[:2]}, {"ordered": [names[0], *names[2:]]}]
    return Schema(columns=tuple(columns), constraints=orders)


@given(ordered_schemas(), st.data(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_every_row_is_in_order_whatever_its_codes_and_under_any_condition(schema, data, seed):
    encoding = noisy_encoding(schema, seed)
    codes = random_codes(encoding, 100, seed)
    column = data.draw(st.sampled_from(schema.modelled))
    try:
        wanted = condition_on(column, data.draw(conditions(column)))
    except ConfigError:
        assume(False)
    try:
        table = encoding.decode(codes, np.random.default_rng(seed), {column.name: wanted})
    except ConfigError:
        # The others' bounds leave no room beside this condition.
        low, high = wanted.ranges[0]
        assert low > column.low or high < column.high
        assume(False)
    drawn = conform(table, schema).columns
    assert not schema.broken(drawn).any()
    position = schema.modelled.index(column)
    possible = encoding.likelihood(column.name, wanted)[codes[:, position]] > 0
    assert wanted.holds(drawn[column.name])[possible].all()
    for k, one in enumerate(schema.modelled):
        missing = one.missing & (codes[:, k] == encoding.sizes[k] - 1)
        assert (np.isnan(drawn[one.name]) == missing).all()


@given(ordered_schemas(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_rows_whose_codes_have_values_in_order_keep_their_codes(schema, seed):
    encoding = noisy_encoding(schema, seed)
    codes = random_codes(encoding, 50, seed)
    # What was drawn once shows that the codes have such values.
    plain = TableEncoding(
        Schema(columns=schema.columns), encoding.bins, encoding.frequencies, encoding.records
    )
    first = conform(plain.decode(codes, np.random.default_rng(seed)), schema).columns
    table = encoding.decode(codes, np.random.default_rng(seed + 1))
    kept = (encoding.encode(conform(table, schema)) == codes).all(axis=1)
    assert kept[~schema.broken(first)].all()


def test_many_rows_of_dates_are_put_in_order():
    schema = Schema(
        columns=(
            Datetime(name="a", lower="2000-01-01", upper="2020-12-31"),
            Datetime(name="b", lower="2000-01-01", upper="2020-12-31"),
        ),
        constraints=({"ordered": ["a", "b"]},),
    )
    encoding = noisy_encoding(schema, 0)
    codes = random_codes(encoding, 60_000, 0)
    table = encoding.decode(codes, np.random.default_rng(0))
    assert (table["a"] <= table["b"]).all()
