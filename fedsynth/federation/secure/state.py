"""What an owner remembers of a job's sums, and which attempts it may still take part in.

The rules that keep two sums of a round from being opened are here: an attempt has one list of keys,
one of dealers and one of the living; attempts and rounds go forward; a round of which shares were
handed over is closed.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, replace
from typing import Any

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.secure.frames import Part, Step
from fedsynth.federation.secure.masks import LABEL, join


@dataclass(frozen=True)
class Session:
    """One attempt, as far as it went; what was not yet said is empty.

    Attributes:
        seed: of all that the owner makes for it, 32 bytes.
        takers, public: who has keys, and their keys.
        agreed: what the owner's sealing key agrees on with each of them, 32 bytes each.
        dealers, boxes: who dealt shares, and the boxes for this owner.
        digest: SHA-256 of the contribution.
        living: whose masked numbers are in the sum.
    """

    round: int
    attempt: int
    seed: bytes
    takers: bytes = b""
    public: bytes = b""
    agreed: bytes = b""
    dealers: bytes = b""
    boxes: bytes = b""
    digest: bytes = b""
    living: bytes = b""

    def fix(self, **told: Any) -> Session:
        """The same with what the server said, for good.

        Raises:
            PrivacyError: it said otherwise before.
        """
        for name, value in told.items():
            if getattr(self, name) not in (b"", value):
                raise PrivacyError(
                    f"round {self.round}, attempt {self.attempt}: another list or other numbers "
                    f"({name}) than before"
                )
        return replace(self, **told)


@dataclass(frozen=True)
class Standing:
    """Where an owner stands in a job's sums, which is no secret: what a server goes by that begins
    a round, or takes one up that was begun.

    Attributes:
        attempt: number of the last attempt that it began, -1 before the first.
        earliest: the first round that it takes part in another attempt at.
        given: round and attempt that it gave masked numbers in last.
        begun: round and attempt that it began last, and gave none in.
    """

    attempt: int = -1
    earliest: int = 0
    given: tuple[int, int] | None = None
    begun: tuple[int, int] | None = None

    def knows(self, round: int, attempt: int) -> bool:
        """Whether it can go on in an attempt."""
        return (round, attempt) in (self.given, self.begun)


@dataclass(frozen=True)
class State:
    """All of it.

    Attributes:
        earliest: the first round that attempts may still begin or go on in.
        attempt: the last that was begun; attempts are numbered through a job.
        current: that the owner gave masked numbers in last.
        coming: that was begun last.
    """

    earliest: int = 0
    attempt: int = -1
    current: Session | None = None
    coming: Session | None = None

    def begin(self, part: Part, seed: bytes) -> State:
        """With an attempt that is asked for by its keys, unless it was before.

        Raises:
            FederationError: an attempt before the last.
        """
        if (part.round, part.attempt) in self._names:
            return self
        if part.attempt <= self.attempt:
            raise FederationError(f"{part.name} comes after attempt {self.attempt}")
        session = Session(part.round, part.attempt, seed)
        return replace(self, attempt=part.attempt, coming=session)

    def find(self, part: Part) -> Session:
        """The attempt of a request.

        Raises:
            FederationError: it was never begun, or another took its place.
            PrivacyError: of a round that is closed.
        """
        name = (part.round, part.attempt)
        if self.current and name == (self.current.round, self.current.attempt):
            return self.current
        if part.round < self.earliest:
            raise _closed(part)
        if self.coming and name == (self.coming.round, self.coming.attempt):
            return self.coming
        raise FederationError(f"{part.name} was not begun here, or another took its place")

    def move(self, session: Session, step: Step) -> State:
        """With what an attempt became by a step.

        Raises:
            PrivacyError: a contribution that is not the round's.
        """
        current = self.current
        if current and current.attempt == session.attempt:
            closes = session.round + 1 if step is Step.UNMASK else self.earliest
            return replace(self, current=session, earliest=max(self.earliest, closes))
        if step is not Step.MASKED:
            return replace(self, coming=session)
        if current and current.round == session.round:
            session.fix(digest=current.digest)
        return State(session.round, self.attempt, session)

    @property
    def standing(self) -> Standing:
        given, begun = (
            None if one is None else (one.round, one.attempt) for one in (self.current, self.coming)
        )
        return Standing(self.attempt, self.earliest, given, begun)

    def write(self, whose: bytes) -> bytes:
        """As bytes, as secret as the owner's identity; :meth:`read` is the inverse.

        Args:
            whose: names owner and roster; only they read it again.
        """
        body = json.dumps(vars(self), default=_plain).encode()
        return _hash(whose, body) + body

    @classmethod
    def read(cls, written: bytes, whose: bytes) -> State:
        """Raises PrivacyError for what was not written so."""
        digest, body = written[:32], written[32:]
        if digest != _hash(whose, body):
            raise PrivacyError(
                "the state that was kept of secure sums is damaged, or of another owner, job or "
                "roster; without it rounds that were begun must stay lost"
            )
        plain = json.loads(body)
        for name in ("current", "coming"):
            if plain[name]:
                told = {key: _bytes(value) for key, value in plain[name].items()}
                plain[name] = Session(**told)
        return cls(**plain)

    @property
    def _names(self) -> list[tuple[int, int]]:
        return [(one.round, one.attempt) for one in (self.current, self.coming) if one]


def _closed(part: Part) -> PrivacyError:
    return PrivacyError(
        f"{part.name} is refused: shares that open round {part.round}, or a later one's numbers, "
        "were given already, and no round is opened twice"
    )


def _hash(whose: bytes, body: bytes) -> bytes:
    return hashlib.sha256(LABEL + join(b"state", whose, body)).digest()


def _plain(value: Any) -> Any:
    return value.hex() if isinstance(value, bytes) else vars(value)


def _bytes(value: int | str) -> Any:
    return bytes.fromhex(value) if isinstance(value, str) else value
