"""Frames in messages: whatever becomes of them and of the processes, a round is charged and given
once, and the sum is that of the owners who gave."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Request
from fedsynth.federation.runtimes.courier import FIRST, LONGEST, Courier
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.messages import Messages, Starter, open_parcel
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.wire import VERSION, Frame, pack_request, read, write
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.runtimes.carriers import ANY, OPEN, identity, pinned, sums_of
from tests.federation.runtimes.contract import Reading
from tests.federation.runtimes.posts import Post, carrying
from tests.federation.vectors import Vectors, terms

NAMES = ("north", "south", "west")
NODES = {101: "north", 102: "south", 103: "west"}
OWN = {"north": 1.0, "south": 2.0, "west": 4.0}


def job(trust: str, clip: float = 10.0) -> Job:
    asked = terms(unit="record", trust=trust, clip=clip, noise_multiplier=0.0)
    return Job(
        budget=replace(ANY, trust=trust),
        plan=(Planned(Vectors.name, asked, 3), Planned(Reading.name, asked, 1)),
        job="job",
        insecure=True,
        clients=3,
        secure="apart" if trust == "distributed" else "",
    )


def ask(round: int, trust: str = "central", task: str = Vectors.name) -> Request:
    own = job(trust).plan[0].terms
    return Request(task, own, 3, job="job", round=round)


class Owners:
    """Three owners' disks, and a server that knows nothing but the job."""

    def __init__(self, folder: Path, trust: str = "central") -> None:
        self.folder, self.trust = folder, trust
        self.post = Post({node: lambda n=name: self.start(n) for node, name in NODES.items()})
        self.serve()

    @contextmanager
    def start(self, name: str) -> Iterator[Site]:
        """A site's process."""
        ledger = Ledger.of_owner(self.folder / f"{name}.jsonl", ANY)
        client = Client(name, np.full((1, 3), OWN[name]), 1, ledger)
        insisting = pinned(name, NAMES) if self.trust == "distributed" else OPEN
        site = Site(client, insisting, self.folder / name, identity=identity(name))
        try:
            yield site
        finally:
            site.close()
            ledger.close()

    def serve(self, deadline: float | None = None, **more: object) -> None:
        self.hub = Hub(NAMES)
        self.hub.agree(deadline, None, sums_of(3) if self.trust == "distributed" else None)
        self.hub.begun = True
        # A thousand of its seconds are one.
        clock = {"clock": lambda: 1000 * time.monotonic(), "again": 20.0}
        self.courier = Courier(self.hub, self.post, **{**clock, **more})

    @contextmanager
    def carried(self) -> Iterator[None]:
        end = carrying(self.courier)
        try:
            yield
        finally:
            end()

    def charged(self) -> list[list[int]]:
        paths = [self.folder / f"{name}.jsonl" for name in NAMES]
        return [[e.round for e in Ledger.read(path).events] for path in paths]


FATES = st.lists(st.sampled_from(["", "lost", "dies", "twice", "late", "damaged"]), max_size=4)


@settings(max_examples=8)
@given(trust=st.sampled_from(["central", "distributed"]), fates=st.tuples(FATES, FATES, FATES))
def test_whatever_becomes_of_messages_a_round_has_one_sum_and_is_charged_once(trust, fates):
    with tempfile.TemporaryDirectory() as folder:
        owners = Owners(Path(folder), trust)
        owners.post.fate = {node: list(f) for node, f in zip(NODES, fates, strict=True)}
        with owners.carried():
            owners.hub.open("job", {}, job(trust))
            for number in (0, 1):
                summed = owners.hub.sum(ask(number, trust), NAMES)
                assert (summed.answered, summed.incidents) == (3, ())
                np.testing.assert_allclose(summed.total, [7, 7, 7], rtol=1e-6)
                owners.hub.settle("job", number)
            owners.hub.close("job", finished=True)
        assert owners.charged() == [[0, 1]] * 3
        # Of a finished job nothing stays but what was paid.
        left = sorted(path.name for path in Path(folder).iterdir())
        assert left == [f"{name}.jsonl" for name in NAMES]


def test_a_process_is_told_all_that_goes_before_what_it_is_asked(tmp_path):
    owners = Owners(tmp_path)
    with owners.carried():
        owners.hub.open("job", {}, job("central"))
        owners.hub.announce("job", "values", [1.0, 2.0, 3.0])
        owners.hub.announce("job", "values", [0.0, 0.0, 1.0])
        for number in (0, 1):
            total = owners.hub.sum(ask(number, task=Reading.name), NAMES).total
            np.testing.assert_allclose(total, [0, 0, 3])
            owners.hub.settle("job", number + 1)
        owners.hub.close("job", finished=True)
    north = [
        [read(body).kind for body in parcel] for node, parcel in owners.post.sent if node == 101
    ]
    told = ["offer", "post", "post"]
    assert north == [[], ["offer"], [*told, "ask"], [*told, "settle", "ask"],
                     [*told, "settle", "close"]]  # fmt: skip


