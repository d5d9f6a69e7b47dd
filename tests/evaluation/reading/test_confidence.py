"""Shares and areas against scipy and scikit-learn, a hand-worked DeLong interval, coverage."""

from __future__ import annotations

from itertools import combinations
from math import comb, floor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit
from scipy.stats import binomtest, fisher_exact, mannwhitneyu, norm
from sklearn.metrics import roc_auc_score, roc_curve

from fedsynth.errors import DataError
from fedsynth.evaluation.reading import confidence
from fedsynth.evaluation.reading.confidence import (
    ALARM,
    auroc,
    auroc_interval,
    roc,
    scores_differ,
    share_interval,
    shares_differ,
    tpr_at,
)
from tests.running import EVERY_DEAL

scores = st.lists(st.integers(-5, 5), min_size=1, max_size=30)


@given(st.integers(0, 60), st.integers(1, 60), st.sampled_from([0.9, 0.95, 0.998]))
@settings(max_examples=60, deadline=None)
def test_a_share_has_clopper_and_pearsons_interval(hits, more, level):
    n = hits + more - 1 if hits else more
    expected = binomtest(hits, n).proportion_ci(level, method="exact")
    assert share_interval(hits, n, level) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_no_trials_leave_every_share_possible():
    assert share_interval(0, 0) == (0, 1)
    assert shares_differ(0, 0, 3, 5) == shares_differ(3, 5, 0, 0) == 1


@given(st.data(), st.integers(1, 40), st.integers(1, 40))
@settings(max_examples=60, deadline=None)
def test_shares_differ_is_fishers_exact_test(data, n_a, n_b):
    a, b = data.draw(st.integers(0, n_a)), data.draw(st.integers(0, n_b))
    expected = fisher_exact([[a, n_a - a], [b, n_b - b]], alternative="greater").pvalue
    assert shares_differ(a, n_a, b, n_b) == pytest.approx(expected, abs=1e-12)


@given(scores, scores)
@settings(max_examples=30, deadline=None)
def test_auroc_is_scikit_learns_and_lies_in_its_interval(pos, neg):
    truth = [1] * len(pos) + [0] * len(neg)
    area = auroc(pos, neg)
    assert area == pytest.approx(roc_auc_score(truth, pos + neg), abs=1e-12)
    low, high = auroc_interval(pos, neg)
    assert 0 <= low <= area + 1e-12
    assert area - 1e-12 <= high <= 1
    mirrored = auroc_interval(neg, pos)
    assert (low, high) == pytest.approx((1 - mirrored[1], 1 - mirrored[0]), abs=1e-9)


def test_a_hand_worked_delong_interval():
    # Shares of the negatives 1, 3, 4 below the positives 2, 5, 6, 4: 1/3, 1, 1, (2 + 1/2)/3.
    # Shares of the positives above the negatives: 1, 3/4, (2 + 1/2)/4.
    area = 19 / 24
    # Squares of deviations, in 24ths: (121 + 25 + 25 + 1) / (3 * 4) + (25 + 1 + 16) / (2 * 3).
    variance = (172 / 12 + 42 / 6) / 24**2
    reach = norm.ppf(0.975) * np.sqrt(variance) / (area * (1 - area))
    expected = expit(logit(area) - reach), expit(logit(area) + reach)
    assert auroc([2, 5, 6, 4], [1, 3, 4]) == pytest.approx(area)
    assert auroc_interval([2, 5, 6, 4], [1, 3, 4]) == pytest.approx(expected)


def test_without_a_variance_the_interval_is_that_of_independent_pairs():
    assert auroc_interval([3, 4, 5], [0, 1]) == share_interval(2, 2)
    assert auroc_interval([0], [1, 2]) == share_interval(0, 1)
    low, high = auroc_interval([7] * 20, [7] * 20)
    assert 0.2 < low < 0.5 < high < 0.8


@pytest.mark.parametrize("shift", [0.0, 1.0])
def test_the_area_is_covered_as_often_as_promised(shift):
    rng = np.random.default_rng(5)
    truth = norm.cdf(shift / np.sqrt(2))
    covered = 0
    for _ in range(500):
        low, high = auroc_interval(rng.normal(shift, 1, 40), rng.normal(0, 1, 60))
        covered += low <= truth <= high
    assert 0.93 <= covered / 500 <= 0.975


