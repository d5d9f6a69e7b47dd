from __future__ import annotations

from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.conforming import conform, conform_all, restore
from fedsynth.errors import DataError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from fedsynth.schema.checking import check
from fedsynth.schema.moments import moments, read_units
from fedsynth.schema.spelling import spell
from tests.schemas import arrays, schemas

NAN = np.nan


def conform_one(cells, column, missing_values=("",)):
    """The conformed array of one column, and how many of its cells were outside."""
    series = cells if isinstance(cells, pd.Series) else pd.Series(cells, dtype=object)
    schema = Schema(columns=[column], missing_values=missing_values)
    result = conform(pd.DataFrame({column.name: series}), schema)
    return result.columns[column.name].tolist(), result.outside[column.name]


@given(schemas(), st.integers(1, 30), st.integers(0, 2**32))
@settings(max_examples=12, deadline=None)
def test_conform_undoes_restore(schema, rows, seed):
    rng = np.random.default_rng(seed)
    columns = arrays(schema, rows, rng)
    frame = restore(columns, schema, rng)
    assert list(frame.columns) == [column.name for column in schema.columns]
    for column in schema.columns:
        assert frame[column.name].dtype == column.pandas_dtype
    # As text, as objects and as nullable dtypes the cells mean the same.
    for version in (frame, frame.astype(object), frame.convert_dtypes()):
        result = conform(version, schema)
        assert result.rows == rows
        assert sum(result.outside.values()) == 0
        for name, values in columns.items():
            np.testing.assert_array_equal(result.columns[name], values)


@given(
    st.lists(
        st.none()
        | st.booleans()
        | st.integers()
        | st.floats()
        | st.text(max_size=5)
        | st.decimals().filter(lambda number: not number.is_snan())
        | st.dates()
        | st.datetimes()
        | st.binary(max_size=3)
        | st.complex_numbers(),
        min_size=1,
        max_size=8,
    )
)
@settings(max_examples=12, deadline=None)
def test_whatever_the_cells_the_arrays_are_within_the_schema(cells):
    columns = [
        Integer(name="i", lower=-3, upper=7),
        Continuous(name="x", lower=-0.5, upper=2.5, decimals=1, missing=True),
        Datetime(name="t", lower="2000-01-01", upper="2020-12-31"),
        Categorical(name="c", values=["a", 1, 2.5], other="rest"),
        Categorical(name="d", values=[True, "b"], missing=True),
        Boolean(name="b"),
    ]
    for column in columns:
        schema = Schema(columns=[column])
        frame = pd.DataFrame({column.name: pd.Series(cells, dtype=object)})
        result = conform(frame, schema)
        values = result.columns[column.name]
        assert len(values) == result.rows == len(cells) - result.left_out
        if isinstance(column, Categorical | Boolean):
            assert values.dtype == np.int64
            assert (values >= (-1 if column.missing else 0)).all()
            assert (values < len(column.categories)).all()
        else:
            assert values.dtype == np.float64
            known = values[~np.isnan(values)] if column.missing else values
            assert ((column.low <= known) & (known <= column.high)).all()
        restored = restore(result.columns, schema, np.random.default_rng(0))
        assert not len(restored) or sum(conform(restored, schema).outside.values()) == 0


def test_integers_are_read_from_every_spelling():
    column = Integer(name="i", lower=-10, upper=10_000, missing=True)
    cells = [1, 2.0, "3", " 4 ", "1e3", "5.0", Decimal("6"), np.int8(7), True, None, NAN, pd.NA, ""]
    values, outside = conform_one(cells, column)
    np.testing.assert_equal(values, [1, 2, 3, 4, 1000, 5, 6, 7, 1, NAN, NAN, NAN, NAN])
    assert outside == 0


@pytest.mark.parametrize(
    "series",
    [
        pd.Series(["3", "9", None], dtype="category"),
        pd.Series(["3", "9", None], dtype="string"),
        pd.Series(["3", "9", None], dtype="string[pyarrow]"),
        pd.Series([3, 9, None], dtype="Int64"),
        pd.Series([3, 9, None], dtype="float32"),
        pd.Series([3, 9, None], dtype="int64[pyarrow]"),
        pd.Series([3, 9, None], dtype="Float64"),
        pd.Series([3, 9, None], dtype="object"),
    ],
)
def test_every_dtype_of_pandas_reads_alike(series):
    number = Integer(name="i", lower=0, upper=5, missing=True)
    np.testing.assert_equal(conform_one(series, number), ([3, 5, NAN], 1))
    code = Categorical(name="i", values=[9, 3], missing=True)
    np.testing.assert_equal(conform_one(series, code), ([1, 0, -1], 0))
    text = Categorical(name="i", values=["9", "3"], missing=True)
    np.testing.assert_equal(conform_one(series, text), ([1, 0, -1], 0))


