"""At most one sum of a round is ever opened, whatever the server does."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, FederationError
from fedsynth.federation.secure import masks, party
from fedsynth.federation.secure.frames import Part, Step, read, read_members, write, write_members
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Rules
from fedsynth.federation.secure.state import Session, State
from tests.federation.secure.curious import DIM, Formal, Server
from tests.federation.secure.owners import identity, make
from tests.federation.secure.schedules import TAPE, is_promised, play

# Cohort, threshold, curious, and who is: the least threshold, and stricter ones.
CASES = (
    (3, 2, 0, ()),
    (3, 3, 1, (0,)),
    (4, 3, 1, (2,)),
    (4, 4, 2, (1, 2)),
    (5, 3, 0, ()),
    (5, 4, 1, (4,)),
    (5, 4, 2, (0, 3)),
)
EXPLORING = settings.get_current_profile_name() == "explore"


@settings(max_examples=10_000 if EXPLORING else 100)
@given(case=st.sampled_from(CASES), tape=st.binary(min_size=TAPE, max_size=TAPE))
def test_no_schedule_of_drops_delays_lies_and_repeats_opens_two_sums_of_a_round(case, tape):
    """All that the server can work out is one sum a round, over at least threshold - curious
    honest owners. `make explore` plays 10,000."""
    _, learned = play(tape, *case)
    assert is_promised(learned, Rules(*case[:3]).shares)


def search(case, count, first=0):
    """How many numbered schedules opened a sum, up to the first that breaks the promise, and
    whether there was such."""
    shares, opened = Rules(*case[:3]).shares, 0
    for number in range(first, first + count):
        _, learned = play(random.Random(number).randbytes(TAPE), *case)
        opened += bool(learned)
        if not is_promised(learned, shares):
            return opened, True
    return opened, False


@pytest.mark.parametrize("case", [(4, 3, 1, (2,)), (3, 3, 1, (0,))])
def test_schedules_do_open_sums(case):
    """Or nothing would be tested by them."""
    opened, broken = search(case, 40)
    assert opened >= 8 and not broken


def sign_any_list(patch):
    patch.setattr(Session, "fix", lambda self, **told: replace(self, **told))


def join_after_handing_over(patch):
    move = State.move
    patch.setattr(
        State, "move", lambda self, *step: replace(move(self, *step), earliest=self.earliest)
    )


def mask_among_any(patch):
    """Where all are needed, with however few."""
    patch.setattr(Party, "_read", lambda self, field, *_, **__: read_members(field, self._cohort))


@pytest.mark.parametrize(
    "hole, case, first",
    [
        # One of 300 schedules finds the first hole, one of 150 the second: from shortly before it.
        (sign_any_list, (4, 3, 1, (2,)), 140),
        (join_after_handing_over, (4, 3, 1, (2,)), 20),
        (mask_among_any, (3, 3, 1, (0,)), 0),
    ],
)
def test_schedules_find_an_owner_that_keeps_no_rule(hole, case, first, monkeypatch):
    hole(monkeypatch)
    assert search(case, 400, first)[1]


def tell(monkeypatch, cohort, threshold, curious, lists, corrupt=()):
    """What a server learns that tells each owner another list of the living, with the signatures
    of those who believe it and of corrupt owners."""
    formal = Formal()
    monkeypatch.setattr(masks, "mask", formal.mask)
    leader, owners = make(cohort, threshold, curious)
    names, server = owners.roster.names, Server(owners.roster, formal, frozenset(corrupt))

    def ask(place, request):
        party = owners.parties[names[place]]
        reply = party.answer(request, lambda round: formal.contribution(place, round))
        session = party._state.current or party._state.coming
        if place in corrupt:
            server.corrupted(place, session.round, session.attempt, session.seed)
        return reply, party._state

    leader.begin(0, DIM)
    for _ in range(3):
        asked = leader.requests()
        replies = {name: ask(names.index(name), asked[name])[0] for name in names}
        for place, name in enumerate(names):
            server.see(place, asked[name], replies[name])
            leader.receive(name, replies[name])
        leader.advance()
    signatures = {}
    for place, living in lists.items():
        request = write([Part(Step.LIVING, 0, 0, (write_members(living, cohort),))])
        reply, state = ask(place, request)
        server.see(place, request, reply)
        signatures.setdefault(living, {})[place] = read(reply)[0].fields[0]
        for other in corrupt:
            believed = party._believed(state.current, owners.roster.context(0, 0))
            signatures[living][other] = masks.sign(identity(names[other]), believed)
    for place, living in lists.items():
        signed = sorted(signatures[living].items())
        proof = write_members(signatures[living], cohort), b"".join(one for _, one in signed)
        request = write([Part(Step.UNMASK, 0, 0, proof)])
        server.see(place, request, ask(place, request)[0])
    return server.learn()


HALVES = {0: (0, 2), 1: (1, 2)}


def test_at_half_a_server_with_one_colluder_gets_two_lists_signed_and_opens_single_owners(
    monkeypatch,
):
    """Two of three are enough against the server alone: as owners say who take nobody for
    curious. Owner 2 is."""
    learned = tell(monkeypatch, 3, 2, 0, HALVES, corrupt=[2])
    assert learned == [{(0, 0): 1}, {(1, 0): 1}]


def test_above_half_and_the_curious_the_same_lists_are_refused(monkeypatch):
    with pytest.raises(ConfigError, match="not from 3 to 3"):
        Rules(3, 2, 1)
    with pytest.raises(FederationError, match="2 owners is below the threshold of 4"):
        tell(monkeypatch, 5, 4, 1, HALVES, corrupt=[2])


# Of five owners, of whom three are needed: each list has three, and three owners say of 2, 3 and 4
# that they are not living.
PATCHED = {0: (0, 1, 2), 1: (0, 1, 3), 2: (0, 1, 2), 3: (0, 1, 3), 4: (0, 1, 4)}


def test_nothing_is_opened_before_enough_have_signed_one_list(monkeypatch):
    with pytest.raises(FederationError, match="2 owners is below the threshold of 3"):
        tell(monkeypatch, 5, 3, 0, PATCHED)


def test_without_signatures_fewer_than_the_threshold_are_summed(monkeypatch):
    """What the round of signatures is for."""
    monkeypatch.setattr(Party, "_read", lambda self, field, *_, **__: read_members(field, 5))
    assert tell(monkeypatch, 5, 3, 0, PATCHED) == [{(0, 0): 1, (1, 0): 1}]
