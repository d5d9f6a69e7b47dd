"""Rows that were learned from before in this process, as their owners remember it.

Certificates are of one job, and owners' ledgers of all jobs, where there are any; without them a
notebook's cell that is run again costs again, and nobody says so. What is remembered, in this
process's memory alone, are hashes of whole tables (and of all owners' together): rows added,
changed or left out make another one. Jobs without privacy, or with known noise, are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import numpy as np
import pandas as pd

from fedsynth.data.images import Images
from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import DataError
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.repeats import cost_together

Key = tuple[tuple[str, ...], int, int]
"""Columns, number of rows, and a sum over the rows that does not hang on their order."""

_MOST_JOBS, _MOST_KEYS = 100, 100_000
_JOBS: dict[str, tuple[frozenset[Key], Ledger]] = {}
"""Of a job's name the tables that it asked and its ledger, of the last jobs: whoever fits day and
night is told of so many, and that there were others."""
_forgotten = False
_APART: ContextVar[bool] = ContextVar("apart", default=False)


def key_of(rows: pd.DataFrame | Images) -> Key | None:
    """Of one owner's rows; None where there are none, or cells that are no values."""
    if not len(rows):
        return None
    if isinstance(rows, Images):
        flat = rows.pixels.reshape(len(rows), -1)
        labels = rows.labels if rows.labels is not None else np.zeros(len(rows), np.int64)
        # Python's own hash is another one in every process.
        hashes = (
            hashlib.blake2b(pixels.tobytes(), digest_size=8, salt=int(y).to_bytes(8)).digest()
            for pixels, y in zip(flat, labels, strict=True)
        )
        total = sum(map(int.from_bytes, hashes)) % 2**64
        return (str(rows.pixels.shape[1:]),), len(rows), total
    try:
        found = pd.util.hash_pandas_object(rows, index=False).to_numpy()
    except TypeError:
        return None
    return tuple(map(str, rows.columns)), len(rows), int(found.sum(dtype=np.uint64))


def keys_of(owners: Iterable[Key | None]) -> set[Key]:
    """Of every owner that has rows, and of all their rows together, however they were cut."""
    known = [key for key in owners if key is not None]
    kinds = {columns for columns, _, _ in known}
    rows, total = sum(rows for _, rows, _ in known), sum(total for _, _, total in known)
    return {*known, *((columns, rows, total % 2**64) for columns in kinds if len(kinds) == 1)}


def demand_same(path: Path, keys: Mapping[str, Key | None], *, begun: bool) -> None:
    """Keep what the owners' rows of a job are, or hold them against what was kept.

    Args:
        path: of a file that is its owners' alone, as their private vectors are: whoever guesses a
            table can test the guess.
        keys: by owner's name.
        begun: whether the job has charged anything.

    Raises:
        DataError: rows are others, or nothing tells what they were.
    """
    now = {name: hashlib.sha256(repr(key).encode()).hexdigest() for name, key in keys.items()}
    if not begun:
        make_folder(path.parent, private=True)
        write_whole(path, json.dumps(now).encode(), private=True)
        return
    try:
        before = dict(json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        raise DataError(
            f"{path} is missing or damaged: it tells whether the owners' rows are those that the "
            "job began with, without which it is not resumed. Start a new job in another folder; "
            "what both cost adds up"
        ) from None
    others = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if others:
        raise DataError(
            f"the rows of {', '.join(others)} are not those that the job began with: another "
            "table, or cut otherwise. Resume it with the same, or start a new job in another "
            "folder; what both cost adds up"
        )


@contextmanager
def apart() -> Iterator[None]:
    """Jobs in this context are neither remembered nor told of: somebody else accounts for them."""
    before = _APART.set(True)
    try:
        yield
    finally:
        _APART.reset(before)


def recall(keys: Iterable[Key], ledger: Ledger) -> str | None:
    """Remember a job that begins, and say what it and earlier ones on the same rows cost together.

    Args:
        keys: of the tables that it asks.
    """
    global _forgotten
    job = ledger.job
    if job.insecure or not job.budget.private or _APART.get():
        return None
    asked = frozenset(keys)
    earlier = {
        name: told
        for name, (known, told) in _JOBS.items()
        if told.events and name != job.job and not asked.isdisjoint(known)
    }
    known, _ = _JOBS.pop(job.job, (frozenset[Key](), ledger))
    _JOBS[job.job] = known | asked, ledger
    while len(_JOBS) > 1 and (
        len(_JOBS) > _MOST_JOBS or sum(len(known) for known, _ in _JOBS.values()) > _MOST_KEYS
    ):
        del _JOBS[next(iter(_JOBS))]
        _forgotten = True
    if not earlier:
        return None
    cost = cost_together(job.budget, job.plan, job.participations, earlier.values())
    times = "once" if len(earlier) == 1 else f"{len(earlier)} times"
    last = f" (of the last {len(_JOBS)} jobs; there were more)" if _forgotten else ""
    return (
        f"the same rows were asked {times} before in this process{last}: {cost}, and the "
        "certificate of this job tells its own part alone. Give owners ledgers (owners_ledgers) to "
        "have it counted and bounded"
    )
