"""How far a job is, by its folder and its server's log; another process may be at work on it."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

from fedsynth.errors import ConfigError
from fedsynth.files import LINES, read_plain
from fedsynth.privacy.trail.certificate import CONFIG, LEDGER
from fedsynth.privacy.trail.job import Planned
from fedsynth.privacy.trail.ledger import Ledger, has_begun
from fedsynth.release import is_release


@dataclass(frozen=True)
class Status:
    """How far a job is.

    Attributes:
        finished: its release is written.
        asked, planned: releases by label, in the plan's order; more are asked than planned where
            answers were lost.
        epsilon, of: spent so far, and the budget's.
        owners: whether each that ever joined is there, by the server's log.
        seconds, bytes: that the last round took, and that all sites sent and were sent since the
            server started; None without a log.
    """

    finished: bool
    asked: dict[str, int]
    planned: dict[str, int]
    epsilon: float
    of: float
    owners: dict[str, bool]
    seconds: float | None = None
    bytes: int | None = None


def status_of(folder: Path, log: Path | None = None) -> Status:
    """How far the job in a folder is.

    Args:
        log: of `fedsynth serve --log`.

    Raises:
        ConfigError: the folder holds no job, or the log is none.
        ReleaseError: the ledger is damaged.
    """
    if not (folder / CONFIG).exists():
        raise ConfigError(f"{folder} holds no job ({CONFIG} is missing)")
    owners, last = dict[str, bool](), dict[str, float]()
    if log is not None:
        owners, last = _read_log(log)
    seconds, size = last.get("took"), last.get("bytes")
    told = owners, seconds, None if size is None else int(size)
    if not has_begun(folder / LEDGER):
        return Status(False, {}, {}, 0.0, 0.0, *told)
    ledger = Ledger.read(folder / LEDGER)
    asked, planned = Counter[str](), Counter[str]()
    left = Counter[Planned]()
    for one in ledger.job.plan:
        planned[one.label] += one.count
        left[one] += one.count
    for event in ledger.events:
        # Plans name what a message is for, events what it asks: terms tell which is which, but for
        # a clip that was chosen later.
        noise = replace(event.terms, clip=1.0)
        like = (one for one in ledger.job.plan if replace(one.terms, clip=1.0) == noise)
        like = (one for one in like if left[one] > 0)
        found = next(like, None)
        if found is not None:
            left[found] -= event.steps
        asked[event.label if found is None else found.label] += event.steps
    spent, budget = ledger.spent().epsilon, ledger.job.budget.epsilon
    return Status(is_release(folder), dict(asked), dict(planned), spent, budget, *told)


def _read_log(path: Path) -> tuple[dict[str, bool], dict[str, float]]:
    """Who is there, and the last round."""
    owners, last = dict[str, bool](), dict[str, float]()
    try:
        for line in read_plain(path, ConfigError, LINES).splitlines():
            event = json.loads(line)
            if event["event"] in ("joined", "left"):
                owners[str(event["owner"])] = event["event"] == "joined"
            elif event["event"] == "round":
                last = {"took": float(event["took"]), "bytes": float(event["bytes"])}
    except (ValueError, LookupError, TypeError):
        raise ConfigError(f"{path} is no log of `fedsynth serve --log`") from None
    return owners, last
