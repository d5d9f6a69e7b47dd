"""The channel: the only way from private data to a value that the server may use.

Past it everything is post-processing. For every release it writes the event to the ledger, then
draws who takes part, has a runtime bring the sum of their answers, and adds noise where the trust
model leaves that to the server.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.federation.request import (
    Collected,
    Incident,
    Plain,
    Released,
    Request,
    Summed,
)
from fedsynth.federation.runtime import Runtime
from fedsynth.federation.server.checks import demand_sound, need, sift
from fedsynth.federation.server.scores import Scores
from fedsynth.federation.server.traffic import Traffic
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.terms import Everyone, FixedSize, Poisson, Terms
from fedsynth.privacy.trail.ledger import Ledger

Arrays = Mapping[str, NDArray[np.generic]]
Settings = Mapping[str, Plain]


class Channel:
    """What a method knows of a federation, for one job.

    Args:
        runtime: carries requests to clients and answers back.
        ledger: of the job; every release is written to it first.
        noise: the server's randomness: whom it draws, and its noise where it is trusted with that.
        quorum: share of the asked clients that must answer, in (0, 1].
        drawn: for a resumed job the rounds in which each client has been drawn, rounds since the
            last checkpoint included. Where it is not known every client counts as drawn in all of
            them, or it could take part more often than the job accounts for.

    Raises:
        ConfigError: no such quorum.
        PrivacyError: noise of a known seed, of which the ledger says nothing.
    """

    def __init__(
        self,
        runtime: Runtime,
        ledger: Ledger,
        noise: NoiseSource,
        *,
        quorum: float = 0.5,
        drawn: Mapping[str, int] | None = None,
    ) -> None:
        if not 0 < quorum <= 1:
            raise ConfigError(f"quorum must be in (0, 1], not {quorum}")
        if (noise.insecure or runtime.insecure) and not ledger.job.insecure:
            raise PrivacyError(
                "the noise has a known seed and the ledger does not say so: its certificate would "
                "be worthless without telling"
            )
        self._runtime, self._ledger, self._noise = runtime, ledger, noise
        self._quorum = quorum
        self._traffic = Traffic(len(runtime.clients))
        self.incidents: list[Incident] = []
        before = sum(_draws_clients(event.terms) for event in ledger.events)
        known = drawn or {}
        self.drawn = {name: known.get(name, before) for name in runtime.clients}
        runtime.open(ledger.job.job, self.drawn)

    @property
    def names(self) -> tuple[str, ...]:
        """The clients' names, which are public."""
        return self._runtime.clients

    @property
    def clients(self) -> int:
        """Number of clients, a public figure."""
        return len(self.names)

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @property
    def traffic(self) -> Traffic:
        """What has passed between server and clients so far."""
        return self._traffic

    def close(self, *, finished: bool) -> None:
        """End the job; of one that is not finished clients keep what it needs to go on."""
        self._runtime.close(self._ledger.job.job, finished=finished)

    def announce(self, key: str, value: Plain) -> None:
        """Send a public, plain value to every client, for tasks to read in later rounds."""
        self._runtime.announce(self._ledger.job.job, key, value)
        self._traffic.announced(value)

    def sum(
        self,
        task: str,
        terms: Terms,
        dim: int,
        *,
        kept: int = 0,
        arrays: Arrays | None = None,
        settings: Settings | None = None,
    ) -> Released:
        """Release the noisy sum of everyone's clipped contributions.

        Raises:
            BudgetExceeded: it would cost more than the budget; nobody was asked.
            FederationError: too few usable answers; the event stays charged.
        """
        if terms.mechanism == "exponential":
            raise PrivacyError("the exponential mechanism selects: it releases no sum")
        request = self._request(task, terms, dim, kept, arrays, settings)
        cohort = self._charged(request)
        summed = self._summed(request, cohort)
        value = summed.total
        # Where nobody was drawn, nobody added noise, and an exact zero would say so.
        if terms.trust == "central" or not summed.answered:
            value = self._noise.perturb(value, terms.scale, terms.mechanism, terms.alpha)
        return Released(value, len(cohort), summed.answered, summed.incidents)

    def collect(
        self,
        task: str,
        terms: Terms,
        dim: int,
        *,
        arrays: Arrays | None = None,
        settings: Settings | None = None,
        steps: int | None = None,
    ) -> Collected:
        """Release every client's own message, to which it added all the noise itself.

        A record lies at one client and moves that client's message alone, so all of them together
        cost what one costs (parallel composition; McSherry 2009, "Privacy integrated queries").

        Args:
            terms: of local trust.
            steps: None, for a message that is a client's noisy sum; or a number of noisy sums that
                the client takes in training and answers with what it made of them
                (:class:`~fedsynth.federation.client.steps.Steps`): the one message is charged as
                that many releases under ``terms``.

        Raises:
            As :meth:`sum`, and PrivacyError for terms under which a single message is not private.
        """
        if terms.trust != "local":
            raise PrivacyError(
                f"messages are collected under local trust alone, not {terms.trust}: each must "
                "carry all its noise when it leaves its client"
            )
        if steps is not None and (steps < 1 or terms.unit != "record"):
            raise PrivacyError("training at a client takes at least one step, and hides records")
        request = self._request(task, terms, dim, 0, arrays, settings, steps)
        cohort = self._charged(request)
        answers, incidents = self._runtime.collect(request, cohort) if cohort else ([], [])
        messages, faults = sift(answers, request, cohort)
        names = tuple(one.client for one in messages)
        incidents = [*incidents, *faults]
        silent = set(cohort) - set(names) - {incident.client for incident in incidents}
        incidents += [Incident(name, request.round, "did not answer") for name in sorted(silent)]
        self._take(request, cohort, len(messages), incidents)
        values = np.array([one.values for one in messages]).reshape(len(messages), dim)
        return Collected(values, names, len(cohort), tuple(incidents))

    def select(
        self,
        task: str,
        terms: Terms,
        estimate: NDArray[np.float64],
        *,
        starts: NDArray[np.int64],
        weights: NDArray[np.float64],
        penalties: NDArray[np.float64],
        arrays: Arrays | None = None,
    ) -> int:
        """Release which block of everyone's summed contributions is furthest from an estimate.

        The exponential mechanism, for a server who is trusted with the sum. A block's score is
        :meth:`Scores.of`; a unit moves it by at most the clip, since it adds at most that much to
        the block in L1 and no weight exceeds 1. Gumbel noise of scale ``m * clip`` then makes it
        ``2/m``-bounded range (Dong, Durfee, Rogers 2020; Cesar and Rogers 2021).

        Args:
            terms: of the mechanism ``exponential``.
            estimate, starts, weights, penalties: see :class:`Scores`.

        Raises:
            As :meth:`sum`, and ConfigError for scores that do not fit together.
        """
        scores = Scores(estimate, starts, weights, penalties)
        if terms.mechanism != "exponential":
            raise PrivacyError(f"{terms.mechanism} noise protects a sum: it does not select")
        asked = {**(arrays or {}), "starts": starts}
        request = self._request(task, terms, len(estimate), 0, asked)
        summed = self._summed(request, self._charged(request))
        return self._noise.choose(scores.of(summed.total), terms.scale)

    def _request(
        self,
        task: str,
        terms: Terms,
        dim: int,
        kept: int,
        arrays: Arrays | None,
        settings: Settings | None = None,
        steps: int | None = None,
    ) -> Request:
        job, number = self._ledger.job, len(self._ledger.events)
        limit = job.participations if _draws_clients(terms) else None
        return Request(
            task, terms, dim, kept, arrays or {}, settings or {}, job.job, number, steps, limit
        )

    def _charged(self, request: Request) -> list[str]:
        """Charge a release; only then draw whom to ask."""
        self._check(request.terms)
        self._ledger.charge(request.event)
        return self._draw(request.terms)

    def _summed(self, request: Request, cohort: Sequence[str]) -> Summed:
        summed = Summed(np.zeros(request.dim), 0)
        if cohort:
            summed = self._runtime.sum(request, cohort)
            demand_sound(summed, request, cohort)
        self._take(request, cohort, summed.answered, summed.incidents)
        return summed

    def _take(
        self,
        request: Request,
        cohort: Sequence[str],
        answered: int,
        incidents: Sequence[Incident],
    ) -> None:
        """Note what came back of a round. Raises FederationError where it is too little."""
        self._traffic.asked(request, len(cohort))
        self._traffic.answered(request, answered)
        self.incidents += incidents
        need(answered, self._least(len(cohort), request.terms), request, incidents)

    def _check(self, terms: Terms) -> None:
        """Raises ConfigError for terms that say otherwise than this federation is."""
        sampling = terms.sampling
        if isinstance(sampling, FixedSize) and sampling.population != self.clients:
            raise ConfigError(
                f"the terms count on {sampling.population} clients to draw from: there are "
                f"{self.clients}"
            )
        if terms.trust == "distributed" and terms.survivors > self.clients:
            raise ConfigError(
                f"the noise counts on {terms.survivors} answers, and there are {self.clients} "
                "clients"
            )

    def _draw(self, terms: Terms) -> list[str]:
        """Who is asked: at the record level everybody, for clients draw their own records."""
        everyone = list(self.names)
        if not _draws_clients(terms):
            return everyone
        if isinstance(terms.sampling, FixedSize):
            drawn = self._noise.fixed_sample(len(everyone), terms.sampling.size)
        else:
            assert isinstance(terms.sampling, Poisson)
            drawn = self._noise.poisson_sample(len(everyone), terms.sampling)
        cohort = [everyone[i] for i in drawn]
        for name in cohort:
            self.drawn[name] += 1
        return cohort

    def _least(self, drawn: int, terms: Terms) -> int:
        """Answers that a round needs; none where coin flips drew nobody, which is a round too."""
        if not drawn:
            return 0
        quorum = math.ceil(self._quorum * drawn)
        if terms.trust == "distributed" and terms.noise_multiplier > 0:
            return max(quorum, terms.survivors)
        return quorum


def _draws_clients(terms: Terms) -> bool:
    return terms.unit == "client" and terms.sampling != Everyone()
