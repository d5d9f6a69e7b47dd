"""What an owner refuses, whoever asks."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.errors import ConfigError, FederationError, PrivacyError
from fedsynth.federation.secure import keys, masks
from fedsynth.federation.secure.frames import Part, Step, read, write, write_members
from fedsynth.federation.secure.keys import Secrets
from fedsynth.federation.secure.leader import Leader
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Roster, Rules
from tests.federation.secure.owners import Owners, exchange, identity, make, make_roster, run

NAME = "owner 0"


def reach(step, cohort=4, threshold=3, curious=1):
    """Owners whose next step is that one, and what owner 0 is asked."""
    leader, owners = make(cohort, threshold, curious)
    leader.begin(0, owners.dim)
    while leader._step != step:
        exchange(leader, owners)
    return leader, owners, read(leader.requests()[NAME])[0]


def ask(owners, part, *fields):
    return owners.answer(NAME, write([Part(part.step, part.round, part.attempt, fields)]))


@pytest.mark.parametrize("rules", [(4, 4, 1), (4, 3, 0), (3, 3, 1)])
def test_other_rules_than_its_own_are_refused(rules):
    """The server proposes, and none of it is taken over."""
    _, owners = make(4, 3, 1)
    leader = Leader(make_roster(Rules(*rules)))
    leader.begin(0, owners.dim)
    with pytest.raises(PrivacyError, match="this owner insists on 4, 3, 1"):
        owners.answer(NAME, leader.requests()[NAME])


def test_another_job_and_other_owners_are_refused():
    _, owners = make(4, 3, 1)
    keys_of = dict(owners.roster.keys) | {"owner 3": masks.identity_of(identity("invented"))}
    for roster in (make_roster(Rules(4, 3, 1), "other"), Roster("job", keys_of, Rules(4, 3, 1))):
        leader = Leader(roster)
        leader.begin(0, owners.dim)
        with pytest.raises(PrivacyError, match="another job, or other owners or keys"):
            owners.answer(NAME, leader.requests()[NAME])


def shown(part):
    members, public = part.fields
    return members, [public[at : at + keys.KEYS] for at in range(0, len(public), keys.KEYS)]


def invent(owners, public):
    """The server's own keys in the place of an owner's, signed by itself."""
    context = owners.roster.context(0, 0)
    made = Secrets.make(bytes(32), context).show(identity("server"), context)
    return [*public[:3], made.write()]


def replay(owners, public):
    """An owner's keys of another attempt."""
    context = owners.roster.context(0, 1)
    made = Secrets.make(bytes(32), context).show(identity("owner 3"), context)
    return [*public[:3], made.write()]


def swap(owners, public):
    """Signed for one purpose, shown for the other."""
    return [*public[:3], public[3][32:64] + public[3][:32] + public[3][64:]]


def double(owners, public):
    return [*public[:3], public[2]]


def mistake(owners, public):
    return [public[1], *public[1:]]


@pytest.mark.parametrize(
    "lie, said",
    [
        (invent, "owner 3 did not sign"),
        (replay, "owner 3 did not sign"),
        (swap, "owner 3 did not sign"),
        (double, "two owners of an attempt have the same key"),
        (mistake, "other keys of this owner"),
    ],
)
def test_keys_that_their_owner_did_not_sign_for_this_attempt_are_refused(lie, said):
    _, owners, part = reach(Step.SHARES)
    members, public = shown(part)
    with pytest.raises(PrivacyError, match=said):
        ask(owners, part, members, b"".join(lie(owners, public)))


def test_a_key_that_agrees_with_everybody_is_refused():
    """Signed by a curious owner, whom the server helps."""
    _, owners, part = reach(Step.SHARES)
    members, public = shown(part)
    weak = keys.PublicKeys(bytes(32), masks.public_of(bytes(32)), bytes(32), b"")
    signed = weak.sign(identity("owner 3"), owners.roster.context(0, 0))
    with pytest.raises(FederationError, match="none that agrees"):
        ask(owners, part, members, b"".join([*public[:3], signed.write()]))


