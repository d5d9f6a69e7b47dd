"""Sites whose shares are added up in secret: what leaves them, what is lost, and what is not."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Timer

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import FederationError, MachineError, PrivacyError
from fedsynth.federation.client.grid import grid_of
from fedsynth.federation.runtimes import site as site_module
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.rules import Rules
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.secure.frames import Step
from fedsynth.federation.secure.frames import read as read_parts
from fedsynth.federation.secure.rules import Rules as Sums
from fedsynth.federation.wire import Frame, pack_request, read, write
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Job, Planned
from tests.federation.runtimes.carriers import ANY, Direct, identity, pinned
from tests.federation.runtimes.shares import NAMES, ask, exact, owners
from tests.federation.vectors import Vectors

READY = "ready"
BUDGET = Budget(math.inf, delta=0.5, unit="record", trust="distributed", curious=1)
JOB = Job(
    budget=BUDGET,
    plan=(Planned(Vectors.name, ask().terms, 3),),
    job="job",
    insecure=True,
    clients=4,
    secure="apart",
)
ALL = replace(JOB, plan=(Planned(Vectors.name, ask(survivors=4).terms, 3),))
"""All are needed, so nobody may be missing."""
INSISTING = Rules(budget=ANY, insecure=True, threshold=3, curious=1)


class Lossy(Direct):
    """A link on which what a site says may get lost, by (name, `ready` or a step)."""

    lost: frozenset[tuple[str, object]] = frozenset()

    def send(self, body: bytes) -> None:
        reply = self.site.receive(body)
        if reply is not None and self.open:
            self.seen.append(reply)
            if (self.site.name, what(read(reply))) not in self.lost:
                self.hub.take(self.site.name, self, reply)


def what(frame: Frame) -> object:
    if frame.kind == "stepped" and not frame.plain["code"]:
        return read_parts(frame.body)[0].step
    return frame.kind


class Apart:
    """Four sites on machines of their own, and a server; either may be started again."""

    def __init__(self, folder: Path, rules: Rules = INSISTING, job: Job = JOB) -> None:
        self.folder, self.rules, self.job = folder, rules, job
        self.sites: dict[str, Site] = {}
        self.start(*NAMES)
        self.serve()

    def start(self, *names: str) -> None:
        """Sites whose coins are new where they were there before: what is kept is given again."""
        for client in owners(self.folder, names):
            if client.name in self.sites:
                client.coins = NoiseSource(99)
            rules, folder = pinned(client.name, NAMES, self.rules), self.folder / client.name
            own = identity(client.name)
            self.sites[client.name] = Site(client, rules, folder, identity=own)

    def stop(self, *names: str) -> None:
        for name in names:
            self.sites[name].close()
            self.sites[name]._client.ledger.close()

    def serve(self, without: str = "") -> None:
        """A server that knows nothing but the job."""
        self.hub = Hub(NAMES)
        self.hub.agree(0.0, None, Sums(*self.job.sums))
        self.links = {name: Lossy(self.hub, site) for name, site in self.sites.items()}
        for name, link in self.links.items():
            assert name == without or link.join() is None
        self.hub.begun = True
        self.hub.open("job", {}, self.job)

    def restart(self, *names: str) -> None:
        self.stop(*names)
        self.start(*names)
        for name in names:
            lost = self.links[name].lost
            self.links[name] = Lossy(self.hub, self.sites[name])
            self.links[name].lost = lost
            assert self.links[name].join() is None

    def losing(self, *lost: tuple[str, object]) -> None:
        for link in self.links.values():
            link.lost = frozenset(lost)

    def exact(self, number: int) -> bytes:
        """What all sites keep of a round, added up."""
        kept = [site._jobs["job"].kept.find(number) for site in self.sites.values()]
        shares = [np.asarray(found[1]["share"]) for found in kept]
        return grid_of(ask(number), 4).decode(np.sum(shares, 0, shares[0].dtype)).tobytes()

    def charged(self) -> list[list[int]]:
        return [[e.round for e in site._client.ledger.events] for site in self.sites.values()]


@contextmanager
def apart(folder: Path, rules: Rules = INSISTING, job: Job = JOB) -> Iterator[Apart]:
    made = Apart(folder, rules, job)
    try:
        yield made
    finally:
        made.stop(*NAMES)


@pytest.mark.parametrize("job, first, exchanges", [(JOB, 6, 3), (ALL, 3, 1)])
def test_a_sum_over_sites_is_the_plain_one_to_the_last_bit_and_costs_once(
    job, first, exchanges, tmp_path
):
    with apart(tmp_path, job=job) as four:
        summed = four.hub.sum(ask(), NAMES)
        assert summed.answered == 4 and not summed.incidents
        assert summed.total.tobytes() == exact().tobytes() and summed.total.any()
        assert {len(link.seen) for link in four.links.values()} == {1 + first}
        # Keys of the next round came with it, and its numbers come with the answer to the question.
        counts = []
        for number in (1, 2):
            before = {name: len(link.seen) for name, link in four.links.items()}
            assert four.hub.sum(ask(number), NAMES).answered == 4
            counts.append({len(link.seen) - before[name] for name, link in four.links.items()})
        assert counts == [{exchanges}, {exchanges}]
        assert four.charged() == [[0, 1, 2]] * 4
        four.hub.close("job", finished=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == [f"{n}.jsonl" for n in NAMES]


def test_a_sum_whose_cap_is_public_has_numbers_of_32_bits_at_all_and_comes_out_alike(tmp_path):
    asked = replace(ask(), most_records=2)
    assert (grid_of(asked, 4).kind, grid_of(ask(), 4).kind) == ("<u4", "<u8")
    with apart(tmp_path) as four:
        summed = four.hub.sum(asked, NAMES)
    assert summed.answered == 4 and summed.total.tobytes() == exact().tobytes()


def test_who_answers_before_the_deadline_is_waited_for(tmp_path):
    with apart(tmp_path) as four:
        four.hub.agree(120.0, None, Sums(*JOB.sums))
        slow = four.links["c0"]
        at_once = slow.send
        slow.send = lambda body: Timer(0.02, at_once, [body]).start()
        summed = four.hub.sum(ask(), NAMES)
        slow.send = at_once
    assert summed.answered == 4 and summed.total.tobytes() == exact().tobytes()


def test_no_share_leaves_a_site_whatever_it_is_asked(tmp_path):
    """Of what leaves nothing holds the numbers that are kept, as a site that sent them would."""
    asked = ask()
    grid = grid_of(asked, 4)
    with apart(tmp_path) as four:
        four.hub.sum(asked, NAMES)
        for site, client in zip(four.sites.values(), owners(), strict=True):
            kept = site._jobs["job"].kept.find(0)
            share = np.asarray(kept[1]["share"])
            assert share.dtype == grid.kind and list(kept[1]) == ["share"]
            values = grid.decode(share)
            seen = b"".join(four.links[client.name].seen)
            for numbers in (share, values):
                assert numbers.tobytes() not in seen
            # Nor to a server that asks again, or in another way, or in no job of secure sums.
            for frame in (
                pack_request(asked),
                pack_request(ask(trust="central", survivors=1, curious=0)),
                pack_request(ask(1, trust="central", survivors=1, curious=0)),
                pack_request(replace(asked, settings={"other": 1})),
            ):
                reply = site.receive(frame)
                assert read(reply).kind in ("ready", "refuse") and not read(reply).arrays
        kinds = {what(read(reply)) for link in four.links.values() for reply in link.seen}
        assert kinds == {"accept", READY, *Step}
        assert four.charged() == [[0]] * 4


def test_without_secure_sums_a_share_is_refused_and_nothing_charged(tmp_path):
    central = replace(JOB, budget=ANY, secure="")
    with apart(tmp_path) as four:
        four.hub.agree(0.0)
        four.hub.close("job", finished=False)
        four.hub.open("job2", {}, replace(central, job="job2"))
        for site in four.sites.values():
            reply = read(site.receive(pack_request(replace(ask(), job="job2"))))
            assert (reply.kind, reply.plain["code"]) == ("refuse", "sums")
            step = {"job": "job2", "round": 0, "exchange": 1}
            reply = read(site.receive(write(Frame("step", step))))
            assert (reply.kind, reply.plain["code"]) == ("stepped", "sums")
        with pytest.raises(PrivacyError, match="nobody can open"):
            four.hub.sum(replace(ask(), job="job2"), NAMES)
        with pytest.raises(PrivacyError, match="no single answer"):
            four.hub.collect(replace(ask(), job="job2"), NAMES)
        assert four.charged() == [[]] * 4


OFFERS = {
    "sums": [replace(JOB, secure=""), replace(JOB, secure="simulated")],
    "threshold": [
        # Fewer could open a sum; or fewer than the site insists on are held off.
        replace(JOB, plan=(Planned(Vectors.name, ask(survivors=2).terms, 3),)),
        replace(JOB, budget=replace(BUDGET, curious=0)),
        replace(JOB, budget=replace(BUDGET, curious=3)),
    ],
    "roster": [replace(JOB, clients=3)],
}


@pytest.mark.parametrize("code", OFFERS)
def test_a_job_whose_sums_are_not_as_the_owner_insists_is_refused_whole(code, tmp_path):
    with apart(tmp_path) as four:
        four.hub.close("job", finished=False)
        for job in OFFERS[code]:
            opened = replace(job, job="other")
            with pytest.raises(PrivacyError, match="not all sites join"):
                four.hub.open("other", {}, opened)
            (reply, *_) = [r for r in four.links["c0"].seen[::-1] if read(r).kind == "refuse"]
            assert read(reply).plain["code"] == code
        assert four.charged() == [[]] * 4


@pytest.mark.parametrize("lacks", ["identity", "peers", "more peers"])
def test_without_key_or_with_other_peers_no_share_is_promised(lacks, tmp_path):
    (client,) = owners(tmp_path, ["c0"])
    names = {"identity": NAMES, "peers": NAMES[:1], "more peers": [*NAMES, "c9"]}[lacks]
    own = None if lacks == "identity" else identity("c0")
    site = Site(client, pinned("c0", names, INSISTING), tmp_path / "c0", identity=own)
    plain = {"job": JOB.to_dict(), "session": "s", "roster": NAMES, "version": site_module.VERSION}
    offer = {**plain, "most_records": None, "participations": 0, "settled": 0}
    reply = read(site.receive(write(Frame("offer", offer))))
    assert reply.plain["code"] == ("identity" if lacks != "more peers" else "peers")
    site.close()
    client.ledger.close()


def test_owners_who_have_different_keys_on_file_are_told_before_anything(tmp_path):
    with apart(tmp_path) as four:
        four.hub.close("job", finished=False)
        right = four.sites["c2"]._rules
        four.sites["c2"]._rules = replace(right, peers={**right.peers, "c1": b"7" * 32})
        with pytest.raises(PrivacyError, match="c2 and c0 have different keys of c1 on file"):
            four.serve()
        assert four.charged() == [[]] * 4
        # Once it is put right the job goes on; not with other peers once something was given.
        four.hub.close("job", finished=False)
        four.sites["c2"]._rules = right
        four.serve()
        assert four.hub.sum(ask(), NAMES).answered == 4
        four.hub.close("job", finished=False)
        four.sites["c2"]._rules = replace(right, peers={**right.peers, "c1": b"7" * 32})
        with pytest.raises(PrivacyError, match="c2 could not read"):
            four.serve()


@pytest.mark.parametrize("step", [READY, *Step])
def test_one_that_is_late_at_a_step_is_missed_where_its_numbers_did_not_come(step, tmp_path):
    with apart(tmp_path) as four:
        four.losing(("c2", step))
        summed = four.hub.sum(ask(), NAMES)
        if step in (Step.LIVING, Step.UNMASK):
            assert summed.answered == 4 and summed.total.tobytes() == exact().tobytes()
            return
        assert [one.client for one in summed.incidents] == ["c2"] and summed.answered == 3
        assert summed.total.tobytes() == exact(names=["c0", "c1", "c3"]).tobytes()
        four.losing()
        # It is back in the next round, or in the one behind whose keys it was not asked for.
        assert [four.hub.sum(ask(number), NAMES).answered for number in (1, 2)][-1] == 4


@pytest.mark.parametrize("step", [READY, *Step])
def test_what_too_few_answer_is_not_opened_and_may_be_asked_again(step, tmp_path):
    with apart(tmp_path) as four:
        four.losing(("c1", step), ("c2", step))
        lost = four.hub.sum(ask(), NAMES)
        assert (lost.needed, lost.answered) == (3, 2) and not lost.total.any()
        assert [one.client for one in lost.incidents] == ["c1", "c2"]
        four.stop(*NAMES)
        four.start(*NAMES)
        four.serve()
        found = four.hub.sum(ask(), NAMES)
        assert found.answered == 4 and found.total.tobytes() == exact().tobytes()
        assert four.hub.sum(ask(1), NAMES).answered == 4
        assert four.charged() == [[0, 1]] * 4


@pytest.mark.parametrize("job", [JOB, ALL])
@pytest.mark.parametrize("restarts", [[], ["server"], ["server", *NAMES]])
def test_numbers_that_came_with_answers_and_were_too_few_are_given_again(job, restarts, tmp_path):
    with apart(tmp_path, job=job) as four:
        assert four.hub.sum(ask(), NAMES).answered == 4
        four.losing(("c1", READY), ("c2", READY))
        lost = four.hub.sum(ask(1), NAMES)
        assert lost.answered == 2 < lost.needed and not lost.total.any()
        assert [one.client for one in lost.incidents] == ["c1", "c2"]
        if NAMES[0] in restarts:
            four.stop(*NAMES)
            four.start(*NAMES)
        if restarts:
            four.serve()
        four.losing()
        wanted = four.exact(1)
        assert four.hub.sum(ask(1), NAMES).total.tobytes() == wanted
        assert four.hub.sum(ask(2), NAMES).answered == 4
        assert four.charged() == [[0, 1, 2]] * 4


@pytest.mark.parametrize("lost, answered", [(READY, 3), (Step.LIVING, 4), (Step.UNMASK, 4)])
def test_one_that_is_late_where_numbers_come_with_answers_is_missed_in_that_round(
    lost, answered, tmp_path
):
    with apart(tmp_path) as four:
        assert four.hub.sum(ask(), NAMES).answered == 4
        four.losing(("c2", lost))
        summed = four.hub.sum(ask(1), NAMES)
        assert summed.answered == answered and (
            answered == 3 or summed.total.tobytes() == four.exact(1)
        )
        four.losing()
        assert four.hub.sum(ask(2), NAMES).answered >= 3


def test_a_site_that_cannot_keep_its_numbers_says_so_and_gives_none(tmp_path):
    with apart(tmp_path) as four:
        assert four.hub.sum(ask(), NAMES).answered == 4
        party = four.sites["c1"]._jobs["job"].party
        genuine = party._keep
        party._keep = lambda body: (_ for _ in ()).throw(MachineError("no room"))
        summed = four.hub.sum(ask(1), NAMES)
        assert summed.answered == 3 and [one.client for one in summed.incidents] == ["c1"]
        (*_, reply) = [one for one in map(read, four.links["c1"].seen) if one.kind == READY]
        assert (reply.plain["round"], reply.plain["code"], reply.body) == (1, "file", b"")
        party._keep = genuine
        assert four.charged() == [[0, 1]] * 4


def test_a_round_that_was_opened_is_opened_over_the_same_owners_or_not_at_all(tmp_path):
    with apart(tmp_path) as four:
        four.hub.lose("c3", four.links["c3"])
        first = four.hub.sum(ask(), NAMES)
        assert first.answered == 3
        # A server that lost the sum, and c3 is there now.
        four.serve()
        again = four.hub.sum(ask(), NAMES)
        assert again.answered == 3 and again.total.tobytes() == first.total.tobytes()
        assert [one.client for one in again.incidents] == ["c3"]
        # One of those three is away: c3 does not take its place.
        four.stop("c0")
        four.sites["c0"].receive = lambda body: None
        four.hub.lose("c0", four.links["c0"])
        with pytest.raises(FederationError, match="cannot be opened any more"):
            four.hub.sum(ask(), NAMES)
        four.start("c0")


def test_a_server_that_comes_back_goes_on_without_who_is_away_and_with_it_once_it_is_there(
    tmp_path,
):
    """Others have its key on file."""
    with apart(tmp_path) as four:
        four.serve(without="c3")
        assert four.hub.sum(ask(), NAMES).answered == 3
        assert four.links["c3"].join() is None
        found = [four.hub.sum(ask(number), NAMES).answered for number in (1, 2)]
        assert found[-1] == 4


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write_", range(1, 6))
def test_a_site_that_is_killed_at_any_step_goes_on_with_the_same_sum(write_, after, tmp_path):
    count = [0]

    def stopping(body):
        count[0] += 1
        if after or count[0] != write_:
            genuine(body)
        if count[0] == write_:
            raise KeyboardInterrupt

    with apart(tmp_path) as four:
        party = four.sites["c1"]._jobs["job"].party
        genuine, party._keep = party._keep, stopping
        with suppress(KeyboardInterrupt):
            four.hub.sum(ask(), NAMES)
            pytest.fail("nobody was killed")
        four.stop(*NAMES)
        four.start(*NAMES)
        four.serve()
        assert four.hub.sum(ask(), NAMES).total.tobytes() == exact().tobytes()
        assert four.charged() == [[0]] * 4


@pytest.mark.parametrize(
    "lie",
    [
        {"attempt": 2**53 - 1},
        {"given": [0, 2**53 - 1], "attempt": 2**53 - 1},
        {"given": [0, 3], "begun": [0, 3]},
        {"earliest": 2**53 - 1},
        {"given": 7},
        {"attempt": True},
        {"begun": [0, -1]},
    ],
)
def test_one_that_lies_about_where_it_stands_stops_nobody(lie, tmp_path):
    with apart(tmp_path) as four:
        genuine = four.sites["c2"].receive

        def lying(body: bytes) -> bytes | None:
            reply = genuine(body)
            frame = None if reply is None else read(reply)
            if frame is not None and frame.kind == READY:
                return write(replace(frame, plain={**frame.plain, **lie}))
            return reply

        four.sites["c2"].receive = lying
        for number in range(3):
            assert four.hub.sum(ask(number), NAMES).answered >= 3
            if "c2" not in four.hub.present:
                assert four.links["c2"].join() is None
        # Nor after a restart of the server.
        four.serve()
        assert four.hub.sum(ask(3), NAMES).answered >= 3


LOST = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from([READY, *Step])), max_size=5)
RESTARTS = st.sampled_from(["", "", *NAMES, "server", "all"])


@settings(max_examples=15)
@given(
    st.sampled_from([JOB, ALL]),
    st.lists(st.tuples(st.integers(0, 1), LOST, RESTARTS), max_size=6),
)
def test_whatever_gets_lost_a_round_has_one_sum_and_is_charged_once(job, asked):
    found = dict[int, bytes]()
    with tempfile.TemporaryDirectory() as name, apart(Path(name), job=job) as four:
        for number, lost, restarts in asked:
            if restarts in NAMES:
                four.restart(restarts)
            elif restarts:
                if restarts == "all":
                    four.stop(*NAMES)
                    four.start(*NAMES)
                four.serve()
            four.losing(*lost)
            try:
                summed = four.hub.sum(ask(number), NAMES)
            except FederationError as error:
                assert "cannot be opened any more" in str(error)
                continue
            if summed.answered >= summed.needed:
                assert found.setdefault(number, summed.total.tobytes()) == summed.total.tobytes()
                assert summed.answered + len(summed.incidents) == 4
            else:
                assert not summed.total.any()
        assert all(len(rounds) == len(set(rounds)) for rounds in four.charged())
