"""Scores of single columns against SDMetrics, scipy and hand-worked tables; histograms."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import ks_2samp, wasserstein_distance
from sdmetrics.single_column import (
    CategoryCoverage,
    KSComplement,
    RangeCoverage,
    TVComplement,
)

from fedsynth.evaluation.measures.columns import (
    ColumnScore,
    Histogram,
    column_scores,
    ks_complement,
    tv_complement,
    wasserstein,
)
from fedsynth.evaluation.measures.quality import plain_frame
from fedsynth.evaluation.reading.rows import Rows, read_rows, shuffle_columns
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from tests.evaluation.compared_people import people

# Rounded, as those of a table are: a range of 1e-311 would make a distance overflow.
numbers = st.lists(
    st.integers(-5, 5) | st.floats(-9, 9).map(lambda x: round(x, 9)), min_size=1, max_size=40
)
counts = st.lists(st.integers(0, 6), min_size=1, max_size=40)


def by_name(synthetic: Rows, train: Rows, real: Rows) -> dict[str, ColumnScore]:
    return {score.name: score for score in column_scores(synthetic, train, real)}


def only(column: object, real: list, synthetic: list) -> ColumnScore:
    schema = Schema(columns=(column,))
    rows = [
        read_rows(pd.DataFrame({column.name: pd.Series(cells, dtype=object)}), schema, "rows")
        for cells in (real, synthetic)
    ]
    return column_scores(rows[1], rows[0], rows[0])[0]


def bars(column: object, real: list, synthetic: list) -> Histogram:
    return only(column, real, synthetic).histogram


def assert_sdmetrics_agrees(synthetic: Rows, real: Rows) -> None:
    places = list(range(len(real.names)))
    theirs, ours = plain_frame(real, places), plain_frame(synthetic, places)
    for j, score in enumerate(column_scores(synthetic, real, real)):
        pair = theirs[score.name], ours[score.name]
        if real.sizes[j]:
            shape, covered = TVComplement.compute(*pair), CategoryCoverage.compute(*pair)
        else:
            shape, covered = KSComplement.compute(*pair), RangeCoverage.compute(*pair)
        # SDMetrics adds a millionth of a row to categories that real rows lack.
        assert score.score == pytest.approx(shape, abs=1e-6 if real.sizes[j] else 1e-12)
        # The range of a single real value has no width; SDMetrics then has no figure.
        if np.isfinite(covered):
            assert score.coverage == pytest.approx(covered, abs=1e-12), score.name


def test_scores_and_coverage_are_sdmetrics_on_a_mixed_table_with_gaps_and_values_outside():
    synthetic = people(300, 1, 0.2)
    assert_sdmetrics_agrees(synthetic, people(400))
    odd = people(300, 1, colour=["pink", "red", None] * 100, x=9.5, count=[-3, 200, 50] * 100)
    assert_sdmetrics_agrees(odd, people(400))
    assert_sdmetrics_agrees(people(400), odd.take(np.arange(299)))


def test_scores_and_coverage_are_sdmetrics_on_adult(adult_rows: Rows):
    rows = adult_rows.take(np.arange(6000))
    rich = rows.values[:, -1] == 1
    assert_sdmetrics_agrees(rows.take(rich), rows.take(~rich))


@pytest.mark.filterwarnings("ignore:divide by zero")
@given(real=numbers, synthetic=numbers)
def test_ks_and_wasserstein_are_scipys(real, synthetic):
    one, two = np.array(real, float), np.array(synthetic, float)
    assert ks_complement(one, two) == pytest.approx(
        1 - ks_2samp(one, two, method="asymp").statistic
    )
    assert ks_complement(one, two) == pytest.approx(ks_complement(two, one))
    low, high = np.quantile(one, [0.05, 0.95])
    scale = (high - low) or (one.max() - one.min()) or 1
    assert wasserstein(one, two) == pytest.approx(wasserstein_distance(one, two) / scale)
    assert ks_complement(one, one) == 1
    assert wasserstein(one, one) == 0


@given(real=counts, synthetic=counts, seed=st.integers(0, 9))
def test_tv_is_that_of_shares_symmetric_and_blind_to_names(real, synthetic, seed):
    shares = [pd.Series(codes).value_counts(normalize=True) for codes in (real, synthetic)]
    expected = 1 - shares[0].sub(shares[1], fill_value=0).abs().sum() / 2
    one, two = np.array(real, float), np.array(synthetic, float)
    assert tv_complement(one, two) == pytest.approx(expected)
    assert tv_complement(two, one) == pytest.approx(expected)
    names = np.random.default_rng(seed).permutation(7).astype(float)
    renamed = tv_complement(names[real], names[synthetic])
    assert renamed == pytest.approx(expected)
    assert tv_complement(one, one) == 1


def test_wasserstein_by_hand_in_middle_ranges():
    real = np.arange(101.0)
    # Every value moves by 9, and the middle range is 95 - 5.
    assert wasserstein(real, real + 9) == pytest.approx(0.1)
    assert wasserstein(np.array([0.0] * 99 + [8]), np.array([0.0])) == pytest.approx(0.01)
    assert wasserstein(np.array([3.0]), np.array([5.0])) == 2


def test_figures_by_hand():
    column = Integer(name="i", lower=0, upper=9, missing=True)
    found = only(column, [1, 3, 5, None], [3, 3, 11, 2.5, None, None, None, 1])
    assert (found.kind, found.metric) == ("number", "KSComplement")
    assert found.missing == {"real": 0.25, "synthetic": 0.375}
    # 11 and 2.5 break a rule.
    assert found.outside == 0.25
    assert found.mean == {"real": 3.0, "synthetic": pytest.approx(4.1)}
    assert found.deviation["real"] == pytest.approx((8 / 3) ** 0.5)
    assert found.coverage == 1.0
    assert only(column, [0, 4], [1, 2]).coverage == pytest.approx(0.25)
    assert only(column, [0, 4], [8, 9]).coverage == 0


def test_dates_and_categories_have_no_mean_and_categories_no_distance():
    found = by_name(people(50), people(50, 1), people(50, 2))
    kinds = {name: score.kind for name, score in found.items()}
    assert list(kinds.values()) == ["category", "category", "number", "number", "date", "boolean"]
    for name, score in found.items():
        numeric = score.kind == "number"
        assert (score.mean is not None, score.deviation is not None) == (numeric, numeric)
        assert (score.wasserstein is not None) == (score.kind in ("number", "date")), name
        assert score.metric == ("KSComplement" if score.wasserstein is not None else "TVComplement")


def test_identity_and_independence_give_the_best_of_everything():
    real = people(200)
    for rows in (real, shuffle_columns(real, 0), real.take(np.arange(200)[::-1])):
        for score in column_scores(rows, rows, real):
            assert (score.score, score.real) == (1, 1)
            assert score.coverage == 1
            assert score.wasserstein in (0, None)
            assert score.histogram.real == score.histogram.synthetic
            assert score.outside == 0


def test_the_other_real_rows_have_their_own_score():
    found = by_name(people(300, 1, 0.25), people(300, 2), people(300, 3))["x"]
    assert found.score < found.real - 0.05


def test_columns_without_values_score_one_together_and_zero_alone():
    full = people(30)
    none = people(30, x=None, colour=None, day=None)
    for j in (0, 3, 4):
        both = column_scores(none, full, none)[j]
        assert (both.score, both.real, both.wasserstein, both.coverage) == (1, 0, None, None)
        lost = column_scores(none, full, full)[j]
        assert (lost.score, lost.real, lost.wasserstein, lost.coverage) == (0, 1, None, None)
        assert lost.missing["synthetic"] == 1
    assert column_scores(none, full, full)[3].mean["synthetic"] is None


def test_a_single_real_value_is_covered_or_not():
    column = Integer(name="i", lower=0, upper=9)
    assert only(column, [4, 4], [1, 7]).coverage == 1
    assert only(column, [4, 4], [5, 7]).coverage == 0


def test_bars_of_whole_numbers_name_what_they_hold():
    age = Integer(name="age", lower=0, upper=120)
    found = bars(age, list(range(17, 77)), [17, 19, 20, 76])
    assert found.labels[:2] == ("17 to 19", "20 to 22")
    assert found.labels[-1] == "74 to 76"
    assert len(found.labels) == 20
    assert found.real == pytest.approx([1 / 20] * 20)
    assert found.synthetic[:2] == (0.5, 0.25)
    assert found.synthetic[-1] == 0.25


def test_values_beyond_the_middle_lie_in_bars_that_name_the_true_extremes():
    count = Integer(name="n", lower=0, upper=1000, missing=True)
    found = bars(count, [1, 2, 3] * 40 + [900], [0, 1, 2, 2, 3, 800, 1001, None])
    assert found.labels == ("0", "1", "2", "3", "4 to 1001", "(missing)")
    assert found.real == pytest.approx([0, 40 / 121, 40 / 121, 40 / 121, 1 / 121, 0])
    assert found.synthetic == (1 / 8, 1 / 8, 2 / 8, 1 / 8, 2 / 8, 1 / 8)


def test_a_constant_column_is_a_bar_of_its_own():
    for column in (
        Integer(name="c", lower=0, upper=9),
        Continuous(name="c", lower=0, upper=9, decimals=1),
    ):
        point = "" if isinstance(column, Integer) else ".0"
        alone = bars(column, [4] * 9, [4] * 3)
        assert (alone.labels, alone.real, alone.synthetic) == (("4" + point,), (1,), (1,))
        beside = bars(column, [4] * 9, [1, 4, 4, 7])
        assert len(beside.labels) == 3
        assert beside.labels[1] == "4" + point
        assert beside.synthetic == (0.25, 0.5, 0.25)


def test_bars_of_decimals_hold_equally_many_values_of_the_grid():
    column = Continuous(name="t", lower=30, upper=45, decimals=1)
    grid = (np.arange(350, 400) / 10).tolist()
    found = bars(column, grid, grid)
    assert found.labels[:2] == ("35.0 to 35.2", "35.3 to 35.5")
    assert set(np.round(np.array(found.real[:-1]) * 50)) == {3}


def test_large_numbers_are_spelled_out():
    column = Integer(name="n", lower=0, upper=2_000_000)
    found = bars(column, list(range(1_234_560, 1_234_580)), [1_234_567])
    assert found.labels[7] == "1234567"
    assert found.synthetic[7] == 1


def test_bars_of_dates_and_of_hours_within_days():
    day = Datetime(name="d", lower="2020-01-01", upper="2020-12-30")
    days = [str(d.date()) for d in pd.date_range("2020-02-01", periods=40)]
    assert bars(day, days, days).labels[:2] == (
        "2020-02-01 to 2020-02-02",
        "2020-02-03 to 2020-02-04",
    )
    minute = Datetime(name="m", lower="2020-01-01", upper="2020-12-30", resolution="minute")
    times = [str(d) for d in pd.date_range("2020-02-01", periods=40, freq="min")]
    labels = bars(minute, times, times).labels
    assert labels[0] == "2020-02-01 00:00 to 2020-02-01 00:01"
    second = Datetime(name="s", lower="2020-01-01", upper="2020-12-30", resolution="second")
    times = [str(d) for d in pd.date_range("2020-02-01", periods=20, freq="s")]
    assert bars(second, times, times).labels[3] == "2020-02-01 00:00:03"
    assert len(set(labels)) == len(labels) == 20


def test_bars_of_categories_are_the_commonest_the_rest_and_the_undeclared():
    names = tuple(f"v{i:02}" for i in range(25))
    column = Categorical(name="c", values=names, missing=True)
    cells = [name for i, name in enumerate(names) for _ in range(i + 1)]
    found = bars(column, cells, ["v24", "v00", "v05", "pink"])
    assert found.labels[:2] == ("v24", "v23")
    assert found.labels[18:] == ("v06", "6 others", "(not in the schema)")
    assert found.real[0] == 25 / 325
    assert found.real[19:] == (21 / 325, 0)
    assert found.synthetic == (0.25, *[0] * 18, 0.5, 0.25)
    flag = bars(Boolean(name="b", missing=True), ["yes", "no", "yes", None], ["no"])
    assert flag.labels == ("True", "False", "(not in the schema)", "(missing)")
    assert (flag.real, flag.synthetic) == ((0.5, 0.25, 0, 0.25), (0, 1, 0, 0))


cells = st.lists(
    st.integers(-30, 130) | st.none() | st.just(np.inf) | st.floats(-9, 130),
    min_size=1,
    max_size=40,
)


@settings(max_examples=30, deadline=None)
@given(real=cells, synthetic=cells, kind=st.sampled_from(["integer", "tenths", "micro", "wide"]))
def test_shares_add_up_and_bars_hold_what_their_labels_say(real, synthetic, kind):
    column = {
        "integer": Integer(name="c", lower=0, upper=100, missing=True),
        "tenths": Continuous(name="c", lower=0, upper=100, decimals=1, missing=True),
        "micro": Continuous(name="c", lower=0, upper=100, decimals=6, missing=True),
        "wide": Integer(name="c", lower=-(10**9), upper=10**9, missing=True),
    }[kind]
    found = bars(column, real, synthetic)
    assert sum(found.real) == pytest.approx(1)
    assert sum(found.synthetic) == pytest.approx(1)
    assert len(found.labels) == len(found.real) == len(found.synthetic)
    assert len(found.labels) <= 23
    whole = [i for i in range(len(found.labels)) if found.labels[i] != "(missing)"]
    if kind in ("integer", "wide"):
        ends = [[int(end) for end in (found.labels[i].split(" to ") * 2)[:2]] for i in whole]
        for cell, shares in ((real, found.real), (synthetic, found.synthetic)):
            held = [math.floor(v) for v in cell if v is not None and np.isfinite(v)]
            inside = [sum(first <= v <= last for v in held) for first, last in ends]
            # Infinite numbers lie in the bars at the ends besides.
            assert sum(inside) == len(held)
            assert all(
                round(shares[i] * len(cell)) >= n for i, n in zip(whole, inside, strict=True)
            )
        flat = [end for pair in ends for end in pair]
        assert flat == sorted(flat)
