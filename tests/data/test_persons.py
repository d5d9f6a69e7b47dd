"""Whose each row is: the same key is the same person, however a table's dtypes spell it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.conforming import conform, conform_all, restore
from fedsynth.errors import DataError
from fedsynth.methods.sampling.gaps import Known
from fedsynth.schema import Identifier, Integer, Schema

SCHEMA = Schema(
    columns=[Identifier(name="key"), Integer(name="age", lower=0, upper=99)],
    person="key",
    missing_values=["NA"],
)
KEYS = ["7", "12", "7", "1", "12", "7"]


def table(keys, ages=None):
    return pd.DataFrame({"key": keys, "age": range(len(keys)) if ages is None else ages})


@pytest.mark.parametrize(
    "keys",
    [
        pd.Series(KEYS),
        pd.Series(KEYS).astype(int),
        pd.Series(KEYS).astype(float),
        pd.Series(KEYS, dtype="category"),
        pd.Series(KEYS, dtype="string[pyarrow]"),
        pd.Series(KEYS).astype("Int64"),
        pd.Series(KEYS).astype("int32[pyarrow]"),
        pd.Series(["7", 12, 7.0, " 1", "12 ", 7], dtype=object),
    ],
)
def test_equal_keys_are_one_person_in_the_order_of_first_appearance(keys):
    persons = conform(table(keys), SCHEMA).persons
    assert persons.dtype == np.int64
    assert persons.tolist() == [0, 1, 0, 2, 1, 0]


def test_a_key_with_a_zero_before_it_is_another():
    assert conform(table(["07", "7"]), SCHEMA).persons.tolist() == [0, 1]


def test_persons_are_those_of_the_rows_that_stay_and_keep_their_numbers_when_rows_are_taken():
    conformed = conform(table(KEYS, [None, 1, None, 3, 4, 5]), SCHEMA)
    assert conformed.rows == 4
    # Of 12, 1, 12, 7.
    assert conformed.persons.tolist() == [0, 1, 0, 2]
    assert conformed.take(np.array([3, 0, 2])).persons.tolist() == [2, 0, 0]


def test_without_a_named_person_nobody_is_told_apart():
    bare = Schema(columns=SCHEMA.columns)
    assert conform(table(KEYS), bare).persons is None
    assert conform(table([None] * 3), bare).rows == 3
    # Rows to predict, or drawn ones, need no person.
    assert conform(table(KEYS).drop(columns="key"), SCHEMA).persons is None
    conformed = conform(table(KEYS), SCHEMA)
    assert list(conformed.columns) == ["age"]
    made = restore(conformed.columns, SCHEMA, np.random.default_rng(0))
    assert sorted(made["key"]) == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("gap", [None, np.nan, "", " ", "NA", "nan", pd.NA])
def test_a_row_of_nobody_is_refused_and_no_key_is_quoted(gap):
    with pytest.raises(DataError, match="north: there are rows without a person") as error:
        conform(table(["4711", gap, "4711"]), SCHEMA, "north")
    assert "4711" not in str(error.value)


def test_rows_to_answer_may_be_anybodys():
    assert conform_all(table(["7", None]), SCHEMA, "table to predict").persons is None
    gaps = Known(SCHEMA)
    read = gaps.read(pd.DataFrame({"key": ["7", None], "age": [3, None]}))
    assert read.rows == 2 and read.persons is None


def test_a_gap_in_a_row_that_would_be_left_out_is_refused_as_well():
    with pytest.raises(DataError, match="gaps"):
        conform(table(["1", None], [1, None]), SCHEMA)


def test_compound_keys_are_refused():
    with pytest.raises(DataError, match="'key' holds lists"):
        conform(table([[1], [2]]), SCHEMA)
