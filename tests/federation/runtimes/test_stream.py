"""Streams on this machine: who has the wrong papers, or sends too much, is told in a sentence."""

from __future__ import annotations

import socket
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from datetime import datetime, timedelta
from threading import Event, Thread

import numpy as np
import pytest
from cryptography.x509 import BasicConstraints, load_pem_x509_certificate

from fedsynth.errors import ConfigError, FederationError, PrivacyError
from fedsynth.federation import keys as papers
from fedsynth.federation.keys import Keys, load_keys, make_trial
from fedsynth.federation.request import Request
from fedsynth.federation.runtimes import stream
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.runtimes.stream import Listener, Streams, ask_whether, attend
from fedsynth.federation.wire import Frame, pack_request, write
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from tests.federation.runtimes.carriers import Machines
from tests.federation.vectors import clients, terms

NAMES = ["c0", "c1"]


@pytest.fixture(scope="module")
def trial(tmp_path_factory) -> dict[str, Keys]:
    folder = tmp_path_factory.mktemp("keys") / "trial"
    return {path.name: load_keys(path) for path in make_trial(folder, [*NAMES, "stranger"])}


@pytest.fixture(scope="module")
def others(tmp_path_factory) -> dict[str, Keys]:
    """Of another authority, with the same names."""
    folder = tmp_path_factory.mktemp("keys") / "others"
    return {path.name: load_keys(path) for path in make_trial(folder, NAMES)}


@pytest.fixture
def sites(tmp_path) -> dict[str, Site]:
    machines = Machines(tmp_path, lambda hub, made: None)
    machines(clients(2))
    return {site.name: site for site in machines.sites}


@contextmanager
def listening(keys: Keys | None, token: str = ""):
    hub = Hub(NAMES, plain=keys is None)
    listener = Listener(hub, "localhost:0", keys, token)
    try:
        yield hub, listener.address
    finally:
        listener.close()


def test_authorities_alone_sign_and_whoever_reads_their_certificates_must_know(trial):
    """RFC 5280, section 4.2.1.9: critical where it says that others may be signed by it."""
    for keys in trial.values():
        for body, signs in ((keys.authority, True), (keys.certificate, False)):
            told = load_pem_x509_certificate(body).extensions.get_extension_for_class(
                BasicConstraints
            )
            assert told.critical and told.value.ca is signs


class Dialled:
    """A site that dials in a thread of its own; what it was told, and what ended it."""

    def __init__(
        self, site: Site, address: str, keys: Keys | None, closing: ExitStack, token: str = ""
    ) -> None:
        self.token = token
        self.told: list[str] = []
        self.error: Exception | None = None
        self.over, self.heard = Event(), Event()
        self.thread = Thread(target=self._attend, args=(site, address, keys))
        self.thread.start()
        closing.callback(self.thread.join)
        closing.callback(self.over.set)

    def _attend(self, site: Site, address: str, keys: Keys | None) -> None:
        try:
            attend(site, address, keys, tell=self._tell, over=self.over, token=self.token)
        except Exception as error:
            self.error = error
        self.heard.set()

    def _tell(self, sentence: str) -> None:
        self.told.append(sentence)
        self.heard.set()


def test_over_mutual_tls_sites_go_by_their_certificates_names(trial, sites):
    with listening(trial["server"]) as (hub, address), ExitStack() as closing:
        for name, site in sites.items():
            Dialled(site, address, trial[name], closing)
        assert hub.wait() == ()
        assert hub.present == ("c0", "c1")


def test_a_server_that_starts_its_sites_takes_no_other(trial, sites):
    with listening(trial["server"], "t1") as (hub, address), ExitStack() as closing:
        Dialled(sites["c0"], address, trial["c0"], closing, "t1")
        for token in ("", "t2"):
            late = Dialled(sites["c1"], address, trial["c1"], closing, token)
            late.thread.join()
            assert "was not started by this run of the server" in str(late.error)
            assert "c1" not in hub.present
        Dialled(sites["c1"], address, trial["c1"], closing, "t1")
        assert hub.wait() == ()


