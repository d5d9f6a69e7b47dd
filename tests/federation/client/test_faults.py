"""One client's fault is an incident of that client; everybody's is an error."""

from __future__ import annotations

import logging
import threading

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError, FederationError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Answer, Incident, Request
from fedsynth.federation.server.incidents import OTHER, kind_of
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.terms import Terms
from fedsynth.queries.tasks.counting import HISTOGRAM
from tests.federation.vectors import OBEDIENT, channel, ledger, terms
from tests.methods.small import SCHEMA, owners

PRIVATE = "the patient is 41 years old"
FAULTS: dict[str, Exception] = {
    "a fault in its own code or data": DataError(PRIVATE),
    "ran out of memory": MemoryError(PRIVATE),
    "could not read or write a file": OSError(5, PRIVATE),
}
WAIT = threading.Event()


class Faulty:
    """Gives a client's one row; a client that has a function in its stead calls it."""

    name = "test-faulty"

    def contribute(self, clients, samples, request):
        rows = [client.data() if callable(client.data) else client.data for client in clients]
        for index, row in enumerate(rows):
            yield index, DenseRows(row)


class FaultyTraining:
    """As above, at its client."""

    name = "test-faulty-training"

    def learn(self, steps, request):
        return steps.sum(
            lambda client, sample: DenseRows(
                (client.data() if callable(client.data) else client.data)[sample]
            )
        )


register(Faulty())
register(FaultyTraining())


def raising(error: Exception):
    def fail():
        raise error

    return fail


def sites(*at_fault, count: int = 4, account=None) -> list[Client]:
    """Clients of which some have a function for data: [(place, function), ..]."""
    made = [
        Client(f"c{i}", np.full((1, 3), 0.1 * (i + 1)), 1, floor=OBEDIENT) for i in range(count)
    ]
    for place, function in at_fault:
        made[place].data, made[place].ledger = function, account
    return made


def ask(number: int = 0, promised: Terms | None = None, **more) -> Request:
    own = promised or terms(unit="record", noise_multiplier=0.0)
    return Request(more.pop("task", Faulty.name), own, 3, job="job", round=number, **more)


@pytest.mark.parametrize("kind", FAULTS)
@pytest.mark.parametrize("place", range(4))
def test_the_others_answer_as_without_it_and_nothing_of_its_error_is_told(place, kind):
    replies = list(answer(sites((place, raising(FAULTS[kind]))), ask()))
    (incident,) = (reply for reply in replies if isinstance(reply, Incident))
    assert incident == Incident(f"c{place}", 0, f"failed: {kind}")
    assert kind_of(incident.reason) == kind != OTHER
    assert PRIVATE not in repr(replies)
    answers = {reply.client: reply.values for reply in replies if isinstance(reply, Answer)}
    assert sorted(answers) == [f"c{i}" for i in range(4) if i != place]
    for name, values in answers.items():
        np.testing.assert_allclose(values, 0.1 * (int(name[1]) + 1))


def test_a_fault_of_everybody_is_no_clients():
    everybody = [(i, raising(DataError(f"of {i}"))) for i in range(4)]
    with pytest.raises(DataError, match="of 0"):
        list(answer(sites(*everybody), ask()))
    with pytest.raises(DataError, match="of 0"):
        list(answer(sites(everybody[0], count=1), ask()))


def test_a_training_that_fails_at_one_client_is_that_clients():
    promised = terms(unit="record", trust="local", noise_multiplier=1e-9)
    asked = ask(promised=promised, task=FaultyTraining.name, steps=1)
    replies = list(answer(sites((1, raising(MemoryError()))), asked))
    assert [type(reply) for reply in replies] == [Answer] * 3 + [Incident]


def test_what_it_was_charged_stays_charged():
    account = ledger("record", epsilon=9.0)
    replies = list(
        answer(
            sites((2, raising(DataError(PRIVATE))), account=account),
            ask(promised=terms(unit="record", noise_multiplier=5.0)),
        )
    )
    assert sum(isinstance(reply, Incident) for reply in replies) == 1
    assert [event.round for event in account.events] == [0]