def test_numbers_outside_are_clamped_and_counted():
    column = Continuous(name="x", lower=0, upper=1, decimals=2)
    values, outside = conform_one([-1, 0, 0.505, 1, 2, np.inf, "-inf", "much", None], column)
    assert values == [0, 0, 0.5, 1, 1, 1, 0]
    # The word and the gap fit nowhere. Counted they, -1, 2, inf and -inf; rounding is no fault.
    assert outside == 6


def test_numbers_between_two_steps_go_to_the_nearer_and_are_counted():
    schema = Schema(
        columns=[
            Integer(name="price", lower=100, upper=2_100, step=500, missing=True),
            Continuous(name="rate", lower=-0.5, upper=1, decimals=2, step=0.25),
            Datetime(
                name="visit",
                lower="2020-01-01 08:00",
                upper="2020-01-01 18:00",
                resolution="minute",
                step=15,
            ),
        ]
    )
    frame = pd.DataFrame(
        {
            "price": [600, 849, 851, 9_999, None, 2_100],
            "rate": [-0.5, 0.1 + 0.15, 0.13, 0.12, 1.0, 0.0],
            "visit": [
                f"2020-01-01 {at}" for at in ("08:00", "08:07", "08:08", "09:15", "18:00", "12:30")
            ],
        }
    )
    conformed = conform(frame, schema)
    assert conformed.columns["price"].tolist()[:4] == [600, 600, 1_100, 2_100]
    assert conformed.columns["rate"].tolist() == [-0.5, 0.25, 0.25, 0, 1, 0]
    assert conformed.columns["visit"].tolist() == [0, 0, 15, 75, 600, 270]
    assert conformed.outside == {"price": 3, "rate": 2, "visit": 2}
    rules = [(one.column, one.rule) for one in check(frame, schema)]
    assert rules.count(("price", "step")) == 2 and rules.count(("price", "above")) == 1
    assert restore(conformed.columns, schema, np.random.default_rng(0))["rate"].tolist() == [
        *(-0.5, 0.25, 0.25, 0.0, 1.0, 0.0)
    ]


def test_fractions_in_an_integer_column_are_rounded_and_counted():
    assert conform_one([1.4, 1.6, 2], Integer(name="i", lower=0, upper=9)) == ([1, 2, 2], 2)


def test_unreadable_numbers_are_missing_where_that_is_allowed():
    column = Integer(name="i", lower=3, upper=9, missing=True)
    np.testing.assert_equal(conform_one(["four", 4], column), ([NAN, 4], 1))


def test_undeclared_categories_go_to_other_else_missing_else_their_rows_are_out():
    cells = ["a", "z", None]
    plain = Categorical(name="c", values=["a", "b"])
    assert conform_one(cells, plain) == ([0], 2)
    assert conform_one(cells, Categorical(name="c", values=["a", "b"], missing=True)) == (
        [0, -1, -1],
        1,
    )
    other = Categorical(name="c", values=["a", "b"], other="rest")
    assert conform_one(cells, other) == ([0, 2, 2], 2)
    both = Categorical(name="c", values=["a", "b"], other="b", missing=True)
    assert conform_one(cells, both) == ([0, 1, -1], 1)


@given(st.lists(st.tuples(*[st.sampled_from(["a", "b", "z", None, 3])] * 3), min_size=1))
def test_a_row_stays_by_its_own_cells_alone_and_whole(rows):
    columns = [
        Categorical(name="plain", values=["a", "b"]),
        Categorical(name="gaps", values=["a", "b"], missing=True),
        Integer(name="number", lower=0, upper=2),
    ]
    schema = Schema(columns=columns)
    frame = pd.DataFrame(rows, columns=[column.name for column in columns], dtype=object)
    found = conform(frame, schema)
    kept = [row for row in rows if row[0] in ("a", "b") and row[2] == 3]
    assert (found.rows, found.left_out) == (len(kept), len(rows) - len(kept))
    assert found.columns["plain"].tolist() == ["ab".index(row[0]) for row in kept]
    assert found.columns["gaps"].tolist() == [
        -1 if row[1] not in ("a", "b") else "ab".index(row[1]) for row in kept
    ]
    assert found.columns["number"].tolist() == [2] * len(kept)
    # In all rows, those left out too; the clamped numbers are among them.
    assert found.outside == {
        "plain": sum(row[0] not in ("a", "b") for row in rows),
        "gaps": sum(row[1] in ("z", 3) for row in rows),
        "number": len(rows),
    }
    assert found.shares_outside["number"] == 1


