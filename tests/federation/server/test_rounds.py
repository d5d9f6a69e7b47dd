"""A round's value is had once, and paid for once, wherever the server is stopped."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from fedsynth.errors import BudgetExceeded, FederationError
from fedsynth.federation.kept import Kept
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.trail.job import Planned
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import Watched, clients, ledger, terms

TASK = "test-vectors"
CENTRAL = terms(noise_multiplier=3.0)


@pytest.fixture
def job(tmp_path):
    """Opens a job's channel, anew as after a kill: with the clients that it is given, or others."""
    account = ledger(path=tmp_path / "ledger.jsonl")
    account.close()
    opened: list[Channel] = []

    def channel(done: int | None = 0, runtime=None, **more) -> Channel:
        for one in opened:
            one.ledger.close()
            one.close(finished=False)
        runtime = runtime or LocalRuntime(clients())
        asking = Channel(
            runtime, Ledger.open(tmp_path / "ledger.jsonl"), NoiseSource(),
            kept=tmp_path / "kept", done=done, **more,
        )  # fmt: skip
        opened.append(asking)
        return asking

    return channel


def lines(channel: Channel) -> int:
    return len(channel.ledger.events)


def killed(monkeypatch, *, before: bool):
    """Has the next value be kept no more, or be kept and used no more."""
    genuine = Kept.keep

    def keep(*given):
        if not before:
            genuine(*given)
        raise KeyboardInterrupt

    monkeypatch.setattr(Kept, "keep", keep)


def test_values_since_the_checkpoint_are_had_again_in_order(job, monkeypatch):
    channel = job()
    first = [channel.sum(TASK, CENTRAL, 3).value for _ in range(4)]
    again = job(done=1)
    assert again.asked == 1
    monkeypatch.setattr(LocalRuntime, "sum", None)
    for value in first[1:]:
        assert again.affords(CENTRAL)
        assert again.sum(TASK, CENTRAL, 3).value.tobytes() == value.tobytes()
    assert (again.asked, lines(again)) == (4, 4)
    monkeypatch.undo()
    fifth = again.sum(TASK, CENTRAL, 3).value
    assert lines(again) == 5 and fifth.tobytes() != first[3].tobytes()


def test_a_choice_and_messages_are_had_again_too(job, monkeypatch):
    choosing = terms(unit="record", mechanism="exponential", norm="l1", noise_multiplier=50.0)
    scores = {"starts": np.arange(3), "weights": np.ones(3), "penalties": np.zeros(3)}
    local = terms(trust="local", noise_multiplier=3.0)

    def ask(channel: Channel) -> tuple[int, list[bytes], tuple[str, ...]]:
        chosen = channel.select(TASK, choosing, np.zeros(3), **scores)
        messages = channel.collect(TASK, local, 3)
        return chosen, [values.tobytes() for values in messages.values], messages.clients

    monkeypatch.setattr(Ledger, "admit", lambda *_: None)
    first = ask(job())
    for name in ("sum", "collect"):
        monkeypatch.setattr(LocalRuntime, name, None)
    assert ask(job()) == first


def test_the_last_round_is_asked_again_under_its_charge(job, monkeypatch):
    channel = job()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed(patch, before=True)
        channel.sum(TASK, CENTRAL, 3)
    again = job()
    assert again.affords(CENTRAL)
    again.sum(TASK, CENTRAL, 3)
    assert lines(again) == 1


def test_the_last_round_is_asked_again_where_to_pay_again_would_leave_too_little(
    tmp_path, monkeypatch
):
    """Its charge stands, so what comes after it is paid as planned."""
    plan = (Planned(TASK, CENTRAL, 1), Planned("after", CENTRAL, 1))
    costs = spent({CENTRAL: 2}, 1e-5).epsilon
    account = ledger(epsilon=costs * 1.01, path=tmp_path / "ledger.jsonl", plan=plan)
    asking = {"kept": tmp_path / "kept", "done": 0}
    channel = Channel(LocalRuntime(clients()), account, NoiseSource(), **asking)
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed(patch, before=True)
        channel.sum(TASK, CENTRAL, 3)
    account.close()
    again = Channel(LocalRuntime(clients()), Ledger.open(account.path), NoiseSource(), **asking)
    assert again.sum(TASK, CENTRAL, 3).answered == 4
    assert again.affords(CENTRAL) and lines(again) == 1
    with pytest.raises(BudgetExceeded):
        again.sum(TASK, CENTRAL, 3), again.sum(TASK, CENTRAL, 3)


