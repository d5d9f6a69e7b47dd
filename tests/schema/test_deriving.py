"""Columns that follow from others: which, and what they are, by hand."""

from __future__ import annotations

import re
from datetime import timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.data.conforming import conform, restore
from fedsynth.errors import DataError, SchemaError
from fedsynth.schema import Categorical, Continuous, Datetime, Integer, Schema, load_schema
from fedsynth.schema.checking import Violation, check
from fedsynth.schema.deriving import fill_back, settle
from fedsynth.yaml_files import parse_value

NET = Continuous(name="net", lower=0, upper=100, decimals=1, missing=True)
TAX = Continuous(name="tax", lower=-5, upper=20, decimals=2)
GROSS = Continuous(name="gross", lower=-5, upper=120, decimals=2, missing=True)
PAID = GROSS.model_copy(update={"name": "paid"})
KIND = Categorical(name="kind", values=("a", "b"))
AGAIN = KIND.model_copy(update={"name": "again"})
SUM = {"sum": {"total": "gross", "parts": ["net", "tax"]}}
COLUMNS = (GROSS, NET, KIND, TAX, AGAIN, PAID)


def schema_of(*constraints, columns=COLUMNS, target=None):
    return Schema(columns=columns, constraints=constraints, target=target)


FULL = schema_of({"equal": ["kind", "again"]}, {"equal": ["paid", "gross"]}, SUM)


def names_of(columns):
    return [column.name for column in columns]


def test_what_follows_from_others_is_not_modelled_and_the_target_is_kept():
    assert names_of(FULL.modelled) == ["net", "kind", "tax"]
    assert names_of(FULL.observed) == names_of(FULL.whole.modelled) == names_of(COLUMNS)
    told = schema_of({"equal": ["kind", "again"]}, target="again")
    assert names_of(told.modelled) == ["gross", "net", "tax", "again", "paid"]
    assert told.classes == 2


def test_rows_are_made_whole_of_what_is_modelled():
    arrays = {
        "net": np.array([10.0, 0.1, np.nan]),
        "kind": np.array([0, 1, 1]),
        "tax": np.array([1.25, 0.2, 3.0]),
    }
    rows = restore(arrays, FULL, np.random.default_rng(0))
    assert list(rows.columns) == names_of(COLUMNS)
    assert rows["gross"].tolist()[:2] == [11.25, 0.3] and np.isnan(rows["gross"][2])
    assert rows["paid"].equals(rows["gross"].rename("paid"))
    assert rows["again"].tolist() == rows["kind"].tolist() == ["a", "b", "b"]
    assert check(rows, FULL) == []


def test_an_owners_table_may_lack_what_follows_and_rows_that_break_it_are_told():
    rows = restore(
        {"net": np.array([1.0, 2, 3]), "kind": np.zeros(3, int), "tax": np.zeros(3)},
        FULL,
        np.random.default_rng(0),
    )
    lacking = rows.drop(columns=["gross", "again", "paid"])
    pd.testing.assert_frame_equal(
        pd.DataFrame(conform(lacking, FULL).columns), pd.DataFrame(conform(rows, FULL).columns)
    )
    with pytest.raises(DataError, match="net"):
        conform(lacking.drop(columns="net"), FULL)
    wrong = rows.assign(gross=[1.0, 2.01, None], again=["a", "b", "a"], paid=[1.0, 2.01, None])
    assert check(wrong, FULL) == [
        Violation("kind, again", "equal", "all the same", 1),
        Violation("net, tax, gross", "sum", "net + tax = gross", 2),
    ]


def test_constraints_on_an_equal_column_are_those_of_what_is_modelled():
    schema = schema_of(
        {"equal": ["kind", "again"]},
        {"never": {"again": "b", "tax": {"to": 0}}},
        {"ordered": ["tax", "net"]},
    )
    assert [one.names() for one in schema.rules] == [("kind", "tax"), ("tax", "net")]
    arrays = {"kind": np.array([1, 1]), "tax": np.array([0.0, 1]), "net": np.array([1.0, 2])}
    assert schema.broken(arrays, schema.rules).tolist() == [True, False]


