"""What released counts say about each class."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.queries.counting import Counts

Floats = NDArray[np.float64]


def label_frequencies(counts: Counts) -> tuple[Floats, float]:
    """Shares of the classes and the number of records (at least 1) from noisy label counts."""
    total = max(1.0, float(counts.values.sum()))
    positive = to_simplex(counts.values, total)
    return positive / positive.sum(), total


def class_profiles(
    counts: Counts, encoding: TableEncoding, target: int, starts: NDArray[np.int64]
) -> tuple[Floats, Floats]:
    """Each class's distribution over the cells of every other column, and the classes' shares.

    Every table is projected onto the tables with the estimated row sums, then each class is shrunk
    towards all classes together by as many records as one standard deviation of the noise, which
    matters where a class is rarer than the noise.

    Returns:
        Profiles [classes, cells], positive, each column's part summing to 1 in every class; and
        class shares [classes].
    """
    classes = encoding.sizes[target]
    sizes = [size for j, size in enumerate(encoding.sizes) if j != target]
    tables = [
        counts.values[start : start + classes * size].reshape(classes, size)
        for start, size in zip(starts, sizes, strict=True)
    ]
    if not tables:
        return np.zeros((classes, 0)), encoding.frequencies[target]
    # A sum over more cells carries more noise: inverse variance weights.
    weights = np.array([1 / size for size in sizes])
    sums = np.average([table.sum(axis=1) for table in tables], axis=0, weights=weights)
    totals = np.maximum(sums, 1.0)
    unit = max(counts.sigma, totals.sum() * 1e-9)
    profiles = []
    for table in tables:
        together = to_simplex(table.sum(axis=0), totals.sum()) + 0.05 * unit
        together /= together.sum()
        shrunk = to_simplex(table, totals) + unit * together
        profiles.append(shrunk / shrunk.sum(axis=1, keepdims=True))
    return np.concatenate(profiles, axis=1), totals / totals.sum()


def naive_bayes(profiles: Floats, shares: Floats) -> Floats:
    """The naive Bayes classifier of one-hot records, [classes, cells + 1] with the bias last.

    The log-odds of a class are its log share plus, for every column, the log of how much likelier
    the record's cell is in the class than among all.
    """
    together = shares @ profiles
    logs = np.log(profiles) - np.log(together)
    prior = np.log(np.maximum(shares, 1e-6))
    return np.concatenate([logs, prior[:, None]], axis=1)


def to_simplex(values: Floats, total: float | Floats) -> Floats:
    """The nearest nonnegative vectors with the given sums (Duchi et al. 2008, Algorithm 1).

    Args:
        values: [..., n].
        total: positive; of all vectors, or of each, [...].
    """
    ordered = np.sort(values)[..., ::-1]
    sums = np.cumsum(ordered, axis=-1) - np.asarray(total)[..., None]
    surplus = sums / np.arange(1, ordered.shape[-1] + 1)
    above = ordered > surplus
    above[..., 0] = True
    last = ordered.shape[-1] - 1 - np.argmax(above[..., ::-1], axis=-1, keepdims=True)
    nearest: Floats = np.maximum(values - np.take_along_axis(surplus, last, axis=-1), 0.0)
    return nearest
