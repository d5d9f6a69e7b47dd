"""A hub: sites come and go, say what they like and when; the job goes on with the others."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Thread

import numpy as np
import pytest
from safetensors.numpy import save

from fedsynth.errors import ConfigError, FederationError, PrivacyError
from fedsynth.federation.request import Answer, Request, Summed
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.wire import MAGIC, VERSION, Frame, pack_answer, read, write
from fedsynth.privacy.trail.job import Job
from tests.federation.runtimes.carriers import ANY
from tests.federation.vectors import terms

JOB = Job(budget=ANY, job="job", insecure=True)
ASKED = Request("t", terms(), 3, job="job", round=0)
NAMES = ("north", "south", "west")
SOON = 0.2
"""Seconds after which a hub in these tests waits no longer; only for what never comes."""


class Puppet:
    """A link at whose other end a test says what it likes."""

    def __init__(self, hub: Hub, name: str, /, **hello: object) -> None:
        self.hub, self.name, self.open = hub, name, True
        self.frames: list[Frame] = []
        self.replies: dict[str, Sequence[bytes]] = {"offer": (accept(),), "close": (receipt(),)}
        told = {"name": name, "version": VERSION, "insecure": False, "jobs": {}, **hello}
        self.hello = write(Frame("hello", told))

    def join(self) -> str | None:
        return self.hub.greet(self.name, self.hello, self)

    def send(self, body: bytes) -> None:
        frame = read(body)
        self.frames.append(frame)
        for reply in self.replies.get(frame.kind, ()):
            self.hub.take(self.name, self, reply)

    def close(self) -> None:
        self.open = False

    @property
    def heard(self) -> list[str]:
        return [frame.kind for frame in self.frames]


def accept() -> bytes:
    return write(Frame("accept", {"job": "job", "keys": {}}))


def receipt() -> bytes:
    return write(Frame("receipt", {"job": "job"}))


def answer(values: object = (1.0, 2.0, 3.0), round: int = 0, job: str = "job") -> bytes:
    return pack_answer(Answer("", job, round, np.asarray(values, np.float64)))


def refuse(code: str, round: int | None = 0, kind: str = "refuse") -> bytes:
    return write(Frame(kind, {"job": "job", "round": round, "code": code}))


def opened(hub: Hub | None = None, **replies: Sequence[bytes]) -> tuple[Hub, dict[str, Puppet]]:
    """A hub in a job with three sites, which answer a question unless it is said otherwise."""
    hub = hub or Hub(NAMES)
    puppets = {name: Puppet(hub, name) for name in NAMES}
    for name, puppet in puppets.items():
        puppet.replies["ask"] = replies.get(name, (answer(),))
        assert puppet.join() is None
    hub.agree(SOON)
    hub.open("job", {}, JOB)
    return hub, puppets


def reasons(summed: Summed) -> dict[str, str]:
    return {incident.client: incident.reason for incident in summed.incidents}


def raw(head: bytes, body: bytes = b"") -> bytes:
    return MAGIC + len(head).to_bytes(4, "big") + head + body


HEAD = b'{"kind":"answer","job":"job","round":0}'
BAD = {
    "NaN": (answer([1, np.nan, 1]), "holds values", True),
    "of another shape": (answer([1, 2]), "shape (2,)", True),
    "float32": (raw(HEAD, save({"values": np.zeros(3, "f4")})), "not an answer (array)", False),
    "truncated": (answer()[:-4], "not an answer (array)", False),
    "a gigabyte announced": (raw(HEAD, (2**30).to_bytes(8, "little")), "(oversized)", False),
    "nested lists": (raw(b"[" * 10**5), "not an answer (nested)", False),
    "an unknown frame": (raw(b'{"kind":"exec"}'), "not an answer (unknown)", False),
    "pickle bytes": (b"\x80\x04\x95\x0f\x00\x00\x00\x00", "not an answer (version)", False),
    "nothing": (b"", "not an answer (truncated)", False),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_answer_is_an_incident_and_the_job_goes_on(case):
    body, reason, stays = BAD[case]
    hub, puppets = opened(south=(body,))
    summed = hub.sum(ASKED, NAMES)
    assert summed.answered == 2 and summed.total.tolist() == [2, 4, 6]
    assert list(reasons(summed)) == ["south"] and reason in reasons(summed)["south"]
    # Who sends what is no frame loses its stream, and may come back.
    assert puppets["south"].open is stays and ("south" in hub.present) is stays


def test_what_nobody_waits_for_is_let_go_of_and_counted():
    late = (answer(round=7), answer(job="another"), refuse("budget", 7), accept())
    hub, _ = opened(south=(*late, answer(), answer([9, 9, 9])))
    summed = hub.sum(ASKED, NAMES)
    assert summed.total.tolist() == [3, 6, 9] and not summed.incidents
    assert hub.counts["late"] == 5


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("budget", "refuses: its own budget is spent"),
        ("part", "refuses: has taken part in 2 rounds, the most of this job"),
        ("sums", "refuses: distributed trust"),
        ("made up", "refuses: for a reason that this fedsynth does not know"),
    ],
)
def test_a_code_is_told_in_words_that_are_the_servers_own(code, words):
    hub, _ = opened(west=(refuse(code),))
    asked = Request("t", terms(), 3, job="job", round=0, participations=2)
    assert reasons(hub.sum(asked, NAMES))["west"].startswith(words)


def test_who_is_silent_is_left_out_by_the_deadline_and_who_is_away_too():
    hub, puppets = opened(south=())
    hub.lose("west", puppets["west"])
    summed = hub.sum(ASKED, NAMES)
    assert summed.total.tolist() == [1, 2, 3]
    wanted = {"south": f"failed: no answer within {SOON:g} s", "west": "did not answer"}
    assert reasons(summed) == wanted


def test_a_site_that_comes_back_is_told_all_that_it_missed():
    hub, puppets = opened(south=())
    hub.announce("job", "a", 1)
    hub.lose("south", puppets["south"])
    hub.announce("job", "b", 2)
    again = Puppet(hub, "south", jobs={"job": [puppets["south"].frames[0].plain["session"], 1]})
    again.replies["ask"] = (answer([5, 5, 5]),)
    hub.agree(None)
    asking = Thread(target=lambda: got.append(hub.sum(ASKED, NAMES)))
    got: list[Summed] = []
    asking.start()
    while hub.counts["answered"] < 2:
        pass
    assert again.join() is None
    asking.join()
    assert got[0].answered == 3 and got[0].total.tolist() == [7, 9, 11]
    assert again.heard == ["offer", "post", "ask"]
    assert again.frames[1].plain["key"] == "b"
    # One of another session has nothing of this one, and is told everything.
    anew = Puppet(hub, "south", jobs={"job": ["other", 2]})
    assert anew.join() is None and not again.open
    assert anew.heard == ["offer", "post", "post"]


@pytest.mark.parametrize(
    ("name", "hello", "why"),
    [
        ("east", {}, "not on the roster"),
        ("south", {"name": "north"}, "not on the roster"),
        ("south", {"version": "9"}, "another version"),
        ("south", {"jobs": []}, "understands"),
        ("south", {"insecure": 1}, "understands"),
    ],
)
def test_a_stranger_is_sent_away_and_the_others_do_not_notice(name, hello, why):
    hub, _ = opened()
    assert why in str(Puppet(hub, name, **hello).join())
    assert hub.present == NAMES
    assert hub.sum(ASKED, NAMES).answered == 3


def test_a_frame_by_a_link_that_was_replaced_counts_for_nothing():
    hub, puppets = opened(south=())
    Puppet(hub, "south").join()
    hub.take("south", puppets["south"], b"")
    assert hub.counts["bad"] == 0 and "south" in hub.present


@pytest.mark.parametrize("begun", [False, True])
def test_a_job_begins_with_all_and_goes_on_with_those_who_are_there(begun):
    hub = Hub(NAMES)
    hub.agree(SOON)
    hub.begun = begun
    for name in NAMES[:2]:
        Puppet(hub, name).join()
    if begun:
        hub.open("job", {}, JOB)
        return
    with pytest.raises(FederationError, match=r"west: did not join within 0\.2 s"):
        hub.open("job", {}, JOB)


def test_a_site_that_refuses_ends_the_job_before_anybody_is_asked():
    hub = Hub(NAMES)
    for name in NAMES:
        puppet = Puppet(hub, name)
        if name == "west":
            puppet.replies["offer"] = (refuse("account", None),)
        puppet.join()
    with pytest.raises(PrivacyError, match="west has too little left in its account"):
        hub.open("job", {}, JOB)


def test_who_joins_with_known_noise_voids_a_job_that_says_so_and_is_sent_away_from_others():
    hub = Hub(NAMES)
    assert not hub.insecure and Hub(NAMES, plain=True).insecure
    assert Puppet(hub, "north", insecure=True).join() is None
    assert hub.insecure
    hub, _ = opened()
    hub._jobs["job"].job = Job(budget=ANY, job="job")
    assert "noise" in str(Puppet(hub, "north", insecure=True).join())


def test_owners_have_names_of_their_own():
    with pytest.raises(ConfigError, match="each its own name"):
        Hub(["a", "a"])
    with pytest.raises(ConfigError, match="at least one"):
        Hub([])


def test_bytes_are_counted_as_they_pass():
    hub, _ = opened()
    down, up = hub.counts["down"], hub.counts["up"]
    hub.sum(ASKED, NAMES)
    assert hub.counts["up"] - up == 3 * len(answer())
    assert hub.counts["down"] > down


def test_who_did_not_say_that_it_left_a_finished_job_is_told(caplog):
    hub, puppets = opened(Hub(NAMES, receipts=0.0))
    puppets["south"].replies["close"] = ()
    hub.lose("west", puppets["west"])
    hub.close("job", finished=True)
    assert "south, west did not say that they left job job" in caplog.text
    caplog.clear()
    hub, _ = opened(Hub(NAMES, receipts=0.0))
    hub.close("job", finished=True)
    assert not caplog.text
