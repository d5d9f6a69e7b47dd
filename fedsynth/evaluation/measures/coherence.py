"""Rows that make sense: combinations of two columns that real rows hardly show.

A wife who is a man, an age that does not go with a date of birth: each column may be right, and its
pairs nearly so, and a row is still none that anybody would believe.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.measures.cutting import Cut
from fedsynth.evaluation.measures.marginals import column_sets
from fedsynth.evaluation.reading.rows import Rows, shuffle_columns

_SURE = 0.999
"""One-sided certainty that what real rows hardly show is rare and not only unseen."""
_EMPTY = 0.1
"""Of what independent columns would put into a cell, the most that a nearly empty one holds."""
_EXCEPTIONS, _SETTLED = 0.01, 0.02
"""The most rows that a column which settles another gets wrong: of all, and of those that the
other's frequencies alone would."""

_ROWS, MOST_PAIRS, _SHOWN = 50_000, 5_000, 20
"""Rows that pairs are sought in, pairs that are looked at, pairs that are listed."""

Codes = NDArray[np.int64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Mismatch:
    """Two columns of which real rows hardly show some combinations.

    settled: which of them follows from the other, nearly always; none where single combinations are
        nearly empty. cells: how many combinations real rows hardly show.
    synthetic, real, trivial: shares of rows with one of these: synthetic ones, real ones that the
        combinations were not sought in, columns shuffled each on its own.
    example: the commonest of them among synthetic rows, a value a column, and `share` that has it;
        None where there is none.
    """

    columns: tuple[str, str]
    settled: tuple[str, ...]
    cells: int
    synthetic: float
    real: float
    trivial: float
    example: tuple[str, str] | None
    share: float


@dataclass(frozen=True)
class Coherence:
    """How many rows hold a combination of two values that real rows hardly show.

    Sought in other real rows, columns cut coarsely: a gap and every category is a value, and so is
    each number where there are few; else they are bins of about equal mass. Two things count:

    * *A column settles another*: knowing it one is wrong about the other in at most 1 % of the
      rows, and in at most 2 % of those that one is wrong about without. What half of the rows
      teach is tried on the other half. All combinations but the common ones then count.
    * *A cell is nearly empty*: it holds at most a tenth of what independent columns would put in.

    Either with a certainty of 99.9 %, so that few rows make no pair: of a cell that holds nobody,
    69 would have to be expected; for a column that settles another it takes 350 rows or more.

    Attributes:
        synthetic, real, trivial: shares of rows with any such combination (see :class:`Mismatch`).
        declared: share of synthetic rows that break a constraint of the schema; None without one.
        pairs: how many of those tried hold such combinations. tried: pairs of columns.
        worst: the pairs of which most synthetic rows hold one, 20 at most.
    """

    synthetic: float
    real: float
    trivial: float
    declared: float | None
    pairs: int
    tried: int
    worst: tuple[Mismatch, ...]


def coherence(synthetic: Rows, other: Rows, real: Rows, seed: int = 0) -> Coherence:
    """Of synthetic rows, beside `real` ones and columns that know nothing of each other.

    Args:
        other: real rows in which combinations are sought: 50,000 of them, and 5,000 pairs of
            columns, drawn by the seed where there are more.
    """
    sought = other.sample(_ROWS, seed)
    alone = shuffle_columns(sought, seed)
    cuts = [Cut(sought, j) for j in range(len(sought.names))]
    people = sought.people
    halves = (np.random.default_rng(seed).permutation(people.max() + 1) % 2 == 0)[people]
    known = [cut.codes(sought) for cut in cuts]
    tables = [[cut.codes(rows) for cut in cuts] for rows in (synthetic, real, alone)]
    any_of = [np.zeros(len(rows), bool) for rows in (synthetic, real, alone)]
    chosen = column_sets(len(cuts), 2, MOST_PAIRS, np.random.default_rng(seed))
    found = []
    for i, j in (one.tolist() for one in chosen):
        rare, settled = _find_rare(cuts[i], cuts[j], known[i], known[j], halves)
        if not rare.any():
            continue
        broken = [rare[codes[i], codes[j]] for codes in tables]
        for mask, own in zip(any_of, broken, strict=True):
            mask |= own
        ours, theirs, trivial = (float(own.mean()) for own in broken)
        example, share = _exemplify((cuts[i], cuts[j]), tables[0][i], tables[0][j], broken[0])
        both = (cuts[i].name, cuts[j].name)
        named, cells = tuple(both[k] for k in settled), int(rare.sum())
        found.append(Mismatch(both, named, cells, ours, theirs, trivial, example, share))
    found.sort(key=lambda one: -one.synthetic)
    ours, theirs, trivial = (float(mask.mean()) for mask in any_of)
    return Coherence(
        ours, theirs, trivial, _declared(synthetic), len(found), len(chosen), tuple(found[:_SHOWN])
    )


def _find_rare(first: Cut, second: Cut, a: Codes, b: Codes, halves: Mask) -> tuple[Mask, list[int]]:
    """Combinations [codes, codes] that the rows hardly show, and which column follows from which:
    0 for the first of them, 1 for the second."""
    shape = (first.size, second.size)
    parts = [
        np.bincount(a[half] * shape[1] + b[half], minlength=shape[0] * shape[1]).reshape(shape)
        for half in (halves, ~halves)
    ]
    counts = parts[0] + parts[1]
    expected = counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None, :] / max(1, len(a))
    rare: Mask = np.zeros(shape, bool)
    np.less_equal(_at_most(counts), _EMPTY * expected, out=rare, where=expected > 0)
    settled = []
    if _settles(parts):
        np.logical_or(rare, _uncommon(counts), out=rare)
        settled.append(1)
    if _settles([part.T for part in parts]):
        np.logical_or(rare, _uncommon(counts.T).T, out=rare)
        settled.append(0)
    rare[first.vague, :] = rare[:, second.vague] = False
    return rare, settled


