"""What a row is to a classifier follows from the schema and public cut points alone."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.methods.classifier.features import (
    Features,
    cuts_by_bounds,
    cuts_by_encoding,
    cuts_by_rows,
)
from tests.methods.small import SCHEMA, table

ALL = fs.Schema(
    columns=[
        fs.Integer(name="visits", lower=0, upper=100, missing=True),
        fs.Categorical(name="colour", values=["red", "green"], missing=True),
        fs.Datetime(name="day", lower="2020-01-01", upper="2020-01-11", resolution="day"),
        fs.Boolean(name="smoker"),
        fs.Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)


def test_vectors_are_those_worked_by_hand():
    frame = pd.DataFrame(
        {
            "visits": [0, 10, 55, None],
            "colour": ["green", "red", None, "red"],
            "day": ["2020-01-01", "2020-01-06", "2020-01-11", "2020-01-02"],
            "smoker": [True, False, True, False],
            "outcome": ["ill", "well", "ill", "ill"],
        }
    )
    cuts = {"visits": (0.0, 10.0, 100.0), "day": (0.0, 10.0)}
    features, data = Features(ALL, cuts), conform(frame, ALL)
    # Visits and their gap; red, green, a gap; day; not a smoker, a smoker.
    wanted = [
        [-1.0, 0, 0, 1, 0, -1.0, 0, 1],
        [0.0, 0, 1, 0, 0, 0.0, 1, 0],
        [0.5, 0, 0, 0, 1, 1.0, 0, 1],
        [0.0, 1, 1, 0, 0, -0.8, 1, 0],
    ]
    np.testing.assert_allclose(features.vectors(data), wanted, atol=1e-6)
    assert features.width == 8
    assert features.labels(data).tolist() == [1, 0, 1, 1]


@given(st.integers(0, 2**32), st.integers(1, 20))
def test_a_rows_numbers_hang_on_itself_alone_and_never_exceed_one(seed, rows):
    data = conform(table(20, seed), SCHEMA)
    features = Features(SCHEMA, {"age": (18.0, 30.0, 90.0), "dose": (5.0,)})
    chosen = np.random.default_rng(seed).integers(0, 20, rows)
    np.testing.assert_array_equal(
        features.vectors(data.take(chosen)), features.vectors(data)[chosen]
    )
    assert np.abs(features.vectors(data)).max() <= 1


def test_by_bounds_nothing_but_the_schema_is_looked_at():
    assert cuts_by_bounds(ALL) == {"visits": (0.0, 100.0), "day": (0.0, 10.0)}


def histogram(values: np.ndarray, schema: fs.Schema) -> TableEncoding:
    layout = HistogramLayout.of(schema)
    data = conform(pd.DataFrame({"a": values, "t": "x"}), schema)
    counts = np.bincount(layout.positions(data).ravel(), minlength=layout.dim).astype(float)
    return TableEncoding.from_histogram(schema, counts, 0.0, 64)


def test_cut_points_by_a_histogram_and_by_rows_part_values_evenly():
    schema = fs.Schema(
        columns=[fs.Continuous(name="a", lower=0, upper=1000, decimals=2),
                 fs.Categorical(name="t", values=["x", "y"])],
        target="t",
    )  # fmt: skip
    values = np.round(np.random.default_rng(0).gamma(2, 30, 20_000), 2)
    by_rows = cuts_by_rows(pd.DataFrame({"a": values, "t": "x"}), schema)["a"]
    for cuts in (cuts_by_encoding(histogram(values, schema))["a"], by_rows):
        assert (cuts[0], cuts[-1]) == (0.0, 1000.0)
        shares = np.diff(np.searchsorted(np.sort(values), cuts[1:-1])) / len(values)
        # Sixteen parts, up to the histogram's own bins.
        assert np.abs(shares[1:-1] - 1 / 16).max() < 0.02
    # One value of nearly all rows is one cut point.
    piled = np.where(np.arange(20_000) < 18_000, 0.0, values)
    assert cuts_by_encoding(histogram(piled, schema))["a"].count(0.0) == 1


def test_features_are_read_back_as_they_were_written():
    features = Features(ALL, cuts_by_bounds(ALL))
    assert Features.from_dict(features.to_dict()) == features


@pytest.mark.parametrize(
    ("cuts", "said"),
    [
        ({"visits": (0.0, 1.0)}, "'day' needs at least one cut point"),
        ({"visits": (1.0, 1.0), "day": (0.0,)}, "'visits' must rise"),
        ({"visits": (float("nan"),), "day": (0.0,)}, "'visits' needs"),
        ({"visits": (0.0,), "day": (0.0,), "colour": (0.0,)}, "'colour' is no column of numbers"),
        ({"visits": (0.0,), "day": (0.0,), "outcome": (0.0,)}, "'outcome' is no column"),
    ],
)
def test_cut_points_that_are_none_are_refused(cuts, said):
    with pytest.raises(ConfigError, match=said):
        Features(ALL, cuts)
