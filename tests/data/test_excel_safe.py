"""What spreadsheet programs would compute is spelled so that they do not; numbers stay numbers."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.data.excel import spell_safely
from fedsynth.data.tables import write_table
from fedsynth.schema import Categorical, Continuous, Integer, Schema

FORMULAS = ("=1+1", "+A1", "-cmd|' /C calc'!A0", "@SUM(A1)", "\tx", "\r=1", "\uff1d1", "-1-2", "-")


@pytest.mark.parametrize("cell", FORMULAS)
def test_a_formula_becomes_a_text(cell):
    assert spell_safely(pd.DataFrame({"a": [cell]}))["a"].tolist() == [f"'{cell}"]
    assert list(spell_safely(pd.DataFrame({cell: [1]}))) == [f"'{cell}"]


@pytest.mark.parametrize("cell", ["-5", "+5", "-1.5e-3", "-1 234,5", "a=b", "1-2", "", "x@y"])
def test_a_number_and_a_plain_text_stay(cell):
    assert spell_safely(pd.DataFrame({"a": [cell]}))["a"].tolist() == [cell]


@given(st.text())
def test_no_text_begins_as_a_formula_does_unless_it_is_a_number(text):
    (cell,) = spell_safely(pd.DataFrame({"a": [text]}))["a"]
    assert cell[:1] not in tuple("=@\t\r\n")
    if cell[:1] in tuple("+-"):
        assert set(cell[1:]) <= set("0123456789.,' \u00a0\u202feE+-") and cell[1].isdigit()


def test_a_file_is_as_the_table_but_for_them(tmp_path):
    schema = Schema(
        columns=[
            Integer(name="a", lower=-9, upper=9),
            Continuous(name="b", lower=-1, upper=1, decimals=1),
            Categorical(name="=c", values=["=1+1", "ok"], missing=True),
        ]
    )
    frame = pd.DataFrame({"a": [-5, 3], "b": [-0.5, 0.5], "=c": ["=1+1", "ok"]})
    write_table(frame, tmp_path / "plain.csv", schema)
    write_table(frame, tmp_path / "safe.csv", schema, excel_safe=True)
    assert (tmp_path / "plain.csv").read_text() == "a,b,=c\n-5,-0.5,=1+1\n3,0.5,ok\n"
    assert (tmp_path / "safe.csv").read_text() == "a,b,'=c\n-5,-0.5,'=1+1\n3,0.5,ok\n"