def test_they_read_back_from_a_file_and_are_renamed(tmp_path):
    FULL.save(tmp_path / "schema.yaml")
    assert load_schema(tmp_path / "schema.yaml") == FULL
    renamed = FULL.rename({"net": "bare", "kind": "sort"})
    assert renamed.constraints[2].parts == ("bare", "tax")
    assert names_of(renamed.modelled) == ["bare", "sort", "tax"]
    with pytest.raises(SchemaError, match="constraint 3 is about 'net'"):
        FULL.drop("net")


@pytest.mark.parametrize(
    ("constraints", "words"),
    [
        ([{"equal": ["kind"]}], ("equal", "two or more")),
        ([{"equal": ["kind", "kind"]}], ("twice",)),
        ([{"equal": ["kind", "net"]}], ("`kind`", "declare them alike")),
        ([{"equal": ["net", "gross"]}], ("`lower`, `upper`, `decimals`",)),
        ([{"sum": ["net", "tax"]}], ("sum", "{total: a column, parts")),
        ([{"sum": {"total": "gross", "part": ["net", "tax"]}}], ("sum", "did you mean 'parts'")),
        ([{"sum": {"total": "gros", "parts": ["net", "tax"]}}], ("did you mean 'gross'",)),
        ([{"sum": {"total": "gross", "parts": ["net", "kind"]}}], ("'kind' is categorical",)),
        ([{"sum": {"total": "gross", "parts": ["net", "gross"]}}], ("twice",)),
        ([{"sum": {"total": "net", "parts": ["tax", "gross"]}}], ("`decimals: 2`",)),
        ([{"sum": {"total": "gross", "parts": ["tax", "paid"]}}], ("between -10 and 140", "hold")),
        ([{"sum": {"total": "gross", "parts": ["tax", "plain"]}}], ("no part may",)),
        ([SUM, SUM], ("'gross' follows by two",)),
        ([SUM, {"never": {"gross": 3}}], ("constraint 2", "'gross' is the sum of 'net', 'tax'")),
        ([SUM, {"ordered": ["tax", "gross"]}], ("constraint 2", "state it of these")),
        ([{"equal": ["gross", "paid"]}, {"ordered": ["gross", "paid"]}], ("two columns",)),
        ([SUM, {"equal": ["net", "paid"]}], ("`upper`",)),
    ],
)  # fmt: skip
def test_what_cannot_follow_is_refused_with_its_constraint(constraints, words):
    plain = Continuous(name="plain", lower=0, upper=100, decimals=2)
    with pytest.raises(SchemaError) as caught:
        schema_of(*constraints, columns=(*COLUMNS, plain))
    for word in words:
        assert word in str(caught.value)


def test_no_target_follows_from_others_and_nothing_from_itself():
    with pytest.raises(SchemaError, match="the target 'gross' is the sum of"):
        schema_of(SUM, target="gross")
    with pytest.raises(SchemaError, match="the target 'paid' equals 'gross', which follows"):
        schema_of(SUM, {"equal": ["gross", "paid"]}, target="paid")
    numbers = [Integer(name=name, lower=0, upper=0) for name in "abc"]
    circle = [
        {"sum": {"total": "a", "parts": ["b", "c"]}},
        {"sum": {"total": "b", "parts": ["a", "c"]}},
    ]
    with pytest.raises(SchemaError, match="'a', 'b' follow from each other"):
        schema_of(*circle, columns=numbers)


def test_moments_may_be_equal_too():
    days = [Datetime(name=name, lower="2020-01-01", upper="2020-12-31") for name in ("a", "b")]
    schema = schema_of({"equal": ["a", "b"]}, columns=days)
    rows = restore({"a": np.array([31.0])}, schema, np.random.default_rng(0))
    assert rows.iloc[0].tolist() == [pd.Timestamp(2020, 2, 1)] * 2