def _at_most(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest Poisson mean that so few would not be surprising of, at the certainty asked."""
    from scipy.special import gammaincinv

    limits: NDArray[np.float64] = gammaincinv(counts + 1.0, _SURE)
    return limits


def _settles(parts: Sequence[NDArray[np.int64]]) -> bool:
    """Whether the first column's value tells the second's, as learned of one half and tried on the
    other; a value that the first half lacks is a miss."""
    counts = parts[0] + parts[1]
    total, shares = counts.sum(), counts.sum(axis=0) / max(1, counts.sum())
    best = counts.argmax(axis=1)
    unaided = float((counts.sum(axis=1) * (1 - shares[best])).sum())
    misses = 0
    for learned, tried in (parts, parts[::-1]):
        seen = learned.any(axis=1)
        hits = tried[np.arange(len(tried)), learned.argmax(axis=1)]
        misses += int((tried.sum(axis=1) - np.where(seen, hits, 0)).sum())
    return bool(_at_most(np.array(misses)) <= min(_SETTLED * unaided, _EXCEPTIONS * total))


def _uncommon(counts: NDArray[np.int64]) -> Mask:
    """All but the commonest second value of each first one that occurs."""
    mask = np.broadcast_to(counts.sum(axis=1)[:, None] > 0, counts.shape).copy()
    mask[np.arange(len(counts)), counts.argmax(axis=1)] = False
    return mask


def _exemplify(
    cuts: tuple[Cut, Cut], a: Codes, b: Codes, broken: Mask
) -> tuple[tuple[str, str] | None, float]:
    """The commonest combination among the broken rows, and its share of all rows."""
    if not broken.any():
        return None, 0.0
    cells = np.bincount(a[broken] * cuts[1].size + b[broken])
    i, j = divmod(int(cells.argmax()), cuts[1].size)
    return (cuts[0].label(i), cuts[1].label(j)), float(cells.max() / len(a))


def _declared(rows: Rows) -> float | None:
    """The share of rows that break a constraint of their schema."""
    if not rows.schema.constraints:
        return None
    arrays = {
        name: np.where(np.isnan(values), -1, values).astype(np.int64) if size else values
        for name, values, size in zip(rows.names, rows.values.T, rows.sizes, strict=True)
    }
    return float(rows.schema.broken(arrays).mean())
