"""Tables of other libraries are taken wherever one of pandas is, with the same cells."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import fedsynth as fs
from fedsynth.errors import DataError
from fedsynth.federation.simulation.simulation import by_name, prepare_rows
from fedsynth.schema.checking import check
from fedsynth.schema.frames import demand_frame, is_foreign
from tests.small_jobs import SCHEMA, table

COLUMNS = {
    "whole": [1, 2, 3],
    # No float64 holds it.
    "gaps": [2**60 + 1, None, 3],
    "word": ["a", None, "c"],
    "flag": [True, None, False],
    "day": [date(2020, 1, 2), None, date(9999, 12, 31)],
}


def arrow():
    return pa.table(COLUMNS)


def polars():
    return pytest.importorskip("polars").DataFrame(COLUMNS)


def lazy():
    return polars().lazy()


def duckdb():
    return pytest.importorskip("duckdb").from_arrow(arrow())


LIBRARIES = [arrow, polars, lazy, duckdb]


@pytest.mark.parametrize("make", LIBRARIES)
def test_no_cell_of_another_librarys_table_changes(make):
    frame = demand_frame(make(), "table")
    assert list(frame) == list(COLUMNS) and frame["whole"].dtype == np.int64
    for name, cells in COLUMNS.items():
        found = [None if pd.isna(cell) else cell for cell in frame[name]]
        assert found == cells, name


def test_a_frame_that_went_through_arrow_keeps_its_types():
    frame = table(20).astype({"colour": "category", "age": "Int64"}).set_index(pd.RangeIndex(5, 25))
    pd.testing.assert_frame_equal(demand_frame(pa.Table.from_pandas(frame), "table"), frame)


def test_a_pandas_frame_is_given_back_itself():
    frame = table(3)
    assert demand_frame(frame, "table") is frame and not is_foreign(frame)
    assert not is_foreign(frame["age"])


def people(make: str):
    """The same rows by each library."""
    frame = table(60)
    if make == "polars":
        return pytest.importorskip("polars").from_pandas(frame)
    if make == "lazy":
        return pytest.importorskip("polars").from_pandas(frame).lazy()
    if make == "duckdb":
        return pytest.importorskip("duckdb").from_df(frame)
    return pa.Table.from_pandas(frame, preserve_index=False)


@pytest.mark.parametrize("make", ["arrow", "polars", "lazy", "duckdb"])
def test_every_door_takes_a_table_of_any_library(make, tmp_path):
    frame, schema = table(60), fs.Schema.from_dict(SCHEMA)
    assert fs.draft(people(make), "income").schema == fs.draft(frame, "income").schema
    assert check(people(make), schema) == check(frame, schema) == []
    parts = fs.partition(people(make), 3, "uniform", schema=schema)
    assert sorted(pd.concat(parts.values())["age"]) == sorted(frame["age"])
    fs.write_table(people(make), tmp_path / "a.csv", schema)
    fs.write_table(frame, tmp_path / "b.csv", schema)
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    from fedsynth.evaluation.measures.marginals import marginal_error

    assert marginal_error(people(make), frame, schema, 1).worst == 0


def test_owners_may_use_different_libraries():
    schema, frame = fs.Schema.from_dict(SCHEMA), table(60)
    makes = ("arrow", "polars", "lazy", "duckdb")
    owners = by_name([people(make) for make in makes])
    assert list(owners) == [f"client-{k}" for k in range(4)]
    expected = prepare_rows(frame, schema, "north")
    for one in [*owners.values(), by_name(people("lazy"))["client-0"]]:
        found = prepare_rows(one, schema, "north")
        assert found.rows == 60 and found.outside == expected.outside
        for name, values in expected.columns.items():
            np.testing.assert_array_equal(found.columns[name], values)


def test_gaps_of_any_librarys_table_are_filled():
    synth = fs.MST(fs.Schema.from_dict(SCHEMA)).fit(people("arrow"), 5.0)
    gaps = table(20).assign(colour=None)
    other = pytest.importorskip("polars").from_pandas(gaps)
    pd.testing.assert_frame_equal(synth.impute(other, seed=2), synth.impute(gaps, seed=2))


@pytest.mark.parametrize(
    ("given", "advice"),
    [
        (np.zeros((3, 2)), "pd.DataFrame(array, columns=[..])"),
        ("north.csv", "fs.read_table(path)"),
        (Path("north.csv"), "fs.read_table(path)"),
        (pd.Series([1, 2]), "series.to_frame()"),
        ({1, 2}, "pd.DataFrame(..)"),
        (None, "pd.DataFrame(..)"),
    ],
)
def test_what_is_no_table_is_told_how_it_becomes_one(given, advice):
    schema = fs.Schema.from_dict(SCHEMA)
    for call in (
        lambda: demand_frame(given, "table"),
        lambda: fs.draft(given),
        lambda: fs.MST(schema).fit(given, 1.0),
        lambda: fs.MST(schema).fit({"north": given}, 1.0),
        lambda: fs.evaluate(given, table(9), schema),
        lambda: fs.partition(given, 2, "uniform"),
    ):
        with pytest.raises(DataError) as caught:
            call()
        assert advice in str(caught.value)


def test_a_table_that_does_not_become_a_frame_says_nothing_of_its_cells():
    class Broken:
        def __arrow_c_stream__(self, requested=None):
            raise ValueError("the secret cell 4711")

    with pytest.raises(DataError, match=r"Broken cannot be turned .*ValueError") as caught:
        demand_frame(Broken(), "north")
    assert "4711" not in str(caught.value) and caught.value.__suppress_context__


def test_names_are_looked_at_whatever_the_library():
    with pytest.raises(DataError, match="several columns are called 'a'"):
        demand_frame(pa.table([[1], [2]], names=["a", "a"]), "north")
