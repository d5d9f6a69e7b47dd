"""What carries frames between a hub and its sites: one gRPC stream a site, which the site opens.

Both sides show certificates (mutual TLS), and a site goes by the name in its own. The messages are
bytes; nothing is generated from a description. gRPC bounds them before it takes memory for them.
"""

from __future__ import annotations

import errno
import hmac
import logging
import os
import queue
import random
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from fedsynth.errors import ConfigError, FederationError, MachineError
from fedsynth.federation.keys import Keys
from fedsynth.federation.runtimes.apart import Apart
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.wire import ASKS, MOST_BYTES, Frame, is_question, write

if TYPE_CHECKING:
    import grpc

_LOG = logging.getLogger("fedsynth.stream")
_SERVICE, _METHOD = "fedsynth.Federation", "Join"
_TOKEN = "fedsynth-token"
_PORTS, _TRIES = 65_535, 20
_LOOPBACK = ("127.0.0.1:", "localhost:", "[::1]:")
_BACK_OFF, _LONGEST = 0.5, 30.0
"""Seconds before a site dials again, which double to the longest."""
_FIRST, _LAST, _LOOK = 20.0, 5.0, 0.2
"""Seconds in which whoever opens a stream says who it is, in which its last frame arrives, and
after which somebody looks whether it is over."""


def load_grpc() -> Any:
    """gRPC's module.

    Raises:
        MachineError: it is not installed.
    """
    # Its own words on stderr are nobody's here.
    os.environ.setdefault("GRPC_VERBOSITY", "NONE")
    try:
        import grpc
    except ImportError:
        raise MachineError(
            "streams between machines need gRPC: pip install 'fedsynth[network]'"
        ) from None
    return grpc


def demand_address(address: str, *, plain: bool) -> None:
    """Raises ConfigError for what is no HOST:PORT, or not this machine's own where nothing is
    encrypted."""
    host, _, port = address.rpartition(":")
    if not host or not port.isdecimal() or int(port) > _PORTS:
        raise ConfigError(f"{address!r:.80} is no HOST:PORT, such as fed.example.org:8443")
    if plain and not address.startswith(_LOOPBACK):
        raise ConfigError(
            f"{address}: without encryption only this machine's own address (127.0.0.1:PORT) is "
            "used; with keys (`fedsynth keys trial`) any is"
        )


