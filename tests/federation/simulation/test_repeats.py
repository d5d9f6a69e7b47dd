"""Rows that were learned from before in this process: their owner is told what all of it costs."""

from __future__ import annotations

import re

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.data.images import Images
from fedsynth.errors import FederationError
from fedsynth.federation.simulation import repeats
from fedsynth.federation.simulation.repeats import key_of, keys_of, recall
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job
from fedsynth.privacy.trail.ledger import Ledger
from tests.small_jobs import SCHEMA, table

schema = fs.Schema.from_dict(SCHEMA)
TERMS = Terms(unit="record", trust="local", clip=1.0, noise_multiplier=20.0)


@pytest.fixture(autouse=True)
def forgotten(monkeypatch):
    """No other test's rows are remembered here."""
    monkeypatch.setattr(repeats, "_JOBS", {})
    monkeypatch.setattr(repeats, "_forgotten", False)


def told(owners, **options) -> list[str]:
    found: list[str] = []
    budget = {"epsilon": 1.0, "delta": 1e-5, "trust": "local", "units": 1000, **options}
    ledgers = budget.pop("owners_ledgers", None)
    seed = budget.pop("insecure_noise_seed", None)
    made = fs.FedInfer(schema)
    made.fit(owners, budget, caution=found.append, owners_ledgers=ledgers, insecure_noise_seed=seed)
    return [one for one in found if "asked" in one]


def sites(seed: int = 0) -> dict:
    return fs.partition(table(60, 1), 3, "uniform", seed=seed)


def test_the_same_rows_by_another_synthesizer_are_told_with_what_all_of_it_costs(tmp_path):
    assert told(sites()) == []
    (second,) = told(sites())
    assert "asked once before" in second
    (third,) = told(sites())
    assert "asked 2 times before" in third
    figures = re.findall(r"costs epsilon ([\d.]+) at delta 1e-05", second + third)
    assert 1.0 < float(figures[0]) < float(figures[1])
    # The figure has three digits: owners who allow a little more admit both jobs, others do not.
    for place, (share, admitted) in enumerate(((1.01, True), (0.99, False))):
        allowed = fs.Budget(share * float(figures[0]), delta=1e-5, trust="local", units=1000)
        own = {
            name: Ledger.of_owner(tmp_path / f"{name}-{place}.jsonl", allowed) for name in sites()
        }
        told(sites(), owners_ledgers=own)
        if admitted:
            told(sites(), owners_ledgers=own)
            continue
        with pytest.raises(FederationError, match="budget"):
            told(sites(), owners_ledgers=own)


def test_rows_that_are_cut_anew_or_in_another_order_are_the_same():
    told(sites())
    assert (
        len(told(sites(seed=5)))
        == len(told({"all": table(60, 1).sample(frac=1, random_state=0)}))
        == 1
    )


def test_one_owner_s_rows_are_known_among_others_too():
    told({"north": table(20, 1), "south": table(30, 2), "west": table(10, 3)})
    assert len(told({"east": table(20, 4), "north": table(20, 1), "far": table(9, 5)})) == 1


def test_other_rows_are_told_nothing():
    told(sites())
    assert told({"a": table(59, 1), "b": table(61, 1), "c": table(60, 2)}) == []


def test_owners_with_ledgers_of_their_own_count_for_themselves(tmp_path):
    own = Ledger.of_owner(tmp_path / "north.jsonl", fs.Budget(9, delta=1e-3, trust="local"))
    for _ in range(2):
        assert told({"north": table(20, 1)}, owners_ledgers={"north": own}) == []


@pytest.mark.parametrize("options", [{"epsilon": np.inf}, {"insecure_noise_seed": 0}])
def test_jobs_that_promise_nothing_are_left_out(options):
    told(sites(), **options)
    assert told(sites()) == []
    assert told(sites(), **options) == []


def test_a_job_that_is_resumed_is_no_repeat(tmp_path):
    class Crash(Exception):
        pass

    def crash(label, done, total, epsilon):
        raise Crash

    found: list[str] = []
    known = {"epsilon": 1.0, "trust": "local", "units": 1000, "folder": tmp_path / "job"}
    with pytest.raises(Crash):
        fs.FedInfer(schema).fit(sites(), progress=crash, caution=found.append, **known)
    fs.FedInfer(schema).fit(sites(), resume=True, caution=found.append, **known)
    assert [one for one in found if "asked" in one] == []


def test_records_and_clients_of_the_same_rows_add_up_where_that_is_known():
    told(sites(), unit="client", units=None)
    (record,) = told(sites())
    assert "costs epsilon" in record
    (client,) = told(sites(), unit="client", units=None)
    assert "no epsilon is known that holds for all of it together" in client


def test_keys_tell_rows_apart_and_tables_without_any_have_none():
    assert key_of(table(9, 1)) != key_of(table(9, 2))
    assert key_of(table(9, 1)[:0]) is None
    assert keys_of([None]) == set()
    pixels = np.arange(12, dtype=np.uint8).reshape(3, 2, 2)
    labels = np.array([0, 1, 1])
    images = Images(pixels, labels)
    assert key_of(images) == key_of(images.take(np.array([2, 0, 1])))
    assert key_of(images) != key_of(Images(pixels)) != key_of(Images(pixels, labels[::-1].copy()))


def test_a_process_that_fits_day_and_night_remembers_the_last_jobs_and_says_so(monkeypatch):
    monkeypatch.setattr(repeats, "_MOST_JOBS", 3)
    keys = [(("a",), 5, number) for number in range(9)]

    def begun(asked) -> str | None:
        account = Ledger.create(Job(budget=fs.Budget(epsilon=1.0, trust="local")))
        said = recall(asked, account)
        account.charge(Event("task", 0, TERMS, account.job.job))
        return said

    for number in range(8):
        assert begun([keys[number]]) is None
        assert len(repeats._JOBS) == min(number + 1, 3)
    assert begun([keys[0]]) is None
    said = begun([keys[7]])
    assert said is not None and "once before in this process (of the last 3 jobs; there" in said
    # Tables count too: of a thousand owners each job has as many.
    monkeypatch.setattr(repeats, "_MOST_KEYS", 5)
    begun(keys[:4])
    begun(keys[4:8])
    assert len(repeats._JOBS) == 1
    begun(keys)
    assert len(repeats._JOBS) == 1
