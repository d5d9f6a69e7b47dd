"""What an owner's own account, across jobs, admits of a job."""

from __future__ import annotations

from collections.abc import Mapping

from fedsynth.errors import FedsynthError
from fedsynth.privacy.accounting import charged, unsampled
from fedsynth.privacy.filters import admits
from fedsynth.privacy.sampling import Everyone
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job, count_terms, unclipped
from fedsynth.privacy.trail.ledger import Ledger


def carries(ledger: Ledger, job: Job) -> bool:
    """Whether an owner's account would admit all that is left of a job's plan."""
    budget = ledger.job.budget
    if not budget.private:
        return True
    done: dict[Terms, int] = {}
    for event in ledger.events:
        if event.job == job.job:
            done[event.terms] = done.get(event.terms, 0) + event.steps
    wanted, done = unclipped(ledger.counts), unclipped(done)
    for terms, count in unclipped(_known_to_owner(job)).items():
        wanted[terms] = wanted.get(terms, 0) + max(0, count - done.get(terms, 0))
    try:
        for terms in wanted:
            ledger.admit(terms)
        cost = charged(wanted, None, budget.unit)
        return admits(cost, budget.epsilon, budget.resolved_delta)
    except FedsynthError:
        return False


def account_cautions(ledgers: Mapping[str, Ledger], job: Job) -> tuple[str, ...]:
    """Whose own accounts will not admit all that a job asks, in a sentence; else nothing."""
    short = sorted(name for name, ledger in ledgers.items() if not carries(ledger, job))
    if not short:
        return ()
    return (
        f"the own account of {', '.join(short)} does not admit all that this job plans: it will "
        "refuse rounds, and what the others answered before is charged all the same. `fedsynth "
        "account` tells what is left",
    )


def _known_to_owner(job: Job) -> Mapping[Terms, int]:
    """A plan as an owner is charged for it: one that is drawn knows that it was, and is so in no
    more rounds than the job says."""
    counts: dict[Terms, int] = {}
    for terms, count in count_terms(job.plan).items():
        drawn = not terms.protects.per_record and terms.sampling != Everyone()
        most = min(count, job.participations) if drawn and job.participations else count
        own = terms if terms.protects.per_record else unsampled(terms)
        counts[own] = counts.get(own, 0) + most
    return counts
