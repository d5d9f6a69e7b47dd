"""FedInfer as a synthesizer: budget, rows, arrivals, merging, persistence, odd tables."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.conforming import conform
from fedsynth.errors import ConfigError, PrivacyError, ReleaseError
from fedsynth.methods.inference.synthesizer import FedInfer
from fedsynth.privacy.budget import Budget
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Identifier,
    ImageSchema,
    Integer,
    Schema,
)
from tests.methods.inference.clinics import EXACT, LOOSE, SCHEMA, owners, table

LOCAL = Budget(epsilon=1.0, delta=1e-5, trust="local")


@pytest.fixture(scope="module", params=[True, False], ids=["by class", "shared"])
def fitted(request):
    synth = FedInfer(SCHEMA, class_conditional=request.param)
    return synth.fit(owners(3000, 2000), LOOSE, insecure_noise_seed=1)


BUDGETS = [
    Budget(epsilon=1.0, delta=1e-5, trust=trust, unit=unit)
    for trust, unit in itertools.product(("central", "distributed", "local"), ("record", "client"))
]


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda b: f"{b.trust}-{b.unit}")
def test_one_message_costs_the_budget_and_hardly_less(budget):
    synth = FedInfer(SCHEMA).fit(owners(60, 40, 1), budget)
    assert 0.99 < synth.ledger.spent().epsilon <= 1.0
    assert len(synth.ledger.events) == 1
    assert len(synth.sample(20, seed=0)) == 20
    assert np.isfinite(synth.moments().mean).all()


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_laplace_noise_needs_no_delta(trust):
    budget = Budget(epsilon=1.0, delta=1e-12, trust=trust)
    synth = FedInfer(SCHEMA, mechanism="laplace").fit(owners(60, 40, 20), budget)
    assert 0.99 < synth.ledger.spent().epsilon <= 1.0


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_noise_in_the_sum_is_what_the_estimates_count_on(trust):
    budget = Budget(epsilon=1.0, delta=1e-5, trust=trust)
    tables = owners(50, 30, 20)
    exact = FedInfer(SCHEMA).fit(tables, EXACT).estimate.values
    z = []
    for seed in range(10):
        estimate = FedInfer(SCHEMA).fit(tables, budget, insecure_noise_seed=seed).estimate
        z.append((estimate.values - exact) / estimate.sigma)
    assert np.std(z) == pytest.approx(1, abs=0.04)
    assert abs(np.mean(z)) < 0.08


def test_rows_have_the_schemas_columns_types_and_values(fitted):
    rows = fitted.sample(300, seed=0)
    assert list(rows) == [column.name for column in SCHEMA.columns]
    assert rows["age"].between(18, 90).all() and rows["dose"].between(0, 10).all()
    assert set(rows["colour"].dropna()) <= {"red", "green", "blue"}
    pd.testing.assert_frame_equal(rows, fitted.sample(300, seed=0))
    assert not rows.equals(fitted.sample(300, seed=1))
    assert len(fitted.sample(1, seed=0)) == 1


def test_rows_have_the_means_shares_and_dependences_of_the_records(fitted):
    rows, real = fitted.sample(20_000, seed=0), pd.concat(owners(3000, 2000).values())
    for part in ("well", "ill"):
        drawn, true = rows[rows["outcome"] == part], real[real["outcome"] == part]
        assert len(drawn) / len(rows) == pytest.approx(len(true) / len(real), abs=0.015)
        for name, reach in {"age": 1.5, "dose": 0.1, "weight": 1.5}.items():
            assert drawn[name].mean() == pytest.approx(true[name].mean(), abs=reach)
        shares = drawn["colour"].fillna("gap").value_counts(normalize=True)
        wanted = true["colour"].fillna("gap").value_counts(normalize=True)
        assert (shares.reindex(wanted.index).fillna(0) - wanted).abs().max() < 0.03
        assert drawn["weight"].isna().mean() == pytest.approx(0.2, abs=0.02)
    assert rows["age"].std() == pytest.approx(real["age"].std(), rel=0.03)
    assert rows["age"].corr(rows["weight"]) == pytest.approx(
        real["age"].corr(real["weight"]), abs=0.05
    )


def test_a_class_of_its_own_covariance_keeps_it():
    rng = np.random.default_rng(0)
    schema = Schema(
        columns=[
            Continuous(name="a", lower=-10, upper=10, decimals=3),
            Continuous(name="b", lower=-10, upper=10, decimals=3),
            Boolean(name="y"),
        ],
        target="y",
    )
    y = rng.random(4000) < 0.5
    a = rng.normal(0, 1, 4000)
    frame = pd.DataFrame({"a": a, "b": np.where(y, a, -a) + rng.normal(0, 0.3, 4000), "y": y})
    rows = FedInfer(schema).fit([frame], EXACT).sample(4000, seed=0)
    for value, sign in ((True, 1), (False, -1)):
        own = rows[rows["y"] == value]
        assert sign * own["a"].corr(own["b"]) == pytest.approx(0.958, abs=0.02)
    shared = FedInfer(schema, class_conditional=False).fit([frame], EXACT).sample(4000, seed=0)
    assert abs(shared["a"].corr(shared["b"])) < 0.05


def test_conditions_and_shares_of_the_target_hold(fitted):
    rows = fitted.sample(500, where={"outcome": "ill"}, seed=0)
    assert (rows["outcome"] == "ill").all() and rows["dose"].mean() > 6
    both = fitted.sample(
        200, where={"outcome": "well", "smoker": True, "age": {"from": 60}}, seed=0
    )
    assert both["smoker"].all() and (both["age"] >= 60).all() and (both["outcome"] == "well").all()
    shares = fitted.sample(2000, proportions={"ill": 3, "well": 1}, seed=0)
    assert (shares["outcome"] == "ill").mean() == pytest.approx(0.75, abs=0.04)
    with pytest.raises(ConfigError, match="did you mean"):
        fitted.sample(5, where={"agee": 3})
    with pytest.raises(ConfigError, match="at least 1"):
        fitted.sample(0)


def test_a_release_can_be_sampled_and_asked_again(fitted, tmp_path):
    from fedsynth.jobs.loading import load

    fitted.release(tmp_path / "release", fitted.sample(50, seed=3))
    again = load(tmp_path / "release")
    pd.testing.assert_frame_equal(again.sample(200, seed=5), fitted.sample(200, seed=5))
    assert (again.regression("dose").errors == fitted.regression("dose").errors).all()
    arrays, meta = fitted.model_state()
    for broken in (
        ({}, meta),
        ({**arrays, "messages": arrays["messages"][:, 1:]}, meta),
        ({**arrays, "scales": np.ones(2)}, meta),
        (arrays, {**meta, "settings": {"clip": 3}}),
        (arrays, {**meta, "clients": None}),
    ):
        with pytest.raises(ReleaseError):
            FedInfer.from_state(SCHEMA, *broken)


def test_messages_may_arrive_in_any_order(tmp_path):
    synth = FedInfer(SCHEMA).fit(owners(400, 300, 200), LOCAL, insecure_noise_seed=0)
    assert len(synth.ledger.events) == 1
    names = list(owners(1, 1, 1))
    ends = []
    for order in itertools.permutations(names):
        estimates = list(synth.arrivals(order))
        assert [len(e.clients) for e in estimates] == [1, 2, 3]
        assert estimates[0].clients == (order[0],)
        assert len(estimates[0].sample(7, seed=0)) == 7
        sigmas = [e.sigma / estimates[0].sigma for e in estimates]
        assert sigmas == pytest.approx([1, math.sqrt(2), math.sqrt(3)])
        ends.append(estimates[-1])
    for end in ends:
        np.testing.assert_allclose(end.values, synth.estimate.values, atol=1e-9)
    with pytest.raises(ConfigError, match="every message once"):
        next(synth.arrivals(["site-0"]))


def test_each_arrival_is_an_estimate_of_the_clients_so_far():
    tables = owners(80, 50, 30)
    budget = Budget(epsilon=math.inf, trust="local")
    synth = FedInfer(SCHEMA).fit(tables, budget)
    for count, estimate in enumerate(synth.arrivals(), 1):
        pooled = FedInfer(SCHEMA).fit(dict(list(tables.items())[:count]), EXACT)
        np.testing.assert_allclose(estimate.values, pooled.estimate.values, atol=1e-9)
        assert estimate.records == pytest.approx(sum(map(len, list(tables.values())[:count])))
    assert len(list(FedInfer(SCHEMA).fit(tables, EXACT).arrivals())) == 1


def test_late_comers_add_up_to_the_whole():
    tables = owners(80, 50, 30, 20)
    early = FedInfer(SCHEMA).fit({k: tables[k] for k in ("site-0", "site-2")}, EXACT)
    late = FedInfer(SCHEMA).fit({k: tables[k] for k in ("site-1", "site-3")}, EXACT)
    whole = FedInfer(SCHEMA).fit(tables, EXACT)
    for merged in (early.merge(late), late.merge(early)):
        np.testing.assert_allclose(merged.estimate.values, whole.estimate.values, atol=1e-9)
        np.testing.assert_allclose(
            merged.regression("dose").coefficients,
            whole.regression("dose").coefficients,
            atol=1e-9,
        )
    assert len(early.learned.messages) == 1


def test_a_merged_model_keeps_both_accounts_and_is_not_certified(tmp_path):
    tables = owners(80, 50, 30)
    cheap = FedInfer(SCHEMA).fit({"site-0": tables["site-0"]}, LOCAL)
    dear = FedInfer(SCHEMA).fit(
        {"site-1": tables["site-1"]}, Budget(epsilon=3.0, delta=1e-5, trust="central")
    )
    merged = cheap.merge(dear)
    assert merged.ledgers == (cheap.ledger, dear.ledger)
    assert merged.cost() == (dear.ledger.spent().epsilon, 1e-5)
    assert cheap.cost()[0] < 1.0 < merged.cost()[0] < 3.0
    sigmas = [cheap.estimate.sigma, dear.estimate.sigma]
    assert merged.estimate.sigma == pytest.approx(math.hypot(*sigmas))
    with pytest.raises(PrivacyError, match="ledger of its own"):
        merged.release(tmp_path / "merged", merged.sample(5, seed=0))
    assert not (tmp_path / "merged").exists()
    known = FedInfer(SCHEMA).fit({"a": tables["site-2"]}, LOCAL, insecure_noise_seed=0)
    assert math.isinf(merged.merge(known).cost()[0])
    loaded = FedInfer.from_state(SCHEMA, *known.model_state())
    with pytest.raises(ConfigError, match="certificate"):
        merged.merge(loaded).cost()
    third = FedInfer(SCHEMA).fit({"site-2": tables["site-2"]}, LOCAL)
    assert len(merged.merge(third).ledgers) == 3
    assert [e.clients[-1] for e in merged.merge(third).arrivals()] == ["site-0", "site-1", "site-2"]


def test_an_owner_cannot_be_counted_twice():
    synth = FedInfer(SCHEMA).fit(owners(30), LOCAL)
    with pytest.raises(PrivacyError, match="'site-0'"):
        synth.merge(FedInfer(SCHEMA).fit(owners(30), LOCAL))
    other = {"elsewhere": table(20)}
    with pytest.raises(ConfigError, match="same settings"):
        synth.merge(FedInfer(SCHEMA, clip=0.5).fit(other, LOCAL))
    with pytest.raises(ConfigError, match="unit"):
        synth.merge(FedInfer(SCHEMA).fit(other, Budget(epsilon=1.0, unit="client", trust="local")))


def test_a_fit_cut_off_after_its_message_resumes_without_asking_again(tmp_path):
    tables = owners(50, 30)
    folder = tmp_path / "job"
    first = FedInfer(SCHEMA).fit(tables, LOCAL, folder=folder)
    again = FedInfer(SCHEMA).fit(tables, LOCAL, folder=folder, resume=True)
    assert (again.estimate.values == first.estimate.values).all()
    assert len(again.ledger.events) == 1


def test_nothing_is_known_before_a_fit():
    for ask in (
        lambda s: s.sample(3),
        lambda s: s.moments(),
        lambda s: s.ledger,
        lambda s: s.release("nowhere", None),
    ):
        with pytest.raises(ConfigError):
            ask(FedInfer(SCHEMA))
    with pytest.raises(ConfigError, match="images"):
        FedInfer(ImageSchema(shape=(8, 8)))
    with pytest.raises(ConfigError, match="clip"):
        FedInfer(SCHEMA, clip=0)


def test_a_clip_shortens_the_longest_records_alone():
    tables, exact = owners(300), FedInfer(SCHEMA).fit(owners(300), EXACT)
    wide = FedInfer(SCHEMA, clip=0.999).fit(tables, EXACT)
    tight = FedInfer(SCHEMA, clip=0.3).fit(tables, EXACT)
    assert wide.moments().mean == pytest.approx(exact.moments().mean, rel=1e-6)
    bound = tight.statistic.clip**2
    second = tight.statistic.second(tight.estimate.values).sum(axis=0)
    assert np.trace(second) == pytest.approx(300 * bound, rel=1e-6)
    noisy = [
        FedInfer(SCHEMA, clip=c).fit(tables, LOOSE).regression("dose", on=["age"]) for c in (1, 0.5)
    ]
    assert noisy[1].noise_errors[1] < noisy[0].noise_errors[1]


ODD = {
    "one column": (Schema(columns=[Integer(name="n", lower=0, upper=9)]), {"n": [1, 2, 3]}),
    "the target alone": (
        Schema(columns=[Categorical(name="y", values=["a", "b"])], target="y"),
        {"y": ["a", "b", "a"]},
    ),
    "a key beside it": (
        Schema(columns=[Identifier(name="k"), Integer(name="n", lower=0, upper=9)]),
        {"k": [5, 6, 7], "n": [1, 2, 3]},
    ),
    "one class": (
        Schema(
            columns=[Integer(name="n", lower=0, upper=9), Categorical(name="y", values=["only"])],
            target="y",
        ),
        {"n": [1, 2, 3, 4, 5], "y": ["only"] * 5},
    ),
    "a class that nobody has": (
        Schema(
            columns=[
                Integer(name="n", lower=0, upper=9),
                Categorical(name="y", values=["a", "b", "never"]),
            ],
            target="y",
        ),
        {"n": [1, 2, 3, 4, 5], "y": ["a", "b", "b", "a", "a"]},
    ),
    "two rows": (SCHEMA, table(2)),
    "five rows": (SCHEMA, table(5)),
    "constants": (
        Schema(
            columns=[
                Categorical(name="c", values=["only"]),
                Integer(name="n", lower=3, upper=3),
                Continuous(name="x", lower=3, upper=3, decimals=1, missing=True),
                Categorical(name="y", values=["a", "b"]),
            ],
            target="y",
        ),
        {"c": ["only"] * 4, "n": [3] * 4, "x": [3, None, 3, 3], "y": ["a", "b", "a", "a"]},
    ),
    "all missing": (
        Schema(
            columns=[
                Continuous(name="x", lower=0, upper=1, decimals=3, missing=True),
                Categorical(name="c", values=["p", "q"], missing=True),
                Integer(name="n", lower=0, upper=99),
            ]
        ),
        {"x": [None] * 5, "c": [None] * 5, "n": [1, 5, 9, 9, 9]},
    ),
    "huge values": (
        Schema(columns=[Continuous(name=f"x{k}", lower=-5, upper=5, decimals=2) for k in range(3)]),
        {"x0": [1e300, -np.inf, np.inf], "x1": [0.0, 1e18, -1e308], "x2": [1.0, 2.0, np.nan]},
    ),
    "a numeric target": (
        Schema(
            columns=[Integer(name="n", lower=0, upper=9), Integer(name="t", lower=0, upper=9)],
            target="t",
        ),
        {"n": [1, 2, 3, 4], "t": [2, 4, 6, 8]},
    ),
}


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
@pytest.mark.parametrize("kind", ODD)
def test_odd_tables_are_fitted_sampled_and_asked(kind, epsilon, monkeypatch):
    # Errors of few draws are odd where those of many are.
    monkeypatch.setattr("fedsynth.methods.inference.moments._REPEATS", 20)
    schema, content = ODD[kind]
    frame = pd.DataFrame(content)
    for by_class in (True, False):
        budget = Budget(epsilon=epsilon, delta=1e-5, trust="central")
        tables = [frame, frame.iloc[:0]] if len(frame) > 2 else [frame]
        synth = FedInfer(schema, class_conditional=by_class).fit(tables, budget, outside="allow")
        rows = synth.sample(40, seed=0)
        assert list(rows) == [column.name for column in schema.columns] and len(rows) == 40
        estimate = synth.moments()
        if math.isinf(epsilon):
            assert estimate.records == pytest.approx(conform(frame, schema).rows)
        for column in schema.modelled:
            if not column.missing and len(schema.modelled) > 1:
                regression = synth.regression(column.name)
                assert (
                    np.isfinite(regression.coefficients).all()
                    and not np.isnan(regression.errors).any()
                )
        if synth.statistic.classes:
            chances = synth.probabilities(frame)
            np.testing.assert_allclose(chances.sum(axis=1), 1)
            for value in schema.target_column.categories:
                assert len(synth.sample(3, where={schema.target: value}, seed=0)) == 3


def test_a_class_absent_at_a_client_and_a_constant_column_do_no_harm():
    tables = owners(200, 200)
    tables["site-0"] = tables["site-0"].assign(outcome="well", smoker=True)
    tables["site-1"] = tables["site-1"].assign(smoker=True)
    synth = FedInfer(SCHEMA).fit(tables, EXACT)
    assert synth.sample(200, seed=0)["smoker"].all()
    share = (pd.concat(tables.values())["outcome"] == "ill").mean()
    assert synth.moments().table().loc["outcome=ill", "mean"] == pytest.approx(share)


def test_owners_without_names_of_their_own_are_never_merged():
    budget = Budget(epsilon=1.0, trust="central")
    alone = FedInfer(SCHEMA).fit([table(20)], budget)
    many = FedInfer(SCHEMA).fit([table(20, seed) for seed in range(11)], budget)
    named = FedInfer(SCHEMA).fit({"north": table(20)}, budget)
    for pair in ((alone, many), (alone, named), (named, alone)):
        with pytest.raises(PrivacyError, match="names of their own"):
            pair[0].merge(pair[1])
