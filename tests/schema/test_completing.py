"""What a table lacks and a sum tells: as the whole table has it, by hand and by pandas' dates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.data.conforming import conform, restore
from fedsynth.errors import DataError, SchemaError
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.schema import Continuous, Datetime, Integer, Schema
from fedsynth.schema.checking import Violation, check
from fedsynth.schema.completing import complete
from fedsynth.schema.deriving import fill_back, settle

DAY = {
    "admitted": Datetime(name="admitted", lower="2020-01-10", upper="2020-12-31"),
    "discharged": Datetime(name="discharged", lower="2020-01-01", upper="2021-02-01"),
    "stay": Integer(name="stay", lower=0, upper=30),
}
STAY = {"sum": {"total": "discharged", "parts": ["admitted", "stay"]}}
SCHEMA = Schema(columns=tuple(DAY.values()), constraints=[STAY])
TABLE = pd.DataFrame(
    {
        "admitted": pd.to_datetime(["2020-01-10", "2020-02-28", "2020-12-31"]),
        "discharged": pd.to_datetime(["2020-01-12", "2020-03-01", "2020-12-31"]),
        "stay": [2, 2, 0],
    }
)


def schema_of(constraints=(STAY,), **changes):
    columns = [column.model_copy(update=changes.get(name, {})) for name, column in DAY.items()]
    return Schema(columns=[column.model_dump() for column in columns], constraints=constraints)


@pytest.mark.parametrize("lacking", DAY)
def test_a_table_tells_what_it_lacks_of_a_sum(lacking):
    whole, told = conform(TABLE, SCHEMA), conform(TABLE.drop(columns=lacking), SCHEMA)
    assert {name: list(values) for name, values in told.columns.items()} == {
        "admitted": [0, 49, 356],
        "stay": [2, 2, 0],
    }
    pd.testing.assert_frame_equal(pd.DataFrame(told.columns), pd.DataFrame(whole.columns))
    # .. also where all columns are to be there.
    read = [read_rows(one, SCHEMA, "t").values for one in (TABLE, TABLE.drop(columns=lacking))]
    np.testing.assert_array_equal(*read)
    assert check(TABLE.drop(columns=lacking), SCHEMA) == []


def test_a_table_that_lacks_two_of_a_sum_is_refused_by_their_names():
    with pytest.raises(DataError, match="'admitted', 'stay'"):
        conform(TABLE[["discharged"]], SCHEMA)
    assert [one.rule for one in check(TABLE[["admitted"]], SCHEMA)] == ["absent"] * 2


def test_the_table_itself_stays_as_it_is():
    lacking = TABLE.drop(columns="stay").set_index(pd.Index([7, 7, 3]))
    assert list(complete(lacking, SCHEMA, ["stay"])["stay"]) == [2, 2, 0]
    assert list(lacking) == ["admitted", "discharged"]
    assert complete(lacking, SCHEMA, []) is lacking


def test_what_is_worked_out_is_clamped_and_counted_like_any_cell():
    odd = TABLE.drop(columns="stay")
    odd["discharged"] = pd.to_datetime(["2020-01-09", "2020-05-01", None])
    kept = conform(odd, schema_of(stay={"missing": True}, discharged={"missing": True}))
    np.testing.assert_array_equal(kept.columns["stay"], [0, 30, np.nan])
    assert kept.outside == {"admitted": 0, "stay": 2}
    # Where it may not be missing, its row is left out.
    assert conform(odd, SCHEMA).left_out == 1


def test_a_date_that_is_worked_out_of_its_bounds_is_clamped_however_far():
    odd = TABLE.drop(columns="admitted").assign(stay=[10**15, 2, -(10**15)])
    kept = conform(odd, SCHEMA)
    assert list(kept.columns["admitted"]) == [0, 49, 356]
    assert kept.outside == {"admitted": 2, "stay": 2}


def test_rows_have_the_days_and_the_date_that_follows_in_every_row():
    rows = restore(
        {"admitted": np.array([0.0, 356]), "stay": np.array([30.0, 1])},
        SCHEMA,
        np.random.default_rng(0),
    )
    assert list(rows["discharged"]) == [pd.Timestamp(2020, 2, 9), pd.Timestamp(2021, 1, 1)]
    assert ((rows["discharged"] - rows["admitted"]).dt.days == rows["stay"]).all()
    assert check(rows, SCHEMA) == []
    wrong = rows.assign(stay=[29, 1])
    assert check(wrong, SCHEMA) == [
        Violation("admitted, stay, discharged", "sum", "admitted + stay = discharged", 1)
    ]


_STARTS = {"year": "2001-01-01", "month": "2001-03-01", "day": "2001-03-05"}


@settings(max_examples=60)
@given(
    st.sampled_from(["year", "month", "day", "hour", "minute", "second"]),
    st.sampled_from([None, "Europe/Berlin", "+05:30"]),
    st.lists(st.tuples(st.integers(0, 5_000), st.integers(0, 900)), min_size=1, max_size=8),
    st.sampled_from(["from", "to", "span"]),
)
def test_dates_of_every_resolution_and_clock_are_told_back(resolution, zone, cells, lacking):
    """Drawn whole, written, and read without one of the three: the same cells."""
    high = pd.Timestamp("2001-03-05") + {
        "hour": pd.Timedelta(5_000, "h"),
        "minute": pd.Timedelta(5_000, "m"),
        "second": pd.Timedelta(5_000, "s"),
    }.get(resolution, pd.Timedelta(0))
    if resolution in _STARTS:
        cells = [(start % 90, span % 61) for start, span in cells]
        high = {"year": "2091-01-01", "month": "2011-01-01", "day": "2001-08-01"}[resolution]
    lower = _STARTS.get(resolution, "2001-03-05")
    known = {"resolution": resolution, "zone": zone}
    schema = Schema(
        columns=[
            {"kind": "datetime", "name": "from", "lower": lower, "upper": high, **known},
            {"kind": "datetime", "name": "to", "lower": "2001-01-01", "upper": "2199-01-01"}
            | known,
            {
                "kind": "integer",
                "name": "span",
                "lower": 0,
                "upper": 60 if resolution in _STARTS else 900,
            },
        ],
        constraints=[{"sum": {"total": "to", "parts": ["from", "span"]}}],
    )
    starts, spans = np.array(cells, float).T
    rows = restore({"from": starts, "span": spans}, schema, np.random.default_rng(0))
    told = complete(rows.drop(columns=lacking), schema, ["from", "to", "span"])
    assert (told[lacking] == rows[lacking]).all()


@given(st.lists(st.tuples(st.integers(0, 999), st.integers(-99, 99)), min_size=1))
def test_decimals_are_worked_out_exactly(cells):
    schema = Schema(
        columns=[
            Continuous(name="low", lower=0, upper=10, decimals=2),
            Continuous(name="span", lower=-1, upper=1, decimals=2),
            Continuous(name="high", lower=-1, upper=11, decimals=2),
        ],
        constraints=[{"sum": {"total": "high", "parts": ["low", "span"]}}],
    )
    low, span = (np.array(values) / 100 for values in zip(*cells, strict=True))
    rows = restore({"low": low, "span": span}, schema, np.random.default_rng(0))
    for name in rows:
        told = complete(rows.drop(columns=name), schema, list(rows))
        assert told[name].tolist() == rows[name].tolist()
    assert conform(rows.drop(columns="span"), schema).outside == {"low": 0, "span": 0}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"discharged": {"resolution": "month", "upper": "2021-02-01"}}, ("`resolution`", "month")),
        ({"admitted": {"zone": "Europe/Berlin"}}, ("`zone`", "Europe/Berlin")),
        ({"stay": {"format": "h:mm"}}, ("'stay' counts other units than days",)),
        ({"discharged": {"upper": "2021-01-01"}}, ("between 2020-01-10", "2021-01-30", "hold all")),
        ({"stay": {"missing": True}}, ("'discharged' is a gap where a part is",)),
        ({"stay": {"kind": "continuous", "decimals": 1}}, ("'stay'", "of kind integer")),
        ({"stay": {"kind": "datetime", "lower": "2020-01-01", "upper": "2020-01-31"}}, ("other",)),
    ],
)  # fmt: skip
def test_dates_that_do_not_add_up_are_refused(changes, words):
    columns = [
        {key: value for key, value in column.model_dump().items() if value is not None}
        | changes.get(name, {})
        for name, column in DAY.items()
    ]
    if "datetime" in str(changes):
        columns[-1] = {"name": "stay", **changes["stay"]}
    if "continuous" in str(changes):
        columns[-1] = {"name": "stay", "lower": 0, "upper": 30, **changes["stay"]}
    with pytest.raises(SchemaError) as caught:
        Schema(columns=columns, constraints=[STAY])
    for word in ("constraint 1", *words):
        assert word in str(caught.value)


def test_a_date_counts_durations_of_its_own_units():
    schema = Schema(
        columns=[
            Datetime(name="in", lower="2020-01-01", upper="2020-01-02", resolution="minute"),
            Datetime(name="out", lower="2020-01-01", upper="2020-01-03", resolution="minute"),
            Integer(name="stay", lower=0, upper=600, format="h:mm"),
        ],
        constraints=[{"sum": {"total": "out", "parts": ["in", "stay"]}}],
    )
    table = pd.DataFrame({"in": ["2020-01-01 23:50"], "out": ["2020-01-02 01:20"]})
    assert list(conform(table, schema).columns["stay"]) == [90]


def test_a_method_keeps_two_dates_as_near_as_they_are():
    """Rows of dates that are learned by themselves are weeks apart; with the days between, days."""
    rng = np.random.default_rng(0)

    def table():
        came = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(0, 900, 300), "D")
        left = came + pd.to_timedelta(rng.poisson(4, 300), "D")
        return pd.DataFrame({"came": came, "left": left})

    dates = Schema(
        columns=[
            Datetime(name="came", lower="2020-01-01", upper="2022-06-30"),
            Datetime(name="left", lower="2020-01-01", upper="2022-12-31"),
        ]
    )
    ordered = dates.with_constraint({"ordered": ["came", "left"]})
    nearer = dates.with_column(Integer(name="days", lower=0, upper=100))
    nearer = nearer.with_constraint({"sum": {"total": "left", "parts": ["came", "days"]}})
    owners = {name: table() for name in "abc"}
    apart = []
    for one in (ordered, nearer):
        synth = fs.synthesizer("aim", one).fit(owners, fs.Budget(epsilon=3), seed=1)
        rows = synth.sample(500, seed=1)
        apart.append((rows["left"] - rows["came"]).dt.days)
    assert apart[0].median() > 10 and abs(apart[1].median() - 4) <= 2


def test_gaps_of_dates_are_filled_from_what_follows_and_drawn_ones_moved_to_it():
    gap = np.nan
    known = {
        # Two days from 2020-01-10 on are 2020-01-12, the eleventh day of the later column.
        "admitted": np.array([gap, 0.0, gap]),
        "discharged": np.array([11.0, 11.0, 11.0]),
        "stay": np.array([2.0, gap, gap]),
    }
    told = fill_back(known, SCHEMA.derivations, DAY)
    np.testing.assert_array_equal(told["admitted"], [0, 0, gap])
    np.testing.assert_array_equal(told["stay"], [2, 2, gap])
    drawn = {"admitted": np.array([0.0, 0, 5]), "stay": np.array([2.0, 2, 9])}
    whole = SCHEMA.derive(drawn)
    moved = settle(whole, told, SCHEMA.derivations, DAY)
    np.testing.assert_array_equal(moved["admitted"] + moved["stay"] + 9, [11, 11, 11])
