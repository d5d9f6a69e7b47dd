"""What it costs to try settings of a synthesizer on private rows and release the best try alone.

Papernot and Steinke 2022, "Hyperparameter tuning with Renyi differential privacy": a trial takes
settings from a public list by chance, fits within its own epsilon, and scores itself within that
epsilon too. The number of trials is drawn from a public distribution, and only the best of them is
released. Whoever sees no more than that learns little more than from one trial; whoever sees every
trial (a server that is sent noisy sums, owners who are asked) learns from all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from fedsynth.errors import ConfigError
from fedsynth.privacy.accounting import Counts, charged, spent
from fedsynth.privacy.adversaries import HOLDER, Adversary, adversaries
from fedsynth.privacy.curves import orders
from fedsynth.privacy.selecting import best_of, divergences
from fedsynth.privacy.trail.job import count_terms
from fedsynth.privacy.trials import KINDS, Kind, Trials
from fedsynth.queries.plan import Plan


def cost_of_best(one: Counts, trials: Trials, delta: float) -> float:
    """Epsilon of the best trial alone, where ``one`` is what a trial releases, its score included.

    See :func:`fedsynth.privacy.selecting.best_of`.
    """
    from dp_accounting import rdp

    if any(terms.noise_multiplier == 0 for terms in one):
        return math.inf
    return float(rdp.compute_epsilon(orders(), best_of(divergences(one), trials), delta)[0])


@dataclass(frozen=True)
class Selection:
    """What trials of a job cost whose best alone is released.

    Attributes:
        mean: of trials, and ``kind`` the distribution of their number: that which costs least.
        one: epsilon of a trial by itself.
        epsilon: to whoever holds the best alone, and never learns how many trials there were.
        finds: how likely one trial at least takes settings of the best tenth of the list.
        most: trials, exceeded once in a thousand times.
        adversaries: whoever holds the release, and those who see every trial: epsilon of ``most``
            of them, which promises nothing, as there may be more.
    """

    mean: float
    kind: Kind
    one: float
    epsilon: float
    finds: float
    most: int
    adversaries: tuple[Adversary, ...]

    @property
    def sentences(self) -> tuple[str, ...]:
        """What to know of it."""
        return (
            f"Of {self.mean:g} trials on average (their number {self.kind}, and secret), whose "
            f"settings are drawn from a public list, the best alone costs epsilon "
            f"{self.epsilon:.4g}; one costs {self.one:.4g}, its score included. Settings of the "
            f"list's best tenth are tried with probability {self.finds:.2f}.",
            "Whoever sees every trial learns from all of them, whatever is released: the others' "
            f"figures are of {self.most:,} trials, more than which are made once in a thousand "
            "times.",
            "Under central trust `fedsynth select-privately` runs them. Settings are chosen for "
            "nothing on public rows of the same schema (fs.select).",
        )


def price_selection(made: Plan, mean: float) -> Selection:
    """What trials of a job cost, by the law of their number that makes the best cost least.

    Args:
        made: a trial's plan, in which its score has its share.
        mean: how many trials there are on average.
    """
    one = charged(count_terms(made.releases), made.participations, made.budget.unit)
    delta = made.budget.resolved_delta
    epsilon, trials = min(
        ((cost_of_best(one, trials, delta), trials) for trials in laws_of(mean)),
        key=lambda pair: pair[0],
    )
    counts = {terms: trials.most * count for terms, count in count_terms(made.releases).items()}
    often = None if made.participations is None else trials.most * made.participations
    seen = adversaries(counts, made.budget, made.clients, often)
    found = [
        Adversary(HOLDER, "the best trial alone", epsilon, promised=True),
        *(
            Adversary(who.who, f"every trial: {who.knows}", who.epsilon, promised=False)
            for who in seen
            if who.who != HOLDER
        ),
    ]
    return Selection(
        mean=mean,
        kind=trials.kind,
        one=spent(one, delta).epsilon,
        epsilon=epsilon,
        finds=trials.finds(0.1),
        most=trials.most,
        adversaries=tuple(found),
    )


def epsilon_of_trial(make: Callable[[float], Plan], mean: float, epsilon: float) -> float:
    """The most that a trial may cost for the best of them alone to cost ``epsilon``.

    Args:
        make: the plan of a trial of an epsilon.

    Returns:
        To a thousandth, and never more.

    Raises:
        ConfigError: so many trials cost more whatever their noise.
    """

    def cost(one: float) -> float:
        made = make(one)
        counts = charged(count_terms(made.releases), made.participations, made.budget.unit)
        delta = made.budget.resolved_delta
        return min(cost_of_best(counts, trials, delta) for trials in laws_of(mean))

    return largest_trial(cost, mean, epsilon)


def largest_trial(cost: Callable[[float], float], mean: float, epsilon: float) -> float:
    """As :func:`epsilon_of_trial`, by what the best of trials of an epsilon costs."""
    from scipy.optimize import brentq

    def excess(log: float) -> float:
        return math.log(cost(math.exp(log)) / epsilon)

    high, low = math.log(epsilon), math.log(epsilon / 1000)
    if excess(low) > 0:
        raise ConfigError(
            f"{mean:g} trials cost more than epsilon {epsilon:g} whatever their noise: take fewer, "
            "or a larger epsilon"
        )
    if excess(high) <= 0:
        return epsilon
    root = float(brentq(excess, low, high, xtol=1e-4))
    while excess(root) > 0:
        root -= 1e-3
    return math.exp(root)


def laws_of(mean: float) -> list[Trials]:
    """Laws of that mean, but for those by which there often is no trial at all."""
    every = (Trials(mean, kind) for kind in KINDS)
    return [trials for trials in every if not trials.often_none]
