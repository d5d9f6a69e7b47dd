"""Least squares from noisy moments, with intervals that know the noise.

With S the joint moments, P the predictors' places and t the target's weights, ``G = S[P, P]`` and
``b = G^-1 S[P] t``. For noise E in S, to first order ``db = G^-1 (E r)[P]`` with the residual's
weights ``r = t - b``; the released numbers have independent noise of known variance, so the
covariance of ``E r`` is known exactly. Sampling adds ``s^2 G^-1``. (The delta method; compare the
parametric bootstrap of Ferrando, Wang, Sheldon 2022.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.conforming import conform_all
from fedsynth.demands import demand_kind, demand_names, demand_number
from fedsynth.errors import ConfigError
from fedsynth.methods.inference.coordinates import CategoryPart, Coordinates, Floats
from fedsynth.methods.inference.statistic import Statistic
from fedsynth.schema import Schema
from fedsynth.schema.columns import Boolean, Categorical, Modelled
from fedsynth.schema.frames import demand_frame

INTERCEPT = "(intercept)"

_DROWNED = 1.0
"""A direction whose moment is below so many times the noise's norm is not learned from."""


@dataclass(frozen=True)
class Regression:
    """Linear least squares of one column, in natural units.

    A category's coefficient is its distance from the column's first category; a missing number
    counts as the middle of its bounds, beside an indicator of being missing.

    Attributes:
        target: the column; of categories, what is fitted is the probability of `value`.
        value: None for numbers.
        terms: "(intercept)", columns, ``column=value`` and ``column missing``.
        coefficients: [terms].
        errors: standard errors [terms], of sampling and privacy noise together. Infinite where the
            data say nothing: a direction of the predictors that nobody varies in or that the noise
            drowns, which is then left out of the fit. Just above that border intervals may cover
            less than they say (in simulations in which the noise drowned four fits of five, 95 %
            intervals of the fifth covered 78 to 100 %).
        noise_errors: the part of the privacy noise.
        r2: share of the target's variance that is explained, at most 1; not a number where the
            noise leaves no variance.
        records: estimated number; at the client level of clients, as for moments.
        ridge: that the fit was made with; errors are about the coefficients that all records would
            give with it.
        columns: schema of the predictors.
    """

    target: str
    value: object
    terms: tuple[str, ...]
    coefficients: Floats
    errors: Floats
    noise_errors: Floats
    r2: float
    records: float
    ridge: float
    columns: Schema | None

    def intervals(self, level: float = 0.95) -> pd.DataFrame:
        """A row a term: `coefficient`, `low`, `high`; by Student's distribution.

        Raises:
            ConfigError: a level outside (0, 1).
        """
        from scipy.special import stdtrit

        demand_number("level", level, "between 0 and 1", lambda given: 0 < given < 1)
        freedom = max(1.0, self.records - len(self.terms))
        reach = float(stdtrit(freedom, 0.5 + level / 2)) * self.errors
        return pd.DataFrame(
            {
                "coefficient": self.coefficients,
                "low": self.coefficients - reach,
                "high": self.coefficients + reach,
            },
            index=pd.Index(self.terms, name="term"),
        )

    def predict(self, frame: pd.DataFrame) -> Floats:
        """The fitted value of each row, float64 [rows]; other columns are ignored.

        Raises:
            DataError: a predictor is absent, there are no rows, or one holds what is no value of a
                predictor.
        """
        frame = demand_frame(frame, "table to predict")
        if self.columns is None:
            return np.full(len(frame), self.coefficients[0])
        names = [column.name for column in self.columns.modelled]
        held = frame[[name for name in frame.columns if name in names]]
        conformed = conform_all(held, self.columns, "table to predict")
        coordinates = Coordinates.of(self.columns.modelled)
        v = coordinates.matrix(conformed.columns, conformed.rows)
        _, weights = coordinates.terms()
        natural = weights[:, :1].T + v @ weights[:, 1:].T
        kept = _coefficient_mask(coordinates)
        return np.asarray(self.coefficients[0] + natural[:, kept] @ self.coefficients[1:])


def _coefficient_mask(coordinates: Coordinates) -> NDArray[np.bool_]:
    """Which natural terms have coefficients: all but first categories and constant columns."""
    kept: list[bool] = []
    for part in coordinates.parts:
        terms = len(part.terms())
        if isinstance(part, CategoryPart):
            kept += [False, *[True] * (terms - 1)]
        else:
            kept += [part.varies, *[True] * (terms - 1)]
    return np.array(kept, bool)


@dataclass(frozen=True)
class Design:
    """Predictors as places in the joint vector.

    Attributes:
        places: [p] of them, the constant's first.
        penalised: [p] whether the ridge shrinks each: all but the constant.
        names: of the natural terms, [p].
        natural: coefficients in natural units from those of the places, [p, p].
        columns: the predictors.
    """

    places: NDArray[np.int64]
    penalised: NDArray[np.bool_]
    names: tuple[str, ...]
    natural: Floats
    columns: tuple[Modelled, ...]


