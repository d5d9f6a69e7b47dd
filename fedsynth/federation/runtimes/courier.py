"""What goes to and fro between a hub and nodes whose process ends with each message.

A site's process remembers nothing but what is on its disk, so a parcel begins with all that a site
is told that comes back: the job's offer, the announcements, what is settled. Last comes what it is
asked now. What it says carries its greeting, by which a node is known for the owner that it is.
Parcels that get lost, or whose process died, are sent again: a site gives what it has given.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock
from typing import Protocol

from fedsynth.federation.runtimes.hub import Hub
from fedsynth.federation.wire import FrameError, read

_LOG = logging.getLogger("fedsynth.hub")
AGAIN, FIRST, LONGEST = 300.0, 1.0, 30.0
"""Seconds after which what got no reply is sent again; and, where its process failed, the first of
those, which double to the longest."""

Parcel = Sequence[bytes]
"""Frames in one message."""


class Mail(Protocol):
    """Messages to nodes, and one reply to each."""

    def nodes(self) -> Collection[int]:
        """Who is there now."""
        ...

    def send(self, parcels: Sequence[tuple[int, Parcel]]) -> Sequence[str | None]:
        """Send nodes a parcel each; the messages' names, None of one that cannot be sent."""
        ...

    def fetch(self, names: Collection[str]) -> Iterable[tuple[str, Parcel | None]]:
        """Replies that came to messages since, each once; None where there will be none."""
        ...


@dataclass
class _Told:
    """What a site is told of a job before it is asked anything."""

    offer: bytes
    posts: list[bytes] = field(default_factory=list)
    settled: bytes | None = None


class _Box:
    """A site's link: what it is told and asked, until somebody carries it away.

    Attributes:
        hello: its greeting.
        due: when to send what it is asked; None where that is under way, or nothing is asked.
    """

    def __init__(self, hello: bytes) -> None:
        self.hello, self.open = hello, True
        self.due: float | None = None
        self.pause = FIRST
        self.number = 0
        self._told: dict[str, _Told] = {}
        self._asked: tuple[str, bytes] | None = None
        self._turn = Lock()

    def send(self, body: bytes) -> None:
        frame = read(body)
        offered = frame.kind == "offer"
        job = str(frame.get("job", dict)["job"]) if offered else frame.get("job", str)
        with self._turn:
            told = self._told.get(job)
            if offered:
                self._told[job] = _Told(body)
            elif told is not None and frame.kind == "post":
                told.posts.append(body)
            elif told is not None and frame.kind == "settle":
                told.settled = body
            if frame.kind not in ("post", "settle"):
                # Nobody waits for what was asked before.
                self._asked, self.due, self.pause = (job, body), 0.0, FIRST
                self.number += 1

    def close(self) -> None:
        self.open = False

    def take_parcel(self, again: float) -> tuple[int, Parcel]:
        """What is asked, its number and all that goes before it; due again at ``again``."""
        with self._turn:
            assert self._asked is not None
            self.due = again
            job, body = self._asked
            told = self._told.get(job)
            if told is None or told.offer is body:
                return self.number, (body,)
            settled = () if told.settled is None else (told.settled,)
            return self.number, (told.offer, *told.posts, *settled, body)

    def settle(self, number: int) -> None:
        """What was asked under a number has its reply."""
        with self._turn:
            if number == self.number:
                self.due = None

    def fail(self, number: int, now: float) -> None:
        """There will be no reply to what was sent: it is due again, later each time."""
        with self._turn:
            if number == self.number and self.due is not None:
                self.due, self.pause = now + self.pause, min(2 * self.pause, LONGEST)


