"""Clients in this process whose shares nobody adds up but by the whole protocol of secure sums.

A round is made as over a network: frames go to each owner's party and back, and the server's half
gets what its leader opens. What owners answer lies in memory together until then.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import ConfigError, FederationError, PrivacyError, ReleaseError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.floor import read_plan
from fedsynth.federation.client.grid import Grid, Whole, grid_of
from fedsynth.federation.kept import Kept
from fedsynth.federation.request import PLAN, Incident, Request, Summed
from fedsynth.federation.runtimes.gathering import following, open_sum
from fedsynth.federation.runtimes.local import (
    ANSWERED,
    PARTIES,
    SHARES,
    LocalRuntime,
    account_of,
    incidents_of,
    kept_of,
    plain_of,
)
from fedsynth.federation.secure.carrying import Sums
from fedsynth.federation.secure.leader import Opened
from fedsynth.federation.secure.masks import KEY, identity_of
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Roster, Rules
from fedsynth.privacy.trail.job import Job


class SecureRuntime(LocalRuntime):
    """As :class:`LocalRuntime`, but for sums under distributed trust.

    Where clients have ledgers of their own, contributions are on disk before anything of them
    leaves, and parties' states before an answer does; a round that is asked again is the same
    attempt again or, where nothing of it was opened, another one with the same contributions.

    Args:
        rules: of cohort, threshold and curious owners; the cohort is all clients.

    Raises:
        ConfigError: of another number of clients.
    """

    def __init__(
        self,
        clients: Sequence[Client],
        rules: Rules,
        private: Path | None = None,
        deadline: float | None = None,
    ) -> None:
        super().__init__(clients, private, deadline)
        if rules.cohort != len(clients):
            raise ConfigError(f"secure sums of {rules.cohort} owners, and there are {len(clients)}")
        self._rules = rules
        self._owners: dict[str, Owners] = {}
        self._shares: dict[str, Kept | None] = {}

    def open(self, job: str, participations: Mapping[str, int], offered: Job | None = None) -> None:
        super().open(job, participations, offered)
        clients = list(self._clients.values())
        if job not in self._owners:
            self._owners[job] = Owners(job, clients, self._rules)
        if job not in self._shares:
            self._shares[job] = kept_of(clients, job, SHARES)
        for client in clients:
            client.memory(job).rules = self._rules

    def settle(self, job: str, rounds: int) -> None:
        super().settle(job, rounds)
        kept = self._shares.get(job)
        if kept is not None:
            kept.settle(rounds)

    def close(self, job: str, *, finished: bool) -> None:
        super().close(job, finished=finished)
        kept = self._shares.pop(job, None)
        if kept is not None:
            kept.close(delete=finished)
        if finished and job in self._owners:
            self._owners.pop(job).forget()

    def _add_up(self, request: Request, cohort: Sequence[str]) -> Summed:
        if not request.terms.trusts.shares:
            return super()._add_up(request, cohort)
        needed, grid = self._rules.threshold, grid_of(request, self._rules.cohort)
        given, incidents = self._contribute(request, cohort, grid)
        if len(given) < needed:
            return Summed(np.zeros(request.dim), len(given), incidents, needed)
        owners = self._owners[request.job]
        opened = owners.add_up(request, grid, given, self._following(request))
        return open_sum(request, grid, needed, opened, given, owners.heard, incidents)

    def _contribute(
        self, request: Request, cohort: Sequence[str], grid: Grid
    ) -> tuple[dict[str, Whole], tuple[Incident, ...]]:
        """What clients give to a sum, the same as before if they gave it; and who gives nothing."""
        kept = self._shares[request.job]
        known = None if kept is None else kept.find(request.round)
        if known is not None and known[0] == request.digest:
            names, told = known[2]
            return dict(zip(names, known[1]["given"], strict=True)), incidents_of(told)
        if kept is not None and not kept.unsent(request.round):
            return {}, tuple(Incident(name, request.round, ANSWERED) for name in cohort)
        given, incidents = dict[str, Whole](), list[Incident]()
        for reply in self._ask(request, cohort):
            if isinstance(reply, Incident):
                incidents.append(reply)
            else:
                given[reply.client] = grid.encode(reply.values)
        if kept is not None and len(given) >= self._rules.threshold:
            arrays = {"given": np.array(list(given.values()))}
            kept.keep(request.round, request.digest, arrays, [list(given), plain_of(incidents)])
        return given, tuple(incidents)

    def _following(self, request: Request) -> int | None:
        """The round whose keys come with this one's; None for the last that is planned."""
        board = self._boards[request.job]
        plan, _ = board.read(PLAN, read_plan) if board.version(PLAN) else ((), None)
        return following(request.round, plan)


