"""The channel: charged before asked, faults named, noise exactly as accounted.

Every statistical check fails for a correct channel with probability at most 1e-8; all of them
together raise a false alarm with probability below 1e-6.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import BudgetExceeded, ConfigError, FederationError, PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Answer, Request, Summed
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.server.channel import Channel
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import calibrate
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.certificate import certify
from fedsynth.privacy.trail.job import Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.spelling import read_terms
from tests.federation.vectors import Watched, channel, clients, ledger, terms

pytestmark = pytest.mark.fresh_noise
FALSE_ALARM = 1e-8
TASK = "test-vectors"
DIM = 40_000
Change = Callable[[list[Answer]], Sequence[object]]


def has_variance(values: np.ndarray, scale: float) -> bool:
    statistic = float((values**2).sum()) / scale**2
    low, high = stats.chi2(values.size).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    return low < statistic < high


# The order of things


def test_the_event_is_on_disk_before_anybody_is_asked(tmp_path: Path):
    path, seen = tmp_path / "ledger.jsonl", []

    def before(request: Request) -> None:
        seen.append(json.loads(path.read_bytes().splitlines()[-1]))

    house = channel(Watched(clients(), before=before), ledger(path=path))
    for number in range(3):
        house.sum(TASK, terms(), 3)
        assert seen[-1]["kind"] == "event"
        assert (seen[-1]["label"], seen[-1]["round"]) == (TASK, number)
        assert read_terms(seen[-1]["terms"]) == terms()


def test_a_round_that_breaks_down_stays_charged(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"

    def before(request: Request) -> None:
        raise KeyboardInterrupt

    house = channel(Watched(clients(), before=before), ledger(path=path))
    with pytest.raises(KeyboardInterrupt):
        house.sum(TASK, terms(), 3)
    house.ledger.close()
    assert len(Ledger.open(path).events) == 1


def test_a_lost_answer_is_not_paid_for_again_where_what_comes_after_it_could_not_be(
    tmp_path: Path,
):
    """It once was, and the job could not end all the same."""
    path = tmp_path / "ledger.jsonl"
    budget = Budget(epsilon=1.0, delta=1e-5, unit="client", trust="central", units=1000)
    third = calibrate(lambda m: {terms(noise_multiplier=m): 3}, budget.epsilon, 1e-5)
    one = terms(noise_multiplier=third)

    def asked_again(*plan: Planned) -> int:
        path.unlink(missing_ok=True)
        house = channel(clients(), Ledger.create(Job(budget=budget, plan=plan), path))
        house.sum(TASK, one, 3)
        try:
            house.sum(TASK, one, 3)
        finally:
            house.ledger.close()
        return len(Ledger.read(path).events)

    with pytest.raises(BudgetExceeded, match="leave too little for pairs, votes"):
        asked_again(Planned(TASK, one, 1), Planned("pairs", one, 1), Planned("votes", one, 1))
    assert len(Ledger.read(path).events) == 1
    # Of many rounds one is enough; what came before is needed no more; and some were planned twice.
    assert asked_again(Planned(TASK, one, 1), Planned("training", one, 2)) == 2
    assert asked_again(Planned("pairs", one, 1), Planned("votes", one, 1), Planned(TASK, one, 1))
    assert asked_again(Planned(TASK, one, 2), Planned("votes", one, 1)) == 2


def test_nobody_is_asked_past_the_budget():
    house = channel((asking := Watched(clients())), ledger(epsilon=1.0))
    promised = terms(noise_multiplier=6.0)
    with pytest.raises(BudgetExceeded):
        for _ in range(100):
            house.sum(TASK, promised, 3)
    assert 0 < len(asking.asked) == len(house.ledger.events)
    assert house.ledger.spent().epsilon <= 1.0


def test_a_release_without_noise_is_refused_under_a_finite_budget():
    with pytest.raises(BudgetExceeded):
        house = channel((asking := Watched(clients())), ledger(epsilon=9.0))
        house.sum(TASK, terms(noise_multiplier=0), 3)
    assert asking.asked == []


@pytest.mark.parametrize(
    ("account", "promised"),
    [
        (ledger("record"), terms(unit="client", sampling=Poisson(0.5))),
        (ledger("client"), terms(unit="record")),
        (ledger(trust="local"), terms(trust="distributed")),
        (ledger(trust="distributed"), terms(trust="central")),
    ],
)
def test_another_unit_or_weaker_trust_than_the_budgets_is_refused(account: Ledger, promised: Terms):
    with pytest.raises(PrivacyError):
        channel((asking := Watched(clients())), account).sum(TASK, promised, 3)
    assert (asking.asked, account.events) == ([], ())


@pytest.mark.parametrize(
    "promised",
    [
        terms(sampling=FixedSize(2, 400)),
        terms(sampling=FixedSize(2, 3)),
        terms(trust="distributed", survivors=5),
    ],
)
def test_terms_that_count_on_other_clients_than_there_are_are_refused(promised: Terms):
    house = channel(asking := Watched(clients(4)))
    with pytest.raises(ConfigError, match="clients"):
        house.sum(TASK, promised, 3)
    assert (asking.asked, house.ledger.events) == ([], ())


def test_every_request_says_its_job_and_a_round_of_its_own():
    house = channel(asking := Watched(clients()))
    for _ in range(3):
        house.sum(TASK, terms(), 3)
    assert [r.round for r in asking.requests] == [0, 1, 2]
    assert {r.job for r in asking.requests} == {house.ledger.job.job}


def test_a_federation_of_nobody_or_of_namesakes_is_refused():
    for owners in ([], clients(1) + clients(1)):
        with pytest.raises(ConfigError, match="own name"):
            channel(owners)


@pytest.mark.parametrize("quorum", [0.0, -1.0, 1.5, math.nan])
def test_a_quorum_that_is_no_share_is_refused(quorum: float):
    with pytest.raises(ConfigError, match="quorum"):
        channel(clients(), quorum=quorum)


def test_noise_with_a_known_seed_is_refused_unless_the_ledger_says_so():
    with pytest.raises(PrivacyError, match="known seed"):
        Channel(LocalRuntime(clients()), ledger(), NoiseSource(0))
    account = ledger(insecure=True)
    Channel(LocalRuntime(clients()), account, NoiseSource(0)).sum(TASK, terms(), 3)
    assert certify(account, {}).void is not None


def test_a_seeded_channel_repeats_and_the_default_never_does():
    first, second = (channel(clients(), seed=3).sum(TASK, terms(), 3).value for _ in range(2))
    np.testing.assert_array_equal(first, second)
    third, fourth = (channel(clients()).sum(TASK, terms(), 3).value for _ in range(2))
    assert not np.array_equal(third, fourth)


def test_what_is_announced_reaches_every_client():
    owners = clients(3)
    house = channel(owners)
    house.announce("schema", {"a": 1})
    job = house.ledger.job.job
    assert [one.memory(job).board.read("schema", dict) for one in owners] == [{"a": 1}] * 3


# Faults


def spoil(**changes: object) -> Change:
    """Change the second client's answer."""
    return lambda answers: [
        replace(one, **changes) if index == 1 else one for index, one in enumerate(answers)
    ]


