"""The 25 families: which is chosen, and what is passed over or counted."""

from __future__ import annotations

import io
import math
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedsynth.methods.copula import families, fits
from fedsynth.methods.copula.families import (
    FAMILIES,
    POINT,
    Effort,
    Fit,
    Outcome,
    distance,
    fit_feature,
    parameters_of,
    thin,
)

SHAPES = {
    "genextreme": (0.2,),
    "exponweib": (2.0, 1.5),
    "vonmises": (2.0,),
    "weibull_max": (2.0,),
    "weibull_min": (1.5,),
    "wrapcauchy": (0.4,),
    "powerlaw": (1.7,),
    "erlang": (2,),
    "pareto": (2.5,),
    "gamma": (2.5,),
    "lognorm": (0.8,),
    "beta": (2.0, 0.7),
    "lomax": (2.5,),
    "chi": (3,),
    "chi2": (3,),
    "pearson3": (1.2,),
    "rdist": (1.5,),
}
# Families that hold the named one exactly, for some parameters. With location and scale free,
# erlang, chi2 and pearson3 are gamma, lomax is pareto; weibull_max is a genextreme.
GAMMAS = {"gamma", "erlang", "chi2", "pearson3"}
HOLDING = {
    **{name: {name} for name in FAMILIES},
    **dict.fromkeys(GAMMAS, GAMMAS),
    "pareto": {"pareto", "lomax"},
    "lomax": {"pareto", "lomax"},
    "weibull_max": {"weibull_max", "genextreme"},
    "expon": {"expon", "weibull_min", "exponweib", "genextreme", *GAMMAS},
    "weibull_min": {"weibull_min", "exponweib"},
    "uniform": {"uniform", "beta", "powerlaw", "rdist", "wrapcauchy"},
    "powerlaw": {"powerlaw", "beta"},
    "maxwell": {"maxwell", "chi"},
}
# With these shapes the others differ from every other family by more than 2,000 rows' noise.
DISTINCT = {"norm", "cauchy", "pareto", "lomax", "logistic", "wrapcauchy"}
ROWS = 2000


def drawn(name, seed=0):
    """Rows of a family, moved and stretched; vonmises stays on its circle, elsewhere."""
    place, scale = (11.0, 1.0) if name == "vonmises" else (3.0, 2.0)
    rng = np.random.default_rng([seed, FAMILIES.index(name)])
    shapes = SHAPES.get(name, ())
    return place + scale * getattr(stats, name).rvs(*shapes, size=ROWS, random_state=rng)


def only_among(names, monkeypatch):
    holds = families._holds
    monkeypatch.setattr(families, "_holds", lambda k, x: FAMILIES[k] in names and holds(k, x))


