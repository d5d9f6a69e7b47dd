"""How probable every outcome of noise in floating point is, counted over all uniforms there are.

A uniform is one of 2**127 equally likely places, and what is released rises with the place (to the
last bit of the inverse distribution function). So where it changes is found by halving, and how
many places lie between is its probability, exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.privacy.mechanisms import norm_of
from fedsynth.privacy.mechanisms.exponential import Exponential
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms

PLACES = 2**127


class Placed(NoiseSource):
    """A source whose first uniforms lie at given places; what is drawn after them is seeded."""

    def __init__(self, places: list[int], sign: int = 1) -> None:
        super().__init__(0)
        words = [place >> 64 << 1 | (sign > 0) for place in places]
        more = [place % 2**64 for place in places if place < 2**117]
        self._placed = [np.array(words, np.uint64), np.array(more, np.uint64)]

    def words(self, count: int):
        return self._placed.pop(0) if self._placed else super().words(count)


def first(met: Callable[[list[int]], np.ndarray], count: int) -> list[int]:
    """How many places do not meet each of ``count`` conditions, which all places after do."""
    low, high = [0] * count, [PLACES] * count
    for _ in range(127):
        middle = [(a + b) // 2 for a, b in zip(low, high, strict=True)]
        for i, yes in enumerate(met(middle).tolist()):
            if yes:
                high[i] = middle[i]
            else:
                low[i] = middle[i]
    return [0 if b == 1 and met([0] * count)[i] else b for i, b in enumerate(high)]


def terms(mechanism: str, scale: float) -> Terms:
    alpha = 1.0 if mechanism == "stable" else None
    kind = {"mechanism": mechanism, "norm": norm_of(mechanism), "clip": 1.0, "alpha": alpha}
    return Terms(unit="record", trust="central", noise_multiplier=scale, **kind)


def grid_of(scale: float) -> float:
    return 2.0 ** (math.floor(math.log2(scale)) - 20)


def released(promised: Terms, value: float, places: list[int]) -> np.ndarray:
    """What ``value`` becomes by negative draws from such places, in steps of the grid."""
    source = Placed(places, -1 if promised.mechanism == "stable" else 1)
    return promised.noised(np.full(len(places), value), source) / grid_of(promised.scale)


def test_a_uniform_lies_below_a_number_as_often_as_the_number_says():
    rng = np.random.default_rng(0)
    numbers = rng.uniform(0.5, 1, 400) * 2.0 ** -rng.integers(0, 110, 400)
    below = first(lambda places: Placed(places).uniform(400) >= numbers, 400)
    for count, number in zip(below, map(Fraction, numbers), strict=True):
        assert abs(Fraction(count, PLACES) - number) <= number / 2**53 + Fraction(1, PLACES)


def test_uniforms_are_never_0_or_1_and_no_bit_of_theirs_is_their_signs():
    for sign in (-1, 1):
        uniform, signs = Placed([0, 1, 2, PLACES - 1], sign).signed(4)
        assert uniform.tolist() == [2.0**-128, 2.0**-127, 2.0**-126, 1 - 2.0**-53]
        assert (signs == sign).all()


@pytest.mark.parametrize("rate", [1.0, math.nextafter(1, 0), 0.7, 1 / 3, 0.01, 1e-9])
def test_a_record_takes_part_as_often_as_its_rate_says(rate: float):
    taken = first(lambda places: np.array([not len(Poisson(rate).draw(1, Placed(places)))]), 1)[0]
    assert abs(Fraction(taken, PLACES) - Fraction(rate)) <= Fraction(rate) / 2**53
    assert (taken == PLACES) == (rate == 1)


LAWS = {
    "laplace": lambda x: np.exp(-np.abs(x)) / 2,
    "stable": lambda x: 1 / (math.pi * (1 + x**2)),
}


@pytest.mark.parametrize(("scale", "part"), [(1.0, 0.0), (1.9, 0.3141)])
@pytest.mark.parametrize(
    ("mechanism", "depths", "close"),
    [
        ("laplace", [0.01, 0.5, 1, 2, 3, 5, 8, *np.arange(10, 91, 5)], 2.0**-24),
        ("stable", [0.01, 0.5, 1, 2, 4, 10, 100, 1000], 2.0**-20),
        ("stable", 10.0 ** np.arange(4, 41, 2), 2.0**-9),
    ],
)
def test_every_outcome_has_its_probability(
    mechanism: str, depths: list, close: float, scale: float, part: float
):
    """Eight neighbours at each depth: what they have too much or too little is a part of
    themselves, and one place each, if they are so far out that places are sparse. Of Laplace noise
    there are ``2 * 90 * 2**21`` outcomes before its end: less than 1e-29 in all."""
    promised, grid = terms(mechanism, scale), grid_of(scale)
    starts = np.floor(np.array(depths) * -scale / grid)
    # Of what is larger than 2**41 steps, 41 bits are released.
    wide = np.maximum(1.0, np.spacing(np.abs(starts)) * 2.0**12)[:, None]
    edges = (np.rint(starts[:, None] / wide) + np.arange(9)) * wide
    below = first(lambda at: released(promised, part * grid, at) >= edges.ravel(), edges.size)
    counts = np.diff(np.array(below, object).reshape(edges.shape)).astype(float) / (2 * PLACES)
    # What rounds to an outcome is so narrow that Gauss-Legendre's two nodes give its integral.
    width, law = wide * grid / scale, LAWS[mechanism]
    middles = (edges[:, :-1] - part) * grid / scale
    expected = sum(law(middles + side * width / math.sqrt(12)) * width / 2 for side in (-1, 1))
    assert (np.abs(counts - expected) <= close * expected + 1 / PLACES).all()


@pytest.mark.parametrize(("scale", "moved"), [(1.0, 0.3141), (3.73, 1.0), (3.73, 1e-3)])
def test_outcomes_that_one_neighbour_alone_can_have_are_rarer_than_1e_30(
    scale: float, moved: float
):
    promised, most = terms("laplace", scale), 2**22
    one, other = (released(promised, value, list(range(2**12))) for value in (0.0, moved))
    # There are some, at the outermost places,
    assert np.mean(~np.isin(one[one < other.max()], other)) > 0
    # but further in each place is the next outcome, or the same.
    inner = released(promised, moved, list(range(most, most + 2**12)))
    assert (np.isin(np.diff(inner), (0, 1))).all()
    assert 2 * most / (2 * PLACES) < 1e-30


@given(st.floats(-1e30, 1e30))
def test_a_release_has_41_bits(value: float):
    noisy = terms("stable", 1.0).noised(np.full(1, value), NoiseSource(0))
    bits = np.frexp(noisy)[0] * 2.0**41
    assert (bits == np.rint(bits)).all()
    np.testing.assert_allclose(noisy, value, rtol=2.0**-41, atol=1e4)


@pytest.mark.parametrize("whole", [-(2**40) + 1, 2**20 + 1, 2**40 - 1])
def test_noise_is_rounded_alike_whatever_it_is_added_to(whole: int):
    """Were the sum rounded, it would have 13 bits behind the point: 50 of these would differ."""
    promised, grid = terms("laplace", 1.9), grid_of(1.9)
    near, far = (
        promised.noised(np.full(200_000, (0.25 + more) * grid), NoiseSource(0)) / grid
        for more in (0, whole)
    )
    assert (far - near == whole).all()


def test_a_choice_can_fall_on_a_score_however_far_behind():
    """With Gumbel noise of 53 bits nothing 41 scales behind was ever chosen."""
    scores = np.array([60.0, 0.0])
    near = 2**126
    assert Exponential().choose(scores, 1.0, Placed([near, near])) == 0
    places = first(
        lambda at: np.array([not Exponential().choose(scores, 1.0, Placed([near, at[0]]))]), 1
    )[0]
    # Exponential variables: ``P(E < e^-60 ln 2)``, near being one of ln 2.
    assert places / PLACES == pytest.approx(math.exp(-60) * math.log(2), rel=1e-6, abs=0)
