"""What is wrong with an answer is found and named, and honest noise is never taken for a fault."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import FederationError
from fedsynth.federation.client.grid import grid_of
from fedsynth.federation.request import Answer, Incident, Released, Request, Summed
from fedsynth.federation.server.checks import demand_bounded, demand_sound, fault, need, sift
from fedsynth.methods.pate.tasks import VOTES
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Everyone, Poisson
from fedsynth.privacy.terms import Terms
from tests.federation.vectors import terms

# An honest answer or sum is taken for a fault in less than one of 1e13 cases.
pytestmark = pytest.mark.fresh_noise

# Every answer within the clip, and no noise beside it.
BARE = terms(trust="local", noise_multiplier=0.0)


def request(promised: Terms | None = None, dim: int = 3) -> Request:
    return Request("test-vectors", promised or terms(), dim, job="job", round=7)


def answer(values: object = (0.1, 0.2, 0.3), client: str = "a", **changes) -> Answer:
    if isinstance(values, tuple):
        values = np.array(values)
    return Answer(**{"client": client, "job": "job", "round": 7, "values": values, **changes})


def test_a_sound_answer_has_no_fault():
    assert fault(answer(), request()) is None


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (answer((0.1, np.nan, 0.1)), "not finite"),
        (answer((np.inf, 0.0, 0.0)), "not finite"),
        (answer((0.1, 0.2)), "shape"),
        (answer(np.zeros((3, 1))), "shape"),
        (answer(np.zeros(1)), "shape"),
        (answer(np.zeros(3, np.float32)), "float64"),
        (answer(np.zeros(3, np.int64)), "float64"),
        (answer(np.array([None, None, None])), "float64"),
        (answer([0.1, 0.2, 0.3]), "float64"),
        (answer(None), "float64"),
        (answer(round=6), "round 6"),
        (answer(job="other"), "round"),
        (answer((1.0, 1.0, 1.0)), "above the bound"),
        (answer((1e200, 1e200, 0.0)), "above the bound"),
        ("values", "not an answer"),
        (None, "not an answer"),
    ],
)
def test_every_kind_of_fault_is_named(wrong: object, said: str):
    assert said in str(fault(wrong, request(BARE)))


def test_a_fault_does_not_tell_the_norm():
    reason = str(fault(answer((0.0, 123.456, 0.0)), request()))
    assert "123" not in reason


def test_a_sum_over_records_has_no_bound_to_break():
    assert fault(answer((50.0, 0.0, 0.0)), request(terms(unit="record"))) is None


@pytest.mark.parametrize(
    "promised",
    [
        terms(trust="local", noise_multiplier=2.0),
        terms(trust="distributed", noise_multiplier=2.0, survivors=3),
        terms(trust="local", noise_multiplier=2.0, norm="l1", mechanism="laplace"),
        terms(
            trust="distributed", noise_multiplier=2.0, survivors=40, norm="l1", mechanism="laplace"
        ),
    ],
)
@pytest.mark.parametrize("dim", [1, 10, 1000])
def test_honest_noise_is_never_taken_for_a_fault(promised: Terms, dim: int):
    source = NoiseSource()
    asked = request(promised, dim)
    for _ in range(20):
        values = promised.client_noised(np.eye(dim)[0] * promised.clip, source)
        assert fault(answer(values), asked) is None
    huge = np.full(dim, 100.0 * promised.scale)
    assert "above the bound" in str(fault(answer(huge), asked))


@pytest.mark.parametrize("alpha", [1.0, 1.5, 1.9])
@pytest.mark.parametrize("dim", [1, 10, 1000])
def test_heavy_tails_of_honest_noise_are_no_fault_and_what_none_explains_is(alpha: float, dim: int):
    kind = {"norm": "l1", "mechanism": "stable", "alpha": alpha}
    promised = terms(trust="distributed", noise_multiplier=2.0, survivors=3, **kind)
    source, asked = NoiseSource(), request(promised, dim)
    for _ in range(200):
        values = promised.client_noised(np.zeros(dim), source)
        assert fault(answer(values), asked) is None
    # The farthest of all draws reaches about draws^(1/alpha).
    first = np.zeros(dim)
    first[0] = promised.client_scale * (1e14 * dim) ** (1 / alpha) * dim
    assert fault(answer(first / 100), asked) is None
    assert "above the bound" in str(fault(answer(first * 10), asked))
    bare = terms(trust="local", noise_multiplier=0.0, **kind)
    assert "above the bound" in str(fault(answer(np.full(dim, 2.0)), request(bare, dim)))


def test_an_l1_clip_is_checked_in_l1():
    promised = terms(norm="l1", mechanism="laplace", trust="local", noise_multiplier=0.0)
    assert fault(answer((0.5, 0.5, 0.0)), request(promised)) is None
    assert "above the bound" in str(fault(answer((0.5, 0.5, 0.5)), request(promised)))


def test_of_several_answers_by_one_client_none_is_used():
    good, bad = sift([answer(), answer(), answer(client="b"), answer()], request(), {"a", "b"})
    assert [one.client for one in good] == ["b"]
    assert {(one.client, one.reason) for one in bad} == {("a", "answered more than once")}


def test_an_answer_by_somebody_who_was_not_asked_is_not_used():
    good, bad = sift([answer(), answer(client="z")], request(), {"a"})
    assert [one.client for one in good] == ["a"]
    assert bad == [Incident("z", 7, "was not asked")]


def test_what_is_no_answer_at_all_spoils_no_other():
    rubbish = [None, {}, answer(client=["a"]), 3, answer()]
    good, bad = sift(rubbish, request(), {"a"})
    assert [one.client for one in good] == ["a"]
    assert [one.reason for one in bad] == ["not an answer"] * 4


@given(st.lists(st.sampled_from("abcde"), max_size=12))
def test_exactly_the_clients_that_answered_once_are_used(names: list[str]):
    good, bad = sift([answer(client=n) for n in names], request(), set("abc"))
    assert {one.client for one in good} == {n for n in "abc" if names.count(n) == 1}
    assert {one.client for one in bad} == set(names) - {one.client for one in good}


def test_too_few_answers_are_an_error_that_says_who_and_that_it_was_charged():
    with pytest.raises(FederationError, match=r"1 usable answers, 2 needed \(b: did not answer\)"):
        need(Summed(np.zeros(3), 1, (Incident("b", 7, "did not answer"),)), 2, request())
    need(Summed(np.zeros(3), 2), 2, request())


SOUND = Summed(np.array([0.1, 0.2, 0.3]), 2)


def test_a_sound_sum_passes():
    demand_sound(SOUND, request(), ["a", "b"])


@pytest.mark.parametrize(
    ("summed", "said"),
    [
        (Summed(np.array([0.1, np.nan, 0.3]), 2), "not finite"),
        (Summed(np.zeros(2), 2), "shape"),
        (Summed(np.zeros(3, np.float32), 2), "float64"),
        (Summed(np.zeros(3), 3), "of 3 answers, 2 clients"),
        (Summed(np.zeros(3), -1), "of -1 answers"),
        (Summed(np.zeros(3), 1, (Incident("z", 7, "refuses"),)), "not asked"),
        (Summed(np.array([2.1, 0.0, 0.0]), 2), "above the bound"),
    ],
)
def test_a_sum_that_no_honest_clients_give_is_refused_as_lost(summed: Summed, said: str):
    with pytest.raises(FederationError, match=said) as refused:
        demand_sound(summed, request(BARE), ["a", "b"])
    assert "charged" in str(refused.value)


def test_a_sum_of_clients_may_reach_as_far_as_all_their_clips():
    demand_sound(Summed(np.array([2.0, 0.0, 0.0]), 2), request(BARE), ["a", "b"])


def test_a_sum_of_shares_beyond_the_end_of_its_grid_is_refused_and_one_at_its_end_is_not():
    """What honest clients' numbers cannot reach; of numbers that a liar drew hardly any is less."""
    promised = terms(unit="record", trust="distributed", noise_multiplier=2.0, survivors=2)
    asked, source = request(promised), NoiseSource(0)
    grid = grid_of(asked, 2)
    held = [grid.encode(promised.client_noised(np.full(3, 1e300), source)) for _ in range(2)]
    demand_sound(Summed(grid.decode(sum(held)), 2), asked, ["a", "b"])
    for words in np.split(source.words(300), 100):
        with pytest.raises(FederationError, match="where 2 honest answers end"):
            demand_sound(Summed(grid.decode(held[0] + words), 2), asked, ["a", "b"])


