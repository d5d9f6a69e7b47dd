"""What drawn rows lack is told, column by column."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.methods.sampling.lost import lost_remarks
from fedsynth.schema import Boolean, Categorical, Integer, Schema


def schema():
    letters = [chr(ord("a") + k) for k in range(8)]
    return Schema(
        columns=(
            Categorical(name="letter", values=letters),
            Categorical(name="one", values=["x"]),
            Boolean(name="flag"),
            Integer(name="number", lower=0, upper=9),
            Integer(name="gap", lower=3, upper=3, missing=True),
            Integer(name="fixed", lower=3, upper=3),
        )
    )


def test_columns_of_one_value_and_values_that_never_come_up_are_named():
    rows = pd.DataFrame(
        {
            "letter": ["a", "b", "c"] * 20,
            "one": "x",
            "flag": True,
            "number": [1, 2, 1] * 20,
            "gap": pd.array([pd.NA] * 60, "Int64"),
            "fixed": 3,
        }
    )
    alone, absent = lost_remarks(rows, schema())
    assert alone.startswith("flag, gap: one value alone in 60 rows")
    assert absent.endswith("letter (5 of 8)")
    varied = rows.assign(letter=list("abcd") * 15, flag=[True, False] * 30, gap=[3, None] * 30)
    assert lost_remarks(varied, schema()) == ()


@pytest.mark.parametrize("method", ["aim", "mst", "privbayes", "private-fusion"])
def test_a_fit_says_what_its_rows_lack(method):
    table = pd.DataFrame(
        {
            "letter": ["a", *"abcdefgh"] * 20,
            "one": "x",
            "flag": True,
            "number": np.arange(180) % 10,
            "gap": pd.array([3, pd.NA] * 90, "Int64"),
            "fixed": 3,
        }
    )
    found = fs.synthesizer(method, schema()).fit([table], fs.Budget(epsilon=math.inf))
    assert any("flag" in said and "one value alone" in said for said in found.remarks)
    read = [said for said in found.remarks if "rows that were drawn" in said]
    assert read == list(lost_remarks(found.sample(10_000, seed=0), schema()))
