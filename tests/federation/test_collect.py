"""Messages that are each private on their own, and training at a client."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import BudgetExceeded, FederationError, PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.steps import Steps
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.trail.certificate import certify
from fedsynth.privacy.trail.job import Event, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify.verification import require
from tests.federation.vectors import channel, clients, ledger, terms

LOCAL = {"trust": "local", "unit": "record"}


class Walk:
    """Adds up as many noisy sums as the settings say; the message is their total."""

    name = "test-walk"

    def __init__(self) -> None:
        self.samples: list[int] = []

    def learn(self, steps: Steps, request):
        total = np.zeros(request.dim)
        for _ in range(int(request.settings.get("take", request.steps))):
            total += steps.sum(self._rows)
        return total

    def _rows(self, client, sample):
        self.samples.append(len(sample))
        return DenseRows(client.data[sample])


class Repeating(Walk):
    name = "test-repeating"

    def _rows(self, client, sample):
        return DenseRows(np.ones((len(sample) + 1, 3)))


WALK = register(Walk())
register(Repeating())


def test_each_message_is_its_clients_own_sum():
    owners = clients(3)
    for place, client in enumerate(owners):
        client.data = np.full((2, 3), 0.1 * (place + 1))
        client.records = 2
    collected = channel(owners, ledger("record")).collect(
        "test-vectors", terms(**LOCAL, noise_multiplier=0.0), 3
    )
    assert collected.clients == ("c0", "c1", "c2")
    assert np.allclose(collected.values, [[0.2] * 3, [0.4] * 3, [0.6] * 3])
    assert collected.asked == 3


def test_each_message_carries_the_whole_noise():
    collected = channel(clients(800, value=0.0), seed=1).collect(
        "test-vectors", terms(trust="local", clip=2.0, noise_multiplier=3.0), 3
    )
    # 2,400 draws of a standard deviation of 6: within five standard errors.
    assert abs(collected.values.std() - 6.0) < 5 * 6.0 / math.sqrt(2 * 2400)


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_messages_that_lean_on_others_noise_are_never_collected(trust: str):
    account = ledger("record")
    with pytest.raises(PrivacyError, match="collected under local trust"):
        channel(clients(), account).collect("test-vectors", terms(unit="record", trust=trust), 3)
    assert not account.events


def test_all_messages_together_cost_what_one_costs():
    promised = terms(**LOCAL, noise_multiplier=4.0)
    costs = []
    for count in (1, 50):
        account = ledger("record", trust="local")
        channel(clients(count), account).collect("test-vectors", promised, 3)
        costs.append(account.spent().epsilon)
    assert costs[0] == costs[1] == spent({promised: 1}, 1e-5).epsilon


def test_the_certificate_explains_parallel_composition_where_messages_stand_alone():
    for trust, explained in (("local", True), ("distributed", False), ("central", False)):
        account = ledger("record", trust=trust)
        said = certify(account, {}).content["guarantee"]["trust_in_words"]
        assert ("parallel composition" in said) is explained
    whole = certify(ledger("client", trust="local"), {}).content["guarantee"]["trust_in_words"]
    assert "parallel" not in whole


def test_a_clients_training_is_charged_step_by_step_before_it_begins():
    promised = terms(**LOCAL, noise_multiplier=2.0, sampling=Poisson(0.1))
    account = ledger("record", epsilon=50.0, trust="local")
    collected = channel(clients(3, records=20), account).collect("test-walk", promised, 3, steps=40)
    assert collected.values.shape == (3, 3)
    assert account.events == (Event("test-walk", 0, promised, account.job.job, 40),)
    assert account.counts == {promised: 40}
    assert account.spent().epsilon == spent({promised: 40}, 1e-5).epsilon


def test_training_past_the_budget_never_begins():
    promised = terms(**LOCAL, noise_multiplier=2.0)
    whole = spent({promised: 10}, 1e-5).epsilon
    plan = (Planned("test-walk", promised, 10),)
    account = ledger("record", epsilon=whole * 1.001, trust="local", plan=plan)
    WALK.samples.clear()
    with pytest.raises(BudgetExceeded):
        channel(clients(), account).collect("test-walk", promised, 3, steps=11)
    assert not WALK.samples
    channel(clients(), account).collect("test-walk", promised, 3, steps=10)


def test_a_client_takes_no_more_steps_than_were_charged():
    promised = terms(**LOCAL, noise_multiplier=2.0)
    with pytest.raises(PrivacyError, match="all 5 steps are taken"):
        channel(clients(), ledger("record")).collect(
            "test-walk", promised, 3, steps=5, settings={"take": 6}
        )


def test_a_client_may_take_fewer_steps():
    promised = terms(**LOCAL, noise_multiplier=0.0)
    collected = channel(clients(2), ledger("record")).collect(
        "test-walk", promised, 3, steps=5, settings={"take": 2}
    )
    assert np.allclose(collected.values, 0.2)


def test_steps_draw_records_by_coin_flips_and_an_empty_sample_is_noised():
    promised = terms(**LOCAL, noise_multiplier=1.0, sampling=Poisson(0.05))
    WALK.samples.clear()
    collected = channel(
        clients(1, records=10), seed=3, account=ledger("record", insecure=True)
    ).collect("test-walk", promised, 3, steps=400)
    drawn = np.array(WALK.samples)
    assert abs(drawn.mean() - 0.5) < 5 * math.sqrt(10 * 0.05 * 0.95 / 400)
    assert (drawn == 0).any()
    assert np.isfinite(collected.values).all()


def test_a_steps_noise_has_the_accounted_deviation_and_clips_every_row():
    promised = terms(**LOCAL, clip=0.5, noise_multiplier=2.0)
    owners = clients(1000, records=1, value=100.0)
    collected = channel(owners, seed=5, account=ledger("record", insecure=True)).collect(
        "test-walk", promised, 3, steps=1
    )
    assert abs(collected.values.std() - 1.0) < 5 / math.sqrt(2 * 3000)
    assert np.allclose(collected.values.mean(axis=0), 0.5 / math.sqrt(3), atol=5 / math.sqrt(1000))


def test_a_step_with_more_rows_than_records_is_refused():
    with pytest.raises(PrivacyError, match="more rows"):
        channel(clients(), ledger("record")).collect("test-repeating", terms(**LOCAL), 3, steps=1)


def test_training_and_sums_are_not_taken_for_each_other():
    where = channel(clients(), ledger("record"))
    with pytest.raises(FederationError, match="gives no sum"):
        where.sum("test-walk", terms(unit="record"), 3)
    with pytest.raises(FederationError, match="does not train"):
        where.collect("test-vectors", terms(**LOCAL), 3, steps=2)
    with pytest.raises(FederationError, match="does not know"):
        where.collect("test-unheard-of", terms(**LOCAL), 3, steps=2)


@pytest.mark.parametrize("unit, steps", [("client", 2), ("record", 0)])
def test_training_needs_steps_and_records(unit: str, steps: int):
    with pytest.raises(PrivacyError):
        channel(clients()).collect("test-walk", terms(trust="local", unit=unit), 3, steps=steps)


@pytest.mark.parametrize(
    "trust, unit",
    [("central", "record"), ("distributed", "record"), ("local", "client")],
)
def test_a_client_itself_refuses_to_train_with_less_than_all_of_the_noise(trust: str, unit: str):
    # Whatever the server checks: a share of the noise in every step would protect nobody.
    promised = terms(trust=trust, unit=unit, noise_multiplier=1.0, survivors=1000)
    asked = Request("test-walk", promised, 3, job="job", steps=5)
    with pytest.raises(PrivacyError, match=r"local trust alone|hides records"):
        list(answer(clients(1), asked))


@pytest.mark.parametrize("steps", [0, -1, 1.5, True])
def test_an_event_takes_a_whole_number_of_steps(steps):
    with pytest.raises(PrivacyError):
        Event("x", 0, terms(), "job", steps)


def test_a_ledger_keeps_steps_over_a_restart_and_verifies(tmp_path):
    promised = terms(**LOCAL, noise_multiplier=3.0, sampling=Poisson(0.2))
    path = tmp_path / "ledger.jsonl"
    plan = (Planned("walk", promised, 31),)
    account = ledger("record", epsilon=20.0, path=path, trust="local", plan=plan, format=1)
    channel(clients(records=9), account).collect("test-walk", promised, 3, steps=30)
    channel(clients(records=9), account).collect("test-vectors", promised, 3)
    account.close()
    again = Ledger.read(path)
    assert [event.steps for event in again.events] == [30, 1]
    assert again.head == account.head
    assert again.spent() == account.spent()
    certificate = certify(again, {"ledger.jsonl": _sha(path)})
    assert [r.get("steps", 1) for r in certificate.content["releases"]] == [30, 1]
    certificate.save(tmp_path)
    require(tmp_path)


def _sha(path):
    from fedsynth.privacy.trail.certificate import sha256

    return sha256(path)


def test_an_owner_refuses_training_past_its_own_budget():
    promised = terms(**LOCAL, noise_multiplier=2.0)
    owners = clients(3)
    owners[1].ledger = ledger("record", spent({promised: 9}, 1e-5).epsilon * 1.001, trust="local")
    collected = channel(owners, ledger("record")).collect("test-walk", promised, 3, steps=10)
    assert collected.clients == ("c0", "c2")
    assert [i.reason for i in collected.incidents] == ["refuses: its own budget is spent"]


def test_traffic_is_what_went_over_the_wire():
    where = channel(clients(4), ledger("record"))
    before = dataclasses.replace(where.traffic)
    where.announce("edges", {"a": 1})
    where.collect(
        "test-vectors", terms(**LOCAL), 3, arrays={"w": np.zeros(5, np.float32)}, settings={"k": 2}
    )
    where.sum("test-vectors", terms(unit="record"), 3)
    traffic = where.traffic
    assert (before.requests, before.answers, before.up, before.down) == (0, 0, 0, 0)
    assert (traffic.requests, traffic.answers) == (8, 8)
    assert traffic.up == 2 * 4 * 3 * 8
    # The announcement {"a":1}, the array's 20 bytes, {"k":2} and {}, and the terms twice.
    fixed = 4 * (len('{"a":1}') + 20 + len('{"k":2}') + len("{}"))
    assert 0 < traffic.down - fixed < 2 * 4 * 400
    assert traffic.calls_per_client == 4.0
    assert traffic.bytes_per_client == (traffic.up + traffic.down) / 4


@pytest.mark.parametrize("refused", [300, 17, 2])
def test_what_was_refused_for_being_too_much_does_not_open_the_door_to_a_little_less(refused: int):
    promised = terms(**LOCAL, noise_multiplier=1.0)
    account = ledger("record", epsilon=1.0, trust="local")
    with pytest.raises(BudgetExceeded):
        account.charge(Event("x", 0, promised, steps=refused))
    with pytest.raises(BudgetExceeded):
        account.charge(Event("x", 0, promised, steps=refused - 1))
    assert account.spent().epsilon == 0


@given(
    asked=st.lists(st.tuples(st.integers(1, 12), st.sampled_from([4.0, 9.0])), max_size=12),
    epsilon=st.floats(0.3, 4),
)
@settings(max_examples=15)
def test_whatever_is_asked_in_whatever_steps_the_budget_holds(asked, epsilon):
    plan = (Planned("x", terms(**LOCAL, noise_multiplier=9.0), 1),)
    account = ledger("record", epsilon=epsilon, trust="local", plan=plan)
    for steps, noise in asked:
        before = account.counts
        promised = terms(**LOCAL, noise_multiplier=noise)
        fits = spent({**before, promised: before.get(promised, 0) + steps}, 1e-5).epsilon <= epsilon
        try:
            account.charge(Event("x", 0, promised, steps=steps))
            assert fits
        except BudgetExceeded:
            assert not fits
    assert account.spent().epsilon <= epsilon


def test_traffic_does_not_tell_how_many_clients_the_coins_drew():
    told = set()
    for seed in range(4):
        where = channel(clients(40), seed=seed)
        where.sum("test-vectors", terms(sampling=Poisson(0.3)), 3)
        told.add((where.traffic.requests, where.traffic.answers, where.traffic.up))
    assert told == {(12.0, 12.0, 12.0 * 3 * 8)}