@pytest.mark.parametrize(
    ("pos", "neg", "kinds"), [(10, 12, 4), (60, 40, 4), (60, 40, 10**6), (300, 250, 9)]
)
def test_exchangeable_scores_rarely_differ(pos, neg, kinds):
    rng = np.random.default_rng(6)
    ps = [
        scores_differ(rng.integers(kinds, size=pos), rng.integers(kinds, size=neg), seed)
        for seed in range(120)
    ]
    # Three standard errors above the nominal rate.
    for level in (0.05, 0.01):
        assert np.mean(np.array(ps) <= level) < level + 3 * np.sqrt(level / len(ps))


def test_scores_of_two_values_are_told_apart_as_rates_are():
    """By every way to deal out the ones, which is Fisher's exact test."""
    pos, neg = [1, 0, 1, 1], [0, 0, 1, 0, 0]
    ways = list(combinations([*pos, *neg], len(pos)))
    wanted = np.mean([sum(dealt) >= sum(pos) for dealt in ways])
    assert scores_differ(pos, neg) == pytest.approx(wanted)
    assert scores_differ(neg, pos) == pytest.approx(np.mean([sum(d) <= sum(pos) for d in ways]))


@pytest.fixture
def every_deal(monkeypatch):
    monkeypatch.setattr(confidence, "_DEALS", EVERY_DEAL)


@pytest.mark.usefixtures("every_deal")
def test_scores_that_differ_are_told():
    assert scores_differ(range(10, 20), range(10)) < 2e-4
    assert scores_differ(range(10), range(10, 20)) > 0.99
    assert scores_differ([1, 1], [1, 1, 1]) == 1
    exact = mannwhitneyu([3, 5, 8, 9], [1, 4, 6], alternative="greater", method="exact").pvalue
    assert scores_differ([3, 5, 8, 9], [1, 4, 6]) == pytest.approx(exact, abs=0.015)
    assert scores_differ([3, 5, 8, 9], [1, 4, 6]) == pytest.approx(exact, abs=1e-9)
    normal = mannwhitneyu(range(20, 320), range(300), alternative="greater").pvalue
    assert scores_differ(range(20, 320), range(300)) == pytest.approx(normal)
    dealt = scores_differ(range(15, 115), range(100))
    normal = mannwhitneyu(range(15, 115), range(100), alternative="greater").pvalue
    assert dealt == pytest.approx(normal, rel=0.2)


@pytest.mark.usefixtures("every_deal")
@pytest.mark.parametrize(("members", "others"), [(4000, 3), (300, 2), (60, 3), (7, 7), (2, 300)])
def test_a_perfect_attack_on_few_rows_is_told(members, others):
    p = scores_differ(np.arange(members) + others, np.arange(others))
    assert p <= ALARM / 3
    assert p == pytest.approx(1 / comb(members + others, members), abs=2.5e-4)


@pytest.mark.parametrize(
    ("pos", "neg", "odd"), [(200, 3, 0.01), (1000, 50, 0.01), (4000, 300, 0.001)]
)
def test_scores_that_hardly_vary_rarely_differ(pos, neg, odd):
    """The normal approximation calls up to 3 % of these different at a third of `ALARM`."""
    rng = np.random.default_rng(12)
    # How many scores are odd tells all of them, and the same numbers come again and again.
    hits = np.column_stack([rng.binomial(n, odd, 2000) for n in (pos, neg)])
    cases, places = np.unique(hits, axis=0, return_inverse=True)
    scores = [[-(np.arange(n) < k).astype(float) for n, k in zip((pos, neg), case, strict=True)]
              for case in cases]  # fmt: skip
    ps = np.array([scores_differ(*both) for both in scores])[places.ravel()]
    for level in (ALARM / 3, 0.05):
        assert np.mean(ps <= level) < level + 3 * np.sqrt(level / len(ps))


@given(scores, scores)
@settings(max_examples=40, deadline=None)
def test_a_short_curve_is_scikit_learns(pos, neg):
    fpr, tpr, _ = roc_curve([1] * len(pos) + [0] * len(neg), pos + neg, drop_intermediate=False)
    curve = roc(pos, neg)
    assert curve["fpr"] == pytest.approx(fpr)
    assert curve["tpr"] == pytest.approx(tpr)


