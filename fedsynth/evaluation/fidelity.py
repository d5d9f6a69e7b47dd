"""How far the marginals of synthetic rows lie from those of real ones."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.tables import conform
from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, Schema

_DENSE = 2**20
"""Cells up to which a marginal is counted in an array; above, only the cells that occur are."""


@dataclass(frozen=True)
class MarginalError:
    """Total variation, half the L1 distance of relative frequencies, over sets of columns.

    order: columns in a set. mean, worst: in [0, 1]. worst_columns: the set of the worst.
    sets: how many were compared.
    """

    order: int
    mean: float
    worst: float
    worst_columns: tuple[str, ...]
    sets: int


def marginal_error(
    real: pd.DataFrame,
    synthetic: pd.DataFrame,
    schema: Schema,
    order: int,
    *,
    bins: int = 20,
    limit: int = 1000,
    seed: int = 0,
) -> MarginalError:
    """Total variation between the `order`-way marginals of two tables.

    Numbers and dates are cut at `bins` quantiles of the real table, where a value that several
    quantiles share is a bin of its own; a gap is a category. With more than `limit` sets of
    columns, that many are drawn at random. A table against itself gives 0.

    Raises:
        ConfigError: an order below 1 or above the number of columns.
        DataError: a table that does not fit the schema.
    """
    names = [column.name for column in schema.modelled]
    if not 1 <= order <= len(names):
        raise ConfigError(f"order must lie between 1 and the {len(names)} columns and is {order}")
    left, right, sizes = _codes(real, synthetic, schema, bins)
    sets = _column_sets(len(names), order, limit, np.random.default_rng(seed))
    errors = [_distance(left[:, s], right[:, s], sizes[s]) for s in sets]
    worst = int(np.argmax(errors))
    return MarginalError(
        order=order,
        mean=float(np.mean(errors)),
        worst=float(errors[worst]),
        worst_columns=tuple(names[j] for j in sets[worst]),
        sets=len(sets),
    )


def _codes(
    real: pd.DataFrame, synthetic: pd.DataFrame, schema: Schema, bins: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Both tables as codes [n, d] and [m, d], and how many codes each column has [d]."""
    left, right = conform(real, schema, "real"), conform(synthetic, schema, "synthetic")
    pairs, sizes = [], []
    for column in schema.modelled:
        a, b = (np.asarray(table.columns[column.name], float) for table in (left, right))
        if isinstance(column, Categorical | Boolean):
            size = len(column.categories)
            pairs.append((np.where(a < 0, size, a), np.where(b < 0, size, b)))
        else:
            cuts = _cuts(a, bins)
            size = len(cuts) + 1
            pairs.append((_binned(a, cuts), _binned(b, cuts)))
        sizes.append(size + 1)
    reals, made = (np.stack(codes, axis=1).astype(np.int64) for codes in zip(*pairs, strict=True))
    return reals, made, np.array(sizes, dtype=np.int64)


def _cuts(values: NDArray[np.float64], bins: int) -> NDArray[np.float64]:
    """Rising cuts c between bins [c_i, c_i+1) of about equal mass in `values`."""
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return np.empty(0)
    inner = np.quantile(known, np.arange(1, bins) / bins, method="inverted_cdf")
    cuts, repeats = np.unique(inner, return_counts=True)
    return np.union1d(cuts, np.nextafter(cuts[repeats > 1], np.inf))


def _binned(values: NDArray[np.float64], cuts: NDArray[np.float64]) -> NDArray[np.int64]:
    codes = np.searchsorted(cuts, values, side="right")
    return np.where(np.isnan(values), len(cuts) + 1, codes).astype(np.int64)


def _column_sets(
    columns: int, order: int, limit: int, rng: np.random.Generator
) -> list[NDArray[np.int64]]:
    """All sets of `order` columns, or `limit` different ones at random."""
    if math.comb(columns, order) <= limit:
        every = itertools.combinations(range(columns), order)
        return [np.array(chosen, dtype=np.int64) for chosen in every]
    drawn: set[tuple[int, ...]] = set()
    while len(drawn) < limit:
        drawn.add(tuple(sorted(rng.choice(columns, order, replace=False).tolist())))
    return [np.array(chosen, dtype=np.int64) for chosen in sorted(drawn)]


def _distance(left: NDArray[np.int64], right: NDArray[np.int64], sizes: NDArray[np.int64]) -> float:
    """Total variation of the joint frequencies of codes [n, k] and [m, k]."""
    both, cells = np.concatenate([left, right])[:, 0], int(sizes[0])
    for j in range(1, len(sizes)):
        both = both * sizes[j] + np.concatenate([left[:, j], right[:, j]])
        cells *= int(sizes[j])
        if cells > _DENSE:
            seen, both = np.unique(both, return_inverse=True)
            cells = len(seen)
    a = np.bincount(both[: len(left)], minlength=cells) / len(left)
    b = np.bincount(both[len(left) :], minlength=cells) / len(right)
    return float(np.abs(a - b).sum() / 2)