def test_a_server_that_comes_back_gets_the_same_answers_which_are_not_charged_again(tmp_path):
    owners = Owners(tmp_path)
    for _ in range(2):
        owners.serve()
        with owners.carried():
            owners.hub.open("job", {}, job("central"))
            assert owners.hub.sum(ask(0), NAMES).answered == 3
    assert owners.charged() == [[0]] * 3


def test_rounds_that_a_site_took_part_in_are_counted_by_its_account(tmp_path):
    owners = Owners(tmp_path)
    asked = replace(ask(0).terms, unit="client", sampling=terms().sampling)
    with owners.carried():
        owners.hub.open("job", {}, job("central"))
        limited = [
            owners.hub.sum(replace(ask(number), terms=asked, participations=2), NAMES).answered
            for number in range(3)
        ]
    assert limited == [3, 3, 0] and owners.charged() == [[0, 1]] * 3


def test_one_that_is_away_is_missed_and_asked_again_once_it_is_back(tmp_path):
    owners = Owners(tmp_path)
    owners.serve(deadline=0.3)
    with owners.carried():
        owners.hub.open("job", {}, job("central"))
        owners.post.away = {102}
        summed = owners.hub.sum(ask(0), NAMES)
        assert [one.client for one in summed.incidents] == ["south"] and summed.answered == 2
        owners.post.away = set()
        assert owners.hub.sum(ask(1), NAMES).answered == 3
    assert owners.charged() == [[0, 1], [1], [0, 1]]


def ask_frame(name: str = "job") -> bytes:
    return pack_request(replace(ask(0), job=name))


def offer() -> bytes:
    plain = {
        "job": job("central").to_dict(),
        "session": "s",
        "roster": list(NAMES),
        "version": VERSION,
        "most_records": None,
        "participations": 0,
        "settled": 0,
    }
    return write(Frame("offer", plain))


@pytest.mark.parametrize(
    ("parcel", "kind"),
    [
        ([], None),
        ([offer()], "accept"),
        ([offer(), ask_frame()], "answer"),
        ([ask_frame()], "refuse"),
        ([offer(), offer()[:-3], ask_frame()], "damage"),
        ([offer(), write(Frame("post", {"job": "job", "session": "s", "sequence": 2, "key": "k",
                                        "value": 1})), ask_frame()], "damage"),
    ],
)  # fmt: skip
def test_nothing_is_answered_behind_a_frame_that_did_not_arrive(parcel, kind, tmp_path):
    owners = Owners(tmp_path)
    with owners.start("north") as site:
        said = open_parcel(site, parcel)
    assert read(said[0]).kind == "hello"
    assert [read(one).kind for one in said[1:]] == ([] if kind is None else [kind])
    charged = Ledger.read(tmp_path / "north.jsonl").events
    assert len(charged) == (kind == "answer")


def greeted(owners: Owners, **more: object) -> list[str]:
    """Who is there after a few turns, by what each node says that it is."""
    owners.serve(**more)
    for _ in range(3):
        owners.courier.turn()
    return list(owners.hub.present)


def test_a_node_is_who_it_says_unless_its_owner_is_pinned_to_another(tmp_path, caplog):
    owners = Owners(tmp_path)
    assert greeted(owners) == ["north", "south", "west"]
    owners.post.starts[100] = lambda: owners.start("west")
    # Whoever came first stays.
    assert greeted(owners) == ["north", "south", "west"]
    assert "node 103 was sent away: 'west' is at node 100 already" in caplog.text
    assert greeted(owners, pinned={"west": 103}) == ["north", "south", "west"]
    assert "node 100 was sent away: 'west' is pinned to another node" in caplog.text
    assert owners.courier._boxes[103][0] == "west"
    # Whose all owners are known to be, no other is bothered.
    owners.post.sent.clear()
    assert len(greeted(owners, pinned={name: node for node, name in NODES.items()})) == 3
    assert {node for node, _ in owners.post.sent} == set(NODES)
    with pytest.raises(ConfigError, match="nodes: east is not among the job's owners"):
        Messages(NAMES, owners.post, pinned={"east": 7})


def test_a_node_that_fails_is_told_of_once_and_greeted_again(tmp_path, caplog):
    owners = Owners(tmp_path)
    genuine = owners.post.starts[102]

    def failing():
        raise PrivacyError("the account is in use")

    class Failing(Post):
        def send(self, parcels):
            names = []
            for node, parcel in parcels:
                if owners.post.starts[node] is failing:
                    names.append(name := f"failed-{node}-{len(self.sent)}")
                    self.sent.append((node, list(parcel)))
                    self._came.append((name, []))
                else:
                    names += super().send([(node, parcel)])
            return names

    owners.post = Failing(owners.post.starts)
    owners.post.starts[102] = failing
    now = [0.0]
    owners.serve(clock=lambda: now[0])
    for _ in range(8):
        owners.courier.turn()
        now[0] += 1.0
    assert list(owners.hub.present) == ["north", "west"]
    assert caplog.text.count("node 102 was sent away: its app failed") == 1
    # Later each time: it is a process each.
    assert [node for node, _ in owners.post.sent].count(102) == 4
    owners.post.starts[102] = genuine
    now[0] = 100.0
    owners.courier.turn()
    assert list(owners.hub.present) == ["north", "south", "west"]


