"""The server's side of jobs over a network: a runtime whose clients are sites that come and go.

It hands frames to links, one a site, and is handed what comes back; what carries them
(:mod:`.stream`, or a test) is not its business. A site that comes back is told all that it missed.
What nobody waits for any more is let go of, and counted.

Sums under distributed trust are added up in secret: sites say that they are ready, and then steps
of :mod:`fedsynth.federation.secure` go to and fro, the first with the question where it can. No
other answer under that trust is asked for.
"""

from __future__ import annotations

import logging
import secrets
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Condition
from typing import Protocol

import numpy as np

from fedsynth.errors import ConfigError, FederationError, PrivacyError
from fedsynth.federation.client.grid import grid_of
from fedsynth.federation.request import Answer, Incident, Plain, Request, Summed
from fedsynth.federation.runtimes.codes import word_offer, word_round
from fedsynth.federation.runtimes.gathering import (
    Gathering,
    demand_some,
    following,
    open_sum,
)
from fedsynth.federation.runtimes.steps import Replies, Steps, agree_keys
from fedsynth.federation.secure.carrying import Sums
from fedsynth.federation.secure.rules import Roster, Rules
from fedsynth.federation.secure.state import Standing
from fedsynth.federation.wire import (
    ASKS,
    VERSION,
    Frame,
    FrameError,
    pack_request,
    read,
    unpack_answer,
    unpack_ready,
    write,
)
from fedsynth.privacy.trail.job import Job
from fedsynth.views import spell_bytes

_LOG = logging.getLogger("fedsynth.hub")


class Link(Protocol):
    """The way to a site that has joined."""

    def send(self, body: bytes) -> None:
        """Hand a frame over, without waiting for it to arrive."""
        ...

    def close(self) -> None:
        """Let go of it; a site that wants to may come back."""
        ...


@dataclass
class _Open:
    """A job that is offered.

    Attributes:
        sums: its secure sums; None where it has none.
    """

    job: Job
    participations: Mapping[str, int]
    most_records: int | None
    session: str = field(default_factory=lambda: secrets.token_hex(8))
    posts: list[bytes] = field(default_factory=list)
    settled: int = 0
    sums: Sums | None = None


@dataclass
class _Asked:
    """What sites are asked now: the frame of each that has not replied.

    Attributes:
        exchange: number of a step of a secure sum, which a reply to it repeats.
        request: that replies are to, where they are not gathered.
        incidents: of sites that will not reply to it.
    """

    job: str
    round: int | None
    kinds: frozenset[str]
    frames: dict[str, bytes]
    replies: dict[str, Frame] = field(default_factory=dict)
    gathering: Gathering | None = None
    exchange: int | None = None
    request: Request | None = None
    incidents: dict[str, Incident] = field(default_factory=dict)


