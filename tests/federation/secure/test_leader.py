"""What the server refuses of an owner's answer, and says."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fedsynth.errors import FederationError
from fedsynth.federation.secure import keys, masks
from fedsynth.federation.secure.frames import Step, read, write, write_members
from fedsynth.federation.secure.leader import Leader
from fedsynth.federation.secure.rules import Rules
from tests.federation.secure.owners import exchange, identity, make, make_roster

NAME = "owner 1"


def weaken(fields, context):
    """A key that agrees with everybody, signed all the same."""
    shown = replace(keys.PublicKeys.read(fields[0]), sealing=bytes(32))
    return [shown.sign(identity(NAME), context).write()]


def sign_as_another(fields, context):
    return [keys.PublicKeys.read(fields[0]).sign(identity("owner 0"), context).write()]


def leave_one_out(fields, context):
    return [write_members([0], 3), fields[1][: keys.BOX]]


def cut_a_box(fields, context):
    return [fields[0], fields[1][:-1]]


def change_type(fields, context):
    return [b"<u4", fields[1]]


def shorten(fields, context):
    return [fields[0], fields[1][:-8]]


def sign_another_list(fields, context):
    return [masks.sign(identity(NAME), b"another list")]


def hand_over_less(fields, context):
    return [fields[0], fields[1][:-1]]


@pytest.mark.parametrize(
    "step, tamper, said",
    [
        (Step.KEYS, weaken, "none that agrees"),
        (Step.KEYS, sign_as_another, "owner 1 did not sign its keys"),
        (Step.SHARES, leave_one_out, "owner 1 did not deal shares to all others"),
        (Step.SHARES, cut_a_box, "bytes, not 2 times"),
        (Step.MASKED, change_type, "owner 1 gave numbers of another type"),
        (Step.MASKED, shorten, "fields of other lengths"),
        (Step.LIVING, sign_another_list, "owner 1 did not sign the list of the living"),
        (Step.UNMASK, hand_over_less, "bytes, not 3 times"),
    ],
)
def test_an_answer_that_cannot_be_used_is_refused_and_the_true_one_taken(step, tamper, said):
    leader, owners = make(3, 2)
    leader.begin(0, owners.dim)
    while leader._step != step:
        exchange(leader, owners)
    answer = owners.answer(NAME, leader.requests()[NAME])
    (part,) = read(answer)
    hostile = replace(part, fields=tuple(tamper(part.fields, owners.roster.context(0, 0))))
    with pytest.raises(FederationError, match=said):
        leader.receive(NAME, write([hostile]))
    leader.receive(NAME, answer)


@pytest.mark.parametrize("asked", [(-1, 5), (2**64, 5), (0, 0), (0, 5, "<f8")])
def test_a_round_that_cannot_be_is_not_begun(asked):
    with pytest.raises(FederationError, match=r"rounds are numbered|rows of uint32"):
        Leader(make_roster(Rules(3, 2, 0))).begin(*asked)


def test_nothing_is_brought_before_a_round_is_begun():
    with pytest.raises(FederationError, match="no round was begun"):
        Leader(make_roster(Rules(3, 2, 0))).advance()


def test_a_server_that_resumes_goes_on_above_the_attempts_that_it_used():
    """Or owners refuse it."""
    leader, owners = make(3, 2)
    leader.begin(0, owners.dim, following=1)
    for _ in range(4):
        exchange(leader, owners)
    resumed = Leader(owners.roster, leader.attempt)
    resumed.begin(0, owners.dim)
    while (opened := exchange(resumed, owners)) is None:
        pass
    assert opened.owners == owners.roster.names
