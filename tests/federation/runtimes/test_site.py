"""A site: whatever a server sends, a round is charged once and given once, and rows stay."""

from __future__ import annotations

import logging
import math
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import DataError, MachineError, PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.tasks import register
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import PLAN, Request
from fedsynth.federation.runtimes.rules import Rules
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.wire import FIELDS, VERSION, Frame, pack_request, read, write
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.trail.job import Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import Vectors, terms

CANARY = "patient Zeppelin-4711"
NOISY = terms(unit="record", trust="central", noise_multiplier=20.0)
PLAIN = Budget(1.0, delta=1e-5, unit="record", trust="central")
ACCOUNT = Budget(3.0, delta=1e-5, unit="record", trust="central")
RULES = Rules(budget=PLAIN, methods=("aim",), schema="s" * 8, cohort=3, most_numbers=100)
JOB = Job(
    budget=PLAIN,
    plan=(Planned(Vectors.name, NOISY, 4), Planned("test-telling", NOISY, 1)),
    schema_digest="s" * 8,
    job="a-job",
    method="aim",
    clients=3,
)
ROSTER = ["north", "south", "west"]


class Telling:
    """Tells of its rows in its error, as a careless task may."""

    name = "test-telling"

    def contribute(self, clients, samples, request) -> Iterator[tuple[int, DenseRows]]:
        raise DataError(f"the row of {CANARY} cannot be used")


register(Telling())


@contextmanager
def site(
    folder: Path, rules: Rules = RULES, account: Budget = ACCOUNT, rows: str = "r", kind=Site
) -> Iterator[Site]:
    ledger = Ledger.of_owner(folder / "account.jsonl", account)
    client = Client("north", np.full((3, 3), 0.1), 3, ledger)
    made = kind(client, rules, folder / "jobs", rows)
    try:
        yield made
    finally:
        made.close()
        ledger.close()


def offer(offered: Job = JOB, /, **changes: object) -> bytes:
    plain = {
        "job": offered.to_dict(),
        "session": "s1",
        "roster": ROSTER,
        "version": VERSION,
        "most_records": None,
        "participations": 0,
        "settled": 0,
        **changes,
    }
    return write(Frame("offer", plain))


def ask(round: int = 0, job: str = JOB.job, **changes: object) -> bytes:
    return pack_request(replace(Request(Vectors.name, NOISY, 3, job=job, round=round), **changes))


def told(reply: bytes | None) -> tuple[str, str]:
    """A reply's kind, and its code."""
    assert reply is not None
    frame = read(reply)
    return frame.kind, frame.plain.get("code", "")


def charged(folder: Path) -> list[int]:
    path = folder / "account.jsonl"
    return [event.round for event in Ledger.read(path).events]


OFFERS = {
    "version": (JOB, {"version": "0.0.1"}),
    "unit": (replace(JOB, budget=replace(PLAIN, unit="client")), {}),
    "sums": (replace(JOB, budget=replace(PLAIN, trust="distributed")), {}),
    "epsilon": (replace(JOB, budget=replace(PLAIN, epsilon=1.01)), {}),
    "epsilon of none": (replace(JOB, budget=replace(PLAIN, epsilon=math.inf), plan=()), {}),
    "epsilon by delta": (replace(JOB, budget=replace(PLAIN, delta=1e-4)), {}),
    "plan": (replace(JOB, plan=()), {}),
    "plan beyond its budget": (replace(JOB, plan=(Planned("t", NOISY, 5000),)), {}),
    "plan without noise": (
        replace(JOB, plan=(Planned("t", replace(NOISY, noise_multiplier=0.0), 1),)),
        {},
    ),
    "method": (replace(JOB, method="fedvae"), {}),
    "schema": (replace(JOB, schema_digest="other"), {}),
    "roster": (JOB, {"roster": ["south", "west", "east"]}),
    "roster of two": (replace(JOB, clients=2), {"roster": ["north", "south"]}),
    "roster with an owner twice": (JOB, {"roster": ["north", "south", "south"]}),
    "limits": (replace(JOB, plan=(Planned("t", replace(NOISY, noise_multiplier=1e6), 10**6),)), {}),
    "insecure": (replace(JOB, insecure=True), {}),
    "declined": (JOB, {"most_records": 2}),
    "damaged": (JOB, {"job": {**JOB.to_dict(), "more": 1}}),
    "damaged plan": (JOB, {"job": {**JOB.to_dict(), "plan": [1]}}),
    "damaged session": (JOB, {"session": 1}),
}


@pytest.mark.parametrize("case", OFFERS)
def test_an_offer_against_the_rules_is_refused_with_its_code_and_costs_nothing(case, tmp_path):
    job, changes = OFFERS[case]
    with site(tmp_path) as north:
        assert told(north.receive(offer(job, **changes))) == ("refuse", case.partition(" ")[0])
        assert told(north.receive(ask())) == ("refuse", "joined")
        assert not (tmp_path / "jobs").exists()
    assert charged(tmp_path) == []


