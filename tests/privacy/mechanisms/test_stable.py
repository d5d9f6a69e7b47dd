"""Stable noise: its density, what it costs as a vector, and that it is drawn as it says."""

from __future__ import annotations

import itertools
import math
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import gamma, ndtr

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy import accounting
from fedsynth.privacy.accounting import charged, renyi, spent, tight
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.curves import orders
from fedsynth.privacy.mechanisms import mechanism_of
from fedsynth.privacy.mechanisms import stable_law as law
from fedsynth.privacy.mechanisms.pure import amplified, pure_curve, pure_delta
from fedsynth.privacy.mechanisms.stable import LARGEST_ALPHA
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.spelling import read_terms, spell
from fedsynth.privacy.verify import moments, pure
from fedsynth.privacy.verify.charges import Charge
from tests.charges import charges_of

DELTA = 1e-5
ALPHAS = st.one_of(st.just(1.0), st.floats(1, LARGEST_ALPHA), st.just(LARGEST_ALPHA))
SOME = [1.0, 1.2, 1.5, 1.8, 1.9, 1.99, 1.999, LARGEST_ALPHA]

# Score bound, pure epsilon of one number at scale 1, mean magnitude: computed apart, by quadrature
# on the real line and by the tail series.
TABLE = [
    (1.0, 1.000, 0.9624, math.inf),
    (1.5, 1.0087, 0.9941, 1.7055),
    (1.8, 1.2648, 1.2488, 1.2687),
    (1.9, 1.4749, 1.4555, 1.1903),
    (1.95, 1.6805, 1.6571, 1.1576),
    (1.99, 2.1176, 2.0847, 1.1340),
    (1.999, 2.6389, 2.5946, 1.1289),
]


def terms(multiplier: float, alpha: float = 1.7, **changes) -> Terms:
    given = {"unit": "record", "trust": "central", "clip": 1.0, "norm": "l1"}
    kind = {"mechanism": "stable", "alpha": alpha}
    return Terms(**{**given, **kind, "noise_multiplier": multiplier, **changes})


def gaussian(multiplier: float, **changes) -> Terms:
    given = {"unit": "record", "trust": "central", "clip": 1.0}
    return Terms(**{**given, "noise_multiplier": multiplier, **changes})


def charge_of(promised: Terms) -> float:
    return promised.kind.pure_epsilon(promised.noise_multiplier, promised.sampling, False)


PLACES = np.sinh(np.linspace(1e-9, 40, 4000))


@cache
def tails_of(alpha: float) -> np.ndarray:
    return np.log(law.survival(PLACES, alpha))


def cdf(x: np.ndarray, alpha: float) -> np.ndarray:
    """Of scale 1, by interpolation on a fine grid: good to 1e-6."""
    tails = np.exp(np.interp(np.abs(x), PLACES, tails_of(alpha)))
    return np.where(x > 0, 1 - tails, tails)


@pytest.mark.parametrize(("alpha", "bound", "epsilon", "magnitude"), TABLE)
def test_the_figures_of_the_table_to_every_printed_digit(alpha, bound, epsilon, magnitude):
    assert law.score_bound(alpha) == pytest.approx(bound, abs=5.1e-5)
    assert law.scalar_epsilon(alpha, 1.0) == pytest.approx(epsilon, abs=5.1e-5)
    assert law.mean_magnitude(alpha) == pytest.approx(magnitude, abs=5.1e-5)


@settings(max_examples=10)
@given(st.floats(0.01, 100))
def test_cauchy_noise_costs_one_number_the_closed_form_and_no_less(noise: float):
    exact = 2 * math.asinh(1 / (2 * noise))
    assert exact <= law.scalar_epsilon(1.0, noise) <= exact * (1 + 1e-6)


def test_cauchy_density_score_and_tail_are_the_closed_forms():
    x = np.concatenate([[0.0], np.geomspace(1e-6, 1e12, 200)])
    np.testing.assert_allclose(law.density(x, 1.0), 1 / (np.pi * (1 + x * x)), rtol=1e-12)
    np.testing.assert_allclose(law.score(-x, 1.0), -2 * x / (1 + x * x), rtol=1e-12, atol=1e-15)
    tail = law.survival(x[60:], 1.0)
    np.testing.assert_allclose(tail, np.arctan2(1, x[60:]) / np.pi, rtol=1e-9)
    assert 1 <= law.score_bound(1.0) <= 1 + 1e-6