def test_a_sum_that_the_server_noises_is_held_to_its_bound_after_the_noise_alone():
    """Whether an exact sum is above a bound would tell of one client what no budget covers."""
    asked = request(terms(noise_multiplier=2.0), 10)
    demand_sound(Summed(np.full(10, 100.0), 2), asked, ["a", "b"])
    exact, source = Summed(np.array([2.0, *np.zeros(9)]), 2), NoiseSource()
    for _ in range(200):
        demand_bounded(Released(asked.terms.noised(exact.total, source), 2, 2), asked)
    with pytest.raises(FederationError, match="above the bound"):
        demand_bounded(Released(np.full(10, 9.0), 2, 2), asked)


def capped(promised: Terms, most: int | None, dim: int = 3, **changes) -> Request:
    return Request("test-vectors", promised, dim, job="job", round=7, most_records=most, **changes)


@pytest.mark.parametrize("rate", [1.0, 0.1])
@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_sums_of_as_many_records_as_were_agreed_pass_and_of_tens_of_times_as_many_do_not(
    rate: float, trust: str, norm: str
):
    """Clients at the cap, all of whose records point the same way: nothing honest is larger."""
    promised = terms(
        unit="record",
        trust=trust,
        survivors=4,
        norm=norm,
        mechanism="gaussian" if norm == "l2" else "laplace",
        sampling=Poisson(rate) if rate < 1 and norm == "l2" else Everyone(),
    )
    asked, source, rng = capped(promised, 500), NoiseSource(), np.random.default_rng(0)
    for _ in range(50):
        answers = [
            promised.client_noised(np.array([float(drawn), 0, 0]), source)
            for drawn in rng.binomial(500, promised.sampling.rate, 4)
        ]
        total = np.sum(answers, axis=0)
        if trust == "central":
            total = promised.noised(total, source)
        demand_bounded(Released(total, 4, 4), asked)
    with pytest.raises(FederationError, match="most_records=500"):
        demand_bounded(Released(total * 4, 4, 4), asked)
    demand_bounded(Released(total * 4, 4, 4), capped(promised, None))


def test_a_message_of_more_records_than_were_agreed_is_one_clients_fault():
    promised = terms(unit="record", trust="local")
    assert fault(answer((50.0, 0.0, 0.0)), capped(promised, 50)) is None
    assert "most_records=20" in str(fault(answer((50.0, 0.0, 0.0)), capped(promised, 20)))
    # What a client trained by itself is no sum.
    assert fault(answer((50.0, 0.0, 0.0)), capped(promised, 20, steps=3)) is None


def test_votes_of_groups_are_as_many_as_groups_and_not_as_records():
    promised = terms(unit="record", trust="local")
    asked = Request(VOTES.name, promised, 3, job="job", round=7, most_records=1)
    assert fault(answer((50.0, 0.0, 0.0)), asked) is None