def own_statistic(name, rows):
    """Scipy's own fit to every row, and scipy's own test."""
    family = getattr(stats, name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return stats.ks_1samp(rows, family.cdf, args=family.fit(rows)).statistic


# Of those that are the same family one.
ONE_EACH = sorted({*FAMILIES} - {"erlang", "chi2", "pearson3", "lomax"})


@pytest.mark.parametrize("name", ONE_EACH)
def test_the_family_that_made_the_rows_is_found_or_one_as_near(monkeypatch, name):
    """One that holds it, or else one as near as scipy's own fit of it to every row.

    As near: within half the spacing of 100 screening points. Either way the Kolmogorov-Smirnov test
    does not tell the choice from the rows.
    """
    rows = drawn(name)
    turn = ONE_EACH.index(name)
    if turn % 10:
        # All others at once are every tenth's rivals, elsewhere one in twelve at a time.
        only_among(HOLDING[name] | set(FAMILIES[turn % 12 :: 12]), monkeypatch)
    fit = fit_feature(rows, Effort()).fit
    gap = distance(fit.family, fit.parameters, np.sort(rows))
    if fit.name not in HOLDING[name]:
        assert name not in DISTINCT
        assert gap <= own_statistic(name, rows) + 0.005
    assert stats.kstwo.sf(gap, ROWS) > 0.05
    assert fit.statistic == pytest.approx(gap, abs=0.002)


# Closed, searched from moments, bounded, of whole shapes; exponweib's moments are remembered.
@pytest.mark.parametrize("name", ["norm", "gamma", "beta", "erlang", "wrapcauchy", "exponweib"])
def test_a_fit_in_full_is_scipys_own(name):
    # Heavy enough that searches start at the moments, not beside the lowest row.
    rows = np.sort(drawn("pareto")[:60])
    with families.ignore_warnings():
        own = getattr(stats, name).fit(rows)
        assert families._estimate(FAMILIES.index(name), rows, None) == own


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_distribution_that_was_fitted(name):
    family = FAMILIES.index(name)
    place, scale = (11.0, 1.0) if name == "vonmises" else (3.0, 2.0)
    fit = Fit(family, (*SHAPES.get(name, ()), place, scale), 0.0)
    again = np.sort(fit.draw(ROWS, np.random.default_rng(1)))
    assert stats.kstwo.sf(distance(family, fit.parameters, again), ROWS) > 0.01
    assert len(fit.parameters) == parameters_of(family) <= families.MOST_PARAMETERS


@given(st.lists(st.floats(-5, 5), min_size=1, max_size=40), st.floats(-3, 3), st.floats(0.1, 3))
@settings(deadline=None, max_examples=15)
def test_the_distance_is_scipys(values, place, scale):
    expected = stats.ks_1samp(values, stats.norm.cdf, args=(place, scale)).statistic
    distances = distance(FAMILIES.index("norm"), (place, scale), np.sort(values))
    assert distances == pytest.approx(expected)


def test_in_full_no_family_is_nearer_than_the_chosen_and_screening_is_hardly_worse():
    """Ties, an outlier, a mixture: what no family fits well."""
    rng = np.random.default_rng(0)
    mixed = np.where(rng.random(70) < 0.3, 0.0, np.round(rng.gamma(2, 2, 70)))
    rows = np.append(mixed, 1e6)
    fast, full = (fit_feature(rows, e).fit for e in (Effort(), Effort(10**6, 10**6, 25)))
    ordered = np.sort(rows)
    gaps = [distance(fit.family, fit.parameters, ordered) for fit in (fast, full)]
    assert gaps[0] <= gaps[1] + 0.03
    assert all(gaps[1] <= own_statistic(name, rows) + 1e-12 for name in ("cauchy", "lognorm"))


def test_a_constant_feature_is_a_point():
    outcome = fit_feature(np.full(30, 2.5), Effort())
    assert outcome.fit == Fit(POINT, (2.5,), 0.0)
    assert outcome.fit.name == "point"
    assert outcome.fit.draw(3, np.random.default_rng(0)).tolist() == [2.5] * 3
    assert fit_feature(np.array([7.0]), Effort()).fit.parameters == (7.0,)
    assert fit_feature(np.zeros(0), Effort()).fit is None


def test_families_with_more_parameters_than_rows_are_passed_over_not_counted():
    outcome = fit_feature(np.array([1.0, 2.0]), Effort())
    assert parameters_of(outcome.fit.family) == 2
    assert not {k for k in outcome.failed if parameters_of(k) > 2}


def test_families_that_fail_are_counted_and_passed_over(monkeypatch):
    rows = drawn("norm")
    result = {
        "norm": ValueError("no"),
        "logistic": (0.0, 1e101),
        "cauchy": (math.nan, 1.0),
        "maxwell": (0.0, -1.0),
        "expon": (0.0, 0.0),
    }

    def failing(name):
        def fit(self, *_, **__):
            if isinstance(result[name], Exception):
                raise result[name]
            return result[name]

        return fit

    for name in result:
        monkeypatch.setattr(type(getattr(stats, name)), "fit", failing(name))
    outcome = fit_feature(rows, Effort())
    assert set(result) <= {FAMILIES[k] for k in outcome.failed}
    assert outcome.fit.name not in result


@pytest.mark.filterwarnings("error")
def test_no_warning_of_a_library_comes_through():
    for rows in ([0.0, 0.0, 1.0], [1e-300, 1.0, 1e300], list(range(9)), [-1e15, 0.0, 1e15, 5.0]):
        outcome = fit_feature(np.array(rows), Effort(finalists=1, evaluations=5))
        assert outcome.fit is None or math.isfinite(outcome.fit.statistic)


def test_spaced_points_leave_out_half_a_spacing_at_either_end():
    assert thin(np.arange(10.0), 5).tolist() == [1, 3, 5, 7, 9]
    assert thin(np.arange(10.0), 10).tolist() == list(range(10))


def test_processes_change_nothing(tmp_path, monkeypatch):
    """And run no module of the working directory."""
    (tmp_path / "numpy.py").write_text("open('ran', 'w').write('with private values')\n")
    monkeypatch.chdir(tmp_path)
    # As a shell of Python has it.
    monkeypatch.syspath_prepend("")
    rng = np.random.default_rng(0)
    features = [rng.gamma(2, size=40) for _ in range(2)] + [np.ones(4), np.zeros(0)]
    # Searches that are cut short are as good to compare.
    effort = Effort(20, 30, 1, 3)
    alone = fits.fit_features(features, effort, processes=1)
    with warnings.catch_warnings(action="error"):
        assert fits.fit_features(features, effort, processes=2) == alone
    assert not (tmp_path / "ran").exists()
    assert [one.fit is None for one in alone] == [False] * 3 + [True]
    assert len({one.fit for one in alone}) == 4
    for stranger in ("/does/not/exist", "/bin/false", "/bin/echo"):
        # The last answers, with something else.
        monkeypatch.setattr(fits.sys, "executable", stranger)
        with pytest.warns(UserWarning, match="fitted here, to the same result"):
            assert fits.fit_features(features, effort, processes=2) == alone


GARBLED = ("", "[", "[1]", "null", "[[[30, [], 0], []]]", "[[[0, [NaN, 1], 0], []]]", "[" * 9999)


@pytest.mark.parametrize("answer", [*GARBLED, "[[null, [99]]]", "[[[0, [1], 0.5], []]]"])
def test_what_is_no_answer_of_a_helper_is_not_taken(answer):
    helper = SimpleNamespace(stdout=io.BytesIO(answer.encode()), wait=lambda: 0)
    assert fits._read_outcomes(helper, 1) == []


def test_threads_asked_for_bound_the_processes(monkeypatch):
    started = []
    monkeypatch.setattr(fits, "_start", lambda share, effort: started.append(len(share)))
    monkeypatch.setattr(fits, "fit_feature", lambda values, effort: Outcome(None, ()))
    monkeypatch.setattr(fits.os, "sched_getaffinity", lambda _: set(range(4)), raising=False)
    features = [np.arange(5.0) + k for k in range(60)]
    for threads, expected in (("1", []), ("2", [30]), ("8", [30])):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        fits.fit_features(features, Effort())
        assert started == expected
        started.clear()
    fits.fit_features(features[:40], Effort())
    assert started == [], "a process is not worth starting for so few"
