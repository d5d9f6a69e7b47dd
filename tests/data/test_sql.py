"""Rows of a query, with their types; and nothing of an address or a driver's words."""

from __future__ import annotations

import sqlite3
import sys
import traceback

import numpy as np
import pytest

from fedsynth.data.tables import read_sql, read_table
from fedsynth.errors import ConfigError, DataError
from fedsynth.schema import Categorical, Integer, Schema

pytest.importorskip("sqlalchemy")


@pytest.fixture
def clinic(tmp_path):
    """Two patients, in a file; its address."""
    with sqlite3.connect(tmp_path / "clinic.db") as database:
        database.execute("create table patients (id integer, age integer, word text, weight real)")
        database.executemany(
            "insert into patients values (?, ?, ?, ?)",
            [(2**60 + 1, 40, "10 % :x", 70.5), (2, None, "secret", None)],
        )
    return f"sqlite:///{tmp_path / 'clinic.db'}"


def test_a_querys_rows_keep_their_types(clinic):
    frame = read_sql(clinic, "select * from patients where word like '1%' or word <> ':y'")
    assert frame.dtypes.astype(str).tolist() == ["int64", "Int64", "object", "float64"]
    assert frame["id"].tolist() == [2**60 + 1, 2] and frame["word"].tolist()[0] == "10 % :x"
    assert frame["age"].isna().tolist() == [False, True]
    np.testing.assert_array_equal(frame["weight"], [70.5, np.nan])


def test_a_schema_reads_a_query_as_it_reads_a_file(clinic, tmp_path):
    schema = Schema(
        columns=[
            Integer(name="age", lower=0, upper=99, missing=True),
            Categorical(name="word", values=["10 % :x", "secret"]),
        ]
    )
    (tmp_path / "t.csv").write_text("age,word\n40,10 % :x\n,secret\n")
    asked = read_sql(clinic, "select age, word from patients", schema)
    assert asked.equals(read_table(tmp_path / "t.csv", schema))


@pytest.mark.parametrize(
    "query",
    [
        "delete from patients",
        "insert into patients values (1, 1, 'a', 1) returning id",
        # SQLite commits these by itself.
        "drop table patients",
        "-- select\ndrop table patients",
        "create table others (id)",
        "pragma user_version = 3",
        "with some as (select 1) delete from patients",
    ],
)
def test_a_query_changes_nothing(clinic, tmp_path, query):
    before = (tmp_path / "clinic.db").read_bytes()
    with pytest.raises(DataError, match=r"must be a SELECT|cannot answer the query"):
        read_sql(clinic, query)
    assert (tmp_path / "clinic.db").read_bytes() == before


@pytest.mark.parametrize(
    "query",
    [
        "  Select 1 as one",
        "/* all\nof it */ select 1 as one",
        "-- one\nwith some as (select 1 as one) select * from some",
        "values (1)",
    ],
)
def test_whatever_reads_is_asked(clinic, query):
    assert read_sql(clinic, query).iloc[0, 0] == 1


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("select nonsense from patients", "cannot answer the query: .*OperationalError"),
        ("select age, age from patients", "two columns 'age': name one by AS"),
        ("select x'00' as bytes from patients", "column 'bytes' holds no single values"),
        ("select age from patients where age > 99", "gives no rows"),
        ("", "the query must be a SELECT: nothing was asked"),
    ],
)
def test_a_query_that_gives_no_table_is_an_error_without_the_drivers_words(clinic, query, message):
    with pytest.raises(DataError, match=message) as error:
        read_sql(clinic, query)
    assert "no such column" not in "".join(traceback.format_exception(error.value))


def test_a_database_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(DataError, match=r"none\.db: no such file"):
        read_sql(f"sqlite:///{tmp_path / 'none.db'}", "select 1")
    assert not (tmp_path / "none.db").exists()


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+none://reader:geheim@host/db",
        "none://reader:geheim@host/db?password=geheim",
        "postgresql://reader:geheim@host:port/db",
        "postgresql://reader:ge@geh/eim@host/geheim",
        "geheim",
        "mysql+pymysql://reader:geheim@localhost:1/db",
    ],
)
def test_no_message_tells_an_address(url):
    with pytest.raises((DataError, ConfigError)) as error:
        read_sql(url, "select 1")
    for part in ("geh", "eim", "reader"):
        # The example of an address has a reader, too.
        assert part not in str(error.value).replace("reader:${PASSWORD}", "")


def test_an_address_is_no_path():
    with pytest.raises(ConfigError, match="read_sql") as error:
        read_table("postgresql://reader:geheim@host/db")
    assert "geheim" not in str(error.value)


def test_without_sqlalchemy_the_extra_is_named(clinic, monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    with pytest.raises(DataError, match=r"pip install 'fedsynth\[sql\]'"):
        read_sql(clinic, "select 1")
