"""Answers that are known, features as they are, vectors without constants."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.reading.labelled import label_features, label_rows, task_of, why_no_task
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.schema import Categorical, Identifier, ImageSchema, Integer, Schema
from tests.evaluation.learning_tables import BINARY, COLUMNS, DATE, NUMBER, frame, rows, taught


def test_rows_without_an_answer_are_left_out_and_counted():
    table = frame(6).assign(y=["yes", None, "perhaps", "no", "", "yes"])
    found = label_rows(read_rows(table, BINARY, "rows"))
    assert found.y.tolist() == [1, 0, 1]
    assert found.left_out == 3
    assert found.rows.values[:, 0].tolist() == pytest.approx(
        table["x"].to_numpy()[[0, 3, 5]].tolist(), nan_ok=True
    )
    assert label_features(table, BINARY).y.tolist() == [1, 0, 1]


def test_numbers_out_of_bounds_are_no_answers_and_fractions_are():
    schema = Schema(columns=(*COLUMNS, Integer(name="y", lower=0, upper=10)), target="y")
    table = frame(6).assign(y=[0, 10, 2.5, 11, -1, np.nan])
    found = label_rows(read_rows(table, schema, "rows"))
    assert found.y.tolist() == [0, 10, 2.5]
    assert (found.left_out, found.classes) == (3, 0)


def test_dates_are_answers_in_units_since_the_lower_bound():
    table = frame(3).assign(y=["2020-01-01", "2020-01-31", "2031-01-01"])
    assert label_rows(read_rows(table, DATE, "rows")).y.tolist() == [0, 30]


def test_a_value_not_listed_is_the_columns_other_where_there_is_one():
    target = Categorical(name="y", values=("no", "yes"), other="else")
    schema = Schema(
        columns=(Categorical(name="c", values=("u", "v"), other="w"), target), target="y"
    )
    table = pd.DataFrame({"c": ["u", "?", "w"], "y": ["what", "no", "else"]})
    found = label_rows(read_rows(table, schema, "rows"))
    assert (found.y.tolist(), found.left_out) == ([2, 0, 2], 0)
    assert found.x[:, 0].tolist() == [0, 2, 2]


def test_features_are_all_columns_but_the_target_as_they_are():
    table = pd.DataFrame(
        {"x": [9.5, None], "size": [12, 3], "colour": ["pink", None], "flag": [True, False]}
    )
    found = label_rows(read_rows(table.assign(y="no"), BINARY, "rows"))
    np.testing.assert_array_equal(found.x, [[9.5, 12, 3, 1], [np.nan, 3, np.nan, 0]])


def test_no_answer_at_all_is_an_error_that_names_table_and_column():
    for answer in (None, "perhaps"):
        with pytest.raises(DataError, match="synthetic: no row has a value of the target 'y'"):
            label_rows(rows(5, y=answer), "synthetic")
        with pytest.raises(DataError, match="synthetic: no row"):
            label_features(frame(5).assign(y=answer), BINARY, "synthetic")
    with pytest.raises(DataError, match="synthetic: no row"):
        label_rows(rows(5, NUMBER, y=99.0), "synthetic")


def test_what_there_is_to_learn():
    assert task_of(BINARY) == "classification"
    assert task_of(NUMBER) == task_of(DATE) == "regression"
    assert why_no_task(BINARY) is None
    nothing = {
        "names no target": Schema(columns=COLUMNS),
        "one category": Schema(columns=(*COLUMNS, Categorical(name="y", values=(1,))), target="y"),
        "besides the target": Schema(columns=(Identifier(name="i"), COLUMNS[3]), target="flag"),
    }
    for words, schema in nothing.items():
        assert task_of(schema) is None
        assert words in why_no_task(schema)
    assert task_of(ImageSchema(shape=(8, 8))) is None
    digits = ImageSchema(shape=(8, 8), target=Categorical(name="d", values=(0, 1)))
    assert task_of(digits) == "classification"
    for words in ("names no target", "besides the target"):
        with pytest.raises(ConfigError, match=r"nothing to predict|besides"):
            label_rows(read_rows(frame(3)[[c.name for c in nothing[words].modelled]],
                               nothing[words], "rows"))  # fmt: skip


def test_vectors_are_finite_and_without_what_does_not_vary_in_the_learned_rows():
    train = taught(50, size=3, flag=True)
    test = taught(20, seed=1, colour="pink", size=99)
    x = train.vectors(train)
    assert len(train.vectors(test)) == 20
    assert train.vectors(test).shape[1] == x.shape[1]
    assert np.isfinite(train.vectors(test)).all()
    # x and its gap, three colours and their gap; neither the size nor the flag, nor other colours.
    assert x.shape[1] == 6
    assert (np.ptp(x, axis=0) > 0).all()
    np.testing.assert_array_equal(x, train.vectors(train))


def test_taking_and_joining_keep_rows_features_and_answers_together():
    table = taught(30)
    back = table.take(np.arange(10)).and_also(table.take(np.arange(10, 30)))
    np.testing.assert_array_equal(back.x, table.x)
    np.testing.assert_array_equal(back.y, table.y)
    np.testing.assert_array_equal(back.rows.values, table.rows.values)
    np.testing.assert_array_equal(back.rows.outside, table.rows.outside)
