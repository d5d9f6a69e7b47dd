"""Groups of records: one row each, whatever they hold; a record moves its own group's row alone.

The statistical check fails for a correct client with probability below 1e-8.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from fedsynth.errors import PrivacyError
from fedsynth.federation.client.client import Client
from fedsynth.federation.client.groups import assign, groups_of
from fedsynth.federation.client.tasks import register
from fedsynth.federation.request import Request
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Poisson
from fedsynth.privacy.terms import Terms
from tests.federation.vectors import OBEDIENT, answered, channel, ledger, terms

HOSTILE = [np.nan, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 1.0, 1e3]


@dataclass(frozen=True)
class Records:
    """Vectors, as a client's data."""

    values: np.ndarray

    def take(self, rows: np.ndarray) -> Records:
        return Records(self.values[rows])


class Totals:
    """A group's row is the sum of its vectors."""

    name = "test-totals"

    def group_rows(self, groups, request):
        for position, group in enumerate(groups):
            with np.errstate(all="ignore"):
                yield position, group.data.values.sum(axis=0)


class Sizes(Totals):
    """How many records a group has, and in how many rounds it was asked."""

    name = "test-sizes"

    def group_rows(self, groups, request):
        for position, group in enumerate(groups):
            group.memory["asked"] = group.memory.get("asked", 0) + 1
            yield position, np.array([group.records, group.memory["asked"], group.number == 0])


class Few(Totals):
    """Leaves out groups without records, as a careless task would."""

    name = "test-few"

    def group_rows(self, groups, request):
        for position, row in super().group_rows(groups, request):
            if groups[position].records:
                yield position, row


class Many(Totals):
    """Gives a row twice."""

    name = "test-many"

    def group_rows(self, groups, request):
        yield 0, np.ones(request.dim)
        yield from super().group_rows(groups, request)


class Wide(Totals):
    name = "test-wide"

    def group_rows(self, groups, request):
        for position in range(len(groups)):
            yield position, np.ones(request.dim + 1)


class Strange(Totals):
    name = "test-strange"

    def group_rows(self, groups, request):
        for position in range(len(groups)):
            yield position + 1, np.ones(request.dim)


for task in (Totals(), Sizes(), Few(), Many(), Wide(), Strange()):
    register(task)


def asked(promised: Terms, task: str = "test-totals", groups=3, dim: int = 3, **changes) -> Request:
    return Request(task, promised, dim, settings={"groups": groups}, job="job", **changes)


def client(values, name: str = "c", seed: int = 5) -> Client:
    values = np.asarray(values, np.float64).reshape(-1, 3)
    return Client(name, Records(values), len(values), coins=NoiseSource(seed), floor=OBEDIENT)


def summed(owner: Client, request: Request) -> np.ndarray:
    return answered([owner], request)[0].values


RECORD = terms(unit="record", noise_multiplier=0.0)


@given(st.data(), st.sampled_from(["l2", "l1"]), st.floats(1e-3, 1e3), st.integers(1, 4))
def test_a_record_moves_the_sum_of_groups_by_at_most_the_clip(data, norm, clip, groups):
    numbers = st.sampled_from(HOSTILE)
    records = data.draw(st.integers(1, 6))
    values = data.draw(st.lists(st.tuples(*[numbers] * 3), min_size=records, max_size=records))
    mechanism = "gaussian" if norm == "l2" else "laplace"
    promised = terms(unit="record", norm=norm, mechanism=mechanism, clip=clip, noise_multiplier=0)
    # The last record comes and goes; those before it keep their coins.
    whole = summed(client(values), asked(promised, groups=groups))
    rest = summed(client(values[:-1]), asked(promised, groups=groups))
    assert np.isfinite(whole).all()
    assert np.linalg.norm(whole - rest, 2 if norm == "l2" else 1) <= clip


def test_without_a_clip_that_binds_the_sum_is_that_of_all_records():
    values = np.arange(12.0).reshape(4, 3)
    wide = terms(unit="record", clip=1e6, noise_multiplier=0.0)
    assert np.allclose(summed(client(values), asked(wide)), values.sum(axis=0))


def test_every_group_is_clipped_on_its_own_for_an_exchange():
    values = np.full((50, 3), 1e9)
    total = summed(client(values), asked(RECORD, groups=3))
    assert np.linalg.norm(total) == pytest.approx(3 / np.sqrt(2), rel=1e-5)


def test_a_whole_client_is_one_row_clipped_as_any_other():
    values = np.full((50, 3), 1e9)
    total = summed(client(values), asked(terms(noise_multiplier=0.0), groups=3))
    assert np.linalg.norm(total) == pytest.approx(1.0, rel=1e-5)


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("name", ["test-few", "test-many", "test-wide", "test-strange"])
def test_anything_but_one_fitting_row_for_each_group_is_refused(unit, name):
    # Two records cannot fill three groups, so one has no records.
    owner = client(np.ones((2, 3)))
    promised = terms(unit=unit, noise_multiplier=0.0)
    with pytest.raises(PrivacyError, match="exactly one row") as refused:
        summed(owner, asked(promised, name))
    assert "2" not in str(refused.value)


