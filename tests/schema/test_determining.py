"""A column that another settles: refused where the table does not fit, exact in every row."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.data.conforming import conform, restore
from fedsynth.errors import SchemaError
from fedsynth.schema import Boolean, Categorical, Integer, Schema, load_schema
from fedsynth.schema.checking import Violation, check

SCHOOL = Categorical(name="school", values=("none", "basic", "high", "higher"), missing=True)
YEARS = Integer(name="years", lower=0, upper=20, missing=True)
OTHER = Boolean(name="other")
VALUES = {"none": 0, "basic": 8, "high": 12, "higher": 12}


def settled(values=VALUES, columns=(SCHOOL, YEARS, OTHER), target=None, more=()):
    rule = {"determines": {"source": "school", "column": "years", "values": values}}
    return Schema(columns=columns, target=target, constraints=[rule, *more])


ROWS = pd.DataFrame(
    {
        "school": ["none", "higher", None, "basic"],
        "years": [0, 12, np.nan, 8],
        "other": [True, False, True, False],
    }
)


def test_it_is_not_modelled_and_follows_in_every_row():
    schema = settled()
    assert [column.name for column in schema.modelled] == ["school", "other"]
    arrays = {"school": np.array([0, 3, -1, 1]), "other": np.array([1, 0, 1, 0])}
    rows = restore(arrays, schema, np.random.default_rng(0))
    pd.testing.assert_frame_equal(rows, restore(conform(ROWS, schema).columns, schema, None))
    assert rows["years"].fillna(-1).tolist() == [0, 12, -1, 8]


def test_a_category_settles_a_category_and_a_boolean_one():
    word = Categorical(name="years", values=("few", "many"))
    rule = {"source": "other", "column": "years", "values": {True: "many", False: "few"}}
    schema = Schema(columns=[OTHER, word], constraints=[{"determines": rule}])
    rows = restore({"other": np.array([0, 1])}, schema, np.random.default_rng(0))
    assert rows["years"].tolist() == ["few", "many"]


def test_a_file_keeps_it(tmp_path):
    settled().save(tmp_path / "schema.yaml")
    assert load_schema(tmp_path / "schema.yaml") == settled()


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        ({"values": {**VALUES, "hihg": 1}}, "no value 'hihg'; did you mean 'high'"),
        ({"values": {"none": 0, "basic": 8, "high": 12}}, "'higher' has 0"),
        ({"values": {**VALUES, "high": 21}}, "21 is no value of 'years'"),
        ({"values": {**VALUES, "high": None}}, "None is no value of 'years'"),
        ({"values": {**VALUES, "high": "much"}}, "'much' is no value of 'years'"),
        ({"target": "years"}, "nothing to predict"),
        ({"more": [{"never": {"years": 3}}]}, "'years' is settled by 'school'.*state it of these"),
        (
            {"columns": (SCHOOL, YEARS.model_copy(update={"missing": False}), OTHER)},
            "declare `missing` alike",
        ),
        (
            {"columns": (YEARS.model_copy(update={"name": "school"}), YEARS)},
            "what settles another is a category",
        ),
    ],
)
def test_what_does_not_fit_is_refused(schema, message):
    with pytest.raises(SchemaError, match=message):
        settled(**schema)


def test_a_column_follows_by_one_constraint():
    with pytest.raises(SchemaError, match="'years' follows by two constraints"):
        settled(more=settled().constraints)


def test_real_rows_that_break_it_are_counted():
    rows = ROWS.assign(years=[0, 11, np.nan, np.nan])
    found = [one for one in check(rows, settled()) if one.rule == "determines"]
    assert found == [Violation("school, years", "determines", "school settles years", 2)]


def test_rows_of_a_fit_keep_it_and_meet_conditions_on_it():
    rng = np.random.default_rng(0)
    school = rng.choice(SCHOOL.values, 600)
    table = pd.DataFrame(
        {"school": school, "years": [VALUES[one] for one in school], "other": rng.random(600) < 0.5}
    )
    synth = fs.PrivateFusion(settled()).fit(table, fs.Budget(epsilon=2.0, trust="central"))
    rows = synth.sample(200, seed=0)
    wanted = rows["school"].astype(object).map(VALUES)
    assert (rows["years"].astype(float).fillna(-1) == wanted.fillna(-1)).all()
    rows = synth.sample(20, where={"years": 12}, seed=0)
    assert set(rows["school"]) <= {"high", "higher"} and (rows["years"] == 12).all()


def test_gaps_are_filled_by_what_is_known():
    rng = np.random.default_rng(0)
    school = rng.choice(SCHOOL.values, 600)
    table = pd.DataFrame(
        {"school": school, "years": [VALUES[one] for one in school], "other": school == "high"}
    )
    synth = fs.AIM(settled()).fit(table, fs.Budget(epsilon=4.0, trust="central"))
    gaps = pd.DataFrame(
        {"school": [None, None, "basic"], "years": [8, 12, np.nan], "other": [False] * 3}
    )
    filled = synth.impute(gaps, seed=0)
    assert filled["years"].tolist() == [8, 12, 8]
    assert filled["school"].tolist()[::2] == ["basic", "basic"]
    assert filled["school"][1] in ("high", "higher")
