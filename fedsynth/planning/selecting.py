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
from functools import cached_property
from typing import Literal

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.privacy.accounting import Counts, charged, replaces_one, spent
from fedsynth.privacy.adversaries import HOLDER, Adversary, adversaries
from fedsynth.privacy.curves import Curve, orders
from fedsynth.privacy.trail.job import count_terms
from fedsynth.queries.plan import Plan

_RARE = 1e-3
_MOST_TRIALS = 10_000

Kind = Literal["logarithmic", "geometric", "poisson"]
KINDS: tuple[Kind, ...] = ("logarithmic", "geometric", "poisson")


@dataclass(frozen=True)
class Trials:
    """A public distribution of how many trials there are.

    Attributes:
        mean: at least 1.
        kind: "logarithmic" and "geometric", negative binomial distributions without 0 of shape 0
            and 1; or "poisson", by which there may be no trial, and then nothing is released.
    """

    mean: float
    kind: Kind

    def __post_init__(self) -> None:
        if not 1 <= self.mean <= _MOST_TRIALS:
            raise ConfigError(
                f"trials must be 1 to {_MOST_TRIALS:,} on average, not {self.mean}: their number "
                "is drawn by chance"
            )

    @property
    def shape(self) -> int:
        """Of a negative binomial distribution."""
        return int(self.kind == "geometric")

    @cached_property
    def gamma(self) -> float:
        """Parameter of a negative binomial distribution, in (0, 1], that gives the mean."""
        from scipy.optimize import brentq

        if self.kind == "geometric" or self.mean == 1:
            return 1 / self.mean

        # The mean is (1/gamma - 1) / log(1/gamma) (definition 1).
        def excess(log: float) -> float:
            return math.expm1(log) / log - self.mean

        return math.exp(-brentq(excess, 1e-12, 2 * math.log(self.mean) + 2, xtol=1e-12))

    def generate(self, x: float) -> float:
        """The generating function: the expectation of x to the power of the number, 0 <= x <= 1."""
        if self.kind == "poisson":
            return math.exp(self.mean * (x - 1))
        if self.mean == 1:
            return x
        rest = 1 - (1 - self.gamma) * x
        if self.kind == "geometric":
            return self.gamma * x / rest
        return math.log(rest) / math.log(self.gamma)

    def finds(self, share: float) -> float:
        """How likely one trial at least takes settings of the best ``share`` of the list."""
        return 1 - self.generate(1 - share)

    @cached_property
    def most(self) -> int:
        """A number that is exceeded once in a thousand times."""
        from scipy import stats

        if self.mean == 1 and self.kind != "poisson":
            return 1
        law = {
            "poisson": lambda: stats.poisson(self.mean),
            "geometric": lambda: stats.geom(self.gamma),
            "logarithmic": lambda: stats.logser(1 - self.gamma),
        }[self.kind]()
        return int(law.ppf(1 - _RARE))


def cost_of_best(one: Counts, trials: Trials, delta: float) -> float:
    """Epsilon of the best trial alone, where ``one`` is what a trial releases, its score included.

    Theorem 2 of the paper for negative binomial numbers of trials, theorem 6 for Poisson ones.
    """
    from dp_accounting.rdp import rdp_privacy_accountant as rdp

    if any(terms.noise_multiplier == 0 for terms in one):
        return math.inf
    own, order, mean = _divergences(one), orders(), trials.mean
    chosen = own + math.log(mean) / (order - 1)
    if trials.kind == "poisson":
        # delta of one trial at e^epsilon = 1 + 1/(order - 1).
        fails = [rdp.compute_delta(order, own, epsilon)[0] for epsilon in np.log1p(1 / (order - 1))]
        chosen = chosen + mean * np.array(fails)
    else:
        scale = 1 + trials.shape
        chosen = chosen + scale * np.min((1 - 1 / order) * own - math.log(trials.gamma) / order)
    return float(rdp.compute_epsilon(order, chosen, delta)[0])


def _divergences(one: Counts) -> Curve:
    """Renyi divergences of a trial's releases composed, at :func:`orders`."""
    exchange = replaces_one(one)
    return sum(
        (
            count * terms.kind.renyi(terms.noise_multiplier, terms.sampling, exchange)
            for terms, count in one.items()
        ),
        0 * orders(),
    )


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
            "fedsynth does not run such trials: `fit` has no score within epsilon, and owners' "
            "accounts count every trial. Settings are chosen for nothing on public rows of the "
            "same schema (fs.select).",
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
        ((cost_of_best(one, trials, delta), trials) for trials in _laws(mean)),
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
    from scipy.optimize import brentq

    def excess(log: float) -> float:
        made = make(math.exp(log))
        one = charged(count_terms(made.releases), made.participations, made.budget.unit)
        delta = made.budget.resolved_delta
        best = min(cost_of_best(one, trials, delta) for trials in _laws(mean))
        return math.log(best / epsilon)

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


def _laws(mean: float) -> list[Trials]:
    return [Trials(mean, kind) for kind in KINDS]