def test_clients_without_records_have_as_many_groups_as_others():
    promised = terms(unit="record", clip=100.0, noise_multiplier=0.0)
    owners = [client(np.ones((9, 3))), client(np.zeros((0, 3)))]
    for owner in owners:
        # The second number counts groups, and the third those with the number 0.
        assert summed(owner, asked(promised, "test-sizes"))[1:] == pytest.approx([3, 1])


def test_drawing_records_is_refused_for_groups():
    drawn = terms(unit="record", sampling=Poisson(0.5))
    with pytest.raises(PrivacyError, match="without sampling"):
        summed(client(np.ones((9, 3))), asked(drawn))


def test_drawing_clients_is_not():
    drawn = terms(sampling=Poisson(0.5), noise_multiplier=0.0)
    assert summed(client(np.ones((9, 3))), asked(drawn)).shape == (3,)


@pytest.mark.parametrize("groups", [None, 0, -1, 2.0, True, "3", 10_001])
def test_the_number_of_groups_must_be_stated(groups):
    with pytest.raises(PrivacyError, match="`groups`"):
        summed(client(np.ones((9, 3))), asked(RECORD, groups=groups))


def test_nothing_of_a_group_is_kept_or_selected():
    owner = client(np.ones((9, 3)))
    with pytest.raises(PrivacyError, match="kept"):
        summed(owner, asked(RECORD, dim=2, kept=1))
    choosing = terms(unit="record", norm="l1", mechanism="exponential")
    with pytest.raises(PrivacyError, match="selected"):
        summed(owner, asked(choosing))


def test_records_keep_their_groups_and_groups_their_memory_within_a_job():
    owner = client(np.arange(60.0).reshape(20, 3))
    first = groups_of(owner, asked(RECORD))
    assert groups_of(owner, asked(RECORD, "test-sizes")) is first
    wide = terms(unit="record", clip=1e6, noise_multiplier=0.0)
    for round_ in (1, 2):
        assert summed(owner, asked(wide, "test-sizes"))[1] == pytest.approx(3 * round_)
    with pytest.raises(PrivacyError, match="never changes its group"):
        groups_of(owner, asked(RECORD, groups=2))
    other = Request("test-totals", RECORD, 3, settings={"groups": 2}, job="another")
    fresh = groups_of(owner, other)
    assert len(fresh) == 2 and not any(group.memory for group in fresh)


def test_groups_are_independent_coins_and_split_all_records():
    members = assign(60_000, 3, NoiseSource())
    assert sorted(np.concatenate(members)) == list(range(60_000))
    sizes = np.array([len(own) for own in members])
    assert stats.chisquare(sizes).pvalue > 1e-9
    # A fair coin a record leaves group sizes random: a cut into equal parts would move others.
    spread = {len(assign(30, 3, NoiseSource())[0]) for _ in range(40)}
    assert len(spread) > 1


def test_a_group_sees_its_own_records_alone():
    values = np.arange(60.0).reshape(20, 3)
    seen = [group.data.values for group in groups_of(client(values), asked(RECORD))]
    assert sorted(map(tuple, np.concatenate(seen))) == sorted(map(tuple, values))
    assert all(
        len(own) == group.records
        for own, group in zip(seen, groups_of(client(values), asked(RECORD)), strict=True)
    )


@pytest.mark.parametrize("unit", ["record", "client"])
def test_a_client_answers_as_it_would_alone(unit):
    wide = terms(unit=unit, clip=2.0, noise_multiplier=0.0)
    rng = np.random.default_rng(0)
    values = [rng.random((n, 3)) for n in (7, 0, 30)]
    owners = [client(v, f"c{i}", seed=i) for i, v in enumerate(values)]
    together = answered(owners, asked(wide))
    for i, one in enumerate(together):
        alone = answered([client(values[i], f"c{i}", seed=i)], asked(wide))
        np.testing.assert_array_equal(alone[0].values, one.values)


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_the_channel_charges_groups_as_any_release(trust):
    account = ledger("record", trust=trust)
    owners = [client(np.ones((9, 3)), "a"), client(np.zeros((0, 3)), "b")]
    promised = terms(unit="record", trust=trust, noise_multiplier=2.0, survivors=2)
    released = channel(owners, account).sum("test-totals", promised, 3, settings={"groups": 3})
    assert released.answered == 2
    assert [event.terms for event in account.events] == [promised]
    assert account.counts == {promised: 1}