def test_towards_alpha_two_the_density_becomes_the_normal_one():
    x = np.linspace(0, 4, 50)
    normal = stats.norm(scale=math.sqrt(2)).pdf(x)
    np.testing.assert_allclose(law.density(x, LARGEST_ALPHA), normal, rtol=1e-4)
    assert abs(law.density(x, 1.9) / normal - 1).max() > 1e-2


@settings(max_examples=25)
@given(ALPHAS, st.floats(0, 12))
def test_the_density_equals_a_quadrature_on_the_real_line(alpha: float, x: float):
    """By another library, where cancellation leaves that any digits: to 1e-10 absolute."""
    value, _ = integrate.quad(
        lambda t: math.exp(-(t**alpha)) * math.cos(t * x), 0, 50, limit=2000, epsabs=1e-12
    )
    assert float(law.density(np.array([x]), alpha)[0]) == pytest.approx(value / math.pi, abs=1e-10)


@pytest.mark.parametrize("alpha", [a for a in SOME if a > 1])
@pytest.mark.parametrize("x", [25.0, 60.0, 1e4])
def test_far_out_the_density_equals_its_tail_series(alpha: float, x: float):
    k = np.arange(1, 9)
    # (-1)^k sin(k alpha pi / 2), without losing digits of 2 - alpha.
    sines = -np.sin(k * (2 - alpha) * np.pi / 2)
    series = -(sines * gamma(alpha * k + 1) / gamma(k + 1) * x ** (-alpha * k - 1)).sum() / np.pi
    here, beyond = law.density(np.array([x]), alpha), law.survival(np.array([x]), alpha)
    assert float(here[0]) == pytest.approx(series, rel=1e-6)
    tails = -(sines * gamma(alpha * k) / gamma(k + 1) * x ** (-alpha * k)).sum() / np.pi
    assert float(beyond[0]) == pytest.approx(tails, rel=1e-6)


@settings(max_examples=8)
@given(ALPHAS, st.floats(0.01, 20), st.floats(0.1, 10))
def test_the_tail_is_the_integral_of_the_density_and_the_score_its_slope(alpha, x, width):
    nodes, weights = np.polynomial.legendre.leggauss(200)
    places = x + width * (nodes + 1) / 2
    mass = float((law.density(places, alpha) * weights).sum() * width / 2)
    ends = law.survival(np.array([x, x + width]), alpha)
    assert mass == pytest.approx(float(ends[0] - ends[1]), rel=1e-7, abs=1e-15)
    fall = float((law.score(places, alpha) * weights).sum() * width / 2)
    here, there = law.density(np.array([x, x + width]), alpha)
    assert fall == pytest.approx(math.log(here / there), rel=1e-7)


@settings(max_examples=4)
@given(ALPHAS)
def test_the_score_bound_is_rounded_up_from_what_a_mixture_of_normals_gives(alpha: float):
    """Another representation altogether: positive integrals over Kanter's two variables."""
    apart = pure._score_bound(alpha)
    assert apart <= law.score_bound(alpha) <= apart * (1 + 1e-6)
    x = np.geomspace(1e-3, 1e3, 400)
    assert law.score(x, alpha).max() <= law.score_bound(alpha)


@pytest.mark.parametrize(
    ("alpha", "noise"), [(1.0, 0.3), (1.5, 4.0), (1.9, 0.3), (LARGEST_ALPHA, 4.0)]
)
@pytest.mark.parametrize("length", [1, 4, 256])
def test_no_vector_costs_more_than_its_charge(alpha: float, noise: float, length: int):
    """A shift of L1 norm 1 spread over so many coordinates, at the worst place of each."""
    charge = charge_of(terms(noise, alpha))
    reached = length * law.scalar_epsilon(alpha, noise * length) / (1 + 1e-7)
    assert reached <= charge
    if length == 256:
        # The charge is reached in the limit: for vectors of any length none smaller would do.
        assert reached >= 0.99 * charge
    if length > 1 and alpha == 1:
        assert reached > law.scalar_epsilon(alpha, noise)


