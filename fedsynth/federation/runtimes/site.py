"""A site: an owner's half of jobs over a network, bytes in and bytes out. No socket, and no clock.

A job is offered whole (its plan, its budget, who takes part), and joined if the owner's rules, its
floor and its account carry all of it; a refusal costs nothing. Then announcements come, and
questions. A question is charged in the owner's ledger, on disk; answered; the answer is kept, on
disk; and then it leaves. The same question again gets the kept answer; another under its number is
refused. What leaves is answers and codes (:mod:`.codes`), never a text.

Under distributed trust the answer is a share of a sum that nobody can open, and never leaves: the
site says that it is ready, and what leaves is what its party (:mod:`fedsynth.federation.secure`)
makes of it in the steps of that sum, whose state is on disk before.
"""

from __future__ import annotations

import json
import logging
import re
import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import FederationError, FedsynthError, MachineError, PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.grid import Whole, grid_of
from fedsynth.federation.client.tasks import knows
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import PLAN, Answer, Incident, Request
from fedsynth.federation.runtimes.codes import code_of, fault_of
from fedsynth.federation.runtimes.journal import Journal
from fedsynth.federation.runtimes.rules import Rules, read_job
from fedsynth.federation.runtimes.state_file import StateFile
from fedsynth.federation.secure.masks import identity_of
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Roster
from fedsynth.federation.wire import (
    VERSION,
    Frame,
    FrameError,
    pack_answer,
    pack_ready,
    read,
    unpack_request,
    unpack_step,
    write,
)
from fedsynth.files import read_plain
from fedsynth.privacy.trail.chain import START, digest
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.owning import carries

_LOG, _EVENTS = logging.getLogger("fedsynth.client"), logging.getLogger("fedsynth.site")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
_JOINED, _ANSWERS, _VECTOR, _PARTY = "joined.json", "answers", "vector", "party"
_VALUES, _SHARE = "values", "share"
"""What is kept of a round: an answer, which leaves; or a share, which nothing but a party reads."""


@dataclass
class _Joined:
    """A job that the site is in, under one session of its server.

    Attributes:
        party, journal: of its secure sums, and what that party keeps; None where it has none.
        share: the round that was answered last, and what is kept of it for a secure sum.
    """

    job: Job
    party: Party | None
    journal: Journal | None
    session: str
    kept: Kept
    vector: StateFile
    posts: int = 0
    share: tuple[int, Whole] | None = None

    def settle(self, rounds: int) -> None:
        """The server asks none of the rounds below again."""
        self.kept.settle(rounds)
        self.share = None

    def contribute(self, round: int) -> Whole:
        """What was kept of a round to be added up in secret. Raises FederationError for none."""
        if self.share is not None and self.share[0] == round:
            return self.share[1]
        known = self.kept.find(round)
        if known is None or _SHARE not in known[1]:
            raise FederationError(f"round {round} asks for a share that was not consented to")
        return np.asarray(known[1][_SHARE])


