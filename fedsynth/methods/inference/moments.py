"""Means and covariances in natural units, with errors that know the noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.methods.inference.coordinates import Floats, NumberPart
from fedsynth.methods.inference.statistic import Statistic

_REPEATS = 400


@dataclass(frozen=True)
class Moments:
    """Means and covariances of columns, categories as the shares of their values.

    Attributes:
        names: of the terms: a column, ``column=value`` or ``column missing``.
        mean: [terms]; of a number that may be missing, over the records that have it.
        covariance: [terms, terms]; of two numbers, over the records that have both.
        mean_errors, covariance_errors: standard errors: sampling (covariances as of normal
            variables) and privacy noise together. Infinite where the noise leaves fewer than 2
            records.
        records: estimated number. At the client level of clients, each of which counts as one
            record: errors are then those of so many records, though a client's mean varies less.
    """

    names: tuple[str, ...]
    mean: Floats
    covariance: Floats
    mean_errors: Floats
    covariance_errors: Floats
    records: float

    def table(self) -> pd.DataFrame:
        """A row a term: `mean`, `mean_error`, `deviation`."""
        spread = np.sqrt(np.maximum(np.diag(self.covariance), 0))
        return pd.DataFrame(
            {"mean": self.mean, "mean_error": self.mean_errors, "deviation": spread},
            index=pd.Index(self.names, name="term"),
        )

    def correlations(self) -> pd.DataFrame:
        """Correlations, in [-1, 1]; not a number where the noise leaves no variance."""
        spread = np.sqrt(np.where(np.diag(self.covariance) > 0, np.diag(self.covariance), np.nan))
        scaled = np.clip(self.covariance / np.outer(spread, spread), -1, 1)
        return pd.DataFrame(scaled, index=list(self.names), columns=list(self.names))


@dataclass(frozen=True)
class Reading:
    """How natural terms are read off the joint moments of (1, v, one-hot class).

    Attributes:
        names: of the terms.
        weights: [terms, size].
        gaps: for each term the place of its missing indicator in the joint vector, -1 without one.
    """

    names: tuple[str, ...]
    weights: Floats
    gaps: NDArray[np.int64]


def moments(statistic: Statistic, reading: Reading, values: Floats, sigma: float) -> Moments:
    """Means and covariances of the released values ``[dim]`` with noise ``sigma`` in each.

    The errors of the noise are those of 400 simulated draws of it, from a fixed seed.
    """
    joint = statistic.joint(values)
    mean, covariance, shared = _read(joint, reading)
    least = np.maximum(shared, 0)
    spread = np.maximum(np.diag(covariance), 0)
    with np.errstate(divide="ignore", invalid="ignore"):  # Where no record is left: infinite.
        sampled = spread / np.diag(least)
        crossed = (np.outer(spread, spread) + covariance**2) / least
    noise = _simulate(statistic, reading, values, sigma)
    enough = shared > 2
    return Moments(
        reading.names,
        mean,
        covariance,
        np.where(np.diag(enough), np.sqrt(sampled + noise[0]), np.inf),
        np.where(enough, np.sqrt(crossed + noise[1]), np.inf),
        float(joint[0, 0]),
    )


def _read(joint: Floats, reading: Reading) -> tuple[Floats, Floats, Floats]:
    """Means, covariances, and how many records have both of two terms."""
    present = _present(joint, reading)
    sums, products = _over_present(joint, reading)
    safe = np.where(np.abs(present) > 1e-9, present, np.nan)
    averages = sums / safe
    covariances = products / safe - averages * averages.T
    return np.diag(averages).copy(), covariances, present


def _present(joint: Floats, reading: Reading) -> Floats:
    """Records with both terms: n - gaps of one - gaps of the other + gaps of both."""
    gaps = reading.gaps
    has = gaps >= 0
    alone = np.where(has, joint[0, gaps], 0.0)
    both = np.where(np.outer(has, has), joint[np.ix_(gaps, gaps)], 0.0)
    return np.asarray(joint[0, 0] - alone[:, None] - alone[None, :] + both)


def _over_present(joint: Floats, reading: Reading) -> tuple[Floats, Floats]:
    """Sums of term i over the records that have i and j, [i, j]; and of the product of both.

    With w = the weights of the scaled value (0 where it is missing) and k the constant, a term is
    ``w q + k`` where it is there, and its gap hides it: all are second moments of q.
    """
    weights, gaps = reading.weights.copy(), reading.gaps
    constants = np.where(gaps >= 0, weights[:, 0], 0.0)
    has = gaps >= 0
    # A gap holds 0 in place of a value; its constant is taken off by the indicator.
    rows = np.flatnonzero(has)
    weights[rows, gaps[rows]] -= constants[rows]
    crossed = weights @ joint
    sums = crossed[:, [0]] - np.where(has[None, :], crossed[:, gaps], 0.0)
    products = crossed @ weights.T
    return sums, products


def _simulate(
    statistic: Statistic, reading: Reading, values: Floats, sigma: float
) -> tuple[Floats, Floats]:
    """Variances of means and covariances by the noise."""
    terms = len(reading.names)
    if sigma == 0:
        return np.zeros(terms), np.zeros((terms, terms))

    def draw(rng: np.random.Generator) -> tuple[Floats, Floats]:
        noisy = statistic.joint(values + sigma * rng.standard_normal(len(values)))
        mean, covariance, _ = _read(noisy, reading)
        return mean, covariance

    return _variances(draw, _read(statistic.joint(values), reading)[:2])


def _variances(
    draw: Callable[[np.random.Generator], tuple[Floats, Floats]], centre: tuple[Floats, Floats]
) -> tuple[Floats, Floats]:
    """Mean squared distances of repeated draws from a centre."""
    rng = np.random.default_rng(0)
    totals = tuple(np.zeros_like(part) for part in centre)
    for _ in range(_REPEATS):
        for total, drawn, middle in zip(totals, draw(rng), centre, strict=True):
            total += (drawn - middle) ** 2
    return totals[0] / _REPEATS, totals[1] / _REPEATS


def reading_of(statistic: Statistic, target: str, categories: tuple[object, ...]) -> Reading:
    """The terms of all columns, those of the target's classes last."""
    names, weights = statistic.coordinates.terms()
    wide = np.zeros((len(names), statistic.size))
    wide[:, : 1 + statistic.width] = weights
    gaps = np.full(len(names), -1, np.int64)
    for part in statistic.coordinates.parts:
        if isinstance(part, NumberPart) and part.column.missing:
            gaps[names.index(part.column.name)] = part.start + part.width
    classes = np.zeros((statistic.classes, statistic.size))
    classes[:, 1 + statistic.width :] = np.eye(statistic.classes)
    named = [f"{target}={value}" for value in categories[: statistic.classes]]
    return Reading(
        (*names, *named),
        np.concatenate([wide, classes]),
        np.concatenate([gaps, np.full(statistic.classes, -1, np.int64)]),
    )