LISTS = [
    ([0, 1], "below the threshold of 3"),
    ([1, 2, 3], "names others than it may, or not this one"),
]


@pytest.mark.parametrize("members, said", LISTS)
@pytest.mark.parametrize("step", [Step.SHARES, Step.MASKED, Step.LIVING])
def test_a_list_below_the_threshold_or_without_the_owner_is_refused(step, members, said):
    _, owners, part = reach(step)
    with pytest.raises(FederationError, match=said):
        ask(owners, part, write_members(members, 4), *part.fields[1:])


def test_a_list_of_the_living_names_none_that_dealt_no_shares():
    leader, owners = make(4, 3, 1)
    leader.begin(0, owners.dim)
    exchange(leader, owners)
    exchange(leader, owners, ["owner 3"])
    exchange(leader, owners)
    (part,) = read(leader.requests()[NAME])
    with pytest.raises(FederationError, match="names others than it may"):
        ask(owners, part, write_members([0, 1, 3], 4))


def test_one_list_of_each_kind_an_attempt():
    _, owners, part = reach(Step.LIVING)
    ask(owners, part, *part.fields)
    for members in ([0, 1, 2], [0, 2, 3]):
        with pytest.raises(PrivacyError, match=r"another list or other numbers \(living\)"):
            ask(owners, part, write_members(members, 4))
    _, owners, part = reach(Step.SHARES)
    ask(owners, part, *part.fields)
    members, public = shown(part)
    with pytest.raises(PrivacyError, match=r"\(takers\)"):
        ask(owners, part, write_members([0, 1, 2], 4), b"".join(public[:3]))


def test_masks_of_an_attempt_cover_one_contribution_among_the_same_owners():
    """Or the difference of two answers would tell a mask, or what changed in the numbers."""
    _, owners, part = reach(Step.MASKED)
    members, boxes = part.fields
    ask(owners, part, members, boxes)
    with pytest.raises(PrivacyError, match=r"\(dealers\)"):
        ask(owners, part, write_members([0, 1, 2], 4), boxes[: 2 * keys.BOX])
    with pytest.raises(PrivacyError, match=r"\(digest\)"):
        owners.parties[NAME].answer(write([part]), lambda round: np.ones(owners.dim, "<u8"))
    with pytest.raises(PrivacyError, match=r"\(boxes\)"):
        ask(owners, part, members, bytes(len(boxes)))


@pytest.mark.parametrize("first", [Step.SHARES, Step.MASKED, Step.LIVING, Step.UNMASK])
def test_no_step_comes_before_the_one_that_it_builds_on(first):
    _, owners, part = reach(first)
    fresh = Owners(owners.roster)
    with pytest.raises(FederationError, match="was not begun here"):
        ask(fresh, part, *part.fields)
    ask(fresh, Part(Step.KEYS, 0, 0, ()), fresh.roster.digest, fresh.roster.rules.numbers)
    if first != Step.SHARES:
        with pytest.raises(FederationError, match="came before the step"):
            ask(fresh, part, *part.fields)


def test_a_signature_of_another_list_opens_nothing():
    _, owners, part = reach(Step.UNMASK)
    signers, signatures = part.fields
    forged = signatures[64:128] + signatures[64:]
    with pytest.raises(PrivacyError, match="owner 0 signed another list"):
        ask(owners, part, signers, forged)
    with pytest.raises(FederationError, match="below the threshold"):
        ask(owners, part, write_members([0, 1], 4), signatures[:128])


def test_a_round_has_one_contribution_in_all_of_its_attempts():
    leader, owners, _ = reach(Step.LIVING)
    leader.begin(0, owners.dim)
    exchange(leader, owners)
    exchange(leader, owners)
    request = leader.requests()[NAME]
    with pytest.raises(PrivacyError, match=r"other numbers \(digest\)"):
        owners.parties[NAME].answer(request, lambda round: np.ones(owners.dim, "<u8"))
    owners.answer(NAME, request)