@pytest.mark.parametrize("before", [True, False])
def test_another_question_is_another_round(job, monkeypatch, before):
    channel = job()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed(patch, before=before)
        channel.sum(TASK, CENTRAL, 3)
    again = job()
    # Terms, or arrays where there is a value for others: each is asked, and paid for, anew.
    other = {"arrays": {"x": np.ones(2)}}
    promised = CENTRAL
    if before:
        other, promised = {}, replace(CENTRAL, clip=2.0)
    value = again.sum(TASK, promised, 3, **other).value
    assert (lines(again), again.asked) == (2, 2)
    # The first is lost for good, and the second had again.
    last = job()
    assert last.asked == 1
    assert last.sum(TASK, promised, 3, **other).value.tobytes() == value.tobytes()
    assert lines(last) == 2


def test_a_round_that_draws_clients_draws_no_others_under_its_charge(job, monkeypatch):
    drawn = terms(noise_multiplier=3.0, sampling=Poisson(0.5))
    channel = job()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed(patch, before=True)
        channel.sum(TASK, drawn, 3)
    again = job()
    again.sum(TASK, drawn, 3)
    assert lines(again) == 2


def test_one_that_leaves_something_at_its_clients_is_not_asked_again(job, monkeypatch):
    channel = job()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        killed(patch, before=True)
        channel.sum(TASK, CENTRAL, 2, kept=1)
    again = job()
    assert lines(again) == 1
    again.sum(TASK, CENTRAL, 2, kept=1)
    assert lines(again) == 2


def test_a_sum_that_was_opened_and_refused_is_lost(job):
    broken = Watched(clients(), total=lambda summed: replace(summed, total=np.full(3, math.nan)))
    channel = job(runtime=broken)
    with pytest.raises(FederationError, match="unusable"):
        channel.sum(TASK, CENTRAL, 3)
    again = job()
    again.sum(TASK, CENTRAL, 3)
    assert lines(again) == 2


def test_without_its_file_all_that_was_charged_is_lost(job, tmp_path):
    job().sum(TASK, CENTRAL, 3)
    (tmp_path / "kept").unlink()
    again = job()
    assert again.asked == 1
    again.sum(TASK, CENTRAL, 3)
    assert lines(again) == 2


def test_a_checkpoint_lets_go_of_values_and_they_are_not_asked_for_again(job, tmp_path):
    channel = job()
    for _ in range(3):
        channel.sum(TASK, CENTRAL, 3)
    full = (tmp_path / "kept").stat().st_size
    channel.settle()
    assert (tmp_path / "kept").stat().st_size < full / 3
    # Even by a job whose checkpoint was set back.
    assert job(done=1).asked == 3


@pytest.mark.parametrize(("trust", "told"), [("distributed", 1), ("central", 0)])
def test_who_was_missing_is_told_again_unless_that_is_secret(tmp_path, trust, told):
    account = ledger(path=tmp_path / "ledger.jsonl", trust=trust)
    asking, promised = {"kept": tmp_path / "kept", "done": 0}, terms(trust=trust, survivors=3)
    runtime = Watched(clients(), answering=3)
    channel = Channel(runtime, account, NoiseSource(), **asking)
    value = channel.sum(TASK, promised, 3).value
    entries = channel.dropped.entries()
    assert len(entries) == 1
    account.close()
    assert (b"did not answer" in (tmp_path / "kept").read_bytes()) == bool(told)
    again = Channel(LocalRuntime(clients()), Ledger.open(account.path), NoiseSource(), **asking)
    released = again.sum(TASK, promised, 3)
    assert released.value.tobytes() == value.tobytes() and released.answered == 3
    assert again.dropped.entries() == entries[:told]


def test_a_lost_round_that_cannot_be_paid_again_says_how_to_go_on(tmp_path):
    account = ledger(epsilon=1.0, path=tmp_path / "ledger.jsonl")
    asking = {"kept": tmp_path / "kept", "done": 0}
    channel = Channel(LocalRuntime(clients()), account, NoiseSource(), **asking)
    promised = terms(noise_multiplier=6.0)
    while channel.affords(promised):
        channel.sum(TASK, promised, 3)
    charged = lines(channel)
    account.close()
    again = Channel(LocalRuntime(clients()), Ledger.open(account.path), NoiseSource(), **asking)
    assert again.affords(promised)
    with pytest.raises(BudgetExceeded, match="Resume once more"):
        again.sum(TASK, promised, 3, arrays={"x": np.ones(2)})
    again.ledger.close()
    last = Channel(LocalRuntime(clients()), Ledger.open(account.path), NoiseSource(), **asking)
    assert not last.affords(promised)
    assert lines(last) == charged
