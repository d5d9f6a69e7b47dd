"""The channel: what a method knows of a federation. What it releases goes through the door."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.federation.request import PLAN, Collected, Plain, Released, Request
from fedsynth.federation.runtime import Runtime
from fedsynth.federation.server.checks import demand_bounded, draws_clients, unusable
from fedsynth.federation.server.counts import Blocks, Total, look, most_units
from fedsynth.federation.server.door import Door
from fedsynth.federation.server.incidents import Dropped
from fedsynth.federation.server.rounds import Chosen, Rounds
from fedsynth.federation.server.scores import Scores
from fedsynth.federation.server.traffic import Traffic
from fedsynth.privacy.mechanisms.gaussian import Gaussian
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.ledger import Ledger

Arrays = Mapping[str, NDArray[np.generic]]
Settings = Mapping[str, Plain]


class Channel:
    """The only way from private data to a value that the server may use, for one job.

    Past it everything is post-processing.

    Args:
        runtime: carries requests to clients and answers back.
        ledger: of the job; every release is written to it first.
        noise: the server's randomness: whom it draws, and its noise where it is trusted with that.
        quorum: share of the asked clients that must answer, in (0, 1].
        participations: for a resumed job the rounds in which each client has been drawn, rounds
            since the last checkpoint included. Where it is not known every client counts as drawn
            in all of them, or it could take part more often than the job accounts for.
        most_records: that a client has, where that was agreed: sums over records above what it
            explains are refused.
        kept: of the file of values that no checkpoint holds yet; None keeps none.
        done: rounds that the last checkpoint of a resumed job holds; None for all that are charged.

    Attributes:
        counted: what sums of counts said so far of how many units all clients have; None before.

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
        participations: Mapping[str, int] | None = None,
        most_records: int | None = None,
        kept: Path | None = None,
        done: int | None = None,
    ) -> None:
        if not 0 < quorum <= 1:
            raise ConfigError(f"quorum must be in (0, 1], not {quorum}")
        self._door = Door(runtime, ledger, noise, quorum, participations)
        settle = partial(runtime.settle, ledger.job.job)
        self._rounds = Rounds(ledger, self._door.dropped, settle, kept, done)
        self._runtime, self._most_records = runtime, most_records
        self.counted: Total | None = None
        if ledger.job.plan:
            self.announce(PLAN, ledger.job.announced)

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
        """Of the job."""
        return self._door.ledger

    @property
    def traffic(self) -> Traffic:
        """What has passed between server and clients so far."""
        return self._door.traffic

    @property
    def dropped(self) -> Dropped:
        """Whose answers were missing so far, and why."""
        return self._door.dropped

    @property
    def participations(self) -> dict[str, int]:
        """In how many rounds each client has been drawn, of those that draw clients."""
        return dict(self._door.participations)

    @property
    def asked(self) -> int:
        """How many rounds gave their value so far, or lost it."""
        return self._rounds.next

    def affords(self, terms: Terms, *, kept: bool = False) -> bool:
        """Whether one more round is within the budget, or was paid for before a crash.

        Args:
            kept: whether something of its answers stays at clients.
        """
        return self._rounds.affords(terms, kept)

    def settle(self) -> None:
        """Let go of values that can be had again: a checkpoint holds them all, on disk."""
        self._rounds.settle()

    def close(self, *, finished: bool) -> None:
        """End the job; of one that is not finished clients keep what it needs to go on."""
        self._rounds.close(finished=finished)
        self._runtime.close(self.ledger.job.job, finished=finished)

    def announce(self, key: str, value: Plain) -> None:
        """Send a public, plain value to every client, for tasks to read in later rounds."""
        self._runtime.announce(self.ledger.job.job, key, value)
        self.traffic.add_announcement(value)

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
            FederationError: too few usable answers, or a sum that no honest clients give; the
                event stays charged.
        """
        request = self._request(task, terms, dim, kept, arrays, settings)
        return self._rounds.once(request, Released, self._sum)

    def count(
        self, task: str, terms: Terms, dim: int, blocks: Blocks, *, arrays: Arrays | None = None
    ) -> Released:
        """As :meth:`sum`, of counts, to one number of each block of which a unit adds.

        Args:
            terms: asked of everybody. What is below is known of Gaussian noise alone.

        Raises:
            As :meth:`sum`; a sum is held against its own blocks and, where everybody answered,
            against what earlier ones counted (:func:`fedsynth.federation.server.counts.look`).
        """
        released = self.sum(task, terms, dim, arrays=arrays)
        if not isinstance(terms.kind, Gaussian):
            return released
        # Where a person's rows are added up its factor hangs on what is asked, and so do totals.
        everybody = released.answered == self.clients and not terms.protects.joined
        total, reason = look(
            released.value,
            blocks,
            terms.summed_scale(released.answered),
            most_units(terms, released.answered, self._most_records),
            self.counted if everybody else None,
        )
        if reason is not None:
            number = self.asked - 1
            self._rounds.give_up()
            raise unusable(task, number, f"{reason}, beyond what noise explains")
        if everybody:
            self.counted = total.with_(self.counted)
        return released

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
        if steps is not None and (steps < 1 or not terms.protects.per_record):
            raise PrivacyError("training at a client takes at least one step, and hides records")
        request = self._request(task, terms, dim, 0, arrays, settings, steps)
        return self._rounds.once(request, Collected, self._door.collect)

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
        asked = {**(arrays or {}), "starts": starts}
        request = self._request(task, terms, len(estimate), 0, asked)

        def choose(request: Request) -> Chosen:
            return Chosen(self._door.select(request, scores))

        return self._rounds.once(request, Chosen, choose).index

    def _sum(self, request: Request) -> Released:
        released = self._door.sum(request)
        demand_bounded(released, request)
        return released

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
        job, number = self.ledger.job, self.asked
        limit = job.participations if draws_clients(terms) else None
        return Request(
            task,
            terms,
            dim,
            kept,
            arrays or {},
            settings or {},
            job.job,
            number,
            steps,
            limit,
            self._most_records,
        )
