"""Membership attacks on a method rather than on one release: it is trained again and again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.agreed import demand_whole, shown
from fedsynth.data.persons import number
from fedsynth.demands import demand_kind
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.membership import (
    FPRS,
    TOPS,
    MembershipAttack,
    Rate,
    describe_attack,
)
from fedsynth.evaluation.attacks.neighbours import draw_rows, row_keys
from fedsynth.evaluation.attacks.reading import Reading
from fedsynth.evaluation.reading.confidence import ALARM, LEVEL, auroc, share_interval, tpr_at
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.evaluation.reading.steps import Steps
from fedsynth.progress import showing
from fedsynth.schema import Schema
from fedsynth.schema.frames import demand_frame

Make = Callable[[pd.DataFrame, int], pd.DataFrame]
"""Trains a method on rows, with a seed, and returns synthetic rows."""

_LOOKS = 1 + len(TOPS)
_REDRAWS = round(_LOOKS / ALARM) - 1
"""Beating all of them has chance `ALARM` / `_LOOKS` if releases tell nothing."""

_BLOCK = 50
_RESAMPLES = 500
_PRIOR = 4.0
"""Weight, in shadows, of what holds for all targets in what is estimated for one."""


def shadow_attack(
    make: Make,
    pool: pd.DataFrame,
    schema: Schema,
    *,
    shadows: int = 16,
    targets: int = 100,
    seed: int = 0,
    progress: Steps | bool = True,
) -> MembershipAttack:
    """A likelihood-ratio attack on synthetic rows (LiRA, Carlini et al. 2022) for small data.

    Half of the shadows are trained on random halves of the pool, the others on what these leave, so
    that each target, a random row of the pool, is in half of them; where the schema names a person
    halves are of persons, and targets rows of different ones. Every release is attacked with
    what all but it and its complement taught. What the attacker reads from a release about a target
    are its distances to the nearest synthetic rows, the most surprising agreement with one of them
    (see `membership`), and its likelihood under the release's one- and two-way marginals, which
    catches methods that copy no row (Stadler et al. 2022 learn from such summaries). These are
    joined linearly, as ridge regression of membership over all targets tells, and modelled as a
    Gaussian of each target when in and when out; parameters of few shadows are drawn to those of
    all targets. The score of a trial, a target in one release, is the log likelihood ratio.

    Trials share releases and targets and are far from independent. Two answers to that:

    Alarm: a randomisation test. If releases tell nothing of their rows, all that was read is fixed
    whatever the halves were, so the halves can be drawn again and the whole attack repeated: the
    truth is no more extreme than redraws, at any number of trials and however they depend. Looked
    at are AUROC and how many members are among the highest hundredth and twentieth of scores, each
    at a third of `ALARM`.

    Intervals: pairs of shadows and targets are both resampled (Owen 2007, the pigeonhole bootstrap,
    which errs on the wide side); where nothing varies, Clopper-Pearson over the targets.

    Figures are means over random rows of the pool: a rare row can be at far greater risk.

    Args:
        make: called once per shadow with half of the pool and a seed.
        shadows: an even number of at least 4.
        progress: True shows it on a terminal or in a notebook, False nowhere; or what is to be
            called with the shadows done and all of them.

    Raises:
        ConfigError: an odd number of shadows or fewer than 4, or no target.
        DataError: a pool of fewer than 4 rows, or rows that are not the schema's.
    """
    if not callable(make):
        raise ConfigError(f"make must be a function of rows and a seed, not {shown(make)}")
    demand_kind("schema", schema, Schema, "a table's Schema")
    shadows, targets = demand_whole("shadows", shadows, 1), demand_whole("targets", targets, 1)
    pool = demand_frame(pool, "pool of the shadow attack")
    rows = _read_pool(pool, schema, shadows)
    rng = np.random.default_rng(demand_whole("seed", seed, 0))
    # Random order, so that the targets are the first rows, one a person; an odd one is left out.
    order = draw_rows(row_keys(rows), len(rows), rng)
    whose = number(rows.people[order])
    people = (int(whose.max()) + 1) // 2 * 2
    order, whose = order[whose < people], whose[whose < people]
    chosen = rows.take(order[np.unique(whose, return_index=True)[1][:targets]])
    inside = _draw_halves(1, shadows // 2, people, rng)[0]
    reading = Reading.of(rows, chosen, rng)
    read = []
    told = (lambda _, *steps: progress(*steps)) if callable(progress) else progress
    with showing(told) as report:
        report("shadows", 0, shadows)
        for place, members in enumerate(inside):
            taught = pool.iloc[order[members[whose]]].reset_index(drop=True)
            made = make(taught, int(rng.integers(2**31)))
            where = f"synthetic rows of shadow {place + 1}"
            read.append(reading.statistics(read_rows(made, schema, where)))
            report("shadows", place + 1, shadows)
    return _judge(np.stack(read), inside[:, :targets], people, rng)


def _read_pool(pool: pd.DataFrame, schema: Schema, shadows: int) -> Rows:
    if shadows < 4 or shadows % 2:
        raise ConfigError(
            f"a shadow attack needs an even number of shadows, at least 4: not {shadows}"
        )
    rows = read_rows(pool, schema, "pool of the shadow attack")
    if (count := int(rows.people.max()) + 1) < 4:
        what = "rows" if rows.persons is None else "persons"
        raise DataError(f"a shadow attack needs a pool of at least 4 {what} and has {count}")
    return rows


def _draw_halves(draws: int, pairs: int, rows: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Which rows each shadow trains on, [draws, 2 * pairs, rows]: halves, and their complements."""
    halves = np.broadcast_to(np.arange(rows) < rows // 2, (draws, pairs, rows))
    halves = rng.permuted(halves, axis=2)
    return np.stack([halves, ~halves], axis=2).reshape(draws, 2 * pairs, rows)


def _judge(
    read: NDArray[np.float64], inside: NDArray[np.bool_], rows: int, rng: np.random.Generator
) -> MembershipAttack:
    """The result of statistics [s, t, q] about targets that were inside [s, t]."""
    scale = (read - read.mean(axis=0)).std(axis=(0, 1))
    # A statistic that hardly varies carries no more than rounding.
    read = (read - read.mean(axis=0))[:, :, scale > 1e-9] / scale[scale > 1e-9]
    scores = _scores(read, inside[None])
    members, others = scores[0][inside], scores[0][~inside]
    caught = _alarm(read, inside, rows, _extremes(scores, inside[None])[0], rng)
    low, high = _bootstrap(scores[0], inside, rng)
    area, rates_found = auroc(members, others), [tpr_at(members, others, fpr)[0] for fpr in FPRS]
    targets = inside.shape[1]

    def span(value: float, below: float, above: float) -> tuple[float, float]:
        if above - below > 1e-9:
            return min(below, value), max(above, value)
        return share_interval(value * targets, targets)

    rates = tuple(
        Rate(fpr, value, *((None, None) if value is None else span(value, below, above)))
        for fpr, value, below, above in zip(FPRS, rates_found, low[1:], high[1:], strict=True)
    )
    shown = span(area, low[0], high[0])
    return describe_attack("shadow models", members, others, caught, shown, rates)


def _scores(read: NDArray[np.float64], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Log likelihood ratios [draws, s, t] of statistics [s, t, q] for memberships [draws, s, t].

    A release is attacked without its complement, too: which of the two were left out would
    otherwise show in how often the others hold the target.
    """
    signs = np.where(inside, 1.0, -1.0)
    scores = np.zeros(signs.shape)
    for first in range(0, len(read), 2):
        others = np.delete(np.arange(len(read)), [first, first + 1])
        known = read[others] - read[others].mean(axis=0)
        fresh = read[first : first + 2] - read[others].mean(axis=0)
        spread = np.einsum("stq,str->qr", known, known)
        spread += np.eye(len(spread)) * (0.01 * np.trace(spread) / max(len(spread), 1) + 1e-12)
        sums = np.einsum("dst,stq->dq", signs[:, others], known, optimize=True)
        slopes = sums @ np.linalg.inv(spread)
        scores[:, first : first + 2] = _ratio(
            np.einsum("stq,dq->dst", known, slopes, optimize=True),
            signs[:, others],
            np.einsum("stq,dq->dst", fresh, slopes, optimize=True),
        )
    return scores


def _ratio(
    known: NDArray[np.float64], signs: NDArray[np.float64], fresh: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Gaussian log likelihood ratios of `fresh` [draws, 2, t], taught by `known` [draws, s, t].

    A target's `known` have mean 0, and half of their `signs` are 1 (in), half -1 (out).
    """
    half = known.shape[1] // 2
    free = max(half - 1, 1)
    effect = np.einsum("dst,dst->dt", known, signs) / known.shape[1]
    # Either half's mean is the effect, but for the sign: so its squares lie about it.
    squares = known**2
    both, more = squares.sum(axis=1), np.einsum("dst,dst->dt", squares, signs)
    within = {sign: np.maximum((both + sign * more) / 2 - half * effect**2, 0) for sign in (1, -1)}
    noise = (within[1] + within[-1]).mean(axis=1, keepdims=True) / (2 * free) / (2 * half)
    # Of the variance between targets' effects, what sampling does not explain (empirical Bayes).
    common = effect.mean(axis=1, keepdims=True)
    true = np.maximum(effect.var(axis=1, keepdims=True) - noise, 0)
    effect = common + (effect - common) * true / (true + noise + 1e-12)
    ratio = np.zeros(fresh.shape)
    for sign, squared in within.items():
        shared = squared.mean(axis=1, keepdims=True) / free
        variance = ((squared + _PRIOR * shared) / (free + _PRIOR) + 1e-6)[:, None]
        ratio -= sign * ((fresh - sign * effect[:, None]) ** 2 / variance + np.log(variance)) / 2
    return ratio


def _extremes(scores: NDArray[np.float64], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """Of each draw, what the alarm looks at [draws, 3]: members' ranks, members at the top."""
    from scipy.stats import rankdata

    flat, members = scores.reshape(len(scores), -1), inside.reshape(len(scores), -1)
    figures = [(rankdata(flat, axis=1) * members).sum(axis=1)]
    places = [-max(1, round(share * flat.shape[1])) for share in TOPS]
    parted, signs = np.partition(flat, places, axis=1), np.where(members, 1, -1)
    for place in places:
        cut = parted[:, place, None]
        figures.append(((flat >= cut) * signs).sum(axis=1))
    return np.column_stack(figures)


def _alarm(
    read: NDArray[np.float64],
    inside: NDArray[np.bool_],
    rows: int,
    truth: NDArray[np.float64],
    rng: np.random.Generator,
) -> bool:
    """Whether one of the truth's figures beats those of all redraws of the halves."""
    reached, done = np.zeros(_LOOKS), 0
    while done < _REDRAWS and not reached.all():
        draws = min(_BLOCK, _REDRAWS - done)
        redrawn = _draw_halves(draws, len(read) // 2, rows, rng)[:, :, : read.shape[1]]
        reached += (_extremes(_scores(read, redrawn), redrawn) >= truth - 1e-9).sum(axis=0)
        done += draws
    return not reached.all()


def _bootstrap(
    scores: NDArray[np.float64], inside: NDArray[np.bool_], rng: np.random.Generator
) -> list[list[float]]:
    """Low and high of AUROC and of the share found at each of `FPRS`, [3] each."""
    pairs, targets = len(scores) // 2, scores.shape[1]
    values, groups = np.unique(-scores.ravel(), return_inverse=True)
    figures = []
    for _ in range(_RESAMPLES):
        twice = np.repeat(rng.multinomial(pairs, np.full(pairs, 1 / pairs)), 2)
        weights = np.outer(twice, rng.multinomial(targets, np.full(targets, 1 / targets))).ravel()
        right = np.bincount(groups, weights * inside.ravel(), len(values)) / weights.sum() * 2
        wrong = np.bincount(groups, weights * ~inside.ravel(), len(values)) / weights.sum() * 2
        above, false = np.cumsum(right), np.cumsum(wrong)
        area = ((above - right / 2) * wrong).sum()
        figures.append([area, *(above[false <= fpr + 1e-12].max(initial=0) for fpr in FPRS)])
    tails: list[list[float]] = np.quantile(
        figures, [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0
    ).tolist()
    return tails
