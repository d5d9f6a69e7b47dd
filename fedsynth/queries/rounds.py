"""The plan of a training of many rounds: what is asked before it, its own rounds, and all noise.

Everything is calibrated together before anything is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Literal, Protocol

from fedsynth.errors import BudgetExceeded
from fedsynth.federation.client.tasks import in_groups, knows
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate, optimal_gaussian_sigma
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson, Sampling
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Planned, count_terms
from fedsynth.queries.counting import CountQuestion, counting_terms
from fedsynth.queries.persons import LABEL, person_terms
from fedsynth.queries.plan import count_survivors
from fedsynth.queries.tables import PAIRS, table_terms
from fedsynth.queries.tasks.counting import LABEL_TABLES
from fedsynth.queries.terms import count_on
from fedsynth.schema import ImageSchema, Schema

# A binomial count stays within so many standard deviations of its mean, but for a probability of
# about 1e-9.
_SURE = 6.0


class Rounds(Protocol):
    """What a plan reads of a method's settings, resolved; FedVAE's say what each means."""

    @property
    def rounds(self) -> int | None: ...
    @property
    def rate(self) -> float | None: ...
    @property
    def sampling(self) -> Literal["poisson", "fixed"]: ...
    @property
    def clip(self) -> float | None: ...
    @property
    def noise_multiplier(self) -> float | None: ...
    @property
    def histogram_share(self) -> float | None: ...
    @property
    def label_table_share(self) -> float | None: ...


def expected_units(sampling: Sampling, units: float) -> float:
    """Of so many units, how many a round has on average: what its sum is divided by.

    A public figure; how many there really are in a round is private.
    """
    match sampling:
        case Everyone():
            return units
        case Poisson(rate=rate):
            return rate * units
        case FixedSize(size=size):
            return float(size)


def plan_rounds(
    settings: Rounds,
    schema: Schema | ImageSchema,
    budget: Budget,
    clients: int,
    survivors: float,
    task: str,
    counted: CountQuestion,
    pair_share: float = 0.0,
) -> tuple[Planned, ...]:
    """What is counted, perhaps tables by label and of pairs, and the training, all calibrated
    together.

    Args:
        settings: resolved.
        clients: how many, a public figure.
        survivors: share of the asked clients that is sure to answer.
        task: that the training's rounds ask.
        counted: the first question.
        pair_share: of the budget, of tables of two columns; 0 for none.

    Raises:
        PrivacyError: the budget cannot carry the plan.
    """
    first, starts, _ = counted
    whole = count_survivors(survivors, clients)
    training = training_of(settings, budget, clients, survivors, task)
    alone = _counting_noise(settings, budget, training)

    def counting(task: str, ones: int, share: float) -> Planned:
        return Planned(task, counting_terms(ones, alone / math.sqrt(share), budget, whole), 1)

    before = [counting(first.name, len(starts), settings.histogram_share or 1.0)]
    if budget.sizes_share:
        noise = alone / math.sqrt(budget.sizes_share)
        terms = person_terms(budget, noise, whole, before[0].terms)
        before.insert(0, Planned(LABEL, terms, 1))
    if settings.label_table_share and isinstance(schema, Schema):
        columns = len(schema.modelled) - 1
        before.append(counting(LABEL_TABLES.name, columns, settings.label_table_share))
    if pair_share:
        before.append(Planned(PAIRS, table_terms(budget, alone / math.sqrt(pair_share), whole), 1))

    def counts(multiplier: float) -> Mapping[Terms, int]:
        planned = count_terms((*before, training(multiplier)))
        return charged(planned, participations_of(settings, budget, clients))

    multiplier = settings.noise_multiplier
    if multiplier is None:
        multiplier = calibrate(counts, budget.epsilon, budget.resolved_delta)
    else:
        _demand_payable(counts(multiplier), budget, multiplier)
    return (*before, training(multiplier))


def training_of(
    settings: Rounds, budget: Budget, clients: int, survivors: float, task: str
) -> Callable[[float], Planned]:
    """From a noise multiplier to the rounds that a plan holds for it."""
    sampling = _sampling_of(settings, clients)
    reach = 1.0 if knows(task) and in_groups(task) else budget.reach("l2")
    whole = count_survivors(survivors, clients)
    answers = whole if budget.protects.per_record else _sure_answers(sampling, clients, survivors)

    def training(multiplier: float) -> Planned:
        terms = Terms(
            unit=budget.unit,
            trust=budget.trust,
            clip=(settings.clip or 1.0) * reach,
            noise_multiplier=multiplier,
            sampling=sampling,
            **count_on(budget, answers),
        )
        return Planned(task, terms, settings.rounds or 0)

    return training


def _demand_payable(counts: Mapping[Terms, int], budget: Budget, multiplier: float) -> None:
    """Raises BudgetExceeded where a noise that was asked for cannot last the whole job."""
    cost = spent(counts, budget.resolved_delta).epsilon
    if budget.private and cost > budget.epsilon:
        raise BudgetExceeded(
            f"noise_multiplier {multiplier:g} makes the whole job cost epsilon {cost:.4g}, more "
            f"than the budget's {budget.epsilon:g}: leave it out to have it calibrated, or take "
            "fewer rounds"
        )


def _counting_noise(
    settings: Rounds, budget: Budget, training: Callable[[float], Planned]
) -> float:
    """Noise of a histogram that had all of the budget: over the root of its share, its own.

    Gaussian releases compose by adding 1/sigma^2, so a release with this share of it gets the noise
    of the only release (paper 001, theorem 2.3) over the root of the share. Without a target, the
    budget is what the training costs by the noise that it was given: were a histogram given the
    same, unsampled, it would cost more than hundreds of sampled rounds.
    """
    epsilon, given = budget.epsilon, settings.noise_multiplier or 0.0
    if not budget.private:
        rounds = training(given)
        epsilon = spent({rounds.terms: rounds.count}, budget.resolved_delta).epsilon
        if not 0 < epsilon < math.inf:
            return given
    exchange = 2.0 if settings.sampling == "fixed" else 1.0
    return exchange * optimal_gaussian_sigma(epsilon, budget.resolved_delta)


def _sampling_of(settings: Rounds, clients: int) -> Sampling:
    rate = settings.rate or 1.0
    if rate == 1:
        return Everyone()
    if settings.sampling == "fixed":
        return FixedSize(max(1, round(rate * clients)), clients)
    return Poisson(rate)


def participations_of(settings: Rounds, budget: Budget, clients: int) -> int | None:
    """Rounds in which one client takes part at the most, where drawing it hides nothing."""
    sampling = _sampling_of(settings, clients)
    if budget.protects.per_record or budget.trusts.server_adds or sampling == Everyone():
        return None
    rate = expected_units(sampling, clients) / clients
    rounds = settings.rounds or 0
    mean = rounds * rate
    return min(rounds, math.ceil(mean + _SURE * math.sqrt(mean * (1 - rate))))


def _sure_answers(sampling: Sampling, clients: int, survivors: float) -> int:
    """Answers that a round of drawn clients is sure to bring."""
    match sampling:
        case Everyone():
            return count_survivors(survivors, clients)
        case FixedSize(size=size):
            return count_survivors(survivors, size)
        case Poisson(rate=rate):
            mean = rate * clients
            least = math.floor(mean - _SURE * math.sqrt(mean * (1 - rate)))
            return count_survivors(survivors, max(1, least))
