"""The exponential mechanism: what it costs, and that it draws as it says."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import softmax
from scipy.stats import chisquare, norm

from fedsynth.errors import PrivacyError
from fedsynth.privacy.accounting import spent, tight
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.mechanisms.exponential import Exponential, bounded_range_delta
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.rows.clipping import clip_blocks
from fedsynth.privacy.rows.counting import MarginalRows
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.factored import FactoredRows
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.spelling import read_terms, spell
from fedsynth.privacy.verify import moments
from tests.charges import charge_of, charges_of

DELTA = 1e-5


def choice(multiplier, **changes):
    given = {"unit": "record", "trust": "central", "clip": 1.0, "norm": "l1"}
    return Terms(**{**given, "noise_multiplier": multiplier, "mechanism": "exponential", **changes})


def gaussian(multiplier):
    return Terms(unit="record", trust="central", clip=1.0, noise_multiplier=multiplier)


def pair(eps0, t):
    """The worst pair of two-valued distributions: losses t and t - eps0."""
    upper = (math.exp(eps0) - np.exp(t)) / (math.exp(eps0) - 1)
    p = np.array([upper, 1 - upper])
    return p, p * np.exp(-np.array([t, t - eps0]))


@settings(max_examples=25)
@given(st.floats(0.01, 5), st.floats(-6, 6))
def test_the_curve_is_the_largest_over_all_worst_pairs(eps0, epsilon):
    p, q = pair(eps0, np.linspace(0, eps0, 1001))
    assert (abs(q.sum(axis=0) - 1) < 1e-6).all()
    largest = np.maximum(p - np.exp(epsilon) * q, 0).sum(axis=0).max()
    found = float(bounded_range_delta(np.array([epsilon]), eps0)[0])
    assert found >= largest - 1e-12
    assert found == pytest.approx(largest, abs=1e-5)


@given(st.lists(st.floats(-3, 3), min_size=2, max_size=5), st.data())
@settings(max_examples=50)
def test_no_neighbouring_scores_exceed_the_curve(scores, data):
    """Directly: scores moved by at most 1 each, probabilities by softmax."""
    multiplier = data.draw(st.floats(0.3, 5))
    size = len(scores)
    moved = data.draw(st.lists(st.floats(-1, 1), min_size=size, max_size=size))
    p = softmax(np.array(scores) / multiplier)
    q = softmax((np.array(scores) + moved) / multiplier)
    for epsilon in np.linspace(-2, 2, 9):
        divergence = np.maximum(p - np.exp(epsilon) * q, 0).sum()
        bound = bounded_range_delta(np.array([epsilon]), 2 / multiplier)[0]
        assert divergence <= bound + 1e-9


@pytest.mark.parametrize("count", [1, 2, 3])
def test_composition_covers_every_choice_of_worst_pairs(count):
    """Brute force: products of worst pairs, each with its own t, at their own epsilon."""
    multiplier, delta = 2.0, 0.02
    eps0 = 2 / multiplier
    worst = 0.0
    for ts in itertools.combinations_with_replacement(np.linspace(0, eps0, 9), count):
        p, q = np.ones(1), np.ones(1)
        for t in ts:
            a, b = pair(eps0, t)
            p, q = np.outer(p, a).ravel(), np.outer(q, b).ravel()

        def excess(epsilon, p=p, q=q):
            return np.maximum(p - np.exp(epsilon) * q, 0).sum() - delta

        low, high = 0.0, count * eps0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        worst = max(worst, high)
    found = spent({choice(multiplier): count}, delta).pld
    assert found is not None
    assert found >= worst - 1e-9
    # The curve of all t at once dominates each, so it may cost a little more than any.
    assert found <= worst * 1.35


def adaptive(epsilons, multiplier, count):
    """The largest divergence that anybody reaches who picks each t after seeing the losses so far.

    Backwards: with k choices left, ``d_k(x) = max over t of P(t) d_(k-1)(x - t) + P(t - eps0)
    d_(k-1)(x - t + eps0)``, from the divergence of nothing, ``max(0, 1 - e^x)``.
    """
    eps0 = 2 / multiplier
    if count == 0:
        return np.maximum(0, -np.expm1(epsilons))
    t = np.linspace(0, eps0, 17)
    (upper, lower), _ = pair(eps0, t)
    likelier = adaptive(epsilons[..., None] - t, multiplier, count - 1)
    rarer = adaptive(epsilons[..., None] - t + eps0, multiplier, count - 1)
    return (upper * likelier + lower * rarer).max(axis=-1)


@pytest.mark.parametrize("multiplier", [1.0, 4.0])
def test_whoever_adapts_each_worst_pair_to_the_last_choice_is_covered_too(multiplier):
    epsilons = np.linspace(0, 5 / multiplier, 5)
    worst = adaptive(epsilons, multiplier, 3)
    loss = choice(multiplier).kind.loss(multiplier, Everyone(), 3)
    for epsilon, reached in zip(epsilons, worst, strict=True):
        if 1e-9 < reached < 1:
            assert loss.get_epsilon_for_delta(reached) >= epsilon - 1e-9
    assert tight({choice(multiplier): 3}, reached) == loss.get_epsilon_for_delta(reached)


@pytest.mark.parametrize(
    ("multiplier", "sigma", "count"), [(2.0, 1.5, 1), (20.0, 8.0, 2), (0.7, 3.0, 2)]
)
def test_choices_beside_a_sum_cost_what_an_integral_says(multiplier, sigma, count):
    """The Gaussian's loss is N(1/(2 s^2), 1/s^2); beyond it the curve of the choices counts."""
    eps0 = 2 / multiplier
    nodes, weights = np.polynomial.legendre.leggauss(40)

    def curve(x):
        if count == 1:
            return float(bounded_range_delta(np.array([x]), eps0)[0])
        # One more choice: its loss has density e^(l/2) / (4 sinh(eps0/2)) on [-eps0, eps0].
        ell = eps0 * nodes
        density = np.exp(ell / 2) / (4 * math.sinh(eps0 / 2))
        return float((eps0 * weights * density * bounded_range_delta(x - ell, eps0)).sum())

    def delta_at(epsilon):
        law = norm(1 / (2 * sigma**2), 1 / sigma)
        reach = count * eps0

        def density(x):
            return sigma * math.exp(-((sigma * x - 0.5 / sigma) ** 2) / 2) / math.sqrt(math.tau)

        inside, _ = quad(
            lambda x: density(x) * curve(epsilon - x), epsilon - reach, epsilon + reach, limit=200
        )
        # Beyond that the choices cannot matter: 1 - e^(epsilon - l).
        beyond = law.sf(epsilon + reach)
        tilted = norm(-1 / (2 * sigma**2), 1 / sigma).sf(epsilon + reach)
        return inside + beyond - math.exp(epsilon) * tilted

    for epsilon in (0.3 * eps0, eps0 + 1 / sigma):
        delta = delta_at(epsilon)
        found = tight({gaussian(sigma): 1, choice(multiplier): count}, delta)
        assert found == pytest.approx(epsilon, abs=3e-4)
        assert found >= epsilon - 1e-6


