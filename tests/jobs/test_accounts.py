"""Owners' own accounts across jobs: beside their tables, whatever folder a job is run from."""

from __future__ import annotations

import math
from contextlib import ExitStack

import pytest

from fedsynth.errors import ConfigError, MachineError, PrivacyError
from fedsynth.jobs.accounts import account_files, caution_unkept, open_accounts
from fedsynth.jobs.config import Config
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event

TERMS = Terms(unit="record", trust="local", clip=1.0, noise_multiplier=6.0)
PRIVACY = {"epsilon": 1.0, "trust": "central"}


def job(paths, **more) -> Config:
    return Config(sites={"paths": paths}, schema="s.yaml", privacy={**PRIVACY, **more})


def with_ledgers(paths, **ledgers) -> Config:
    return Config(
        sites={"paths": paths}, schema="s.yaml", privacy=PRIVACY, federation={"ledgers": ledgers}
    )


def charge(config, base, times):
    opened = open_accounts(config, config.sites.paths, base)
    with ExitStack() as files:
        for ledger in opened.values():
            files.callback(ledger.close)
        for number in range(times):
            for ledger in opened.values():
                ledger.charge(Event("marginals", number, TERMS, "a"))
    return opened


@pytest.fixture
def base(tmp_path):
    """Two owners' tables in two folders, and a third folder that jobs are run from."""
    for name in ("one", "two", "jobs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "t.csv").touch()
    return tmp_path / "jobs"


FILES = {"north": "../one/t.csv", "süd": "../two/t.csv"}


def test_an_account_lies_beside_its_owners_table_by_whatever_folder_or_link(base):
    expected = {
        "north": base.parent / "one" / "accounts" / "north.jsonl",
        "süd": base.parent / "two" / "accounts" / "s%C3%BCd.jsonl",
    }
    assert account_files(job(FILES), FILES, base) == expected
    far = base / "deeper" / "still"
    far.mkdir(parents=True)
    (far / "linked.csv").symlink_to(base.parent / "one" / "t.csv")
    linked = job({"north": "linked.csv"})
    assert account_files(linked, ["north"], far) == {"north": expected["north"]}
    named = with_ledgers(FILES, folder="mine")
    assert account_files(named, FILES, base)["north"] == base / "mine" / "north.jsonl"


def test_without_a_limit_all_is_counted_and_nothing_refused(base):
    charge(job(FILES), base, 200)
    charge(job(FILES), base, 200)
    opened = charge(job(FILES), base, 0)
    assert [ledger.counts for ledger in opened.values()] == [{TERMS: 400}] * 2
    assert all(math.isinf(ledger.job.budget.epsilon) for ledger in opened.values())
    assert oct(account_files(job(FILES), FILES, base)["north"].stat().st_mode)[-3:] == "600"


def test_the_first_limit_that_is_given_counts_what_was_released_before(base):
    charge(job(FILES), base, 5)
    with pytest.raises(PrivacyError, match=r"north\.jsonl: what was released before costs more"):
        open_accounts(with_ledgers(FILES, epsilon=0.5), FILES, base)
    limited = charge(with_ledgers(FILES, epsilon=3), base, 0)
    assert limited["north"].counts == {TERMS: 5} and limited["north"].job.budget.epsilon == 3
    # It holds for jobs that say nothing of accounts, and for good.
    with pytest.raises(PrivacyError, match="epsilon 3 at delta 1e-05"):
        charge(job(FILES), base, 200)
    with pytest.raises(PrivacyError, match="set once"):
        open_accounts(with_ledgers(FILES, epsilon=4), FILES, base)
    assert not [*(base.parent / "one" / "accounts").glob("*.new")]


def test_another_unit_needs_another_account(base):
    charge(job(FILES), base, 1)
    with pytest.raises(PrivacyError, match="accounts for records, and this job's unit is the cl"):
        open_accounts(job(FILES, unit="client"), FILES, base)


def test_owners_of_one_file_or_of_a_database_keep_none_by_themselves(base):
    simulated = Config(
        data={"path": "t.csv"}, sites={"clients": 3, "scheme": "uniform"}, schema="s.yaml",
        privacy=PRIVACY,
    )  # fmt: skip
    query = {"url": "sqlite:///a.db", "query": "SELECT 1"}
    said: list[str] = []
    for config in (simulated, mixed := job({"north": "t.csv", "south": query})):
        assert open_accounts(config, ["north"], base) == {}
        caution_unkept(config, said.append)
    assert len(said) == 1 and "federation: {ledgers: {folder: accounts}}" in said[0]
    with pytest.raises(ConfigError, match="`ledgers` need `folder`"):
        with_ledgers(mixed.sites.paths, epsilon=3)


def test_a_folder_that_cannot_be_written_is_told_with_the_way_to_name_another(base):
    (base.parent / "one" / "accounts").touch()
    with pytest.raises(MachineError, match=r"one/accounts.*federation: \{ledgers: \{folder"):
        open_accounts(job(FILES), FILES, base)
