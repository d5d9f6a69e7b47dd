"""Singling out: descriptions that fit one synthetic row, tried on the rows behind the release.

After Giomi et al. 2023, section 5.1, with two differences. First, how many descriptions fit exactly
one row depends on how many rows there are, and there are mostly fewer held-out rows than training
rows. A fit that carries the held-out rows' figure over to the larger size, as the paper's, is far
off at times (by a half, on Adult), and as many training rows as held-out ones would hide a copy, of
which such a sample holds but a part. So all training rows are attacked, and success is compared
with its mean when the rows of both tables are dealt out anew at random, which is known exactly.
Second, the alarm is that permutation test, which holds however descriptions depend on each other.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from fedsynth.evaluation.attacks.predicates import (
    Indexed,
    Predicates,
    at_random,
    of_one_column,
    of_several,
)
from fedsynth.evaluation.attacks.risks import (
    MOST_ROWS,
    Risk,
    beats_guessing,
    describe_alarm,
    residual,
    residual_interval,
)
from fedsynth.evaluation.attacks.vectors import describe_search
from fedsynth.evaluation.reading.confidence import ALARM
from fedsynth.evaluation.reading.rows import Rows

_DEALS = 1999
_FEW = 200
"""Rows that a description may fit to count in the permutation test."""

_RESAMPLES = 400
_PLAIN = 0.9
"""Risk above which the control rate is read off the held-out rows, too few chance hits being left
to tell it from."""


def singling_out(
    synthetic: Rows,
    train: Rows,
    real: Rows,
    *,
    attempts: int = 2000,
    columns: int | None = None,
    seed: int = 0,
) -> tuple[Risk, ...]:
    """The risks by descriptions of one column and, where there are more, of several.

    Of one column: its least or its largest number, a value or a gap that only one synthetic row
    has. Of several: the values of a random synthetic row, "equals" for categories and "at least" or
    "at most", away from the median, for numbers, where no other row fits. Equal synthetic rows
    count as one. Of more than `MOST_ROWS` rows of a table, so many are drawn. Where rows tell whose
    they are, a person is singled out: a description fits rows of exactly one.

    Args:
        synthetic: the release. train: rows it was learned from. real: rows it never saw.
        attempts: descriptions to try, at most.
        columns: in a description of several; half of them, and two or more, if not given.

    Returns:
        (one column, several columns); with no `attempts` where no description fits one row only.
    """
    rng = np.random.default_rng(seed)
    release = synthetic.sample(MOST_ROWS, seed)
    made = Indexed.of(release, distinct=True)
    train, real = (rows.sample_people(MOST_ROWS, seed) for rows in (train, real))
    tables = Indexed.of(train), Indexed.of(real)
    sizes, width = synthetic.sizes, len(synthetic.names)
    single = of_one_column(made, sizes, attempts, rng)
    guesses = at_random(made, sizes, 1, len(single), rng)
    risks = [_attack("singling out, one column", single, guesses, tables, rng)]
    if width > 1:
        together = min(columns or max(2, (width + 1) // 2), width)
        several = of_several(made, sizes, together, attempts, rng)
        guesses = at_random(made, sizes, together, len(several), rng)
        risks.append(_attack("singling out, several columns", several, guesses, tables, rng))
    part = describe_search(release, synthetic)
    return tuple(replace(risk, sentence=risk.sentence + part) for risk in risks)


def _attack(
    name: str,
    predicates: Predicates,
    guesses: Predicates,
    tables: tuple[Indexed, Indexed],
    rng: np.random.Generator,
) -> Risk:
    tried = len(predicates)
    if tried == 0:
        sentence = "Nothing to try: no description fits one synthetic row only."
        return Risk(name, None, False, sentence, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, False, 0)
    outcome = _Outcome.of(predicates, *tables)
    lucky = sum(len(met) == 1 for met in tables[0].meeting(guesses))
    caught = outcome.p_value(rng) <= ALARM
    stronger = beats_guessing(int(outcome.hits.sum()), lucky, tried)
    attack, control = outcome.rates()
    low, high = outcome.interval(rng)
    return Risk(
        name=name,
        column=None,
        caught=caught,
        sentence=(
            f"Of {tried:,} descriptions that fit one synthetic row, {attack:.1%} fit exactly one "
            f"training row, against {control:.1%} to be expected of as many rows never seen; that "
            f"is {describe_alarm(caught, stronger)}"
        ),
        risk=residual(attack, control),
        low=low,
        high=high,
        attack=attack,
        control=control,
        baseline=lucky / tried,
        stronger=stronger,
        attempts=tried,
    )


@dataclass(frozen=True, eq=False)
class _Outcome:
    """What n predicates met in N training rows and M held-out ones; persons for rows where these
    tell whose they are.

    hits: bool [n], one training row. seen, unseen: rows met [n] in each table.
    met: the rows met, of predicates that few rows meet, as places in both tables together.
    """

    hits: NDArray[np.bool_]
    seen: NDArray[np.int64]
    unseen: NDArray[np.int64]
    met: list[NDArray[np.int64]]
    members: int
    others: int

    @classmethod
    def of(cls, predicates: Predicates, train: Indexed, real: Indexed) -> _Outcome:
        inside, outside = train.meeting(predicates), real.meeting(predicates)
        seen, unseen = (np.array([len(rows) for rows in met_by]) for met_by in (inside, outside))
        met = [
            np.concatenate([a.astype(np.int64), b.astype(np.int64) + train.people])
            for a, b in zip(inside, outside, strict=True)
            if 0 < len(a) + len(b) <= _FEW
        ]
        return cls(seen == 1, seen, unseen, met, train.people, real.people)

    def dealt(self, met: NDArray[np.int64]) -> NDArray[np.float64]:
        """The chance [n] that exactly one of the `met` rows [n] is dealt to the training rows."""
        from scipy.stats import hypergeom

        counts, places = np.unique(met, return_inverse=True)
        chances = hypergeom.pmf(1, self.members + self.others, counts, self.members)
        return np.asarray(chances)[places]

    def rates(self) -> tuple[float, float]:
        """The success at training rows, and what it would be at as many that were never seen.

        Had a share f of the predicates one training row for certain, the others only by chance,
        success would be above its mean over new deals by f (1 - h), where h is the chance that such
        a fit outlives a new deal. That gives f, which is the risk, and from it the control rate.
        """
        attack = float(self.hits.mean())
        risk = float(_shares(*(part[None] for part in self._parts))[0])
        if risk > _PLAIN:
            return attack, min(float((self.unseen == 1).mean()), attack)
        return attack, min(max((attack - risk) / (1 - risk), 0.0), 1.0)

    def interval(self, rng: np.random.Generator) -> tuple[float, float]:
        """95 % interval of the risk: the wider of a bootstrap's and that of independent rates."""
        attack, control = self.rates()
        tried = len(self.hits)
        drawn = rng.integers(tried, size=(_RESAMPLES, tried))
        low, high = np.quantile(_shares(*(part[drawn] for part in self._parts)), [0.025, 0.975])
        least, most = residual_interval(attack, tried, control, tried)
        return min(least, max(0.0, float(low))), max(most, min(1.0, float(high)))

    @cached_property
    def _parts(self) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
        """Of each predicate [n]: whether it hits, that less the chance under a new deal, and, if it
        hits, the chance 1 - h to lose that."""
        hits = self.hits.astype(np.float64)
        return (
            hits,
            hits - self.dealt(self.seen + self.unseen),
            hits * (1 - self.dealt(1 + self.unseen)),
        )

    def p_value(self, rng: np.random.Generator) -> float:
        """Of as many hits when rows are dealt anew; stops early when it is plainly large."""
        if not self.met:
            return 1.0
        rows, places = np.unique(np.concatenate(self.met), return_inverse=True)
        starts = np.cumsum([0, *map(len, self.met[:-1])])

        def hits(inside: NDArray[np.bool_]) -> int:
            return int((np.add.reduceat(inside[places].astype(np.int64), starts) == 1).sum())

        seen, as_many = hits(rows < self.members), 0
        for deal in range(1, _DEALS + 1):
            inside = np.zeros(len(rows), bool)
            inside[: rng.hypergeometric(self.members, self.others, len(rows))] = True
            rng.shuffle(inside)
            as_many += hits(inside) >= seen
            if as_many > 20:
                return (1 + as_many) / (1 + deal)
        return (1 + as_many) / (1 + _DEALS)


def _shares(
    hits: NDArray[np.float64], excess: NDArray[np.float64], lost: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The share f, at most 1, of each row [r] of [r, n]: mean excess over the mean chance lost."""
    scale = lost.sum(axis=1) / np.maximum(hits.sum(axis=1), 1)
    shares = np.divide(excess.mean(axis=1), scale, out=np.zeros(len(scale)), where=scale > 0)
    return np.asarray(np.minimum(shares, 1.0))