class Site:
    """One owner, who answers a server's frames.

    Args:
        client: its rows and its account; its coins are its own, and its floor is the rules'.
        rules: before it joins a job.
        folder: of what is kept of jobs, its user's alone.
        rows: a digest of its rows, which a job goes on with or not at all; stays in the folder.
        identity: its secret Ed25519 key, 32 bytes, by which peers know it in secure sums; without
            one it joins no job under distributed trust.

    Attributes:
        finished: jobs that their server finished.
        over: set once one is.

    Raises:
        PrivacyError: a client without an account of its own.
    """

    def __init__(
        self,
        client: Client,
        rules: Rules,
        folder: Path,
        rows: str = "",
        identity: bytes | None = None,
    ) -> None:
        if client.ledger is None:
            raise PrivacyError(f"{client.name}: a site needs an account of its own")
        client.floor = client.floor or rules.floor
        self._client, self._rules, self._folder, self._rows = client, rules, folder, rows
        self._identity = identity
        self._jobs: dict[str, _Joined] = {}
        self.finished: list[str] = []
        self.over = Event()

    @property
    def name(self) -> str:
        """The owner's, which is public."""
        return self._client.name

    @property
    def pad(self) -> float:
        """Seconds: of :class:`Rules`, for whatever carries its replies."""
        return self._rules.pad

    @property
    def most_bytes(self) -> int:
        """Of a message."""
        return self._rules.most_bytes

    def hello(self) -> bytes:
        """What it says when it joins, or comes back."""
        jobs = {name: [one.session, one.posts] for name, one in self._jobs.items()}
        plain = {
            "name": self.name,
            "version": VERSION,
            "insecure": self._client.coins.insecure,
            "jobs": jobs,
        }
        return write(Frame("hello", plain))

    def receive(self, body: bytes) -> bytes | None:
        """What a frame from the server gets; None where nothing is to be said."""
        kind, plain = "damage", dict[str, Any]()
        try:
            frame = read(body, self._rules.most_bytes)
            kind, plain = frame.kind, dict(frame.plain)
            reply = self._reply(frame)
        except FrameError as error:
            _LOG.info("%s: the server sent what is no frame (%s)", self.name, error.code)
            reply = Frame("damage", {"code": error.code})
        said = reply if reply is None or isinstance(reply, bytes) else write(reply)
        code = reply.plain.get("code") if isinstance(reply, Frame) else None
        self._log(kind, plain, len(body), len(said or b""), code)
        return said

    def _log(self, kind: str, plain: Mapping[str, Any], got: int, sent: int, code: object) -> None:
        """An event for whoever watches over the site: public facts, sizes and codes alone."""
        if not _EVENTS.isEnabledFor(logging.INFO):
            return
        job = plain.get("job")
        told = {
            "owner": self.name,
            "job": job.get("job") if isinstance(job, dict) else job,
            "round": plain.get("round"),
            "code": code,
        }
        given = {key: value for key, value in told.items() if value not in (None, "")}
        _EVENTS.info("%s", {"event": kind, **given, "bytes": got, "sent": sent})

    def close(self) -> None:
        """Let go of all files; jobs go on when the site comes back."""
        for job in list(self._jobs):
            self._leave(job)

    def _reply(self, frame: Frame) -> Frame | bytes | None:
        if frame.kind == "ask":
            return self._answer(frame)
        if frame.kind == "step":
            return self._step(frame)
        if frame.kind == "offer":
            return self._consider(frame, frame.get("job", dict))
        if frame.kind not in ("post", "settle", "close"):
            raise FrameError("unknown", "no server asks this")
        job = frame.get("job", str)
        joined = self._jobs.get(job)
        if frame.kind == "close":
            self._end(job, frame.get("finished", bool))
            return Frame("receipt", {"job": job})
        if joined is not None and frame.kind == "post":
            self._post(joined, frame)
        elif joined is not None:
            joined.settle(frame.whole("rounds"))
        return None

    def _consider(self, frame: Frame, plain: dict[str, Any]) -> Frame:
        """Join the job that is offered, or say why not."""
        name = plain.get("job")
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise FrameError("fields", "an offer without a job's name")
        code: str | None = "damaged"
        with suppress(FederationError):
            job = read_job(plain)
            code = self._judge(job, frame) or self._join(job, frame)
        if code is None:
            keys = {owner: key.hex() for owner, key in self._keys(job).items()}
            return Frame("accept", {"job": name, "keys": keys})
        return Frame("refuse", {"job": name, "round": None, "code": code})

    def _judge(self, job: Job, frame: Frame) -> str | None:
        roster, most = frame.get("roster", list), frame.count("most_records")
        if frame.get("version", str) != VERSION:
            return "version"
        code = self._rules.judge(self.name, job, roster)
        if code is None and job.budget.trusts.shares and self._identity is None:
            code = "identity"
        ledger = self._client.ledger
        if code is None and ledger is not None and not carries(ledger, job):
            code = "account"
        if code is None and most is not None and self._client.records > most:
            # What the owner alone is to know: to the server it is one that takes no part.
            _LOG.warning(
                "%s has more than the most_records of the job: it takes no part", self.name
            )
            code = "declined"
        return code

    def _join(self, job: Job, frame: Frame) -> str | None:
        """Take up a job; a code where it is another than before."""
        place, session = self._folder / job.job, frame.get("session", str)
        participations = frame.whole("participations")
        told = {"job": _first_line(job), "rows": self._rows}
        try:
            if (known := place / _JOINED).exists():
                before = json.loads(read_plain(known, MachineError))
                if before["job"] != told["job"]:
                    return "another"
                if before["rows"] != self._rows:
                    _LOG.warning("%s: its rows are not those that the job began with", self.name)
                    return "declined"
            else:
                make_folder(place, private=True)
                write_whole(known, json.dumps(told).encode(), private=True)
            joined = self._jobs.get(job.job)
            if joined is None:
                joined = self._take_up(job, place)
        except (MachineError, FedsynthError, OSError, ValueError, LookupError, TypeError) as error:
            _LOG.warning("%s: %s", self.name, error)
            return "file"
        if session != joined.session:
            joined.session, joined.posts = session, 0
        memory = self._client.memory(job.job)
        memory.participations = max(memory.participations, participations)
        joined.settle(frame.whole("settled"))
        return None

    def _take_up(self, job: Job, place: Path) -> _Joined:
        memory = self._client.memory(job.job)
        if job.plan and not memory.board.version(PLAN):
            memory.board.post(PLAN, job.announced)
        path = place / _ANSWERS
        if path.exists():
            kept = Kept(path, durable=True)
        else:
            # Of rounds that its account knows nobody can tell what was given.
            kept = Kept.create(path, memory.latest + 1, durable=True)
        vector = StateFile(place / _VECTOR)
        memory.answers, memory.vector = kept, vector.slot(0)
        party = journal = None
        if job.budget.trusts.shares:
            party, journal = self._party(job, place, memory.latest + 1)
        memory.rules = None if party is None else self._rules.sums(job)
        joined = self._jobs[job.job] = _Joined(job, party, journal, "", kept, vector)
        return joined

    def _keys(self, job: Job) -> dict[str, bytes]:
        """Who takes part in a job's secure sums, as this owner has them on file."""
        if self._identity is None or not job.budget.trusts.shares:
            return {}
        return {**self._rules.peers, self.name: identity_of(self._identity)}

    def _party(self, job: Job, place: Path, earliest: int) -> tuple[Party, Journal]:
        """This owner in a job's secure sums, as it was kept, and where it is.

        Args:
            earliest: the first round of which its account knows nothing.
        """
        assert self._identity is not None
        roster, path = Roster(job.job, self._keys(job), self._rules.sums(job)), place / _PARTY
        # Where no round was charged nothing was given: peers may still be put right.
        journal = Journal(path, fresh=not (earliest and path.exists()))
        try:
            party = Party(self.name, self._identity, roster, journal.write, journal.last, earliest)
            # Without it rounds that are charged from here on would look as if they had been opened.
            journal.write(party.state)
        except BaseException:
            journal.close()
            raise
        return party, journal

    def _post(self, joined: _Joined, frame: Frame) -> None:
        """Put an announcement up; one that it has is not put up again."""
        sequence, key = frame.whole("sequence", 1), frame.get("key", str)
        if frame.get("session", str) != joined.session or sequence > joined.posts + 1:
            raise FrameError("sequence", "an announcement is missing")
        if sequence > self._rules.most_rounds:
            raise FrameError("oversized", "there are too many announcements")
        if sequence <= joined.posts:
            return
        joined.posts = sequence
        if key != PLAN:
            # The plan is that of the offer, which was judged.
            self._client.memory(frame.get("job", str)).board.post(key, frame.plain["value"])

    def _answer(self, frame: Frame) -> Frame | bytes:
        request, step = unpack_request(frame), unpack_step(frame)
        joined = self._jobs.get(request.job)
        if joined is None:
            return _no(request, "joined")
        try:
            known = joined.kept.find(request.round)
            if known is not None and known[0] == request.digest:
                return self._give(request, joined, known[1], step)
            code = self._refuse(request, joined)
            if code is not None:
                return _no(request, code)
            (reply,) = answer([self._client], request)
            if isinstance(reply, Incident):
                return _no(request, code_of(reply.reason))
            arrays: dict[str, NDArray[Any]] = {_VALUES: reply.values}
            if request.terms.trusts.shares:
                grid = grid_of(request, len(self._rules.peers) + 1)
                arrays = {_SHARE: grid.encode(reply.values)}
            joined.kept.keep(request.round, request.digest, arrays, None)
            joined.share = (request.round, arrays[_SHARE]) if _SHARE in arrays else None
            return self._give(request, joined, arrays, step)
        except Exception as error:
            place = request.task, request.round
            _LOG.info("%s failed in %s, round %d", self.name, *place, exc_info=error)
            return _no(request, _code_of_fault(error), "fail")

    def _give(
        self,
        request: Request,
        joined: _Joined,
        arrays: Mapping[str, NDArray[Any]],
        step: bytes,
    ) -> bytes:
        """What leaves of a round that is answered: of a share of a sum, that there is one, and this
        owner's part in the step that came with the question."""
        if request.terms.trusts.shares:
            assert joined.party is not None
            code, part = self._take_part(joined, step) if step else ("", b"")
            return pack_ready(request, joined.party.standing, code, part)
        return pack_answer(Answer(self.name, request.job, request.round, arrays[_VALUES]))

    def _step(self, frame: Frame) -> Frame:
        """This owner's part in a step of a secure sum."""
        job = frame.get("job", str)
        plain = {"job": job, "round": frame.whole("round"), "exchange": frame.whole("exchange")}
        joined, code, body = self._jobs.get(job), "joined", b""
        if joined is not None:
            code, body = self._take_part(joined, frame.body)
        return Frame("stepped", {**plain, "code": code}, body=body)

    def _take_part(self, joined: _Joined, step: bytes) -> tuple[str, bytes]:
        """Why the site takes no part in a step; or nothing, and its part."""
        if joined.party is None:
            return "sums", b""
        try:
            return "", joined.party.answer(step, joined.contribute)
        except Exception as error:
            _LOG.info("%s takes no part in a step of a secure sum", self.name, exc_info=error)
            return "file" if isinstance(error, MachineError) else "step", b""

    def _refuse(self, request: Request, joined: _Joined) -> str | None:
        """Why a question is not even put to the client; None where it is."""
        rules = self._rules
        if not joined.kept.unsent(request.round):
            return "answered"
        if request.dim + request.kept > rules.most_numbers or request.round >= rules.most_rounds:
            return "limits"
        trust = request.terms.trusts
        if trust.shares and joined.party is None:
            return "sums"
        if trust.protection < joined.job.budget.trusts.protection:
            return "floor"
        return None if knows(request.task) else "known"

    def _end(self, job: str, finished: bool) -> None:
        """Leave a job; of one that is finished, or that the site is not in, nothing stays."""
        was = job in self._jobs
        self._leave(job)
        if not finished or not _NAME.fullmatch(job):
            return
        self._client.forget(job)
        shutil.rmtree(self._folder / job, ignore_errors=True)
        with suppress(OSError):
            self._folder.rmdir()
        if was:
            self.finished.append(job)
            self.over.set()

    def _leave(self, job: str) -> None:
        joined = self._jobs.pop(job, None)
        if joined is not None:
            joined.kept.close()
            joined.vector.close()
            if joined.journal is not None:
                joined.journal.close()


def _first_line(job: Job) -> str:
    """The hash of the first line of a job's ledger."""
    return digest({"line": 0, "kind": "job", **job.to_dict(), "previous": START})


def _no(request: Request, code: str, kind: str = "refuse") -> Frame:
    return Frame(kind, {"job": request.job, "round": request.round, "code": code})


def _code_of_fault(error: Exception) -> str:
    if isinstance(error, PrivacyError) and not isinstance(error, MachineError):
        return "promise"
    return "asked" if isinstance(error, FederationError) else fault_of(error)
