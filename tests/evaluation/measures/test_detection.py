"""Telling tables apart, against statsmodels, scikit-learn and what theory expects."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score
from statsmodels.discrete.discrete_model import Logit

import fedsynth.evaluation.measures.detection as module
from fedsynth.evaluation.measures.detection import attempt_all, detection
from fedsynth.evaluation.reading.confidence import auroc
from fedsynth.evaluation.reading.rows import Rows, read_rows, shuffle_columns
from fedsynth.schema import Categorical, Continuous, Schema
from tests.evaluation.compared_people import people

PAIR = Schema(
    columns=(
        Continuous(name="x", lower=-5, upper=5, decimals=3),
        Continuous(name="y", lower=-5, upper=5, decimals=3),
        Categorical(name="c", values=("a", "b", "c")),
    )
)


def pair(n: int, seed: int, shift: float = 0.0) -> Rows:
    rng = np.random.default_rng(seed)
    x = (rng.normal(size=n) + shift).clip(-2.2, 2.2)
    y = (0.8 * x + 0.6 * rng.normal(size=n)).clip(-2.5, 2.5)
    c = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    return read_rows(pd.DataFrame({"x": x, "y": y, "c": c}), PAIR, "pair")


def propensities(made: Rows, real: Rows) -> np.ndarray:
    """By statsmodels: a logit of an intercept, x, y and two of the three categories."""
    values = np.concatenate([real.values, made.values])
    design = np.column_stack([np.ones(len(values)), values[:, :2], values[:, 2] == 1])
    design = np.column_stack([design, values[:, 2] == 2]).astype(float)
    truth = np.repeat([0, 1], [len(real), len(made)])
    return Logit(truth, design).fit(disp=0).predict()


def test_pmse_and_its_ratio_are_those_of_an_unpenalised_logit():
    for shift in (0.0, 0.5):
        made, real = pair(300, 1, shift), pair(300, 2)
        found = attempt_all(made, real)[0]
        pmse = np.mean((propensities(made, real) - 0.5) ** 2)
        assert found.pmse == pytest.approx(pmse, rel=0.01)
        # c (1 - c) (k - 1) / N with k = 5 coefficients, c = 1/2 and N = 600.
        assert found.pmse_ratio == pytest.approx(pmse / (0.25 * 4 / 600), rel=0.01)


def test_pmse_of_one_binary_column_by_hand():
    schema = Schema(columns=(Categorical(name="c", values=("a", "b")),))
    real, made = (
        read_rows(pd.DataFrame({"c": ["a"] * n + ["b"] * (100 - n)}), schema, "rows")
        for n in (50, 75)
    )
    found = attempt_all(made, real)[0]
    # Of a's 125 rows, 75 are synthetic; of b's 75, 25 are.
    expected = (125 * (75 / 125 - 0.5) ** 2 + 75 * (25 / 75 - 0.5) ** 2) / 200
    assert found.pmse == pytest.approx(expected, rel=1e-3)
    assert found.pmse_ratio == pytest.approx(expected / (1 / 4 / 200), rel=1e-3)


def test_two_samples_of_one_population_have_a_ratio_of_one_on_average(monkeypatch):
    monkeypatch.setattr(module, "_boost", lambda *_: None)

    def ratios(rows: Rows, times: int) -> list[float]:
        """Of so many pairs of samples."""
        drawn = np.arange(len(rows)).reshape(times, 2, -1)
        return [attempt_all(*map(rows.take, parts))[0].pmse_ratio for parts in drawn]

    # A ratio is about a chi square of 4 degrees over 4: its deviation is .71, that of the mean .11.
    assert np.mean(ratios(pair(40 * 500, 0), 40)) == pytest.approx(1, abs=0.3)
    # Columns with gaps, spikes and categories.
    assert np.mean(ratios(people(20 * 600), 20)) == pytest.approx(1, abs=0.3)


def test_one_population_is_not_told_apart_and_two_are():
    same = detection(pair(600, 1), pair(600, 2), pair(600, 3))
    for one in same:
        assert one.low < 0.5 < one.high
        assert abs(one.real - 0.5) < 0.1
    for one in detection(pair(600, 1, 0.8), pair(600, 2), pair(600, 3)):
        assert one.auroc > one.real + 0.1
        assert 0.55 < one.low < one.auroc < one.high < 1


def test_the_area_is_near_the_best_there_is():
    # One normal against another a deviation higher: Phi(1 / sqrt(2)) = .760 at best.
    schema = Schema(columns=(Continuous(name="x", lower=-9, upper=9, decimals=3),))
    made, real = (
        read_rows(
            pd.DataFrame({"x": np.random.default_rng(seed).normal(size=3000) + seed}), schema, "x"
        )
        for seed in (1, 0)
    )
    logistic, boosted = attempt_all(made, real)
    assert logistic.auroc == pytest.approx(0.760, abs=0.03)
    assert boosted.auroc == pytest.approx(0.760, abs=0.05)


def test_relations_alone_tell_tables_apart_only_for_boosting():
    real = pair(1500, 1)
    logistic, boosted = attempt_all(shuffle_columns(pair(1500, 2), 0), real)
    assert logistic.low < 0.5 < logistic.high
    assert boosted.low > 0.6


def test_the_area_is_scikit_learns_of_rows_that_were_not_learned_from(monkeypatch):
    seen = []

    def area(pos, neg):
        seen.append((pos, neg))
        return auroc(pos, neg)

    monkeypatch.setattr(module, "auroc", area)
    found = attempt_all(people(201, 1, 0.2), people(300, 2))
    for one, (pos, neg) in zip(found, seen, strict=True):
        # Both tables give 201 rows, half of each held out.
        assert (len(pos), len(neg)) == (100, 100)
        truth = np.repeat([1, 0], 100)
        assert one.auroc == pytest.approx(roc_auc_score(truth, np.concatenate([pos, neg])))
        assert one.pmse is None or 0 <= one.pmse <= 0.25


def test_classifiers_cannot_learn_rows_by_heart():
    # Noise that no two rows share: rows learned from would be told apart for certain.
    rng = np.random.default_rng(0)
    schema = Schema(
        columns=tuple(Continuous(name=f"x{k}", lower=-9, upper=9, decimals=6) for k in range(10))
    )
    made, real = (
        read_rows(
            pd.DataFrame(rng.normal(size=(300, 10)), columns=[f"x{k}" for k in range(10)]),
            schema,
            "noise",
        )
        for _ in "ab"
    )
    for one in attempt_all(made, real):
        assert one.auroc == pytest.approx(0.5, abs=0.12)


def test_tables_without_anything_in_common_are_told_apart_for_certain_and_quietly():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logistic, boosted = attempt_all(
            people(60, 1, x=4.9, count=99, day="2020-12-30"), people(60)
        )
    assert logistic.auroc == boosted.auroc == 1
    assert logistic.high == 1
    assert logistic.pmse == pytest.approx(0.25, abs=0.02)


def test_constant_tables_are_guessed_at():
    same = {"colour": "red", "shape": "odd", "count": 3, "x": None, "day": None, "flag": True}
    for one in attempt_all(people(40, **same), people(40, **same)):
        assert one.auroc == 0.5
        assert one.pmse_ratio is None
    assert attempt_all(people(40, **same), people(40, **same))[0].pmse == 0


def test_few_rows_are_not_tried_and_few_others_only_leave_out_the_yardstick():
    assert detection(people(19), people(50), people(50)) == ()
    assert detection(people(50), people(50), people(19)) == ()
    assert detection(people(19), people(50), people(50), 3) == ()
    found = detection(people(50), people(19), people(50))
    assert [one.real for one in found] == [None, None]
    assert len(detection(people(20), people(20), people(20))) == 2


def test_many_coordinates_leave_out_the_ratio(monkeypatch):
    monkeypatch.setattr(module, "_NEWTON", 5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logistic = attempt_all(people(200, 1, 0.25), people(200))[0]
    assert logistic.pmse_ratio is None
    assert logistic.pmse > 0


def test_the_seed_decides_and_no_more_rows_are_seen_than_allowed(monkeypatch):
    made, real = people(300, 1, 0.2), people(300, 2)
    assert attempt_all(made, real, 5) == attempt_all(made, real, 5)
    assert attempt_all(made, real, 5) != attempt_all(made, real, 6)
    monkeypatch.setattr(module, "MOST", 100)
    sizes = []
    fitted = module._fit_logistic
    monkeypatch.setattr(
        module, "_fit_logistic", lambda x, t, at: sizes.append(len(x)) or fitted(x, t, at)
    )
    attempt_all(made, real)
    assert sizes == [100, 200]


def test_columns_of_very_many_categories_are_taken():
    names = tuple(f"v{i}" for i in range(400))
    schema = Schema(columns=(Categorical(name="c", values=names),))
    rng = np.random.default_rng(0)
    made, real = (
        read_rows(pd.DataFrame({"c": rng.choice(names[:n], 500)}), schema, "c") for n in (200, 400)
    )
    assert attempt_all(made, real)[1].low > 0.5
