"""Combinations that released counts show to be next to empty, never drawn.

Noise leaves something in every cell of a table that is fitted to counts which cannot be below 0. In
the many cells that no record is in it adds up: of Adult's education and education-num, each of
which settles the other, three rows in a hundred did not go together. What was released tells so:
single cells that lie far below what their columns alone would put there, and whole tables that are
next to empty but for one cell a value. All of it is post-processing.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.marginals import Clique, Evidence, Measurement, Model, fit
from fedsynth.methods.marginal.measurer import Measurer

_EMPTY = 0.1
"""Of what independent columns would put there, the most that counts as next to nothing."""
_CELL, _TABLE = 2.0, 3.0
"""Deviations of the noise by which a cell's count, and a table's, may be larger than it seems."""
_UNSEEN = 7.0
"""Records that a cell may expect and hold none of by chance, once in a thousand."""
_ITERATIONS, _TOLERANCE, _NAMED = 20, 1e-4, 5

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]


def keep_sense(model: Model, measurer: Measurer) -> Model:
    """The model with structural zeros where what was released shows next to nobody."""
    evidence = Evidence(measurer.measurements)
    pairs = sorted({pair for clique in model.tree.cliques for pair in combinations(clique, 2)})
    zeros = find_empty(evidence, pairs, model.total)
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
    names = [column.name for column in measurer.schema.modelled]
    told = [
        f"{int(mask.sum()):,} of {' with '.join(names[k] for k in clique)}"
        for clique, mask in zeros
    ]
    more = f", and of {len(told) - _NAMED:,} more pairs" if len(told) > _NAMED else ""
    measurer.remarks.append(
        "combinations of values that released counts show next to nobody in are never drawn: "
        f"{', '.join(told[:_NAMED])}{more}"
    )
    return kept


def find_empty(
    evidence: Evidence, pairs: Sequence[Clique], total: float
) -> list[tuple[Clique, Mask]]:
    """Of these pairs of columns, those that were measured and have cells next to empty, and these.

    The largest cell of every value stays, whatever it holds.
    """
    found = []
    for pair in pairs:
        known = evidence.estimate(pair)
        columns = [evidence.estimate((k,)) for k in pair]
        if known is None or columns[0] is None or columns[1] is None:
            continue
        shares = [np.maximum(one.values, 0.0) for one in columns if one is not None]
        shares = [one / max(one.sum(), 1.0) for one in shares]
        mask = _find_cells(known, np.outer(*shares) * total)
        if mask.any():
            found.append((pair, mask))
    return found


def _find_cells(known: Measurement, expected: Array) -> Mask:
    values = known.values
    noise = np.broadcast_to(np.asarray(known.deviations, np.float64), values.shape)
    may_be_empty = values <= _TABLE * noise
    mask = may_be_empty & (np.maximum(values, 0.0) + _CELL * noise + _UNSEEN <= _EMPTY * expected)
    for table, own, by_chance in (
        (values, noise, expected),
        (values.T, noise.T, expected.T),
    ):
        others = np.ones(table.shape, bool)
        others[np.arange(len(table)), table.argmax(axis=1)] = False
        most = max(table[others].sum(), 0.0) + _TABLE * np.sqrt((own[others] ** 2).sum()) + _UNSEEN
        if most <= _EMPTY * by_chance[others].sum():
            empty = others & (may_be_empty if table is values else may_be_empty.T)
            mask |= empty if table is values else empty.T
    mask[np.arange(len(values)), values.argmax(axis=1)] = False
    mask[values.argmax(axis=0), np.arange(values.shape[1])] = False
    return mask
