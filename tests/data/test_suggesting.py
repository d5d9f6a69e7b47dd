"""What is suggested to an owner brings its table within the schema, and nothing doubtful does."""

from __future__ import annotations

import pandas as pd
import pytest

from fedsynth.data.suggesting import suggest
from fedsynth.data.tables import read_table
from fedsynth.schema import Schema
from fedsynth.schema.checking import check
from fedsynth.schema.columns import text_of

SCHEMA = Schema.from_dict(
    {
        "columns": [
            {"kind": "integer", "name": "age", "lower": 0, "upper": 120},
            {"kind": "categorical", "name": "sex", "values": ["F", "M"]},
            {"kind": "categorical", "name": "died", "values": [0, 1]},
            {"kind": "datetime", "name": "born", "lower": "1990-01-01", "upper": "1999-12-31"},
            {"kind": "continuous", "name": "paid", "lower": 0, "upper": 9999, "decimals": 2},
        ]
    }
)
DAYS = pd.Series(pd.date_range("1990-01-02", periods=30, freq="53D"))
PLAIN = pd.DataFrame(
    {
        "age": range(20, 50),
        "sex": ["F", "M"] * 15,
        "died": [0, 1] * 15,
        "born": DAYS.dt.strftime("%Y-%m-%d"),
        "paid": [1000 + k / 4 for k in range(30)],
    }
)
OTHERWISE = PLAIN.assign(
    sex=["f", "m"] * 15,
    died=["no", "Yes"] * 15,
    born=DAYS.dt.strftime("%m/%d/%Y"),
    paid=[f"$ {1000 + k / 4:,.2f}" for k in range(30)],
    ward="x",
).rename(columns={"age": "AGE ", "sex": "Sex"})


def suggested(frame, folder):
    """Of a file, as it is first read."""
    frame.to_csv(folder / "own.csv", index=False)
    return suggest(read_table(folder / "own.csv", SCHEMA), SCHEMA)


def test_what_is_suggested_brings_a_table_within_the_schema(tmp_path):
    words, doubts = suggested(OTHERWISE, tmp_path)
    assert words.translated == {
        "drop": ("ward",),
        "rename": {"AGE ": "age", "Sex": "sex"},
        "formats": {"born": "%m/%d/%Y", "paid": "$ 1,234.50"},
        "recode": {"sex": {"f": "F", "m": "M"}, "died": {"no": "0", "Yes": "1"}},
    }
    rows = read_table(tmp_path / "own.csv", SCHEMA, **words.translated)
    assert check(rows, SCHEMA) == [] and not doubts
    for name in ("age", "sex", "died", "paid"):
        assert list(map(text_of, rows[name])) == list(map(text_of, PLAIN[name]))
    assert list(rows["born"]) == list(DAYS)
    assert suggest(rows, SCHEMA)[0].translated == {}


def test_of_two_formats_that_fit_the_bounds_choose_or_it_is_asked(tmp_path):
    days = ["01/02/1990", "03/04/1991", "05/06/1999"] * 10
    words, doubts = suggested(PLAIN.assign(born=days), tmp_path)
    assert words.formats == {"born": "%d/%m/%Y"}
    assert doubts == ["born: every cell would fit %m/%d/%Y as well as %d/%m/%Y"]
    # In another order one would lie before all bounds.
    narrow = SCHEMA.edit("born", lower="1990-01-31", upper="1999-12-31")
    frame = PLAIN.assign(born=["01/02/1990", "03/04/1991", "05/06/1999"] * 10)
    words, doubts = suggest(frame, narrow)
    assert words.formats == {"born": "%d/%m/%Y"} and not doubts


@pytest.mark.parametrize(
    "changed",
    [
        PLAIN,
        # Words that nobody has a table of; what is in several notations.
        PLAIN.assign(sex=["female", "male"] * 15),
        PLAIN.assign(born=["1990-13-01", "yesterday", "01.02.1990"] * 10),
        # A false by itself, if it is one.
        PLAIN.assign(died=["F"] * 30),
    ],
)
def test_nothing_is_suggested_where_nothing_is_sure(changed, tmp_path):
    assert suggested(changed, tmp_path)[0].translated == {}


def test_columns_that_may_both_be_one_are_not_renamed(tmp_path):
    words, _ = suggested(PLAIN.rename(columns={"age": "Age"}).assign(AGE=1), tmp_path)
    assert words.translated == {"drop": ("Age", "AGE")}