def design(schema: Schema, statistic: Statistic, on: Sequence[str]) -> Design:
    """The design of the columns ``on``, in the schema's order."""
    columns = tuple(column for column in schema.modelled if column.name in on)
    parts = {part.column.name: part for part in statistic.coordinates.parts}
    places, names = [0], [INTERCEPT]
    blocks: list[Floats] = []
    shifts: list[Floats] = []
    for column in columns:
        if column.name not in parts:
            # The target's classes: ones at positions, the first of which is the reference.
            assert isinstance(column, Categorical | Boolean)
            more = len(column.categories) - 1
            places += range(2 + statistic.width, 2 + statistic.width + more)
            names += [f"{column.name}={value}" for value in column.categories[1:]]
            blocks.append(np.eye(more))
            shifts.append(np.zeros(more))
            continue
        part = parts[column.name]
        places += range(1 + part.start, 1 + part.start + part.width)
        terms = part.terms()
        if isinstance(part, CategoryPart):
            names += [name for name, _, _ in terms[1:]]
            blocks.append(part.basis[1:] - part.basis[0])
            shifts.append(part.basis[0])
        else:
            scales = [1 / part.half] if part.varies else []
            names += [name for name, _, _ in terms[int(not part.varies) :]]
            ones = [1.0] * int(part.column.missing)
            blocks.append(np.diag([*scales, *ones]))
            shifts.append(np.array([*(-part.middle * s for s in scales), *(0.0 for _ in ones)]))
    natural = np.zeros((len(places), len(places)))
    natural[0] = np.concatenate([[1.0], *shifts])
    at = 1
    for block in blocks:
        natural[at : at + len(block), at : at + len(block)] = block
        at += len(block)
    penalised = np.arange(len(places)) > 0
    return Design(np.array(places, np.int64), penalised, tuple(names), natural, columns)


def least_squares(
    statistic: Statistic,
    values: Floats,
    sigma: float,
    chosen: Design,
    target: Floats,
    ridge: float,
) -> tuple[Floats, Floats, Floats, float, float]:
    """Coefficients, errors and the noise's part [p] in natural units; R2; records.

    Args:
        values: released, [dim], with noise of deviation ``sigma`` each.
        target: weights of the target in the joint vector, [size].
        ridge: added to the predictors' sums of squares in coordinates, that is in records.
    """
    joint, at = statistic.joint(values), chosen.places
    records = float(joint[0, 0])
    gram = joint[np.ix_(at, at)] + ridge * np.diag(chosen.penalised.astype(np.float64))
    inverse, blind, scale = _inverse(gram, sigma**2 * statistic.noise_variances()[np.ix_(at, at)])
    b = inverse @ (joint[at] @ target)
    r = target.copy()
    np.subtract.at(r, at, b)
    noise = sigma**2 * inverse @ statistic.times(r)[np.ix_(at, at)] @ inverse
    rest = float(r @ joint @ r) + float(np.trace(noise @ gram))
    rest = max(rest, sigma * np.sqrt(statistic.quadratic(r)))
    natural = chosen.natural
    # Beyond rounding: a coefficient that the unknown directions take part in.
    part, whole = np.abs(natural @ blind), np.linalg.norm(natural * scale, axis=1)
    lost = (part > 1e-6 * whole[:, None]).any(axis=1)
    noise_errors = _roots(natural @ noise @ natural.T)
    errors = np.full(len(at), np.inf)
    if records > len(at):
        spread = natural @ inverse @ joint[np.ix_(at, at)] @ inverse @ natural.T
        sampled = np.maximum(np.diag(spread), 0) * rest / (records - len(at))
        errors = np.sqrt(sampled + noise_errors**2)
    errors[lost], noise_errors[lost] = np.inf, np.inf
    return natural @ b, errors, noise_errors, _r_squared(joint, r, target), records


def _r_squared(joint: Floats, r: Floats, target: Floats) -> float:
    """R2 of the residual ``r q`` of the target ``target q``."""
    total = float(target @ joint @ target)
    total -= float(joint[0] @ target) ** 2 / max(float(joint[0, 0]), 1e-9)
    return min(1.0, 1 - float(r @ joint @ r) / total) if total > 0 else float("nan")


def _roots(covariance: Floats) -> Floats:
    return np.sqrt(np.maximum(np.diag(covariance), 0))


def _inverse(gram: Floats, variances: Floats) -> tuple[Floats, Floats, Floats]:
    """Inverse within the directions that are known, the others [p, unknown], and sizes [p] of both.

    Coordinates are brought to a common scale first, so that none counts as unknown for its unit.

    Args:
        variances: of the noise in every cell of ``gram``.
    """
    scale = np.sqrt(np.maximum(np.diag(gram), np.sqrt(np.diag(variances))))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(gram / np.outer(scale, scale))
    # The edge of Wigner's semicircle: what the norm of the noise hardly exceeds.
    norm = 2 * float(np.sqrt((variances / np.outer(scale, scale) ** 2).sum(axis=1).max()))
    known = values > max(1e-12 * len(gram), _DROWNED * norm)
    scaled = vectors / scale[:, None]
    inverse = (scaled[:, known] / values[known]) @ scaled[:, known].T
    return inverse, scaled[:, ~known], 1 / scale


def predictors(schema: Schema, target: str, on: Sequence[str] | str | None) -> list[str]:
    """Names of the predictors. Raises ConfigError for a column that there is not, or the target."""
    names = [column.name for column in schema.modelled]
    demand_names("target", demand_kind("target", target, str, "a column's name"), names)
    if on is None:
        return [name for name in names if name != target]
    chosen = demand_names("on", on, names)
    if target in chosen:
        raise ConfigError(f"{target!r} cannot explain itself: leave it out of `on`")
    return list(chosen)
