"""What is told of dropped clients: who, how often, why, in words of a known set."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Incident, Request
from fedsynth.federation.server.checks import fault, sift
from fedsynth.federation.server.incidents import OTHER, UNKNOWN, Dropped, kind_of, names_clients
from fedsynth.federation.server.incidents import tell as sentences_of
from fedsynth.privacy.budget import Budget
from tests.federation.server.test_checks import answer
from tests.federation.vectors import ledger, terms


def request(number: int = 7, task: str = "test-vectors", **changes) -> Request:
    return Request(task, terms(), 3, job="job", round=number, **changes)


@pytest.mark.parametrize(
    "wrong",
    [
        "values",
        answer((np.nan, 0.0, 0.0)),
        answer((0.1, 0.2)),
        answer(np.zeros(3, np.float32)),
        answer((9.0, 9.0, 9.0)),
        answer(round=6),
    ],
)
def test_every_fault_of_an_answer_has_a_kind_that_tells_none_of_its_numbers(wrong: object):
    asked = replace(request(), terms=terms(trust="local", noise_multiplier=0.0))
    kind = kind_of(str(fault(wrong, asked)))
    assert kind != OTHER and not any(letter.isdigit() for letter in kind)


def refusal(client: Client, asked: Request) -> str:
    return f"refuses: {client.consent(asked)}"


def test_every_refusal_has_a_kind_of_its_own():
    poor, strict, busy = (Client(name, np.zeros((1, 3)), 1) for name in "abc")
    poor.ledger, strict.ledger = ledger(epsilon=1e-3), ledger(trust="local")
    kinds = {
        kind_of(refusal(poor, request())),
        kind_of(refusal(strict, request())),
        kind_of(refusal(busy, request(participations=0))),
    }
    assert len(kinds) == 3 and not kinds & {OTHER, "refuses"}


def test_what_sifting_finds_has_a_kind():
    _, bad = sift([answer(), answer(), answer(client="z"), None], request(), {"a"})
    assert len(bad) == 3 and OTHER not in {kind_of(one.reason) for one in bad}


def test_a_clients_own_words_and_names_that_are_none_are_not_handed_on():
    dropped = Dropped(["a"])
    dropped.add(request(), [Incident("a", 7, "<b>call me</b>"), Incident("evil", 7, "shape of me")])
    told = json.dumps(dropped.entries())
    assert not any(word in told for word in ("call", "evil", "of me"))
    assert {one["client"] for one in dropped.entries()} == {"a", UNKNOWN}


def test_rounds_are_counted_once_each_by_stage_client_and_reason():
    dropped = Dropped("ab")
    for number in range(3):
        silent = Incident("a", number, "did not answer")
        dropped.add(request(number), [silent, silent])
    dropped.add(request(3, "histogram"), [Incident("b", 3, "answers round 2 instead of 3")])
    expected = (
        {"stage": "histogram", "client": "b", "reason": "answered another round", "rounds": 1},
        {"stage": "test-vectors", "client": "a", "reason": "did not answer", "rounds": 3},
    )
    assert dropped.entries() == expected
    again = Dropped("ab")
    again.recall(json.loads(json.dumps(dropped.entries())))
    again.add(request(4), [Incident("a", 4, "did not answer")])
    assert [one["rounds"] for one in again.entries()] == [1, 4]


def test_a_sentence_names_stage_rounds_clients_and_reason_and_no_crowd():
    dropped = Dropped([f"c{i:02}" for i in range(30)])
    for number in range(2):
        missing = [Incident(f"c{i:02}", number, "did not answer") for i in range(30 - 29 * number)]
        dropped.add(request(number, "histogram"), missing)
    (sentence,) = sentences_of(dropped.entries(), {"histogram": 5})
    assert sentence.startswith("histogram (5 rounds) lacks c00 in 2, c01 in 1, ")
    assert sentence.endswith("c09 in 1, 20 others in fewer: did not answer")


@pytest.mark.parametrize(
    ("unit", "trust", "named"),
    [
        ("record", "central", True),
        ("record", "distributed", True),
        ("client", "local", True),
        ("client", "distributed", True),
        ("client", "central", False),
    ],
)
def test_clients_are_named_where_their_presence_is_no_secret(unit: str, trust: str, named: bool):
    # A trusted server may draw clients, and hides whom.
    budget = Budget(epsilon=1.0, unit=unit, trust=trust, units=500 if unit == "client" else None)
    assert names_clients(budget) is named