def test_rows_that_are_all_to_be_answered_are_refused_instead_of_left_out():
    schema = Schema(columns=[Categorical(name="c", values=["a", "b"])])
    assert conform_all(pd.DataFrame({"c": ["b", "a"]}), schema, "t").rows == 2
    with pytest.raises(DataError, match=r"1 of 2 rows.*'c'"):
        conform_all(pd.DataFrame({"c": ["z", "a"]}), schema, "t")


def test_integer_categories_read_alike_as_numbers_and_text():
    column = Categorical(name="c", values=[0, 1])
    assert conform_one(["0", 0, 0.0, "0.0", "1", 1, np.float32(1), " 1"], column)[0] == [
        0,
        0,
        0,
        0,
        1,
        1,
        1,
        1,
    ]
    assert conform_one(pd.Series([0.0, 1.0, NAN]), column) == ([0, 1], 1)


def test_codes_with_leading_zeros_are_told_apart_as_text():
    column = Categorical(name="c", values=["007", "7"], missing=True)
    assert conform_one(["007", "7", "0007"], column) == ([0, 1, -1], 1)
    assert conform_one(["7"], Categorical(name="c", values=["008", "007"])) == ([], 1)
    assert conform_one([7], Categorical(name="c", values=["008", "007", "07"])) == ([], 1)
    # A frame that lost the zeros to a number: clear where only one code can be meant.
    assert conform_one([7], Categorical(name="c", values=["007", "008"])) == ([0], 0)


def test_booleans_are_read_from_words_and_digits():
    cells = ["TRUE", "no", "Y", "f", 1, 0.0, "1", True, np.bool_(False), "perhaps", None]
    column = Boolean(name="b", missing=True)
    assert conform_one(cells, column) == ([1, 0, 1, 0, 1, 0, 1, 1, 0, -1, -1], 1)
    assert conform_one(["true", "TRUE", "False"], Categorical(name="b", values=[True, False])) == (
        [0, 0, 1],
        0,
    )


def test_dates_are_read_from_every_spelling_that_has_one_meaning():
    column = Datetime(name="t", lower="2020-01-01", upper="2020-12-31", missing=True)
    cells = [
        "2020-01-02",
        "20200103",
        20200104,
        date(2020, 1, 5),
        datetime(2020, 1, 6, 23, 59),
        pd.Timestamp("2020-01-07T23:00-02:00"),
        "2020-01-08 10:30:00",
        "2020-01-09T00:30+01:00",
        "9999-12-31",
        "1066-10-14",
        None,
        pd.NaT,
        "",
    ]
    values, outside = conform_one(cells, column)
    np.testing.assert_equal(values, [1, 2, 3, 4, 5, 7, 7, 7, 365, 0, NAN, NAN, NAN])
    assert outside == 2


def test_a_date_with_two_meanings_needs_a_format():
    bounds = {"name": "t", "lower": "2020-01-01", "upper": "2020-12-31", "missing": True}
    np.testing.assert_equal(conform_one(["03/04/2020"], Datetime(**bounds)), ([NAN], 1))
    assert conform_one(["03/04/2020"], Datetime(**bounds, format="%d/%m/%Y")) == ([93], 0)
    assert conform_one(["03/04/2020"], Datetime(**bounds, format="%m/%d/%Y")) == ([63], 0)
    np.testing.assert_equal(conform_one(["soon"], Datetime(**bounds)), ([NAN], 1))


@pytest.mark.parametrize("unit", ["s", "ms", "us", "ns"])
def test_datetime_columns_of_any_unit_count_units_since_the_lower_bound(unit):
    column = Datetime(name="t", lower="2020-01-01", upper="2020-01-02", resolution="minute")
    series = pd.Series(pd.to_datetime(["2020-01-01 01:00:59", "2020-01-01 00:00:00"])).astype(
        f"datetime64[{unit}]"
    )
    assert conform_one(series, column) == ([60, 0], 0)
    # An hour earlier in UTC: the first is on the bound, the second before it.
    assert conform_one(series.dt.tz_localize("Europe/Berlin"), column) == ([0, 0], 1)