def _find_free_port(host: str, port: int) -> int:
    """The port, or for 0 any, if it is free at every address of the host on this machine.

    gRPC is content with one of them, and whoever dials another would reach another program there.

    Raises:
        OSError: it is taken, or the host is unknown.
    """
    name = host.strip("[]")
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    places = dict.fromkeys((family, str(place[0])) for family, *_, place in found)
    if name == "localhost":
        # To gRPC it is both, whatever the machine's own list of hosts says.
        places |= dict.fromkeys([(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
    tries = 1 if port else _TRIES
    while True:
        tries -= 1
        try:
            with ExitStack() as held:
                free = port
                for family, place in places:
                    free = _hold(held, family, place, free)
                return free
        except OSError as error:
            # What is free at one address is not so at another: any other port will do.
            if not tries or error.errno != errno.EADDRINUSE:
                raise


def _hold(held: ExitStack, family: int, place: str, port: int) -> int:
    """Bind an address for as long as `held` is open; one that is not this machine's is let be."""
    try:
        taken = held.enter_context(socket.socket(family))
        # As gRPC does: what is left of a server that stopped a moment ago takes nothing.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            taken.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        taken.bind((place, port))
    except OSError as error:
        if error.errno in (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT):
            return port
        raise
    return int(taken.getsockname()[1])


def _options(most_bytes: int) -> list[tuple[str, int]]:
    return [
        ("grpc.max_receive_message_length", most_bytes),
        ("grpc.max_send_message_length", -1),
        ("grpc.keepalive_time_ms", 20_000),
        ("grpc.keepalive_timeout_ms", 20_000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_ping_interval_without_data_ms", 10_000),
        ("grpc.so_reuseport", 0),
        # A site's own back-off is the one that counts.
        ("grpc.enable_retries", 0),
    ]


class _Stream:
    """A site's stream, as the hub sees it."""

    def __init__(self) -> None:
        self._down: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def send(self, body: bytes) -> None:
        self._down.put(body)

    def close(self) -> None:
        self._down.put(None)

    def frames(self) -> Iterator[bytes]:
        """What was handed over, until it is closed."""
        while (body := self._down.get()) is not None:
            yield body


class Listener:
    """Has sites join a hub at an address.

    Args:
        address: host and port; port 0 takes any that is free.
        keys: the server's; None does without encryption, on this machine alone.
        token: that sites were told and show; empty for none.

    Raises:
        ConfigError: an address that is none, is taken, or is not to be used without keys.
        MachineError: gRPC is not installed.
    """

    def __init__(self, hub: Hub, address: str, keys: Keys | None, token: str = "") -> None:
        demand_address(address, plain=keys is None)
        grpc, self._token = load_grpc(), token
        self._hub, self._grpc, self._plain = hub, grpc, keys is None
        most = 2 * len(hub.clients) + 8
        self._server = grpc.server(
            ThreadPoolExecutor(most), options=_options(MOST_BYTES), maximum_concurrent_rpcs=most
        )
        handler = grpc.stream_stream_rpc_method_handler(self._join)
        service = grpc.method_handlers_generic_handler(_SERVICE, {_METHOD: handler})
        self._server.add_generic_rpc_handlers((service,))
        host, _, wanted = address.rpartition(":")
        try:
            free = f"{host}:{_find_free_port(host, int(wanted))}"
            if keys is None:
                port = self._server.add_insecure_port(free)
            else:
                pair = [(keys.key, keys.certificate)]
                shown = grpc.ssl_server_credentials(pair, keys.authority, True)
                port = self._server.add_secure_port(free, shown)
        except (RuntimeError, ValueError, OSError):
            port = 0
        if not port:
            raise ConfigError(
                f"{address}: cannot be listened at. Is it HOST:PORT of this machine, its port "
                "free, and are the keys a server's (`fedsynth keys trial`)?"
            )
        self.address = f"{host}:{port}"
        self._server.start()

    def close(self) -> None:
        """Let all sites go."""
        self._hub.dismiss()
        self._server.stop(1).wait()

    def _join(self, frames: Iterator[bytes], context: grpc.ServicerContext) -> Iterator[bytes]:
        """A stream that somebody opened."""
        # Whoever says nothing is not waited for.
        silent = Event()
        Thread(target=lambda: silent.wait(_FIRST) or context.cancel(), daemon=True).start()
        try:
            hello = next(frames)
        except Exception:
            return
        finally:
            silent.set()
        stream, name = _Stream(), self._name(context, hello)
        shown = str(dict(context.invocation_metadata()).get(_TOKEN, ""))
        if hmac.compare_digest(shown.encode(), self._token.encode()):
            why = self._hub.greet(name, hello, stream)
        else:
            why = "was not started by this run of the server, or by an earlier one"
        if why is not None:
            _LOG.warning("%s was sent away: %s", name, why)
            context.abort(self._grpc.StatusCode.PERMISSION_DENIED, f"{name} {why}")
        Thread(target=self._pump, args=(name, frames, stream), daemon=True).start()
        context.add_callback(stream.close)
        yield from stream.frames()

    def _pump(self, name: str, frames: Iterator[bytes], stream: _Stream) -> None:
        """What a site sends, until its stream ends."""
        try:
            for body in frames:
                self._hub.take(name, stream, body)
        except Exception as error:
            # gRPC's own, whatever ended the stream: a message that is too large among them.
            _LOG.info("the stream of %s ended (%s)", name, type(error).__name__)
        self._hub.lose(name, stream)
        stream.close()

    def _name(self, context: grpc.ServicerContext, hello: bytes) -> str:
        """Of the certificate; of whoever has none, as it says itself."""
        if not self._plain:
            (name, *_) = context.auth_context().get("x509_common_name", [b""])
            return bytes(name).decode("utf-8", "replace")
        from fedsynth.federation.wire import FrameError, read

        try:
            return read(hello).get("name", str)
        except (FrameError, KeyError):
            return ""


class Streams(Apart):
    """Owners on their own machines, who join by streams; a context that lets go of them.

    Args:
        owners: by the names that their certificates say.
        address, keys: as of :class:`Listener`.
        tell: called with where it listens.
        token: as of :class:`Listener`.

    Raises:
        ConfigError, MachineError: as of :class:`Listener`.
    """

    def __init__(
        self,
        owners: Sequence[str],
        address: str,
        keys: Keys | None,
        tell: Callable[[str], None] = _LOG.info,
        token: str = "",
    ) -> None:
        super().__init__(Hub(owners, plain=keys is None))
        self._listener = Listener(self.hub, address, keys, token)
        self.address = self._listener.address
        tell(f"listening at {self.address} for {', '.join(owners)}")

    def __enter__(self) -> Streams:
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()


def attend(
    site: Site,
    address: str,
    keys: Keys | None,
    *,
    tell: Callable[[str], None] = _LOG.info,
    over: Event | None = None,
    stay: bool = False,
    wait: float = 86_400.0,
    token: str = "",
) -> None:
    """Dial a server and answer what it asks, again and again, until a job is finished.

    Args:
        keys: the site's; None does without encryption, on this machine alone.
        tell: called with how the stream fares, a sentence each.
        over: set by whoever ends it before.
        stay: for job after job, until it is over.
        wait: seconds of silence after which it gives up.
        token: that the server told, where it started the site.

    Raises:
        FederationError: the server sends the site away, or was silent for so long.
        ConfigError: an address that is not to be used without keys.
        MachineError: gRPC is not installed.
    """
    grpc = load_grpc()
    demand_address(address, plain=keys is None)
    over, ends = over or Event(), Event() if stay else site.over
    pause, heard, told = _BACK_OFF, time.monotonic(), ""
    while not (over.is_set() or ends.is_set()):
        try:
            for _ in _stream(site, address, keys, over, ends, token):
                connected = f"{site.name} is connected to {address}"
                if told != connected:
                    tell(connected)
                told, pause, heard = connected, _BACK_OFF, time.monotonic()
        except grpc.RpcError as error:
            if over.is_set():
                break
            words = _words(error, grpc, address)
            if error.code() == grpc.StatusCode.PERMISSION_DENIED:
                raise FederationError(f"{address} sends this site away: {words}") from None
            if words != told:
                tell(f"{words}; dialling again")
            told = words
        if time.monotonic() - heard > wait:
            raise FederationError(
                f"{address} was silent for {wait:g} s. What is kept of unfinished jobs stays: "
                "join again to go on with them"
            )
        if not ends.is_set():
            # Sites that lost one server do not all come back in the same moment.
            over.wait(pause * random.uniform(0.5, 1.0))
            pause = min(2 * pause, _LONGEST)


def ask_whether(name: str, address: str, keys: Keys | None) -> str:
    """Dial a server, and hang up again: whether an owner may join, in a sentence.

    Raises:
        ConfigError, MachineError: as :func:`attend`.
    """
    grpc = load_grpc()
    demand_address(address, plain=keys is None)
    plain = {"name": name, "version": ASKS, "insecure": keys is None, "jobs": {}}
    hello = write(Frame("hello", plain))
    with _channel(address, keys, MOST_BYTES) as channel:
        call = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")(iter([hello]), timeout=_FIRST)
        try:
            for _ in call:
                break
        except grpc.RpcError as error:
            return _words(error, grpc, address)
        finally:
            call.cancel()
    return f"{address} says nothing that this version understands"


def _channel(address: str, keys: Keys | None, most_bytes: int) -> Any:
    grpc, options = load_grpc(), _options(most_bytes)
    if keys is None:
        return grpc.insecure_channel(address, options)
    shown = grpc.ssl_channel_credentials(keys.authority, keys.key, keys.certificate)
    return grpc.secure_channel(address, shown, options)


def _stream(
    site: Site, address: str, keys: Keys | None, over: Event, ends: Event, token: str
) -> Iterator[None]:
    """One stream, from its first to its last frame; yields after each."""
    with _channel(address, keys, site.most_bytes) as channel:
        up: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        up.put(site.hello())
        shown_token = ((_TOKEN, token),) if token else ()
        method = channel.stream_stream(f"/{_SERVICE}/{_METHOD}")
        call = method(iter(up.get, None), metadata=shown_token)
        Thread(target=_watch, args=(call, over), daemon=True).start()
        try:
            for body in call:
                began = time.monotonic()
                reply = site.receive(body)
                if site.pad and is_question(body):
                    # How long it took may tell how many rows were drawn.
                    over.wait(site.pad - (time.monotonic() - began) % site.pad)
                if reply is not None:
                    up.put(reply)
                yield
                if ends.is_set():
                    break
            up.put(None)
            # What was said last arrives before the stream ends.
            late = time.monotonic() + _LAST
            while ends.is_set() and call.is_active() and time.monotonic() < late:
                time.sleep(0.01)
        finally:
            up.put(None)
            call.cancel()


def _watch(call: Any, over: Event) -> None:
    """End a stream, at which somebody waits for frames, once it is over."""
    while call.is_active() and not over.wait(_LOOK):
        pass
    if over.is_set():
        call.cancel()


def _words(error: Any, grpc: Any, address: str) -> str:
    """What ended a stream, without a library's own words."""
    code, details = error.code(), str(error.details() or "")
    if code == grpc.StatusCode.PERMISSION_DENIED:
        return details
    if "CERTIFICATE_VERIFY_FAILED" in details or "SSL_ERROR_SSL" in details:
        return (
            f"{address} shows a certificate that our authority (ca.pem) does not vouch for, that "
            "is of another name, or that has expired"
        )
    if "andshake" in details or "alert" in details:
        return (
            f"{address} broke off when papers were shown: it is going down, does not accept our "
            "certificate, or speaks without encryption"
        )
    if code == grpc.StatusCode.RESOURCE_EXHAUSTED:
        return f"{address} sent a message larger than this site takes, or has no room for it"
    return f"{address} cannot be reached, or ended the stream"