FAULTS: list[tuple[Change, str]] = [
    (spoil(values=np.array([0.1, np.nan, 0.1])), "not finite"),
    (spoil(values=np.array([0.1, np.inf, 0.1])), "not finite"),
    (spoil(values=np.array([0.1])), "shape"),
    (spoil(values=np.zeros((3, 1))), "shape"),
    (spoil(values=np.zeros(3, np.float32)), "float64"),
    (spoil(values="0.1"), "float64"),
    (spoil(values=np.array([9.0, 0.0, 0.0])), "above the bound"),
    (spoil(round=5), "round 5"),
    (spoil(job="yesterday's"), "round"),
    (lambda answers: [*answers, answers[1]], "more than once"),
    (lambda answers: answers[:1] + answers[2:], "did not answer"),
    (lambda answers: [answers[0], None, *answers[2:]], "did not answer"),
]


LOCAL = terms(trust="local", noise_multiplier=0.0)


@pytest.mark.parametrize(("change", "said"), FAULTS)
def test_an_offending_message_is_dropped_and_named_and_the_round_goes_on(change: Change, said: str):
    house = channel(Watched(clients(4, value=0.1), change=change), ledger(trust="local"))
    collected = house.collect(TASK, LOCAL, 3)
    np.testing.assert_allclose(collected.values.sum(axis=0), 0.3)
    assert (collected.asked, len(collected.clients)) == (4, 3)
    assert {i.client for i in collected.incidents} - {"unknown"} == {"c1"}
    assert any(said in i.reason for i in collected.incidents if i.client == "c1")
    assert {one["client"] for one in house.dropped.entries()} == {
        one.client for one in collected.incidents
    }


