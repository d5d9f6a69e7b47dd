"""Rows that break the schema's constraints, mended: what nobody forbids stays as it was drawn.

Drawing a broken row again as a whole moves what has nothing to do with the constraint: a class of
which more rows break it becomes rarer, and so do gaps, which break nothing. So only the cells that
the broken constraints are about change: they are taken from a row that keeps the constraints, has
the same class and the same gaps among these cells, and is otherwise as like as any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Columns = dict[str, NDArray[Any]]
Mask = NDArray[np.bool_]
Labels = NDArray[np.int64]

# Rows that keep the constraints are looked for among further draws while a kind of row has fewer
# than so many, in the first rounds, and none, in all: each draws twice as many as the last.
_ENOUGH, _FIRST, _ROUNDS, _BATCH = 8, 3, 9, 256
_COMPARED, _AT_ONCE = 256, 512


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows [n] and what they may not lose in mending: kinds [n], their classes."""

    columns: Columns
    kinds: Labels

    def __len__(self) -> int:
        return len(self.kinds)

    def take(self, rows: NDArray[Any]) -> Rows:
        """The rows at these positions."""
        return Rows({name: cells[rows] for name, cells in self.columns.items()}, self.kinds[rows])

    def join(self, other: Rows) -> Rows:
        """Both, one after the other."""
        columns = {
            name: np.concatenate([cells, other.columns[name]])
            for name, cells in self.columns.items()
        }
        return Rows(columns, np.concatenate([self.kinds, other.kinds]))


@dataclass(frozen=True)
class Rules:
    """What rows may not be.

    parts: columns that constraints tie together, each in one part.
    broken: of rows, bool [n] for each part: which break one of its constraints.
    gaps: whether cells of a column are missing, bool [n].
    """

    parts: Sequence[tuple[str, ...]]
    broken: Callable[[Columns], list[Mask]]
    gaps: Callable[[str, NDArray[Any]], Mask]


def mend(
    rows: Rows,
    rules: Rules,
    more: Callable[[NDArray[np.intp]], Rows],
    rng: np.random.Generator,
    *,
    strict: bool,
) -> Mask:
    """Have rows keep the rules, in place; which rows [n] could not be.

    Args:
        rows: as drawn.
        rules: which rows break something, of whatever columns.
        more: further rows as those at these positions, or fewer of them.
        rng: a generator.
        strict: no row may change its kind; else one does where no row of its kind keeps the rules.
    """
    broken = rules.broken(rows.columns)
    whole = ~np.logical_or.reduce([np.zeros(len(rows), bool), *broken])
    left = np.zeros(len(rows), bool)
    if whole.all():
        return left
    donors = _find_donors(rows, rules, broken, rows.take(np.flatnonzero(whole)), more)
    scales = {
        name: float(np.nanstd(cells)) or 1.0 if cells.dtype.kind == "f" and len(cells) else 1.0
        for name, cells in donors.columns.items()
    }
    for names, mask in zip(rules.parts, broken, strict=True):
        hurt = np.flatnonzero(mask)
        if not len(hurt):
            continue
        both = rows.take(hurt), donors
        # First alike in class and gaps, then in class alone.
        levels: list[list[NDArray[Any]]] = [
            [_keys(one, names, rules) for one in both],
            [one.kinds for one in both],
        ]
        if not strict:
            levels.append([np.zeros(len(one)) for one in both])
        pending = np.ones(len(hurt), bool)
        for wanted, offered in levels:
            for key in np.unique(wanted[pending]):
                at = np.flatnonzero(pending & (wanted == key))
                pool = np.flatnonzero(offered == key)
                if len(pool):
                    _copy(rows, hurt[at], donors, pool, names, scales, rng)
                    pending[at] = False
        left[hurt[pending]] = True
    return left


def _keys(rows: Rows, names: tuple[str, ...], rules: Rules) -> NDArray[np.float64]:
    """A number for each kind of row by class and by gaps among these columns."""
    keys = rows.kinds.astype(np.float64)
    for name in names:
        keys = 2 * keys + rules.gaps(name, rows.columns[name])
    return keys


def _find_donors(
    rows: Rows,
    rules: Rules,
    broken: Sequence[Mask],
    donors: Rows,
    more: Callable[[NDArray[np.intp]], Rows],
) -> Rows:
    """With further rows that keep the rules, of the kinds of which there are few."""
    hurt = [
        (names, np.flatnonzero(mask))
        for names, mask in zip(rules.parts, broken, strict=True)
        if mask.any()
    ]
    for round_ in range(_ROUNDS):
        least = _ENOUGH if round_ < _FIRST else 1
        lacking = []
        for names, at in hurt:
            offered, counts = np.unique(_keys(donors, names, rules), return_counts=True)
            known = offered[counts >= least]
            lacking.append(at[~np.isin(_keys(rows.take(at), names, rules), known)])
        wanted = np.unique(np.concatenate(lacking))
        if not len(wanted):
            break
        found = more(np.resize(wanted, max(len(wanted), _BATCH << round_)))
        keep = ~np.logical_or.reduce([np.zeros(len(found), bool), *rules.broken(found.columns)])
        donors = donors.join(found.take(np.flatnonzero(keep)))
    return donors


def _copy(
    rows: Rows,
    at: NDArray[np.intp],
    donors: Rows,
    pool: NDArray[np.intp],
    names: tuple[str, ...],
    scales: Mapping[str, float],
    rng: np.random.Generator,
) -> None:
    """Take the cells of `names` from the most alike of some of the pool's rows."""
    for start in range(0, len(at), _AT_ONCE):
        own = at[start : start + _AT_ONCE]
        some = rng.choice(pool, min(len(pool), _COMPARED), replace=False)
        # Of equals any.
        apart = rng.random((len(own), len(some))) * 1e-3
        for name, cells in rows.columns.items():
            apart += _distance(cells[own], donors.columns[name][some], scales[name])
        chosen = some[apart.argmin(axis=1)]
        for name in names:
            rows.columns[name][own] = donors.columns[name][chosen]


def _distance(a: NDArray[Any], b: NDArray[Any], scale: float) -> NDArray[np.float64]:
    """How unlike cells [n] and [m] of a column are, [n, m] in [0, 1]: a gap is unlike a number."""
    if a.dtype.kind != "f":
        return np.asarray(a[:, None] != b[None, :], np.float64)
    apart = np.minimum(np.abs(a[:, None] - b[None, :]) / scale, 1.0)
    gaps = np.isnan(a)[:, None] != np.isnan(b)[None, :]
    return np.asarray(np.where(np.isnan(apart), gaps, apart), np.float64)
