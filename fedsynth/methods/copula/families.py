"""The 25 distribution families of paper 004, fitted to one feature; the nearest is kept.

A family is fitted by maximum likelihood, by scipy's own `fit`; the choice is by the
Kolmogorov-Smirnov p-value. At one number of rows the p-value falls as the statistic rises, and
where all p-values underflow to 0 the statistic still tells: the smallest statistic is chosen.

Two approximations keep this fast, both of :class:`Effort`. Fits see evenly spaced order statistics
of the feature instead of all its rows (what they leave out moves the distribution function by at
most half the spacing), and all families are screened on few of these with a bounded search before
the nearest are fitted in full. A screened fit stays in the running, so that a search which runs
astray on more points does no harm.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FAMILIES = (
    "norm",
    "genextreme",
    "uniform",
    "exponweib",
    "expon",
    "vonmises",
    "weibull_max",
    "weibull_min",
    "cauchy",
    "wald",
    "cosine",
    "wrapcauchy",
    "powerlaw",
    "erlang",
    "pareto",
    "gamma",
    "lognorm",
    "logistic",
    "beta",
    "lomax",
    "chi",
    "maxwell",
    "chi2",
    "pearson3",
    "rdist",
)
"""By their names in scipy, as the paper lists them; all of them still go by these names."""
POINT = len(FAMILIES)
"""The number of the family that is a single value."""
MOST_PARAMETERS = 4
LARGEST = 1e100
"""Bound of a parameter's absolute value; beyond it a fit has failed."""

# What a fit that finds nothing raises: scipy's FitError is a RuntimeError.
_FAILURES = (ValueError, RuntimeError, ArithmeticError, TypeError)


@dataclass(frozen=True)
class Effort:
    """How thoroughly a feature is fitted.

    Attributes:
        screened: points that every family is fitted to, with a bounded search.
        points: that the nearest families are then fitted to, and that all fits are compared on.
        finalists: how many are the nearest; 25 fits every family in full.
        evaluations: of the likelihood that a screening search may take for each parameter.
    """

    screened: int = 100
    points: int = 500
    finalists: int = 4
    evaluations: int = 40


@dataclass(frozen=True)
class Fit:
    """A distribution.

    Attributes:
        family: position in :data:`FAMILIES`, or :data:`POINT`.
        parameters: shapes, location and scale as scipy has them; of a point its value alone.
        statistic: Kolmogorov-Smirnov distance to the feature, in [0, 1].
    """

    family: int
    parameters: tuple[float, ...]
    statistic: float

    @property
    def name(self) -> str:
        """Scipy's name of the family, or "point"."""
        return "point" if self.family == POINT else FAMILIES[self.family]

    def draw(self, rows: int, rng: np.random.Generator) -> Floats:
        """Values [rows]; they may be infinite where the distribution has hardly a bound."""
        if self.family == POINT:
            return np.full(rows, self.parameters[0])
        *shapes, location, scale = self.parameters
        with ignore_warnings():
            # Moved and scaled here: scipy wraps vonmises around the circle after moving it.
            drawn = _family(self.family).rvs(*shapes, size=rows, random_state=rng)
            return np.asarray(location + scale * drawn, np.float64)


@dataclass(frozen=True)
class Outcome:
    """The nearest fit, None where no family applies, and the families that failed, by position."""

    fit: Fit | None
    failed: tuple[int, ...]


def parameters_of(family: int) -> int:
    """How many parameters a family has."""
    return 1 if family == POINT else int(_family(family).numargs) + 2


def fit_feature(values: Floats, effort: Effort) -> Outcome:
    """The family nearest to a feature.

    A single distinct value is a point. A family with more parameters than there are rows, or whose
    support cannot hold the feature, is passed over. One whose fit fails, has a parameter that is
    not finite or beyond :data:`LARGEST`, or whose distance is not finite, is counted.

    Args:
        values: finite, [n].
    """
    points = thin(np.sort(values), effort.points)
    screened = thin(points, effort.screened)
    if not len(screened):
        return Outcome(None, ())
    if points[0] == points[-1]:
        return Outcome(Fit(POINT, (float(points[0]),), 0.0), ())
    with ignore_warnings():
        return _nearest(points, screened, effort)


