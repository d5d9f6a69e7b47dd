"""Clients in this process: what a simulation runs on, and other runtimes are tested against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import ConfigError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.grid import Adder
from fedsynth.federation.client.memory import Board
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import Answer, Incident, Plain, Request, Summed
from fedsynth.federation.runtimes.state_file import StateFile
from fedsynth.privacy.trail.job import Job

PRIVATE = ".private"
"""What the names of files of private vectors end in."""
ANSWERS, SHARES, PARTIES = KEPT = (".answers", ".shares", ".parties")
"""And those of what clients keep beside their ledgers: what was given of rounds that are not
settled; of secure sums what each added, and the state of each one's party."""
ANSWERED = "refuses: has answered another request under this number, or let go of its answer"


class LocalRuntime:
    """Asks clients in this process, one after another or those of a cohort together.

    Answers are added as they come, so a sum takes memory for two of them, however many clients
    there are; the server's half gets the sum alone, as secure aggregation would give it.

    Where clients have ledgers of their own, what leaves them together is kept beside the first of
    these until the server has it for good: their account says of a round that it was paid for, and
    this whether it was given. Clients without keep nothing, for a process that was stopped told
    nobody anything.

    Args:
        clients: at least one, each with a name of its own.
        private: folder for the clients' private vectors; None keeps them in memory.
        deadline: seconds that each client may take for an answer; None for any number.

    Raises:
        ConfigError: no clients, or two of one name.
    """

    def __init__(
        self,
        clients: Sequence[Client],
        private: Path | None = None,
        deadline: float | None = None,
    ) -> None:
        self._clients = {client.name: client for client in clients}
        if len(self._clients) < len(clients) or not clients:
            raise ConfigError("a federation needs at least one client, and each its own name")
        self._boards: dict[str, Board] = {}
        self._private = private
        self._files: dict[str, StateFile] = {}
        self._deadline = deadline
        self._kept: dict[str, Kept | None] = {}

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(self._clients)

    @property
    def insecure(self) -> bool:
        return any(client.coins.insecure for client in self._clients.values())

    def open(self, job: str, participations: Mapping[str, int], offered: Job | None = None) -> None:
        board = self._boards.setdefault(job, Board())
        if self._private is not None and job not in self._files:
            self._files[job] = StateFile(self._private / f"{job}{PRIVATE}")
        if job not in self._kept:
            self._kept[job] = kept_of(list(self._clients.values()), job, ANSWERS)
        for index, client in enumerate(self._clients.values()):
            memory = client.memory(job)
            memory.board, memory.answers = board, self._kept[job]
            known = participations.get(client.name, 0)
            memory.participations = max(memory.participations, known)
            if job in self._files:
                memory.vector = self._files[job].slot(index)

    def announce(self, job: str, key: str, value: Plain) -> None:
        self._boards[job].post(key, value)

    def sum(self, request: Request, cohort: Sequence[str]) -> Summed:
        known = self._given(request)
        if known is not None:
            arrays, (answered, told) = known
            return Summed(arrays["total"], answered, incidents_of(told))
        summed = self._add_up(request, cohort)
        if summed.answered < max(request.terms.fewest, summed.needed):
            # As secure aggregation, which opens no sum that lacks noise.
            return replace(summed, total=np.zeros(request.dim))
        self._keep(request, {"total": summed.total}, [summed.answered, plain_of(summed.incidents)])
        return summed

    def collect(
        self, request: Request, cohort: Sequence[str]
    ) -> tuple[list[Answer], list[Incident]]:
        known = self._given(request)
        if known is not None:
            arrays, (names, told) = known
            sent = zip(names, arrays["values"], strict=True)
            answers = [Answer(name, request.job, request.round, values) for name, values in sent]
            return answers, list(incidents_of(told))
        replies = list(self._ask(request, cohort))
        answers = [reply for reply in replies if isinstance(reply, Answer)]
        incidents = [reply for reply in replies if isinstance(reply, Incident)]
        if answers:
            values, names = np.array([one.values for one in answers]), [a.client for a in answers]
            self._keep(request, {"values": values}, [names, plain_of(incidents)])
        return answers, incidents

    def settle(self, job: str, rounds: int) -> None:
        kept = self._kept.get(job)
        if kept is not None:
            kept.settle(rounds)

    def close(self, job: str, *, finished: bool) -> None:
        if job in self._files:
            self._files.pop(job).close(delete=finished)
        kept = self._kept.pop(job, None)
        if kept is not None:
            kept.close(delete=finished)
        if finished:
            self._boards.pop(job, None)
            for client in self._clients.values():
                client.forget(job)

    def _add_up(self, request: Request, cohort: Sequence[str]) -> Summed:
        """The sum of what those asked answer, however few they are."""
        added, answered, incidents = Adder(request, len(cohort)), 0, list[Incident]()
        for reply in self._ask(request, cohort):
            if isinstance(reply, Incident):
                incidents.append(reply)
            else:
                added.add(reply.values)
                answered += 1
        return Summed(added.total, answered, tuple(incidents))

    def _ask(self, request: Request, cohort: Sequence[str]) -> Iterator[Answer | Incident]:
        kept = self._kept.get(request.job)
        if kept is None or kept.unsent(request.round):
            return answer([self._clients[name] for name in cohort], request, self._deadline)
        return (Incident(name, request.round, ANSWERED) for name in cohort)

    def _given(self, request: Request) -> tuple[dict[str, NDArray[Any]], Any] | None:
        """What was given of a round, to the same request."""
        kept = self._kept.get(request.job)
        known = None if kept is None else kept.find(request.round)
        return None if known is None or known[0] != request.digest else known[1:]

    def _keep(self, request: Request, arrays: Mapping[str, NDArray[Any]], plain: Plain) -> None:
        kept = self._kept.get(request.job)
        if kept is not None:
            kept.keep(request.round, request.digest, arrays, plain)


def account_of(clients: Sequence[Client]) -> Path | None:
    """The first ledger on disk that a client has: what clients keep together lies beside it."""
    ledgers = (client.ledger for client in clients if client.ledger is not None)
    return next((ledger.path for ledger in ledgers if ledger.path is not None), None)


def kept_of(clients: Sequence[Client], job: str, ending: str) -> Kept | None:
    """Of a job's rounds what clients gave, where they have ledgers on disk.

    None, too, where the ledgers know the job and the file is gone: what was given is not known.
    """
    account = account_of(clients)
    if account is None:
        return None
    path = account.with_name(f"{job}{ending}")
    if path.exists():
        return Kept(path, durable=True)
    ledgers = [client.ledger for client in clients if client.ledger is not None]
    begun = any(event.job == job for ledger in ledgers for event in ledger.events)
    return None if begun else Kept.create(path, durable=True)


def plain_of(incidents: Sequence[Incident]) -> list[Plain]:
    return [dict(vars(incident)) for incident in incidents]


def incidents_of(told: Any) -> tuple[Incident, ...]:
    return tuple(Incident(**incident) for incident in told)
