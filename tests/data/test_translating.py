"""A table in an owner's own words reads as the same table in the schema's."""

from __future__ import annotations

import sqlite3

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.tables import read_sql, read_table
from fedsynth.errors import ConfigError, DataError
from fedsynth.schema import Schema
from fedsynth.schema.checking import check

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"kind": "identifier", "name": "key"},
            {"kind": "categorical", "name": "sex", "values": ["F", "M"], "missing": True},
            {"kind": "datetime", "name": "born", "lower": "1900-01-01", "upper": "2020-12-31"},
            {
                "kind": "continuous",
                "name": "cost",
                "lower": 0,
                "upper": 9999,
                "decimals": 2,
                "missing": True,
            },
            {"kind": "boolean", "name": "died"},
        ]
    }
)
WORDS = {
    "drop": ["ward", "key"],
    "rename": {"KEY": "key", "Sex": "sex", "Geburt": "born", "Kosten": "cost", "tot": "died"},
    "formats": {"born": "%d.%m.%Y", "cost": "1.234,50 €"},
    "recode": {"sex": {"female": "F", "male": "M", "unknown": None}, "died": {"ja": True, 0: "no"}},
}
PLAIN = pd.DataFrame(
    {
        "key": ["a", "b", "c", "d"],
        "sex": ["F", "M", "F", ""],
        "born": ["1950-12-01", "2001-02-03", "1999-11-30", "1980-01-02"],
        "cost": ["1234.50", "", "0.99", "12.00"],
        "died": ["True", "False", "False", "True"],
    }
)
# The table has a column of its own that is called as one of the schema's.
THEIRS = pd.DataFrame(
    {
        "Kosten": ["1.234,50 €", "", "0,99 €", "12,00 €"],
        "tot": ["ja", "0", "0", "ja"],
        "key": [1, 2, 3, 4],
        "KEY": ["a", "b", "c", "d"],
        "ward": ["x", "x", "y", "y"],
        "Sex": ["female", "male", "female", "unknown"],
        "Geburt": ["01.12.1950", "03.02.2001", "30.11.1999", "02.01.1980"],
    }
)


def written(frame, kind, folder):
    path = folder / f"table.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False, sep=";")
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    else:
        frame.to_parquet(path, index=False)
    return path


@pytest.fixture
def expected(tmp_path):
    PLAIN.to_csv(tmp_path / "plain.csv", index=False)
    return read_table(tmp_path / "plain.csv", SCHEMA)


@pytest.mark.parametrize("kind", ["csv", "xlsx", "parquet"])
def test_a_file_in_other_words_reads_as_in_the_schemas(expected, kind, tmp_path):
    path = written(THEIRS, kind, tmp_path)
    found = read_table(path, SCHEMA, caution=lambda told: None, **WORDS)
    assert check(found, SCHEMA) == []
    pd.testing.assert_frame_equal(found[expected.columns], expected)
    assert list(found.columns) == ["cost", "died", "key", "sex", "born"]


def test_so_does_a_query(expected, tmp_path):
    with sqlite3.connect(tmp_path / "clinic.db") as database:
        # SQLite's names of columns do not differ by case alone.
        THEIRS.drop(columns="key").to_sql("stays", database, index=False)
    words = {**WORDS, "drop": ["ward"]}
    found = read_sql(f"sqlite:///{tmp_path}/clinic.db", "SELECT * FROM stays", SCHEMA, **words)
    pd.testing.assert_frame_equal(found[expected.columns], expected)


def test_dates_and_numbers_that_have_types_need_no_format(expected, tmp_path):
    typed = THEIRS.assign(
        Geburt=pd.to_datetime(THEIRS["Geburt"], format="%d.%m.%Y"), Kosten=[1234.5, None, 0.99, 12]
    )
    found = read_table(written(typed, "xlsx", tmp_path), SCHEMA, **WORDS)
    pd.testing.assert_frame_equal(found[expected.columns], expected)


def test_what_the_notation_does_not_read_is_read_as_the_schema_has_it_or_told(tmp_path):
    odd = PLAIN.assign(born=["01.12.1950", "2001-02-03", "30.11.99", "02/01/1980"])
    path = written(odd, "csv", tmp_path)
    words = {"formats": {"born": "%d.%m.%Y"}}
    found = read_table(path, SCHEMA, caution=lambda told: None, **words)
    broken = check(found, SCHEMA)
    assert {(one.column, one.rule, one.value) for one in broken} == {
        ("born", "unreadable", "30.11.99"),
        ("born", "unreadable", "02/01/1980"),
    }
    assert list(found["born"][:2]) == ["1950-12-01", "2001-02-03"]


def test_values_that_are_not_named_stay_and_swapped_ones_swap(tmp_path):
    path = written(PLAIN, "csv", tmp_path)
    words = {"recode": {"sex": {"F": "M", "M": "F"}}}
    found = read_table(path, SCHEMA, caution=lambda told: None, **words)
    assert list(found["sex"].fillna("")) == ["M", "F", "M", ""]
    words = {"recode": {"cost": {"12.00": 13, 0.99: None}}}
    found = read_table(path, SCHEMA, caution=lambda told: None, **words)
    np.testing.assert_array_equal(found["cost"], [1234.5, np.nan, np.nan, 13.0])


@pytest.mark.parametrize(
    ("words", "kind", "message"),
    [
        ({"drop": ["wardd"]}, DataError, "no column 'wardd' to `drop`; did you mean 'ward'"),
        ({"drop": "ward"}, ConfigError, "`drop` must be a list of the table's columns"),
        ({"rename": {"sexx": "sex"}}, DataError, "no column 'sexx' to `rename`; did you mean"),
        ({"rename": {"Sex": "tot"}}, DataError, "makes two columns of the name 'tot'"),
        ({"rename": {"Sex": "a", "tot": "a"}}, DataError, "two columns of the name 'a'"),
        ({"rename": {"Sex": "sex"}, "drop": ["Sex"]}, DataError, "'Sex' stands in `drop` and in"),
        ({"rename": ["Sex"]}, ConfigError, r"`rename` must be a mapping such as {AGE: age}"),
        ({"formats": {"bornn": "%Y"}}, ConfigError, "names, and none is 'bornn'; did you mean"),
        ({"formats": {"sex": "%Y"}}, ConfigError, "dates and numbers, and 'sex' is categorical"),
        ({"formats": {"born": "%Q"}}, ConfigError, "'%Q' is none of strptime's"),
        ({"formats": {"born": "%d %b"}}, ConfigError, "'%d %b' names no year"),
        ({"formats": {"cost": "h:mm"}}, ConfigError, "'h:mm' is of durations of 60 s"),
        ({"recode": {"sex": {"female": "G"}}}, ConfigError, "'sex' has no value 'G'; known are"),
        ({"recode": {"sexx": {"a": "F"}}}, ConfigError, "names, and none is 'sexx'; did you mean"),
        ({"recode": {"sex": "F"}}, ConfigError, "a mapping for each column"),
    ],
)
def test_what_cannot_be_translated_is_refused_in_words(words, kind, message, tmp_path):
    path = written(THEIRS, "parquet", tmp_path)
    with pytest.raises(kind, match=message):
        read_table(path, SCHEMA, **words)


@pytest.mark.parametrize("words", [{"formats": {"born": "%Y"}}, {"recode": {"sex": {"a": "F"}}}])
def test_cells_are_translated_to_a_schema_alone(words, tmp_path):
    path = written(THEIRS, "parquet", tmp_path)
    with pytest.raises(ConfigError, match="need the schema"):
        read_table(path, **words)
    assert "sex" in read_table(path, rename={"Sex": "sex"})
