"""Clients in this process whose shares are added up in secret: what is lost, and what is not."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, FederationError, ReleaseError
from fedsynth.federation.client.grid import grid_of
from fedsynth.federation.request import PLAN
from fedsynth.federation.runtimes import secure
from fedsynth.federation.runtimes.local import KEPT, LocalRuntime
from fedsynth.federation.runtimes.secure import SecureRuntime
from fedsynth.federation.secure.frames import Step, read
from fedsynth.federation.secure.rules import Rules
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.job import Planned
from tests.federation.runtimes.shares import NAMES, RULES, ask, exact, owners
from tests.federation.vectors import OBEDIENT, Vectors

NOISES = {
    "gaussian": {},
    "laplace": {"mechanism": "laplace", "norm": "l1"},
    "stable": {"mechanism": "stable", "norm": "l1", "alpha": 1.0},
}


def opened(folder: Path | None = None, kind=None) -> SecureRuntime:
    runtime = SecureRuntime(owners(folder), RULES) if kind is None else kind(owners(folder))
    runtime.open("job", {})
    return runtime


def again(runtime: SecureRuntime, folder: Path) -> SecureRuntime:
    """The same after a restart."""
    for client in runtime._clients.values():
        client.ledger.close()
    runtime.close("job", finished=False)
    return opened(folder)


def losing(runtime: SecureRuntime, *lost: tuple[str, Step]) -> list[bytes]:
    """Has answers get lost on their way; all others are kept in the list."""
    told, owned = list[bytes](), runtime._owners["job"]

    def answers(asked, given):
        for name, reply in secure.Owners._answers(owned, asked, given):
            if (name, read(reply)[0].step) not in lost:
                told.append(reply)
                yield name, reply

    owned._answers = answers
    return told


@pytest.mark.parametrize("noise", NOISES)
def test_a_secure_sum_is_the_plain_one_to_the_last_bit(noise):
    summed = opened().sum(ask(**NOISES[noise]), NAMES)
    assert summed.answered == 4 and not summed.incidents
    assert summed.total.tobytes() == exact(NOISES[noise]).tobytes()
    assert summed.total.any()


def test_the_server_is_told_nobodys_answer():
    """What crosses holds no contribution; without the protocol every one of them would."""
    runtime, asked = opened(), ask()
    told = b"".join(losing(runtime))
    grid = grid_of(asked, 4)
    assert not told
    given = {}
    genuine = runtime._contribute
    runtime._contribute = lambda *args: (given.update((found := genuine(*args))[0]), found)[1]
    crossed = losing(runtime)
    runtime.sum(asked, NAMES)
    assert len(crossed) == 4 * len(Step) and len(given) == 4
    for whole in given.values():
        assert whole.dtype == grid.kind
        assert not any(whole.tobytes() in reply for reply in crossed)


def test_keys_of_the_next_round_come_with_this_one():
    """Five exchanges for the first of a plan's rounds, three for each other; two alone take ten."""
    for planned, wanted in ((3, (5, 3, 3)), (0, (5, 5, 5))):
        runtime, asked = opened(), [ask(number) for number in range(3)]
        if planned:
            plan = Planned(Vectors.name, asked[0].terms, planned).to_dict()
            runtime.announce("job", PLAN, {"releases": [plan], "participations": None})
        crossed = losing(runtime)
        found = []
        for one in asked:
            before = len(crossed)
            runtime.sum(one, NAMES)
            found.append((len(crossed) - before) // 4)
        assert tuple(found) == wanted


@pytest.mark.parametrize("step", list(Step))
def test_one_that_drops_out_is_missed_where_its_numbers_did_not_come(step):
    runtime = opened()
    losing(runtime, *[("c2", later) for later in Step if later >= step])
    summed = runtime.sum(ask(), NAMES)
    if step > Step.MASKED:
        assert summed.answered == 4 and not summed.incidents
        assert summed.total.tobytes() == exact().tobytes()
    else:
        (incident,) = summed.incidents
        assert (incident.client, incident.reason) == ("c2", "did not answer")
        assert summed.answered == 3
        # The fourth owner's coins are its own, so without it the others answer the same.
        assert summed.total.tobytes() == exact(names=["c0", "c1", "c3"]).tobytes()


@pytest.mark.parametrize("step", list(Step))
def test_what_too_few_answer_is_not_opened_and_may_be_asked_again(step, tmp_path):
    """The same contributions then, whether anything was opened or not: their sum is the same."""
    runtime = opened(tmp_path)
    losing(runtime, ("c1", step), ("c2", step))
    lost = runtime.sum(ask(), NAMES)
    assert (lost.needed, lost.answered) == (3, 2) and not lost.total.any()
    assert [one.client for one in lost.incidents] == ["c1", "c2"]
    runtime = again(runtime, tmp_path)
    # They would answer otherwise now, were they asked anew.
    for client in runtime._clients.values():
        client.coins = NoiseSource(99)
    found = runtime.sum(ask(), NAMES)
    assert found.answered == 4
    assert found.total.tobytes() == exact().tobytes()
    assert all(len(client.ledger.events) == 1 for client in runtime._clients.values())
    # A later round goes on as if nothing had been.
    assert runtime.sum(ask(1), NAMES).answered == 4
    runtime.close("job", finished=True)
    assert not [path for path in tmp_path.iterdir() if path.suffix in KEPT]


def test_a_round_of_which_shares_are_out_is_not_opened_over_others(tmp_path):
    """It is lost, in words, where the attempt that they are of cannot be carried to its end."""
    runtime = opened(tmp_path)
    losing(runtime, ("c2", Step.MASKED), ("c0", Step.UNMASK))
    assert runtime.sum(ask(), NAMES).answered == 2
    # c2's numbers come now, so the living would be others than those that were signed.
    runtime = again(runtime, tmp_path)
    with pytest.raises(FederationError, match="cannot be opened any more"):
        runtime.sum(ask(), NAMES)
    assert runtime.sum(ask(1), NAMES).answered == 4


LOST = st.sets(st.tuples(st.sampled_from(NAMES), st.sampled_from(list(Step))), max_size=5)


@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(0, 1), LOST, st.booleans()), max_size=6))
def test_whatever_gets_lost_and_however_often_it_is_asked_a_round_has_one_sum(asked):
    """Over at least the threshold of owners, each of which is charged once."""
    found = dict[int, bytes]()
    with tempfile.TemporaryDirectory() as name:
        runtime = opened(Path(name))
        for number, lost, restarts in asked:
            if restarts:
                runtime = again(runtime, Path(name))
            losing(runtime, *lost)
            try:
                summed = runtime.sum(ask(number), NAMES)
            except FederationError as error:
                assert "cannot be opened any more" in str(error) and number not in found
                continue
            if summed.answered >= summed.needed:
                assert found.setdefault(number, summed.total.tobytes()) == summed.total.tobytes()
                assert summed.answered + len(summed.incidents) == 4
            else:
                assert number not in found and not summed.total.any()
        for client in runtime._clients.values():
            rounds = [event.round for event in client.ledger.events]
            assert len(rounds) == len(set(rounds))
            client.ledger.close()
        runtime.close("job", finished=True)


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("write", range(5))
def test_a_process_that_is_stopped_at_any_exchange_goes_on_with_the_same_sum(
    write, after, tmp_path
):
    runtime, count, genuine = opened(tmp_path), [0], secure.write_whole

    def stopping(*arguments, **options):
        stops = count[0] == write
        count[0] += 1
        if after or not stops:
            genuine(*arguments, **options)
        if stops:
            raise KeyboardInterrupt

    with patch.object(secure, "write_whole", stopping), pytest.raises(KeyboardInterrupt):
        runtime.sum(ask(), NAMES)
    runtime = again(runtime, tmp_path)
    for client in runtime._clients.values():
        client.coins = NoiseSource(99)
    assert runtime.sum(ask(), NAMES).total.tobytes() == exact().tobytes()
    assert all(len(client.ledger.events) == 1 for client in runtime._clients.values())