@pytest.mark.parametrize("step", [Step.SHARES, Step.LIVING, Step.UNMASK])
def test_where_all_are_needed_nothing_is_dealt_signed_or_handed_over(step):
    _, _, part = reach(step)
    _, owners, _ = reach(Step.MASKED, 3, 3)
    with pytest.raises(PrivacyError, match="nothing is dealt"):
        ask(owners, part, *part.fields)


@pytest.mark.parametrize(
    "lie, said",
    [
        (invent, "owner 3 did not sign"),
        (replay, "owner 3 did not sign"),
        (double, "two owners of an attempt have the same key"),
        (mistake, "other keys of this owner"),
    ],
)
def test_where_all_are_needed_keys_are_looked_at_before_numbers_are_masked(lie, said):
    _, owners, part = reach(Step.MASKED, 4, 4)
    members, public = shown(part)
    with pytest.raises(PrivacyError, match=said):
        ask(owners, part, members, b"".join(lie(owners, public)))
    with pytest.raises(FederationError, match="3 owners is below the threshold of 4"):
        ask(owners, part, write_members([0, 1, 2], 4), b"".join(public[:3]))
    ask(owners, part, *part.fields)
    with pytest.raises(PrivacyError, match=r"\(digest\)"):
        owners.parties[NAME].answer(write([part]), lambda round: np.ones(owners.dim, "<u8"))


def test_attempts_and_rounds_go_forward():
    leader, owners = make(4, 3, 1)
    run(leader, owners, 5)
    for round in (4, 5):
        leader.begin(round, owners.dim)
        with pytest.raises(PrivacyError, match="no round is opened twice"):
            owners.answer(NAME, leader.requests()[NAME])
    older = Leader(owners.roster)
    older.begin(6, owners.dim)
    with pytest.raises(FederationError, match="comes after attempt 0"):
        owners.answer(NAME, older.requests()[NAME])


def test_an_owner_without_a_kept_state_begins_behind_its_ledger():
    leader, owners = make(3, 3, 1)
    party = Party(NAME, identity(NAME), owners.roster, lambda state: None, earliest=3)
    for round in (2, 3):
        leader.begin(round, owners.dim)
        if round == 3:
            assert party.answer(leader.requests()[NAME])
        else:
            with pytest.raises(PrivacyError, match="round 2"):
                party.answer(leader.requests()[NAME])


def test_masked_numbers_need_a_contribution():
    _, owners, part = reach(Step.MASKED)
    with pytest.raises(FederationError, match="asks for a contribution"):
        owners.parties[NAME].answer(write([part]))


@pytest.mark.parametrize("name, secret", [(NAME, bytes(32)), ("stranger", identity(NAME))])
def test_a_roster_has_its_owner(name, secret):
    with pytest.raises(ConfigError, match="the roster has no such owner, or another key"):
        Party(name, secret, make_roster(Rules(3, 3, 1)), lambda state: None)


def test_a_state_of_another_job_is_refused():
    leader, owners = make(3, 3, 1)
    run(leader, owners, 0)
    other = make_roster(Rules(3, 3, 1), "other")
    with pytest.raises(PrivacyError, match="of another owner, job or roster"):
        Party(NAME, identity(NAME), other, lambda state: None, owners.kept[NAME])


def test_a_round_before_the_last_that_got_numbers_is_closed_opened_or_not():
    leader, owners, _ = reach(Step.LIVING)
    leader.begin(3, owners.dim)
    for _ in range(3):
        exchange(leader, owners)
    leader.begin(2, owners.dim)
    with pytest.raises(PrivacyError, match="round 2"):
        owners.answer(NAME, leader.requests()[NAME])
