"""Many jobs, in one process and side by side: nothing grows, and no account is overspent.

A cut of it here; all of it (20 jobs, 50 fits, 1,000 samples) by `make load`.
"""

from __future__ import annotations

import gc
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

import fedsynth as fs
from fedsynth.cli import app as cli
from fedsynth.federation.simulation import repeats
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify.verification import require
from tests.methods.small import SCHEMA, owners
from tests.small_jobs import write_job

WHOLE = "FEDSYNTH_LOAD" in os.environ
JOBS, FITS, SAMPLES = (20, 50, 1_000) if WHOLE else (3, 2, 20)
BUDGET = fs.Budget(epsilon=1.0, curious=1)


def handles() -> int:
    gc.collect()
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def growth(work: Callable[[int], object], times: int) -> float:
    """Bytes that each call leaves behind, after two that fill caches."""
    for number in range(2):
        work(number)
    before = handles()
    tracemalloc.start()
    try:
        work(2)
        gc.collect()
        start = tracemalloc.get_traced_memory()[0]
        for number in range(times):
            work(3 + number)
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0] - start
    finally:
        tracemalloc.stop()
    assert handles() == before
    return grown / times


def test_fits_leave_neither_memory_nor_handles_behind(tmp_path, monkeypatch):
    """Of a job with all that one has on disk: checkpoints, private vectors, owners' accounts."""
    monkeypatch.setattr(repeats, "_MOST_JOBS", 2)
    own = fs.Budget(epsilon=100.0, delta=1e-3, trust="central")

    def fit(number: int) -> None:
        account = Ledger.of_owner(tmp_path / f"{number}.jsonl", own)
        try:
            fs.FedVAE(
                SCHEMA, rounds=2, hidden=(8,), latent=2, rate=1.0, pair_share=0.0, encoder="private"
            ).fit(
                owners(20, 20), BUDGET, folder=tmp_path / str(number), progress=False,
                owners_ledgers={"site-0": account},
            )  # fmt: skip
        finally:
            account.close()

    assert growth(fit, FITS) < 30_000


def test_samples_leave_nothing_behind(tmp_path):
    synth = fs.FedInfer(SCHEMA).fit(owners(20, 20), BUDGET, progress=False)
    # But for the digest by which `release` knows them again.
    assert growth(lambda number: synth.sample(5, seed=number), SAMPLES) < 1_000


def test_clients_of_a_hung_or_failed_job_leave_no_handles_behind(tmp_path, monkeypatch):
    def fit(number: int) -> None:
        with pytest.raises(KeyboardInterrupt):
            fs.FedInfer(SCHEMA).fit(
                owners(20, 20), BUDGET, folder=tmp_path / str(number), progress=stop
            )

    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    growth(fit, FITS)


def side_by_side(jobs: list[list[str]]) -> list[int]:
    """The exit codes of command lines, each in a process of its own, all at once."""
    children = []
    for arguments in jobs:
        child = os.fork()
        if child == 0:
            code = 99
            try:
                code = cli.run(arguments)
            finally:
                os._exit(code)
        children.append(child)
    return [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]


def run_lines(tmp_path: Path, **changes: object) -> list[list[str]]:
    job = write_job(tmp_path, method="fedinfer", settings={}, holdout=0, **changes)
    return [["run", str(job), "--out", str(tmp_path / f"r{n}"), "--quiet"] for n in range(JOBS)]


def test_jobs_side_by_side_end_well_each(tmp_path):
    assert side_by_side(run_lines(tmp_path)) == [0] * JOBS
    for number in range(JOBS):
        require(tmp_path / f"r{number}")


def test_jobs_on_one_account_never_both_spend_the_last_of_it(tmp_path):
    """An account that holds one job: its other users are told that it is in use, or spent."""
    accounts = {"folder": "accounts", "epsilon": 7.0, "delta": 1e-4}
    codes = side_by_side(run_lines(tmp_path, federation={"ledgers": accounts}))
    assert codes.count(0) == 1 and set(codes) <= {0, 4, 5}
    for path in (tmp_path / "accounts").glob("*.jsonl"):
        ledger = Ledger.read(path)
        assert ledger.spent().epsilon <= 7.0
        assert len({event.job for event in ledger.events}) == 1