def test_a_message_by_somebody_who_was_not_drawn_does_not_count():
    def change(answers: list[Answer]) -> list[Answer]:
        return [*answers, replace(answers[0], client="stranger")]

    house = channel(Watched(clients(4), change=change), ledger(trust="local"))
    collected = house.collect(TASK, LOCAL, 3)
    np.testing.assert_allclose(collected.values.sum(axis=0), 0.4)
    assert [i.client for i in collected.incidents] == ["stranger"]


def test_a_sum_that_cannot_be_is_lost_and_stays_charged():
    def change(summed: Summed) -> Summed:
        return replace(summed, total=np.array([9.0, 0.0, 0.0]))

    house = channel(Watched(clients(4), total=change))
    with pytest.raises(FederationError, match="above the bound"):
        house.sum(TASK, terms(noise_multiplier=0.0), 3)
    assert len(house.ledger.events) == 1


def test_a_quorum_that_is_lost_ends_the_round_and_leaves_it_charged(tmp_path: Path):
    account = ledger(path=tmp_path / "ledger.jsonl")
    house = channel(Watched(clients(4), answering=1), account)
    with pytest.raises(FederationError, match="1 usable answers, 2 needed") as lost:
        house.sum(TASK, terms(), 3)
    assert all(f"c{i}: did not answer" in str(lost.value) for i in (1, 2, 3))
    assert len(Ledger.read(tmp_path / "ledger.jsonl").events) == 1


@pytest.mark.parametrize(("answering", "enough"), [(3, True), (2, False)])
def test_fewer_answers_than_carry_the_noise_are_never_released(answering: int, enough: bool):
    promised = terms(trust="distributed", survivors=3)
    account = ledger(trust="distributed")
    house = channel(Watched(clients(6), answering=answering), account, quorum=0.1)
    if enough:
        assert house.sum(TASK, promised, 3).answered == answering
    else:
        with pytest.raises(FederationError, match="3 needed"):
            house.sum(TASK, promised, 3)
    assert len(account.events) == 1


def test_a_task_that_gives_too_many_rows_ends_the_round_and_leaves_it_charged():
    house = channel(clients())
    with pytest.raises(PrivacyError, match="more of them"):
        house.sum("test-too-many", terms(), 3)
    assert len(house.ledger.events) == 1


# Refusals


def test_a_client_refuses_past_its_own_budget_is_named_and_the_round_goes_on():
    owners = clients(4, value=0.0)
    budget = Budget(epsilon=1.0, delta=1e-5, unit="client", trust="local")
    owners[2].ledger = Ledger.create(Job(budget=budget))
    house = channel(Watched(owners), ledger(trust="local"))
    promised = terms(trust="local", noise_multiplier=6.0)
    for _ in range(6):
        released = house.sum(TASK, promised, 3)
    assert [i.client for i in released.incidents] == ["c2"]
    assert "refuses: its own budget is spent" in released.incidents[0].reason
    assert released.answered == 3
    assert 0 < len(owners[2].ledger.events) < 6
    assert owners[2].ledger.spent().epsilon <= 1.0


