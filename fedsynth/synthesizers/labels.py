"""Labels of synthetic rows, and what released counts say about each class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema
from fedsynth.synthesizers.counting import Counts
from fedsynth.validation import suggestion

Floats = NDArray[np.float64]


def wanted_labels(
    schema: Schema | ImageSchema,
    frequencies: Floats,
    rows: int,
    where: Mapping[str, Any] | None,
    proportions: Mapping[Any, float] | None,
    rng: np.random.Generator,
) -> NDArray[np.int64] | None:
    """Codes of the target for ``rows`` synthetic rows, or None where the model has no classes.

    Raises:
        ConfigError: a condition on anything but the target, an unknown value, or bad shares.
    """
    if where and proportions:
        raise ConfigError("give either where or proportions: where fixes every row's target")
    if not len(frequencies):
        if where or proportions:
            why = (
                "its schema names no categorical target"
                if not schema.classes
                else "its target is the only column, so there is nothing to draw given it"
            )
            raise ConfigError(f"this model has no classes to condition on: {why}")
        return None
    if where:
        return np.full(rows, _code(schema, where), np.int64)
    shares = wanted_shares(schema, proportions) if proportions else frequencies
    return rng.choice(len(shares), size=rows, p=shares / shares.sum()).astype(np.int64)


def wanted_shares(schema: Schema | ImageSchema, proportions: Mapping[Any, float]) -> Floats:
    """The share of each of the target's categories that ``proportions`` name by value.

    Raises:
        ConfigError: no categorical target, an unknown value, or bad shares.
    """
    if not schema.classes:
        raise ConfigError("proportions need a target of categories, and the schema names none")
    shares = np.zeros(schema.classes)
    for value, share in proportions.items():
        shares[_code(schema, {_target(schema).name: value})] = share
    if not (np.isfinite(shares).all() and (shares >= 0).all() and shares.sum() > 0):
        raise ConfigError("proportions must be finite, not negative, and not all zero")
    total = float(shares.sum())
    return np.asarray(shares / total)


def _target(schema: Schema | ImageSchema) -> Categorical | Boolean:
    target = schema.target if isinstance(schema, ImageSchema) else schema.target_column
    assert isinstance(target, Categorical | Boolean)
    return target


def _code(schema: Schema | ImageSchema, where: Mapping[str, Any]) -> int:
    target = _target(schema)
    others = sorted(set(where) - {target.name})
    if others:
        raise ConfigError(
            f"cannot condition on {', '.join(others)}: this model conditions on its target "
            f"{target.name!r} alone"
        )
    value = where[target.name]
    spelled = [str(category) for category in target.categories]
    if str(value) not in spelled:
        raise ConfigError(f"{target.name} has no value {value!r}{suggestion(str(value), spelled)}")
    return spelled.index(str(value))


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
        own = np.stack([to_simplex(row, total) for row, total in zip(table, totals, strict=True)])
        shrunk = own + unit * together
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


def to_simplex(values: Floats, total: float) -> Floats:
    """The nearest nonnegative vector with the given sum (Duchi et al. 2008, Algorithm 1)."""
    ordered = np.sort(values)[::-1]
    surplus = (np.cumsum(ordered) - total) / np.arange(1, len(values) + 1)
    last = np.flatnonzero(ordered > surplus)[-1]
    nearest: Floats = np.maximum(values - surplus[last], 0.0)
    return nearest