class Owners:
    """A job's parties in this process, each with a key of its own, and their leader.

    Args:
        clients: what they keep on disk lies beside the first ledger that one of them has there.

    Attributes:
        heard: who answered the last exchange.

    Raises:
        ReleaseError: what was kept is damaged.
    """

    def __init__(self, job: str, clients: Sequence[Client], rules: Rules) -> None:
        account = account_of(clients)
        self._path = None if account is None else account.with_name(f"{job}{PARTIES}")
        known = _read(self._path) if self._path is not None and self._path.exists() else {}
        self._secrets = {name: secret for name, (secret, _) in known.items()} or {
            client.name: os.urandom(KEY) for client in clients
        }
        public = {name: identity_of(secret) for name, secret in self._secrets.items()}
        self._roster = Roster(job, public, rules)
        self._parties: dict[str, Party] = {}
        for client in clients:
            state = known[client.name][1] if known else None
            self._parties[client.name] = Party(
                client.name,
                self._secrets[client.name],
                self._roster,
                # All are kept together, before any answer leaves.
                lambda state: None,
                state,
                client.memory(job).latest + 1,
            )
        self._write()
        self._sums = Sums(self._roster)
        self.heard: list[str] = []

    def add_up(
        self, request: Request, grid: Grid, given: Mapping[str, Whole], following: int | None
    ) -> Opened | None:
        """The sum of a round, as :meth:`Sums.add_up`.

        Args:
            given: contributions by client.
        """
        standings = {name: party.standing for name, party in self._parties.items()}
        shape = request.round, request.dim, grid.kind
        return self._sums.add_up(
            *shape, following, standings, lambda asked: self._exchange(asked, given)
        )

    def forget(self) -> None:
        """Delete what is kept."""
        if self._path is not None:
            self._path.unlink(missing_ok=True)

    def _exchange(
        self, asked: Mapping[str, bytes], given: Mapping[str, Whole]
    ) -> Iterator[tuple[str, bytes]]:
        """Owners' answers, which leave once states are on disk, if they are to be."""
        self.heard = []
        replies = self._answers(asked, given)
        if self._path is not None:
            replies = iter(list(replies))
            self._write()
        for name, reply in replies:
            self.heard.append(name)
            yield name, reply

    def _answers(
        self, asked: Mapping[str, bytes], given: Mapping[str, Whole]
    ) -> Iterator[tuple[str, bytes]]:
        """The answers of those that do not refuse; of who gives nothing, none that needs it."""
        for name, frame in asked.items():
            own = given.get(name)
            contribute = None if own is None else lambda round, own=own: own
            try:
                answer = self._parties[name].answer(frame, contribute)
            except (FederationError, PrivacyError):
                continue
            yield name, answer

    def _write(self) -> None:
        if self._path is not None:
            plain = {
                name: [self._secrets[name].hex(), party.state.hex()]
                for name, party in self._parties.items()
            }
            make_folder(self._path.parent)
            write_whole(self._path, json.dumps(plain).encode(), private=True)


def _read(path: Path) -> dict[str, list[bytes]]:
    """Each owner's secret identity, and its party's state."""
    try:
        plain = json.loads(path.read_bytes())
        return {name: [bytes.fromhex(one) for one in parts] for name, parts in plain.items()}
    except (ValueError, AttributeError, TypeError):
        raise ReleaseError(
            f"{path} is damaged, and without it no round of this job is opened any more"
        ) from None
