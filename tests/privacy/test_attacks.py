"""Attacks on digits: they tell neighbours apart by noise in naive floating point, and not by ours.

Mironov 2012, "On significance of the least significant bits for differential privacy": which
outcomes are possible hangs on the value. Haney, Desfontaines, Hartman, Shrestha, Hay 2022,
"Precision-based attacks and interval refining": how fine an outcome's digits are hangs on it, even
where the noise itself is perfect.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

from fedsynth.privacy.integers import step_of
from fedsynth.privacy.mechanisms import mechanism_of
from fedsynth.privacy.noise import NoiseSource

MECHANISMS = ("gaussian", "laplace")
VALUES = (0.0, 1.0)
COUNT = 200
BITS = 53
_NEAR = 40  # uniforms to either side of where an outcome's own would lie


def quantile(name: str, uniform: np.ndarray) -> np.ndarray:
    """Noise by the inverse distribution function, as textbooks have it."""
    if name == "gaussian":
        return ndtri(uniform)
    return np.where(uniform < 0.5, np.log(2 * uniform), -np.log(2 - 2 * uniform))


def place(name: str, noise: np.ndarray) -> np.ndarray:
    if name == "gaussian":
        return ndtr(noise)
    return np.where(noise < 0, np.exp(noise) / 2, 1 - np.exp(-noise) / 2)


def naive(name: str, value: float, seed: int) -> np.ndarray:
    uniform = np.random.default_rng(seed).integers(1, 2**BITS, COUNT) * 2.0**-BITS
    return value + quantile(name, uniform)


def possible(name: str, outcomes: np.ndarray, value: float) -> np.ndarray:
    """Whether some uniform makes the value an outcome: those near the outcome's own are tried."""
    near = np.rint(place(name, outcomes - value) * 2.0**BITS)[:, None]
    tried = np.clip(near + np.arange(-_NEAR, _NEAR + 1), 1, 2.0**BITS - 1) * 2.0**-BITS
    return (value + quantile(name, tried) == outcomes[:, None]).any(axis=1)


@pytest.mark.parametrize("name", MECHANISMS)
def test_of_naive_noise_most_outcomes_are_possible_for_one_neighbour_alone(name):
    zero, one = VALUES
    for seed, (value, other) in enumerate(((zero, one), (one, zero))):
        outcomes = naive(name, value, seed)
        assert possible(name, outcomes, value).all()
        assert possible(name, outcomes, other).mean() < 0.4


class Given(NoiseSource):
    """A source whose words are given, and zeros after them."""

    def __init__(self, *words: int) -> None:
        super().__init__(0)
        self._words = list(words)

    def words(self, count: int) -> np.ndarray:
        found = [self._words.pop(0) if self._words else 0 for _ in range(count)]
        return np.array(found, np.uint64)


def ours(name: str, value: float, source: NoiseSource, count: int = 1) -> np.ndarray:
    return mechanism_of(name).add(np.full(count, value), 1.0, 1, 1.0, source)


def words_for(name: str, steps: int, step: float) -> list[int]:
    """What a source must read for noise of so many steps: found from what the noise is made of."""
    if name == "laplace":
        # A uniform number of 63 bits, whose logarithm is negative, and in the last bit a sign.
        uniform = np.exp(-abs(steps) * step) * (2.0**63 - 2.0**10)
        return [int(uniform) << 1 | int(steps < 0)]
    last = (steps + 127) % 255 - 127
    # A slot of the table gives its own size where the number is below its threshold, and zero is.
    return [abs(digit) | int(digit < 0) << 13 for digit in ((steps - last) // 255, last)]


@pytest.mark.parametrize("name", MECHANISMS)
def test_of_our_noise_every_outcome_of_one_neighbour_is_one_of_the_other(name):
    """Some words of the source make it, which the test writes down: none is impossible."""
    value, other = VALUES
    step = mechanism_of(name).step(1, 1.0, 1.0)
    for outcome in ours(name, value, NoiseSource(3), COUNT):
        steps = round(outcome / step) - round(other / step)
        (found,) = ours(name, other, Given(*words_for(name, steps, step)))
        assert found == outcome


def finer(outcomes: np.ndarray) -> np.ndarray:
    """Of outcomes in [1/4, 1/2), whether they have the last digit that floating point has there: 0
    plus noise may have it, 1 plus noise has not, for that sum is rounded where numbers are coarser.
    """
    inside = outcomes[(outcomes >= 0.25) & (outcomes < 0.5)]
    return np.ldexp(inside, 54) % 2 == 1


@pytest.mark.parametrize("name", MECHANISMS)
def test_a_last_digit_tells_the_value_under_naive_noise_and_nothing_under_ours(name):
    """Noise by the library's own generator: the attack is on the addition."""
    generator = np.random.default_rng(5)
    draw = generator.normal if name == "gaussian" else generator.laplace
    told = [finer(value + draw(size=20_000)) for value in VALUES]
    assert told[0].mean() > 0.3 and not told[1].any()
    source = NoiseSource(6)
    told = [finer(ours(name, value, source, 20_000)) for value in VALUES]
    assert min(map(len, told)) > 1_000
    assert abs(told[0].mean() - told[1].mean()) < 0.1
    assert (name == "laplace") == (not told[0].any())


def test_an_outcome_of_ours_is_its_number_of_steps_and_nothing_else():
    """So whatever its digits look like, they tell what the steps tell."""
    step = step_of(COUNT, 1.0, 1.0)
    for value in VALUES:
        outcomes = ours("gaussian", value, NoiseSource(7), COUNT)
        np.testing.assert_array_equal(np.rint(outcomes / step) * step, outcomes)
