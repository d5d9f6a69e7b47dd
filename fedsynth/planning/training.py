"""A training of rounds by itself, whatever its model: what noise costs, how many clients it takes.

The counts that a job asks before its training are left out; :func:`fedsynth.plan` has them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

from fedsynth.agreed import demand_whole
from fedsynth.errors import ConfigError
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.sampling import FixedSize
from fedsynth.privacy.trail.job import count_terms
from fedsynth.queries.plan import Plan
from fedsynth.queries.rounds import participations_of, training_of

LABEL = "training"
# More clients than people.
_MOST_CLIENTS = 10**10


@dataclass(frozen=True)
class Training:
    """Rounds of which each sums a clipped contribution of every unit that is drawn.

    Attributes:
        rounds: how many, at least 1.
        rate: share of the units in a round, in (0, 1]; or
        per_round: so many clients in a round on average, in place of ``rate``.
        sampling: by coin flips, or (clients alone) of a fixed size.
        noise_multiplier: scale of a sum's noise over the clip; None has it solved for.
    """

    rounds: int
    rate: float | None = None
    per_round: int | None = None
    sampling: Literal["poisson", "fixed"] = "poisson"
    noise_multiplier: float | None = None

    def __post_init__(self) -> None:
        demand_whole("rounds", self.rounds, 1)
        if self.rate is not None and self.per_round is not None:
            raise ConfigError("give the rate or the clients per round, not both")
        if self.rate is not None and not 0 < self.rate <= 1:
            raise ConfigError(f"rate must be a share in (0, 1], not {self.rate}")

    # What a plan of rounds reads beside these.
    clip = 1.0
    histogram_share = 0.0
    label_table_share = None

    def among(self, clients: int) -> Training:
        """With the rate that draws ``per_round`` of so many clients."""
        if self.per_round is None:
            return self
        if self.per_round > clients:
            raise ConfigError(f"{self.per_round} clients per round are more than the {clients}")
        return replace(self, rate=self.per_round / clients, per_round=None)

    def scaled(self) -> Training:
        """With the same noise in a round's mean and a multiplier of 1, by more clients in a round
        (paper 001's scaling of the population: q'N' = qN / z). ConfigError without both figures.
        """
        if self.noise_multiplier is None or self.per_round is None:
            raise ConfigError("a training is scaled from its noise and its clients per round")
        if self.noise_multiplier >= 1:
            return self
        wanted = math.ceil(self.per_round / self.noise_multiplier)
        return replace(self, per_round=wanted, noise_multiplier=1.0)

    def plan(self, budget: Budget, clients: int, survivors: float = 1.0) -> Plan:
        """Its rounds alone, with the noise that was given or that the budget asks for.

        Raises:
            ConfigError: neither noise nor an epsilon is given, or these do not go together.
            PrivacyError: no noise makes it affordable.
        """
        own, budget = self.among(clients), budget.for_clients(clients)
        if own.noise_multiplier is None and not budget.private:
            raise ConfigError("give an epsilon or the noise multiplier: one follows from the other")
        rounds = training_of(own, budget, clients, survivors, LABEL)
        participations = participations_of(own, budget, clients)
        multiplier = own.noise_multiplier
        if multiplier is None:
            multiplier = calibrate(
                lambda m: charged(count_terms([rounds(m)]), participations, budget.unit),
                budget.epsilon,
                budget.resolved_delta,
            )
        return Plan(
            budget=budget,
            clients=clients,
            releases=(rounds(multiplier),),
            participations=participations,
        )


def average_cost(made: Plan) -> tuple[int, float] | None:
    """How often a client takes part on average, and epsilon of one that does so, where who takes
    part shows and the plan's own figure is that of the one that does so most."""
    (rounds,) = made.releases
    if made.participations is None or rounds.terms.trusts.server_adds:
        return None
    sampling = rounds.terms.sampling
    if isinstance(sampling, FixedSize):
        share = sampling.size / sampling.population
    else:
        share = sampling.rate
    often = max(1, round(share * rounds.count))
    cost = charged({rounds.terms: often}, often, made.budget.unit)
    return often, spent(cost, made.budget.resolved_delta).epsilon


def clients_for(training: Training, budget: Budget, survivors: float = 1.0) -> int:
    """The fewest clients for which a training of given noise costs at most the budget's epsilon.

    As many take part in a round, among the more: so each is drawn the more rarely. Unless the
    budget says otherwise, delta falls with their number, as one over its power 1.1. To
    a thousandth.

    Raises:
        ConfigError: no noise, or no number per round, is given; or no number of clients is enough.
    """
    from scipy.optimize import brentq

    if training.noise_multiplier is None or training.per_round is None:
        raise ConfigError("how many clients it takes follows from noise, and clients per round")
    if not budget.private:
        raise ConfigError("how many clients it takes follows from an epsilon: give one")

    def excess(clients: float) -> float:
        one = training.plan(
            replace(budget, epsilon=math.inf, units=None), round(clients), survivors
        )
        return math.log(one.epsilon() / budget.epsilon)

    low = high = max(2, training.per_round)
    while excess(high) > 0:
        low, high = high, 4 * high
        if high > _MOST_CLIENTS:
            raise ConfigError(
                f"no number of clients brings this training down to epsilon {budget.epsilon:g}: "
                "raise the noise multiplier, or take fewer rounds"
            )
    if low == high:
        return high
    root = brentq(lambda x: excess(math.exp(x)), math.log(low), math.log(high), xtol=5e-4)
    clients = math.ceil(math.exp(root))
    while excess(clients) > 0:
        clients += max(1, clients // 2000)
    return clients


@dataclass(frozen=True)
class Curves:
    """Epsilon against the number of clients, for one noise in the mean of a round (paper 001,
    figures 4.5.12 and 4.5.13).

    Attributes:
        clients: how many there are.
        central: the server adds the noise, and who takes part is secret.
        local: every client adds it; epsilon of a client that takes part as often as on average.
        worst: the same of one that takes part as often as any may.
    """

    clients: tuple[int, ...]
    central: tuple[float, ...]
    local: tuple[float, ...]
    worst: tuple[float, ...]


CAVEAT = (
    "Scaling the number of clients keeps the noise in the mean only while each client keeps as "
    "much data: one data set cut among ever more clients leaves each a few rows, whose update is "
    "far smaller than the clip, and so than the noise."
)


def curves(
    per_round: int, rounds: int, counts: tuple[int, ...], *, local_rate: float = 0.5
) -> Curves:
    """The curves for a noise of one clip in the sum of ``per_round`` clients, so of 1/per_round
    clips in their mean.

    Args:
        counts: numbers of clients, at least ``per_round``.
        local_rate: share of the clients in a round where they add the noise themselves, each
            sqrt(rate * clients) / per_round clips of it.
    """
    central: list[float] = []
    local: list[float] = []
    worst: list[float] = []
    often = max(1, round(local_rate * rounds))
    for clients in counts:
        base = Budget(epsilon=math.inf, unit="client", trust="central", units=clients)
        one = Training(rounds, per_round=per_round, noise_multiplier=1.0)
        central.append(one.plan(base, clients).epsilon())
        noise = math.sqrt(local_rate * clients) / per_round
        budget = replace(base, trust="local")
        alike = Training(rounds, rate=local_rate, noise_multiplier=noise).plan(budget, clients)
        most = alike.participations or rounds
        terms, delta = alike.terms(LABEL), budget.resolved_delta
        for found, times in ((local, often), (worst, most)):
            cost = charged({terms: times}, times, "client")
            found.append(spent(cost, delta).epsilon)
    return Curves(counts, tuple(central), tuple(local), tuple(worst))
