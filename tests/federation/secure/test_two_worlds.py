"""A curious server sees the same, whoever contributed what to an equal sum."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from fedsynth.errors import FederationError
from fedsynth.federation.secure import keys, masks, party
from fedsynth.federation.secure.frames import Step, read, write
from fedsynth.federation.secure.keys import Secrets
from fedsynth.federation.secure.party import Party
from tests.federation.secure.curious import DIM, Formal, Server
from tests.federation.secure.owners import make

OMITTED = b"omitted"
# Four owners, of whom three are needed: in the first round one drops out, in the second the
# numbers of another come late, and a third tells the server all that it knows.
DROPS, LATE, CORRUPT = 1, 3, 2
SUMS = [{(0, 0): 1, (LATE, 0): 1}, {(0, 1): 1, (DROPS, 1): 1}]


@pytest.fixture
def entropy(monkeypatch):
    """What owners take for secret bytes: the same in every run."""
    source = SimpleNamespace(urandom=random.Random(1).randbytes)
    monkeypatch.setattr(party, "os", source)
    return source


def watch(contribution, formal=None, rules=(4, 3, 1)):
    """Both rounds: what server and curious owner know, and all requests and answers."""
    leader, owners = make(*rules)
    some = not owners.roster.rules.needs_all
    server, seen = Server(owners.roster, formal, frozenset({CORRUPT})), []
    for round in (0, 1):
        leader.begin(round, DIM, following=round + 1)
        opened = None
        while not opened:
            late = None
            for name, request in leader.requests().items():
                place, asked = owners.roster.names.index(name), read(request)[0]
                if some and (place, round) == (DROPS, 0) and asked.step >= Step.MASKED:
                    continue
                reply = owners.parties[name].answer(request, lambda at: contribution(place, at))  # noqa: B023
                state = owners.parties[name]._state
                for session in filter(None, (state.current, state.coming)):
                    if place == CORRUPT:
                        server.corrupted(place, session.round, session.attempt, session.seed)
                server.see(place, request, reply)
                seen += [*read(request), *read(reply)]
                if some and (place, round, asked.step) == (LATE, 1, Step.MASKED):
                    late = reply
                else:
                    as_agreed = [replace(part, fields=part.fields[:2]) for part in read(reply)]
                    leader.receive(name, write(as_agreed))
            opened = leader.advance()
            if late:
                with pytest.raises(FederationError, match="something else than it was asked"):
                    leader.receive(owners.roster.names[LATE], late)
    return server, seen


def learn(patch, rules=(4, 3, 1)):
    formal = Formal(ignored=OMITTED)
    patch.setattr(masks, "mask", formal.mask)
    return watch(formal.contribution, formal, rules)[0].learn()


def test_a_curious_server_learns_the_sums_of_the_living_and_no_more(monkeypatch, entropy):
    """Of the honest ones; so in two worlds of equal sums, masked numbers have one distribution."""
    assert learn(monkeypatch) == SUMS


def test_where_all_are_needed_it_learns_the_sum_of_all_honest_owners(monkeypatch, entropy):
    assert learn(monkeypatch, (4, 4, 1)) == [{(p, r): 1 for p in (0, 1, 3)} for r in (0, 1)]
    with monkeypatch.context() as patch:
        omit_a_mask(patch)
        assert {len(row) for row in learn(patch, (3, 3, 1))} == {1}


def test_all_else_that_crosses_does_not_hang_on_contributions(entropy):
    """With the same secrets it is the same to the byte, and masked numbers differ by what was
    contributed."""
    worlds = []
    for world in (1, 2):
        entropy.urandom = random.Random(1).randbytes
        draw = lambda place, round, world=world: np.random.default_rng(  # noqa: E731
            [world, place, round]
        ).integers(0, 2**64, DIM, np.uint64)
        worlds.append((draw, watch(draw)[1]))
    (first, seen), (second, others) = worlds
    compared = 0
    for part, other in zip(seen, others, strict=True):
        if part.step == Step.MASKED and part.fields[0] == b"<u8":
            masked, again = (np.frombuffer(one.fields[1], "<u8") for one in (part, other))
            contributed = [
                first(place, part.round) - second(place, part.round) for place in range(4)
            ]
            assert any(np.array_equal(masked - again, one) for one in contributed)
            compared += 1
        else:
            assert part == other
    assert compared == 7 and len(seen) > 50


def omit_a_mask(patch):
    """Between two honest owners."""
    real = keys.pair_mask
    patch.setattr(keys, "pair_mask", lambda *of: OMITTED if {*of[2:]} == {0, 1} else real(*of))


def use_secrets_again(patch):
    """In every round, as if they were bound to none."""
    demand, make = Party._demand, Secrets.make

    def seed(self, part):
        party.os.urandom = lambda size: bytes([self._place]) * size
        demand(self, part)

    patch.setattr(Party, "_demand", seed)
    patch.setattr(Secrets, "make", lambda seed, context: make(seed, b""))


def give_both_shares(patch):
    real = Party._unmask

    def unmask(self, part, session, context, secrets):
        living = {place for place, alive in enumerate(session.living) if not alive}
        other = self._hand_over(session, context, secrets, living)
        return [*real(self, part, session, context, secrets), b"".join(other.values())]

    patch.setattr(Party, "_unmask", unmask)


def leave_own_mask_off(patch):
    patch.setattr(keys, "own_mask", lambda *of: OMITTED)


@pytest.mark.parametrize(
    "fault", [omit_a_mask, use_secrets_again, give_both_shares, leave_own_mask_off]
)
def test_the_server_learns_more_where_the_protocol_has_a_hole(fault, monkeypatch, entropy):
    fault(monkeypatch)
    learned = learn(monkeypatch)
    assert learned != SUMS
    assert any(len(row) == 1 for row in learned), "a single owner's contribution"
