"""The loop that carries a secure sum, whatever lies between the server and the owners."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress

from fedsynth.errors import FederationError
from fedsynth.federation.secure.leader import Leader, Opened
from fedsynth.federation.secure.rules import Roster
from fedsynth.federation.secure.state import Standing

Exchange = Callable[[Mapping[str, bytes]], Iterable[tuple[str, bytes]]]
"""From what is sent to owners to what comes back in time: owners' names, and their answers."""


_AHEAD = 2**20
"""Attempts that one owner may know of and others not."""


def add_up(leader: Leader, exchange: Exchange, *, answered: bool = False) -> Opened:
    """Carry an attempt that has begun to its end.

    An answer that cannot be used is as good as none.

    Args:
        answered: whether its first exchange is over.

    Raises:
        FederationError: the attempt is lost.
    """
    opened = leader.advance() if answered else None
    while opened is None:
        for name, reply in exchange(leader.requests()):
            with suppress(FederationError):
                leader.receive(name, reply)
        opened = leader.advance()
    return opened


class Sums:
    """The sums of one job, at its server: each round by the attempt that owners are in, or anew.

    Args:
        roster: the same that the owners have.
    """

    def __init__(self, roster: Roster) -> None:
        self.roster = roster
        self._leader = Leader(roster)
        self._reason = "what was kept of it is gone"
        self._ahead: int | None = None

    def ask_ahead(
        self, round: int, size: int, kind: str, following: int | None
    ) -> dict[str, bytes]:
        """What can go out to owners together with the question itself, in a round whose keys came
        with the one before; nothing in any other. :meth:`take` what comes back, and
        :meth:`add_up` goes on from there.

        Args:
            size, kind, following: as of :meth:`add_up`.
        """
        self._ahead = round if self._leader.is_ready(round) else None
        if self._ahead is None:
            return {}
        self._leader.begin(round, size, kind, following)
        return self._leader.requests()

    def take(self, name: str, reply: bytes) -> None:
        """An owner's answer to what was asked ahead; one that cannot be used is as good as none."""
        with suppress(FederationError):
            self._leader.receive(name, reply)

    def add_up(
        self,
        round: int,
        size: int,
        kind: str,
        following: int | None,
        standings: Mapping[str, Standing],
        exchange: Exchange,
    ) -> Opened | None:
        """The sum of a round, by an attempt that owners were in, or by a new one; None where so
        few owners answered that it is not opened, and may be asked again.

        Args:
            size, kind: of what owners give, as of :meth:`Leader.begin`.
            following: the next round, if its keys are to come with this one's.
            standings: of owners that can be asked now, by name.

        Raises:
            FederationError: it cannot be opened any more.
        """
        self._leader.skip(1 + self._last(standings))
        ahead, self._ahead = self._ahead, None
        if ahead == round:
            return self._carry(self._leader, exchange, answered=True)
        given = {one.given[1] for one in standings.values() if one.given and one.given[0] == round}
        for attempt in sorted(given, reverse=True):
            # Owners that handed shares over do so again in the same attempt, and in no other.
            again = Leader(self.roster, attempt)
            again.begin(round, size, kind)
            knowing = {name for name, one in standings.items() if one.knows(round, attempt)}
            opened = self._carry(again, _to(knowing, exchange))
            if opened is not None:
                return opened
        # Others than those that can be asked now may come back.
        closed = sum(one.earliest > round for one in standings.values())
        if closed > self.roster.rules.may_drop:
            raise FederationError(
                f"round {round} cannot be opened any more, since owners handed over shares of an "
                f"attempt that does not come to its end ({self._reason}). It is charged and its "
                "value lost; resume the job to go on"
            )
        self._leader.begin(round, size, kind, following)
        return self._carry(self._leader, exchange)

    def _last(self, standings: Mapping[str, Standing]) -> int:
        """The last attempt that owners know of. One that says a number far beyond the others' lies:
        if it were believed, there would soon be none left."""
        told = sorted((one.attempt for one in standings.values()), reverse=True)
        if not told:
            return -1
        lying = max(1, self.roster.rules.curious)
        sure = told[min(lying, len(told) - 1)]
        return min(told[0], sure + _AHEAD)

    def _carry(
        self, leader: Leader, exchange: Exchange, *, answered: bool = False
    ) -> Opened | None:
        try:
            return add_up(leader, exchange, answered=answered)
        except FederationError as error:
            self._reason = str(error)
            return None


def _to(names: set[str], exchange: Exchange) -> Exchange:
    """The same with these owners alone."""
    return lambda asked: exchange({name: one for name, one in asked.items() if name in names})
