"""Rows as numbers for a classifier."""

from __future__ import annotations

import numpy as np
import pandas as pd

from fedsynth.data.tables import conform
from fedsynth.methods.sampling.design import Design
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema

SCHEMA = Schema(
    columns=[
        Integer(name="age", lower=18, upper=90),
        Categorical(name="colour", values=["red", "green", "blue"], missing=True),
        Categorical(name="outcome", values=["well", "ill"]),
        Continuous(name="dose", lower=-1, upper=10, decimals=1, missing=True),
        Boolean(name="smoker"),
        Datetime(name="day", lower="2024-01-01", upper="2024-12-31"),
    ],
    target="outcome",
)


def test_a_row_by_hand():
    frame = pd.DataFrame(
        {
            "age": [20, 1000],
            "colour": ["blue", None],
            "outcome": ["ill", "well"],
            "dose": [2.5, np.nan],
            "smoker": [True, False],
            "day": ["2024-01-03", "2024-01-01"],
        }
    )
    design = Design(SCHEMA)
    assert design.widths == (1, 3, 2, 2, 1)
    expected = [[20, 0, 0, 1, 2.5, 0, 0, 1, 2], [90, 0, 0, 0, -1, 1, 1, 0, 0]]
    matrix = design.matrix(conform(frame, SCHEMA).columns)
    assert matrix.dtype == np.float64
    assert matrix.tolist() == expected
    assert design.width == 9


def test_the_target_may_be_left_out():
    frame = pd.DataFrame({"age": [20], "outcome": ["ill"]})
    schema = Schema(columns=SCHEMA.columns[:1] + SCHEMA.columns[2:3], target="outcome")
    columns = dict(conform(frame, schema).columns)
    del columns["outcome"]
    assert Design(schema).matrix(columns).tolist() == [[20.0]]


def test_a_target_alone_has_no_coordinates():
    schema = Schema(columns=SCHEMA.columns[2:3], target="outcome")
    assert Design(schema).width == 0
    assert Design(schema).matrix({"outcome": np.zeros(4, np.int64)}).shape == (4, 0)


def test_without_rows_there_is_a_matrix_of_none():
    empty = {c.name: np.zeros(0) for c in SCHEMA.modelled}
    empty |= {name: np.zeros(0, np.int64) for name in ("colour", "outcome", "smoker")}
    assert Design(SCHEMA).matrix(empty).shape == (0, 9)
