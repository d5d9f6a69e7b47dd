"""The plan of a training of many rounds: what is asked before it, its own rounds, and all noise.

Everything is calibrated together before anything is asked.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from threadpoolctl import threadpool_limits

from fedsynth.errors import BudgetExceeded
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate, optimal_gaussian_sigma
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson, Sampling
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job, Planned
from fedsynth.queries.counting import counting_terms, question
from fedsynth.queries.fit import Fitting, Options, begin
from fedsynth.queries.tasks.counting import LABEL_TABLES
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
    def histogram_share(self) -> float: ...
    @property
    def label_table_share(self) -> float | None: ...


class Named(Protocol):
    """A task, of which a plan knows the name."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class Plan:
    """The releases of a job: the histogram, the label tables (None: not asked), the training."""

    histogram: Terms
    label_tables: Terms | None
    training: Terms
    rounds: int
    participations: int | None

    @staticmethod
    def of(job: Job) -> Plan:
        """The plan of a job to resume, from its ledger's first line."""
        terms = {planned.label: planned.terms for planned in job.plan}
        last = job.plan[-1]
        return Plan(
            job.plan[0].terms,
            terms.get(LABEL_TABLES.name),
            last.terms,
            last.count,
            job.participations,
        )

    def expected(self, units: float) -> float:
        """Of so many units, how many a training round has on average: what its sum is divided by.

        A public figure; how many there really are in a round is private.
        """
        match self.training.sampling:
            case Everyone():
                return units
            case Poisson(rate=rate):
                return rate * units
            case FixedSize(size=size):
                return float(size)

    def planned(self, task: Named, first: Named) -> tuple[Planned, ...]:
        """As the ledger's first line names them; ``task`` trains, ``first`` asks the histogram."""
        found = [Planned(first.name, self.histogram, 1)]
        if self.label_tables is not None:
            found.append(Planned(LABEL_TABLES.name, self.label_tables, 1))
        return (*found, Planned(task.name, self.training, self.rounds))


@contextmanager
def begin_rounds(
    owners: Owners,
    schema: Schema | ImageSchema,
    budget: Budget,
    settings: Any,
    options: Options,
    task: Callable[[Budget], Named],
) -> Iterator[tuple[Fitting, Plan]]:
    """A fit of many rounds: its ledger open and its noise calibrated, nothing asked yet.

    Args:
        settings: of the method, resolved: :class:`Rounds`, and a pydantic model.
        task: what clients are asked in the training's rounds.

    Raises:
        As :func:`fedsynth.queries.fit.begin`.
    """
    plans: list[Plan] = []

    def plan(resolved: Budget, clients: int) -> tuple[tuple[Planned, ...], int | None]:
        made = make_plan(settings, schema, resolved, clients, options.survivors)
        plans.append(made)
        first, _, _ = question(schema)
        return made.planned(task(resolved), first), made.participations

    # Products this small are slower on several threads, which OpenBLAS keeps spinning.
    with (
        begin(owners, schema, budget, plan, options, settings) as fitting,
        threadpool_limits(limits=1, user_api="blas"),
    ):
        yield fitting, plans[0] if plans else Plan.of(fitting.ledger.job)


def make_plan(
    settings: Rounds,
    schema: Schema | ImageSchema,
    budget: Budget,
    clients: int,
    survivors: float,
) -> Plan:
    """Calibrate all noise of a job to its budget.

    Args:
        settings: resolved.
        clients: how many, a public figure.
        survivors: share of the asked clients that is sure to answer.

    Raises:
        PrivacyError: the budget cannot carry the plan.
    """
    _, _, ones = question(schema)
    rounds = settings.rounds or 0
    whole = _sure(clients, survivors)
    participations = _participations(budget, settings, clients)

    def counting(ones: int, share: float) -> Terms:
        return counting_terms(ones, _counting_noise(settings, budget, share), budget, whole)

    histogram = counting(ones, settings.histogram_share)
    tables = None
    if settings.label_table_share and isinstance(schema, Schema):
        tables = counting(len(schema.modelled) - 1, settings.label_table_share)

    def training(multiplier: float) -> Terms:
        sampling = _sampling(settings, budget, clients)
        return Terms(
            unit=budget.unit,
            trust=budget.trust,
            clip=settings.clip or 1.0,
            noise_multiplier=multiplier,
            sampling=sampling,
            survivors=whole if budget.protects.per_record else _drawn(sampling, clients, survivors),
        )

    def everything(multiplier: float) -> Mapping[Terms, int]:
        counts: dict[Terms, int] = {training(multiplier): rounds}
        for terms in (histogram, tables):
            if terms is not None:
                counts[terms] = counts.get(terms, 0) + 1
        return charged(counts, participations)

    multiplier = settings.noise_multiplier
    if multiplier is None:
        multiplier = calibrate(everything, budget.epsilon, budget.resolved_delta)
    else:
        _demand_payable(everything(multiplier), budget, multiplier)
    return Plan(histogram, tables, training(multiplier), rounds, participations)


def _demand_payable(counts: Mapping[Terms, int], budget: Budget, multiplier: float) -> None:
    """Raises BudgetExceeded where a noise that was asked for cannot last the whole job."""
    cost = spent(counts, budget.resolved_delta).epsilon
    if budget.private and cost > budget.epsilon:
        raise BudgetExceeded(
            f"noise_multiplier {multiplier:g} makes the whole job cost epsilon {cost:.4g}, more "
            f"than the budget's {budget.epsilon:g}: leave it out to have it calibrated, or take "
            "fewer rounds"
        )


def _counting_noise(settings: Rounds, budget: Budget, share: float) -> float:
    """Noise of one histogram that may use ``share`` of the budget.

    Gaussian releases compose by adding 1/sigma^2, so a release with this share of it gets the noise
    of the only release (paper 001, theorem 2.3) over the root of the share. Without a target, the
    noise that the training was given.
    """
    if not budget.private:
        return settings.noise_multiplier or 0.0
    alone = optimal_gaussian_sigma(budget.epsilon, budget.resolved_delta)
    exchange = 2.0 if settings.sampling == "fixed" else 1.0
    return exchange * alone / math.sqrt(share)


def _sampling(settings: Rounds, budget: Budget, clients: int) -> Sampling:
    rate = settings.rate or 1.0
    if rate == 1:
        return Everyone()
    if settings.sampling == "fixed":
        return FixedSize(max(1, round(rate * clients)), clients)
    return Poisson(rate)


def _participations(budget: Budget, settings: Rounds, clients: int) -> int | None:
    """Rounds in which one client takes part at the most, where drawing it hides nothing."""
    sampling = _sampling(settings, budget, clients)
    if budget.protects.per_record or budget.trusts.server_adds or sampling == Everyone():
        return None
    rate = sampling.rate if isinstance(sampling, Poisson) else sampling.size / clients  # type: ignore[union-attr]
    rounds = settings.rounds or 0
    mean = rounds * rate
    return min(rounds, math.ceil(mean + _SURE * math.sqrt(mean * (1 - rate))))


def _sure(clients: int, survivors: float) -> int:
    return max(1, math.ceil(survivors * clients - 1e-9))


def _drawn(sampling: Sampling, clients: int, survivors: float) -> int:
    """Answers that a round of drawn clients is sure to bring."""
    match sampling:
        case Everyone():
            return _sure(clients, survivors)
        case FixedSize(size=size):
            return _sure(size, survivors)
        case Poisson(rate=rate):
            mean = rate * clients
            least = math.floor(mean - _SURE * math.sqrt(mean * (1 - rate)))
            return _sure(max(1, least), survivors)