def test_without_what_parties_kept_no_round_that_began_is_opened(tmp_path):
    runtime = opened(tmp_path)
    losing(runtime, ("c1", Step.UNMASK), ("c2", Step.UNMASK))
    assert runtime.sum(ask(), NAMES).answered == 2
    (tmp_path / "job.parties").unlink()
    runtime = again(runtime, tmp_path)
    with pytest.raises(FederationError, match="cannot be opened any more"):
        runtime.sum(ask(), NAMES)
    assert runtime.sum(ask(1), NAMES).answered == 4


def test_what_parties_kept_must_be_whole(tmp_path):
    runtime = opened(tmp_path)
    (tmp_path / "job.parties").write_text('{"c0": 3}')
    with pytest.raises(ReleaseError, match="damaged"):
        again(runtime, tmp_path)


def test_another_question_under_a_round_gets_nothing(tmp_path):
    runtime = opened(tmp_path)
    losing(runtime, ("c1", Step.MASKED), ("c2", Step.MASKED))
    runtime.sum(ask(), NAMES)
    other = runtime.sum(replace(ask(), settings={"another": 1}), NAMES)
    assert other.answered == 0 and len(other.incidents) == 4


def test_an_owner_that_insists_answers_secure_sums_alone():
    insisting = replace(OBEDIENT, secure=True)
    for kind, answered in ((LocalRuntime, 0), (None, 4)):
        runtime = opened(kind=kind)
        for client in runtime._clients.values():
            client.floor = insisting
        summed = runtime.sum(ask(), NAMES)
        assert summed.answered == answered
        if not answered:
            assert all(
                "below its floor: nobody adds up in secret" in i.reason for i in summed.incidents
            )
        # Other trusts add up no shares.
        local = ask(1, trust="local", survivors=1, curious=0)
        assert len(runtime.collect(local, NAMES)[0]) == 4


def test_a_share_that_is_whole_only_with_more_honest_owners_than_a_sum_needs_is_refused():
    """Of three answers one may be curious: the other two must carry all of the noise."""
    runtime = opened()
    summed = runtime.sum(ask(survivors=4), NAMES)
    assert summed.answered == 0
    assert all(
        "for 3 honest answers, where a sum is opened of 2" in i.reason for i in summed.incidents
    )
    assert runtime.sum(ask(1, survivors=2), NAMES).answered == 4


def test_rules_of_another_number_of_owners_are_refused():
    with pytest.raises(ConfigError, match="secure sums of 5 owners, and there are 4"):
        SecureRuntime(owners(), Rules(5, 4, 1))