def test_only_the_clients_own_log_has_the_error(caplog, capsys):
    with caplog.at_level(logging.INFO, "fedsynth.client"):
        list(answer(sites((2, raising(DataError(PRIVATE)))), ask()))
    (record,) = caplog.records
    assert "c2 failed in test-faulty, round 0" in record.message and PRIVATE in caplog.text
    list(answer(sites((2, raising(DataError(PRIVATE)))), ask()))
    assert PRIVATE not in "".join(capsys.readouterr())


def test_who_takes_too_long_is_left_behind_and_not_asked_until_it_is_done():
    WAIT.clear()
    account = ledger("record", epsilon=9.0)
    promised = terms(unit="record", noise_multiplier=5.0)
    clients = sites((1, lambda: WAIT.wait() and np.ones((1, 3))), account=account)
    replies = list(answer(clients, ask(0, promised), 0.2))
    assert [type(reply) for reply in replies] == [Answer] * 3 + [Incident]
    assert kind_of(replies[-1].reason) == "did not answer by the deadline"
    # It was charged when it agreed, and is not while it cannot answer.
    again = list(answer(clients, ask(1, promised), 0.2))
    assert again[0] == Incident("c1", 1, "refuses: is still at work on an earlier round")
    assert [event.round for event in account.events] == [0]
    late = clients[1].memory("job").busy
    WAIT.set()
    late.join()
    assert [type(reply) for reply in answer(clients, ask(2, promised), 60)] == [Answer] * 4


def test_all_who_are_late_are_incidents():
    """Silence of everybody is no error in fedsynth's code."""
    WAIT.clear()
    everybody = [(i, lambda: WAIT.wait() and np.ones((1, 3))) for i in range(2)]
    replies = list(answer(sites(*everybody, count=2), ask(), 0.05))
    WAIT.set()
    assert [type(reply) for reply in replies] == [Incident, Incident]


def test_a_round_goes_on_by_the_rules_for_dropouts():
    def open_channel():
        return channel(sites((0, raising(MemoryError()))), ledger("record", trust="distributed"))

    promised = terms(unit="record", trust="distributed", noise_multiplier=5.0, survivors=3)
    asking = open_channel()
    released = asking.sum(Faulty.name, promised, 3)
    assert (released.asked, released.answered) == (4, 3)
    assert [one["reason"] for one in asking.dropped.entries()] == ["ran out of memory"]
    promised = terms(unit="record", trust="distributed", noise_multiplier=5.0, survivors=4)
    asking = open_channel()
    with pytest.raises(FederationError, match="c0: failed: ran out of memory"):
        asking.sum(Faulty.name, promised, 3)


def test_a_fit_goes_on_without_it_and_its_certificate_says_so(tmp_path, monkeypatch):
    genuine = type(HISTOGRAM).contribute

    def failing(self, clients, samples, request):
        for client in clients:
            if client.name == "site-1":
                raise ValueError(PRIVATE)
        yield from genuine(self, clients, samples, request)

    monkeypatch.setattr(type(HISTOGRAM), "contribute", failing)
    synth = fs.MST(SCHEMA, bins=4)
    synth.fit(owners(20, 20, 20), fs.Budget(epsilon=5.0, curious=1), survivors=0.6)
    (entry,) = (one for one in synth.incidents if one["stage"] == "histogram")
    assert entry == {
        "stage": "histogram",
        "client": "site-1",
        "reason": "a fault in its own code or data",
        "rounds": 1,
    }
    assert any("lacks site-1" in remark for remark in synth.remarks)
    certificate = synth.release(tmp_path / "r", 10)
    assert entry in certificate.content["incidents"]
    for path in (tmp_path / "r").iterdir():
        assert PRIVATE.encode() not in path.read_bytes()


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), "soon", True])
def test_a_deadline_is_seconds_above_none(wrong):
    with pytest.raises(ConfigError, match="deadline"):
        fs.FedInfer(SCHEMA).fit(owners(20), 1.0, deadline=wrong)
