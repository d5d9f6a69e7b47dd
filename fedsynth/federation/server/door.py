"""The door: a release is charged, then asked for, checked, and noised; there is no other way.

The event is in the ledger, and on disk, before anybody is asked. A runtime brings sums; where the
server is trusted with the noise it is added here, else clients have added it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from fedsynth.errors import PrivacyError
from fedsynth.federation.request import Collected, Released, Request, Summed
from fedsynth.federation.runtime import Runtime
from fedsynth.federation.server import checks
from fedsynth.federation.server.incidents import Dropped
from fedsynth.federation.server.scores import Scores
from fedsynth.federation.server.traffic import Traffic
from fedsynth.privacy.mechanisms.exponential import Exponential
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger


class Door:
    """Releases of one job; arguments as of :class:`~fedsynth.federation.server.channel.Channel`."""

    def __init__(
        self,
        runtime: Runtime,
        ledger: Ledger,
        noise: NoiseSource,
        quorum: float,
        participations: Mapping[str, int] | None,
    ) -> None:
        if (noise.insecure or runtime.insecure) and not ledger.job.insecure:
            raise PrivacyError("the noise has a known seed, and the ledger does not say so")
        self.ledger, self._runtime, self._noise, self._quorum = ledger, runtime, noise, quorum
        self.traffic, self.dropped = Traffic(len(runtime.clients)), Dropped(runtime.clients)
        before = sum(checks.draws_clients(event.terms) for event in ledger.events)
        known = participations or {}
        self.participations = {name: known.get(name, before) for name in runtime.clients}
        runtime.open(ledger.job.job, self.participations, ledger.job)

    def sum(self, request: Request) -> Released:
        """The noisy sum of the answers. Raises as the channel's."""
        terms = request.terms
        if terms.kind.selects:
            raise PrivacyError(f"the {terms.mechanism} mechanism selects: it releases no sum")
        cohort = self._charge(request)
        summed = self._sum(request, cohort)
        value = summed.total
        # Where nobody was drawn, nobody added noise, and an exact zero would say so.
        if terms.trusts.server_adds or not summed.answered:
            value = terms.noised(value, self._noise)
        return Released(value, len(cohort), summed.answered, summed.incidents)

    def select(self, request: Request, scores: Scores) -> int:
        """The block of the sum that scores highest, chosen by the mechanism."""
        terms = request.terms
        if not isinstance(terms.kind, Exponential):
            raise PrivacyError(f"{terms.mechanism} noise protects a sum: it does not select")
        total = self._sum(request, self._charge(request)).total
        return terms.kind.choose(scores.of(total), terms.scale, self._noise)

    def collect(self, request: Request) -> Collected:
        """Every client's own message, which carries all of its noise when it leaves."""
        terms = request.terms
        if not terms.trusts.alone:
            raise PrivacyError(
                f"messages are collected under local trust alone, not {terms.trust}: each must "
                "carry all its noise when it leaves its client"
            )
        cohort = self._charge(request)
        answers, incidents = self._runtime.collect(request, cohort) if cohort else ([], [])
        messages, faults = checks.sift(answers, request, cohort)
        names = tuple(one.client for one in messages)
        incidents = checks.add_silent([*incidents, *faults], names, request, cohort)
        values = np.array([one.values for one in messages]).reshape(len(messages), request.dim)
        self._take(Summed(values, len(messages), tuple(incidents)), request, cohort)
        return Collected(values, names, len(cohort), tuple(incidents))

    def _charge(self, request: Request) -> list[str]:
        """Write the release down; only then draw whom to ask. Records are drawn by their client."""
        checks.demand_fitting(request.terms, len(self.participations))
        if not checks.paid(request, self.ledger.events):
            self.ledger.charge(request.event)
        everyone = list(self.participations)
        if not checks.draws_clients(request.terms):
            return everyone
        drawn = request.terms.sampling.draw(len(everyone), self._noise)
        cohort = [everyone[place] for place in drawn]
        for name in cohort:
            self.participations[name] += 1
        return cohort

    def _sum(self, request: Request, cohort: Sequence[str]) -> Summed:
        summed = Summed(np.zeros(request.dim), 0)
        if cohort:
            summed = self._runtime.sum(request, cohort)
            checks.demand_sound(summed, request, cohort)
        self._take(summed, request, cohort)
        return summed

    def _take(self, came: Summed, request: Request, cohort: Sequence[str]) -> None:
        """Raises FederationError for too few answers; coin flips that drew nobody need none."""
        self.traffic.add_request(request, len(cohort))
        self.traffic.add_answers(request, came.answered)
        self.dropped.add(request, came.incidents)
        if cohort:
            checks.need(came, math.ceil(self._quorum * len(cohort)), request)
