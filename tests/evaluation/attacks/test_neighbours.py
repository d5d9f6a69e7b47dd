"""Copies and distances: hand-worked, against brute force, scikit-learn and SDMetrics."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from sdmetrics.single_table.privacy import DCRBaselineProtection
from sklearn.neighbors import NearestNeighbors

from fedsynth.evaluation.attacks import neighbours as module
from fedsynth.evaluation.attacks.neighbours import draw_rows, neighbours, row_keys
from fedsynth.evaluation.reading.features import Features
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.schema import Categorical, Continuous, Integer, Schema
from tests.evaluation.attacked_people import SCHEMA, drawn_rows, people

ONE = Schema(columns=(Integer(name="a", lower=0, upper=100, missing=True),))


def numbers(*values: float | None):
    return read_rows(pd.DataFrame({"a": pd.Series(values, dtype=float)}), ONE, "numbers")


def test_hand_worked_copies_distances_and_ratios():
    # The scale is the 5 to 95 % range of 0, 25, 50, 75, 100: 90.
    found = neighbours(numbers(25, 26, 26), numbers(0, 25, 50, 75, 100), numbers(26, 60))
    assert found.copies == {
        "train": pytest.approx(1 / 3),
        "real": pytest.approx(2 / 3),
        "expected": 0,
    }
    assert np.multiply(found.distance["synthetic_to_train"], 90)[2] == pytest.approx(1, abs=1e-5)
    expected = np.quantile([1, 10], [0.05, 0.25, 0.5, 0.75, 0.95])
    assert np.multiply(found.distance["real_to_train"], 90) == pytest.approx(expected, abs=1e-4)
    assert found.ratio["synthetic"] == pytest.approx((0 + 2 * 1 / 24) / 3, abs=1e-5)
    assert found.ratio["real"] == pytest.approx((1 / 24 + 10 / 15) / 2, abs=1e-5)


def test_a_copy_of_the_training_rows_shows_everywhere():
    train = drawn_rows(300, 1)
    found = neighbours(train, train, drawn_rows(200, 2))
    assert found.copies["train"] == 1
    assert found.copies["expected"] < 0.02
    assert found.distance["synthetic_to_train"] == [0] * 5
    assert found.ratio["synthetic"] < 0.02 < 0.5 < found.ratio["real"]
    assert found.histogram["synthetic"][0] == 1


@pytest.mark.parametrize("seed", range(3))
def test_an_independent_sample_looks_like_held_out_rows(seed):
    found = neighbours(*(drawn_rows(800, 10 * seed + part) for part in range(3)))
    for kind in ("synthetic", "real"):
        assert found.copies["train"] == pytest.approx(found.copies["expected"], abs=0.01)
        assert sum(found.histogram[kind]) == pytest.approx(1)
    made, real = (np.array(found.distance[f"{kind}_to_train"]) for kind in ("synthetic", "real"))
    assert made == pytest.approx(real, abs=0.12)
    assert found.ratio["synthetic"] == pytest.approx(found.ratio["real"], abs=0.03)


def test_copies_are_those_of_a_join():
    coarse = Schema(
        columns=(
            Categorical(name="c", values=("p", "q", "r"), missing=True),
            Continuous(name="z", lower=-1, upper=1, decimals=1, missing=True),
        )
    )
    rng = np.random.default_rng(3)
    frames = [
        pd.DataFrame(
            {
                "c": rng.choice(np.array(["p", "q", "r", None]), 60),
                "z": np.where(rng.random(60) < 0.2, np.nan, rng.uniform(-1, 1, 60).round(1)),
            }
        )
        for _ in range(3)
    ]
    found = neighbours(*(read_rows(frame, coarse, "frame") for frame in frames))
    sets = [set(frame.fillna("gap").itertuples(index=False, name=None)) for frame in frames]
    made, _, held = (list(frame.fillna("gap").itertuples(index=False)) for frame in frames)
    assert 0 < found.copies["train"] < 1
    assert found.copies["train"] == pytest.approx(np.mean([tuple(row) in sets[1] for row in made]))
    assert found.copies["real"] == pytest.approx(np.mean([tuple(row) in sets[2] for row in made]))
    assert found.copies["expected"] == pytest.approx(
        np.mean([tuple(row) in sets[1] for row in held])
    )


def test_keys_tell_rows_apart_and_see_through_how_numbers_are_stored():
    rows = drawn_rows(20_000, 4)
    distinct = len(np.unique(np.nan_to_num(rows.values, nan=-1e9), axis=0))
    assert len(np.unique(row_keys(rows))) == distinct
    frame = people(500, 5)
    single = frame.assign(x=frame.x.astype("float32"), y=-(-frame.y).astype("float32"))
    assert (row_keys(read_rows(single, SCHEMA, "single")) == row_keys(drawn_rows(500, 5))).all()
    other_gaps = drawn_rows(500, 5)
    other_gaps.values[np.isnan(other_gaps.values)] = -np.float64("nan")
    assert (row_keys(other_gaps) == row_keys(drawn_rows(500, 5))).all()
    swapped = Schema(
        columns=(Integer(name="a", lower=0, upper=9), Integer(name="b", lower=0, upper=9))
    )
    a, b = row_keys(read_rows(pd.DataFrame({"a": [1, 2], "b": [2, 1]}), swapped, "swapped"))
    assert a != b


def test_distances_are_scikit_learns():
    synthetic, train, real = (drawn_rows(150, part) for part in (6, 7, 8))
    features = Features.of(train)
    among = NearestNeighbors(n_neighbors=2).fit(features.matrix(train))
    found = neighbours(synthetic, train, real)
    for kind, rows in (("synthetic", synthetic), ("real", real)):
        distances = among.kneighbors(features.matrix(rows))[0]
        expected = np.quantile(distances[:, 0], module.QUANTILES)
        assert found.distance[f"{kind}_to_train"] == pytest.approx(expected, abs=1e-5)
        assert found.ratio[kind] == pytest.approx((distances[:, 0] / distances[:, 1]).mean())


def test_the_median_distance_between_categories_is_sdmetrics():
    names = [f"c{j}" for j in range(7)]
    schema = Schema(columns=tuple(Categorical(name=n, values=tuple("pqrs")) for n in names))
    rng = np.random.default_rng(9)
    synthetic, train, real = (
        pd.DataFrame(rng.choice(list("pqrs"), (201, 7)), columns=names) for _ in range(3)
    )
    metadata = {"columns": {name: {"sdtype": "categorical"} for name in names}}
    theirs = DCRBaselineProtection.compute_breakdown(
        train, synthetic, {"tables": {"t": metadata}, "relationships": []}, "t"
    )["median_DCR_to_real_data"]["synthetic_data"]
    rows = [read_rows(frame, schema, "frame") for frame in (synthetic, train, real)]
    # Ours is the root of the number of columns that differ, SDMetrics' that number's share.
    median = neighbours(*rows).distance["synthetic_to_train"][2]
    assert median**2 / 7 == pytest.approx(theirs, abs=1e-5)
    assert theirs > 0


def test_the_order_of_the_rows_does_not_matter_even_to_samples(monkeypatch):
    monkeypatch.setattr(module, "SEARCHED", 60)
    tables = [drawn_rows(100, part) for part in (1, 2, 3)]
    rng = np.random.default_rng(0)
    shuffled = [rows.take(rng.permutation(100)) for rows in tables]
    assert neighbours(*tables, most=40) == neighbours(*shuffled, most=40)
    assert neighbours(*tables, most=40) != neighbours(*tables, most=40, seed=1)


def test_a_sample_has_each_row_once():
    keys = np.random.default_rng(1).integers(9, size=50).astype(np.uint64)
    assert sorted(draw_rows(keys, 100, np.random.default_rng(2))) == list(range(50))
    assert len(set(draw_rows(keys, 20, np.random.default_rng(2)))) == 20


@pytest.mark.parametrize(
    "values",
    [(None, None, None), (5, 5, 5), (7,), (7, None)],
    ids=["all missing", "constant", "one row", "one row and a gap"],
)
def test_degenerate_tables_give_finite_figures(values):
    found = neighbours(numbers(*values), numbers(*values), numbers(*values))
    assert found.copies == {"train": 1, "real": 1, "expected": 1}
    assert found.distance["synthetic_to_train"] == [0] * 5
    assert found.ratio["synthetic"] == (
        None if len(values) == 1 else 0 if len(set(values)) > 1 else 1
    )
    json.dumps(asdict(found), allow_nan=False)
    assert "no evidence of privacy" in found.note