def test_a_client_whose_ledger_does_not_admit_the_terms_refuses_alone():
    owners = clients(4, value=0.0)
    owners[0].ledger = ledger("client", trust="local")
    released = channel(owners).sum(TASK, terms(), 3)
    assert [i.client for i in released.incidents] == ["c0"]
    assert owners[0].ledger.events == ()


def test_a_drawn_client_takes_part_no_more_often_than_is_accounted_for():
    owners = clients(12, value=0.0)
    account = ledger(trust="distributed", participations=3)
    house = channel(owners, account, quorum=1e-9)
    promised = terms(trust="distributed", sampling=Poisson(0.6), survivors=1)
    for _ in range(8):
        try:
            house.sum(TASK, promised, 3)
        except FederationError:  # everybody refuses
            continue
    job = account.job.job
    assert max(owner.memory(job).participations for owner in owners) == 3
    assert max(house.participations.values()) > 3
    assert account.spent() == ledger_cost(terms(trust="distributed"), 3)


@pytest.mark.parametrize(
    ("drawn", "left"), [(None, 0), ({"c0": 1, "c1": 0, "c2": 2, "c3": 2}, 3), ({"c0": 0}, 2)]
)
def test_after_a_restart_rounds_before_it_count_as_taken(drawn: dict | None, left: int):
    promised = terms(trust="local", sampling=Poisson(1.0))
    account = ledger(trust="local", participations=2)
    first = channel(clients(4, value=0.0), account)
    for _ in range(2):
        first.sum(TASK, promised, 3)
    runtime = LocalRuntime(clients(4, value=0.0))
    resumed = Channel(runtime, account, NoiseSource(), quorum=1e-9, participations=drawn)
    answered = 0
    for _ in range(3):
        try:
            answered += resumed.sum(TASK, promised, 3).answered
        except FederationError:  # everybody refuses
            continue
    assert answered == left


def ledger_cost(promised: Terms, count: int):
    account = ledger(trust=promised.trust)
    house = channel(clients(), account)
    for _ in range(count):
        house.sum(TASK, promised, 3)
    return account.spent()


# Sampling


def test_drawn_clients_are_independent_coin_flips():
    rate, rounds, count = 0.3, 400, 30
    house = channel(asking := Watched(clients(count, dim=1, value=0.0)))
    for _ in range(rounds):
        house.sum(TASK, terms(sampling=Poisson(rate)), 1)
    taken = np.array([[f"c{i}" in asked for i in range(count)] for asked in asking.asked])
    taken = np.vstack([taken, np.zeros((rounds - len(taken), count))])  # rounds that drew nobody
    expected, variance = rounds * rate, rounds * rate * (1 - rate)
    fit = float(((taken.sum(0) - expected) ** 2).sum()) / variance
    assert fit < stats.chi2(count).isf(FALSE_ALARM)
    total = stats.binom(rounds * count, rate)
    assert total.ppf(FALSE_ALARM / 2) <= taken.sum() <= total.isf(FALSE_ALARM / 2)
    spread = float(((taken.sum(1) - count * rate) ** 2).sum()) / (count * rate * (1 - rate))
    low, high = stats.chi2(rounds).ppf([FALSE_ALARM / 2, 1 - FALSE_ALARM / 2])
    assert low < spread < high


def test_fixed_size_rounds_draw_exactly_their_size():
    house = channel(asking := Watched(clients(7, value=0.0)))
    for _ in range(20):
        house.sum(TASK, terms(sampling=FixedSize(3, 7)), 3)
    assert {len(set(asked)) for asked in asking.asked} == {3}
    assert len({tuple(asked) for asked in asking.asked}) > 1