def test_a_stricter_trust_is_insisted_on(tmp_path):
    with site(tmp_path, replace(RULES, budget=replace(PLAIN, trust="local"))) as north:
        assert told(north.receive(offer())) == ("refuse", "trust")


def test_an_account_that_does_not_carry_the_whole_plan_joins_nothing(tmp_path):
    with site(tmp_path, account=Budget(0.3, delta=1e-5, unit="record", trust="central")) as north:
        assert told(north.receive(offer())) == ("refuse", "account")
        few = replace(JOB, plan=(Planned(Vectors.name, NOISY, 1),))
        assert told(north.receive(offer(few))) == ("accept", "")
        assert told(north.receive(ask())) == ("answer", "")
    # Of the job that it is in, what is paid for is not counted twice.
    with site(tmp_path, account=Budget(0.3, delta=1e-5, unit="record", trust="central")) as north:
        assert told(north.receive(offer(few))) == ("accept", "")
    assert charged(tmp_path) == [0]


QUESTIONS = {
    "sums": {"terms": replace(NOISY, trust="distributed", survivors=3)},
    "limits": {"dim": 98, "kept": 3},
    "limits of rounds": {"round": 10**6},
    "known": {"task": "os.system"},
    "floor": {"terms": replace(NOISY, noise_multiplier=0.0)},
    "floor, of more than the plan": {"terms": replace(NOISY, noise_multiplier=0.5)},
}


@pytest.mark.parametrize("case", QUESTIONS)
def test_a_question_against_the_rules_is_refused_with_its_code_and_costs_nothing(case, tmp_path):
    with site(tmp_path) as north:
        assert told(north.receive(offer())) == ("accept", "")
        code = case.partition(" ")[0].rstrip(",")
        assert told(north.receive(ask(**QUESTIONS[case]))) == ("refuse", code)
        assert charged(tmp_path) == []
        assert told(north.receive(ask())) == ("answer", "")
    assert charged(tmp_path) == [0]


def test_as_much_as_the_rules_allow_is_answered(tmp_path):
    most = replace(RULES, most_numbers=3, most_rounds=sum(planned.count for planned in JOB.plan))
    with site(tmp_path, most) as north:
        assert told(north.receive(offer())) == ("accept", "")
        assert told(north.receive(ask())) == ("answer", "")


def test_what_went_wrong_is_told_at_the_site_and_a_code_to_the_server(tmp_path, caplog):
    caplog.set_level(logging.INFO, "fedsynth.client")
    with site(tmp_path) as north:
        north.receive(offer())
        reply = north.receive(ask(task="test-telling"))
        assert told(reply) == ("fail", "fault")
        assert CANARY.encode() not in reply and b"row" not in reply
        assert CANARY in caplog.text
        # What never left is made again, under the charge that it has.
        with patch.object(Telling, "contribute", Vectors.contribute):
            assert told(north.receive(ask(task="test-telling"))) == ("answer", "")
    assert charged(tmp_path) == [0]


@pytest.mark.parametrize("rows", ["r", "others"])
def test_a_job_goes_on_with_the_same_rows_and_the_same_first_line(rows, tmp_path):
    with site(tmp_path) as north:
        assert told(north.receive(offer())) == ("accept", "")
    with site(tmp_path, rows=rows) as north:
        other = replace(JOB, settings_digest="x")
        assert told(north.receive(offer(other))) == ("refuse", "another")
        wanted = ("accept", "") if rows == "r" else ("refuse", "declined")
        assert told(north.receive(offer())) == wanted


def post(sequence: int, session: str = "s1", key: str = "k", value: object = 1) -> bytes:
    plain = {"job": JOB.job, "session": session, "sequence": sequence, "key": key, "value": value}
    return write(Frame("post", plain))


def test_announcements_come_once_in_order_and_the_plan_with_the_offer_alone(tmp_path):
    with site(tmp_path) as north:
        north.receive(offer())
        board = north._client.memory(JOB.job).board
        for frame in (post(1), post(1), post(2, key=PLAN, value={"releases": []}), post(3)):
            assert north.receive(frame) is None
        assert board.version("k") == 2
        assert board.read(PLAN, dict)["releases"]
        assert told(north.receive(post(5))) == ("damage", "sequence")
        assert told(north.receive(post(4, session="other"))) == ("damage", "sequence")
        assert read(north.hello()).plain["jobs"] == {JOB.job: ["s1", 3]}
        # Another session of the server begins anew; what it says is put up again.
        assert told(north.receive(offer(session="s2"))) == ("accept", "")
        assert north.receive(post(1, session="s2")) is None
        assert board.version("k") == 3


