"""PATE-GAN across clients (Jordon et al. 2019, "PATE-GAN: generating synthetic data with
differential privacy guarantees"), for tables and images."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from threadpoolctl import threadpool_limits

from fedsynth.privacy.ledger import Planned
from fedsynth.privacy.terms import Budget
from fedsynth.synthesizers.counting import LABEL_TABLES, question
from fedsynth.synthesizers.fedgan.settings import FedGANSettings
from fedsynth.synthesizers.fedgan.synthesizer import FedGAN
from fedsynth.synthesizers.fitting import Options, begin
from fedsynth.synthesizers.owners import Owners
from fedsynth.synthesizers.pategan.settings import PATEGANSettings
from fedsynth.synthesizers.pategan.training import tutored
from fedsynth.synthesizers.pategan.verdicts import VERDICTS
from fedsynth.synthesizers.rounds import Plan, make_plan


class PATEGAN(FedGAN):
    """PATE-GAN for tables and images.

    Every group of records has a discriminator of its own, which stays at the client; the generator
    faces a student of their noisy votes. Bounds and categories come from the schema and a noisy
    histogram, never from rows, and so do the tables that the generator starts from.

    A teacher is protected by the number of the others, as in PATE: with few clients it takes
    records as units and many teachers a client.

    A job can be resumed. Teachers live in their client's memory together with the assignment of
    records to them; a resumed job draws both anew and lets the teachers catch up (``warmup``).

    Args:
        schema: what the parties agreed on.
        settings: see :class:`PATEGANSettings`; or its fields as keywords.
    """

    name: ClassVar[str] = "pate-gan"
    settings_type: ClassVar[type[FedGANSettings]] = PATEGANSettings

    def fit(self, owners: Owners, budget: Budget, **options: Any) -> Self:
        """Train within the budget.

        Args:
            owners: one table or image set an owner: a mapping by name, a list, or a single one.
            budget: what all releases of this job may cost together.
            options: see :class:`fedsynth.synthesizers.fitting.Options`.

        Raises:
            DataError, ConfigError: the data, schema and settings do not go together.
            PrivacyError: the budget cannot carry the job.
            FederationError: too few clients answered a round.
        """
        settings = self.settings.resolved(budget, self.schema)
        assert isinstance(settings, PATEGANSettings)
        run = Options(**options)
        plans: list[Plan] = []

        def plan(resolved: Budget, clients: int) -> tuple[tuple[Planned, ...], int | None]:
            made = make_plan(settings, self.schema, resolved, clients, run.survivors)
            plans.append(made)
            first, _, _ = question(self.schema)
            found = [Planned(first.name, made.histogram, 1)]
            if made.label_tables is not None:
                found.append(Planned(LABEL_TABLES.name, made.label_tables, 1))
            found.append(Planned(VERDICTS.name, made.training, made.rounds))
            return tuple(found), made.participations

        # Products this small are slower on several threads, which OpenBLAS keeps spinning.
        with (
            begin(owners, self.schema, budget, plan, run, settings) as fitting,
            threadpool_limits(limits=1, user_api="blas"),
        ):
            made = plans[0] if plans else Plan.of(fitting.ledger.job)
            self._begin(fitting)
            self._learned = tutored(self.schema, settings, made, fitting)
        return self
