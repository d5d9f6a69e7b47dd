"""How sure an attack's figures are: shares, areas under curves, and the tests that raise an alarm.

Shown intervals are at `LEVEL`. An alarm asks for more, `ALARM`: an evaluation runs many attacks,
and one that cries wolf is soon ignored.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fedsynth.errors import DataError

ALARM = 0.001
"""The chance, at most, that one attack raises an alarm about rows that tell nothing (one-sided)."""

LEVEL = 0.95
"""The coverage of a shown interval."""

_DEALS = 20_000
"""Ways to deal scores out to both kinds up to which `scores_differ` looks at all of them, and as
many as it draws of more; and, of those as extreme as the truth, how many end the drawing."""
_ENOUGH = 200

_AT_ONCE, _CELLS = 500, 2**24
"""Ways drawn together, and the most scores of them all: bounds memory."""

_OF_THRESHOLD = 0.8
"""The part of the error of `tpr_at`'s interval that is left to its threshold."""

_MANY, _COMMON = 200, 0.5
"""Scores of the rarer kind from which, if no single score has more than this share of all, the
normal approximation holds as far out as an alarm asks."""


def share_interval(hits: float, n: int, level: float = LEVEL) -> tuple[float, float]:
    """Two-sided Clopper-Pearson interval of a share of `hits` in `n` trials; (0, 1) of none.

    Exact: it covers at least `level` at every n. `hits` need not be whole.
    """
    from scipy.special import betaincinv

    if n == 0:
        return 0.0, 1.0
    tail = (1 - level) / 2
    low = float(betaincinv(hits, n - hits + 1, tail)) if hits > 0 else 0.0
    high = float(betaincinv(hits + 1, n - hits, 1 - tail)) if hits < n else 1.0
    return low, high


def shares_differ(hits_a: int, n_a: int, hits_b: int, n_b: int) -> float:
    """One-sided p-value of Fisher's exact test that rate a is above rate b; 1 without trials.

    Valid at every n, and conservative at a small one.
    """
    from scipy.stats import hypergeom

    if min(n_a, n_b) == 0:
        return 1.0
    p = hypergeom.sf(hits_a - 1, n_a + n_b, hits_a + hits_b, n_a)
    return min(float(p), 1.0)


def auroc(scores_pos: ArrayLike, scores_neg: ArrayLike) -> float:
    """The chance that a positive's score is above a negative's; a tie counts one half.

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    return float(_placements(*_pair(scores_pos, scores_neg))[0].mean())


def auroc_interval(
    scores_pos: ArrayLike, scores_neg: ArrayLike, level: float = LEVEL
) -> tuple[float, float]:
    """Two-sided interval of `auroc` (DeLong, DeLong and Clarke-Pearson 1988), on the logit scale.

    Where that variance is 0 or unknown (no overlap, all tied, one score of a kind), the interval is
    Clopper-Pearson's over as many independent pairs as the smaller kind has scores: exact for pairs
    that share no score, hence wide rather than wrong.

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    from scipy.special import expit, logit, ndtri

    pos, neg = _pair(scores_pos, scores_neg)
    above, below = _placements(pos, neg)
    area, fewer = float(above.mean()), min(len(pos), len(neg))
    variance = 0.0
    if fewer > 1:
        variance = float(above.var(ddof=1) / len(pos) + below.var(ddof=1) / len(neg))
    if variance <= 1e-15 or not 0 < area < 1:
        return share_interval(area * fewer, fewer, level)
    reach = ndtri((1 + level) / 2) * np.sqrt(variance) / (area * (1 - area))
    return float(expit(logit(area) - reach)), float(expit(logit(area) + reach))