@pytest.mark.parametrize("full", ["keep", "join"])
def test_a_full_disk_is_a_code_and_nothing_leaves(full, tmp_path):
    with site(tmp_path) as north:
        place = "fedsynth.federation.runtimes.site."
        if full == "join":
            with patch(place + "write_whole", side_effect=MachineError(f"{tmp_path}: full")):
                assert told(north.receive(offer())) == ("refuse", "file")
        assert told(north.receive(offer())) == ("accept", "")
        with patch.object(Kept, "keep", side_effect=MachineError("full")):
            assert told(north.receive(ask())) == ("fail", "file")
        assert told(north.receive(ask())) == ("answer", "")
    assert charged(tmp_path) == [0]


def test_nothing_of_a_finished_job_stays_and_no_round_of_it_is_answered_again(tmp_path):
    close = write(Frame("close", {"job": JOB.job, "finished": True}))
    with site(tmp_path) as north:
        north.receive(offer())
        assert told(north.receive(ask())) == ("answer", "")
        assert told(north.receive(close)) == ("receipt", "")
        assert north.finished == [JOB.job] and north.over.is_set()
        assert sorted(path.name for path in tmp_path.iterdir()) == ["account.jsonl"]
        assert told(north.receive(offer())) == ("accept", "")
        assert told(north.receive(ask())) == ("refuse", "answered")


@pytest.mark.parametrize("name", ["../up", "a/b", ".hidden", "", "x" * 65, "a b"])
def test_no_job_is_named_like_a_place_on_the_disk(name, tmp_path):
    with site(tmp_path) as north:
        assert told(north.receive(offer(replace(JOB, job=name)))) == ("damage", "fields")
        north.receive(write(Frame("close", {"job": name, "finished": True})))
    assert (tmp_path / "account.jsonl").exists()


def test_a_site_has_an_account():
    with pytest.raises(PrivacyError, match="account of its own"):
        Site(Client("north", None, 0), RULES, Path("nowhere"))


@given(body=st.binary(max_size=60) | st.sampled_from([b"", ask()[:50], ask() + b"x"]))
def test_bytes_are_answered_with_a_code(body):
    with tempfile.TemporaryDirectory() as name, site(Path(name)) as north:
        kind, code = told(north.receive(body))
        assert (kind, code.isalpha()) in (("damage", True), ("refuse", True))


@pytest.mark.parametrize("kind", ["hello", "accept", "answer", "receipt", "refuse", "damage"])
def test_what_sites_say_is_no_question(kind, tmp_path):
    plain: dict[str, object] = dict.fromkeys(FIELDS[kind], "x")
    with site(tmp_path) as north:
        kind, code = told(north.receive(write(Frame(kind, plain))))
        assert (kind, code.isalpha()) == ("damage", True)


SENT = st.tuples(
    st.sampled_from(["ask"] * 6 + ["offer", "restart", "settle", "killed", "leave"]),
    st.integers(0, 3),
    st.sampled_from([3, 3, 3, 2]),
)


@settings(max_examples=25)
@given(sent=st.lists(SENT, max_size=14))
def test_in_any_order_a_round_is_charged_once_and_given_once(sent: Sequence[tuple[str, int, int]]):
    given_: dict[int, bytes] = {}
    genuine = Kept.keep
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        north = site(folder)
        machine = north.__enter__()
        for what, number, dim in sent:
            if what == "offer":
                assert told(machine.receive(offer())) == ("accept", "")
            elif what == "settle":
                plain = {"job": JOB.job, "rounds": number}
                assert machine.receive(write(Frame("settle", plain))) is None
            elif what == "leave":
                machine.receive(write(Frame("close", {"job": JOB.job, "finished": False})))
            elif what == "ask":
                reply = machine.receive(ask(number, dim=dim)) if dim == 3 else machine.receive(
                    ask(number, settings={"other": 1})
                )  # fmt: skip
                if told(reply)[0] == "answer":
                    # Noise of the server: but what is given again is what was given.
                    key = number if dim == 3 else -1 - number
                    assert given_.setdefault(key, reply) == reply
                    assert not {number, -1 - number} <= given_.keys()
            else:
                stopped = partial(_stop, genuine, what)
                with patch.object(Kept, "keep", stopped), suppress(KeyboardInterrupt):
                    machine.receive(ask(number))
                north.__exit__(None, None, None)
                north = site(folder)
                machine = north.__enter__()
        north.__exit__(None, None, None)
        counts = Counter(charged(folder))
        assert set(counts.values()) <= {1}
        assert {key if key >= 0 else -1 - key for key in given_} <= counts.keys()


def _stop(genuine, what, *arguments) -> None:
    """Killed before the answer is kept, or behind it."""
    if what == "restart":
        genuine(*arguments)
    raise KeyboardInterrupt
