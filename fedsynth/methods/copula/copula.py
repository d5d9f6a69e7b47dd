"""A Gaussian copula for every class from noisy second moments.

A record's latent normal vector has correlation matrix R; column j has the code whose stretch of the
normal's probability the latent falls into (NORTA, Cario and Nelson 1997; for ordered codes the
polychoric model). With s_j the score of that code as a step function of the latent, Mehler's
formula gives E[s_i s_j] - E[s_i] E[s_j] = sum_{k >= 1} rho^k a_ik a_jk, a_ik the coefficients of
s_i in normalised Hermite polynomials, which is solved for rho (Nataf's matching).

Categories have no order of their own. Where each has a score coordinate, the order is learned: one
score a category, so that the columns' correlations within classes are as strong as can be.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from fedsynth.methods.copula.cells import TableCells
from fedsynth.methods.copula.question import Statistics
from fedsynth.methods.copula.settling import shrink_correlations

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]

_TERMS = 40
# Pairs of columns matched at once: bounds memory.
_CHUNK = 1024
# Denser towards +-1, where a little more correlation is much more agreement.
_LARGEST = 0.9995
_GRID = np.sin(np.linspace(-1, 1, 201) * np.arcsin(_LARGEST))
# Added to a category's share where its place in the order is learned: a rare one's is a guess.
_RARE = 2e-3
_SWEEPS = 8


@dataclass(frozen=True, eq=False)
class Copula:
    """Orders of codes and correlations of the latents.

    Attributes:
        ranks: of every cell within its column, int64 [cells]: code of rank 0 belongs to the lowest
            latents.
        correlations: float64 [classes, columns, columns].
    """

    ranks: Whole
    correlations: Floats


def independent(cells: TableCells) -> Copula:
    """Columns that have nothing to do with each other within a class."""
    ranks = np.concatenate([np.arange(size) for size in cells.sizes]).astype(np.int64)
    columns = len(cells.columns)
    return Copula(ranks, np.tile(np.eye(columns), (cells.classes, 1, 1)))


def fit_copula(statistics: Statistics, group: int, profiles: Floats) -> Copula:
    """The copula of a group's classes.

    Args:
        profiles: estimated shares of every column's cells, [classes, cells], each column's summing
            to 1 in every class.
    """
    cells = statistics.question.cells
    moments = _moments(statistics, group)
    orders = _orders(cells, moments, profiles)
    raw, precisions = _match(cells, moments, profiles, orders)
    ranks = np.concatenate([np.argsort(order) for order in orders])
    return Copula(ranks.astype(np.int64), shrink_correlations(raw, precisions))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Within classes: covariances of the scores, [classes, width, width], and the estimated records
    of each class.

    The noise of the covariance of scores i and j has standard deviation ``noise * lift_i *
    lift_j``, [classes] and [classes, width]: beside its own that of the means and of the count.
    """

    covariances: Floats
    records: Floats
    noise: Floats
    lifts: Floats


def _moments(statistics: Statistics, group: int) -> _Moments:
    question = statistics.question
    products = statistics.products[group]
    # A class below its own noise has nothing to say, and would divide by next to nothing.
    least = max(1e-9, statistics.product_sigma / question.constant**2)
    records = np.maximum(products[:, 0, 0] / question.constant**2, least)
    means = products[:, 0, 1:] / (records * question.constant)[:, None]
    covariances = products[:, 1:, 1:] / records[:, None, None]
    covariances = covariances - means[:, :, None] * means[:, None, :]
    noise = statistics.product_sigma / np.sqrt(2.0) / records
    lifts = np.sqrt(1 + (np.clip(means, -1, 1) / question.constant) ** 2)
    return _Moments(covariances, records, noise, lifts)


def _slices(cells: TableCells) -> list[slice]:
    """Where each column's scores stand among all but the constant."""
    widths = [column.scores.shape[1] for column in cells.columns]
    return [slice(b - w, b) for b, w in zip(np.cumsum(widths).tolist(), widths, strict=True)]


def _orders(cells: TableCells, moments: _Moments, profiles: Floats) -> list[Whole]:
    """Codes of every column in rising order of the latent: as they are, or learned.

    Covariances of two columns' indicators would be rho * b_a * c_b to first order, b_a the density
    between a cell's ends, about the cell's share times its mean latent. So b is learned as the
    direction of the largest sum of squared covariances with the other columns', in turns, and the
    codes are ordered by b over the share.
    """
    at = _slices(cells)
    shares = moments.records / moments.records.sum()
    pooled = np.einsum("c,cij->ij", shares, moments.covariances)
    together = shares @ profiles
    noise = float(np.sqrt((shares**2) @ (moments.noise**2)))
    scales = np.concatenate(
        [
            np.full(
                column.scores.shape[1], _deviation(column.scores, profiles[:, s], shares) + 1e-9
            )
            for column, s in zip(cells.columns, cells.slices(), strict=True)
        ]
    )
    directions = _directions(pooled / np.outer(scales, scales), at)
    orders = []
    for column, s, direction in zip(cells.columns, cells.slices(), directions, strict=True):
        if column.grid is not None or len(direction) < 2:
            orders.append(np.arange(column.size))
        else:
            latent = direction / (together[s] + noise + _RARE)
            orders.append(np.argsort(latent, kind="stable"))
    return orders


def _deviation(scores: Floats, profiles: Floats, shares: Floats) -> float:
    """Root of the variance of a column's scores within classes, over all coordinates."""
    means = profiles @ scores
    squares = (shares @ profiles) @ (scores**2)
    return float(np.sqrt(max(0.0, squares.sum() - (shares @ means**2).sum())))


