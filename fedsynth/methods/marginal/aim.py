"""AIM across clients: the marginals that a model explains worst are measured, in few messages.

McKenna, Mullins, Sheldon, Miklau 2022, "AIM: an adaptive and iterative mechanism for differentially
private synthetic data". Under central trust the server chooses among exact marginals by the
exponential mechanism, round by round. Without it nobody may see exact scores, so every candidate is
asked once as a coarse noisy sum, the choice among them is post-processing, and the chosen ones are
asked again, finer, several in one message.

How many records there are is released first, and decides what is asked
(:mod:`fedsynth.methods.marginal.allowing`): into how many bins numbers are cut for tables of
several columns, and whether the coarse message asks every candidate, the target's pairs alone, or
columns alone. Beside its tables every finer message counts each column by itself, in all its
categories and in finer bins, by which values are drawn within a code.

Every message's noise is fixed before the first. AIM's annealing would lower it when a round brings
little, but the tight accountant here composes noise that is known in advance; noise chosen from
released values would need a privacy filter.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar

from fedsynth.marginals import Clique, Domain, Model
from fedsynth.methods.marginal.allowing import (
    COARSE,
    FINE,
    SELECT,
    Allowance,
    allow,
    allowances,
    say_allowed,
)
from fedsynth.methods.marginal.candidates import maximal, workload_of
from fedsynth.methods.marginal.expecting import Asked, expect_tables, range_over
from fedsynth.methods.marginal.graphical import GraphicalSynthesizer
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.search import ALONE, Search
from fedsynth.methods.marginal.sense import keep_sense
from fedsynth.methods.marginal.settings import AIMSettings
from fedsynth.privacy.budget import Budget
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.queries.tables import table_terms
from fedsynth.schema.target import target_index


class AIM(GraphicalSynthesizer):
    """AIM for tables of one or several owners.

    Example:
        >>> synth = AIM(schema).fit(tables, Budget(epsilon=1.0))      # doctest: +SKIP
        >>> synth.sample(1000, where={"income": ">50K"})             # doctest: +SKIP
    """

    name: ClassVar[str] = "aim"
    settings_type = AIMSettings

    def questions(self, settings: AIMSettings, budget: Budget, surviving: int) -> list[Stage]:
        if len(self.schema.modelled) == 1:
            return []
        assert settings.coarse_share is not None and settings.marginals is not None
        left = 1 - settings.histogram_share
        first = left * settings.coarse_share
        if settings.selection == "exponential":
            rounds = settings.marginals
            return [
                Stage(
                    SELECT,
                    first,
                    lambda m: table_terms(budget, m, surviving, "exponential"),
                    rounds,
                ),
                Stage(FINE, left - first, lambda m: table_terms(budget, m, surviving), rounds),
            ]
        return [
            Stage(COARSE, first, lambda m: table_terms(budget, m, surviving)),
            Stage(
                FINE, left - first, lambda m: table_terms(budget, m, surviving), settings.messages
            ),
        ]

    def asked(
        self, settings: AIMSettings, domain: Domain, allowed: Allowance | None = None
    ) -> list[Asked]:
        """The noise that a table would bring, which grows with its cells, is taken off its score:
        small ones are asked the oftener.

        Args:
            allowed: by how many records there are; None for as many as allow everything.
        """
        workload = maximal(workload_of(self.schema, settings, domain))
        tier = "workload" if allowed is None else allowed.tier
        if len(domain) == 1 or not workload:
            return []
        if tier == "columns":
            alone: list[Clique] = [(k,) for k in range(len(domain))]
            return [Asked(label, len(alone), alone, "", len(alone)) for label in (COARSE, FINE)]
        total = min(settings.marginals or 1, len(workload))
        if settings.selection == "exponential":
            beside = ALONE if self.schema.target_column is None else 0.0
            return [
                Asked(FINE, 1, workload, "asked one by one", total, small_first=True, alone=beside)
            ]
        again = Asked(
            FINE,
            total / settings.messages,
            workload,
            "asked again",
            total,
            by_size=True,
            small_first=True,
            alone=ALONE,
            fewest=1,
            # Small tables of its model once more: of the target with every column.
            most=total / settings.messages + len(domain) - 1,
        )
        if tier == "workload":
            return [Asked(COARSE, len(workload), workload, "asked coarsely", len(workload)), again]
        target = target_index(self.schema)
        pairs = [(min(k, target), max(k, target)) for k in range(len(domain)) if k != target]
        best = 0 if allowed is None else allowed.best
        coarse = Asked(
            COARSE, len(pairs), pairs, "asked coarsely", len(pairs), alone=ALONE * (best > 0)
        )
        if not best:
            # Nothing is known of other tables.
            return [coarse, replace(again, cliques=pairs, total=min(total, len(pairs)))]
        number = min(math.comb(best, 2), math.comb(len(pairs), 2))
        triples = [c for c in workload if len(c) == 3 and target in c]
        once = 1 / settings.messages
        then = Asked(
            FINE,
            number,
            triples,
            "asked next",
            number,
            alone=ALONE,
            together=min(best, len(pairs)) - 1,
            share=once,
        )
        rest = replace(again, total=round(total * (1 - once)), share=1 - once)
        return [coarse, then, *([rest] if rest.total else [])]

    def expect(self, settings: AIMSettings, plan: Plan, records: int | None = None) -> Expected:
        if not plan.budget.protects.per_record:
            records = plan.clients
        if records is None:
            known = allowances(self.schema, settings, plan)
        else:
            known = [(records, allow(self.schema, settings, plan, records))]

        def of(records: float, allowed: Allowance) -> Expected:
            return expect_tables(
                self.schema,
                allowed.bins,
                plan,
                lambda domain: self.asked(settings, domain, allowed),
                records,
            )

        return range_over([of(*one) for one in known], say_allowed(known))

    def bins(self, session: Session) -> Callable[[float], int]:
        """How many a number is cut into, by the number of records."""
        settings, plan = session.settings, session.plan
        return lambda records: allow(self.schema, settings, plan, records).bins

    def model(self, settings: AIMSettings, measurer: Measurer) -> Model:
        search = Search(self.schema, settings, measurer)
        if not search.workload:
            return search.fit_model(settings.iterations)
        if settings.selection == "exponential":
            search.by_exponential_mechanism()
        else:
            search.by_sums()
        return keep_sense(search.fit_model(settings.iterations), measurer)
