"""How far the marginals of one table lie from those of another."""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.evaluation.reading.codes import Codes, encode_tables
from fedsynth.evaluation.reading.rows import read_real_rows, read_rows
from fedsynth.schema import Schema

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
    quantiles share is a bin of its own; gaps are a category, and so are undeclared values. With
    more than `limit` sets of columns, that many are drawn at random. A table against itself gives
    0.

    Raises:
        ConfigError: an order below 1 or above the number of columns; no bins or sets.
        DataError: a table that does not fit the schema.
    """
    names = tuple(column.name for column in schema.observed)
    if not 1 <= order <= len(names):
        raise ConfigError(f"order must lie between 1 and the {len(names)} columns and is {order}")
    if min(bins, limit) < 1:
        raise ConfigError(f"bins and limit must be at least 1 and are {bins} and {limit}")
    tables = (read_real_rows(real, schema, "real"), read_rows(synthetic, schema, "synthetic"))
    return marginal_errors(encode_tables(tables, bins), names, order, limit=limit, seed=seed)[0]


def marginal_errors(
    codes: Codes, names: tuple[str, ...], order: int, *, limit: int = 1000, seed: int = 0
) -> tuple[MarginalError, ...]:
    """Of every table but the first, against the first; all over the same sets of columns."""
    sets = column_sets(len(names), order, limit, np.random.default_rng(seed))
    distances = np.array([total_variations(codes, chosen) for chosen in sets])
    of_tables = []
    for errors in distances.T:
        worst = int(np.argmax(errors))
        where = tuple(names[j] for j in sets[worst])
        of_tables.append(
            MarginalError(order, float(errors.mean()), float(errors[worst]), where, len(sets))
        )
    return tuple(of_tables)


def pair_distances(codes: Codes) -> NDArray[np.float64]:
    """Total variation of every pair, [tables - 1, d, d], against the first table.

    The diagonal holds the columns' own.
    """
    columns = len(codes.sizes)
    distances = np.zeros((len(codes.tables) - 1, columns, columns))
    for i in range(columns):
        for j in range(i, columns):
            chosen = np.unique([i, j])
            distances[:, i, j] = distances[:, j, i] = total_variations(codes, chosen)
    return distances


def column_sets(
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


def total_variations(codes: Codes, columns: NDArray[np.int64]) -> list[float]:
    """Total variation of the joint frequencies of these columns, of each other table to the first.

    With many cells only those that occur in some table are counted.
    """
    sizes = [int(size) for size in codes.sizes[columns]]
    if math.prod(sizes) > _DENSE:
        counts = _sparse_counts(codes, columns)
    else:
        counts = [_dense_counts(table, columns, sizes) for table in codes.tables]
    first, *others = counts
    return [float(np.abs(first - other).sum() / 2) for other in others]


def _dense_counts(
    table: NDArray[np.int64], columns: NDArray[np.int64], sizes: list[int]
) -> NDArray[np.float64]:
    cells = table[columns[0]]
    for j, size in zip(columns[1:], sizes[1:], strict=True):
        cells = cells * size + table[j]
    shares: NDArray[np.float64] = np.bincount(cells, minlength=math.prod(sizes)) / table.shape[1]
    return shares


def _sparse_counts(codes: Codes, columns: NDArray[np.int64]) -> list[NDArray[np.float64]]:
    both = np.concatenate([table[columns[0]] for table in codes.tables])
    for j in columns[1:]:
        both = both * codes.sizes[j] + np.concatenate([table[j] for table in codes.tables])
        # Numbered anew after every column, so that no product overflows.
        seen, both = np.unique(both, return_inverse=True)
    ends = np.cumsum([0, *(table.shape[1] for table in codes.tables)])
    return [
        np.bincount(both[start:stop], minlength=len(seen)) / (stop - start)
        for start, stop in itertools.pairwise(ends)
    ]