@pytest.mark.parametrize(
    ("whose", "sentence"),
    [
        ("stranger", "not on the roster"),
        ("c1", "has another's certificate"),
        ("another authority", "certificate"),
        ("none", "encryption|ended the stream"),
        ("server", "certificate|ended the stream"),
    ],
)
def test_the_wrong_papers_are_told_in_a_sentence(whose, sentence, trial, others, sites):
    known = {**trial, "another authority": others["c0"], "none": None}
    with listening(trial["server"]) as (hub, address), ExitStack() as closing:
        dialled = Dialled(sites["c0"], address, known[whose], closing)
        dialled.heard.wait()
        said = str(dialled.error) if dialled.error else dialled.told[0]
        assert isinstance(dialled.error, FederationError | None)
        assert any(part in said for part in sentence.split("|")), said
        assert "grpc" not in said.lower() and "SSL" not in said
        assert hub.present == ()


def test_a_site_trusts_no_server_with_a_sites_certificate(trial, sites):
    with listening(trial["c1"]) as (hub, address), ExitStack() as closing:
        dialled = Dialled(sites["c0"], address, trial["c0"], closing)
        dialled.heard.wait()
        assert "certificate" in dialled.told[0]
        assert hub.present == ()


def test_a_message_above_the_limit_ends_the_stream_and_the_site_comes_back(sites):
    with listening(None) as (hub, address), ExitStack() as closing:
        small = sites["c0"]
        small._rules = type(small._rules)(budget=small._rules.budget, most_bytes=2000)
        dialled = [Dialled(site, address, None, closing) for site in sites.values()]
        assert hub.wait() == ()
        value = "x" * 4000
        plain = {"job": "j", "session": "s", "sequence": 1, "key": "k", "value": value}
        with hub._turn:
            hub._send("c0", write(Frame("post", plain)))
        dialled[0].heard.wait()
        assert "larger than this site takes" in dialled[0].told[0]
        assert hub.wait() == ()


def test_without_keys_only_this_machine_is_listened_at_and_dialled(sites):
    for address in ("0.0.0.0:0", "192.0.2.1:8443", "example.org:8443"):
        with pytest.raises(ConfigError, match="without encryption only this machine"):
            Listener(Hub(["a"]), address, None)
        with pytest.raises(ConfigError, match="without encryption only this machine"):
            attend(sites["c0"], address, None, over=Event())


def test_an_address_that_is_taken_or_none_is_told(trial):
    with listening(None) as (_, address):
        for wrong in (address, "localhost", "localhost:99999", "no such host:1"):
            with pytest.raises(
                ConfigError, match=r"cannot be listened at|is no HOST:PORT|only this machine"
            ):
                Listener(Hub(["a"]), wrong, None)


@pytest.mark.parametrize("place", ["127.0.0.1", "::1"])
def test_a_port_that_another_program_has_at_one_of_a_hosts_addresses_is_taken(place):
    """Whoever dialled that address would reach the other program, and the job wait for ever."""
    family = socket.AF_INET6 if ":" in place else socket.AF_INET
    with socket.socket(family) as other:
        try:
            other.bind((place, 0))
        except OSError:
            pytest.skip(f"this machine has no {place}")
        other.listen()
        port = other.getsockname()[1]
        with pytest.raises(ConfigError, match=r"cannot be listened at.*its port free"):
            Listener(Hub(["a"]), f"localhost:{port}", None)


def test_distributed_trust_is_refused_before_anybody_is_waited_for():
    with Streams(["a", "b", "c"], "localhost:0", None) as streams:
        budget = Budget(1.0, trust="distributed")
        with pytest.raises(PrivacyError, match="sums that nobody can open"):
            streams.open(NoiseSource(), {}, None, budget)


def test_a_server_that_is_silent_for_too_long_is_given_up(sites):
    with pytest.raises(FederationError, match="was silent"):
        attend(sites["c0"], "127.0.0.1:1", None, over=Event(), wait=0.0)


