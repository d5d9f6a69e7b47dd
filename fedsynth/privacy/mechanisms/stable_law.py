"""The law of symmetric alpha-stable (SaS) noise: density, score bound, tails, draws.

Index alpha in [1, 2), scale 1; the characteristic function is ``exp(-|t|^alpha)`` (Zawacki 2024,
"Studies in differential privacy and federated learning", chapter 3). Cauchy at alpha 1; towards
alpha 2 it becomes ``N(0, 2)``. Its variance is infinite for every alpha < 2, and so is its mean
magnitude at alpha 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from fedsynth.privacy.noise import NoiseSource

Floats = NDArray[np.float64]
Complexes = NDArray[np.complex128]
Factor = Callable[[Complexes], Complexes]

# The integrals are good to 1e-12 of themselves; what privacy rests on is raised by far more.
_MARGIN = 1e-7
# Where the densities of all alpha have reached their tails, in which the score falls.
_TAIL = 40.0
_NODES = 224
# exp(-_REACH) is below what float64 can add to an integral.
_REACH = 45.0
# Places that are integrated at once: bounds memory.
_BLOCK = 512


def density(x: Floats, alpha: float) -> Floats:
    """The density of scale 1, to ten digits relative to itself, far tails included. Any shape."""
    return _integrals(np.abs(x), alpha, _one)[0]


def survival(x: Floats, alpha: float) -> Floats:
    """``P(X > x)`` at scale 1, for x > 0. Any shape."""
    return _integrals(np.asarray(x, np.float64), alpha, lambda t: 1j / t)[0]


def score(x: Floats, alpha: float) -> Floats:
    """``-p'(x) / p(x)`` at scale 1: odd in x, positive for x > 0. Any shape."""
    away = np.abs(x)
    slope, here = _integrals(away, alpha, lambda t: -1j * t, _one)
    found: Floats = np.sign(x) * slope / here
    return found


@lru_cache(maxsize=64)
def score_bound(alpha: float) -> float:
    """``s_alpha``, the largest magnitude of the score at scale 1, rounded up.

    1 at alpha 1, growing without bound towards alpha 2: 1.48 at 1.9, 2.64 at 1.999.
    """
    return _largest(lambda x: score(x, alpha)) * (1 + _MARGIN)


def scalar_epsilon(alpha: float, noise: float) -> float:
    """Pure epsilon of one number alone, ``max_x ln(p(x) / p(x + 1/noise))``, rounded up.

    Not for vectors (see above): releases are charged by :meth:`Stable.pure_epsilon`.

    Args:
        noise: scale over the sensitivity, in [1e-6, 1e6].
    """
    # At x < 0 the first density is below its value at 0 and the second above, so x >= 0.
    shift = 1 / noise
    worst = _largest(lambda x: np.log(density(x, alpha) / density(x + shift, alpha)))
    return worst * (1 + _MARGIN)


def _largest(curve: Callable[[Floats], Floats]) -> float:
    """The largest value on x >= 0 of a curve that falls from ``_TAIL`` on."""
    from scipy.optimize import minimize_scalar

    x = np.linspace(0, _TAIL, 401)
    best = int(np.argmax(curve(x)))
    bounds = (x[max(0, best - 1)], x[min(len(x) - 1, best + 1)])
    found = minimize_scalar(
        lambda at: -float(curve(np.array([at]))[0]),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-9},
    )
    return max(-float(found.fun), float(curve(x[[best]])[0]))


def mean_magnitude(alpha: float) -> float:
    """``E|X| = (2 / pi) Gamma(1 - 1/alpha)`` at scale 1, infinite at alpha 1."""
    from scipy.special import gamma

    return 2 / math.pi * float(gamma(1 - 1 / alpha)) if alpha > 1 else math.inf


@lru_cache(maxsize=1)
def best_alpha() -> float:
    """The index of the least mean magnitude at equal epsilon, ``s_alpha E|X|``: about 1.7."""
    from scipy.optimize import minimize_scalar

    found = minimize_scalar(
        lambda alpha: score_bound(float(alpha)) * mean_magnitude(float(alpha)),
        bounds=(1.3, 1.95),
        method="bounded",
        options={"xatol": 1e-3},
    )
    return round(float(found.x), 2)


