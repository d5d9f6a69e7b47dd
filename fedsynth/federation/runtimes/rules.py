"""What an owner insists on before it joins a job; the rest its floor and its account decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fedsynth.errors import ConfigError, FederationError, FedsynthError
from fedsynth.federation.client.floor import Floor, Tally
from fedsynth.federation.secure.rules import Rules as Sums
from fedsynth.federation.wire import MOST_BYTES
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Job, count_terms


@dataclass(frozen=True, kw_only=True)
class Rules:
    """An owner's rules, whatever a server says.

    Attributes:
        budget: unit, the least trust, and the epsilon and delta that a job may cost at the most.
        methods: whose jobs it joins; None for all.
        schema: digest of its copy; a job under another is refused. Empty for any.
        cohort: the fewest owners that a job has.
        insecure: whether jobs are joined whose noise is of a known seed, or whose stream is not
            encrypted: for trials.
        peers: public keys, by name, of all other owners of jobs that it adds shares of noise in;
            nobody else counts there.
        threshold: the fewest owners who must answer and agree there, as 0 the fewest that let no
            server open two sums of a round.
        curious: the fewest of them that a job holds off though they help the server; None for as
            many as a job does that does not say.
        pad: what is said to a question leaves a whole number of so many seconds behind it; 0 for
            as soon as it is ready.
        most_bytes, most_numbers, most_rounds: of a message, of an answer, and of a job.
    """

    budget: Budget
    methods: tuple[str, ...] | None = None
    schema: str = ""
    cohort: int = 1
    insecure: bool = False
    peers: Mapping[str, bytes] = field(default_factory=dict)
    threshold: int = 0
    curious: int | None = None
    pad: float = 0.0
    most_bytes: int = MOST_BYTES
    most_numbers: int = 10_000_000
    most_rounds: int = 10_000

    @property
    def floor(self) -> Floor:
        """Under which its client answers."""
        # Where peers are pinned secure sums see to how many answer.
        cohort = max(self.cohort, len(self.peers) + 1)
        return Floor(budget=self.budget, cohort=cohort, secure=True)

    def judge(self, name: str, job: Job, roster: Sequence[str]) -> str | None:
        """Why a job is not joined, by public facts alone: a code, or None.

        Args:
            name: the owner's own.
        """
        budget, rounds = job.budget, sum(planned.count for planned in job.plan)
        faults = {
            "insecure": job.insecure and not self.insecure,
            "unit": budget.unit != self.budget.unit,
            "trust": budget.trusts.protection < self.budget.trusts.protection,
            "method": self.methods is not None and job.method not in self.methods,
            "schema": bool(self.schema) and job.schema_digest != self.schema,
            "roster": name not in roster
            or len(set(roster)) < max(len(roster), self.cohort)
            or job.clients not in (0, len(roster)),
            "epsilon": budget.epsilon > self.budget.epsilon
            or budget.resolved_delta > self.budget.resolved_delta,
            "limits": rounds > self.most_rounds,
        }
        found = next((code for code, wrong in faults.items() if wrong), None)
        found = found or self._judge_sums(name, job, roster)
        return found or ("plan" if budget.private and not _fits(job) else None)

    def sums(self, job: Job) -> Sums:
        """By which a job's shares are added up. Raises ConfigError for numbers that are none."""
        return Sums(*(job.sums or (0, 0, 0)))

    def _judge_sums(self, name: str, job: Job, roster: Sequence[str]) -> str | None:
        """Why shares of noise would not be added up as the owner insists: a code, or None."""
        if not job.budget.trusts.shares:
            return None
        if job.secure != "apart":
            return "sums"
        if not self.peers:
            return "identity"
        if {*self.peers, name} != set(roster) or job.clients != len(roster):
            return "peers"
        try:
            rules = self.sums(job)
        except ConfigError:
            return "threshold"
        curious = self.curious
        if curious is None:
            # What a budget holds off where nothing is said.
            curious = min(1, len(roster) - 1) if job.budget.private else 0
        few = rules.threshold < self.threshold or rules.curious < curious
        return "threshold" if few else None


def _fits(job: Job) -> bool:
    """Whether a job has a plan, under terms that its budget admits, which fits the budget."""
    tally, budget = Tally(job), job.budget
    if not job.plan or any(planned.terms.noise_multiplier == 0 for planned in job.plan):
        return False
    try:
        for planned in job.plan:
            tally.admit(planned.terms)
        counts = charged(count_terms(job.plan), job.participations, budget.unit)
        return spent(counts, budget.resolved_delta).epsilon <= budget.epsilon
    except FedsynthError:
        return False


def read_job(plain: Mapping[str, object]) -> Job:
    """A job as its ledger's first line says it.

    Raises:
        FederationError: it is not.
    """
    try:
        job = Job.from_dict(dict(plain))
        # Nothing that is not looked at here may hide in it.
        if job.to_dict() != plain:
            raise ValueError("another spelling")
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, FedsynthError):
        raise FederationError("the job that the server offers cannot be read") from None
    return job
