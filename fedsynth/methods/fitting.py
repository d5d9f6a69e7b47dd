"""What every method is: a plan, and something learned from owners' rows within it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar, Self

from fedsynth.agreed import demand_whole
from fedsynth.demands import demand_flag, demand_kind, demand_path
from fedsynth.encoding.resolution import resolution_cautions
from fedsynth.errors import Caution, ConfigError, PrivacyError, warn_of
from fedsynth.federation.runtime import Federation
from fedsynth.federation.simulation.simulation import Owners
from fedsynth.methods.fitted import FittedModel, L
from fedsynth.methods.overview import overview
from fedsynth.methods.persons import demand_joined, demand_persons, person_cautions
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.owning import account_cautions
from fedsynth.privacy.trail.repeats import cost_together
from fedsynth.queries.arguments import budget_of, demand_none
from fedsynth.queries.counting import question
from fedsynth.queries.expected import Expected
from fedsynth.queries.options import OUTSIDE, Options, Progress
from fedsynth.queries.persons import person_stage, settle_persons
from fedsynth.queries.plan import Plan, count_survivors, digest_of
from fedsynth.queries.secure import demand_everybody, rules_for
from fedsynth.queries.session import Session, begin
from fedsynth.queries.shares import Stage, share_out
from fedsynth.views import Shown, View


class Method(Shown, FittedModel[L], ABC):
    """A method for one schema: plan it, fit it to owners' data, release what it learned.

    A method sets the class attributes and writes :meth:`stages` (or :meth:`releases`),
    :meth:`learn` and the class of what it learns.
    """

    free: ClassVar[str]
    """What a fitted one gives at no further cost, as errors say it."""
    no_persons: ClassVar[str] = "nobody saw to it that its rows can be added up by person"
    """Why it cannot protect persons; empty where it can. Then every task that it asks for the job's
    unit keeps the order of its records' rows, or has rows of groups."""

    # What a method writes.

    def stages(
        self, settings: Any, budget: Budget, clients: int, surviving: int
    ) -> Sequence[Stage]:
        """What is asked, in order, and the share of the budget that each may use.

        Args:
            settings: resolved.
            surviving: how many of the clients are sure to answer.
        """
        raise NotImplementedError

    def releases(
        self, settings: Any, budget: Budget, clients: int, survivors: float
    ) -> tuple[Planned, ...]:
        """What is asked, in order, with all noise; by default the stages share the budget."""
        whole = count_survivors(survivors, clients)
        stages = self.stages(settings, budget, clients, whole)
        return share_out([*person_stage(budget, whole, stages), *stages], budget)

    def participations(self, settings: Any, budget: Budget, clients: int) -> int | None:
        """Rounds after which a client refuses, where clients are drawn."""
        return None

    def expect(self, settings: Any, plan: Plan, records: int | None = None) -> Expected:
        """How large the answers of a plan are, and how far off: what is known before a fit.

        Args:
            settings: resolved.
            records: of all clients together, where that is public.
        """
        task, _, dim = question(self.schema)
        asked = task.name in plan.labels
        return Expected({task.name: float(dim)}, {task.name: 0.0}) if asked else Expected()

    @abstractmethod
    def learn(self, session: Session) -> L:
        """Ask through the session's channel what its plan holds, and learn from the answers."""

    # What everybody uses.

    def _view(self) -> View:
        fitted, paid = self._learned is not None, self._ledger is not None
        return overview(self, fitted=fitted, paid=paid, certificate=self.certificate)

    def plan(
        self,
        budget: Budget | Mapping[str, Any] | float | None = None,
        clients: int | None = None,
        survivors: float = 1.0,
        secure: bool = False,
        **words: Any,
    ) -> Plan:
        """All that a fit would ask, and what it would cost; needs no owner and no data.

        Args:
            budget: what all releases together may cost.
            clients: how many take part, a public number.
            survivors: share of the clients that is sure to answer, in (0, 1].
            secure: with secure sums, which as many must answer as are sure to.
            words: a budget's fields, in its place: epsilon, delta, unit, trust, ..

        Raises:
            ConfigError: the settings do not go with the schema, the budget or the clients.
            PrivacyError: the budget cannot carry the plan.
        """
        known = [own.name for own in fields(Budget)]
        own = ["budget", "clients", "survivors", "secure"]
        demand_none("plan", set(words).difference(known), [*own, *known])
        if clients is None:
            raise ConfigError("say for how many clients: plan(budget, clients=5)")
        clients = demand_whole("clients", clients, 1)
        Options(survivors=survivors, secure=secure)
        budget = budget_of(budget, **words).for_clients(clients)
        demand_persons(self.schema, budget, self.name, self.no_persons)
        settings = self.resolved(budget)
        sure = count_survivors(survivors, clients)
        rules = rules_for(budget, clients, sure) if secure else None
        releases = self.releases(settings, budget, clients, survivors)
        demand_joined(releases, budget, self.name)
        if secure:
            demand_everybody(releases)
        return Plan(
            budget=budget,
            clients=clients,
            releases=releases,
            participations=self.participations(settings, budget, clients),
            schema=self.schema.digest,
            settings=digest_of(settings),
            secure=rules,
        )

    def fit(
        self,
        owners: Owners | Federation,
        budget: Budget | Mapping[str, Any] | float | None = None,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        unit: str | None = None,
        trust: str | None = None,
        units: int | None = None,
        curious: int | None = None,
        weigh: str | None = None,
        person_clip: float | None = None,
        person_share: float | None = None,
        plan: Plan | None = None,
        again: bool = False,
        seed: int = 0,
        folder: str | Path | None = None,
        resume: bool = False,
        moved: bool = False,
        survivors: float = 1.0,
        secure: bool = False,
        owners_ledgers: Mapping[str, Ledger] | None = None,
        checkpoint_every: int = 25,
        progress: Progress | bool = True,
        owners_provenance: str = "declared",
        most_records: int | None = None,
        outside: float | str = OUTSIDE,
        agreed: Mapping[str, Any] | None = None,
        deadline: float | None = None,
        caution: Caution = warn_of,
        insecure_noise_seed: int | None = None,
        **unknown: Any,
    ) -> Self:
        """Learn from every owner's rows, within the budget.

        Example:
            >>> fs.AIM(schema).fit({"north": north, "west": west, "east": east}, epsilon=1.0)

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one; or
                a federation of clients.
            budget: what all releases of this job may cost together: a :class:`Budget`, a mapping
                of its fields, or epsilon alone.
            epsilon, delta, unit, trust, units, curious, weigh, person_clip, person_share: a
                budget's fields, in its place. Epsilon has no default; unit is "record", "person" or
                "client", trust "distributed", "central" or "local"; see :class:`Budget` for all.
            plan: of :meth:`plan`, for this budget and so many clients; made here by default.
            again: fit once more what was fitted, and replace it. Each fit costs its own epsilon,
                and of the same rows all of them together cost more.
            seed: of everything that is not privacy: initial weights, batch order.
            folder: where ledger and checkpoints go; None keeps the ledger in memory.
            resume: continue the job that ``folder`` holds.
            moved: of a resumed job, that the folder it began in is gone for good: a copy is not
                resumed beside it.
            survivors: share of the clients that is sure to answer, in (0, 1]; under distributed
                trust their noise shares are sized for it.
            secure: under distributed trust have sums added up by the whole protocol of secure sums,
                so that nobody but its owner has a contribution; else that is assumed. As many must
                answer as are sure to.
            owners_ledgers: owners' own accounts across jobs, by the owner's name.
            checkpoint_every: rounds between checkpoints.
            progress: True shows it on a terminal or in a notebook, False nowhere; or what is to be
                called, see :data:`fedsynth.queries.options.Progress`.
            owners_provenance: "private-data" where rows told which owners there are, as a cut by a
                column without declared names does: the certificate then says so.
            most_records: that an owner has, a public figure that all agree on: what bounds how far
                an owner that sends something else can move a sum over records.
            outside: the share of a column's cells that an owner may have outside the schema, in
                [0, 1], or "allow" for any. More is refused before anything is asked; what is not
                is clamped, becomes `other` or missing, or its row is left out.
            agreed: what a job file says of how its rows are held out and dealt out; a job is
                resumed with the same, or not at all, as with the same seed and limits.
            deadline: seconds that each client may take for an answer; a round goes on without one
                that takes longer. None for any number.
            caution: called, before anything is asked, with how much that is (exact figures of
                private rows), with what a budget or the bounds promise little by, and with what
                earlier jobs on the same rows add up to. By default warns, without these figures,
                since logs keep warnings.
            insecure_noise_seed: fixes the noise, for tests; voids the certificate.

        Raises:
            DataError, ConfigError: the data, schema, settings and options do not go together.
            PrivacyError: the budget cannot carry the job, or it was fitted before.
            FederationError: too few clients answered, or with what no honest ones send together.
        """
        known = [own.name for own in (*fields(Options), *fields(Budget))]
        demand_none("fit", unknown, [*known, "plan", "again"])
        words: dict[str, Any] = {"epsilon": epsilon, "delta": delta, "unit": unit, "trust": trust}
        words |= {"weigh": weigh, "person_clip": person_clip, "person_share": person_share}
        allowed = budget_of(budget, **words, units=units, curious=curious)
        demand_flag("again", again)
        if plan is not None:
            demand_kind("plan", plan, Plan, "a Plan, as plan(budget, clients) gives")
        options = Options(
            folder=None if folder is None else demand_path("folder", folder),
            seed=seed,
            resume=resume,
            moved=moved,
            survivors=survivors,
            secure=secure,
            owners_ledgers={} if owners_ledgers is None else owners_ledgers,
            checkpoint_every=checkpoint_every,
            progress=progress,
            owners_provenance=owners_provenance,
            most_records=most_records,
            outside=outside,
            agreed=agreed,
            deadline=deadline,
            caution=caution,
            insecure_noise_seed=insecure_noise_seed,
        )
        settings = self.resolved(allowed)

        def agree(budget: Budget, clients: int) -> Plan:
            agreed = self.plan(budget, clients, survivors, secure) if plan is None else plan
            if plan is not None:
                _demand_for(plan, budget, clients, self.schema.digest, digest_of(settings))
                if secure != (plan.secure is not None):
                    raise ConfigError("one of fit and plan says secure=True: say it to both")
            if not again:
                self._demand_first(agreed)
            return agreed

        with begin(owners, self.schema, allowed, agree, options, settings, self.name) as session:
            if plan is not None and plan.releases != session.plan.releases:
                raise ConfigError("the job to resume was started with another plan")
            for sentence in chain(
                resolution_cautions(self.schema),
                person_cautions(self.schema, allowed),
                session.plan.cautions(),
                account_cautions(options.owners_ledgers, session.ledger.job),
            ):
                caution(sentence)
            # A release pairs a model with an account: after a fit that fails there is none.
            self._ledger, self._traffic = session.ledger, session.channel.traffic
            self._dropped = session.channel.dropped
            self._forget()
            settle_persons(session)
            self._rows_a_person = session.rows_a_person
            self._learned = self.learn(session)
        return self

    def account_by(self, ledger: Ledger) -> None:
        """Have another account speak for what was learned than that of its fit: one that charges
        the fit, and what else led to it."""
        self._ledger = ledger

    def _forget(self) -> None:
        """Lose what an earlier fit learned."""
        self._learned, self.certificate, self._rows_a_person = None, None, None

    def _demand_first(self, plan: Plan) -> None:
        """Raises PrivacyError where a fit that was paid for would be replaced, and paid again."""
        if self._ledger is None or not self._ledger.events:
            return
        both = cost_together(plan.budget, plan.releases, plan.participations, [self._ledger])
        before = "was fitted already" if self._learned is not None else "began a fit that failed"
        raise PrivacyError(
            f"this {self.noun} {before}, for epsilon {self._ledger.spent().epsilon:.4g}. Another "
            f"fit asks anew: of the same rows, {both}. {self.free}. "
            f"To pay again make another {self.noun}, or say again=True, which replaces the "
            "model and its account. Nothing was asked"
        )


def _demand_for(plan: Plan, budget: Budget, clients: int, schema: str, settings: str) -> None:
    """Raises ConfigError for the plan of another job."""
    for what, ours, theirs in (
        ("another budget", budget, plan.budget),
        (f"{plan.clients} clients, and there are {clients}", clients, plan.clients),
        ("another schema", schema, plan.schema),
        ("another method or other settings", settings, plan.settings),
    ):
        if ours != theirs:
            raise ConfigError(f"the plan is for {what}: make it anew with plan(budget, clients)")
