"""Fits whose sums are secure: the same rows as without, told as what they are, over crashes too."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from unittest.mock import patch

import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.federation.runtime import Federation
from fedsynth.federation.runtimes.secure import Owners
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import list_rules
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.queries.plan import count_survivors
from fedsynth.queries.secure import rules_for, tell_rules
from tests.methods.contract import made
from tests.methods.small import owners

BUDGET = Budget(epsilon=2.0, delta=1e-4)
BUDGET_OF_TWO = Budget(epsilon=2.0, delta=1e-4, curious=1)
OURS = {
    "one marginal after another": ("aim", {}),
    "one message": ("mean-embedding", {}),
    "rounds of drawn records": ("fedvae", {"rate": 0.5, "noise_multiplier": 20.0}),
    "Laplace noise": ("private-fusion", {"mechanism": "laplace"}),
}


def fit(which: str = "one message", *, secure: bool = True, budget=BUDGET, **options):
    name, settings = OURS[which]
    synth = made(name, **settings)
    options = {"insecure_noise_seed": 1, "caution": lambda _: None, **options}
    return synth.fit(owners(30, 20, 10), budget, secure=secure, **options)


DROPS = {"budget": Budget(epsilon=2.0, delta=1e-4, curious=0), "survivors": 0.6}


@pytest.mark.parametrize(
    ("which", "options", "first", "each"),
    # All three owners are needed: two exchanges for the first round, one for each other; where one
    # may drop out, five and three.
    [*((which, {}, 1, 1) for which in OURS), ("one message", DROPS, 2, 3)],
)
def test_rows_are_the_same_to_the_last_bit_and_every_sum_was_secure(which, options, first, each):
    answered, genuine = [], Party.answer
    with patch.object(Party, "answer", lambda *args: answered.append(args[0]) or genuine(*args)):
        plain = fit(which, secure=False, **options)
        assert not answered
        secured = fit(which, **options)
    assert len(answered) == 3 * (first + each * len(secured.ledger.events))
    pd.testing.assert_frame_equal(plain.sample(20, seed=0), secured.sample(20, seed=0))


def test_the_certificate_says_that_the_protocol_ran_or_that_it_is_assumed(tmp_path):
    words = {}
    for secure in (False, True):
        synth = fit(secure=secure)
        synth.release(tmp_path / str(secure), synth.sample(5, seed=0))
        content = json.loads((tmp_path / str(secure) / "certificate.json").read_text())
        words[secure] = content["guarantee"]["trust_in_words"]
        failed = {check.name for check in fs.verify(tmp_path / str(secure)) if not check.passed}
        assert failed == {"not void"}
    assert "(secure aggregation is assumed)" in words[False]
    assert "the whole protocol of secure aggregation (between clients that one" in words[True]
    first = (tmp_path / "True" / "ledger.jsonl").read_text().splitlines()[0]
    assert json.loads(first)["secure"] == "simulated"
    plain = Ledger.read(tmp_path / "True" / "ledger.jsonl").job.to_dict()
    assert Job.from_dict(plain).secure == "simulated"
    assert Job.from_dict({**plain, "secure": "apart"}).secure == "apart"
    with pytest.raises(PrivacyError, match="does not know"):
        Job.from_dict({**plain, "secure": "by a notary"})
    assert "secure" not in json.loads((tmp_path / "False" / "ledger.jsonl").open().readline())


def test_noise_is_whole_beside_those_who_are_curious():
    """Ten owners, threshold 8, one curious: seven shares make the whole."""
    plan = made("mean-embedding").plan(BUDGET, 10, 0.8, secure=True)
    (release,) = plan.releases
    assert (release.terms.survivors, release.terms.curious, release.terms.shares) == (8, 1, 7)
    assert (plan.secure.threshold, plan.secure.may_drop, plan.secure.shares) == (8, 2, 7)
    summed = release.terms.summed_scale(10) / release.terms.scale
    assert summed == pytest.approx(math.sqrt(10 / 7)) == plan.secure.noise


@pytest.mark.parametrize("at", [2, 3])
def test_a_job_that_is_killed_within_a_sum_goes_on_and_pays_once(at, tmp_path):
    """The second exchange brings the numbers of the first round, the third those of the next."""
    accounts = Budget(epsilon=100.0, delta=1e-5, trust="central")

    def ledgers():
        names = owners(30, 20, 10)
        return {n: Ledger.of_owner(tmp_path / "own" / f"{n}.jsonl", accounts) for n in names}

    count, genuine = [0], Owners._exchange

    def killed(self, *arguments):
        yield from genuine(self, *arguments)
        count[0] += 1
        if count[0] == at:
            raise KeyboardInterrupt

    options = {"folder": tmp_path / "job", "budget": BUDGET}
    opened = ledgers()
    with patch.object(Owners, "_exchange", killed), pytest.raises(KeyboardInterrupt):
        fit("one marginal after another", owners_ledgers=opened, **options)
    for ledger in opened.values():
        ledger.close()
    opened = ledgers()
    with pytest.raises(ConfigError, match="another choice of secure sums"):
        fit(
            "one marginal after another", secure=False, resume=True,
            owners_ledgers=opened, **options
        )  # fmt: skip
    synth = fit("one marginal after another", resume=True, owners_ledgers=opened, **options)
    rounds = Counter(event.round for event in synth.ledger.events)
    assert len(rounds) == synth.plan(BUDGET, 3).total and set(rounds.values()) == {1}
    for ledger in opened.values():
        assert Counter(event.round for event in ledger.events) == rounds
        ledger.close()
    assert {path.suffix for path in (tmp_path / "own").iterdir()} == {".jsonl"}


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"budget": Budget(epsilon=2.0, trust="central")}, "under central trust no shares"),
        ({"budget": Budget(epsilon=2.0, trust="local")}, "under local trust no shares"),
        ({"survivors": 0.5}, "secure sums with 1 curious take 3 at least"),
        ({"secure": "yes"}, "secure"),
    ],
)
def test_what_secure_sums_cannot_do_is_refused_before_anything_is_asked(options, said, tmp_path):
    with pytest.raises(ConfigError, match=said):
        fit(folder=tmp_path / "job", **options)
    assert not (tmp_path / "job" / "ledger.jsonl").exists()


def test_clients_that_are_drawn_each_round_are_refused_before_anything_is_asked(tmp_path):
    drawn = made("fedvae", rate=0.5)
    budget = Budget(epsilon=2.0, unit="client")
    with pytest.raises(ConfigError, match="draws clients each round"):
        drawn.plan(budget, 10, secure=True)
    with pytest.raises(ConfigError, match="draws clients each round"):
        drawn.fit(owners(*[5] * 10), budget, secure=True, folder=tmp_path)
    assert not (tmp_path / "ledger.jsonl").exists()
    # Where all are asked the unit does not matter.
    assert made("fedvae").plan(budget, 10, secure=True).secure.cohort == 10


class Elsewhere(Federation):
    """Owners of whom nobody knows how their sums are added up."""

    def open(self, *_, **__):
        raise AssertionError("nothing is to be opened")


def test_a_federation_that_carries_no_secure_sums_is_not_said_to():
    with pytest.raises(ConfigError, match="this federation carries no secure sums"):
        made("mean-embedding").fit(Elsewhere(), BUDGET, secure=True)


def test_a_plan_and_a_fit_must_both_be_secure():
    plan = made("mean-embedding").plan(BUDGET, 3)
    with pytest.raises(ConfigError, match="one of fit and plan says secure=True"):
        fit(plan=plan)


def test_whoever_plans_or_runs_is_told_who_may_drop_out_and_what_it_costs():
    plan = made("mean-embedding").plan(BUDGET, 10, 0.8, secure=True)
    (told,) = [one for one in plan.cautions() if one.startswith("secure sums")]
    for words in (
        "8 of 10 owners",
        "2 may drop out",
        "1.20 times",
        "survivors 0.6: 4 may drop out",
    ):
        assert words in told
    heard = []
    fit(caution=heard.append)
    assert any("3 of 3 owners must answer every round, and nobody may drop out" in h for h in heard)


@pytest.mark.parametrize("owners", [2, 3, 5, 6, 7, 30, 97, 100])
def test_what_is_said_of_survivors_is_what_gives_these_numbers(owners):
    for rules in list_rules(owners, 1):
        told = tell_rules(rules)
        for share, drops in re.findall(r"survivors ([\d.]+): (\w+) may drop", told):
            again = rules_for(BUDGET_OF_TWO, owners, count_survivors(float(share), owners))
            assert again.may_drop == (0 if drops == "nobody" else int(drops))
    with pytest.raises(ConfigError) as error:
        rules_for(BUDGET_OF_TWO, owners, 1)
    (least,) = re.findall(r"Say survivors ([\d.]+) or more", str(error.value))
    assert rules_for(BUDGET_OF_TWO, owners, count_survivors(float(least), owners)).curious == 1


def test_no_privacy_is_summed_in_secret_too():
    """Answers without noise are rounded to a grid, far finer than anything that is learned."""
    plain, secured = (
        fit(budget=Budget(epsilon=math.inf), secure=secure).model_state()[0]
        for secure in (False, True)
    )
    assert all(plain[key] == pytest.approx(secured[key], abs=1e-3) for key in plain)