@settings(max_examples=15)
@given(
    st.sampled_from(SOME),
    st.floats(0.2, 20),
    st.lists(st.floats(-1, 1), min_size=1, max_size=8).filter(lambda d: any(map(abs, d))),
    st.integers(0, 2**32),
)
def test_no_shift_within_the_clip_and_no_outcome_exceeds_the_charge(alpha, noise, shift, seed):
    moved = np.array(shift) / max(1e-12, np.abs(shift).sum()) / noise
    rng = np.random.default_rng(seed)
    z = rng.standard_cauchy((50, len(moved))) * 10.0 ** rng.integers(-2, 3)
    ratios = np.log(law.density(z, alpha) / law.density(z + moved, alpha)).sum(axis=1)
    assert np.abs(ratios).max() <= charge_of(terms(noise, alpha)) * (1 + 1e-9)


@settings(max_examples=8)
@given(ALPHAS, st.floats(0.05, 20), st.floats(1e-4, 1))
def test_a_poisson_sample_costs_no_more_than_its_charge_in_both_directions(alpha, noise, rate):
    x = np.linspace(-20, 20, 161)
    there, here = law.density(x - 1 / noise, alpha), law.density(x, alpha)
    ratios = np.log1p(rate * (there / here - 1))
    charge = charge_of(terms(noise, alpha, sampling=Poisson(rate)))
    assert np.abs(ratios).max() <= charge
    again = Charge("stable", noise, alpha, "poisson", rate)
    assert charge == pytest.approx(pure.release(again, False), rel=1e-6)


@given(st.floats(1e-6, 2000), st.floats(1e-6, 1))
def test_amplification_is_the_textbook_formula_without_its_overflow(epsilon: float, rate: float):
    found = amplified(epsilon, rate)
    assert found <= epsilon * (1 + 1e-12)
    if epsilon < 600:
        exact = math.log1p(rate * math.expm1(epsilon))
        assert found == pytest.approx(exact, rel=1e-9)
    else:
        assert found == pytest.approx(epsilon + math.log(rate), rel=1e-12)


def test_sampling_that_nothing_covers_is_refused_by_both_accountants():
    fixed = terms(1.0, unit="client", sampling=FixedSize(2, 10))
    other = gaussian(9.0, unit="client", sampling=FixedSize(2, 10))
    drawn = terms(1.0, unit="client", sampling=Poisson(0.1))
    for counts in ({fixed: 1}, {other: 1, drawn: 1}):
        with pytest.raises(PrivacyError, match="covers"):
            spent(counts, DELTA)
        with pytest.raises(PrivacyError, match=r"covers|no analysis"):
            moments.compose(charges_of(counts), replace_one=True)
    for wrong in (Charge("gaussian", 1.0), Charge("laplace", 1.0)):
        with pytest.raises(PrivacyError):
            pure.release(wrong, False)


def test_beside_fixed_size_rounds_a_release_is_charged_at_twice_the_clip():
    fixed = gaussian(60.0, unit="client", sampling=FixedSize(2, 10))
    beside = {fixed: 1, terms(8.0, unit="client"): 2}
    alone = spent({terms(4.0): 2}, DELTA)
    assert spent(beside, DELTA).rdp >= alone.rdp
    assert spent(beside, DELTA).pld is None
    second = moments.epsilon(moments.compose(charges_of(beside), replace_one=True), DELTA)
    assert alone.rdp <= second <= spent(beside, DELTA).rdp


@given(st.floats(1e-3, 6), st.sampled_from([2, 3, 5, 17, 63]))
def test_the_renyi_curve_is_that_of_randomised_response(eps0: float, order: int):
    multiplier = law.score_bound(1.7) / eps0
    exact = (math.sinh(order * eps0) - math.sinh((order - 1) * eps0)) / math.sinh(eps0)
    ours = pure.renyi(eps0, order)
    assert ours == pytest.approx(math.log(exact) / (order - 1), rel=1e-6, abs=1e-12)
    curve = accounting._curve(accounting._bare(terms(multiplier)), False)
    index = list(orders()).index(order)
    assert curve[index] == pytest.approx(ours, rel=1e-5, abs=1e-12)


@given(st.floats(1e-7, 900))
def test_the_renyi_curve_stays_finite_and_below_pure_epsilon(eps0: float):
    curve = pure_curve(eps0)
    assert (curve > 0).all() and (curve <= eps0 * (1 + 1e-9)).all()
    # eps0-DP is eps0^2/2-zCDP (Bun and Steinke 2016).
    assert (curve <= orders() * eps0**2 / 2 * (1 + 1e-9)).all()


