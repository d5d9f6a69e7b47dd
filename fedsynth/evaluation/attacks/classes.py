"""The k-anonymity family, counted over the classes of rows that look alike to an outsider."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

_CELLS = 2**22
"""Cells of a block of the classes' cumulative shares."""


@dataclass(frozen=True)
class Diversity:
    """What the classes give away of one sensitive column; each is the worst class's figure.

    alpha: share of the commonest value, in (0, 1]. l: different values. entropy_l: exp of the
    entropy, at least 1 (Machanavajjhala et al. 2007). c: the ratio r_1 / (r_l + .. + r_m) of counts
    in falling order; (c, l)-diversity holds for every c above it; NaN where l is 1.
    t: distance of the values' shares from those in the table, in [0, 1] (Li et al. 2007): half the
    L1 distance, of numbers the earth mover's over ranks.
    beta: largest (q - p) / p of a share q above the table's share p (Cao and Karras 2012).
    enhanced_beta: the least b with (q - p) / p <= min(b, -ln p) for all of them; infinite where no
    b does, as in every class of one value.
    delta: largest |ln(q / p)| (Brickell and Shmatikov 2008); infinite where a class lacks a value.
    information: H(S) - H(S | class) in nats, what the class tells of the value.
    """

    alpha: float
    l: int  # noqa: E741
    entropy_l: float
    c: float
    t: float
    beta: float
    enhanced_beta: float
    delta: float
    information: float


def diversity(classes: NDArray[np.int64], values: NDArray[np.int64], *, ordered: bool) -> Diversity:
    """Of rows' classes [n] and sensitive values [n], both codes from 0 that all occur.

    `ordered` values are ranks of numbers: how far apart they are counts in `t`.
    """
    sizes, totals = np.bincount(classes), np.bincount(values)
    pairs, counts = np.unique(classes * len(totals) + values, return_counts=True)
    owner, value = np.divmod(pairs, len(totals))
    q, p = counts / sizes[owner], totals[value] / len(values)
    distinct = np.bincount(owner)
    entropy = np.bincount(owner, -q * np.log(q))
    excess = (q - p) / p
    enhanced = excess[q > p].max(initial=0.0)
    if (excess > -np.log(p) + 1e-12).any():
        enhanced = math.inf
    lacking = (distinct < len(totals)).any()
    shares = totals / len(values)
    return Diversity(
        alpha=float(q.max()),
        l=int(distinct.min()),
        entropy_l=float(np.exp(entropy.min())),
        c=_recursive(owner, counts, int(distinct.min())),
        t=_ranked(owner, value, q, shares, len(sizes)) if ordered else _unranked(owner, q, p),
        beta=float(max(excess.max(), 0.0)),
        enhanced_beta=float(enhanced),
        delta=math.inf if lacking else float(np.abs(np.log(q / p)).max()),
        information=float(-(shares * np.log(shares)).sum() - (entropy * sizes).sum() / len(values)),
    )


def _recursive(owner: NDArray[np.int64], counts: NDArray[np.int64], l: int) -> float:  # noqa: E741
    """The largest r_1 / (r_l + .. + r_m) of a class, whose counts r fall; NaN for l = 1."""
    if l == 1:
        return math.nan
    order = np.lexsort((-counts, owner))
    starts = np.searchsorted(owner[order], np.arange(owner.max() + 1))
    place = np.arange(len(order)) - starts[owner[order]]
    rest = np.bincount(owner[order], np.where(place >= l - 1, counts[order], 0))
    return float((counts[order][starts] / rest).max())


def _unranked(owner: NDArray[np.int64], q: NDArray[np.float64], p: NDArray[np.float64]) -> float:
    """Half the L1 distance is what shares of the values that occur are above the table's."""
    return float(np.bincount(owner, np.maximum(q - p, 0)).max())


def _ranked(
    owner: NDArray[np.int64],
    value: NDArray[np.int64],
    q: NDArray[np.float64],
    shares: NDArray[np.float64],
    classes: int,
) -> float:
    """1 / (m - 1) of the sum over i of |sum over j <= i of (q_j - p_j)|; 0 of one value."""
    ranks, worst = len(shares), 0.0
    if ranks == 1:
        return 0.0
    step = max(1, _CELLS // ranks)
    for start in range(0, classes, step):
        here = (owner >= start) & (owner < start + step)
        gaps = np.tile(-shares, (min(step, classes - start), 1))
        gaps[owner[here] - start, value[here]] += q[here]
        worst = max(worst, float(np.abs(gaps.cumsum(axis=1)).sum(axis=1).max()) / (ranks - 1))
    return worst