@settings(max_examples=8)
@given(st.floats(0.4, 40))
def test_one_choice_costs_its_pure_epsilon_at_the_most(multiplier):
    assert tight({choice(multiplier): 1}, 1e-9) <= 2 / multiplier + 2e-4
    # Exactly: where the curve meets delta.
    delta = 0.01
    eps0 = 2 / multiplier
    exact = eps0 + 2 * math.log1p(-math.sqrt(delta * -math.expm1(-eps0)))
    found = tight({choice(multiplier): 1}, delta)
    assert max(exact, 0) - 1e-9 <= found <= max(exact, 0) + 2e-4


@given(st.floats(0.001, 900), st.floats(-2000, 2000))
def test_the_curve_is_a_divergence_the_same_in_both_directions(eps0, epsilon):
    here, there = bounded_range_delta(np.array([epsilon, -epsilon]), eps0)
    assert max(0, -np.expm1(min(epsilon, 0))) <= here <= 1
    if abs(epsilon) < 300:
        mirrored = -np.expm1(epsilon) + np.exp(epsilon) * there
        assert here == pytest.approx(mirrored, rel=1e-6, abs=1e-9 * np.exp(max(epsilon, 0)))


def test_beside_fixed_size_rounds_a_choice_is_charged_at_half_its_multiplier():
    fixed = Terms(
        unit="client",
        trust="central",
        clip=1.0,
        noise_multiplier=60.0,
        sampling=FixedSize(2, 10),
    )
    counts = {fixed: 1, choice(30.0, unit="client"): 2}
    halves = spent({gaussian(15.0): 2}, DELTA).rdp
    assert spent(counts, DELTA).rdp >= halves
    assert spent(counts, DELTA).pld is None
    second = moments.epsilon(moments.compose(charges_of(counts), replace_one=True), DELTA)
    assert second <= spent(counts, DELTA).rdp
    exchanged = moments.curve(charge_of(choice(30.0)), replace_one=True)
    wanted = [moments.bounded_range(4 / 30, order) for order in moments.ORDERS]
    np.testing.assert_allclose(exchanged, wanted)


