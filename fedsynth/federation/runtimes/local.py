"""Clients in this process: what a simulation runs on, and other runtimes are tested against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from fedsynth.errors import ConfigError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.memory import Board
from fedsynth.federation.request import Answer, Incident, Plain, Request, Summed
from fedsynth.federation.runtimes.state_file import StateFile

PRIVATE = ".private"
"""What the names of files of private vectors end in."""


class LocalRuntime:
    """Asks clients in this process, one after another or those of a cohort together.

    Answers are added as they come, so a sum takes memory for two of them, however many clients
    there are; the server's half gets the sum alone, as secure aggregation would give it.

    Args:
        clients: at least one, each with a name of its own.
        private: folder for the clients' private vectors; None keeps them in memory.

    Raises:
        ConfigError: no clients, or two of one name.
    """

    def __init__(self, clients: Sequence[Client], private: Path | None = None) -> None:
        self._clients = {client.name: client for client in clients}
        if len(self._clients) < len(clients) or not clients:
            raise ConfigError("a federation needs at least one client, and each its own name")
        self._boards: dict[str, Board] = {}
        self._private = private
        self._files: dict[str, StateFile] = {}

    @property
    def clients(self) -> tuple[str, ...]:
        return tuple(self._clients)

    @property
    def insecure(self) -> bool:
        return any(client.coins.insecure for client in self._clients.values())

    def open(self, job: str, participations: Mapping[str, int]) -> None:
        board = self._boards.setdefault(job, Board())
        if self._private is not None and job not in self._files:
            self._files[job] = StateFile(self._private / f"{job}{PRIVATE}")
        for index, client in enumerate(self._clients.values()):
            memory = client.memory(job)
            memory.board = board
            known = participations.get(client.name, 0)
            memory.participations = max(memory.participations, known)
            if job in self._files:
                memory.vector = self._files[job].slot(index)

    def announce(self, job: str, key: str, value: Plain) -> None:
        self._boards[job].post(key, value)

    def sum(self, request: Request, cohort: Sequence[str]) -> Summed:
        total, answered, incidents = np.zeros(request.dim), 0, []
        for reply in answer([self._clients[name] for name in cohort], request):
            if isinstance(reply, Incident):
                incidents.append(reply)
            else:
                total += reply.values
                answered += 1
        return Summed(total, answered, tuple(incidents))

    def collect(
        self, request: Request, cohort: Sequence[str]
    ) -> tuple[list[Answer], list[Incident]]:
        replies = list(answer([self._clients[name] for name in cohort], request))
        return (
            [reply for reply in replies if isinstance(reply, Answer)],
            [reply for reply in replies if isinstance(reply, Incident)],
        )

    def close(self, job: str, *, finished: bool) -> None:
        if job in self._files:
            self._files.pop(job).close(delete=finished)
        if finished:
            self._boards.pop(job, None)
            for client in self._clients.values():
                client.forget(job)
