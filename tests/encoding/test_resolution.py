"""What bounds alone tell of how finely values are told apart, and what an owner's rows add."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.conforming import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.resolution import (
    alone_remarks,
    find_crowded,
    resolution_cautions,
    undivided_remarks,
)
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import PrivacyWarning
from fedsynth.methods.marginal.mst import MST
from fedsynth.schema import Categorical, Continuous, Datetime, ImageSchema, Integer, Schema


def schema_of(*columns):
    return Schema(columns=columns)


def test_wide_bounds_are_cautioned_of_by_the_width_of_their_widest_cell():
    """1e9 and 0.01: 2**16 even cells of 1,525,879 hundredths. 70 years of seconds: of 16,854."""
    told = resolution_cautions(
        schema_of(
            Continuous(name="amt", lower=0, upper=1e9, decimals=2),
            Datetime(name="when", lower="1950-01-01", upper="2020-01-01", resolution="second"),
        )
    )
    assert told == (
        "amt: from 0 to 1,000,000,000 lie 100,000,000,001 values, told apart to 15,258.79 far from "
        "0 and finer near it: if values lie close together far from 0, narrow the bounds, or "
        "declare `edges` or `spikes`",
        "when: from 1950-01-01 00:00:00 to 2020-01-01 00:00:00 are 2,208,988,801 seconds, told "
        "apart to 4:40:54 hours at best: narrow the bounds, or take a coarser `resolution`",
    )


def test_bounds_of_ordinary_width_and_public_bins_need_no_caution():
    columns = (
        Integer(name="age", lower=0, upper=110),
        Integer(name="weight", lower=0, upper=1_500_000),
        Continuous(name="income", lower=0, upper=1e6, decimals=2),
        Continuous(name="binned", lower=0, upper=1e9, decimals=2, edges=[0, 10, 1e9]),
        Datetime(name="day", lower="1900-01-01", upper="2100-01-01"),
        Datetime(name="hour", lower="2020-01-01", upper="2023-01-01", resolution="second"),
        Categorical(name="sex", values=["F", "M"]),
    )
    assert resolution_cautions(schema_of(*columns)) == ()
    assert resolution_cautions(ImageSchema(shape=(2, 2))) == ()


def test_values_in_few_cells_are_told_to_their_owner():
    schema = schema_of(
        Continuous(name="near", lower=0, upper=1e9, decimals=2),
        Continuous(name="far", lower=0, upper=1e9, decimals=2),
        Continuous(name="binned", lower=0, upper=1e9, decimals=2, edges=[0, 10, 1e9]),
        Integer(name="few", lower=0, upper=9),
    )
    k = np.arange(100)
    frame = pd.DataFrame({"near": k / 100, "far": 5e8 + k, "binned": k / 100, "few": k % 3})
    (found,) = find_crowded(conform(frame, schema), schema)
    assert (found.column, found.values) == ("far", 100) and found.cells <= 2
    assert str(found).startswith("far: its 100 different values fall into")


def test_a_fit_cautions_before_anything_is_asked():
    schema = schema_of(
        Integer(name="x", lower=0, upper=10**12), Categorical(name="y", values=["a", "b"])
    )
    frame = pd.DataFrame({"x": range(20), "y": ["a", "b"] * 10})
    with pytest.warns(PrivacyWarning, match="x: from 0 to 1,000,000,000,000 lie"):
        MST(schema).fit({"north": frame}, 1.0)


def test_amounts_far_below_their_bounds_are_learned():
    """Log-normal amounts with a median of 20 and bounds of a milliard: cells of equal width would
    hold them all in one, of 7,630."""
    rng = np.random.default_rng(0)
    amounts = np.exp(rng.normal(3, 2, 4_000)).round(2)
    schema = schema_of(
        Continuous(name="x", lower=0, upper=1e9, decimals=2), Categorical(name="y", values=["a"])
    )
    frame = pd.DataFrame({"x": amounts, "y": "a"})
    synth = MST(schema).fit([frame], 2.0, seed=1, insecure_noise_seed=5, caution=lambda _: None)
    drawn = synth.sample(4_000, seed=1)["x"]
    for share in (0.1, 0.5, 0.9):
        assert drawn.quantile(share) == pytest.approx(np.quantile(amounts, share), rel=0.2)


def test_columns_that_noise_leaves_in_one_bin_are_named_where_they_are_most():
    schema = schema_of(
        *(Integer(name=name, lower=0, upper=99) for name in ("spread", "hidden", "lost")),
        Integer(name="constant", lower=7, upper=7),
        Categorical(name="kind", values=("a", "b")),
    )
    layout = HistogramLayout.of(schema)
    rows = conform(
        pd.DataFrame(
            {"spread": np.arange(4000) % 100, "hidden": 3, "lost": 4, "constant": 7, "kind": "a"}
        ),
        schema,
    )
    counts = np.bincount(layout.positions(rows).ravel(), minlength=layout.dim).astype(float)
    clear = TableEncoding.from_histogram(schema, counts, 5.0)
    (alone,) = alone_remarks(clear)
    assert alone.startswith("hidden, lost: one value alone stands out from the noise")
    assert undivided_remarks(clear) == ()
    (told,) = undivided_remarks(TableEncoding.from_histogram(schema, counts, 1e6))
    assert told.startswith("3 of 3 columns of numbers have one bin each")
    assert "nothing is learned of spread, hidden, lost but the range" in told
    assert undivided_remarks(None) == ()