@lru_cache(maxsize=256)
def reach(alpha: float, probability: float) -> float:
    """What the magnitude of a draw of scale 1 exceeds with ``probability``, in (0, 0.9]."""
    from scipy.optimize import brentq

    def gap(log_x: float) -> float:
        tail = survival(np.array([math.exp(log_x)]), alpha)
        return math.log(2 * float(tail[0]) / probability)

    return math.exp(brentq(gap, -10.0, 100.0, xtol=1e-9))


def _one(t: Complexes) -> Complexes:
    return np.ones_like(t)


def _integrals(x: Floats, alpha: float, *factors: Factor) -> list[Floats]:
    """``Re int_0^oo factor(t) exp(-t^alpha + i t x) dt / pi`` for x >= 0, of each factor.

    The path goes from 0 up the imaginary axis to ``i x / 2`` and from there to the right. On the
    first part lies the heavy tail, without the cancellation that the real line has: its integrand
    is ``exp(-s x + ...) sin(s^alpha sin(alpha pi / 2))``. The second is of the magnitude of the
    Gaussian centre, ``exp(-x^2 / 4)`` near alpha 2. Both by a Gauss-Legendre rule in the fifth root
    of the place, which smooths the branch point at 0.
    """
    given = np.asarray(x, np.float64)
    parts = np.array_split(given.ravel(), 1 + given.size // _BLOCK)
    found = zip(*(_block(part, alpha, factors) for part in parts), strict=True)
    return [np.concatenate(blocks).reshape(given.shape) for blocks in found]


def _block(x: Floats, alpha: float, factors: Sequence[Factor]) -> list[Floats]:
    given = x[:, None]
    nodes, weights = _rule()
    # Beyond 80 / x the first part has decayed; beyond x = 40 the second is nothing.
    height = np.minimum(given / 2, 80 / np.maximum(given, 1e-3))
    near = x < _TAIL
    rising = _integrands(0.0, height * nodes, given, alpha, factors)
    level = _integrands(_REACH * nodes, given[near] / 2, given[near], alpha, factors)
    every = []
    for up, right in zip(rising, level, strict=True):
        found = np.zeros(len(x))
        found += (height * (1j * up).real) @ weights
        found[near] += (_REACH * right.real) @ weights
        every.append(found / math.pi)
    return every


def _integrands(
    a: Floats | float, b: Floats, x: Floats, alpha: float, factors: Sequence[Factor]
) -> list[Complexes]:
    """The integrands at ``t = a + i b``, by real powers and angles.

    Angles are those from the imaginary axis, where ``t^alpha`` is ``-|t|^alpha exp(-i lift)`` with
    a lift of ``pi (2 - alpha) / 2`` that near alpha 2 keeps its digits; complex powers lose them.
    """
    size, angle = np.hypot(a, b) ** alpha, np.pi / 2 * (2 - alpha) + alpha * np.arctan2(a, b)
    fall, turn = np.exp(size * np.cos(angle) - b * x), a * x - size * np.sin(angle)
    wave = fall * np.cos(turn) + 1j * (fall * np.sin(turn))
    at = np.asarray(a + 1j * b, np.complex128)
    return [np.asarray(factor(at) * wave, np.complex128) for factor in factors]


@lru_cache(maxsize=1)
def _rule() -> tuple[Floats, Floats]:
    """Places in (0, 1) and weights of the graded rule described above."""
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    v = (nodes + 1) / 2
    return v**5, weights / 2 * 5 * v**4


def draws(count: int, alpha: float, source: NoiseSource) -> Floats:
    """Draws of scale 1, shape [count].

    Chambers, Mallows, Stuck 1976: with V uniform on (-pi/2, pi/2) and W exponential,
    ``sin(alpha V) / cos(V)^(1/alpha) * (W / cos((alpha - 1) V))^(1 - 1/alpha)``. Written in the
    distance of V from the nearer end, ``pi u / 2``, where the tails come from: small u have all
    their bits, so that far draws are as close together as float64 numbers are, and near alpha 2,
    where ``sin(alpha V)`` almost vanishes there, nothing cancels.
    """
    uniform, sign = source.signed(count)
    end = np.pi / 2 * uniform
    wait = -np.log(source.uniform(count))
    lift = np.pi / 2 * (2 - alpha)
    heavy = np.sin(lift + alpha * end) / np.sin(end) ** (1 / alpha)
    found: Floats = sign * heavy * (wait / np.sin(lift + (alpha - 1) * end)) ** (1 - 1 / alpha)
    return found
