"""Owners' accounts across jobs, read."""

from __future__ import annotations

import pytest

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.planning.accounts import read_accounts
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.privacy.filters import admits
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Closing, Event, Job
from fedsynth.privacy.trail.ledger import Ledger

BUDGET = Budget(epsilon=3.0, delta=1e-6, trust="central")
ONE = Terms(unit="record", trust="local", clip=1.0, noise_multiplier=6.0)


@pytest.fixture
def folder(tmp_path):
    """North was asked twice by one job and once by another; south by nobody."""
    for name, jobs in (("north", "aab"), ("s%C3%BCd", "")):
        ledger = Ledger.of_owner(tmp_path / f"{name}.jsonl", BUDGET)
        for number, job in enumerate(jobs):
            ledger.charge(Event("marginals", number, ONE, job))
        ledger.close()
    return tmp_path


def test_spent_and_left_are_what_the_filter_says(folder):
    north, south = read_accounts(folder)
    assert (north.owner, south.owner) == ("north", "süd")
    assert [(share.job, share.releases) for share in north.jobs] == [("a", 2), ("b", 1)]
    assert admits({ONE: 3}, north.spent, 1e-6) and not admits({ONE: 3}, 0.998 * north.spent, 1e-6)
    assert north.jobs[0].spent < north.jobs[1].spent == north.spent < 3
    assert (south.spent, south.jobs) == (0.0, ())
    assert 0 < north.left < south.left < 3
    first, second = north.jobs
    assert first.cost + second.cost == pytest.approx(north.spent)
    assert north.left == second.left < first.left < south.left


def test_what_is_left_is_admitted_and_more_is_not(folder):
    left = read_accounts(folder)[0].left
    for factor, fits in ((1.0, True), (1.01, False)):
        ledger = Ledger.of_owner(folder / "north.jsonl", BUDGET)
        noise = optimal_gaussian_sigma(factor * left, 1e-6)
        more = Terms(unit="record", trust="central", clip=1.0, noise_multiplier=noise)
        assert ledger.would_exceed(more) is not fits
        ledger.close()


def test_jobs_are_named_by_their_folders_and_dated_by_their_releases(folder, tmp_path):
    runs = tmp_path / "runs"
    job = Job(budget=Budget(epsilon=1.0), method="aim", job="a")
    ledger = Ledger.create(job, runs / "first" / "ledger.jsonl")
    ledger.close_by(Closing({}, date="2026-02-28"))
    first, second = read_accounts(folder, runs)[0].jobs
    assert first.release == f"{runs / 'first'} (aim)" and second.release is None
    assert (first.date, second.date) == ("2026-02-28", None)


def test_a_folder_without_accounts_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="no such folder"):
        read_accounts(tmp_path / "none")
    with pytest.raises(ConfigError, match="holds no owner's ledger"):
        read_accounts(tmp_path)
    (tmp_path / "accounts").mkdir()
    (tmp_path / "accounts" / "a.jsonl").write_text("{}\n")
    (tmp_path / "runs").mkdir()
    for folder in (tmp_path, tmp_path / "runs"):
        with pytest.raises(ConfigError, match=r"did you mean .*accounts\?"):
            read_accounts(folder)
    (tmp_path / "x.jsonl").write_text("{}\n")
    with pytest.raises(ReleaseError, match=r"x\.jsonl"):
        read_accounts(tmp_path)