def test_at_the_record_level_everybody_is_asked_whatever_the_rate():
    house = channel((asking := Watched(clients(5, records=3))), ledger("record"))
    house.sum(TASK, terms(unit="record", sampling=Poisson(1e-9)), 3)
    assert asking.asked == [[f"c{i}" for i in range(5)]]


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_a_round_that_draws_nobody_is_still_noised_in_full_and_charged(trust: str):
    house = channel((asking := Watched(clients(5, dim=DIM))), ledger(trust=trust))
    promised = terms(trust=trust, noise_multiplier=3.0, sampling=Poisson(1e-12))
    released = house.sum(TASK, promised, DIM)
    assert (asking.asked, released.asked) == ([], 0)
    assert has_variance(released.value, 3.0)
    assert len(house.ledger.events) == 1


def test_a_round_whose_clients_draw_no_record_is_still_noised_in_full():
    promised = terms(
        unit="record",
        trust="distributed",
        noise_multiplier=3.0,
        sampling=Poisson(1e-12),
        survivors=5,
    )
    house = channel(clients(5, dim=DIM), ledger("record", trust="distributed"))
    assert has_variance(house.sum(TASK, promised, DIM).value, 3.0)


# Noise


def test_noise_shares_of_exactly_the_survivors_equal_the_accounted_noise():
    promised = terms(trust="distributed", noise_multiplier=3.0, clip=0.5, survivors=4)
    house = channel(
        Watched(clients(6, dim=DIM, value=0.0), answering=4), ledger(trust="distributed")
    )
    value = house.sum(TASK, promised, DIM).value
    assert has_variance(value, promised.scale)
    assert stats.kstest(value, stats.norm(scale=promised.scale).cdf).pvalue > FALSE_ALARM


def test_with_more_survivors_there_is_more_noise_never_less():
    promised = terms(trust="distributed", noise_multiplier=3.0, survivors=4)
    house = channel(clients(6, dim=DIM, value=0.0), ledger(trust="distributed"))
    value = house.sum(TASK, promised, DIM).value
    assert has_variance(value, promised.scale * math.sqrt(6 / 4))
    assert (value**2).sum() / promised.scale**2 > stats.chi2(DIM).isf(FALSE_ALARM)


@pytest.mark.parametrize("answering", [6, 3])
def test_central_noise_does_not_depend_on_how_many_answer(answering: int):
    house = channel(Watched(clients(6, dim=DIM, value=0.0), answering=answering))
    assert has_variance(house.sum(TASK, terms(noise_multiplier=3.0), DIM).value, 3.0)


def test_central_noise_equals_local_noise_in_distribution():
    """Paper 001, theorem 4.1: sigma_G = sigma_L / sqrt(qN), for the mean of qN contributions."""
    count, sigma, clip = 16, 0.05, 0.5
    owners = {
        "central": clients(count, DIM, value=0.002),
        "local": clients(count, DIM, value=0.002),
    }
    scales = {"central": sigma * count, "local": sigma * math.sqrt(count)}
    means = {}
    for trust, scale in scales.items():
        promised = terms(trust=trust, clip=clip, noise_multiplier=scale / clip)
        house = channel(owners[trust], ledger(trust=trust))
        means[trust] = house.sum(TASK, promised, DIM).value / count
        assert has_variance(means[trust] - 0.002, sigma)
        law = stats.norm(0.002, sigma)
        assert stats.kstest(means[trust], law.cdf).pvalue > FALSE_ALARM
    assert stats.ks_2samp(means["central"], means["local"]).pvalue > FALSE_ALARM


def test_one_record_more_moves_the_release_by_at_most_the_clip():
    promised = terms(unit="record", noise_multiplier=0.0, clip=0.7)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(50, 8)) * 10

    def total(data: np.ndarray) -> np.ndarray:
        owners = [Client("a", data, len(data)), Client("b", rows, 50)]
        return channel(owners, ledger("record")).sum(TASK, promised, 8).value

    for gone in range(0, 50, 7):
        assert np.linalg.norm(total(rows) - total(np.delete(rows, gone, 0))) <= 0.7


