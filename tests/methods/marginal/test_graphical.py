"""What all graphical synthesizers promise: shapes, conditions, queries, persistence, odd tables."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from fedsynth.errors import ConfigError, DataError, ReleaseError
from fedsynth.methods.marginal.aim import AIM
from fedsynth.methods.marginal.mst import MST
from fedsynth.methods.marginal.privbayes import PrivBayes
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    Datetime,
    Identifier,
    Integer,
    Schema,
)
from tests.methods.small import SCHEMA, owners, table

METHODS = [AIM, MST, PrivBayes]
LOOSE = Budget(epsilon=20.0, delta=1e-5, curious=1)


def quick(method, **settings):
    """Settings of a fit that only has to be made: no good one."""
    few = {"marginals": 4} if method is AIM else {}
    return {"iterations": 10, **few, **settings}


@pytest.fixture(scope="module", params=METHODS, ids=lambda method: method.name)
def fitted(request):
    return request.param(SCHEMA, iterations=50).fit(owners(700, 500), LOOSE, insecure_noise_seed=1)


def test_rows_have_the_schemas_columns_types_and_values(fitted):
    rows = fitted.sample(300, seed=0)
    assert list(rows) == [column.name for column in SCHEMA.columns]
    assert rows["age"].between(18, 90).all() and rows["dose"].between(0, 10).all()
    assert set(rows["colour"].dropna()) <= {"red", "green", "blue"}
    pd.testing.assert_frame_equal(rows, fitted.sample(300, seed=0))
    assert len(fitted.sample(1, seed=0)) == 1


def test_dependence_is_kept(fitted):
    rows = fitted.sample(4000, seed=0)
    ill = rows["outcome"] == "ill"
    assert 0.2 < ill.mean() < 0.4
    assert (rows["dose"][ill] > 5).mean() > 0.9
    assert (rows["dose"][~ill] > 5).mean() < 0.1


def test_every_condition_holds_in_every_row(fitted):
    rows = fitted.sample(
        500, where={"age": {"from": 30, "to": 32}, "colour": ["red", None], "smoker": True}, seed=0
    )
    assert rows["age"].isin([30, 31, 32]).all()
    assert (rows["colour"].isna() | (rows["colour"] == "red")).all()
    assert rows["smoker"].all()
    assert (fitted.sample(50, where={"dose": 2.5}, seed=0)["dose"] == 2.5).all()


def test_a_condition_changes_what_depends_on_it(fitted):
    given_ill = fitted.sample(2000, where={"outcome": "ill"}, seed=0)
    given_well = fitted.sample(2000, where={"outcome": "well"}, seed=0)
    assert given_ill["dose"].mean() > given_well["dose"].mean() + 3


def test_proportions_take_the_place_of_the_estimated_frequencies(fitted):
    rows = fitted.sample(1000, proportions={"ill": 3, "well": 1}, seed=0)
    assert (rows["outcome"] == "ill").mean() == pytest.approx(0.75, abs=0.03)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"where": {"agee": 3}}, "did you mean 'age'"),
        ({"where": {"colour": "pink"}}, "no value 'pink'"),
        ({"where": {"age": 30.5}}, "range"),
        ({"where": {"outcome": None}}, "never missing"),
        ({"where": {"outcome": "ill"}, "proportions": {"ill": 1}}, "not both"),
        ({"proportions": {"ill": -1}}, "not negative"),
        ({"rows": 0}, "at least 1"),
    ],
)
def test_a_wrong_request_is_explained(fitted, arguments, said):
    with pytest.raises(ConfigError, match=said):
        fitted.sample(**{"rows": 10, **arguments})


def test_weighted_rows_stand_for_all(fitted):
    rows, weights = fitted.sample_weighted(3000, seed=0)
    assert weights.sum() == 3000 and len(rows) == len(weights) <= 3000
    assert (weights > 0).all()


def test_gaps_are_filled_and_known_cells_stay(fitted):
    whole = table(400, seed=9)
    gaps = whole.astype(object)
    rng = np.random.default_rng(0)
    holes = rng.random(gaps.shape) < 0.3
    gaps = gaps.mask(holes)
    known = gaps.notna().to_numpy()
    imputed = fitted.impute(gaps, seed=0)
    assert imputed.notna().all().all()
    assert (
        imputed.astype(object).to_numpy()[known] == whole.astype(object).to_numpy()[known]
    ).all()
    ill = gaps["outcome"].isna() & (whole["dose"] > 5) & known[:, 2]
    assert (imputed["outcome"][ill] == "ill").mean() > 0.85
    without = fitted.impute(whole.drop(columns="smoker"), seed=0)
    assert without["smoker"].notna().all()
    with pytest.raises(DataError):
        fitted.impute(whole.assign(other=1))


def test_a_marginal_answers_with_intervals_that_hold_the_truth(fitted):
    truth = pd.concat(owners(700, 500).values())
    answer = fitted.marginal(["outcome", "smoker"], level=0.9999)
    assert list(answer) == ["outcome", "smoker", "count", "low", "high"]
    counts = truth.groupby([truth["outcome"], truth["smoker"].astype(str)]).size()
    for row in answer.itertuples():
        exact = counts[row.outcome, row.smoker]
        assert row.count == pytest.approx(exact, rel=0.25, abs=30)
        if not np.isnan(row.low):
            assert row.low <= exact <= row.high
    total = answer["count"].sum()
    parts = fitted.marginal(["smoker"], where={"outcome": "ill"})["count"].sum()
    assert 0 < parts < total
    with pytest.raises(ConfigError, match="did you mean"):
        fitted.marginal(["outcom"])
    with pytest.raises(ConfigError, match="each once"):
        fitted.marginal(["age", "age"])


def test_columns_that_are_called_as_the_answers_of_a_marginal_are_told_from_them():
    schema = Schema(columns=[Boolean(name="count"), Boolean(name="self")])
    frame = pd.DataFrame({"count": [True] * 300 + [False] * 100, "self": [True] * 400})
    answer = AIM(schema).fit(frame, Budget(epsilon=8.0)).marginal(["count", "self"])
    assert list(answer) == ["column count", "self", "count", "low", "high"]
    row = answer[(answer["column count"] == "True") & (answer["self"] == "True")].iloc[0]
    assert row["low"] <= 300 <= row["high"] and row["count"] == pytest.approx(300, abs=20)


def test_a_release_can_be_sampled_from_again(fitted, tmp_path):
    import fedsynth as fs

    fitted.release(tmp_path / "release", fitted.sample(50, seed=3))
    again = fs.load(tmp_path / "release")
    pd.testing.assert_frame_equal(again.sample(200, seed=5), fitted.sample(200, seed=5))
    pd.testing.assert_frame_equal(again.marginal(["age"]), fitted.marginal(["age"]))
    arrays, meta = fitted.model_state()
    with pytest.raises(ReleaseError):
        type(fitted).from_state(SCHEMA, {}, meta)
    with pytest.raises(ReleaseError):
        type(fitted).from_state(SCHEMA, arrays, {**meta, "encoding": {}})


BUDGETS = [
    Budget(epsilon=1.0, delta=1e-5, trust=trust, unit=unit)
    for trust, unit in itertools.product(("central", "distributed", "local"), ("record", "client"))
]


# Of records every method's contract fits under every trust.
@pytest.mark.parametrize(
    ("method", "budget"),
    [(m, b) for m in METHODS for b in BUDGETS if m is AIM or b.unit == "client"],
    ids=lambda one: one.name if isinstance(one, type) else f"{one.trust}-{one.unit}",
)
def test_every_trust_and_unit_fits_within_its_budget(method, budget):
    synth = method(SCHEMA, quick(method)).fit(owners(60, 40, 1), budget)
    assert 0.95 < synth.ledger.spent().epsilon <= 1.0
    assert len(synth.sample(20, seed=0)) == 20
    if budget.trust != "central":
        assert len(synth.ledger.events) <= 6


ODD = {
    "one column": (Schema(columns=[Integer(name="n", lower=0, upper=9)]), {"n": [1, 2, 3]}),
    "one value": (
        Schema(
            columns=[
                Categorical(name="c", values=["only"]),
                Integer(name="n", lower=3, upper=3),
                Categorical(name="y", values=["a", "b"]),
            ],
            target="y",
        ),
        {"c": ["only"] * 4, "n": [3] * 4, "y": ["a", "b", "a", "a"]},
    ),
    "always missing": (
        Schema(
            columns=[
                Continuous(name="x", lower=0, upper=1, decimals=3, missing=True),
                Categorical(name="c", values=["p", "q"], missing=True),
                Integer(name="n", lower=0, upper=99),
            ]
        ),
        {"x": [None] * 5, "c": [None] * 5, "n": [1, 5, 9, 9, 9]},
    ),
    "numbers alone": (
        Schema(
            columns=[Continuous(name=f"x{k}", lower=-5, upper=5, decimals=2) for k in range(4)],
            target="x0",
        ),
        {f"x{k}": np.linspace(-4, 4, 30).round(2) for k in range(4)},
    ),
    "categories alone": (
        Schema(columns=[Categorical(name=f"c{k}", values=["a", "b", "c"]) for k in range(4)]),
        {f"c{k}": ["a", "b", "c"] * 5 for k in range(4)},
    ),
    "five thousand values": (
        Schema(
            columns=[
                Categorical(name="c", values=[f"v{k}" for k in range(5000)]),
                Categorical(name="y", values=["a", "b"]),
            ],
            target="y",
        ),
        {"c": [f"v{k % 7}" for k in range(900)], "y": ["a", "b", "b"] * 300},
    ),
    "dates and keys": (
        Schema(
            columns=[
                Identifier(name="id", prefix="p"),
                Datetime(name="t", lower="2020-01-01", upper="2020-12-31"),
                Categorical(name="y", values=["a", "b"]),
            ],
            target="y",
        ),
        {"id": ["p1", "p2"], "t": ["2020-03-01", "2020-05-09"], "y": ["a", "b"]},
    ),
    "one row": (SCHEMA, table(1)),
}


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
@pytest.mark.parametrize("name", ODD)
def test_odd_tables_become_rows_of_their_schema(method, name):
    """With a trusted server, which chooses by scores; without one: the contract of all methods."""
    schema, content = ODD[name]
    frame = pd.DataFrame(content)
    synth = method(schema, quick(method)).fit(
        [frame], Budget(epsilon=2.0, delta=1e-5, trust="central")
    )
    rows = synth.sample(25, seed=0)
    assert len(rows) == 25 and list(rows) == [column.name for column in schema.columns]
    for column in schema.modelled:
        if not column.missing:
            assert rows[column.name].notna().all()


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_client_without_rows_answers_like_any_other(method):
    tables = {**owners(80), "empty": table(3).iloc[:0]}
    synth = method(SCHEMA, quick(method)).fit(tables, Budget(epsilon=2.0, delta=1e-5, curious=1))
    assert len(synth.sample(10, seed=0)) == 10


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_a_fit_that_was_cut_off_resumes_without_paying_twice(method, tmp_path, monkeypatch):
    from fedsynth.federation.server.channel import Channel

    original, calls = Channel.sum, []

    def failing(self, *arguments, **keywords):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("power cut")
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(Channel, "sum", failing)
    tables, budget = owners(90, 60), Budget(epsilon=2.0, delta=1e-5, curious=1)
    with pytest.raises(RuntimeError):
        method(SCHEMA, quick(method)).fit(tables, budget, folder=tmp_path)
    before = len(Ledger.read(tmp_path / "ledger.jsonl").events)
    synth = method(SCHEMA, quick(method)).fit(tables, budget, folder=tmp_path, resume=True)
    assert before == 2
    labels = [event.label for event in synth.ledger.events]
    assert labels.count("histogram") == 1
    assert synth.ledger.spent().epsilon <= 2.0
    assert len(synth.sample(10, seed=0)) == 10
    other = method(SCHEMA, quick(method, bins=7))
    with pytest.raises(ConfigError, match="other settings"):
        other.fit(tables, budget, folder=tmp_path, resume=True)


CONSTRAINED = Schema(
    columns=[
        Integer(name="age", lower=0, upper=99),
        Integer(name="since", lower=0, upper=99, missing=True),
        Categorical(name="status", values=["child", "adult", "retired"]),
        Categorical(name="y", values=["a", "b"]),
    ],
    target="y",
    constraints=[
        {"never": {"age": {"to": 17}, "status": ["adult", "retired"]}},
        {"never": {"age": {"from": 18}, "status": "child"}},
        {"ordered": ["since", "age"]},
    ],
)


@pytest.mark.parametrize(
    ("method", "epsilon"),
    [(AIM, 0.3), (MST, 0.3), (PrivBayes, 30.0)],
    ids=lambda one: getattr(one, "name", one),
)
def test_constraints_of_the_schema_hold_in_every_row(method, epsilon):
    rng = np.random.default_rng(0)
    age = rng.integers(0, 100, 600)
    frame = pd.DataFrame(
        {
            "age": age,
            "since": (age * rng.random(600)).astype(int),
            "status": np.where(age < 18, "child", np.where(age > 66, "retired", "adult")),
            "y": rng.choice(["a", "b"], 600),
        }
    )
    synth = method(CONSTRAINED, quick(method)).fit([frame], Budget(epsilon=epsilon))
    for rows in (synth.sample(500, seed=0), synth.sample(100, where={"age": 17}, seed=0)):
        child = rows["status"] == "child"
        assert (child == (rows["age"] < 18)).all()
        both = rows["since"].notna()
        assert (rows["since"][both] <= rows["age"][both]).all()
    with pytest.raises(ConfigError, match="possible"):
        synth.sample(5, where={"age": 5, "status": "retired"})


@pytest.mark.parametrize("method", [AIM, MST], ids=lambda method: method.name)
def test_choices_of_a_fit_that_was_cut_off_are_not_made_again(method, tmp_path, monkeypatch):
    from fedsynth.federation.server.channel import Channel

    original, calls = Channel.select, []

    def failing(self, *arguments, **keywords):
        calls.append(1)
        if len(calls) == 3:
            raise RuntimeError("power cut")
        return original(self, *arguments, **keywords)

    monkeypatch.setattr(Channel, "select", failing)
    tables, budget = owners(90, 60), Budget(epsilon=2.0, delta=1e-5, trust="central")
    settings = quick(method, selection="exponential")
    with pytest.raises(RuntimeError):
        method(SCHEMA, settings).fit(tables, budget, folder=tmp_path)
    before = [event.terms for event in Ledger.read(tmp_path / "ledger.jsonl").events]
    made = sum(terms.mechanism == "exponential" for terms in before)
    synth = method(SCHEMA, settings).fit(tables, budget, folder=tmp_path, resume=True)
    after = [event.terms for event in synth.ledger.events]
    assert made == 2 and after[: len(before)] == before
    planned = sum(p.count for p in synth.ledger.job.plan)
    assert len(after) <= planned and synth.ledger.spent().epsilon <= 2.0
    assert len(synth.sample(10, seed=0)) == 10


@pytest.mark.parametrize("method", [AIM, MST], ids=lambda method: method.name)
@pytest.mark.parametrize(("call", "trust"), [(4, "central"), (2, "distributed")])
def test_an_answer_that_was_lost_stays_charged_and_the_fit_ends_early(
    method, trust, call, tmp_path, monkeypatch
):
    from fedsynth.federation.server.door import Door

    original, calls = Door._sum, []

    def failing(self, *arguments, **keywords):
        answers = original(self, *arguments, **keywords)
        calls.append(1)
        if len(calls) == call:
            raise RuntimeError("power cut")
        return answers

    monkeypatch.setattr(Door, "_sum", failing)
    tables, budget = owners(90, 60), Budget(epsilon=2.0, delta=1e-5, trust=trust, curious=1)
    try:
        method(SCHEMA, quick(method)).fit(tables, budget, folder=tmp_path)
    except RuntimeError:
        synth = method(SCHEMA, quick(method)).fit(tables, budget, folder=tmp_path, resume=True)
        assert len(synth.ledger.events) >= call
        assert synth.ledger.spent().epsilon <= 2.0
        assert len(synth.sample(10, seed=0)) == 10
    else:
        assert (method, trust, call) == (MST, "distributed", 4)
