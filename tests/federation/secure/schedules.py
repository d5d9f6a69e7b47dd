"""A server that says whatever it likes, in whatever order, to owners who keep to the protocol.

It has every genuine answer and all that curious owners know and can sign; bytes of a tape decide
what it does next. What it cannot do is break a cipher, so stand-ins do for them.
"""

from __future__ import annotations

import random
from collections import defaultdict
from dataclasses import dataclass, field

import pytest

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.secure import keys, masks, party
from fedsynth.federation.secure.frames import Part, Step, read, write, write_members
from fedsynth.federation.secure.keys import Secrets, read_public
from tests.federation.secure.curious import Formal, Server
from tests.federation.secure.owners import identity, make
from tests.federation.secure.toys import toys

ATTEMPTS, TAPE = 3, 150


class Tape:
    """Bytes that are used up one by one."""

    def __init__(self, written):
        self.left = list(written)

    def choose(self, options):
        """One of them, the first when the tape is at its end."""
        return options[self.left.pop() % len(options) if self.left else 0]


@dataclass
class Attempt:
    """What the server has of one; owners by place.

    Attributes:
        step: that it goes on with.
        told: what each owner was asked and answered, by owner and step.
        signatures: by what was signed, and by who signed it.
    """

    round: int
    number: int
    context: bytes
    step: Step = Step.KEYS
    public: dict = field(default_factory=dict)
    secrets: dict = field(default_factory=dict)
    boxes: dict = field(default_factory=dict)
    masked: set = field(default_factory=set)
    told: dict = field(default_factory=lambda: defaultdict(dict))
    signatures: dict = field(default_factory=lambda: defaultdict(dict))