# Rows of whole clients where records are protected


@given(seed=st.integers(0, 2**32))
@settings(max_examples=30)
def test_one_record_moves_a_sum_of_rows_of_clients_by_at_most_twice_the_clip(seed: int):
    promised = terms(noise_multiplier=0.0, clip=0.7)
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(5, 4)) * 10.0 ** rng.integers(-2, 3)

    def total(data: np.ndarray) -> np.ndarray:
        owners = [Client("a", data, len(data)), Client("b", rows, 5)]
        return channel(owners, ledger("record")).sum(TASK, promised, 4).value

    assert np.linalg.norm(total(rows) - total(rows[1:])) <= 1.4
    # No less would do: a record that outweighs all others turns its client's row round.
    turned = np.concatenate([rows, -2 * rows.sum(axis=0, keepdims=True)])
    if np.linalg.norm(rows.sum(axis=0)) > 0.7:
        assert np.linalg.norm(total(rows) - total(turned)) == pytest.approx(1.4, rel=1e-5)


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_rows_of_clients_cost_records_as_much_as_half_the_noise(trust: str):
    account = ledger("record", trust=trust)
    owners = clients(4, records=3, value=0.01)
    owners[1].ledger = ledger("record", trust=trust)
    owners[2].ledger = ledger("client", trust=trust)
    house = channel(owners, account)
    promised = terms(trust=trust, noise_multiplier=8.0, survivors=4)
    released = house.sum(TASK, promised, 3)
    assert (released.asked, released.answered) == (4, 4)
    half = spent({terms(unit="record", noise_multiplier=4.0): 1}, 1e-5)
    assert account.spent() == owners[1].ledger.spent() == half
    # An owner that hides itself whole hides no less behind its row than the noise says.
    assert owners[2].ledger.spent() == spent({terms(noise_multiplier=8.0): 1}, 1e-5)


@pytest.mark.parametrize("sampling", [Poisson(0.5), FixedSize(2, 4)])
def test_rows_of_drawn_clients_are_refused_where_records_are_protected(sampling):
    house = channel((asking := Watched(clients(4))), ledger("record"))
    with pytest.raises(PrivacyError, match="records"):
        house.sum(TASK, terms(sampling=sampling), 3)
    assert (asking.asked, house.ledger.events) == ([], ())


# What a release may say


def test_neither_ledger_nor_certificate_tells_who_or_how_many_took_part(tmp_path: Path):
    path = tmp_path / "ledger.jsonl"
    account = ledger(path=path)
    owners = [Client(f"hospital-{i}", np.zeros((977, 3)), 977) for i in range(43)]
    house = channel(Watched(owners, answering=-3), account, quorum=0.01)
    released = house.sum(TASK, terms(sampling=Poisson(0.7)), 3)
    told = path.read_text() + json.dumps(certify(account, {}).content)
    written = [json.loads(path.read_bytes().splitlines()[1]), certify(account, {}).content]
    numbers = set(_numbers(written))
    assert "hospital" not in told
    assert "answered" not in told and "asked" not in told
    assert not numbers & {released.asked, released.answered, 977, 43}


def _numbers(part: object):
    if isinstance(part, dict):
        for value in part.values():
            yield from _numbers(value)
    elif isinstance(part, list):
        for value in part:
            yield from _numbers(value)
    elif isinstance(part, int | float) and not isinstance(part, bool):
        yield part


def test_a_record_level_round_over_everybody_is_the_sum_of_all_records():
    house = channel(clients(3, records=4, value=0.1), ledger("record"))
    promised = terms(unit="record", noise_multiplier=0.0, sampling=Everyone())
    np.testing.assert_allclose(house.sum(TASK, promised, 3).value, 1.2)
