"""Sums of whole rounds: right whoever is absent, repeated, resumed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import FederationError, PrivacyError
from fedsynth.federation.secure import keys, masks
from fedsynth.federation.secure.frames import Step, read, write, write_members
from tests.federation.secure.owners import exchange, make, run
from tests.federation.secure.toys import toys

STEPS = st.dictionaries(st.integers(0, 4), st.sampled_from(Step), max_size=2)


@pytest.mark.parametrize("kind", ["<u4", "<u8"])
@pytest.mark.parametrize("cohort, threshold, curious", [(2, 2, 1), (3, 3, 1), (7, 5, 2)])
def test_the_sum_is_that_of_all_contributions_modulo_the_width(cohort, threshold, curious, kind):
    leader, owners = make(cohort, threshold, curious, kind=kind)
    opened, exchanges = run(leader, owners, 4)
    assert opened.owners == owners.roster.names and exchanges == (2 if threshold == cohort else 5)
    assert opened.total.dtype == kind
    assert np.array_equal(opened.total, owners.total(opened.owners, 4))


@given(drops=STEPS)
def test_whoever_drops_when_the_sum_is_of_those_whose_numbers_came(drops):
    """Two of five may: from any step on."""
    with toys(masks.mask):
        leader, owners = make(5, 3)
        names = owners.roster.names
        opened, _ = run(
            leader,
            owners,
            0,
            lambda now: [names[who] for who, last in drops.items() if now >= last],
        )
    came = [name for who, name in enumerate(names) if drops.get(who, 9) > Step.MASKED]
    assert list(opened.owners) == came
    assert np.array_equal(opened.total, owners.total(came, 0))


@pytest.mark.parametrize("threshold, wanted", [(3, [5, 3, 3]), (4, [2, 1, 1])])
def test_keys_and_shares_that_rode_along_leave_a_round_three_exchanges_or_one(threshold, wanted):
    leader, owners = make(4, threshold)
    exchanges = []
    for round in range(3):
        opened, count = run(leader, owners, round, following=round + 1)
        assert np.array_equal(opened.total, owners.total(owners.roster.names, round))
        exchanges.append(count)
    assert exchanges == wanted


@pytest.mark.parametrize("lost", [Step.KEYS, Step.MASKED])
def test_where_all_are_needed_one_that_is_missing_loses_no_more_than_an_attempt(lost):
    """Nothing that was given opens anything, so the round may always begin again."""
    leader, owners = make(3, 3, 1)
    for _ in range(2):
        with pytest.raises(FederationError, match="2 owners answered"):
            run(leader, owners, 0, lambda step: owners.roster.names[:1] if step == lost else [], 1)
    opened, _ = run(leader, owners, 0, following=1)
    assert np.array_equal(opened.total, owners.total(opened.owners, 0))
    opened, exchanges = run(leader, owners, 1)
    assert np.array_equal(opened.total, owners.total(opened.owners, 1)) and exchanges == 1


def test_one_that_missed_a_round_is_in_the_next():
    leader, owners = make(4, 3)
    late = owners.roster.names[1]
    opened, _ = run(leader, owners, 0, lambda step: [late] if step == Step.MASKED else [], 1)
    assert late not in opened.owners
    opened, exchanges = run(leader, owners, 1)
    assert late in opened.owners and exchanges == 3


def test_one_that_signed_no_list_is_in_the_sum_and_is_asked_for_no_shares():
    leader, owners = make(4, 3)
    silent = owners.roster.names[1]
    opened, _ = run(leader, owners, 0, lambda step: [silent] if step == Step.LIVING else [])
    assert opened.owners == owners.roster.names
    assert np.array_equal(opened.total, owners.total(opened.owners, 0))


def test_shares_of_too_few_that_rode_along_are_dealt_anew():
    leader, owners = make(4, 3)
    with pytest.raises(FederationError, match="2 owners answered UNMASK"):
        run(leader, owners, 0, lambda s: owners.roster.names[2:] if s == Step.UNMASK else [], 1)
    opened, exchanges = run(leader, owners, 1)
    assert exchanges == 5 and opened.owners == owners.roster.names


@pytest.mark.parametrize("lost", list(Step)[:-1])
def test_an_attempt_that_too_few_answered_is_lost_and_the_round_is_repeated(lost):
    leader, owners = make(4, 3, 1)
    with pytest.raises(FederationError, match="2 owners answered"):
        run(leader, owners, 0, lambda step: owners.roster.names[:2] if step == lost else [], 1)
    assert not leader.requests()
    opened, _ = run(leader, owners, 0, following=1)
    assert np.array_equal(opened.total, owners.total(opened.owners, 0))
    opened, exchanges = run(leader, owners, 1)
    assert np.array_equal(opened.total, owners.total(opened.owners, 1)) and exchanges == 3


def test_masks_of_a_repeated_round_are_others():
    leader, owners = make(3, 3, 1)
    masked = []
    for _ in range(2):
        leader.begin(0, owners.dim, owners.kind)
        exchange(leader, owners)
        exchange(leader, owners)
        masked.append([owners.answer(*asked) for asked in leader.requests().items()])
    assert not set(masked[0]) & set(masked[1])


def test_a_round_whose_shares_were_handed_over_is_not_repeated():
    """Even though too few did, and nothing was opened."""
    leader, owners = make(4, 3, 1)
    with pytest.raises(FederationError, match="2 owners answered UNMASK"):
        run(leader, owners, 0, lambda s: owners.roster.names[:2] if s == Step.UNMASK else [])
    leader.begin(0, owners.dim, owners.kind)
    for name, request in leader.requests().items():
        if name in owners.roster.names[:2]:
            leader.receive(name, owners.answer(name, request))
        else:
            with pytest.raises(PrivacyError, match="no round is opened twice"):
                owners.answer(name, request)


@pytest.mark.parametrize("threshold", [3, 4])
@pytest.mark.parametrize("crash", list(Step))
def test_an_owner_that_crashed_after_any_step_answers_the_same_and_goes_on(crash, threshold):
    leader, owners = make(4, threshold, 1)
    leader.begin(0, owners.dim, owners.kind, 1)
    opened = None
    while opened is None:
        step = leader._step
        for name, request in leader.requests().items():
            reply = owners.answer(name, request)
            if step == crash:
                owners.start(name)
                assert owners.answer(name, request) == reply
            leader.receive(name, reply)
        opened = leader.advance()
    assert np.array_equal(opened.total, owners.total(opened.owners, 0))
    opened, exchanges = run(leader, owners, 1)
    assert np.array_equal(opened.total, owners.total(opened.owners, 1))
    assert exchanges == {3: 3, 4: 1}[threshold]


def test_nothing_is_answered_that_was_not_kept_before():
    leader, owners = make(2, 2, 1)
    leader.begin(0, owners.dim, owners.kind)
    name, request = next(iter(leader.requests().items()))
    party = owners.parties[name]

    def full(state):
        raise OSError("no space left")

    party._keep, before = full, party._state
    with pytest.raises(OSError, match="no space"):
        party.answer(request)
    assert party._state is before


def test_a_wrong_share_spoils_no_sum_in_silence():
    """One that does not give what was committed to, of an own mask or of a masking key."""
    for absent in ((), ("owner 3",)):
        leader, owners = make(4, 3)
        leader.begin(0, owners.dim, owners.kind)
        while leader._step != Step.UNMASK:
            exchange(leader, owners, absent if leader._step == Step.MASKED else ())
        for name, request in leader.requests().items():
            reply = bytearray(owners.answer(name, request))
            reply[-1] ^= 1
            leader.receive(
                name, bytes(reply) if name == "owner 1" else owners.answer(name, request)
            )
        with pytest.raises(FederationError, match="one of them lied"):
            leader.advance()


def test_too_few_shares_about_an_owner_open_nothing():
    """Of a dealer whose box held none for two of its helpers."""
    leader, owners = make(4, 3)
    leader.begin(0, owners.dim)
    while leader._step != Step.UNMASK:
        exchange(leader, owners)
    for name, request in leader.requests().items():
        (part,) = read(owners.answer(name, request))
        if name in ("owner 1", "owner 2"):
            about = write_members([0, 1, 2], 4), part.fields[1][: 3 * keys.SHARE]
            part = replace(part, fields=about)
        leader.receive(name, write([part]))
    with pytest.raises(FederationError, match="shares about owner 3"):
        leader.advance()


def test_an_answer_counts_once_in_time_and_as_it_was_asked():
    leader, owners = make(3, 2)
    leader.begin(0, owners.dim, owners.kind)
    requests = leader.requests()
    replies = {name: owners.answer(name, request) for name, request in requests.items()}
    first, second, third = replies
    leader.receive(first, replies[first])
    with pytest.raises(FederationError, match="has answered"):
        leader.receive(first, replies[first])
    with pytest.raises(FederationError, match="did not sign"):
        leader.receive(second, replies[first])
    with pytest.raises(FederationError, match="was not asked"):
        leader.receive("stranger", replies[first])
    leader.receive(second, replies[second])
    assert set(leader.requests()) == {third}
    leader.advance()
    with pytest.raises(FederationError, match="late"):
        leader.receive(third, replies[third])