def _nearest(points: Floats, screened: Floats, effort: Effort) -> Outcome:
    able = [
        k for k in range(len(FAMILIES)) if parameters_of(k) <= len(points) and _holds(k, screened)
    ]
    estimates: dict[int, tuple[float, ...]] = {}
    for family in able:
        parameters = _estimate(
            family, screened, _limit_search(effort.evaluations * parameters_of(family))
        )
        if parameters is not None:
            estimates[family] = parameters
    distances = {
        family: distance(family, candidate, screened) for family, candidate in estimates.items()
    }
    failed = {f for f in able if f not in estimates or not math.isfinite(distances[f])}
    ranked = sorted((f for f in able if f not in failed), key=lambda f: (distances[f], f))
    fits = []
    for family in ranked[: effort.finalists]:
        again = _estimate(family, points, None)
        for candidate in (again, estimates[family]):
            if candidate is not None and math.isfinite(gap := distance(family, candidate, points)):
                fits.append(Fit(family, candidate, gap))
    best = min(fits, key=lambda one: one.statistic, default=None)
    return Outcome(best, tuple(sorted(failed)))


def thin(ordered: Floats, count: int) -> Floats:
    """At most `count` evenly spaced order statistics of ascending values, no extremes."""
    n = len(ordered)
    if n <= count:
        return ordered
    points: Floats = ordered[((np.arange(count) + 0.5) * n / count).astype(np.int64)]
    return points


def distance(family: int, parameters: Sequence[float], ordered: Floats) -> float:
    """Kolmogorov-Smirnov statistic of ascending values; infinite where it is none."""
    n = len(ordered)
    with ignore_warnings():
        heights = np.asarray(_family(family).cdf(ordered, *parameters), np.float64)
    # The vonmises of scipy goes on rising beyond its circle.
    heights = np.clip(heights, 0.0, 1.0)
    above = (np.arange(1, n + 1) / n - heights).max()
    below = (heights - np.arange(n) / n).max()
    statistic = float(max(above, below))
    return statistic if 0 <= statistic <= 1 else math.inf


def _holds(family: int, ordered: Floats) -> bool:
    """Whether the family's support can hold these values.

    Location and scale move any support anywhere, but for vonmises: scipy fits it on the circle, at
    scale 1.
    """
    return FAMILIES[family] != "vonmises" or ordered[-1] - ordered[0] <= 2 * math.pi


def _estimate(
    family: int, points: Floats, search: Callable[..., Any] | None
) -> tuple[float, ...] | None:
    """Shapes, location and scale, or None where the fit failed."""
    try:
        options = {} if search is None else {"optimizer": search}
        parameters = tuple(float(value) for value in _family(family).fit(points, **options))
    except _FAILURES:
        return None
    if not all(abs(value) <= LARGEST for value in parameters) or parameters[-1] <= 0:
        return None
    if FAMILIES[family] == "vonmises":
        # Scipy's location is an angle: the turn of the circle that the feature lies on.
        *shapes, location, scale = parameters
        turns = round((float(np.median(points)) - location) / (2 * math.pi))
        return (*shapes, location + turns * 2 * math.pi, scale)
    return parameters


@contextmanager
def ignore_warnings() -> Iterator[None]:
    """Without scipy's warnings: searches walk through parameters where densities overflow, and
    erlang's fit has no whole shape. What is found is judged by its distance."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


@cache
def _family(family: int) -> Any:
    """Scipy's distribution; loaded here, since scipy.stats takes a while to load."""
    from scipy import stats

    found = getattr(stats, FAMILIES[family])
    if FAMILIES[family] == "exponweib":
        # Every search starts at the same shapes, whose moments take longer to integrate than it.
        found = copy(found)
        found.stats = cache(found.stats)
    return found


@cache
def _limit_search(most: int) -> Callable[..., Any]:
    """Scipy's own search, to a coarse tolerance and no longer than screening needs."""
    from scipy.optimize import fmin

    def search(func: Callable[..., float], x0: Any, args: Any = (), disp: int = 0) -> Any:
        return fmin(func, x0, args=args, disp=0, maxfun=most, xtol=1e-3, ftol=1e-3)

    return search
