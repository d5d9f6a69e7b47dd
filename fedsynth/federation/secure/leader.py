"""The server's half: it carries what owners say to each other, and adds up what it cannot read."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from fedsynth.errors import FederationError
from fedsynth.federation.secure import frames, keys, masks, shamir
from fedsynth.federation.secure.frames import Part, Step
from fedsynth.federation.secure.keys import PublicKeys
from fedsynth.federation.secure.rules import Roster, Rules


@dataclass(frozen=True)
class Opened:
    """The sum of a round.

    Attributes:
        total: uint32 or uint64 [dim], modulo 2^32 or 2^64.
        owners: whose contributions it holds.
    """

    round: int
    total: masks.Vector
    owners: tuple[str, ...]


@dataclass
class _Attempt:
    """One attempt as the server knows it; owners by their place in the roster.

    Attributes:
        public: keys of those who take part.
        boxes: by dealer, and by who is to get it.
        masked: whose numbers are in the total.
        signatures: of the list of the living.
        shares: by helper, about whom.
    """

    round: int
    number: int
    context: bytes
    cohort: int
    public: dict[int, PublicKeys] = field(default_factory=dict)
    boxes: dict[int, dict[int, bytes]] = field(default_factory=dict)
    masked: set[int] = field(default_factory=set)
    signatures: dict[int, bytes] = field(default_factory=dict)
    shares: dict[int, dict[int, int]] = field(default_factory=dict)

    @cached_property
    def shown(self) -> tuple[bytes, bytes]:
        """Who has keys, and the keys; of no use before all of them came."""
        return self.members(self.public), b"".join(
            self.public[place].write() for place in sorted(self.public)
        )

    @cached_property
    def believed(self) -> bytes:
        """What the living sign; of no use before all masked numbers came."""
        return keys.believed(
            self.context, *self.shown, self.members(self.boxes), self.members(self.masked)
        )

    def members(self, places: Collection[int]) -> bytes:
        return frames.write_members(places, self.cohort)

    def ready(self, rules: Rules) -> bool:
        """Whether its numbers can be asked for."""
        came = self.public if rules.needs_all else self.boxes
        return len(came) >= rules.threshold

    def answered(self, step: Step) -> Collection[int]:
        """Who did a step."""
        return (self.public, self.boxes, self.masked, self.signatures, self.shares)[step - 1]


class Leader:
    """The server in the sums of one job.

    A round is `begin`; then, until `advance` brings its sum: send the `requests`, `receive` what
    comes in time, `advance`. Whose answer `receive` refuses is absent. Where `advance` fails, the
    attempt is lost; the round may `begin` again, under new masks.

    Args:
        roster: the same that the owners have.
        attempt: number of the first; a server that resumes goes on above all that it used.
    """

    def __init__(self, roster: Roster, attempt: int = 0) -> None:
        self._roster, self._next = roster, attempt
        self._places = {name: place for place, name in enumerate(roster.names)}
        self._current: _Attempt | None = None
        self._coming: _Attempt | None = None
        self._step = Step.KEYS
        self._asked: dict[int, list[Part]] = {}

    @property
    def attempt(self) -> int:
        """The number that the next attempt gets."""
        return self._next

    def skip(self, attempt: int) -> None:
        """Give the next attempt this number at least: owners know of all below it."""
        self._next = max(self._next, attempt)

    def is_ready(self, round: int) -> bool:
        """Whether all that a round's numbers are masked by came with the one before."""
        coming = self._coming
        return bool(coming and coming.round == round and coming.ready(self._roster.rules))

    def begin(self, round: int, size: int, kind: str = "<u8", following: int | None = None) -> None:
        """Begin an attempt at a round; where its keys and shares came with the last, behind them.

        Args:
            size: how many numbers a contribution has.
            kind: "<u4" or "<u8", the numbers' type.
            following: the next round, if its keys and shares are to come with this one's.
        """
        if kind not in frames.KINDS or size < 1:
            raise FederationError("a secure sum is over rows of uint32 or uint64")
        ready = self._coming
        if ready and self.is_ready(round):
            self._current, self._step = ready, Step.MASKED
        else:
            self._current, self._step = self._start(round), Step.KEYS
        self._coming, self._following = None, following
        self._total: masks.Vector = np.zeros(size, kind)
        self._ask()

    def requests(self) -> dict[str, bytes]:
        """What is to be sent, by owner; to those who did not answer yet."""
        names = self._roster.names
        return {names[place]: frames.write(parts) for place, parts in self._asked.items()}

    def receive(self, name: str, reply: bytes) -> None:
        """Take an owner's answer.

        Raises:
            FederationError: it is none, or comes late, or twice.
        """
        place = self._places.get(name, -1)
        asked, parts = self._asked.get(place), frames.read(reply)
        if asked is None:
            raise FederationError(f"{name} was not asked, has answered, or answers late")
        if [part.name for part in parts] != [part.name for part in asked]:
            raise FederationError(f"{name} answers something else than it was asked")
        for part in parts:
            attempt = self._current
            if attempt is None or part.attempt != attempt.number:
                attempt = self._coming
            assert attempt is not None
            self._take(attempt, place, part)
        del self._asked[place]

    def advance(self) -> Opened | None:
        """End an exchange; the sum, if it was the last.

        Raises:
            FederationError: fewer owners answered than the threshold, or shares do not fit.
        """
        attempt, step = self._current, self._step
        if attempt is None:
            raise FederationError("no round was begun")
        rules = self._roster.rules
        answered, threshold = len(attempt.answered(step)), rules.threshold
        last = Step.MASKED if rules.needs_all else Step.UNMASK
        if answered < threshold or step is last:
            self._current, self._asked = None, {}
        if answered < threshold:
            raise FederationError(
                f"{answered} owners answered {step.name} of round {attempt.round}, attempt "
                f"{attempt.number}; a sum takes {threshold}, so the attempt is lost"
            )
        if step is last:
            if not rules.needs_all:
                self._open(attempt)
            names = tuple(self._roster.names[place] for place in sorted(attempt.masked))
            return Opened(attempt.round, self._total, names)
        self._step = last if rules.needs_all else Step(step + 1)
        self._ask()
        return None

    def _start(self, round: int) -> _Attempt:
        if not 0 <= round < 2**64:
            raise FederationError(f"rounds are numbered from 0 on, below 2^64: {round} is none")
        context = self._roster.context(round, self._next)
        self._next += 1
        return _Attempt(round, self._next - 1, context, self._roster.rules.cohort)

    def _ask(self) -> None:
        """What the step asks of whom; keys and shares of the following round ride along."""
        assert self._current is not None
        asked = list(self._parts(self._current, self._step))
        riding = Step.MASKED if self._roster.rules.needs_all else Step.LIVING
        if self._step is riding and self._following is not None:
            self._coming = self._start(self._following)
            asked += self._parts(self._coming, Step.KEYS)
        coming, threshold = self._coming, self._roster.rules.threshold
        if self._step is Step.UNMASK and coming and len(coming.public) >= threshold:
            asked += self._parts(coming, Step.SHARES)
        self._asked = {}
        for place, part in asked:
            self._asked.setdefault(place, []).append(part)

    def _parts(self, attempt: _Attempt, step: Step) -> Iterator[tuple[int, Part]]:
        members = attempt.members
        asked: dict[int, tuple[bytes, ...]]
        match step:
            case Step.KEYS:
                own = (self._roster.digest, self._roster.rules.numbers)
                asked = dict.fromkeys(range(attempt.cohort), own)
            case Step.SHARES:
                asked = dict.fromkeys(attempt.public, attempt.shown)
            case Step.MASKED if self._roster.rules.needs_all:
                asked = dict.fromkeys(attempt.public, attempt.shown)
            case Step.MASKED:
                dealers, dealt = members(attempt.boxes), sorted(attempt.boxes.items())
                asked = {
                    place: (dealers, b"".join(own[place] for who, own in dealt if who != place))
                    for place in attempt.boxes
                }
            case Step.LIVING:
                asked = {place: (members(attempt.masked),) for place in attempt.masked}
            case Step.UNMASK:
                signed = sorted(attempt.signatures.items())[: self._roster.rules.threshold]
                proof = (members(dict(signed)), b"".join(signature for _, signature in signed))
                asked = dict.fromkeys(attempt.signatures, proof)
        for place, fields in asked.items():
            yield place, Part(step, attempt.round, attempt.number, fields)

    def _take(self, attempt: _Attempt, place: int, part: Part) -> None:
        """One step's answer. Raises FederationError for one that cannot be used."""
        name, key = self._roster.names[place], self._roster.key(place)
        match part.step:
            case Step.KEYS:
                shown = PublicKeys.read(*part.expect(keys.KEYS))
                if not shown.is_signed(key, attempt.context):
                    raise FederationError(f"{name} did not sign its keys")
                # Peers would refuse the list with a key that agrees with nobody's.
                masks.agree(bytes(masks.KEY), (shown.sealing, shown.masking))
                attempt.public[place] = shown
            case Step.SHARES:
                others = [other for other in sorted(attempt.public) if other != place]
                members, boxes = part.expect(attempt.cohort, None)
                if members != attempt.members(others):
                    raise FederationError(f"{name} did not deal shares to all others")
                cuts = frames.cut(boxes, keys.BOX, len(others))
                attempt.boxes[place] = dict(zip(others, cuts, strict=True))
            case Step.MASKED:
                kind, numbers = part.expect(3, self._total.nbytes)
                if kind != self._total.dtype.str.encode():
                    raise FederationError(f"{name} gave numbers of another type")
                self._total += frames.read_vector(kind, numbers)
                attempt.masked.add(place)
            case Step.LIVING:
                (signature,) = part.expect(masks.SIGNATURE)
                if not masks.is_signed(key, signature, attempt.believed):
                    raise FederationError(f"{name} did not sign the list of the living")
                attempt.signatures[place] = signature
            case Step.UNMASK:
                members, shares = part.expect(attempt.cohort, None)
                about = frames.read_members(members, attempt.cohort)
                cuts = frames.cut(shares, keys.SHARE, len(about))
                told = {who: int.from_bytes(one) for who, one in zip(about, cuts, strict=True)}
                attempt.shares[place] = told

    def _open(self, attempt: _Attempt) -> None:
        """Take all masks off the total that did not cancel.

        Raises:
            FederationError: shares are missing, or give another secret than was committed to.
        """
        added, removed, context = list[bytes](), list[bytes](), attempt.context
        for place in attempt.boxes:
            secret = self._combine(attempt, place)
            if place in attempt.masked:
                if keys.commit(secret, context) != attempt.public[place].commitment:
                    raise self._unfit(attempt, place)
                removed.append(keys.own_mask(secret, context))
                continue
            key = keys.masking_key(secret)
            if masks.public_of(key) != attempt.public[place].masking:
                raise self._unfit(attempt, place)
            living = sorted(attempt.masked)
            agreed = masks.agree(key, [attempt.public[other].masking for other in living])
            for other, shared in zip(living, agreed, strict=True):
                side = removed if other < place else added
                side.append(keys.pair_mask(shared, context, place, other))
        masks.mask(self._total, added, removed)

    def _combine(self, attempt: _Attempt, place: int) -> bytes:
        """The secret that shares about an owner give; of too few it is another one."""
        helpers = [who for who in sorted(attempt.shares) if place in attempt.shares[who]]
        helpers = helpers[: self._roster.rules.threshold]
        weighed = shamir.weights(tuple(who + 1 for who in helpers))
        secret = shamir.combine([attempt.shares[who][place] for who in helpers], weighed)
        return secret.to_bytes(keys.SHARE)[-keys.SECRET :]

    def _unfit(self, attempt: _Attempt, place: int) -> FederationError:
        return FederationError(
            f"the shares about {self._roster.names[place]} that owners handed over for round "
            f"{attempt.round} do not give what it committed to: one of them lied, and the round is "
            "lost"
        )
