"""What the best of several trials costs: against dp-accounting, and worked by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting import dp_event, rdp
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fedsynth.errors import BudgetExceeded, PrivacyError
from fedsynth.privacy import accounting
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.adversaries import ALL, HOLDER, SERVER, adversaries
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.mechanisms.pure import pure_curve
from fedsynth.privacy.sampling import FixedSize, Poisson
from fedsynth.privacy.selecting import Selecting, best_of, part_of
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Event, Job, Planned
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.trail.spelling import read_terms, spell
from fedsynth.privacy.trials import KINDS, Trials
from fedsynth.privacy.verify import charges, moments

DELTA = 1e-5
FIXED = {"unit": "client", "sampling": FixedSize(2, 9)}
# One outcome comes seldomer while better ones come oftener: the best is it seldomer still.
NEARLY = [(-0.24, -0.2), (-4.6, -0.5), (-1.6, 0.5)]
SHAPES = {"logarithmic": 0, "geometric": 1, "poisson": math.inf}


def gaussian(noise, **more):
    return Terms(
        **{"unit": "record", "trust": "central", "clip": 1.0, **more}, noise_multiplier=noise
    )


TEN = Trials(10.0, "geometric")


def selecting(*parts, trials=TEN, **more):
    parts = parts or ({gaussian(5.0): 2},)
    return Selecting(
        **{"unit": "record", "trust": "central", **more},
        trials=trials,
        parts=tuple(part_of(part) for part in parts),
    )


def lines(terms, **budget):
    """A ledger's lines, as they stand in its file."""
    job = Job(budget=Budget(**{"epsilon": 1e6, "delta": DELTA, "trust": "central", **budget}),
              plan=(Planned("selection", terms, 1),))  # fmt: skip
    return [{"kind": "job", **job.to_dict()}, Event("selection", 0, terms, job.job).to_dict()]


@pytest.mark.parametrize("kind", KINDS)
def test_a_selection_costs_what_dp_accounting_says_of_its_costliest_part(kind):
    """A record is in one part alone: the smaller costs nothing beside the larger."""
    terms = selecting({gaussian(5.0): 2, gaussian(9.0): 3}, {gaussian(8.0): 1},
                      trials=Trials(12.0, kind))  # fmt: skip
    one = dp_event.ComposedDpEvent(
        [dp_event.SelfComposedDpEvent(dp_event.GaussianDpEvent(z), k) for z, k in ((5, 2), (9, 3))]
    )
    accountant = rdp.RdpAccountant(accounting.orders().tolist())
    accountant.compose(dp_event.RepeatAndSelectDpEvent(one, 12.0, SHAPES[kind]))
    found = spent({terms: 1}, DELTA)
    assert found.epsilon == pytest.approx(accountant.get_epsilon(DELTA), rel=1e-9)
    assert found.pld is None


def test_theorem_6_by_hand():
    """Gaussian trials of z = 6, Poisson of mean 20: e(a) = a/72; at order a the delta of a trial at
    e^epsilon = 1 + 1/(a-1) is the least over b of e^((b-1)(b/72 - epsilon)) (1-1/b)^(b-1) / b, or
    sqrt(1 - e^(-b/72))."""
    order, mean = accounting.orders(), 20.0

    def delta(a):
        epsilon = math.log(1 + 1 / (a - 1))
        tails = [
            (math.exp((b - 1) * (b / 72 - epsilon)) * (1 - 1 / b) ** (b - 1) / b)
            for b in order
            if (b - 1) * (b / 72 - epsilon) < 700 and b > 1.01
        ]
        return min(1.0, *tails, *(math.sqrt(1 - math.exp(-b / 72)) for b in order))

    by_hand = np.array([a / 72 + mean * delta(a) + math.log(mean) / (a - 1) for a in order])
    by_hand = np.array([by_hand[k:].min() for k in range(len(order))])
    assert best_of(order / 72, Trials(mean, "poisson")) == pytest.approx(by_hand, rel=1e-9)


@pytest.mark.parametrize(("kind", "times"), [("logarithmic", 2), ("geometric", 3)])
def test_the_best_of_pure_trials_is_pure_and_costs_two_or_three_of_them(kind, times):
    """Papernot and Steinke's (2 + shape) epsilon, which Renyi orders come to from below and above:
    their last is 1024, at which a trial of epsilon .5 costs .498, and the number of trials .02."""
    last = best_of(pure_curve(0.5), Trials(10.0, kind))[-1]
    assert 0.95 * times * 0.5 < last < times * 0.5 + 0.03


@settings(max_examples=25)
@given(
    st.sampled_from(KINDS),
    st.floats(1.0, 200),
    st.lists(st.tuples(st.floats(-5, 0), st.floats(-2, 2)), min_size=2, max_size=6),
)
@example("geometric", 10.0, NEARLY)
@example("logarithmic", 10.0, NEARLY)
@example("poisson", 10.0, NEARLY)
def test_the_best_of_exactly_known_trials_costs_no_more_than_is_said(kind, mean, outcomes):
    """Trials with few outcomes, the later the better: the best is at most y with probability
    f(Q(at most y)), f the law's generating function, and so every divergence is known exactly."""
    logs, moved = np.array(outcomes).T
    trials, order = Trials(mean, kind), accounting.orders()

    def divergence(p, q):
        live = p > 0
        logs = order * np.log(p[live])[:, None] + (1 - order) * np.log(q[live])[:, None]
        found = (np.log(np.exp(logs - logs.max(0)).sum(0)) + logs.max(0)) / (order - 1)
        return np.maximum(found, 0)

    one, best = [], []
    for own in (logs, logs + moved):
        law = np.exp(own) / np.exp(own).sum()
        below = [0.0, *np.minimum(np.cumsum(law), 1.0)[:-1], 1.0]
        one.append(law)
        # The first outcome is that there is no trial.
        best.append(np.diff([0.0, *map(trials.generate, below)]))
    curve = np.maximum(divergence(*one), divergence(*one[::-1]))
    said = best_of(curve, trials)
    known = np.maximum(divergence(*best), divergence(*best[::-1]))
    assert (known <= said * (1 + 1e-6) + 1e-6).all()