def _directions(covariances: Floats, at: list[slice]) -> list[Floats]:
    """Unit vectors that maximise the sum of squared bilinear forms between all columns."""
    others = covariances.copy()
    for a in at:
        others[a, a] = 0.0
    directions = [np.linalg.eigh(others[a] @ others[:, a])[1][:, -1] for a in at]
    for _ in range(_SWEEPS):
        for i, a in enumerate(at):
            if len(at) > 1 and a.stop - a.start > 1:
                rest = [k for k in range(len(at)) if k != i]
                along = np.stack([others[a, at[k]] @ directions[k] for k in rest], axis=1)
                directions[i] = np.linalg.eigh(along @ along.T)[1][:, -1]
    return directions


def _coefficients(scores: Floats, profile: Floats, order: Whole) -> Floats:
    """Hermite coefficients a_1 .. a_K [terms, width] of the step functions that scores are.

    A step of height h at the latent t adds h * He_{k-1}(t) phi(t) / sqrt(k!), phi the density.
    """
    heights = np.diff(scores[order], axis=0)
    reached = np.clip(np.cumsum(profile[order])[:-1], 0.0, 1.0)
    inside = (reached > 1e-12) & (reached < 1 - 1e-12)
    t, heights = ndtri(reached[inside]), heights[inside]
    density = np.exp(-0.5 * t**2) / np.sqrt(2 * np.pi)
    # Hermite functions He_k(t) / sqrt(k!) by their recurrence.
    before, now = np.zeros_like(t), np.ones_like(t)
    coefficients = np.zeros((_TERMS, scores.shape[1]))
    for k in range(1, _TERMS + 1):
        coefficients[k - 1] = (density * now) @ heights / np.sqrt(k)
        before, now = now, (t * now - np.sqrt(k - 1) * before) / np.sqrt(k)
    return coefficients


def _match(
    cells: TableCells, moments: _Moments, profiles: Floats, orders: list[Whole]
) -> tuple[Floats, Floats]:
    """Noisy correlations [classes, columns, columns], and how precise they are.

    The noise of that of columns i and j has standard deviation 1 / (p_i p_j), p the precisions
    [classes, columns], to first order in the correlation.

    Of all rho on a grid the one whose covariances of the columns' scores, sum_k rho^k a_k b_k', are
    nearest to the noisy ones in squared distance; with one score a column that is Nataf's match.
    """
    at = _slices(cells)
    columns = len(cells.columns)
    i, j = np.triu_indices(columns, 1)
    raw = np.tile(np.eye(columns), (len(profiles), 1, 1))
    precisions = np.zeros((len(profiles), columns))
    for c, (profile, covariances) in enumerate(zip(profiles, moments.covariances, strict=True)):
        steps = [
            _coefficients(column.scores, profile[s], order)
            for column, s, order in zip(cells.columns, cells.slices(), orders, strict=True)
        ]
        grams = np.stack([step @ step.T for step in steps])
        best = _best(grams, _projections(steps, covariances, at)[i, j], i, j)
        lifts = np.array([np.sqrt(np.mean(moments.lifts[c, s] ** 2)) for s in at])
        slopes = np.sqrt(grams[:, 0, 0]) / lifts
        # Where a column is constant within a class, its correlations are anything.
        known = slopes[i] * slopes[j] > 1e-9
        raw[c, i, j] = raw[c, j, i] = np.where(known, best, 0.0)
        precisions[c] = np.maximum(slopes, 1e-4) / max(moments.noise[c], 1e-9) ** 0.5
    return raw, precisions


def _projections(steps: list[Floats], covariances: Floats, at: list[slice]) -> Floats:
    """a_ik' C_ij a_jk for every pair of columns and every term k, [columns, columns, terms]."""
    whole = np.concatenate(steps, axis=1)
    starts = [a.start for a in at]
    rows = [
        np.add.reduceat((step @ covariances[a]) * whole, starts, axis=1).T
        for step, a in zip(steps, at, strict=True)
    ]
    return np.stack(rows)


def _best(grams: Floats, projected: Floats, i: Whole, j: Whole) -> Floats:
    """The rho of least squared distance for the pairs of columns i and j, [pairs].

    Args:
        grams: a_ik' a_il of every column, [columns, terms, terms].
        projected: a_ik' C_ij a_jk of every pair, [pairs, terms].
    """
    powers = _GRID[:, None] ** np.arange(1, _TERMS + 1)
    squares = (powers[:, :, None] * powers[:, None, :]).reshape(len(_GRID), -1)
    rho = np.zeros(len(i))
    for start in range(0, len(i), _CHUNK):
        chunk = slice(start, start + _CHUNK)
        norms = (grams[i[chunk]] * grams[j[chunk]]).reshape(-1, _TERMS**2) @ squares.T
        rho[chunk] = _lowest(norms - 2 * projected[chunk] @ powers.T)
    return rho


def _lowest(misfit: Floats) -> Floats:
    """Where each row [pairs, grid] is lowest, between grid points by a parabola in arcsin(rho)."""
    best = np.clip(misfit.argmin(axis=1), 1, len(_GRID) - 2)
    rows = np.arange(len(misfit))
    left, middle, right = (misfit[rows, best + shift] for shift in (-1, 0, 1))
    bend = left - 2 * middle + right
    shift = np.where(bend > 0, 0.5 * (left - right) / np.where(bend > 0, bend, 1.0), 0.0)
    angles = np.arcsin(_GRID)
    rho: Floats = np.sin(angles[best] + np.clip(shift, -1, 1) * (angles[1] - angles[0]))
    return rho
