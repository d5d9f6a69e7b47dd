"""Laws of a secret number of trials: drawn numbers against scipy's distributions."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import ConfigError
from fedsynth.privacy.trials import KINDS, Trials


def law(trials):
    return {
        "poisson": lambda: stats.poisson(trials.mean),
        "geometric": lambda: stats.geom(1 / trials.mean),
        "logarithmic": lambda: stats.logser(1 - trials.gamma),
    }[trials.kind]()


def drawn(trials, uniform):
    return trials.draw(SimpleNamespace(uniform=lambda count: np.array([uniform])))


@settings(max_examples=25)
@given(st.sampled_from(KINDS), st.floats(1.01, 300), st.integers(0, 60))
@example("logarithmic", 10.0, 1)
@example("poisson", 1.01, 0)
def test_a_number_is_drawn_as_often_as_its_law_says(kind, mean, number):
    """K is above n just where the uniform is below P(K > n)."""
    trials = Trials(mean, kind)
    beyond = float(law(trials).sf(number))
    if 1e-12 < beyond < 1 - 1e-6:
        assert drawn(trials, beyond * (1 - 1e-7)) > number
        assert drawn(trials, beyond * (1 + 1e-7)) <= number


@pytest.mark.parametrize("kind", KINDS)
def test_no_uniform_makes_trials_without_end(kind):
    for mean in (10.0, 9_999.0):
        assert drawn(Trials(mean, kind), 2.0**-128) < 500 * mean
    assert drawn(Trials(10.0, kind), 1 - 2.0**-53) == (kind != "poisson")


def test_one_trial_on_average_is_one_always():
    assert {drawn(Trials(1.0, kind), 1e-9) for kind in KINDS[:2]} == {1}


def test_laws_are_told_by_which_there_often_is_no_trial():
    assert Trials(3.0, "poisson").often_none and not Trials(7.0, "poisson").often_none
    assert not any(Trials(1.5, kind).often_none for kind in KINDS[:2])


def test_a_law_of_another_name_is_refused():
    with pytest.raises(ConfigError, match="logarithmic, geometric, poisson"):
        Trials(3.0, "uniform")
