"""What a job needs to end: nothing is paid for where it could not end all the same."""

from __future__ import annotations

from collections import Counter

from fedsynth.errors import BudgetExceeded
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger


def demand_rest(event: Event, ledger: Ledger) -> None:
    """Raises BudgetExceeded for a question that is asked more often than planned, its answer being
    lost, where what it costs would leave too little for one of each that come after it."""
    job, asked = ledger.job, Counter[str]()
    for one in ledger.events:
        asked[one.label] += one.steps
    labels = [planned.label for planned in job.plan]
    if event.label not in labels or not job.budget.private:
        return
    place = labels.index(event.label)
    rest = [planned for planned in job.plan[place + 1 :] if not asked[planned.label]]
    if asked[event.label] + event.steps <= job.plan[place].count or not rest:
        return
    counts = ledger.counts
    for terms, steps in [(event.terms, event.steps), *((planned.terms, 1) for planned in rest)]:
        counts[terms] = counts.get(terms, 0) + steps
    wanted = charged(counts, job.participations, job.budget.unit)
    if spent(wanted, job.budget.resolved_delta).epsilon > job.budget.epsilon:
        raise BudgetExceeded(
            f"{event.label}: its answer was paid for and lost, and to pay again would leave too "
            f"little for {', '.join(planned.label for planned in rest)}, without which the job "
            "does not end. Nothing more was asked or paid. Start a new job in another folder; what "
            "both cost adds up"
        )
