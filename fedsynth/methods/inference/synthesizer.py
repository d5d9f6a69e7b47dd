"""FedInfer: one message a client, from which means, covariances, regressions and rows follow.

Paper 002, chapter 7, made honest. There every client sends its statistic again and again with
fresh noise and the server averages: an averaging attack that the federation mounts on itself, since
n messages at noise s say as much as one at s / sqrt(n), and cost as much. Here the statistic is
released once, with the noise that the whole budget allows; no further round could add anything.
Three more corrections: the target is the sum of the clients' statistics, not their mean; sums over
records are not weighted by the clients' sizes a second time (equations 7.11 and 8.2), so that all
records count alike; and what bounds a record is the schema's public bounds, not the data.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.demands import demand_kind
from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.methods.inference.estimate import Estimate
from fedsynth.methods.inference.messages import Learned, ask
from fedsynth.methods.inference.moments import Moments
from fedsynth.methods.inference.regression import Regression
from fedsynth.methods.inference.settings import FedInferSettings
from fedsynth.methods.inference.statistic import Statistic, moments_terms, request_settings
from fedsynth.methods.inference.tasks import MOMENTS
from fedsynth.methods.synthesizer import Synthesizer
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.expected import Expected
from fedsynth.queries.plan import Plan
from fedsynth.queries.session import Session
from fedsynth.queries.shares import Stage
from fedsynth.schema import Schema


class FedInfer(Synthesizer[Learned]):
    """One-shot federated inference for tables.

    Example:
        >>> fitted = FedInfer(schema).fit(tables, Budget(epsilon=1.0))        # doctest: +SKIP
        >>> fitted.regression("dose", on=["age"]).intervals()                # doctest: +SKIP
    """

    name: ClassVar[str] = "fedinfer"
    settings_type = FedInferSettings
    learned_type = Learned
    images = False
    no_persons = (
        "its intervals take rows for independent, and those of one person are not: they would be "
        "too narrow"
    )
    schema: Schema
    settings: FedInferSettings
    _merged: tuple[Ledger | None, ...] = ()

    @property
    def statistic(self) -> Statistic:
        """What is summed: public."""
        request = request_settings(self.settings.clip, self.settings.class_conditional)
        return Statistic.of(self.schema, request, self.settings.norm)

    @property
    def classes(self) -> int:
        return self.statistic.classes

    def stages(
        self, settings: FedInferSettings, budget: Budget, clients: int, surviving: int
    ) -> list[Stage]:
        def terms(multiplier: float) -> Terms:
            arguments = self.statistic, budget, multiplier, surviving
            return moments_terms(*arguments, settings.mechanism)

        return [Stage(MOMENTS.name, 1.0, terms)]

    def expect(
        self, settings: FedInferSettings, plan: Plan, records: int | None = None
    ) -> Expected:
        return Expected({MOMENTS.name: float(self.statistic.dim)}, {MOMENTS.name: 0.0})

    def learn(self, session: Session) -> Learned:
        """One message with the whole budget; under local trust the owners' are kept apart, for
        :meth:`arrivals`."""
        self._merged = ()
        learned = session.restore(Learned, **self.known())
        if learned is None:
            learned = ask(session, self.schema, self.statistic)
            session.save(learned)
        session.progress(MOMENTS.name, 1, 1)
        return learned

    def known(self) -> dict[str, Any]:
        return {"schema": self.schema, "statistic": self.statistic}

    @property
    def ledger(self) -> Ledger:
        """The account of the last fit.

        Raises:
            ConfigError: before a fit.
            PrivacyError: of several merged fits, each of which has its own.
        """
        if self._merged:
            raise PrivacyError(
                "this model is merged from several fits, each with a ledger of its own (see "
                "ledgers): a certificate is derived from one ledger, so release each fit before "
                "it is merged, or fit all owners together"
            )
        return super().ledger

    @property
    def ledgers(self) -> tuple[Ledger, ...]:
        """The accounts of all fits merged here; those of loaded releases stay with them."""
        if self._merged:
            return tuple(ledger for ledger in self._merged if ledger is not None)
        return (self.ledger,)

    def cost(self) -> tuple[float, float]:
        """Epsilon and delta of all that this model says: of the dearest fit in it.

        A record lies in one of the fits, whose guarantee is its own (parallel composition); the
        relation and the trust are those of each fit.

        Raises:
            ConfigError: a part was loaded, and its account stands on its own certificate.
        """
        if any(ledger is None for ledger in self._merged):
            raise ConfigError("part of this model was loaded: see that release's certificate")
        parts = self.ledgers
        epsilons = [math.inf if one.job.insecure else one.spent().epsilon for one in parts]
        return max(epsilons), max(one.job.budget.resolved_delta for one in parts)

    def merge(self, other: FedInfer) -> FedInfer:
        """Both fits together, as if late comers had joined; neither is changed, nothing is asked.

        A record lies with one owner, and the fits have no owner in common, so adding or removing a
        record moves one of them alone: both together cost what the dearer one costs
        (:meth:`cost`; parallel composition, McSherry 2009). :attr:`ledgers` holds both accounts.

        Raises:
            ConfigError: another schema, other settings or another unit.
            PrivacyError: an owner's name in both, or names that were only invented for a list of
                tables: records might have answered twice.
        """
        demand_kind("other", other, FedInfer, "a fitted FedInfer")
        ours, theirs = self.learned, other.learned
        if (self.schema.digest, self.settings, ours.unit) != (
            other.schema.digest,
            other.settings,
            theirs.unit,
        ):
            raise ConfigError("only fits of one schema, with the same settings and unit, add up")
        names = [{n for group in part.clients for n in group} for part in (ours, theirs)]
        if any(re.fullmatch(r"client-\d+", name) for name in names[0] | names[1]):
            raise PrivacyError(
                "owners that were given as a list are called client-0, client-1 and so on, which "
                "does not tell whether the fits have one in common: give owners by names of their "
                "own, each once"
            )
        both = sorted(names[0] & names[1])
        if both:
            raise PrivacyError(
                f"both fits hold an owner called {both[0]!r}: if its records answered twice they "
                "cost twice, and would count twice. Fit owners under names of their own, each once"
            )
        merged = FedInfer(self.schema, self.settings)
        merged._learned = replace(
            ours,
            messages=np.concatenate([ours.messages, theirs.messages]),
            scales=np.concatenate([ours.scales, theirs.scales]),
            clients=(*ours.clients, *theirs.clients),
        )
        merged._merged = (*(self._merged or (self._ledger,)), *(other._merged or (other._ledger,)))
        return merged

    def arrivals(self, order: Sequence[str] | None = None) -> Iterator[Estimate]:
        """The estimate after each message, valid every time: it is of the clients so far.

        Args:
            order: clients' names in the order of arrival; default: as they answered. Under
                central and distributed trust all clients make one message.

        Raises:
            ConfigError: `order` does not name the client of every message once.
        """
        learned = self.learned
        if order is not None:
            demand_kind("order", order, list | tuple, "a list of clients' names")  # type: ignore[arg-type]
            places = {group[0]: k for k, group in enumerate(learned.clients) if len(group) == 1}
            if sorted(map(str, order)) != sorted(places) or len(places) < len(learned.clients):
                raise ConfigError(
                    "`order` must name the client of every message once, and messages of single "
                    "clients exist under local trust alone"
                )
            at = [places[name] for name in order]
            learned = replace(
                learned,
                messages=learned.messages[at],
                scales=learned.scales[at],
                clients=tuple(learned.clients[k] for k in at),
            )
        for count in range(1, len(learned.messages) + 1):
            yield learned.estimate(count)

    @property
    def estimate(self) -> Estimate:
        """What all messages say."""
        return self.learned.estimate(len(self.learned.messages))

    def moments(self) -> Moments:
        """Means and covariances; see :class:`Moments`."""
        return self.estimate.moments()

    def regression(
        self,
        target: str,
        on: Sequence[str] | str | None = None,
        ridge: float = 0.0,
        value: object = None,
    ) -> Regression:
        """Linear least squares of one column on others; see :meth:`Estimate.regression`."""
        return self.estimate.regression(target, on, ridge, value)

    def probabilities(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """Probabilities of the target's classes; see :meth:`Estimate.probabilities`."""
        return self.estimate.probabilities(data)
