"""What a job asks, in order, with the noise of each release: pure, from public facts alone."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

from pydantic import BaseModel

from fedsynth.demands import demand_known, demand_number
from fedsynth.federation.client.tasks import in_groups, knows
from fedsynth.plain import hash_plain
from fedsynth.privacy.accounting import charged, spent
from fedsynth.privacy.adversaries import Adversary, adversaries, adversary_grid
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job, Planned, count_terms
from fedsynth.privacy.trust import ADDED_UP
from fedsynth.queries.secure import rules_of, tell_rules
from fedsynth.queries.tasks.persons import ROWS_A_PERSON
from fedsynth.views import Grid, Said, Shown, View

if TYPE_CHECKING:
    from fedsynth.federation.secure.rules import Rules


@dataclass(frozen=True, kw_only=True, repr=False)
class Plan(Shown):
    """The releases of a job, as its ledger's first line will name them.

    Attributes:
        budget: that they fit together.
        clients: how many were reckoned with, a public number.
        releases: in order; their labels differ.
        participations: rounds after which a client refuses, where clients are drawn.
        schema, settings: hashes of the schema and the resolved settings that it was made for.
        secure: of secure sums, how many owners must answer; None where they are assumed.
    """

    budget: Budget
    clients: int
    releases: tuple[Planned, ...]
    participations: int | None = None
    schema: str = ""
    settings: str = ""
    secure: Rules | None = None

    @staticmethod
    def of(job: Job, clients: int) -> Plan:
        """The plan of a job that has begun, from its ledger's first line."""
        return Plan(
            budget=job.budget,
            clients=clients,
            releases=job.plan,
            participations=job.participations,
            schema=job.schema_digest,
            settings=job.settings_digest,
            secure=rules_of(job),
        )

    @property
    def labels(self) -> tuple[str, ...]:
        return tuple(planned.label for planned in self.releases)

    def terms(self, label: str) -> Terms:
        """What the releases under ``label`` are protected by. ConfigError where none is."""
        return self._under(label).terms

    def count(self, label: str) -> int:
        """How many releases there are under ``label``. ConfigError where there is none."""
        return self._under(label).count

    def clipped(self, clip: float) -> Plan:
        """The same where a person's rows are clipped to ``clip`` of them, as the histogram of rows
        a person told: of a plan whose budget leaves that open. What each release costs stays."""

        def scale(planned: Planned) -> Planned:
            own = planned.terms.unit == self.budget.unit
            # One bin or one group's row is a person's, whatever its rows add up to.
            alone = knows(planned.label) and (
                planned.label == ROWS_A_PERSON.name or in_groups(planned.label)
            )
            if not own or alone:
                return planned
            terms = replace(planned.terms, clip=planned.terms.clip * clip)
            return replace(planned, terms=terms)

        budget = replace(self.budget, person_clip=clip)
        return replace(self, budget=budget, releases=tuple(map(scale, self.releases)))

    @property
    def total(self) -> int:
        """How many releases there are."""
        return sum(planned.count for planned in self.releases)

    def epsilon(self, delta: float | None = None) -> float:
        """What all of it costs, as the ledger reckons.

        Args:
            delta: in (0, 1); by default the budget's.
        """
        if delta is not None:
            demand_number("delta", delta, "between 0 and 1", lambda given: 0 < given < 1)
        cost = charged(count_terms(self.releases), self.participations, self.budget.unit)
        return spent(cost, self.budget.resolved_delta if delta is None else delta).epsilon

    def adversaries(self) -> tuple[Adversary, ...]:
        """What all of it costs against each adversary, as the certificate will say."""
        counts = count_terms(self.releases)
        return adversaries(counts, self.budget, self.clients, self.participations)

    def _view(self) -> View:
        epsilon, budget = self.epsilon(), self.budget
        cost = f"{epsilon:.4g} of {budget.epsilon:g}" if math.isfinite(epsilon) else "infinite"
        title = (
            f"Plan of {_counted(self.total, 'question')} to {_counted(self.clients, 'client')}: "
            f"epsilon {cost}, delta {budget.resolved_delta:.3g}, for one {budget.protects.words}"
        )
        rows = [
            (
                one.label,
                f"{one.count:,}",
                one.terms.mechanism,
                f"{one.terms.noise_multiplier:.4g}",
                f"{one.terms.clip:.4g}",
                one.terms.sampling.words,
            )
            for one in self.releases
        ]
        head = ("question", "times", "noise", "multiplier", "clip", "asked each time")
        parts: list[Grid | Said] = [Grid(head, rows, figures=(1, 3, 4))]
        if budget.chooses_clip:
            parts.append(
                Said(
                    "Clips are of one row. A person's rows are clipped to so many times that as "
                    f"{ROWS_A_PERSON.name}, which is asked first, will tell; noise goes with the "
                    "clip, and epsilon stays."
                )
            )
        if self.participations is not None:
            parts.append(Said(f"A client refuses after {self.participations:,} rounds."))
        parts.append(adversary_grid(map(asdict, self.adversaries())))
        parts.append(Said(ADDED_UP.format("") if self.secure else budget.trusts.words))
        parts += [Said(sentence, "caution") for sentence in self.cautions()]
        return View(title, parts)

    def cautions(self) -> tuple[str, ...]:
        """What to know before believing the budget, in sentences: public facts alone."""
        secure = () if self.secure is None else (tell_rules(self.secure),)
        return (*self.budget.cautions(), *self._alone(), *secure)

    def _alone(self) -> tuple[str, ...]:
        """What to know of a federation of one."""
        if self.clients > 1 or not self.budget.private or self.budget.trusts.server_adds:
            return ()
        return (
            "there is one owner: no sum over owners hides its rows, only the noise that it adds "
            "itself, from the server as from whoever gets the release. Whoever holds the rows and "
            "runs all of this may say trust central: that promises as much against whoever gets "
            "the release, and some methods learn more by it.",
        )

    def _under(self, label: str) -> Planned:
        demand_known("label", label, self.labels)
        return {planned.label: planned for planned in self.releases}[label]


def _counted(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def count_survivors(survivors: float, clients: int) -> int:
    """How many of the clients are sure to answer, at least 1.

    Args:
        survivors: their share, in (0, 1].
    """
    return max(1, math.ceil(survivors * clients - 1e-9))


def digest_of(settings: BaseModel) -> str:
    """Hash of a method's settings, as a release's job file holds them."""
    return hash_plain(settings.model_dump(mode="json", exclude_none=True))