def test_a_long_curve_keeps_its_ends_its_shape_and_low_rates():
    rng = np.random.default_rng(7)
    pos, neg = rng.normal(1, 1, 5000), rng.normal(0, 1, 5000)
    curve = roc(pos, neg, most=100)
    fpr, tpr = np.array(curve["fpr"]), np.array(curve["tpr"])
    assert 50 < len(fpr) == len(tpr) <= 100
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()
    assert ((fpr > 0) & (fpr <= 0.01)).sum() >= 10
    assert np.trapezoid(tpr, fpr) == pytest.approx(auroc(pos, neg), abs=0.005)


@given(scores, scores, st.sampled_from([0.01, 0.1, 0.25, 0.5, 1.0]))
@settings(max_examples=80, deadline=None)
def test_a_rate_is_that_above_the_negative_that_so_many_pass(pos, neg, fpr):
    value, low, high = tpr_at(pos, neg, fpr)
    kept = floor(fpr * (len(neg) + 1) + 1e-9)
    if kept == 0:
        assert value is low is high is None
        return
    cut = sorted(neg)[-kept] if kept <= len(neg) else -np.inf
    assert value == np.mean(np.array(pos) > cut)
    assert 0 <= low <= value <= high <= 1


@pytest.mark.parametrize(("negatives", "fpr"), [(98, 0.01), (99, 0.01), (998, 0.001), (999, 0.001)])
def test_a_rate_needs_negatives(negatives, fpr):
    known = negatives in (99, 999)
    value, low, high = tpr_at([2000.0] * 9, np.arange(negatives), fpr)
    assert (value == 1) if known else value is low is high is None
    # Even above the highest negative the false alarms may be more.
    assert low == 0 if known else low is None


@pytest.mark.parametrize(("others", "fpr"), [(4000, 0.001), (1000, 0.01), (150, 0.01), (60, 0.1)])
@pytest.mark.parametrize("shift", [0.0, 1.5])
def test_a_rate_is_unbiased_and_covered(others, fpr, shift):
    rng = np.random.default_rng(13)
    truth = norm.sf(norm.isf(fpr) - shift)
    found = np.array(
        [tpr_at(rng.normal(shift, 1, 1000), rng.normal(0, 1, others), fpr) for _ in range(120)]
    )
    assert np.mean((found[:, 1] <= truth) & (truth <= found[:, 2])) >= 0.95
    error = found[:, 0].std() / np.sqrt(120)
    assert found[:, 0].mean() <= truth + 3.5 * error
    assert found[:, 0].mean() >= 0.6 * truth


def test_a_rate_covers_ties():
    """Scores of few values: a threshold between them, at exactly this rate, does not exist."""
    rng, covered = np.random.default_rng(14), 0
    for _ in range(200):
        pos, neg = rng.binomial(1, 0.3, 500), rng.binomial(1, 0.05, 400)
        low, high = tpr_at(pos, neg, 0.1)[1:]
        covered += low <= 0.3 <= high
    assert covered >= 190


def test_a_large_sample_has_a_narrow_rate():
    value, low, high = tpr_at(np.arange(4000) + 4000, np.arange(4000), 0.001)
    assert value == high == 1 and low > 0.998
    noise = np.arange(4000)
    value, low, high = tpr_at(noise, noise, 0.01)
    assert value == pytest.approx(0.01, abs=5e-4)
    assert 0.003 < low < value < high < 0.02


def test_ties_are_not_split():
    # Two of 199 others may be the threshold at 1 %, and what ties with it does not pass.
    assert tpr_at([9, 9, 10], [9, 9] + [0] * 197, 0.01)[0] == pytest.approx(1 / 3)
    assert tpr_at([9, 9, 10], [9] + [0] * 198, 0.01)[0] == 1


@pytest.mark.parametrize("measure", [auroc, auroc_interval, scores_differ, roc])
@pytest.mark.parametrize(("pos", "neg"), [([], [1.0]), ([1.0], []), ([np.nan], [1.0])])
def test_missing_scores_are_an_error(measure, pos, neg):
    with pytest.raises(DataError, match="scores"):
        measure(pos, neg)
    with pytest.raises(DataError, match="scores"):
        tpr_at(pos, neg, 0.01)


def test_a_long_curve_keeps_the_corner_of_a_perfect_attack():
    curve = roc(np.arange(5000, 9000), np.arange(5000))
    assert len(curve["fpr"]) <= 200
    assert (0, 1) in zip(curve["fpr"], curve["tpr"], strict=True)