@settings(max_examples=10)
@given(
    st.sampled_from(KINDS),
    st.floats(1.0, 500),
    st.floats(0.5, 60),
    st.integers(1, 30),
    st.sampled_from([None, 0.01, 0.3]),
)
def test_both_accountants_agree(kind, mean, noise, count, rate):
    sampled = {} if rate is None else {"sampling": Poisson(rate)}
    terms = selecting(
        {gaussian(noise, **sampled): count}, {gaussian(3.0): 1}, trials=Trials(mean, kind)
    )
    read = charges.charge(lines(terms))
    second = moments.epsilon(moments.compose(read.counts, read.replace_one), read.delta)
    # Fewer orders here than in the second accountant.
    assert second <= spent({terms: 1}, DELTA).epsilon * 1.001 <= second * 1.03


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"trust": "local"}, "local trust"),
        ({"parts": []}, "trials of nothing"),
        ({"parts": [[]]}, "trials of nothing"),
        ({"trials": {"mean": 10.0, "kind": "uniform"}}, "a law called uniform"),
        ({"trials": {"mean": 0.2, "kind": "poisson"}}, "0.2 trials"),
        ({"trials": {"mean": 10.0}}, "without a law"),
        ({"more": 1}, "unknown fields"),
    ],
)
def test_the_second_accountant_has_no_rule_for_a_selection_without_its_conditions(change, said):
    job, event = lines(selecting(), trust="local" if "trust" in change else "central")
    event["terms"] |= change
    with pytest.raises(charges.ReleaseError, match=said):
        charges.charge([job, event])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"noise_multiplier": 0.0}, "without noise"),
        ({"trust": "shared"}, "shared trust"),
        ({"mechanism": "selection"}, "no trials, parts|no parts"),
        ({"sampling": {"kind": "fixed-size", "size": 2, "population": 9}}, "of a fixed size"),
    ],
)
def test_the_second_accountant_reads_what_a_trial_releases(change, said):
    job, event = lines(selecting())
    event["terms"]["parts"][0][0]["terms"] |= change
    with pytest.raises(charges.ReleaseError, match=said):
        charges.charge([job, event])


def test_the_second_accountant_reads_no_part_that_says_more_than_it_knows():
    job, event = lines(selecting())
    event["terms"]["parts"][0][0]["more"] = 1
    with pytest.raises(charges.ReleaseError, match="a part that is none"):
        charges.charge([job, event])


def test_terms_are_read_as_they_were_written():
    terms = selecting({gaussian(5.0, sampling=Poisson(0.1)): 2}, {gaussian(7.0): 1})
    assert read_terms(spell(terms)) == terms
    for change in ({"parts": []}, {"trials": {"mean": 10.0}}, {"trust": "local"}):
        with pytest.raises(PrivacyError):
            read_terms({**spell(terms), **change})


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: selecting(trust="distributed"), "only a trusted server"),
        (lambda: selecting({gaussian(0.0): 1}), "without noise"),
        (lambda: selecting({}), "selection of nothing"),
        (lambda: selecting({selecting(): 1}), "no selection of selections"),
        (lambda: selecting({gaussian(1.0, trust="local"): 1}), "trust of their selection"),
        (
            lambda: selecting(
                {gaussian(1.0, unit="client", sampling=FixedSize(2, 9)): 1}, unit="client"
            ),
            "fixed size",
        ),
    ],
)
def test_a_selection_that_would_protect_nobody_is_refused(make, said):
    with pytest.raises(PrivacyError, match=said):
        make()


def test_only_whoever_sees_the_best_alone_is_promised_anything():
    terms = selecting()
    budget = Budget(epsilon=5.0, delta=DELTA, trust="central").for_clients(3)
    found = {one.who: one for one in adversaries({terms: 1}, budget, 3, None)}
    assert found[HOLDER].epsilon == spent({terms: 1}, DELTA).epsilon
    assert [found[who].promised for who in (HOLDER, ALL, SERVER)] == [True, False, False]
    assert math.isinf(found[ALL].epsilon)


def test_an_owners_account_carries_a_selection_across_jobs(tmp_path):
    terms = selecting({gaussian(8.0): 1})
    cost = spent({terms: 1}, DELTA).epsilon
    path, budget = (
        tmp_path / "north.jsonl",
        Budget(epsilon=1.8 * cost, delta=DELTA, trust="central"),
    )
    ledger = Ledger.of_owner(path, budget)
    ledger.charge(Event("selection", 0, terms, "first"))
    ledger.close()
    again = Ledger.of_owner(path, budget)
    assert again.counts == {terms: 1} and cost == pytest.approx(again.spent().epsilon)
    with pytest.raises(BudgetExceeded):
        for number in range(3):
            again.charge(Event("selection", 0, terms, f"job {number}"))
    again.close()
