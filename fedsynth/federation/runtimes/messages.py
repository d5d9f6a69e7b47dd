"""Owners on their own machines behind somebody else's engine, which starts a process at their nodes
for each message: jobs of few questions go by messages alone (:mod:`.courier`), others have a
message start a site that dials (:mod:`.stream`). The engine (Flower, :mod:`fedsynth.flower`) is
handed in.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Mapping, Sequence
from threading import Event, Thread

from fedsynth.errors import ConfigError
from fedsynth.federation.runtimes.apart import Apart
from fedsynth.federation.runtimes.courier import FIRST, LONGEST, Courier, Mail, Parcel
from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.runtimes.site import Site
from fedsynth.federation.wire import Frame, read, write

_LOG = logging.getLogger("fedsynth.hub")
_PAUSE = 0.5
"""Seconds between looks at what came."""
_RECEIPTS, _LAST = 300.0, 10.0
"""Seconds that sites may take to say that they have left a finished job: a process each, or one
that ends now."""


def open_parcel(site: Site, parcel: Parcel) -> list[bytes]:
    """What a site says to a parcel: its greeting; and to the last frame what it gets, if anything.

    Args:
        site: as it comes up: what it keeps of a job is on its disk.
    """
    said = [site.hello()]
    for place, body in enumerate(parcel):
        reply = site.receive(body)
        if reply is not None and (place == len(parcel) - 1 or read(reply).kind == "damage"):
            # What was asked behind a frame that did not arrive may rest on it.
            return [*said, reply]
    return said


class Messages(Apart):
    """Owners on their own machines, by messages; a context that lets go of them.

    Args:
        owners: by the names that their site files say.
        plain: whether messages are not encrypted, or nodes not known to who carries them.
        pinned: as of :class:`Courier`.

    Raises:
        ConfigError: as of :class:`Hub`; or a node is pinned to nobody on the roster.
    """

    def __init__(
        self,
        owners: Sequence[str],
        mail: Mail,
        *,
        plain: bool = False,
        pinned: Mapping[str, int] | None = None,
    ) -> None:
        super().__init__(Hub(owners, plain=plain, receipts=_RECEIPTS))
        _demand_owners(owners, pinned)
        self.courier = Courier(self.hub, mail, pinned)
        self._turning = _Turning(self.courier.turn)

    def __enter__(self) -> Messages:
        self._turning.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._turning.end()
        self.hub.dismiss()


class Starter:
    """Has nodes' sites dial a server by themselves: a message each, whose process ends with the
    job; a context that no longer does.

    Args:
        token: that they are to show.
        pinned: as of :class:`Courier`.

    Raises:
        ConfigError: a node is pinned to nobody on the roster.
    """

    def __init__(
        self,
        owners: Sequence[str],
        mail: Mail,
        token: str,
        pinned: Mapping[str, int] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _demand_owners(owners, pinned)
        self._mail, self._clock = mail, clock
        self._parcel = (write(Frame("start", {"token": token})),)
        self._only = set(pinned.values()) if pinned and set(owners) <= set(pinned) else None
        self._due: dict[int, tuple[float, float]] = {}
        self._sent: dict[str, int] = {}
        self._turning = _Turning(self.turn)

    def __enter__(self) -> Starter:
        self._turning.start()
        return self

    def __exit__(self, *_: object) -> None:
        # Sites that leave a finished job say so.
        late = time.monotonic() + _LAST
        while self._sent and time.monotonic() < late:
            time.sleep(_PAUSE)
        self._turning.end()

    def turn(self) -> None:
        """Start who is not started. Raises whatever the mail raises."""
        now, nodes = self._clock(), set(self._mail.nodes())
        if self._only is not None:
            nodes &= self._only
        started = set(self._sent.values())
        # One that went away and came back runs nothing any more.
        self._sent = {name: node for name, node in self._sent.items() if node in nodes}
        due = [node for node in sorted(nodes - started) if self._due.get(node, (now,))[0] <= now]
        names = self._mail.send([(node, self._parcel) for node in due])
        for node, name in zip(due, names, strict=True):
            if name is None:
                self._put_off(node)
            else:
                self._sent[name] = node
        for name, reply in self._mail.fetch(tuple(self._sent)) if self._sent else ():
            if name not in self._sent:
                continue
            node = self._sent.pop(name)
            if reply:
                # Its job is finished.
                self._due[node] = math.inf, FIRST
            else:
                _LOG.warning("node %d: its site does not dial: its own log says why", node)
                self._put_off(node)

    def _put_off(self, node: int) -> None:
        """It is started again, later each time: its owner may put it right, or it was killed."""
        _, pause = self._due.get(node, (0.0, FIRST))
        self._due[node] = self._clock() + pause, min(2 * pause, LONGEST)


def _demand_owners(owners: Sequence[str], pinned: Mapping[str, int] | None) -> None:
    strangers = sorted(set(pinned or ()) - set(owners))
    if strangers:
        raise ConfigError(f"nodes: {strangers[0]} is not among the job's owners")


class _Turning:
    """Takes turns in a thread of its own."""

    def __init__(self, turn: Callable[[], None]) -> None:
        self._turn, self._over = turn, Event()
        self._thread = Thread(target=self._go_on, daemon=True)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self._over.set()
        self._thread.join()

    def _go_on(self) -> None:
        said = ""
        while not self._over.wait(_PAUSE):
            try:
                self._turn()
                said = ""
            except Exception as error:
                # The engine's own, whatever it is: it may be back before the deadline.
                if said != type(error).__name__:
                    said = type(error).__name__
                    _LOG.warning("messages are not carried now (%s): trying again", said)
