"""Families of distributions fitted to noisy histograms: Fusion Learning's marginals, made private.

Paper 004 fits 25 families by maximum likelihood to private values and sends the best one's
parameters, which is two releases of private data. Here family and parameters are chosen from the
released noisy histogram, so that they cost nothing: of all families the one of the least chi-square
distance, the variance of a cell being that of the noise and of the sampling together. Where even
that distance is more than noise explains, the histogram itself stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.methods.copula.cells import ColumnCells
from fedsynth.methods.copula.families import FAMILIES, ignore_warnings

Floats = NDArray[np.float64]

# Quantiles of the smoothed histogram that first guesses are fitted to, steps of each guess, how
# many of the guesses are then fitted to the noisy counts, and steps of that.
_QUANTILES, _GUESS_STEPS = 60, 80
_FINALISTS, _STEPS = 2, 120
# Probability that the true family's distance is below what is tolerated.
_LEVEL = 0.99
_BAD = 1e30


@dataclass(frozen=True)
class Fitted:
    """A family fitted to a column in a class.

    Attributes:
        family: name in scipy.stats.
        parameters: shapes, location, scale, in the column's units (a datetime's: resolution steps).
        distance: chi-square distance to the noisy counts.
        tolerated: the distance that noise explains.
    """

    family: str
    parameters: tuple[float, ...]
    distance: float
    tolerated: float

    @property
    def fits(self) -> bool:
        return self.distance <= self.tolerated


def parametric_shares(column: ColumnCells, shares: Floats, fitted: Fitted) -> Floats:
    """Shares [size] of a column's cells with those of :func:`smooth_cells` as the family has them.

    Their sum stays; missing values and single values keep their own shares.
    """
    cells = smooth_cells(column)
    smoothed = shares.copy()
    with ignore_warnings():
        held, _ = _conditional(fitted.family, fitted.parameters, _Smooth.of(column))
    smoothed[cells] = shares[cells].sum() * held
    return smoothed


def smooth_cells(column: ColumnCells) -> NDArray[np.int64]:
    """Codes of the cells of numbers that a family is to describe: not those of single values among
    wider ones, which hold what records pile up on."""
    lengths = column.lengths
    wide = lengths > 1 if (lengths > 1).any() else np.ones(len(lengths), bool)
    return np.flatnonzero(wide).astype(np.int64) + column.missing


def fit_family(
    column: ColumnCells,
    counts: Floats,
    shares: Floats,
    sigma: float,
    families: Sequence[str] = FAMILIES,
) -> Fitted | None:
    """The nearest family to a column's noisy counts in one class; None where none can be fitted.

    Args:
        counts: noisy, [size], with noise of standard deviation ``sigma``.
        shares: smoothed estimates of the cells' shares, [size], for first guesses.
    """
    cells = smooth_cells(column)
    mass = float(shares[cells].sum())
    noisy = counts[cells]
    total = max(float(noisy.sum()), 1.0)
    if column.grid is None or len(cells) < 4 or mass <= 0:
        return None
    with ignore_warnings():
        points = _quantiles(column, shares)
        smooth = _Smooth.of(column)
        guesses = [(name, _guess(name, points)) for name in families]
        scored = sorted(
            (_distance(name, p, smooth, noisy, total, sigma), k, name, p)
            for k, (name, p) in enumerate(guesses)
            if p is not None
        )
        finals = [
            _polish(name, p, smooth, noisy, total, sigma) for _, _, name, p in scored[:_FINALISTS]
        ]
        if not finals or min(finals)[0] >= _BAD:
            return None
        distance, name, parameters = min(finals)
        return Fitted(name, parameters, distance, _critical_value(len(cells), len(parameters)))


@dataclass(frozen=True)
class _Smooth:
    """The cells of :func:`smooth_cells` by their place among those of numbers, and the edges of all
    of these: looked up once for the hundreds of distances of a search."""

    cells: NDArray[np.int64]
    edges: Floats

    @staticmethod
    def of(column: ColumnCells) -> _Smooth:
        return _Smooth(smooth_cells(column) - column.missing, column.edges)


def _critical_value(cells: int, parameters: int) -> float:
    from scipy.special import chdtri

    return float(chdtri(max(1, cells - 1 - parameters), 1 - _LEVEL))


def _quantiles(column: ColumnCells, shares: Floats) -> Floats:
    """Values at even quantiles of the smooth part, spread evenly within cells."""
    cells = smooth_cells(column) - column.missing
    low, high = column.edges[cells], column.edges[cells + 1]
    held = np.concatenate([[0.0], np.cumsum(shares[cells + column.missing])])
    targets = (np.arange(_QUANTILES) + 0.5) / _QUANTILES * held[-1]
    at = np.clip(np.searchsorted(held, targets, side="right") - 1, 0, len(cells) - 1)
    inside = (targets - held[at]) / np.maximum(held[at + 1] - held[at], 1e-300)
    return np.asarray(low[at] + np.clip(inside, 0, 1) * (high[at] - low[at]))


def _guess(name: str, points: Floats) -> tuple[float, ...] | None:
    """Maximum likelihood for the quantiles, roughly; None where scipy finds none."""
    from scipy import optimize, stats

    def descend(function: Any, start: Any, args: Any = (), disp: int = 0) -> Any:
        return optimize.fmin(function, start, args=args, disp=0, maxiter=_GUESS_STEPS)

    try:
        if name == "weibull_max":
            # Its mirror image, which scipy finds from its first guess and this it does not.
            shape, location, scale = stats.weibull_min.fit(-points, optimizer=descend)
            estimate = (shape, -location, scale)
        else:
            estimate = getattr(stats, name).fit(points, optimizer=descend)
    except (ValueError, RuntimeError, ArithmeticError, TypeError, NotImplementedError):
        return None
    parameters = tuple(float(p) for p in estimate)
    return parameters if np.isfinite(parameters).all() and parameters[-1] > 0 else None


def _conditional(name: str, parameters: Sequence[float], smooth: _Smooth) -> tuple[Floats, bool]:
    """Shares of the smooth cells within them by a family, and whether it has any there."""
    from scipy import stats

    # Scipy's vonmises goes on around the circle.
    reached = np.clip(getattr(stats, name).cdf(smooth.edges, *parameters), 0.0, 1.0)
    held = np.maximum(np.diff(reached)[smooth.cells], 0.0)
    total = held.sum()
    if not (np.isfinite(total) and total > 1e-12):
        return np.full(len(held), 1.0 / len(held)), False
    return held / total, True


def _distance(
    name: str,
    parameters: Sequence[float],
    smooth: _Smooth,
    noisy: Floats,
    total: float,
    sigma: float,
) -> float:
    """Chi-square distance of noisy counts and those that a family expects."""
    if not (np.isfinite(parameters).all() and parameters[-1] > 0):
        return _BAD
    held, known = _conditional(name, parameters, smooth)
    if not known:
        return _BAD
    expected = total * held
    distance = float((((noisy - expected) ** 2) / (sigma**2 + np.maximum(expected, 1.0))).sum())
    return distance if np.isfinite(distance) else _BAD


def _polish(
    name: str,
    guess: tuple[float, ...],
    smooth: _Smooth,
    noisy: Floats,
    total: float,
    sigma: float,
) -> tuple[float, str, tuple[float, ...]]:
    """Parameters of the least distance near a guess, by Nelder and Mead's simplex."""
    from scipy import optimize

    before = _distance(name, guess, smooth, noisy, total, sigma)
    search: Any = optimize.fmin
    parameters, after, *_ = search(
        lambda p: _distance(name, p, smooth, noisy, total, sigma),
        np.array(guess),
        maxiter=_STEPS,
        ftol=1e-3,
        full_output=True,
        disp=0,
    )
    if after < before:
        return float(after), name, tuple(float(p) for p in parameters)
    return before, name, guess
