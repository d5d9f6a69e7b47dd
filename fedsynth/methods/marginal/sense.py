"""Combinations that released counts show to be next to empty, drawn never or hardly ever.

Noise leaves something in every cell of a table that is fitted to counts which cannot be below 0. In
the many cells that no record is in it adds up: of Adult's education and education-num, each of
which settles the other, three rows in a hundred did not go together. What was released tells so:
single cells that lie far below what their columns alone would put there, values of a column that go
with one of another's, and whole tables that are next to empty but for one cell a value. All of it
is post-processing.

What is taken for empty may hold some: at most about two deviations of the noise in its count, by
which the model would be off in any case.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.marginals import Clique, Evidence, Measurement, Model, fit
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.schema import Schema
from fedsynth.schema.target import target_index

_CELL, _VALUE, _TABLE = (0.5, 1.5), (0.2, 1.5), (0.1, 3.0)
"""Of what independent columns would put there, the most that is next to nothing: in a cell, in all
but one cell of a value, in all but one of every value; and deviations of the noise by which a count
may be larger than it seems."""
_HIDDEN, _SETTLED = 2.0, 3.0
"""Deviations of its noise that an empty cell may seem to hold: by cell and value, by table."""
_STRICT = (0.1, 2.0)
"""Both of a cell and of a value in tables with the target: a class's few in a value tell of it."""
_UNSEEN = 7.0
"""Records that a cell may expect and hold none of by chance, once in a thousand."""
_ITERATIONS, _TOLERANCE, _NAMED = 20, 1e-4, 5

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def keep_sense(model: Model, measurer: Measurer) -> Model:
    """The model with structural zeros where what was released shows next to nobody."""
    evidence, target = Evidence(measurer.measurements), _target(measurer.schema)
    pairs = sorted({pair for clique in model.tree.cliques for pair in combinations(clique, 2)})
    zeros = find_empty(evidence, pairs, model.total, target)
    outside = find_outside(model, measurer.measurements, measurer.schema)
    names = [column.name for column in measurer.schema.modelled]
    if outside:
        measurer.remarks.append(
            "rows that drew a combination of values that released counts show next to nobody in "
            "exchange values with others, where such are found: "
            f"{tell_empty(outside, names)}"
        )
    if not zeros:
        return model
    try:
        kept = fit(
            measurer.domain,
            evidence.select(model.tree, pairs),
            total=model.total,
            start=model,
            zeros=[*measurer.zeros, *zeros],
            iterations=_ITERATIONS,
            tolerance=_TOLERANCE,
        )
    except ConfigError:
        # Of several tables that go through each other's cells none may be left.
        return model
    measurer.remarks.append(
        "combinations of values that released counts show next to nobody in are never drawn: "
        f"{tell_empty(zeros, names)}"
    )
    return kept


def tell_empty(empty: Sequence[tuple[Clique, Mask]], names: Sequence[str]) -> str:
    """How many combinations of which columns' values, these by position among the names."""
    told = [
        f"{int(mask.sum()):,} of {' with '.join(names[k] for k in clique)}"
        for clique, mask in empty
    ]
    more = f", and of {len(told) - _NAMED:,} more pairs" if len(told) > _NAMED else ""
    return ", ".join(told[:_NAMED]) + more


def find_outside(
    model: Model, measurements: Sequence[Measurement], schema: Schema
) -> list[tuple[Clique, Mask]]:
    """Of the pairs that no clique of the model's tree holds, so that none of its factors can
    forbid them, those with cells next to empty, and these."""
    inside = {pair for clique in model.tree.cliques for pair in combinations(clique, 2)}
    pairs = [pair for pair in combinations(range(len(model.domain)), 2) if pair not in inside]
    return find_empty(Evidence(measurements), pairs, model.total, _target(schema))


def _target(schema: Schema) -> int | None:
    return None if schema.target_column is None else target_index(schema)


def find_empty(
    evidence: Evidence,
    pairs: Sequence[Clique],
    total: float,
    target: int | None = None,
    whole: tuple[float, float] = _TABLE,
) -> list[tuple[Clique, Mask]]:
    """Of these pairs of columns, those that were measured and have cells next to empty, and these.

    The largest cell of every value stays, whatever it holds.

    Args:
        whole: of a table that is next to empty but for one cell a value, the most that its other
            cells hold of what independent columns would put there, and deviations to spare.
    """
    found = []
    for pair in pairs:
        known = evidence.estimate(pair)
        columns = [evidence.estimate((k,)) for k in pair]
        if known is None or columns[0] is None or columns[1] is None:
            continue
        shares = [np.maximum(one.values, 0.0) for one in columns if one is not None]
        shares = [one / max(one.sum(), 1.0) for one in shares]
        mask = _find_cells(known, np.outer(*shares) * total, target in pair, whole)
        if mask.any():
            found.append((pair, mask))
    return found


def _find_cells(
    known: Measurement, expected: Array, strictly: bool, most: tuple[float, float]
) -> Mask:
    values = known.values
    noise = np.broadcast_to(np.asarray(known.deviations, np.float64), values.shape)
    mask = values <= _HIDDEN * noise
    mask &= _are_empty(values, noise, expected, *(_STRICT if strictly else _CELL))
    for table, own, by_chance, found in (
        (values, noise, expected, mask),
        (values.T, noise.T, expected.T, mask.T),
    ):
        others = np.ones(table.shape, bool)
        others[np.arange(len(table)), table.argmax(axis=1)] = False
        sums = [(one * others).sum(axis=1) for one in (table, own**2, by_chance)]
        settled = _are_empty(sums[0], np.sqrt(sums[1]), sums[2], *(_STRICT if strictly else _VALUE))
        found |= others & settled[:, None] & (table <= _HIDDEN * own)
        whole = [np.array(one.sum()) for one in sums]
        if _are_empty(whole[0], np.sqrt(whole[1]), whole[2], *most):
            found |= others & (table <= _SETTLED * own)
    mask[np.arange(len(values)), values.argmax(axis=1)] = False
    mask[values.argmax(axis=0), np.arange(values.shape[1])] = False
    return mask


def _are_empty(values: Array, noise: Array, by_chance: Array, most: float, sure: float) -> Mask:
    """Whether counts are at most a share of those by chance, with so many deviations to spare."""
    return np.asarray(np.maximum(values, 0.0) + sure * noise + _UNSEEN <= most * by_chance)
