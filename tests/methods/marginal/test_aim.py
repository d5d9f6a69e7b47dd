"""AIM: what it chooses, what its workload may be, how large its model grows."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.conforming import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.evaluation.measures.marginals import marginal_error
from fedsynth.marginals import Measurement, gain
from fedsynth.methods.marginal import allowing, search
from fedsynth.methods.marginal.aim import AIM
from fedsynth.methods.marginal.measurer import finest_bins
from fedsynth.methods.marginal.settings import AIMSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.calibration import optimal_gaussian_sigma
from fedsynth.schema import Categorical, Integer, Schema
from tests.methods.small import SCHEMA, owners

CENTRAL = Budget(epsilon=5.0, delta=1e-5, trust="central")
APART = Budget(epsilon=20.0, delta=1e-5, trust="distributed")
# Where a fit only has to be made, it is no good one.
QUICK = {"iterations": 10}
TWO = Budget(epsilon=20.0, delta=1e-5, trust="distributed", curious=1)


def coupled(rows=3000, seed=0):
    """Six columns of which c0 and c1 are equal, c2 = c3 xor c4, and c5 is alone."""
    rng = np.random.default_rng(seed)
    c = rng.integers(0, 2, (rows, 6))
    c[:, 1] = c[:, 0]
    c[:, 2] = c[:, 3] ^ c[:, 4]
    frame = pd.DataFrame({f"c{k}": np.array(["n", "y"])[c[:, k]] for k in range(6)})
    columns = [Categorical(name=name, values=["n", "y"]) for name in frame]
    return frame, Schema(columns=columns)


@pytest.mark.parametrize("budget", [CENTRAL, APART], ids=["central", "distributed"])
def test_what_depends_is_measured_first(budget):
    frame, schema = coupled()
    synth = AIM(schema, marginals=1, messages=1, iterations=50).fit([frame], budget)
    asked = [m.clique for m in synth.learned.measurements if len(m.clique) > 1]
    assert asked[-1] == (0, 1)
    rows = synth.sample(1000, seed=0)
    assert (rows["c0"] == rows["c1"]).mean() > 0.97


@pytest.mark.parametrize(
    ("budget", "workload"),
    [(CENTRAL, [["c2", "c3", "c4"]]), (APART, "triples")],
    ids=["central", "distributed"],
)
def test_a_dependence_of_three_columns_needs_their_marginal(budget, workload):
    frame, schema = coupled()

    def parity(**settings):
        settings |= {"iterations": 50}
        rows = AIM(schema, settings).fit([frame], budget).sample(2000, seed=0)
        bits = rows[["c2", "c3", "c4"]].eq("y").sum(axis=1)
        return (bits % 2 == 0).mean()

    assert parity(workload=workload) > 0.95
    if budget is CENTRAL:
        assert parity(workload="pairs") == pytest.approx(0.5, abs=0.1)


def test_without_anybody_trusted_six_messages_are_the_most():
    synth = AIM(SCHEMA, {**QUICK, "marginals": 4}).fit(owners(300, 200), TWO)
    assert len(synth.ledger.events) <= 6
    assert {event.terms.trust for event in synth.ledger.events} == {"distributed"}
    assert all(event.terms.mechanism == "gaussian" for event in synth.ledger.events)


def test_every_column_is_modelled_with_the_target_whatever_is_chosen():
    synth = AIM(SCHEMA, marginals=1, messages=1, iterations=10).fit(owners(300, 200), TWO)
    tree = synth.learned.model.tree
    assert all(tree.home((k, 4)) is not None for k in range(4))


def test_a_trusted_server_may_choose_by_the_exponential_mechanism():
    settings = {**QUICK, "marginals": 3, "selection": "exponential"}
    synth = AIM(SCHEMA, settings).fit(owners(300, 200), CENTRAL)
    mechanisms = [event.terms.mechanism for event in synth.ledger.events]
    assert mechanisms[:3] == ["gaussian", "exponential", "gaussian"]
    sums = AIM(SCHEMA, {**settings, "selection": "sums"}).fit(owners(300, 200), CENTRAL)
    assert all(event.terms.mechanism == "gaussian" for event in sums.ledger.events)


@pytest.mark.parametrize(
    ("cells", "budget", "selection"),
    [(60, CENTRAL, "exponential"), (90, CENTRAL, "exponential"), (500, TWO, "sums")],
)
def test_the_models_size_stays_within_its_cap(cells, budget, selection, monkeypatch):
    # All that is chosen is chosen by one model, to which it is added one by one.
    monkeypatch.setattr(search, "_MODELS", 1)
    synth = AIM(SCHEMA, max_cells=cells, bins=10, selection=selection, iterations=10)
    synth.fit(owners(800, 400), budget)
    assert synth.learned.model.tree.cells <= cells
    assert len(synth.sample(30, seed=0)) == 30


def test_tables_that_the_model_has_no_room_for_are_told(monkeypatch):
    few = {**QUICK, "max_cells": 250, "bins": 10, "marginals": 2}
    (said,) = [r for r in AIM(SCHEMA, **few).fit(owners(800, 400), TWO).remarks if "exceed" in r]
    assert re.match(r"\d+ tables seemed to tell more .* exceed max_cells \(250\) with them", said)
    monkeypatch.setattr(allowing, "_CELLS", 0.0)
    monkeypatch.setattr(allowing, "_LEAST_CELLS", 250)
    few["max_cells"] = 10_000
    (said,) = [r for r in AIM(SCHEMA, **few).fit(owners(800, 400), TWO).remarks if "exceed" in r]
    assert re.search(r"exceed the 250 cells that about 1,\d{3} records tell of", said)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"workload": [["age", "doze"]]}, "did you mean 'dose'"),
        ({"workload": [["age", "age"]]}, "different columns"),
        ({"workload": "all"}, "pairs, triples"),
        ({"messages": 0}, "at least 1"),
        ({"marginals": 0}, "at least 1"),
        ({"target_weight": 0}, "positive"),
        ({"coarse_share": 1.0}, "share"),
        ({"histogram_share": 0.0}, "share"),
        ({"max_cells": -1}, "at least 1"),
        ({"binz": 3}, "did you mean 'bins'"),
        ({"selection": "exponential"}, "trusted server"),
    ],
)
def test_wrong_settings_are_explained(settings, said):
    with pytest.raises(ConfigError, match=said):
        AIM(SCHEMA, **settings).fit(owners(10), APART)


def test_a_target_is_needed_for_its_triples():
    frame, schema = coupled(50)
    with pytest.raises(ConfigError, match="needs a target"):
        AIM(schema, workload="target-triples").fit([frame], APART)


def test_defaults_follow_from_public_facts():
    few = AIMSettings().resolved(APART, SCHEMA)
    assert (few.selection, few.workload, few.messages) == ("sums", "target-triples", 4)
    assert AIMSettings().resolved(CENTRAL, SCHEMA).selection == "sums"
    _, schema = coupled(10)
    assert AIMSettings().resolved(CENTRAL, schema).selection == "exponential"
    assert AIMSettings().resolved(APART, schema).workload == "pairs"
    tight = AIMSettings().resolved(Budget(epsilon=0.1), SCHEMA)
    assert tight.marginals < few.marginals


def test_where_a_number_is_to_be_predicted_numbers_have_fewer_bins():
    """4,000 records in the cells of each of 66 pairs, at least 1.2 or 2.4 times their noise."""
    columns = [Integer(name=f"x{k}", lower=0, upper=999) for k in range(12)]
    budget = Budget(epsilon=1.0, delta=1e-5, curious=0)
    for target, clear in ((None, 1.2), ("x0", 2.4)):
        schema = Schema(columns=columns, target=target)
        settings, plan = AIMSettings().resolved(budget, schema), AIM(schema).plan(budget, 5)
        noise = plan.terms(allowing.COARSE).summed_scale(5) * 66**0.5
        allowed = allowing.allow(schema, settings, plan, 4_000)
        assert (allowed.tier, allowed.bins) == ("workload", int((4_000 / (clear * noise)) ** 0.5))


def test_a_gain_is_the_distance_less_the_noise():
    rng = np.random.default_rng(0)
    expected = np.full((20, 20), 100.0)
    shift = np.where(np.arange(20) % 2, 40.0, -40.0)[:, None] * np.where(np.arange(20) % 2, 1, -1)
    apart = Measurement((0, 1), expected + shift + rng.normal(0, 20, (20, 20)), 20.0)
    same = Measurement((0, 1), expected + rng.normal(0, 20, (20, 20)), 20.0)
    assert gain(same, expected, 0.0, 1.0) < 0
    # At most the exact L1 distance of 400 cells by 40, and of its order.
    assert 400 * 40 * 0.5 < gain(apart, expected, 0.0, 0.0) < 400 * 40 * 1.2
    assert gain(apart, expected, 0.0, 30.0) < gain(apart, expected, 0.0, 1.0)


def test_a_candidate_must_differ_by_more_than_the_likeliest_of_many_would():
    rng = np.random.default_rng(3)
    expected = np.full((5, 5), 100.0)
    noisy = [Measurement((0, 1), expected + rng.normal(0, 20, (5, 5)), 20.0) for _ in range(400)]
    passing = [[gain(m, expected, 0.0, 0.0, sure) > 0 for m in noisy] for sure in (1.0, 2.8)]
    assert sum(passing[0]) > 20 > 8 > sum(passing[1])


def test_few_records_are_told_of_by_columns_alone_and_that_is_said():
    synth = AIM(SCHEMA).fit(owners(30, 20), Budget(epsilon=0.3, delta=1e-5, curious=1))
    assert all(len(clique) == 1 for clique in synth.learned.model.factors)
    assert any("keep each column's distribution and nothing else" in one for one in synth.remarks)
    # What is left of the budget is spent all the same, on columns.
    assert len(synth.ledger.events) == 6
    assert {m.clique for m in synth.learned.measurements} == {(k,) for k in range(5)}


def tied(rows, tie, seed):
    """Four columns of three values and three numbers, which follow a hidden one in part: their
    schema, and a table."""
    rng = np.random.default_rng(seed)
    hidden = rng.integers(3, size=rows)
    names = [*(f"c{k}" for k in range(4)), *(f"x{k}" for k in range(3))]
    other = [rng.integers(3, size=rows) for _ in range(4)]
    columns = [np.where(rng.random(rows) < tie, hidden, one) for one in other]
    drawn = [rng.normal(50 + 12 * tie * (hidden - 1), 10) for _ in range(3)]
    columns += [np.clip(np.rint(one), 0, 100).astype(int) for one in drawn]
    declared = [Categorical(name=name, values=(0, 1, 2)) for name in names[:4]]
    numbers = [Integer(name=name, lower=0, upper=100) for name in names[4:]]
    frame = pd.DataFrame(dict(zip(names, columns, strict=True)))
    return Schema(columns=[*declared, *numbers]), frame


def draw_columns(frame, schema, epsilon, seed):
    """Every column on its own, from one histogram by the whole budget."""
    rng, layout = np.random.default_rng(seed), HistogramLayout.of(schema)
    sigma = optimal_gaussian_sigma(epsilon, 1e-5) * layout.per_record**0.5
    touched = layout.positions(conform(frame, schema)).ravel()
    counts = np.bincount(touched, minlength=layout.dim) + rng.normal(0, sigma, layout.dim)
    encoding = TableEncoding.from_histogram(schema, counts, sigma)
    codes = [rng.choice(len(f), len(frame), p=f / f.sum()) for f in encoding.frequencies]
    return encoding.decode(np.stack(codes, axis=1), rng)


@pytest.mark.parametrize(("rows", "tie"), [(300, 0.9), (1200, 0.0)])
def test_pairs_are_no_further_off_than_columns_alone_leave_them(rows, tie):
    """Whether there is much to tell or nothing, for many records or few."""
    schema, frame = tied(rows, tie, 0)
    budget = Budget(epsilon=1.0, delta=1e-5, trust="central")
    synth = AIM(schema).fit([frame], budget, insecure_noise_seed=0, caution=lambda _: None)
    ours, floor = (
        marginal_error(frame, made, schema, 2).mean
        for made in (synth.sample(rows, seed=0), draw_columns(frame, schema, 1.0, 0))
    )
    # One draw each, of the noise and of as many rows.
    assert ours < 1.05 * floor


def test_where_choosing_brings_nothing_the_budget_goes_to_what_is_known():
    """Of 150 independent records, with a trusted server."""
    schema, frame = tied(150, 0.0, 0)
    budget = Budget(epsilon=1.0, delta=1e-5, trust="central")
    floors, ours, chosen = [], [], []
    for seed in range(2):
        synth = AIM(schema).fit([frame], budget, insecure_noise_seed=seed, caution=lambda _: None)
        made = synth.sample(150, seed=0), draw_columns(frame, schema, 1.0, seed)
        errors = (marginal_error(frame, rows, schema, 2).mean for rows in made)
        for found, error in zip((ours, floors), errors, strict=True):
            found.append(error)
        together = any(len(clique) > 1 for clique in synth.learned.model.tree.cliques)
        said = any("each column's distribution and nothing else" in one for one in synth.remarks)
        assert said is not together
        asked = Counter(event.terms.mechanism for event in synth.ledger.events)
        planned = {one.label: one.count for one in synth.ledger.job.plan}
        chosen.append(asked["exponential"] / planned[allowing.SELECT])
        # The histogram, and all that was planned.
        assert asked["gaussian"] == 1 + planned[allowing.FINE]
    assert min(chosen) < 1
    assert np.mean(ours) < 1.1 * np.mean(floors)


def test_tables_that_the_model_cannot_hold_are_told_of():
    synth = AIM(SCHEMA, max_cells=60, bins=10, iterations=10).fit(owners(800, 400), TWO)
    assert any("max_cells (60)" in remark for remark in synth.remarks)


def test_of_a_number_to_predict_no_two_tables_are_picked_for_one_difference():
    """What a grade has to do with a length it has to do with its copy, which the two tell."""
    rng = np.random.default_rng(0)
    length = rng.integers(0, 8, 6_000)
    grade = np.where(rng.random(6_000) < 0.5, length // 4, rng.integers(0, 2, 6_000))
    frame = pd.DataFrame({"length": length, "copy": length, "grade": grade})
    frame = frame.astype(str).assign(worth=rng.integers(0, 50, 6_000))
    columns = [
        Categorical(name=name, values=list(map(str, range(8)))) for name in ("length", "copy")
    ]
    columns += [
        Categorical(name="grade", values=["0", "1"]),
        Integer(name="worth", lower=0, upper=49),
    ]
    schema = Schema(columns=columns, target="worth")
    budget = Budget(epsilon=1.0, delta=1e-5, curious=0)
    synth = AIM(schema, marginals=3, messages=1).fit([frame], budget, seed=0, insecure_noise_seed=0)
    again = [m.clique for m in synth.learned.measurements if len(m.clique) == 2][6:]
    assert (0, 1) in again and len({(0, 2), (1, 2)} & set(again)) == 1
    # The model has them both.
    for clique in ((0, 2), (1, 2)):
        table = synth.learned.model.marginal(clique)
        truth = np.histogram2d(length, grade, (8, 2))[0] / 6_000
        assert np.abs(table - truth).sum() < 0.03


@pytest.mark.parametrize("trust", ["distributed", "central"])
def test_a_resumed_fit_decides_the_same_to_the_bit(trust, tmp_path):
    """All answers are in the checkpoint; what follows from them is worked out anew."""
    schema = SCHEMA if trust == "distributed" else Schema(columns=SCHEMA.columns)
    curious = {"curious": 1} if trust == "distributed" else {}
    tables, budget = owners(400, 300), Budget(epsilon=2.0, delta=1e-5, trust=trust, **curious)
    settings = {**QUICK, "marginals": 4}
    first = AIM(schema, settings).fit(tables, budget, folder=tmp_path)
    second = AIM(schema, settings).fit(tables, budget, folder=tmp_path, resume=True)
    assert len(second.ledger.events) == len(first.ledger.events)
    (arrays, plain), (again, told) = first.model_state(), second.model_state()
    assert plain == told and arrays.keys() == again.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(array, again[name])
    # Numbers have fewer codes than they are counted in by themselves.
    bins = first.learned.encoding.bins[0]
    assert bins.size < len(bins.starts)


def test_columns_are_counted_the_finer_the_more_records_stand_above_the_noise():
    assert finest_bins(24) == finest_bins(12) == finest_bins(24, 1_000, 30.0) == 24
    assert finest_bins(24, 4_000, 30.0) == 33
    assert finest_bins(24, 1e9, 30.0) == finest_bins(24, 100, 0.0) == 48
    assert finest_bins(200, 1e9, 30.0) == 200


def test_of_many_records_columns_are_near_value_by_value():
    """Six columns of 48 values, each with a share of its own, by 20,000 records."""
    rng = np.random.default_rng(0)
    values = rng.choice(48, 20_000, p=rng.dirichlet(np.full(48, 2.0)))
    frame = pd.DataFrame({f"c{k}": rng.permutation(values) for k in range(6)})
    schema = Schema(columns=[Integer(name=name, lower=0, upper=47) for name in frame])
    budget = Budget(epsilon=1.0, delta=1e-5, trust="central")
    synth = AIM(schema, selection="sums").fit([frame], budget, seed=0, insecure_noise_seed=0)
    drawn = synth.sample(len(frame), seed=0)
    real = np.bincount(values, minlength=48)
    apart = [np.abs(np.bincount(drawn[c], minlength=48) - real).sum() / 40_000 for c in frame]
    # By 24 bins, within which values are drawn as the histogram alone has them, .023.
    assert np.mean(apart) < 0.021