@given(st.floats(1e-3, 6), st.floats(-8, 8))
def test_the_curve_of_a_pure_release_is_that_of_two_outcomes(eps0: float, epsilon: float):
    p = np.array([1 / (1 + math.exp(-eps0)), 1 / (1 + math.exp(eps0))])
    exact = np.maximum(p - math.exp(epsilon) * p[::-1], 0).sum()
    found = float(pure_delta(np.array([epsilon]), eps0)[0])
    assert found == pytest.approx(exact, rel=1e-9, abs=1e-15)


@settings(max_examples=4)
@given(st.sampled_from(SOME), st.floats(0.5, 50), st.integers(1, 4), st.floats(0.8, 5))
def test_a_job_costs_what_an_exact_sum_over_outcomes_says(alpha, multiplier, count, sigma):
    """Stable releases beside a Gaussian one: delta is a mean of the Gaussian's own curve."""
    eps0 = law.score_bound(alpha) / multiplier
    likely = 1 / (1 + math.exp(-eps0))

    def gauss(epsilon: float) -> float:
        first = ndtr(1 / (2 * sigma) - epsilon * sigma)
        return first - math.exp(epsilon) * ndtr(-1 / (2 * sigma) - epsilon * sigma)

    def delta_at(epsilon: float) -> float:
        total = 0.0
        for signs in itertools.product([1, -1], repeat=count):
            mass = math.prod(likely if sign > 0 else 1 - likely for sign in signs)
            total += mass * gauss(epsilon - sum(signs) * eps0)
        return total

    for epsilon in (0.5 / sigma, count * eps0 / 2 + 1 / sigma):
        delta = delta_at(epsilon)
        if 1e-9 < delta < 0.9:
            found = tight({terms(multiplier, alpha): count, gaussian(sigma): 1}, delta)
            assert epsilon - 1e-6 <= found <= epsilon + 1e-3


@settings(max_examples=10)
@given(ALPHAS, st.floats(0.3, 100), st.integers(1, 30), st.floats(1e-4, 1))
def test_both_accountants_agree_about_stable_releases(alpha, multiplier, count, rate):
    counts = {terms(multiplier, alpha): count, terms(3.0, 1.5, sampling=Poisson(rate)): 2}
    first = spent(counts, DELTA)
    again = charges_of(counts)
    assert moments.epsilon(moments.compose(again, False), DELTA) == pytest.approx(
        first.rdp, rel=1e-3, abs=1e-3
    )
    exact = pure.epsilon(again, DELTA)
    if first.pld is not None and exact is not None:
        assert exact - 1e-9 <= first.pld <= exact + 1e-3 * (1 + exact)


@settings(max_examples=5)
@given(st.floats(0.02, 8))
def test_one_release_costs_at_most_its_pure_epsilon_and_dp_accountings_pair(multiplier: float):
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    eps0 = charge_of(terms(multiplier))
    found = spent({terms(multiplier): 1}, DELTA).epsilon
    assert found <= eps0 + 1e-4 or eps0 > 30
    theirs = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(eps0))
    assert tight({terms(multiplier): 1}, DELTA) <= theirs.get_epsilon_for_delta(DELTA) + 1e-9
    # Not Gaussian: a normal variable of the same scale would be charged less.
    assert spent({terms(multiplier): 3}, DELTA).epsilon >= 0.9 * min(3 * eps0, 1e9) or eps0 < 1


def test_no_noise_costs_everything():
    for counts in ({terms(0.0): 1}, {terms(0.0): 1, gaussian(1.0): 1}):
        assert spent(counts, DELTA).epsilon == math.inf
        assert renyi(counts, DELTA) == math.inf
    assert pure.epsilon({Charge("stable", 0.0, 1.7): 1}, DELTA) is None


def test_calibration_finds_the_noise_of_one_release_and_of_a_plan():
    alone = calibrate(lambda m: {terms(m): 1}, 1.0, DELTA)
    assert alone == pytest.approx(law.score_bound(1.7), rel=2e-3)

    def plan(multiplier: float) -> dict[Terms, int]:
        return {terms(2 * multiplier): 3, gaussian(multiplier): 5, terms(multiplier, 1.0): 1}

    found = calibrate(plan, 2.0, DELTA)
    assert 0.998 * 2 < spent(plan(found), DELTA).epsilon <= 2.0