def test_a_reply_leaves_a_whole_number_of_seconds_behind_its_question(sites, monkeypatch):
    """Whatever the answer took; the clock is a table's, and nobody waits."""
    now, waited = [100.0], []

    class Over(Event):
        def wait(self, timeout=None):
            waited.append(timeout)
            return super().wait(0)

    class Call:
        def __iter__(self):
            return iter([question, other])

        def is_active(self):
            return False

        def cancel(self):
            pass

    class Channel:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            pass

        def stream_stream(self, _):
            return lambda *_, **__: Call()

    def receive(body: bytes) -> bytes:
        now[0] += 2.7
        return b"reply"

    site = sites["c0"]
    site._rules, site.receive = replace(site._rules, pad=2.0), receive
    plain = terms(unit="record", trust="local", noise_multiplier=1.0)
    question = pack_request(Request("test-vectors", plain, 3, job="job", round=0))
    other = write(Frame("settle", {"job": "job", "rounds": 1}))
    monkeypatch.setattr(stream.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(stream, "_channel", lambda *_: Channel())
    monkeypatch.setattr(stream, "_watch", lambda *_: None)
    list(stream._stream(site, "", None, Over(), Event(), ""))
    assert waited == [pytest.approx(1.3)]


def test_a_proxy_that_passes_streams_on_is_gone_through(trial, monkeypatch):
    way, asked = socket.create_server(("localhost", 0)), []

    def carry() -> None:
        came, _ = way.accept()
        asked.append(came.recv(4096).split(b"\r\n")[0])
        there = socket.create_connection(("localhost", int(address.rpartition(":")[2])))
        came.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        back = Thread(target=pump, args=(there, came), daemon=True)
        back.start()
        pump(came, there)
        back.join()

    def pump(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                sink.sendall(data)
            sink.shutdown(socket.SHUT_RDWR)

    with listening(trial["server"]) as (_, address), way:
        thread = Thread(target=carry, daemon=True)
        thread.start()
        for name in ("no_proxy", "no_grpc_proxy", "grpc_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("https_proxy", f"http://localhost:{way.getsockname()[1]}")
        assert "may join" in ask_whether("c0", address, trial["c0"])
        thread.join()
    assert asked == [f"CONNECT {address} HTTP/1.1".encode()]


def test_an_expired_certificate_is_told_before_anybody_is_dialled(tmp_path, monkeypatch):
    class Past(datetime):
        @classmethod
        def now(cls, tz=None):
            return datetime.now(tz) - timedelta(days=60)

    with monkeypatch.context() as patch:
        patch.setattr(papers, "datetime", Past)
        made = make_trial(tmp_path / "keys", ["north"])
    with pytest.raises(ConfigError, match="is good from"):
        load_keys(made[1])


@pytest.mark.parametrize("lost", ["answer", "ready", "stepped"])
def test_a_lost_stream_loses_no_round(lost, tmp_path):
    """A site whose stream breaks while it is asked is asked again when it is back."""
    machines = Machines(tmp_path, lambda hub, made: None)
    hub = machines(clients(2))
    listener = Listener(hub, "localhost:0", None)
    with ExitStack() as closing:
        closing.callback(listener.close)
        for site in machines.sites:
            Dialled(site, listener.address, None, closing)
        assert hub.wait() == ()
        hub.open("job", {})
        genuine, broken = machines.sites[0].receive, []

        def breaking(body: bytes) -> bytes | None:
            reply = genuine(body)
            if not broken and reply is not None and f'"kind":"{lost}"'.encode() in reply[:40]:
                broken.append(reply)
                hub._drop("c0")
                return None
            return reply

        machines.sites[0].receive = breaking
        trust = "local" if lost == "answer" else "distributed"
        plain = terms(unit="record", trust=trust, noise_multiplier=0.0)
        asked = Request("test-vectors", plain, 3, job="job", round=0)
        if lost == "answer":
            total = sum(answer.values for answer in hub.collect(asked, hub.clients)[0])
        else:
            total = hub.sum(asked, hub.clients).total
        assert len(broken) == 1
        np.testing.assert_allclose(total, [0.2, 0.2, 0.2], rtol=1e-6)
        hub.close("job", finished=True)
    assert len(machines.sites[0]._client.ledger.events) == 1
