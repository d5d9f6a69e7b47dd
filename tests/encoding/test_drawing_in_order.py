"""Values are put in order within their codes wherever their codes allow it."""

from __future__ import annotations

import numpy as np

from fedsynth.encoding.bins import Bins
from fedsynth.encoding.grid import Grid
from fedsynth.encoding.table import TableEncoding
from fedsynth.schema import Categorical, Integer, Schema


def test_a_value_that_noise_gave_no_weight_is_taken_before_a_code_is_left():
    """Since 19 at the earliest by its weights, in a row of 0 to 17 years."""
    schema = Schema(
        columns=[
            Integer(name="age", lower=0, upper=99),
            Integer(name="since", lower=0, upper=99),
            Categorical(name="status", values=["child", "adult"]),
        ],
        constraints=[
            {"never": {"age": {"from": 18}, "status": "child"}},
            {"ordered": ["since", "age"]},
        ],
    )
    grid = Grid(0, 99)
    ages = Bins(grid, np.array([0, 18]), np.array([0, 1]), np.array([1.0, 1.0]))
    since = Bins(grid, np.array([0, 19, 20]), np.array([0, 0, 0]), np.array([0.0, 1.0, 0.0]))
    encoding = TableEncoding(
        schema, (ages, since, None), (np.full(2, 0.5), np.ones(1), np.full(2, 0.5)), 100.0
    )
    codes = np.tile([0, 0, 0], (50, 1))
    rows = encoding.decode(codes, np.random.default_rng(0))
    assert (rows["age"] < 18).all() and (rows["since"] <= rows["age"]).all()