class Liar:
    """The server, and the curious owners with it."""

    def __init__(self, tape, cohort, threshold, curious, corrupt, formal):
        _, self.owners = make(cohort, threshold, curious)
        self.roster, self.tape, self.formal = self.owners.roster, Tape(tape), formal
        self.corrupt = sorted(corrupt)
        self.honest = [place for place in range(cohort) if place not in corrupt]
        self.knows = Server(self.roster, formal, frozenset(corrupt))
        self.answered, self.refused = defaultdict(int), defaultdict(int)
        self.attempts = []
        for number in range(ATTEMPTS):
            round = int(self.odd(4))
            attempt = Attempt(round, number, self.roster.context(round, number))
            for place in corrupt:
                seed = bytes([place, number]) * 16
                attempt.secrets[place] = Secrets.make(seed, attempt.context)
                shown = attempt.secrets[place].show(self._identity(place), attempt.context)
                attempt.public[place] = self.knows.public[round, number, place] = shown
                self.knows.corrupted(place, round, number, seed)
            self.attempts.append(attempt)

    def odd(self, count):
        """Once in so many times."""
        return self.tape.choose(range(count)) == count - 1

    def play(self):
        """Until the tape is at its end: what the server learned."""
        focus = 0
        while self.tape.left and focus < ATTEMPTS:
            # Mostly one attempt to its end and then the next, or no owner would get far.
            attempt = self.attempts[self.tape.choose(range(ATTEMPTS)) if self.odd(16) else focus]
            for place in self.honest:
                if self.odd(32):
                    self.owners.start(self.roster.names[place])
                if not self.odd(10):
                    step = self.tape.choose(tuple(Step)) if self.odd(16) else attempt.step
                    self.ask(attempt, place, step)
            if attempt.step < Step.UNMASK:
                attempt.step = Step(attempt.step + (not self.odd(8)))
            elif self.odd(3):
                # Perhaps they sign another list as well.
                attempt.step = Step.LIVING
            elif self.odd(2):
                focus += 1
        return self.knows.learn()

    def ask(self, attempt, place, step):
        """One owner, one step of one attempt."""
        part = Part(step, attempt.round, attempt.number, self._fields(attempt, place, step))
        few = step == Step.UNMASK and sum(part.fields[0]) < self.roster.rules.threshold
        if few and not self.odd(4):
            return
        name = self.roster.names[place]
        contribute = lambda round: self.formal.contribution(place, round)  # noqa: E731
        try:
            reply = self.owners.parties[name].answer(write([part]), contribute)
        except (FederationError, PrivacyError):
            self.refused[step] += 1
            return
        self.answered[step] += 1
        self.knows.see(place, write([part]), reply)
        (fields,) = (part.fields for part in read(reply))
        attempt.told[place][step] = part.fields
        match step:
            case Step.KEYS:
                attempt.public |= read_public(fields[0], [place])
            case Step.SHARES:
                takers = [who for who, byte in enumerate(fields[0]) if byte]
                size = keys.BOX
                cuts = [fields[1][at : at + size] for at in range(0, len(fields[1]), size)]
                attempt.boxes[place] = dict(zip(takers, cuts, strict=True))
            case Step.MASKED:
                attempt.masked.add(place)
            case Step.LIVING:
                attempt.signatures[self._believed(attempt, place)][place] = fields[0]

    def _fields(self, attempt, place, step):
        """What to ask: genuine pieces, and lists that say the truth or leave somebody out."""
        members = self._members
        match step:
            case Step.KEYS:
                return self.roster.digest, self.roster.rules.numbers
            case Step.SHARES:
                takers = self._some(attempt.public, place, 16)
                public = b"".join(attempt.public[who].write() for who in takers)
                return members(takers), public
            case Step.MASKED if self.roster.rules.needs_all:
                return self._fields(attempt, place, Step.SHARES)
            case Step.MASKED:
                dealers = self._some({*attempt.boxes, *self.corrupt}, place, 16)
                boxes = [self._box(attempt, who, place) for who in dealers if who != place]
                return members(dealers), b"".join(boxes)
            case Step.LIVING:
                living = self._some({*attempt.masked, *self.corrupt}, place, 3)
                return (members(living),)
            case Step.UNMASK:
                believed = self._believed(attempt, place)
                signed = {who: masks.sign(self._identity(who), believed) for who in self.corrupt}
                signed |= attempt.signatures[believed]
                signers = sorted(signed)[: self.roster.rules.threshold]
                return members(signers), b"".join(signed[who] for who in signers)

    def _some(self, places, own, rate):
        """All of these, or once in so many times but one or two, whatever others are told."""
        places = sorted(places)
        while self.tape.left and self.odd(rate):
            left = self.tape.choose([*self.honest, *self.corrupt])
            places = [place for place in places if place != left or place == own]
        return places

    def _box(self, attempt, dealer, taker):
        if dealer not in self.corrupt:
            return attempt.boxes.get(dealer, {}).get(taker, bytes(keys.BOX))
        secrets = attempt.secrets[dealer]
        if taker not in attempt.public:
            return bytes(keys.BOX)
        (agreed,) = masks.agree(secrets.sealing, [attempt.public[taker].sealing])
        (shares,) = secrets.deal(self.roster.rules.threshold, [taker])
        return masks.seal(keys.box_key(agreed, attempt.context, dealer, taker), b"".join(shares))

    def _believed(self, attempt, place):
        """What an owner signs, as far as the server knows what it told it."""
        told = attempt.told[place]
        lists = [*told.get(Step.SHARES, (b"", b""))]
        lists += [told.get(step, (b"",))[0] for step in (Step.MASKED, Step.LIVING)]
        return keys.believed(attempt.context, *lists)

    def _members(self, places):
        return write_members(places, self.roster.rules.cohort)

    def _identity(self, place):
        return identity(self.roster.names[place])


def play(tape, cohort, threshold, curious, corrupt):
    """One schedule: the liar, and what it learned."""
    formal = Formal()
    with toys(formal.mask), pytest.MonkeyPatch.context() as patch:
        patch.setattr(party.os, "urandom", random.Random(tape).randbytes)
        liar = Liar(tape, cohort, threshold, curious, corrupt, formal)
        return liar, liar.play()


def is_promised(learned, shares):
    """Whether that is, of each round, one sum at most, and over so many honest owners or more."""
    rounds = [{round for _, round in row} for row in learned]
    once = len(set().union(*rounds)) == sum(map(len, rounds)) == len(learned)
    return once and all(set(row.values()) == {1} and len(row) >= shares for row in learned)
