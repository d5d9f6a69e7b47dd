"""The channel: the only way from private data to a value that the server may use.

Past it everything is post-processing. For every release it writes the event to the ledger, then
draws who takes part, has them answer, sifts the answers, sums, and adds noise where the trust model
leaves that to the server.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.site import Board, Site
from fedsynth.federation.request import (
    Answer,
    Collected,
    Incident,
    Plain,
    Released,
    Request,
    need,
    sift,
)
from fedsynth.federation.server.scores import Scores
from fedsynth.federation.server.traffic import Traffic
from fedsynth.privacy.mechanisms.exponential import Exponential
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Everyone, FixedSize
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger

Ask = Callable[[Sequence[Site], Request], Sequence[object]]


class Channel(Protocol):
    """What a synthesizer knows of a federation."""

    @property
    def clients(self) -> int:
        """Number of clients, a public figure."""
        ...

    @property
    def ledger(self) -> Ledger: ...

    @property
    def traffic(self) -> Traffic:
        """What has passed between server and clients so far."""
        ...

    def announce(self, key: str, value: Plain) -> None:
        """Send a public, plain value to every client, for tasks to read in later rounds."""
        ...

    def sum(
        self,
        task: str,
        terms: Terms,
        dim: int,
        *,
        kept: int = 0,
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
        settings: Mapping[str, Plain] | None = None,
    ) -> Released:
        """Release the noisy sum of everyone's clipped contributions.

        Raises:
            BudgetExceeded: it would cost more than the budget; nobody was asked.
            FederationError: too few usable answers; the event stays charged.
        """
        ...

    def collect(
        self,
        task: str,
        terms: Terms,
        dim: int,
        *,
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
        settings: Mapping[str, Plain] | None = None,
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
        ...

    def select(
        self,
        task: str,
        terms: Terms,
        estimate: NDArray[np.float64],
        *,
        starts: NDArray[np.int64],
        weights: NDArray[np.float64],
        penalties: NDArray[np.float64],
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
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
        ...


class LocalChannel:
    """A federation simulated in one process.

    Args:
        sites: the owners, at least one.
        ledger: of the job; every release is written to it first.
        noise: the server's and the simulated clients' randomness.
        quorum: share of the asked clients that must answer, in (0, 1].
        ask: how a request reaches clients and answers come back; replaceable for tests.
        taken: for a resumed job the rounds in which each client has been drawn, rounds since the
            last checkpoint included. Where it is not known every client counts as drawn in all of
            them, or it could take part more often than the job accounts for.
    """

    def __init__(
        self,
        sites: Sequence[Site],
        ledger: Ledger,
        noise: NoiseSource,
        *,
        quorum: float = 0.5,
        ask: Ask | None = None,
        taken: Mapping[str, int] | None = None,
    ) -> None:
        self._sites = list(sites)
        if len({site.name for site in self._sites}) < len(self._sites) or not self._sites:
            raise ConfigError("a federation needs at least one client, and each its own name")
        if not 0 < quorum <= 1:
            raise ConfigError(f"quorum must be in (0, 1], not {quorum}")
        if noise.insecure and not ledger.job.insecure:
            raise PrivacyError(
                "the noise has a known seed and the ledger does not say so: its certificate would "
                "be worthless without telling"
            )
        self._ledger = ledger
        self._noise = noise
        self._quorum = quorum
        self._ask: Ask = ask or (lambda asked, request: answer(asked, request, noise))
        self._board = Board()
        self._traffic = Traffic(len(self._sites))
        self.incidents: list[Incident] = []
        before = sum(_draws_clients(event.terms) for event in ledger.events)
        for site in self._sites:
            site.board = self._board
            site.coins = noise
            known = before if taken is None else taken.get(site.name, before)
            site.participations = max(site.participations, known)

    @property
    def clients(self) -> int:
        return len(self._sites)

    @property
    def ledger(self) -> Ledger:
        return self._ledger

    @property
    def traffic(self) -> Traffic:
        return self._traffic

    def announce(self, key: str, value: Plain) -> None:
        self._board.post(key, value)
        self._traffic.announced(value)

    def sum(
        self,
        task: str,
        terms: Terms,
        dim: int,
        *,
        kept: int = 0,
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
        settings: Mapping[str, Plain] | None = None,
    ) -> Released:
        if terms.kind.selects:
            raise PrivacyError("the exponential mechanism selects: it releases no sum")
        request = self._request(task, terms, dim, kept, arrays, settings)
        answers, drawn, incidents = self._asked(request)
        value = self._total(answers, dim, terms)
        return Released(value, drawn, len(answers), tuple(incidents))

    def collect(
        self,
        task: str,
        terms: Terms,
        dim: int,
        *,
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
        settings: Mapping[str, Plain] | None = None,
        steps: int | None = None,
    ) -> Collected:
        if not terms.trusts.alone:
            raise PrivacyError(
                f"messages are collected under local trust alone, not {terms.trust}: each must "
                "carry all its noise when it leaves its client"
            )
        if steps is not None and (steps < 1 or not terms.protects.per_record):
            raise PrivacyError("training at a client takes at least one step, and hides records")
        request = self._request(task, terms, dim, 0, arrays, settings, steps)
        answers, drawn, incidents = self._asked(request)
        values = np.array([one.values for one in answers]).reshape(len(answers), dim)
        names = tuple(one.client for one in answers)
        return Collected(values, names, drawn, tuple(incidents))

    def select(
        self,
        task: str,
        terms: Terms,
        estimate: NDArray[np.float64],
        *,
        starts: NDArray[np.int64],
        weights: NDArray[np.float64],
        penalties: NDArray[np.float64],
        arrays: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> int:
        scores = Scores(estimate, starts, weights, penalties)
        if not isinstance(terms.kind, Exponential):
            raise PrivacyError(f"{terms.mechanism} noise protects a sum: it does not select")
        asked = {**(arrays or {}), "starts": starts}
        answers, _, _ = self._asked(self._request(task, terms, len(estimate), 0, asked))
        return terms.kind.choose(
            scores.of(_added(answers, len(estimate))), terms.scale, self._noise
        )

    def _request(
        self,
        task: str,
        terms: Terms,
        dim: int,
        kept: int,
        arrays: Mapping[str, NDArray[np.generic]] | None,
        settings: Mapping[str, Plain] | None = None,
        steps: int | None = None,
    ) -> Request:
        job, number = self._ledger.job.job, len(self._ledger.events)
        return Request(task, terms, dim, kept, arrays or {}, settings or {}, job, number, steps)

    def _asked(self, request: Request) -> tuple[list[Answer], int, list[Incident]]:
        """Charge a release, then have it answered: usable answers, clients drawn, incidents."""
        terms = request.terms
        self._check(terms)
        event = Event(request.task, request.round, terms, request.job, request.steps or 1)
        self._ledger.charge(event)
        drawn = self._draw(terms)
        asked, incidents = self._consenting(drawn, event)
        self._traffic.asked(request, len(asked))
        names = {site.name for site in asked}
        answers, faults = sift(self._ask(asked, request) if asked else (), request, names)
        self._traffic.answered(request, len(answers))
        silent = names - {a.client for a in answers} - {f.client for f in faults}
        incidents += faults + [
            Incident(name, request.round, "did not answer") for name in sorted(silent)
        ]
        self.incidents += incidents
        need(len(answers), self._least(len(drawn), terms), request, incidents)
        return answers, len(drawn), incidents

    def _check(self, terms: Terms) -> None:
        """Raises ConfigError for terms that say otherwise than this federation is."""
        sampling, clients = terms.sampling, len(self._sites)
        if isinstance(sampling, FixedSize) and sampling.population != clients:
            raise ConfigError(
                f"the terms count on {sampling.population} clients to draw from: there are "
                f"{clients}"
            )
        if terms.trusts.shares and terms.survivors > clients:
            raise ConfigError(
                f"the noise counts on {terms.survivors} answers, and there are {clients} clients"
            )

    def _draw(self, terms: Terms) -> list[Site]:
        """Who is asked: at the record level everybody, for clients draw their own records."""
        everyone = self._sites
        if terms.protects.per_record:
            return everyone
        return [everyone[i] for i in terms.sampling.draw(len(everyone), self._noise)]

    def _consenting(self, drawn: list[Site], event: Event) -> tuple[list[Site], list[Incident]]:
        limit = self._ledger.job.participations if _draws_clients(event.terms) else None
        willing, refused = [], []
        for site in drawn:
            reason = site.consent(event, limit)
            if reason is None:
                willing.append(site)
            else:
                refused.append(Incident(site.name, event.round, f"refuses: {reason}"))
        return willing, refused

    def _least(self, drawn: int, terms: Terms) -> int:
        """Answers that a round needs; none where coin flips drew nobody, which is a round too."""
        if not drawn:
            return 0
        quorum = math.ceil(self._quorum * drawn)
        if terms.trusts.shares and terms.noise_multiplier > 0:
            return max(quorum, terms.survivors)
        return quorum

    def _total(self, answers: Sequence[Answer], dim: int, terms: Terms) -> NDArray[np.float64]:
        total = _added(answers, dim)
        # Where nobody was drawn, nobody added noise, and an exact zero would say so.
        if terms.trusts.server_adds or not answers:
            total = terms.noised(total, self._noise)
        return total


def _added(answers: Sequence[Answer], dim: int) -> NDArray[np.float64]:
    total = np.zeros(dim)
    for one in answers:
        total += one.values
    return total


def _draws_clients(terms: Terms) -> bool:
    return not terms.protects.per_record and terms.sampling != Everyone()