class Hub:
    """A runtime (:class:`fedsynth.federation.runtime.Runtime`) to sites that join it.

    Args:
        owners: who may join, in the order in which their answers are added.
        plain: whether links are not encrypted, so that anybody may be anybody.
        receipts: seconds that sites may take to say that they have left a finished job.

    Attributes:
        begun: whether the job to come asked something before: it goes on with those who are there.
        spared: whether it asks nothing any more, and waits for nobody.
        counts: bytes `down` and `up`, frames `asked` and `answered`, those `late` or `bad`, and
            `rounds`.

    Raises:
        ConfigError: no owners, or two of one name.
    """

    def __init__(
        self,
        owners: Sequence[str],
        *,
        plain: bool = False,
        receipts: float = 30.0,
    ) -> None:
        if not owners or len(set(owners)) < len(owners):
            raise ConfigError("a federation needs at least one client, and each its own name")
        self._owners, self._plain, self._receipts = tuple(owners), plain, receipts
        self._deadline: float | None = None
        self._most_records: int | None = None
        self._rules: Rules | None = None
        self._exchanges = 0
        self._links: dict[str, Link] = {}
        self._known: set[str] = set()
        self._jobs: dict[str, _Open] = {}
        self._asked: _Asked | None = None
        self._turn = Condition()
        self.counts: Counter[str] = Counter()
        self.begun = self.spared = False

    # What carries frames calls these, from any thread.

    def greet(self, name: str, hello: bytes, link: Link) -> str | None:
        """Take up a site that joins, in the place of an earlier link of its own.

        Args:
            name: as its certificate says, or as it says itself where nothing is encrypted.

        Returns:
            Why it is not taken up; None where it is.
        """
        try:
            frame = read(hello)
            told, insecure = frame.get("name", str), frame.get("insecure", bool)
            jobs = frame.get("jobs", dict)
        except (FrameError, KeyError):
            return "said nothing that this server understands: is it of the same version?"
        if name != told or name not in self._owners:
            return f"is not on the roster as {told!r:.40}, or has another's certificate"
        if frame.plain["version"] == ASKS:
            return f"may join, if it runs {VERSION}"
        if frame.plain["version"] != VERSION:
            return f"runs another version than this server's {VERSION}"
        if insecure and self._jobs and not all(one.job.insecure for one in self._jobs.values()):
            return "has noise that somebody knows"
        with self._turn:
            before = self._links.pop(name, None)
            if before is not None:
                before.close()
            self._links[name] = link
            self._known |= {name} if insecure else set()
            for opened in self._jobs.values():
                self._send(name, self._offer(opened, name))
                match jobs.get(opened.job.job):
                    case [opened.session, int(count)] if count > 0:
                        posts = count
                    case _:
                        posts = 0
                for post in opened.posts[posts:]:
                    self._send(name, post)
            asked = self._asked
            if asked is not None and asked.kinds != _OFFERED and name in asked.frames:
                self._send(name, asked.frames[name])
            self._log("joined", name)
            self._turn.notify_all()
        return None

    def take(self, name: str, link: Link, body: bytes) -> None:
        """A frame from a site; one that is none costs it its link."""
        with self._turn:
            if self._links.get(name) is not link:
                return
            self.counts["up"] += len(body)
            try:
                frame = read(body)
                taken = self._match(name, frame)
            except FrameError as error:
                self.counts["bad"] += 1
                self._log("bad", name, code=error.code, size=len(body))
                self._settle_reply(name, f"not an answer ({error.code})")
                self._drop(name)
                return
            if frame.kind == "damage":
                # What was sent was not what arrived: it comes back and is told again.
                self._log("damage", name, code=str(frame.plain["code"])[:20])
                self._drop(name)
            elif not taken:
                self.counts["late"] += 1
                self._log("late", name, kind=frame.kind, size=len(body))

    def lose(self, name: str, link: Link) -> None:
        """A link is gone."""
        with self._turn:
            if self._links.get(name) is link:
                del self._links[name]
                self._log("left", name)
                self._turn.notify_all()

    # The server's half calls these.

    @property
    def clients(self) -> tuple[str, ...]:
        return self._owners

    @property
    def insecure(self) -> bool:
        return self._plain or bool(self._known)

    @property
    def words(self) -> str:
        """What all sites were sent, and sent, since this server was started."""
        counts = self.counts
        size, rounds = counts["down"] + counts["up"], counts["rounds"]
        each = f", {spell_bytes(size / rounds)} a round ({rounds:,} rounds)" if rounds else ""
        return f"bytes to and from all owners since the start: {spell_bytes(size)}{each}"

    def agree(
        self,
        deadline: float | None,
        most_records: int | None = None,
        rules: Rules | None = None,
    ) -> None:
        """What is agreed on with sites for the jobs to come.

        Args:
            deadline: seconds that they may take to join, and for an answer; None for any number.
            most_records: that a site may have, a public figure.
            rules: of secure sums; without, nothing is asked under distributed trust.
        """
        self._deadline, self._most_records, self._rules = deadline, most_records, rules

    @property
    def present(self) -> tuple[str, ...]:
        """Who has joined, and is there."""
        with self._turn:
            return tuple(name for name in self._owners if name in self._links)

    def wait(self) -> tuple[str, ...]:
        """Wait until all sites are there, or until the deadline. Those that are missing."""
        with self._turn:
            self._turn.wait_for(lambda: len(self._links) == len(self._owners), self._deadline)
            return tuple(name for name in self._owners if name not in self._links)

    def open(self, job: str, participations: Mapping[str, int], offered: Job | None = None) -> None:
        """Offer a job to all sites.

        Raises:
            PrivacyError: no job is told, or a site refuses it; nothing was asked.
            FederationError: a site did not answer, of a job that begins; or none did.
        """
        if offered is None:
            raise PrivacyError("over a network a job is offered as its ledger says it")
        opened = self._jobs[job] = _Open(offered, dict(participations), self._most_records)
        if self.spared:
            # Sites of a server that stopped at its release have left.
            return
        frames = {name: self._offer(opened, name) for name in self._owners}
        asked = self._ask(_Asked(job, None, _OFFERED, frames))
        refusals = {
            name: word_offer(reply.get("code", str))
            for name, reply in asked.replies.items()
            if reply.kind == "refuse"
        }
        silent = list(asked.frames)
        if refusals:
            told = "; ".join(f"{name} {words}" for name, words in refusals.items())
            raise PrivacyError(
                f"not all sites join this job: {told}. Nothing was asked of anybody, and nothing "
                "paid; each site's own log says more. Resume the job when they agree, or start "
                "another"
            )
        if silent and (not self.begun or not asked.replies):
            raise FederationError(
                f"{', '.join(silent)}: did not join within {self._deadline:g} s. Nothing was asked "
                "of anybody since; resume the job once they are there"
            )
        if self._rules is not None:
            keys = {name: reply.plain.get("keys") for name, reply in asked.replies.items()}
            opened.sums = Sums(Roster(job, agree_keys(self._owners, keys), self._rules))

    def announce(self, job: str, key: str, value: Plain) -> None:
        opened = self._jobs[job]
        with self._turn:
            plain = {"job": job, "session": opened.session, "sequence": len(opened.posts) + 1}
            opened.posts.append(write(Frame("post", {**plain, "key": key, "value": value})))
            self._tell(opened.posts[-1])

    def sum(self, request: Request, cohort: Sequence[str]) -> Summed:
        if request.terms.trusts.shares:
            return self._add_up(request, cohort)
        return self._gather(request, cohort, single=False).summed

    def collect(
        self, request: Request, cohort: Sequence[str]
    ) -> tuple[list[Answer], list[Incident]]:
        if request.terms.trusts.shares:
            raise PrivacyError(
                "shares of noise are of a sum: no single answer is collected of them"
            )
        gathering = self._gather(request, cohort, single=True)
        gathering.demand_some()
        return gathering.answers, gathering.incidents

    def settle(self, job: str, rounds: int) -> None:
        opened = self._jobs[job]
        if rounds > opened.settled:
            opened.settled = rounds
            self._tell(write(Frame("settle", {"job": job, "rounds": rounds})))

    def close(self, job: str, *, finished: bool) -> None:
        if self._jobs.pop(job, None) is None:
            return
        body = write(Frame("close", {"job": job, "finished": finished}))
        frames = dict.fromkeys(self.present, body)
        asked = self._ask(_Asked(job, None, frozenset({"receipt"}), frames), self._receipts)
        silent = [name for name in self._owners if name not in asked.replies]
        if silent and finished:
            _LOG.warning(
                "%s did not say that they left job %s: what is kept of it there (`.jobs` beside "
                "the account) stays until it is deleted",
                ", ".join(silent),
                job,
            )

    def dismiss(self) -> None:
        """Let all sites go; they may come back."""
        with self._turn:
            for name in self.present:
                self._drop(name)

    # Sums that nobody can open.

    def _add_up(self, request: Request, cohort: Sequence[str]) -> Summed:
        opened, rules = self._jobs[request.job], self._rules
        if opened.sums is None or rules is None:
            raise PrivacyError(
                "distributed trust needs sums that nobody can open, and this job has none"
            )
        began, grid = time.monotonic(), grid_of(request, len(self._owners))
        after = following(request.round, opened.job.plan)
        shape = (request.round, request.dim, grid.kind, after)
        standings, incidents, heard = self._ready(request, cohort, opened.sums, shape)
        demand_some(request, len(standings), incidents)
        if len(standings) < rules.threshold:
            nothing = np.zeros(request.dim)
            return Summed(nothing, len(standings), incidents, rules.threshold)
        steps = Steps(
            lambda asked: self._step(request, asked), lambda: self.present, incidents, heard
        )
        total = opened.sums.add_up(*shape, standings, steps.exchange)
        self._log_round(request, began)
        return open_sum(
            request, grid, rules.threshold, total, list(standings), steps.heard, incidents
        )

    def _ready(
        self,
        request: Request,
        cohort: Sequence[str],
        sums: Sums,
        shape: tuple[int, int, str, int | None],
    ) -> tuple[dict[str, Standing], tuple[Incident, ...], list[str]]:
        """Who has something to give, and where each stands; who has nothing; and who gave its part
        in the step of the sum that could go with the question."""
        ahead = sums.ask_ahead(*shape)
        wanted = {name: ahead.get(name, b"") for name in cohort}
        packed = {step: pack_request(request, step) for step in set(wanted.values())}
        frames = {name: packed[step] for name, step in wanted.items()}
        asked = _Asked(request.job, request.round, _READY, frames, request=request)
        self.counts["asked"] += len(cohort)
        found, heard = dict[str, Standing](), list[str]()
        for name, reply in self._each(asked):
            found[name] = unpack_ready(reply)
            part = self._part(name, request, reply)
            if name in ahead and part is not None:
                heard.append(name)
                sums.take(name, part)
        self.counts["answered"] += len(found)
        for name in cohort:
            if name not in found and name not in asked.incidents:
                asked.incidents[name] = self._silent(name, request)
        standings = {name: found[name] for name in cohort if name in found}
        incidents = (asked.incidents[name] for name in cohort if name in asked.incidents)
        return standings, tuple(incidents), heard

    def _part(self, name: str, request: Request, reply: Frame) -> bytes | None:
        """A site's part in a step; None where it says why there is none."""
        if code := reply.get("code", str)[:20]:
            self._log("refuse", name, code=code, round=request.round)
        return None if code else reply.body

    def _step(self, request: Request, requests: Mapping[str, bytes]) -> Replies:
        """Sites' parts in a step of a secure sum, as they come; until the deadline."""
        self._exchanges += 1
        plain = {"job": request.job, "round": request.round, "exchange": self._exchanges}
        frames = {n: write(Frame("step", plain, body=body)) for n, body in requests.items()}
        asked = _Asked(
            request.job, request.round, _STEPPED, frames, exchange=self._exchanges, request=request
        )
        for name, reply in self._each(asked):
            yield name, self._part(name, request, reply)

    def _each(self, asked: _Asked) -> Iterator[tuple[str, Frame]]:
        """Send every site its frame; their replies as they come, until the deadline."""
        until = None if self._deadline is None else time.monotonic() + self._deadline
        with self._turn:
            self._asked = asked
            for name in list(asked.frames):
                self._send(name, asked.frames[name])
        try:
            while True:
                with self._turn:
                    left = None if until is None else until - time.monotonic()
                    self._turn.wait_for(lambda: asked.replies or not asked.frames, left)
                    if not asked.replies:
                        return
                    name = next(iter(asked.replies))
                    reply = asked.replies.pop(name)
                yield name, reply
        finally:
            with self._turn:
                self._asked = None

    def _silent(self, name: str, request: Request) -> Incident:
        """Of a site that did not reply in time."""
        late = f"failed: no answer within {self._deadline or 0:g} s"
        return Incident(name, request.round, late if name in self._links else "did not answer")

    # What both need.

    def _gather(self, request: Request, cohort: Sequence[str], *, single: bool) -> Gathering:
        body = pack_request(request)
        gathering = Gathering(request, cohort, single=single)
        asked = _Asked(
            request.job,
            request.round,
            frozenset({"answer", "refuse", "fail"}),
            dict.fromkeys(cohort, body),
            gathering=gathering,
        )
        self.counts["asked"] += len(cohort)
        began = time.monotonic()
        self._ask(asked)
        for name in gathering.missing:
            gathering.take(name, self._silent(name, request))
        self._log_round(request, began)
        return gathering

    def _log_round(self, request: Request, began: float) -> None:
        told = {"job": request.job, "round": request.round, "task": request.task}
        took, size = time.monotonic() - began, self.counts["down"] + self.counts["up"]
        self.counts["rounds"] += 1
        self._log("round", "", **told, took=round(took, 4), bytes=size)

    def _ask(self, asked: _Asked, within: float | None = None) -> _Asked:
        """Send every site its frame, and wait for their replies."""
        with self._turn:
            self._asked = asked
            try:
                for name in list(asked.frames):
                    self._send(name, asked.frames[name])
                patience = self._deadline if within is None else within
                self._turn.wait_for(lambda: not asked.frames, patience)
            finally:
                self._asked = None
        return asked

    def _match(self, name: str, frame: Frame) -> bool:
        """Whether somebody waits for a reply, which then has it."""
        asked = self._asked
        if asked is None or name not in asked.frames or frame.kind not in asked.kinds:
            return False
        if frame.get("job", str) != asked.job or frame.plain.get("round") != asked.round:
            return False
        gathering, request = asked.gathering, asked.request
        if frame.plain.get("exchange") != asked.exchange:
            return False
        if gathering is not None and frame.kind == "answer":
            answer = unpack_answer(frame, name)
            self.counts["answered"] += 1
            gathering.take(name, answer)
        elif request is not None and frame.kind in ("refuse", "fail"):
            asked.incidents[name] = self._word(name, request, frame)
        elif gathering is not None:
            gathering.take(name, self._word(name, gathering.request, frame))
        else:
            # Looked at before it counts as a reply: what is none costs its sender the link.
            if frame.kind == "ready":
                unpack_ready(frame)
            elif frame.kind == "stepped":
                frame.get("code", str)
            asked.replies[name] = frame
        del asked.frames[name]
        self._turn.notify_all()
        return True

    def _word(self, name: str, request: Request, frame: Frame) -> Incident:
        """Why a site gives nothing."""
        code, limit = frame.get("code", str), request.participations
        planned = self._jobs[request.job].job.participations
        limits = [one for one in (limit, planned) if one is not None]
        words = word_round(code, min(limits, default=None))
        self._log(frame.kind, name, code=code[:20], round=request.round)
        return Incident(name, request.round, words)

    def _settle_reply(self, name: str, reason: str) -> None:
        """A site gave no reply, and will give none to what it was asked now."""
        asked = self._asked
        if asked is None or asked.round is None or name not in asked.frames:
            return
        incident = Incident(name, asked.round, reason)
        if asked.gathering is None:
            asked.incidents[name] = incident
        else:
            asked.gathering.take(name, incident)
        del asked.frames[name]
        self._turn.notify_all()

    def _offer(self, opened: _Open, name: str) -> bytes:
        plain = {
            "job": opened.job.to_dict(),
            "session": opened.session,
            "roster": list(self._owners),
            "version": VERSION,
            "most_records": opened.most_records,
            "participations": opened.participations.get(name, 0),
            "settled": opened.settled,
        }
        return write(Frame("offer", plain))

    def _tell(self, body: bytes) -> None:
        """Send every site that is there a frame that gets no reply."""
        with self._turn:
            for name in self._owners:
                self._send(name, body)

    def _send(self, name: str, body: bytes) -> None:
        link = self._links.get(name)
        if link is not None:
            self.counts["down"] += len(body)
            link.send(body)

    def _drop(self, name: str) -> None:
        link = self._links.pop(name, None)
        if link is not None:
            link.close()

    def _log(self, event: str, owner: str, **more: object) -> None:
        _LOG.info("%s", {"event": event, **({"owner": owner} if owner else {}), **more})


_OFFERED = frozenset({"accept", "refuse"})
_READY, _STEPPED = frozenset({"ready", "refuse", "fail"}), frozenset({"stepped"})
