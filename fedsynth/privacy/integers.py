"""Gaussian noise in whole numbers, so that what is added is what is accounted for, to 1e-33.

A sum is rounded to a public grid, and a discrete Gaussian is added to it, in steps of the grid. Why
the Gaussian's accounting holds, and what rounding costs: docs/guarantee.md, "Whole numbers".
"""

from __future__ import annotations

import math

import numpy as np

from fedsynth.errors import PrivacyError
from fedsynth.privacy.aliases import discrete_gaussian
from fedsynth.privacy.noise import Draws, NoiseSource

WIDER = 1 + 2.0**-12
"""How much wider noise is than its multiplier says: at least what rounding costs."""

_SIGMA, _STRIDE = 512.0, 255
SIGMAS = [_SIGMA]
"""Steps to a standard deviation, of grids that are finer and finer: of k draws of 512 steps, each
the digit of a number to the base of 255."""
while len(SIGMAS) < 5:
    SIGMAS.append(math.hypot(_STRIDE * SIGMAS[-1], _SIGMA))


def add_noise(values: Draws, scale: float, clip: float, source: NoiseSource) -> Draws:
    """``values`` [n], which a unit moves by the clip in L2 at most, in whole steps, with noise of
    whole steps and this standard deviation, positive. Values beyond 2**50 steps are held there,
    which takes no two farther apart. Raises PrivacyError for values that are not finite."""
    digits, step = count_digits(len(values), scale, clip), step_of(len(values), scale, clip)
    if not np.isfinite(values).all():
        raise PrivacyError("a sum that is not finite cannot be noised: is its clip right?")
    # Up to there the quotient is right to an eighth of a step. To refuse more would tell of it.
    with np.errstate(over="ignore"):
        steps = np.rint(np.clip(values / step, -(2.0**50), 2.0**50))
    noise = np.zeros(len(values), np.int64)
    for _ in range(digits):
        noise = _STRIDE * noise + discrete_gaussian(_SIGMA).draw(len(values), source)
    return np.asarray((steps.astype(np.int64) + noise) * step)


def step_of(count: int, scale: float, clip: float) -> float:
    """Of the grid that so many values are put on: a function of public terms alone."""
    return scale / SIGMAS[count_digits(count, scale, clip) - 1]


def count_digits(count: int, scale: float, clip: float) -> int:
    """The least for a grid on which rounding so many values moves them by a 2**-13th of the clip
    at most. Raises PrivacyError where there is none."""
    least = 2.0**13 * math.sqrt(count) * scale / clip
    for digits, sigma in enumerate(SIGMAS, 1):
        if sigma >= least:
            return digits
    raise PrivacyError(f"noise of {scale / clip:.3g} times the clip in {count:,} numbers: too much")