def test_what_cannot_be_sent_is_due_again_later_each_time(tmp_path):
    owners, now = Owners(tmp_path), [0.0]
    owners.serve(clock=lambda: now[0])
    owners.courier.turn()
    box, pauses = owners.courier._boxes[101][1], []
    box.send(offer())
    owners.post.send = lambda parcels: [None] * len(parcels)
    for _ in range(12):
        owners.courier.turn()
        pauses.append(box.due - now[0])
        now[0] = box.due
    assert pauses == [min(FIRST * 2.0**number, LONGEST) for number in range(12)]
    counts = owners.courier.counts
    assert (counts["sent"], counts["failed"], counts["again"]) == (3 + 12, 12, 11)


@pytest.mark.parametrize("reply", [[b"x"], [b"", b""], [write(Frame("receipt", {"job": "job"}))],
                                   [b"x"] * 3])  # fmt: skip
def test_a_reply_that_is_none_takes_nobody_up(reply, tmp_path):
    owners = Owners(tmp_path)
    owners.post.send = lambda parcels: [str(node) for node, _ in parcels]
    owners.post.fetch = lambda names: [(name, reply) for name in names]
    owners.courier.turn()
    assert owners.hub.present == ()


def test_one_that_says_that_it_is_another_now_is_not_taken_for_who_it_was(tmp_path):
    owners = Owners(tmp_path)
    owners.serve(deadline=0.3)
    with owners.carried():
        owners.hub.open("job", {}, job("central"))
        # Its site file was changed for another owner's, who is at its own node.
        owners.post.starts[103] = lambda: owners.start("north")
        summed = owners.hub.sum(ask(0), NAMES)
    assert [one.client for one in summed.incidents] == ["west"]
    np.testing.assert_allclose(summed.total, [3, 3, 3])


def test_an_engine_that_fails_for_a_while_ends_no_job(tmp_path, monkeypatch):
    monkeypatch.setattr("fedsynth.federation.runtimes.messages._PAUSE", 0.001)
    owners = Owners(tmp_path)
    genuine, failures = owners.post.nodes, iter([True, True, False, True])

    def nodes():
        if next(failures, False):
            raise ConnectionError("of some library")
        return genuine()

    owners.post.nodes = nodes
    with Messages(NAMES, owners.post, plain=True) as messages:
        messages.open(None, {}, None, ANY, deadline=60.0)
        messages.hub.open("job", {}, job("central"))
        assert messages.hub.sum(ask(0), NAMES).answered == 3
        messages.hub.close("job", finished=True)
        assert messages.hub.insecure
        assert messages.courier.words.startswith("12 sent, 0 of them failed; ")
    assert messages.hub.present == ()


def test_no_shares_leave_without_secure_sums(tmp_path):
    budget = Budget(1.0, delta=1e-5, unit="record", trust="distributed")
    messages = Messages(NAMES, Owners(tmp_path).post)
    with pytest.raises(PrivacyError, match="needs sums that nobody can open"):
        messages.open(None, {}, None, budget)


class Started:
    """A post whose nodes say nothing until a test has them say it."""

    def __init__(self) -> None:
        self.there, self.sent, self.came, self.told = {101, 102, 103}, [], [], set()

    def nodes(self):
        return self.there

    def send(self, parcels):
        self.sent += [node for node, _ in parcels]
        self.told |= {read(body).plain["token"] for _, parcel in parcels for body in parcel}
        return [f"{node}/{self.sent.count(node)}" for node, _ in parcels]

    def fetch(self, names):
        came, self.came = [one for one in self.came if one[0] in names], []
        return came


def test_a_site_is_started_until_its_job_is_finished(caplog):
    post, now = Started(), [0.0]
    starter = Starter(NAMES, post, "t" * 32, clock=lambda: now[0])

    def started(*came: tuple[str, object]) -> list[int]:
        post.sent.clear()
        post.came = list(came)
        for _ in range(2):
            starter.turn()
            now[0] += 1.0
        return post.sent

    assert started() == [101, 102, 103] and post.told == {"t" * 32}
    assert started() == []
    # One failed, one finished; who comes back runs nothing any more.
    assert started(("101/1", None), ("102/1", [b"receipt"])) == [101]
    assert caplog.text.count("node 101: its site does not dial") == 1
    post.there = {101, 102}
    assert started() == []
    post.there = {101, 102, 103}
    assert started() == [103]
    only = Starter(NAMES, post, "t", {name: node for node, name in NODES.items()})
    post.there = {101, 102, 103, 104}
    post.sent.clear()
    only.turn()
    assert post.sent == [101, 102, 103]