def test_a_row_a_client_in_a_job_about_records_is_charged_at_half_its_noise():
    whole = terms(12.0, unit="client", trust="distributed", survivors=3)
    half = terms(6.0, trust="distributed", survivors=3)
    assert charged({whole: 3}, 2, "record") == {half: 3}
    drawn = terms(6.0, unit="client", trust="local", sampling=Poisson(0.1))
    assert charged({drawn: 9}, 4, "client") == {terms(6.0, unit="client", trust="local"): 4}


@pytest.mark.parametrize(
    "changes",
    [
        {"norm": "l2"},
        {"alpha": None},
        {"mechanism": "laplace"},
        {"mechanism": "gaussian", "norm": "l2"},
        {"mechanism": "exponential"},
        {"alpha": 2.0},
        {"alpha": 0.99},
        {"alpha": 1.9999999},
        {"alpha": math.nan},
        {"alpha": -math.inf},
    ],
)
def test_terms_that_do_not_fit_together_are_refused(changes: dict):
    with pytest.raises((PrivacyError, ConfigError)):
        terms(1.0, **changes)


@given(ALPHAS, st.floats(0.01, 100), st.integers(1, 500), st.integers(1, 500))
def test_shares_of_the_survivors_have_the_scale_of_the_whole_and_more_have_more(
    alpha, multiplier, survivors, more
):
    shared = terms(multiplier, alpha, trust="distributed", survivors=survivors, clip=2.0)
    assert shared.client_scale * survivors ** (1 / alpha) == pytest.approx(shared.scale)
    assert shared.summed_scale(survivors) == pytest.approx(shared.scale)
    assert shared.summed_scale(survivors + more) > shared.scale * (1 + 1e-9)
    assert shared.summed_scale(0) == shared.scale
    assert terms(multiplier, alpha).summed_scale(50) == multiplier
    assert terms(multiplier, alpha, trust="local").client_scale == multiplier


def test_terms_of_other_mechanisms_are_written_as_they_always_were():
    assert list(spell(gaussian(1.0))) == [
        "unit",
        "trust",
        "clip",
        "noise_multiplier",
        "norm",
        "mechanism",
        "sampling",
        "survivors",
    ]
    assert read_terms(spell(terms(1.0, 1.5))) == terms(1.0, 1.5)
    for damage in ({"alpha": 2.5}, {"alpha": "1.5"}, {"alpha": None}, {"mechanism": "levy"}):
        with pytest.raises(PrivacyError, match=r"terms|index"):
            read_terms({**spell(terms(1.0)), **damage})
    with pytest.raises(PrivacyError, match="terms"):
        read_terms({**spell(gaussian(1.0)), "alpha": None})


def test_a_ledger_without_stable_noise_has_the_hashes_it_had_before_there_was_any():
    budget = Budget(epsilon=50, delta=1e-5, trust="central")
    ledger = Ledger.create(Job(budget=budget, job="x", format=1))
    kinds = [
        gaussian(5.0),
        gaussian(5.0, sampling=Poisson(0.1)),
        gaussian(5.0, mechanism="laplace", norm="l1"),
        gaussian(5.0, mechanism="exponential", norm="l1"),
        gaussian(5.0, unit="client", trust="distributed", survivors=3),
    ]
    for number, kind in enumerate(kinds):
        ledger.charge(Event("t", number, kind, "x"))
    assert ledger.head == "80a15765cafaad09ee1956abef60479c162404052e8f9bb12b3a5babd094ab82"


@pytest.mark.parametrize("alpha", [1.0, 1 + 1e-12, 1.2, 1.8, 1.99, LARGEST_ALPHA])
def test_draws_have_the_characteristic_function(alpha: float):
    draws = law.draws(100_000, alpha, NoiseSource(11))
    t = np.array([0.05, 0.3, 1.0, 2.0, 4.0])
    # A mean of 100,000 cosines: five standard deviations are 0.0112.
    np.testing.assert_allclose(
        np.cos(np.outer(t, draws)).mean(axis=1), np.exp(-(t**alpha)), atol=0.0112
    )
    assert abs(np.sin(draws).mean()) < 0.0112
    assert stats.kstest(draws, lambda x: cdf(x, alpha)).pvalue > 1e-6
    if alpha > 1.7:
        assert np.abs(draws).mean() == pytest.approx(law.mean_magnitude(alpha), rel=0.02)