@pytest.mark.parametrize("eps0", [1e-9, 1e-3, 1.0, 50.0, 5000.0])
def test_the_second_accountant_stays_finite_and_below_pure_epsilon(eps0):
    for order in (1.1, 2.0, 64.0, 1024.0):
        found = moments.bounded_range(eps0, order)
        assert 0 <= found <= min(eps0, order * eps0**2 / 8) * (1 + 1e-9) + 1e-12
    assert moments.bounded_range(eps0, 1024.0) >= 0.2 * min(eps0, 1024 * eps0**2 / 8)


def test_choices_cost_about_what_a_gaussian_of_their_multiplier_costs_and_never_nothing():
    sums = {gaussian(10.0): 10}
    both = spent({**sums, choice(50.0): 10}, DELTA)
    alike = spent({**sums, gaussian(50.0): 10}, DELTA)
    assert both.pld is not None and alike.pld is not None
    assert spent(sums, DELTA).epsilon < both.pld
    assert both.pld == pytest.approx(alike.pld, rel=0.01)
    assert both.rdp == pytest.approx(alike.rdp)


@given(st.floats(0.05, 4), st.floats(1.1, 64))
def test_renyi_divergences_are_at_most_the_gaussians(eps0, order):
    """eps0-bounded range is eps0^2/8-zCDP (Cesar and Rogers 2021)."""
    assert moments.bounded_range(eps0, order) <= order * eps0**2 / 8 + 1e-12


def test_calibration_mixes_choices_and_sums():
    def plan(alone):
        return {gaussian(alone): 5, choice(3 * alone): 5}

    multiplier = calibrate(plan, 1.0, DELTA)
    assert 0.998 < spent(plan(multiplier), DELTA).epsilon <= 1.0


def test_choices_follow_the_softmax_of_their_scores():
    scores, scale = np.array([0.0, 1.0, 3.0, -2.0]), 2.0
    noise = NoiseSource(0)
    drawn = np.bincount(
        [Exponential().choose(scores, scale, noise) for _ in range(6_000)], minlength=4
    )
    assert chisquare(drawn, 6_000 * softmax(scores / scale)).pvalue > 1e-4
    assert Exponential().choose(scores, 0.0, noise) == 2


def test_a_choice_needs_a_trusted_server_and_everybody():
    for changes in (
        {"trust": "distributed"},
        {"trust": "local"},
        {"sampling": Poisson(0.5)},
        {"norm": "l2"},
    ):
        with pytest.raises(PrivacyError):
            choice(1.0, **changes)
    with pytest.raises(PrivacyError, match="choice"):
        choice(1.0).noised(np.zeros(3), NoiseSource(0))
    assert read_terms(spell(choice(2.0))) == choice(2.0)


@given(st.integers(1, 5), st.integers(0, 2**32))
def test_no_block_of_a_clipped_row_exceeds_the_clip(rows, seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(0, 10.0 ** rng.integers(-3, 4), (rows, 7))
    values[0, 3] = rng.choice([np.inf, np.nan, 1.0])
    starts = np.array([0, 2, 3])
    for one in values:
        kept = clip_blocks(DenseRows(one[None]), starts, 1.0)
        assert (np.add.reduceat(np.abs(kept), starts) <= 1.0).all()
    whole = clip_blocks(DenseRows(values), starts, 1.0)
    less = clip_blocks(DenseRows(values[1:]), starts, 1.0)
    assert (np.add.reduceat(np.abs(whole - less), starts) <= 1 + 1e-9).all()


def test_blocks_of_marginal_rows_are_their_tables():
    codes = np.array([[0, 1, 2], [1, 0, 0]])
    rows = MarginalRows(codes, (2, 2, 3), [(0, 1), (2,)])
    found = clip_blocks(rows, np.array([0, 4]), 1 + 1e-5)
    assert found.tolist() == [0, 1, 1, 0, 1, 0, 1]
    for starts in ([0, 3], [0], [1, 4], []):
        with pytest.raises(PrivacyError):
            clip_blocks(rows, np.array(starts, np.int64), 1.0)
    factored = FactoredRows([(np.ones((1, 2)), np.ones((1, 2)))])
    with pytest.raises(PrivacyError, match="FactoredRows"):
        clip_blocks(factored, np.array([0]), 1.0)