def test_missing_values_are_missing_unless_a_column_declares_them():
    markers = ("?", "NA", "-1")
    country = Categorical(name="c", values=["NA", "DE"], missing=True)
    assert conform_one(["NA", "?", "DE", "", " ? "], country, markers) == ([0, -1, 1, -1, -1], 0)
    days = Integer(name="i", lower=0, upper=9, missing=True)
    np.testing.assert_equal(
        conform_one(["-1", -1, -1.0, "NA", 3], days, markers), ([NAN] * 4 + [3], 0)
    )
    wide = Integer(name="i", lower=-5, upper=9, missing=True)
    np.testing.assert_equal(conform_one(["-1", -1, "?"], wide, markers), ([-1, -1, NAN], 0))


def test_all_missing_and_constant_columns_conform():
    column = Integer(name="i", lower=2, upper=2, missing=True)
    np.testing.assert_equal(conform_one([None, None], column), ([NAN, NAN], 0))
    np.testing.assert_equal(conform_one(pd.Series([NAN, NAN]), column), ([NAN, NAN], 0))
    assert conform_one([2, 2], column) == ([2, 2], 0)


def test_a_numeric_only_table_conforms():
    schema = Schema(columns=[Integer(name="a", lower=0, upper=1)])
    assert conform(pd.DataFrame({"a": [0, 1]}), schema).columns["a"].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("frame", "words"),
    [
        (pd.DataFrame({"a": []}), ["site-3", "no rows"]),
        (pd.DataFrame({"b": [1]}), ["site-3", "lacks", "'a'", "'b'"]),
        (pd.DataFrame({"a": [1], "b": [1]}), ["site-3", "'b'", "Drop"]),
        (pd.DataFrame([[1, 1]], columns=["a", "a"]), ["site-3", "'a'", "rename"]),
        (pd.DataFrame([[1, 1]], columns=["a", 7]), ["site-3", "7", "rename"]),
        (np.zeros((2, 1)), ["site-3", "ndarray", "DataFrame"]),
    ],
)
def test_a_table_of_another_shape_is_refused_by_name(frame, words):
    schema = Schema(columns=[Integer(name="a", lower=0, upper=1), Identifier(name="id")])
    with pytest.raises(DataError) as error:
        conform(frame, schema, where="site-3")
    for word in words:
        assert word in str(error.value)


def test_lists_in_a_categorical_column_are_refused():
    schema = Schema(columns=[Categorical(name="c", values=["a"])])
    with pytest.raises(DataError, match=r"'c'.*lists"):
        conform(pd.DataFrame({"c": [["a"], ["b"]]}), schema)


def test_identifiers_are_dropped_and_made_anew_unique():
    schema = Schema(
        columns=[Identifier(name="n"), Boolean(name="b"), Identifier(name="p", prefix="P")]
    )
    table = pd.DataFrame({"n": [7] * 12, "b": [True] * 12, "p": "secret"})
    result = conform(table, schema)
    assert list(result.columns) == ["b"]
    frame = restore(result.columns, schema, np.random.default_rng(0))
    assert sorted(frame["n"]) == list(range(1, 13))
    assert sorted(frame["p"])[:2] == ["P01", "P02"]
    assert frame["p"].is_unique
    assert restore(result.columns, schema, np.random.default_rng(0)).equals(frame)