def scores_differ(scores_pos: ArrayLike, scores_neg: ArrayLike, seed: int = 0) -> float:
    """One-sided p-value that positives score above negatives (Mann-Whitney U, ties at mid-ranks).

    Of two different scores in all the test is Fisher's exact one, `shares_differ`. Many scores, few
    of them tied, take the normal approximation with the correction for ties. Otherwise the scores
    are dealt out anew: in every way if these are few, which is exact, or in random ones, fewer the
    larger p is (Besag and Clifford 1991), which errs to the safe side and comes down to 5e-5. The
    null, that the kinds are exchangeable, is that of an attack that learns nothing.

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    from scipy.stats import mannwhitneyu, rankdata

    pos, neg = _pair(scores_pos, scores_neg)
    ranks = rankdata(np.concatenate([pos, neg]))
    different, counts = np.unique(ranks, return_counts=True)
    if len(different) == 1:
        return 1.0
    if len(different) == 2:
        high = ranks == different[1]
        ours, theirs = int(high[: len(pos)].sum()), int(high[len(pos) :].sum())
        return shares_differ(ours, len(pos), theirs, len(neg))
    if min(len(pos), len(neg)) >= _MANY and counts.max() <= _COMMON * len(ranks):
        return float(mannwhitneyu(pos, neg, alternative="greater", method="asymptotic").pvalue)
    # Of the rarer kind's sum of ranks either is known from the other's; low ones of negatives are
    # high ones of positives.
    if len(pos) <= len(neg):
        return _permutation_test(ranks, ranks[: len(pos)], seed)
    return _permutation_test(-ranks, -ranks[len(pos) :], seed)


def _permutation_test(ranks: NDArray[np.float64], own: NDArray[np.float64], seed: int) -> float:
    """P-value of a sum as high as `own`'s of as many of the ranks, dealt out at random."""
    sought, few = own.sum() - 1e-6, len(own)
    if math.comb(len(ranks), few) <= _DEALS:
        sums = np.array([sum(dealt) for dealt in itertools.combinations(ranks.tolist(), few)])
        return float((sums >= sought).mean())
    rng, above = np.random.default_rng(seed), 0
    step = max(1, min(_AT_ONCE, _CELLS // len(ranks)))
    for before in range(0, _DEALS, step):
        deals = min(step, _DEALS - before)
        reached = above + np.cumsum(_deal(ranks, few, deals, rng) >= sought)
        above = int(reached[-1])
        if above >= _ENOUGH:
            return _ENOUGH / (before + int(np.searchsorted(reached, _ENOUGH)) + 1)
    return (1 + above) / (1 + _DEALS)


def _deal(
    ranks: NDArray[np.float64], few: int, deals: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Sums [deals] of `few` of the ranks each, drawn without replacement (Floyd's algorithm).

    At place j one of the first j + 1 ranks is drawn, and if it is taken, the one at j instead.
    """
    places, starts = np.arange(len(ranks) - few, len(ranks)), np.arange(deals) * len(ranks)
    taken = np.zeros(deals * len(ranks), bool)
    # Each deal has a row of `taken`, of which these are places.
    drawn = np.ascontiguousarray(rng.integers(places + 1, size=(deals, few)).T)
    drawn += starts
    for place, chosen in zip(places, drawn, strict=True):
        np.putmask(chosen, taken.take(chosen), starts + place)
        taken[chosen] = True
    sums: NDArray[np.float64] = ranks.take(drawn - starts).sum(axis=0)
    return sums


def roc(scores_pos: ArrayLike, scores_neg: ArrayLike, most: int = 200) -> dict[str, list[float]]:
    """The ROC curve as rising lists "fpr" and "tpr" of at most `most` >= 8 points.

    From (0, 0) to (1, 1). Kept are points evenly spaced in FPR and points evenly spaced in its
    logarithm, of those at one FPR the first and the last. The straight line between two points of a
    full curve is what ties amount to.

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    pos, neg = _pair(scores_pos, scores_neg)
    cuts = np.unique(np.concatenate([pos, neg]))[::-1]
    tpr = np.append(0, 1 - np.searchsorted(np.sort(pos), cuts) / len(pos))
    fpr = np.append(0, 1 - np.searchsorted(np.sort(neg), cuts) / len(neg))
    places = np.arange(len(fpr))
    if len(fpr) > most:
        half = most // 2 - 2
        wanted = np.append(np.geomspace(1 / len(neg), 1, half), np.linspace(0, 1, half))
        last = np.searchsorted(fpr, wanted + 1e-12, side="right") - 1
        places = np.unique(np.concatenate([[0, len(fpr) - 1], last]))
    return {"fpr": fpr[places].tolist(), "tpr": tpr[places].tolist()}


def tpr_at(
    scores_pos: ArrayLike, scores_neg: ArrayLike, fpr: float, level: float = LEVEL
) -> tuple[float, float, float] | tuple[None, None, None]:
    """The share of positives found where a share `fpr` of negatives passes; None if too few tell.

    The threshold is the k-th highest of m negatives' scores; what is tied with it does not pass.
    New negatives pass the k-th with chance k / (m + 1) on average, so k is the whole part of
    fpr (m + 1), and without one, at fewer than 1 / `fpr` - 1 negatives, there is no value. On
    scores that tell nothing the value is therefore `fpr` on average, or less.

    Low and high allow for both samples. The threshold whose rate is `fpr` lies, but for the most of
    the error that `level` admits, between negatives found by the Beta distribution of their rates
    (k of m - k + 1), and Clopper-Pearson's limits of the positives above these take the rest. The
    low end is 0 where even the highest negative may be passed too often.

    Returns:
        (value, low, high)

    Raises:
        DataError: no score of one kind, or one that is not a number.
    """
    from scipy.special import betainc

    pos, neg = _pair(scores_pos, scores_neg)
    places, falling = np.arange(1, len(neg) + 1), np.sort(neg)[::-1]
    kept = int(fpr * (len(neg) + 1) + 1e-9)
    if kept < 1:
        return None, None, None
    if kept > len(neg):
        return 1.0, *share_interval(len(pos), len(pos), level)
    error = (1 - level) / 2
    # The chance that the rate at each place is at most fpr: it falls from place to place.
    within = np.asarray(betainc(places, places[::-1], fpr))
    strict = int(np.count_nonzero(within >= 1 - _OF_THRESHOLD * error))
    loose = int(np.count_nonzero(within > _OF_THRESHOLD * error))
    rest = 1 - 2 * (1 - _OF_THRESHOLD) * error
    value = int((pos > falling[kept - 1]).sum())
    low, high = 0.0, 1.0
    if strict:
        low = share_interval(int((pos > falling[strict - 1]).sum()), len(pos), rest)[0]
    if loose < len(neg):
        high = share_interval(int((pos >= falling[loose]).sum()), len(pos), rest)[1]
    return value / len(pos), low, high


def _pair(pos: ArrayLike, neg: ArrayLike) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    both = np.asarray(pos, dtype=np.float64), np.asarray(neg, dtype=np.float64)
    if min(map(len, both)) == 0:
        raise DataError("an attack needs scores of members and of others: give rows of both")
    if any(np.isnan(scores).any() for scores in both):
        raise DataError("an attack's scores contain one that is not a number")
    return both


def _placements(
    pos: NDArray[np.float64], neg: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Of each positive the share of negatives below it, of each negative that of positives above;
    a tie counts one half (Sun and Xu 2014 compute DeLong's components so)."""
    from scipy.stats import rankdata

    ranks = rankdata(np.concatenate([pos, neg]))
    above = (ranks[: len(pos)] - rankdata(pos)) / len(neg)
    below = 1 - (ranks[len(pos) :] - rankdata(neg)) / len(pos)
    return above, below