_ROW = st.tuples(st.integers(0, 1000), st.integers(-500, 2000), st.sets(st.integers(0, 2)))


@given(st.lists(_ROW, min_size=1, max_size=20), st.integers(0, 2**32 - 1))
@example([(0, 0, set())] * 2 + [(0, -1, {0, 1})] + [(0, 0, set())] * 6, 74_006)
def test_gaps_of_parts_are_filled_so_that_a_known_total_holds(rows, seed):
    """Whatever is drawn for gaps, a total that is told is met: by the one unknown part, or by
    several that are moved."""
    of = {column.name: column for column in COLUMNS}
    true = {
        "net": np.array([net / 10 for net, _, _ in rows]),
        "tax": np.array([tax / 100 for _, tax, _ in rows]),
        "kind": np.zeros(len(rows), np.int64),
    }
    whole = FULL.derive(true)
    known = {name: values.copy() for name, values in whole.items()}
    for name, place in (("net", 0), ("tax", 1), ("gross", 2)):
        known[name][[place in gone for _, _, gone in rows]] = np.nan
    # What equals a gap tells it, so the sum is always known.
    told = fill_back(known, FULL.derivations, of)
    np.testing.assert_allclose(told["gross"], whole["gross"])
    rng = np.random.default_rng(seed)
    drawn = FULL.derive(
        {
            "net": rng.integers(0, 1001, len(rows)) / 10,
            "tax": rng.integers(-500, 2001, len(rows)) / 100,
            "kind": np.zeros(len(rows), np.int64),
        }
    )
    moved = settle(drawn, told, FULL.derivations, of)
    np.testing.assert_allclose(moved["net"] + moved["tax"], whole["gross"], atol=1e-9)
    for name in ("net", "tax"):
        left = ~np.isnan(known[name])
        np.testing.assert_array_equal(moved[name][left], known[name][left])
        assert ((moved[name] >= of[name].low) & (moved[name] <= of[name].high)).all()


def test_a_draft_tells_of_columns_that_follow_and_declares_none():
    rng = np.random.default_rng(0)
    net, tax = rng.integers(0, 300, 60) / 4, rng.integers(0, 50, 60) / 4
    frame = pd.DataFrame({"net": net, "tax": tax, "gross": net + tax, "copy": net})
    frame["near"] = frame["gross"] + (np.arange(60) == 59)
    drafted = fs.draft(frame)
    told = {(one.column, one.kind): one.text for one in drafted.findings}
    assert {key for key in told if key[1] in ("equal", "sum")} == {
        ("copy", "equal"),
        ("gross", "sum"),
    }
    assert "`{equal: [net, copy]}`" in told["copy", "equal"]
    assert "`{sum: {total: gross, parts: [net, tax]}}`" in told["gross", "sum"]
    assert not drafted.schema.constraints
    # A part is below its sum by itself.
    assert {key for key in told if key[1] == "ordered"} == {("gross", "ordered")}
    assert "[gross, near]" in told["gross", "ordered"]
    few = fs.draft(frame[:40]).findings
    assert not [one for one in few if one.kind in ("equal", "sum")]


def orders(**columns):
    found = fs.draft(pd.DataFrame(columns)).findings
    return [one for one in found if one.kind == "ordered"]