def test_declared_dtypes_are_given_back_with_their_own_missing_value():
    columns = [
        Integer(name="i", lower=0, upper=9, missing=True, dtype="float32"),
        Integer(name="u", lower=0, upper=9, dtype="uint8"),
        Continuous(name="x", lower=0, upper=1, decimals=1, missing=True, dtype="Float64"),
        Categorical(name="c", values=["a", "b"], missing=True, dtype="category"),
        Categorical(name="s", values=["a", "b"], missing=True, dtype="string"),
        Categorical(name="n", values=[0, 1], missing=True, dtype="float64"),
        Boolean(name="b", missing=True, dtype="object"),
        Boolean(name="d", dtype="int64"),
        Datetime(name="t", lower="2020-01-01", upper="2021-01-01", dtype="datetime64[s]"),
        Datetime(name="o", lower="2020-01-01", upper="2021-01-01", dtype="object", missing=True),
    ]
    schema = Schema(columns=columns)
    codes = np.array([1, -1])
    numbers = np.array([1.0, NAN])
    frame = restore(
        {"i": numbers, "u": np.ones(2), "x": numbers}
        | dict.fromkeys("csnb", codes)
        | {"d": np.array([1, 0]), "t": np.array([1.0, 2.0]), "o": numbers},
        schema,
        np.random.default_rng(0),
    )
    for column in columns:
        assert frame[column.name].dtype == column.dtype
        assert frame[column.name].isna().tolist() == [False, column.missing]
    assert frame["c"].cat.categories.tolist() == ["a", "b"]
    assert frame.loc[0, "s"] == "b"
    assert frame.loc[0, "b"] is True
    assert frame["d"].tolist() == [1, 0]
    assert frame["t"].tolist() == [pd.Timestamp("2020-01-02"), pd.Timestamp("2020-01-03")]
    assert frame.loc[0, "o"] == "2020-01-02"


def test_categories_keep_their_spelling_and_type():
    column = Categorical(name="c", values=[" a", 1, 2.5, True])
    spelled = spell(np.arange(4), column).tolist()
    assert [(type(value), value) for value in spelled] == [
        (str, " a"),
        (int, 1),
        (float, 2.5),
        (bool, True),
    ]


def test_restored_numbers_are_on_their_grid_and_within_bounds():
    column = Continuous(name="x", lower=0.1, upper=0.7, decimals=1)
    values = spell(np.array([0.1 + 0.2, -5, 5, 0.6499]), column)
    assert values.tolist() == [0.3, 0.1, 0.7, 0.6]
    zero = spell(np.array([-0.001]), Continuous(name="x", lower=-1, upper=1, decimals=1))
    assert not np.signbit(zero[0])


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "lack"),
        ({"a": np.array([0]), "c": np.array([0, 1])}, "length"),
        ({"a": np.array([NAN]), "c": np.array([0])}, "'a'.*missing"),
        ({"a": np.array([0]), "c": np.array([2])}, "'c'.*between 0 and 1"),
        ({"a": np.array([0]), "c": np.array([-1])}, "'c'.*between 0 and 1"),
    ],
)
def test_arrays_that_the_schema_does_not_allow_are_refused(columns, words):
    schema = Schema(
        columns=[Integer(name="a", lower=0, upper=1), Categorical(name="c", values=["x", "y"])]
    )
    with pytest.raises(DataError, match=words):
        restore(columns, schema, np.random.default_rng(0))


@pytest.mark.parametrize("resolution", ["month", "year"])
def test_months_and_years_are_those_of_the_calendar(resolution):
    """Whatever the day, before the lower bound and far beyond every clock, and in a zone."""
    column = Datetime(
        name="t", lower="2019-01-01", upper="2024-01-01", resolution=resolution, missing=True
    )
    days = ["2019-01-01", "2020-02-29", "2023-12-31", "1968-12-31", "2150-07-04", None]
    found = read_units(pd.Series(days), column)
    expected = [0, 13, 59, -601, 1578] if resolution == "month" else [0, 1, 4, -51, 131]
    assert found[:5].tolist() == expected and np.isnan(found[5])
    assert read_units(pd.Series(["9999-03-01"]), column)[0] == (
        12 * 7980 + 2 if resolution == "month" else 7980
    )
    back = moments(found[:3], column).astype(str).tolist()
    first = ["2019-01-01", "2020-02-01", "2023-12-01"]
    assert back == [day if resolution == "month" else f"{day[:4]}-01-01" for day in first]
    # By the clock of the zone it is another month, and another year.
    zoned = column.model_copy(update={"zone": "Asia/Kolkata"})
    late = pd.Series(pd.to_datetime(["2019-12-31 23:00"], utc=True))
    assert read_units(late, zoned)[0] == (12 if resolution == "month" else 1)


@pytest.mark.parametrize("resolution", ["year", "month", "day", "hour", "second"])
def test_the_last_moment_of_all_is_far_in_any_zone(resolution):
    """As which many systems write that there is no end."""
    for zone in (None, "America/New_York", "Asia/Tokyo"):
        column = Datetime(
            name="t", lower="2020-01-01", upper="2021-01-01", resolution=resolution, zone=zone
        )
        units = read_units(pd.Series(["9999-12-31 23:59:59"]), column)
        assert column.high < units[0] < np.inf
