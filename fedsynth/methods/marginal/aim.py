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

from collections.abc import Callable
from typing import ClassVar

from fedsynth.marginals import Domain, Model
from fedsynth.methods.marginal.allowing import COARSE, FINE, SELECT, allow
from fedsynth.methods.marginal.candidates import maximal, workload_of
from fedsynth.methods.marginal.expecting import Asked
from fedsynth.methods.marginal.graphical import GraphicalSynthesizer
from fedsynth.methods.marginal.measurer import Measurer
from fedsynth.methods.marginal.search import ALONE, Search
from fedsynth.methods.marginal.sense import keep_sense
from fedsynth.methods.marginal.settings import AIMSettings
from fedsynth.privacy.budget import Budget
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.queries.tables import table_terms


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

    def asked(self, settings: AIMSettings, domain: Domain) -> list[Asked]:
        """The noise that a table would bring, which grows with its cells, is taken off its score:
        small ones are asked the oftener."""
        cliques = maximal(workload_of(self.schema, settings, domain))
        if len(domain) == 1 or not cliques:
            return []
        total = min(settings.marginals or 1, len(cliques))
        if settings.selection == "exponential":
            return [Asked(FINE, 1, cliques, "asked one by one", total, small_first=True)]
        each = total / settings.messages
        return [
            Asked(COARSE, len(cliques), cliques, "asked coarsely", len(cliques)),
            Asked(
                FINE,
                each,
                cliques,
                "asked again",
                total,
                by_size=True,
                small_first=True,
                alone=ALONE,
            ),
        ]

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
