"""Cells of tables of two columns that released counts show to be next to empty."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.marginals.domain import Array, Clique
from fedsynth.marginals.evidence import Evidence
from fedsynth.marginals.fitting import Measurement

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
_NAMED = 5

Mask = NDArray[np.bool_]


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
    shares = {}
    # Once a column, of which every table with it tells.
    for k in sorted({k for pair in pairs for k in pair}):
        if (alone := evidence.estimate((k,))) is not None:
            counts = np.maximum(alone.values, 0.0)
            shares[k] = counts / max(counts.sum(), 1.0)
    for pair in pairs:
        known = evidence.estimate(pair)
        if known is None or not shares.keys() >= set(pair):
            continue
        by_chance = np.outer(*(shares[k] for k in pair)) * total
        mask = _find_cells(known, by_chance, target in pair, whole)
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


def tell_empty(empty: Sequence[tuple[Clique, Mask]], names: Sequence[str]) -> str:
    """How many combinations of which columns' values, these by position among the names."""
    told = [
        f"{int(mask.sum()):,} of {' with '.join(names[k] for k in clique)}"
        for clique, mask in empty
    ]
    more = f", and of {len(told) - _NAMED:,} more pairs" if len(told) > _NAMED else ""
    return ", ".join(told[:_NAMED]) + more