def test_a_draft_tells_of_columns_that_are_never_above_others_where_that_is_no_chance():
    rng = np.random.default_rng(0)
    came = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 200), "D")
    left = came + pd.to_timedelta(rng.integers(0, 30, 200), "D")
    low, more = rng.integers(0, 50, 200), rng.integers(0, 20, 200)
    stay, span = orders(
        # Far below all others, which says nothing.
        age=rng.integers(0, 90, 200),
        price=rng.integers(1_000, 9_000, 200),
        left=left,
        high=low + more + rng.integers(1, 9, 200),
        came=came,
        middle=low + more,
        low=low,
        broken=np.where(np.arange(200) == 199, -5, low + 40),
    )
    assert span.column == "low" and "[low, middle, high]" in span.text
    assert stay.column == "came" and "[came, left]" in stay.text
    assert "{kind: integer, name: came to left, lower: 0, upper: 50}" in stay.text
    assert "{sum: {total: left, parts: [came, came to left]}} in the place" in stay.text
    assert "mostly near" not in span.text


def near(**columns):
    """What lies between two columns and the sum that has it, as the draft proposes them."""
    frame = pd.DataFrame(columns)
    for one in orders(**columns):
        if "mostly near" in one.text:
            lines = re.search(r"the column (\{.*?\}), which .*, and (\{sum.*?\}\}) in", one.text)
            column, total = map(parse_value, lines.groups())
            low, high = total["sum"]["parts"][0], total["sum"]["total"]
            schema = fs.draft(frame).schema
            first, most = schema.column(low), schema.column(low).upper
            more = column["upper"]
            upper = most + (timedelta(days=more) if isinstance(first, Datetime) else more)
            schema = schema.edit(high, lower=min(first.lower, schema.column(high).lower))
            schema = schema.edit(high, upper=max(upper, schema.column(high).upper))
            # Taken as it stands it fits every row, without that column.
            assert check(frame, schema.with_column(column).with_constraint(total)) == []
            return column
    return None


def test_a_draft_proposes_what_lies_between_columns_that_are_near():
    rng = np.random.default_rng(0)
    low, more = rng.integers(0, 900, 200), rng.integers(0, 37, 200)
    some = np.where(np.arange(200) % 5 == 0, np.nan, 1.0)
    between = {"kind": "integer", "name": "low to high", "lower": 0, "upper": 50}
    assert near(low=low, high=low + more) == between
    assert near(low=low, high=(low + more) * some) == {**between, "missing": True}
    exact = near(low=low / 10, high=np.round((low + more) / 10, 1))
    assert exact == {**between, "kind": "continuous", "upper": 5, "decimals": 1}
    # Bounds of dates are drafted as whole years: the later column's begin a year after.
    days = [pd.Timestamp("2021-12-28") + pd.to_timedelta(n, "D") for n in (low, low + more + 9)]
    assert near(low=days[0], high=days[1]) == between
    # Half of a column is far from the other's, or what is known of both is little.
    assert near(low=low, high=low + 20 * more) is None
    few = np.where(np.arange(200) < 40, 1.0, np.nan)
    assert near(low=low * few, high=(low + more) * few[::-1]) is None
    # Where one may be missing alone, or has more decimals, nothing adds up to the other.
    assert near(low=low * some, high=low + more) is None
    assert near(low=low + 0.5, high=low + more + 1) is None
    assert near(low=low, high=(low + more) * few) is None


def test_gaps_break_no_order_and_columns_that_are_equal_beside_them_have_none():
    rng = np.random.default_rng(0)
    low = rng.integers(0, 50, 200).astype(float)
    high = low + rng.integers(0, 9, 200)
    same, other = low.copy(), low.copy()
    high[::5], same[::7], other[::3] = np.nan, np.nan, np.nan
    assert ["[low, high]" in one.text for one in orders(low=low, high=high)] == [True]
    assert not orders(same=same, other=other)


def test_many_orders_are_counted():
    rng = np.random.default_rng(0)
    low = [rng.integers(0, 50, 200) for _ in range(12)]
    pairs = {f"low{k}": one for k, one in enumerate(low)}
    pairs |= {f"high{k}": one + rng.integers(0, 30, 200) for k, one in enumerate(low)}
    found = orders(**pairs)
    assert len(found) == 11 and "first of 2 more" in found[-1].text
