"""Two-sample tests that ask for more than a difference: is it larger than what may be let pass?

With many rows every difference is significant. So no test here has equality for its null
hypothesis, but a distance of at most a tolerance (a minimum-effect test; Murphy and Myors 1999).
The triangle inequality bounds what is left of an observed distance: two samples' difference less
their populations' one is the noise of sampling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_EXPECTED = 5.0
"""Values of a cell that are expected in the smaller sample, below which cells are put together
(Cochran 1954)."""


def numbers_apart(
    first: Floats, second: Floats, sizes: tuple[float, float], tolerance: float
) -> tuple[float, float]:
    """The Kolmogorov-Smirnov distance of two samples of numbers, and its p-value.

    Args:
        first, second: [n], [m]; NaN is a value of its own, below all others.
        sizes: how many independent values each is worth, at least 1.
        tolerance: a distance of the populations in [0, 1] that is no finding. At 0 this is SciPy's
            two-sample test with its asymptotic p-value. Above it the distribution of the noise is
            taken to be that of two samples of one population. Ties make p larger than it is.
    """
    from scipy.stats import ks_2samp, kstwo

    low = min((np.nanmin(side) for side in (first, second) if not np.isnan(side).all()), default=0)
    known = (np.nan_to_num(side, nan=low - 1) for side in (first, second))
    distance = float(ks_2samp(*known, method="asymp").statistic)
    return distance, float(kstwo.sf(max(distance - tolerance, 0.0), _pairs(sizes)))


def codes_apart(
    first: Floats, second: Floats, sizes: tuple[float, float], tolerance: float
) -> tuple[float, float]:
    """The total variation of two samples of categories, and the p-value of a chi-squared test.

    Args:
        first, second: how many values of each cell, [k]; none is empty.
        sizes: how many independent values each is worth.
        tolerance: a total variation of the populations in [0, 1] that is no finding: chi-squared is
            the least that it can be when so much of the difference is taken off. At 0 this is
            SciPy's test of the 2 x k table, without Yates's correction.

    To the test rare cells are one: among few values they differ by chance, as does the distance.
    """
    from scipy.stats import chi2

    shares = [side / side.sum() for side in (first, second)]
    distance = float(np.abs(shares[0] - shares[1]).sum() / 2)
    pooled = (sizes[0] * shares[0] + sizes[1] * shares[1]) / sum(sizes)
    rare = pooled * min(sizes) < _EXPECTED
    left, right, pooled = (np.append(side[~rare], side[rare].sum()) for side in (*shares, pooled))
    held = pooled > 0
    apart, pooled = (left - right)[held], pooled[held]
    worth = sizes[0] * sizes[1] / sum(sizes)
    least = sum(
        float((_take_off(side, pooled, tolerance) ** 2 / pooled).sum())
        for side in (np.maximum(apart, 0), np.maximum(-apart, 0))
    )
    return distance, float(chi2.sf(worth * least, len(apart) - 1)) if len(apart) > 1 else 1.0


def _take_off(apart: Floats, pooled: Floats, tolerance: float) -> Floats:
    """What is left of differences of one sign [k] once `tolerance` is taken off their sum such that
    the sum of squares over `pooled` is least: no more than a level times `pooled` of any."""
    if apart.sum() <= tolerance:
        return np.zeros(len(apart))
    order = np.argsort(-apart / pooled)
    # Levels between the ratios of neighbours: those above are cut to it.
    levels = (np.cumsum(apart[order]) - tolerance) / np.cumsum(pooled[order])
    return np.asarray(np.minimum(apart, max(levels.max(), 0.0) * pooled))


def rows_apart(
    first: NDArray[Any], second: NDArray[Any], permutations: int, seed: int
) -> tuple[float, float]:
    """The maximum mean discrepancy of two samples of vectors, and its permutation p-value.

    Args:
        first, second: [n, p], [m, p]; a Gaussian kernel of the median distance (Gretton et al.
            2012).
        permutations: of whose a row is; the p-value is a multiple of 1 / (permutations + 1).
    """
    from scipy.spatial.distance import cdist

    both = np.concatenate([first, second]).astype(np.float64)
    squared = cdist(both, both, "sqeuclidean")
    middle = float(np.median(squared[squared > 0])) if squared.any() else 1.0
    kernel = np.exp(-squared / middle)
    rng = np.random.default_rng(seed)
    signs = np.repeat([1 / len(first), -1 / len(second)], [len(first), len(second)])
    drawn = np.stack([signs, *(rng.permutation(signs) for _ in range(permutations))], axis=1)
    found = np.einsum("ib,ib->b", drawn, kernel @ drawn)
    # Sums in another order differ in their last digits.
    above = found[1:] >= found[0] - 1e-12
    return float(np.sqrt(max(found[0], 0.0))), float((1 + above.sum()) / (1 + permutations))


def correct_holm(values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: the chance of any false one at the level alpha is alpha at most."""
    order = np.argsort(values)
    steps = np.asarray(values)[order] * np.arange(len(values), 0, -1)
    adjusted = np.empty(len(values))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return [float(value) for value in adjusted]


def find_detectable(sizes: tuple[float, float], alpha: float, tolerance: float) -> float:
    """About the least Kolmogorov-Smirnov distance of two samples that has p < alpha."""
    from scipy.stats import kstwo

    return min(1.0, tolerance + float(kstwo.isf(alpha, _pairs(sizes))))


def _pairs(sizes: tuple[float, float]) -> int:
    """How many values one sample would have whose distance from its population is spread alike."""
    return max(1, round(sizes[0] * sizes[1] / sum(sizes)))
