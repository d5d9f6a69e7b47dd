"""What owners have left across jobs: the ledgers that they keep of their own, read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.privacy.accounting import charged
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.filters import admits, least_epsilon
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.certificate import LEDGER
from fedsynth.privacy.trail.job import Event
from fedsynth.privacy.trail.ledger import Ledger

_STEPS = 40


@dataclass(frozen=True)
class Share:
    """What one job took of an owner's account.

    Attributes:
        job: its random name, and ``release`` the folder and method where that is known.
        date: of its release, as 2026-01-31, where that is known.
        releases: that it was charged with.
        cost: what it added to ``spent``.
        spent, left: of the account after it (:class:`OwnersAccount`).
    """

    job: str
    release: str | None
    date: str | None
    releases: int
    cost: float
    spent: float
    left: float


@dataclass(frozen=True)
class OwnersAccount:
    """An owner's own account across jobs.

    Attributes:
        owner: its name.
        unit: whose presence the account protects.
        epsilon, delta: its limit, set by the first job that gave one; infinite until then.
        spent: the least epsilon at that delta whose filter admits all that was released: a filter
            counts, so that each job may be chosen by what earlier ones released.
        left: epsilon of the largest release of everybody, Gaussian and at the account's delta, that
            it still admits: what a further job of one message, or of several together, may cost;
            infinite without a limit.
        jobs: in order.
    """

    owner: str
    unit: str
    epsilon: float
    delta: float
    spent: float
    left: float
    jobs: tuple[Share, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain content, for JSON."""
        from dataclasses import asdict

        return asdict(self)


def read_accounts(folder: Path, runs: Path | None = None) -> tuple[OwnersAccount, ...]:
    """The accounts in a folder: `accounts` beside owners' tables, or of `federation: ledgers`.

    Args:
        runs: a folder of jobs, to tell by which releases each was charged.

    Raises:
        ConfigError: there is no such folder, or no account in it.
        ReleaseError: a ledger is damaged.
    """
    if not folder.is_dir():
        raise ConfigError(
            f"{folder}: no such folder; accounts lie in `accounts` beside a "
            "job's tables, or where its `federation: ledgers` says"
        )
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        near = (folder / "accounts", folder.parent / "accounts")
        found = next((place for place in near if any(place.glob("*.jsonl"))), None)
        meant = "" if found is None else f"; did you mean {found}?"
        raise ConfigError(f"{folder} holds no owner's ledger (NAME.jsonl){meant}")
    names = {} if runs is None else _names(runs)
    return tuple(_read(file, names) for file in files)


def _read(file: Path, names: dict[str, tuple[str, str | None]]) -> OwnersAccount:
    ledger = Ledger.read(file)
    if ledger.job.plan:
        raise ConfigError(
            f"{file} is the ledger of a job, not an owner's account: `fedsynth verify` reads it"
        )
    budget, counts, shares = ledger.job.budget, dict[Terms, int](), list[Share]()
    for job, events in _by_job(ledger.events).items():
        for event in events:
            counts[event.terms] = counts.get(event.terms, 0) + event.steps
        before = shares[-1].spent if shares else 0.0
        spent = least_epsilon(charged(counts, unit=budget.unit), budget.resolved_delta)
        release, date = names.get(job, (None, None))
        left = _left(counts, budget)
        shares.append(Share(job, release, date, len(events), spent - before, spent, left))
    owner, spent = unquote(file.stem), shares[-1].spent if shares else 0.0
    left = shares[-1].left if shares else _left(counts, budget)
    return OwnersAccount(
        owner, budget.unit, budget.epsilon, budget.resolved_delta, spent, left, tuple(shares)
    )


def _by_job(events: tuple[Event, ...]) -> dict[str, list[Event]]:
    """In the order of their first releases."""
    found: dict[str, list[Event]] = {}
    for event in events:
        found.setdefault(event.job, []).append(event)
    return found


def _left(counts: dict[Terms, int], budget: Budget) -> float:
    """The largest epsilon of one more Gaussian release of everybody, to a thousandth, never above.

    Its noise is the optimal one at the account's delta.
    """
    delta = budget.resolved_delta
    if not budget.private:
        return math.inf

    def fits(epsilon: float) -> bool:
        noise = optimal_gaussian_sigma(epsilon, delta)
        more = Terms(
            unit=budget.unit, trust="central", clip=1.0, noise_multiplier=noise, weigh=budget.weigh
        )
        wanted = {**charged(counts, unit=budget.unit)}
        wanted[more] = wanted.get(more, 0) + 1
        return admits(wanted, budget.epsilon, delta)

    low, high = 1e-3, budget.epsilon
    if not fits(low):
        return 0.0
    for _ in range(_STEPS):
        if high - low <= 1e-3 * high:
            break
        middle = (low + high) / 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _names(runs: Path) -> dict[str, tuple[str, str | None]]:
    """Jobs' random names; the folders and methods that they are of, and the days of releases."""
    if not runs.is_dir():
        raise ConfigError(f"{runs}: no such folder of jobs")
    found = {}
    for file in sorted(runs.glob(f"*/{LEDGER}")):
        try:
            ledger = Ledger.read(file)
        except ReleaseError:
            continue
        job, closing = ledger.job, ledger.closing
        where = f"{file.parent} ({job.method})" if job.method else str(file.parent)
        found[job.job] = where, (closing.date or None) if closing is not None else None
    return found