def test_cauchy_draws_are_cauchy_into_the_tails():
    draws = law.draws(400_000, 1.0, NoiseSource(12))
    assert stats.kstest(draws, stats.cauchy.cdf).pvalue > 1e-6
    for far in (1e2, 1e3, 1e4):
        beyond = int((np.abs(draws) > far).sum())
        assert stats.binomtest(beyond, 400_000, 2 * stats.cauchy.sf(far)).pvalue > 1e-6


@pytest.mark.parametrize("alpha", SOME)
@pytest.mark.parametrize("word", [0, 1, 2**64 - 2, 2**64 - 1])
def test_the_most_extreme_words_give_finite_noise(word: int, alpha: float, monkeypatch):
    source = NoiseSource()
    monkeypatch.setattr(source, "words", lambda n: np.full(n, word, np.uint64))
    assert np.isfinite(law.draws(3, alpha, source)).all()


@pytest.mark.parametrize(("alpha", "answered"), [(1.0, 10), (1.5, 4), (1.9, 10)])
def test_a_sum_of_shares_is_noise_of_the_released_scale(alpha: float, answered: int):
    shared = terms(3.0, alpha, trust="distributed", survivors=4, clip=0.5)
    source = NoiseSource(14)
    total = np.zeros(60_000)
    for _ in range(answered):
        total += shared.client_noised(np.zeros(60_000), source)
    scaled = total / shared.summed_scale(answered)
    assert stats.kstest(scaled, lambda x: cdf(x, alpha)).pvalue > 1e-6
    # Wrong by a tenth it would show.
    assert stats.kstest(scaled * 1.1, lambda x: cdf(x, alpha)).pvalue < 1e-9


@given(st.floats(1e-9, 1e9), ALPHAS)
def test_what_is_released_lies_on_the_public_grid(scale: float, alpha: float):
    noisy = terms(scale, alpha).noised(np.full(20, 0.3 * scale), NoiseSource(0))
    grid = 2.0 ** (math.floor(math.log2(scale)) - 20)
    np.testing.assert_array_equal(np.remainder(noisy, grid), 0)
    assert np.array_equal(terms(0.0, alpha).noised(noisy, NoiseSource(0)), noisy)


def test_noise_that_is_not_known_is_never_replaced_by_another():
    for name, alpha in (("levy", None), ("stable", None), ("gaussian", 1.5), ("laplace", 1.5)):
        with pytest.raises((PrivacyError, ConfigError)):
            mechanism_of(name, alpha)


def lower_bound(hits: int, false_hits: int, draws: int) -> float:
    """Epsilon that a test's hits imply, each count at its Clopper-Pearson end, alpha 1e-7."""
    power = stats.beta.ppf(5e-8, hits, draws - hits + 1)
    false = stats.beta.isf(5e-8, false_hits + 1, draws - false_hits)
    return math.log(power / false)


@pytest.mark.parametrize(("alpha", "claimed"), [(1.0, 0.5), (1.5, 3.0), (1.9, 0.5)])
def test_the_best_attack_finds_less_than_is_claimed_and_not_far_less(alpha: float, claimed: float):
    """Neighbours 0 and the clip; whoever sees the release bets where the likelihood ratio is high.

    With too little noise the same attack finds more than is claimed.
    """
    draws = 100_000
    noise = law.score_bound(alpha) / claimed
    promised = terms(noise, alpha)
    assert spent({promised: 1}, DELTA).epsilon <= claimed * (1 + 1e-9)

    def attack(scale: float) -> float:
        source, counts = NoiseSource(15), []
        best = 0.9 * law.scalar_epsilon(alpha, scale)
        places = np.linspace(-30, 30 + 1 / scale, 300)
        ratio = np.log(law.density(places - 1 / scale, alpha) / law.density(places, alpha))
        for value in (1.0, 0.0):
            seen = terms(scale, alpha).noised(np.full(draws, value), source) / scale
            counts.append(int((np.interp(seen, places, ratio) > best).sum()))
        return lower_bound(counts[0], counts[1], draws)

    found = attack(promised.scale)
    assert 0.5 * claimed < found <= claimed
    assert attack(promised.scale / 2.5) > claimed