class Courier:
    """Carries frames between a hub and nodes, of which it finds out whose they are.

    Args:
        mail: used in one thread alone.
        pinned: nodes of owners, by their names: nobody else is taken for these.
        again: seconds after which what got no reply is sent again.

    Attributes:
        counts: messages `sent`, `failed` and sent `again`; bytes `down` and `up`.
    """

    def __init__(
        self,
        hub: Hub,
        mail: Mail,
        pinned: Mapping[str, int] | None = None,
        again: float = AGAIN,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hub, self._mail, self._again, self._clock = hub, mail, again, clock
        self._pinned = dict(pinned or {})
        self._boxes: dict[int, tuple[str, _Box]] = {}
        # When to greet nodes whose owner is not known, and the pause until the next time.
        self._strangers: dict[int, tuple[float, float]] = {}
        self._sent: dict[str, tuple[int, _Box | None, int]] = {}
        self._why: dict[int, str] = {}
        self.counts: Counter[str] = Counter()

    @property
    def words(self) -> str:
        """What was carried."""
        counts = self.counts
        return (
            f"{counts['sent']:,} sent, {counts['failed']:,} of them failed; "
            f"{counts['down']:,} bytes down, {counts['up']:,} up"
        )

    def turn(self) -> None:
        """Send what is due, and take what came. Raises whatever the mail raises."""
        now, nodes = self._clock(), set(self._mail.nodes())
        missing = len(self._hub.present) < len(self._hub.clients)
        for node in [n for n, (_, box) in self._boxes.items() if n not in nodes or not box.open]:
            owner, box = self._boxes.pop(node)
            self._hub.lose(owner, box)
        parcels: list[tuple[int, _Box | None, int, Parcel]] = []
        for node in sorted(nodes):
            if node not in self._boxes:
                if not missing or not self._may_be(node):
                    continue
                due, pause = self._strangers.get(node, (now, FIRST))
                if due <= now:
                    parcels.append((node, None, 0, ()))
                    self._strangers[node] = now + self._again, pause
                continue
            box = self._boxes[node][1]
            if box.due is not None and box.due <= now:
                self.counts["again"] += box.due > 0
                parcels.append((node, box, *box.take_parcel(now + self._again)))
        names = self._mail.send([(node, parcel) for node, _, _, parcel in parcels])
        for (node, some, number, parcel), name in zip(parcels, names, strict=True):
            self.counts.update(sent=1, down=sum(map(len, parcel)))
            if name is None:
                self._fail(node, some, number)
            else:
                self._sent[name] = node, some, number
        for name, reply in self._mail.fetch(tuple(self._sent)) if self._sent else ():
            if name in self._sent:
                self._take(*self._sent.pop(name), reply)

    def _may_be(self, node: int) -> bool:
        """Whether a node that is not known may be an owner's: each message costs it a process."""
        pinned = self._pinned
        return node in pinned.values() or not set(self._hub.clients) <= set(pinned)

    def _take(self, node: int, box: _Box | None, number: int, reply: Parcel | None) -> None:
        self.counts["up"] += sum(map(len, reply or ()))
        if not reply or len(reply) > 2:
            self._fail(node, box, number)
            return
        known = self._boxes.get(node)
        if known is None or reply[0] != known[1].hello:
            # Greets for the first time, or as another than before.
            self._greet(node, reply[0])
        elif known[1] is box:
            box.settle(number)
        if box is not None and len(reply) == 2 and known is not None:
            self._hub.take(known[0], box, reply[1])

    def _greet(self, node: int, hello: bytes) -> None:
        """Take up a node for the owner that it says it is, or say why not."""
        try:
            owner = read(hello).get("name", str)
        except FrameError:
            owner = ""
        before = self._boxes.pop(node, None)
        if before is not None:
            self._hub.lose(*before)
        elsewhere = next((n for n, (name, _) in self._boxes.items() if name == owner), None)
        box, why = _Box(hello), None
        if self._pinned.get(owner, node) != node:
            why = "is pinned to another node"
        elif elsewhere is not None:
            why = f"is at node {elsewhere} already"
        else:
            why = self._hub.greet(owner, hello, box)
        if why is None:
            self._boxes[node] = owner, box
            self._strangers.pop(node, None)
            self._why.pop(node, None)
        else:
            self._refuse(node, f"{owner!r:.40} {why}")

    def _fail(self, node: int, box: _Box | None, number: int) -> None:
        """A process died, or a message was lost."""
        self.counts["failed"] += 1
        if box is not None:
            box.fail(number, self._clock())
            self._log(self._boxes[node][0] if node in self._boxes else "", "fail", node)
        elif node not in self._boxes:
            self._refuse(node, "its app failed: its own log says why")

    def _refuse(self, node: int, why: str) -> None:
        """It is greeted again, later each time: its owner may put it right."""
        if self._why.get(node) != why:
            self._why[node] = why
            _LOG.warning("node %d was sent away: %s", node, why)
        _, pause = self._strangers.get(node, (0.0, FIRST))
        self._strangers[node] = self._clock() + pause, min(2 * pause, LONGEST)

    def _log(self, owner: str, event: str, node: int) -> None:
        _LOG.info("%s", {"event": event, "owner": owner, "node": node, "code": "process"})
