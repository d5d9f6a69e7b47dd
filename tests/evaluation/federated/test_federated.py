"""Scores through the door: exact without noise, bounded row by row, charged before anybody answers.

Statistical checks compare means of many runs with known values; each fails for correct code with
probability below 1e-6.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, norm
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import accuracy_score, balanced_accuracy_score, roc_auc_score

from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, DataError, FederationError, PrivacyError
from fedsynth.evaluation.federated import FederatedScores, Figure, Scores, federated_scores
from fedsynth.evaluation.federated.estimates import Counts, estimate, label_scores
from fedsynth.evaluation.federated.recipe import LabelTable, Layout, Recipe, arrays_of, records_of
from fedsynth.evaluation.federated.scorer import scorer_of
from fedsynth.evaluation.federated.spread import across
from fedsynth.evaluation.federated.tasks import Blocks, client_norm, client_row
from fedsynth.evaluation.models import classifiers
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Incident, Request
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.job import Job
from fedsynth.privacy.trail.ledger import Ledger
from fedsynth.privacy.verify.verification import verify
from fedsynth.schema import Categorical, Continuous, ImageSchema, Integer, Schema
from tests.federation.vectors import OBEDIENT

FREE = Budget(epsilon=math.inf)
SCHEMA = Schema(
    columns=[
        Integer(name="age", lower=18, upper=90),
        Categorical(name="colour", values=["red", "green", "blue"], missing=True),
        Continuous(name="dose", lower=0, upper=10, decimals=1, missing=True),
        Categorical(name="outcome", values=["well", "ill"]),
    ],
    target="outcome",
)


def people(rows: int, seed: int, shift: float = 0.0) -> pd.DataFrame:
    """Rows whose outcome the others tell with errors; `shift` moves the dose."""
    rng = np.random.default_rng(seed)
    ill = rng.random(rows) < 0.4
    colour = np.where(rng.random(rows) < 0.6, np.where(ill, "red", "green"), "blue").astype(object)
    colour[rng.random(rows) < 0.1] = None
    dose = np.clip(np.where(ill, 5.5, 4.5) + shift + rng.normal(0, 1.0, rows), 0, 10).round(1)
    dose[rng.random(rows) < 0.05] = np.nan
    return pd.DataFrame(
        {
            "age": rng.integers(18, 91, rows),
            "colour": colour,
            "dose": dose,
            "outcome": np.where(ill, "ill", "well"),
        }
    )


OWNERS = {f"site-{k}": people(rows, k, k / 4) for k, rows in enumerate((300, 700, 1200))}
SYNTHETIC = people(1500, 9)


def scored(owners=None, budget: Budget = FREE, **options) -> FederatedScores:
    return federated_scores(owners or OWNERS, SYNTHETIC, SCHEMA, budget, **options)


# Without noise: what pooled rows say


def shares(frame: pd.DataFrame) -> dict[str, pd.Series]:
    """Relative frequencies of a frame in bins at deciles of the synthetic rows, by pandas."""
    found = {}
    for name in frame.columns:
        if frame[name].dtype == object:
            cells = frame[name].astype(object).where(frame[name].notna(), "gap")
        else:
            known = np.sort(SYNTHETIC[name].dropna())
            cuts = np.unique([known[math.ceil(len(known) * k / 10) - 1] for k in range(1, 10)])
            places = pd.cut(frame[name], [-np.inf, *cuts, np.inf], right=False, labels=False)
            cells = places.astype(object).where(frame[name].notna(), "gap")
        found[name] = cells.value_counts(normalize=True)
    return found


def distances(frame: pd.DataFrame) -> dict[str, float]:
    ours, made = shares(frame), shares(SYNTHETIC)
    return {n: float(ours[n].sub(made[n], fill_value=0).abs().sum() / 2) for n in ours}


def inputs(frame: pd.DataFrame) -> np.ndarray:
    codes = frame["colour"].map({"red": 0, "green": 1, "blue": 2})
    return np.column_stack([frame["age"], codes, frame["dose"]]).astype(float)


def classified(frame: pd.DataFrame) -> tuple[np.ndarray, np.ndarray]:
    """Truth and probability of the second class, by scikit-learn."""
    model = HistGradientBoostingClassifier(
        max_iter=classifiers.TREES,
        categorical_features=[False, True, False],
        early_stopping=False,
        random_state=0,
    ).fit(inputs(SYNTHETIC), SYNTHETIC["outcome"] == "ill")
    return (frame["outcome"] == "ill").to_numpy(), model.predict_proba(inputs(frame))[:, 1]


def demand_pooled(found, frame: pd.DataFrame) -> None:
    truth, probability = classified(frame)
    apart = distances(frame)
    assert found.records.value == pytest.approx(len(frame))
    assert found.mean_distance.value == pytest.approx(np.mean(list(apart.values())))
    assert found.worst_distance.value == pytest.approx(max(apart.values()))
    assert found.worst_column == max(apart, key=apart.get)
    assert found.accuracy.value == pytest.approx(accuracy_score(truth, probability > 0.5))
    balanced = balanced_accuracy_score(truth, probability > 0.5)
    assert found.balanced_accuracy.value == pytest.approx(balanced)
    # Eleven bins stand for all thresholds.
    assert found.auroc.value == pytest.approx(roc_auc_score(truth, probability), abs=0.01)
    gaps = frame.isna().to_numpy().mean()
    assert found.missing.value == pytest.approx(gaps)
    assert found.accuracy.error == found.mean_distance.error == 0


def test_without_noise_the_scores_are_those_of_the_pooled_rows_and_of_each_owners():
    found = scored()
    pooled = pd.concat(OWNERS.values())
    demand_pooled(found.pooled, pooled)
    assert {n: f.value for n, f in found.columns.items()} == pytest.approx(distances(pooled))
    for own, frame in zip(found.owners, OWNERS.values(), strict=True):
        demand_pooled(own, frame)
    values = np.array([distances(f)["dose"] for f in OWNERS.values()])
    assert (np.diff(values) > 0).all()
    over = found.across["mean_distance"]
    own = np.array([np.mean(list(distances(f).values())) for f in OWNERS.values()])
    assert over.weighted.value == pytest.approx(np.average(own, weights=[300, 700, 1200]))
    assert over.unweighted.value == pytest.approx(own.mean())
    assert over.spread == pytest.approx(own.std())


def test_rows_scored_against_themselves_are_at_no_distance():
    found = scored({"a": SYNTHETIC.iloc[:700], "b": SYNTHETIC.iloc[700:]}).pooled
    assert found.mean_distance.value == pytest.approx(0, abs=1e-9)
    assert found.missing.value == pytest.approx(scored().synthetic_missing)


def test_a_hand_worked_table():
    schema = Schema(
        columns=[Categorical(name="c", values=["x", "y"]), Integer(name="n", lower=0, upper=9)]
    )
    real = pd.DataFrame({"c": ["x", "x", "x", "z"], "n": [1, 1, 12, None]})
    made = pd.DataFrame({"c": ["x", "y"], "n": [1, 1]})
    found = federated_scores({"a": real}, made, schema, FREE)
    # The last row fits nowhere. c: x against 1/2 x, 1/2 y. n: 2/3, and 1/3 at the bound, against 1.
    assert found.columns["c"].value == pytest.approx(1 / 2)
    assert found.columns["n"].value == pytest.approx(1 / 3)
    assert found.pooled.missing.value == 0
    assert found.notes == ("no scores of a classifier: the schema has no target",)
    assert found.pooled.accuracy is found.pooled.auroc is found.target is None


def test_values_outside_the_schema_are_what_is_learned_from_them():
    schema = Schema(columns=[Integer(name="n", lower=0, upper=9, missing=True)])
    made = pd.DataFrame({"n": [1, 9, 1, 9]})
    real = pd.DataFrame({"n": [1, 12, "many", None]}, dtype=object)
    found = federated_scores({"x": real}, made, schema, FREE)
    # 1/4 each at 1 and at the bound, 1/2 gap, against 1/2 each and none.
    assert found.columns["n"].value == pytest.approx(1 / 2)
    assert found.pooled.missing.value == pytest.approx(1 / 2)
    odd = made.assign(n=[1, 9, 1, 12])
    # What is odd about synthetic rows stays a cell of its own: 1/4, and 1/4 at the bound.
    shares = federated_scores({"x": made}, odd, schema, FREE).columns["n"].value
    assert shares == pytest.approx(1 / 4)


def test_of_many_categories_the_commonest_are_told_apart():
    schema = Schema(columns=[Categorical(name="c", values=list("abcdef"))])
    made = pd.DataFrame({"c": list("aaabbbccdef")})
    real = pd.DataFrame({"c": list("abcdeeeeeee")})
    found = federated_scores({"x": real}, made, schema, FREE, bins=3).columns["c"]
    # a, b, c and the rest: 1, 1, 1, 8 against 3, 3, 2, 3 of 11.
    assert found.value == pytest.approx(5 / 11)
    whole = federated_scores({"x": real}, made, schema, FREE, bins=6).columns["c"]
    assert whole.value == pytest.approx(6 / 11)


def test_a_hand_worked_label_table():
    table = LabelTable(3, np.eye(3, dtype=bool), False)
    counts = np.array([[8, 2, 0], [1, 3, 0], [0, 0, 0], [5, 5, 5]], float)
    found = label_scores(counts, table, np.array([True, True, False]))
    assert found["accuracy"] == pytest.approx(11 / 14)
    assert found["balanced_accuracy"] == pytest.approx((8 / 10 + 3 / 4) / 2)
    ordered = LabelTable(2, np.array([[True, False], [False, True]]), True)
    counts = np.array([[3, 1], [2, 4], [9, 9]], float)
    found = label_scores(counts, ordered, np.array([True, True]))
    # Of 24 pairs 12 are in order, 3*2 + 1*4 tied.
    assert found["auroc"] == pytest.approx((12 + 10 / 2) / 24)


def test_more_classes_than_two_give_a_confusion_matrix():
    schema = Schema(
        columns=[
            Integer(name="n", lower=0, upper=99),
            Categorical(name="kind", values=["a", "b", "c"]),
        ],
        target="kind",
    )
    rng = np.random.default_rng(3)
    n = rng.integers(0, 100, 900)
    rows = pd.DataFrame({"n": n, "kind": np.array(["a", "b", "c"])[np.minimum(n // 34, 2)]})
    real = rows.iloc[:400].assign(kind=rows["kind"].iloc[:400].where(n[:400] % 5 > 0, "a"))
    found = federated_scores({"x": real}, rows.iloc[400:], schema, FREE).pooled
    predicted = np.array(["a", "b", "c"])[np.minimum(n[:400] // 34, 2)]
    assert found.accuracy.value == pytest.approx(accuracy_score(real["kind"], predicted), abs=0.01)
    assert found.balanced_accuracy.value == pytest.approx(
        balanced_accuracy_score(real["kind"], predicted), abs=0.01
    )
    assert found.auroc is None


def test_neither_the_order_of_rows_nor_the_names_of_categories_matter():
    names = {"red": "rot", "green": "grün", "blue": "blau"}
    renamed = Schema(
        columns=[
            Categorical(name="colour", values=list(names.values()), missing=True)
            if column.name == "colour"
            else column
            for column in SCHEMA.columns
        ],
        target="outcome",
    )

    def changed(frame: pd.DataFrame) -> pd.DataFrame:
        shuffled = frame.sample(frac=1, random_state=1)
        return shuffled.assign(colour=shuffled["colour"].map(names))

    first = scored()
    owners = {name: changed(frame) for name, frame in OWNERS.items()}
    # The classifier may bin rows in another order, so the synthetic ones keep theirs.
    made = SYNTHETIC.assign(colour=SYNTHETIC["colour"].map(names))
    second = federated_scores(owners, made, renamed, FREE)
    assert first.pooled == second.pooled
    assert first.owners == second.owners


# A row: bounded, and nobody else's


def recipe() -> Recipe:
    return Recipe(SCHEMA, records_of(SYNTHETIC, SCHEMA, "synthetic"), 10, 0)


MADE = recipe()
ARRAYS, LAYOUT = arrays_of(MADE.synthetic), scorer_of(MADE).layout
BESIDE = records_of(SYNTHETIC[:20], SCHEMA, "b")
CELLS = {
    "age": st.one_of(st.none(), st.integers(-(10**9), 10**9), st.just("many"), st.just(1e300)),
    "colour": st.one_of(st.none(), st.sampled_from(["red", "blue", "mauve", "", "7"])),
    "dose": st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    "outcome": st.one_of(st.none(), st.sampled_from(["well", "ill", "dead"])),
}
RECORDS = st.lists(st.fixed_dictionaries(CELLS), min_size=2, max_size=6)


def sums(frame: pd.DataFrame, unit: str = "record") -> tuple[np.ndarray, float]:
    """The clipped sum that a client sends without noise, beside another one's, and the clip."""
    blocks = Blocks(LAYOUT, 2)
    clip = (1.0 if unit == "record" else client_norm(LAYOUT)) * (1 + 1e-5)
    terms = Terms(unit=unit, trust="central", clip=clip, noise_multiplier=0.0)
    request = Request(
        "federated-scores",
        terms,
        blocks.dim if unit == "record" else 18,
        arrays=ARRAYS,
        settings={"images": False, "owners": ["a", "b"], "bins": 10, "seed": 0, "cap": None},
    )
    clients = [
        Client(name, records, len(records), floor=OBEDIENT)
        for name, records in (("a", records_of(frame, SCHEMA, "a")), ("b", BESIDE))
    ]
    for client in clients:
        client.memory("").board.post("schema", SCHEMA.to_dict())
    return next(answer(clients, request)).values, clip


@settings(max_examples=8, deadline=None)
@given(RECORDS)
def test_a_record_moves_the_sum_by_its_own_row_of_norm_one_whatever_it_holds(cells):
    frame = pd.DataFrame(cells, dtype=object)
    whole, clip = sums(frame)
    alone = [sums(frame.iloc[[i]])[0] for i in range(len(frame))]
    # Whatever the records are, their sum is that of their rows: so each moves it by its own.
    np.testing.assert_allclose(whole, sum(alone), atol=1e-9)
    np.testing.assert_allclose(whole - sums(frame[1:])[0], alone[0], atol=1e-9)
    for row in alone:
        assert np.linalg.norm(row) == pytest.approx(1, rel=1e-5)
        assert np.linalg.norm(row) <= clip


@settings(max_examples=20, deadline=None)
@given(RECORDS)
def test_a_client_moves_the_sum_by_no_more_than_the_public_norm(cells):
    moved, clip = sums(pd.DataFrame(cells, dtype=object), "client")
    assert np.isfinite(moved).all()
    assert np.linalg.norm(moved) <= clip


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_client_row_needs_clipping(data):
    sizes = [*LAYOUT.sizes, LAYOUT.labels.cells]
    rows = data.draw(st.integers(0, 8))
    codes = np.array(
        [[data.draw(st.integers(0, size - 1)) for size in sizes] for _ in range(rows)], np.int64
    ).reshape(rows, len(sizes))
    row = client_row(codes, LAYOUT, data.draw(st.sampled_from([None, 3])))
    assert np.isfinite(row).all()
    assert np.linalg.norm(row) <= client_norm(LAYOUT)


def test_the_worst_client_uses_the_whole_clip():
    worst = np.tile([1, 0.5, 0.25], 6)
    assert np.linalg.norm(worst) == pytest.approx(client_norm(LAYOUT))


# Charged before it is asked


def carried(monkeypatch, by):
    """Has `by(ask, request, cohort)` bring every sum; `ask` brings it as it ever comes."""
    real = LocalRuntime.sum

    def sum_by(self, request: Request, cohort):
        return by(partial(real, self), request, cohort)

    monkeypatch.setattr(LocalRuntime, "sum", sum_by)


def without_the_first(ask, request, cohort):
    """Of a cohort the first client does not answer."""
    summed = ask(request, cohort[1:])
    silent = Incident(cohort[0], request.round, "did not answer")
    return replace(summed, incidents=(*summed.incidents, silent))


def nobody(ask, request, cohort):
    pytest.fail("asked")


def test_the_event_is_on_disk_before_anybody_is_asked(monkeypatch, tmp_path: Path):
    seen = []

    def noting(ask, request, cohort):
        seen.append(json.loads((tmp_path / "ledger.jsonl").read_bytes().splitlines()[-1]))
        return ask(request, cohort)

    carried(monkeypatch, noting)
    scored(budget=Budget(epsilon=1.0), folder=tmp_path)
    assert [(line["kind"], line["label"]) for line in seen] == [("event", "federated-scores")]


def test_scores_that_are_lost_stay_charged_to_the_job_and_to_the_owners(monkeypatch, tmp_path):
    def lost(ask, request, cohort):
        ask(request, cohort)
        raise KeyboardInterrupt

    accounts = {"site-1": Ledger.create(Job(budget=Budget(epsilon=3.0, trust="central")))}
    carried(monkeypatch, lost)
    with pytest.raises(KeyboardInterrupt):
        scored(budget=Budget(epsilon=1.0), folder=tmp_path, owners_ledgers=accounts)
    monkeypatch.undo()
    lost = Ledger.read(tmp_path / "ledger.jsonl")
    assert 0.9 < lost.spent().epsilon <= 1.0
    assert accounts["site-1"].spent().epsilon == pytest.approx(lost.spent().epsilon)
    assert not (tmp_path / "certificate.json").exists()
    with pytest.raises(PrivacyError, match="exists already"):
        scored(budget=Budget(epsilon=1.0), folder=tmp_path)


def test_an_owner_whose_own_budget_is_spent_is_left_out_and_named():
    # So little noise that each owner's accuracy is told, whatever the draw.
    accounts = {"site-1": Ledger.create(Job(budget=Budget(epsilon=9.6, trust="central")))}
    budget = Budget(epsilon=8.0, trust="central")
    assert scored(budget=budget, owners_ledgers=accounts).owners[1].accuracy is not None
    found = scored(budget=budget, owners_ledgers=accounts)
    assert len(accounts["site-1"].events) == 1
    assert found.notes == ("did not answer: site-1",)
    assert found.owners[1].records is found.owners[1].accuracy is None
    assert found.clients[1]["rows"] is None
    assert found.owners[0].accuracy is not None
    assert found.pooled.records.value == pytest.approx(1500, abs=150)


@pytest.mark.parametrize(("unit", "epsilon"), [("record", 0.5), ("record", 2.0), ("client", 1.0)])
def test_epsilon_is_that_of_one_gaussian_release(unit, epsilon):
    found = scored(budget=Budget(epsilon=epsilon, delta=1e-6, unit=unit, trust="central"))
    (release,) = found.certificate.content["releases"]
    assert release["count"] == 1
    multiplier = release["terms"]["noise_multiplier"]
    # Balle and Wang 2018, theorem 8.
    first, second = 1 / (2 * multiplier), found.certificate.epsilon * multiplier
    delta = norm.cdf(first - second) - math.exp(found.certificate.epsilon) * norm.cdf(
        -first - second
    )
    assert delta == pytest.approx(1e-6, rel=0.02)
    assert 0.995 * epsilon <= found.certificate.epsilon <= epsilon


def test_a_budget_that_no_noise_meets_is_refused_and_nobody_asked(monkeypatch, tmp_path):
    carried(monkeypatch, nobody)
    with pytest.raises(PrivacyError):
        scored(budget=Budget(epsilon=1e-9, delta=1e-13), folder=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_folder_verifies_and_shows_what_is_changed_in_it(tmp_path: Path):
    found = scored(budget=Budget(epsilon=1.0), folder=tmp_path)
    assert all(check.passed for check in verify(tmp_path))
    assert json.loads((tmp_path / "scores.json").read_text()) == json.loads(
        json.dumps(found.figures(), allow_nan=False)
    )
    assert found.certificate.content["files"].keys() == {
        "ledger.jsonl",
        "schema.yaml",
        "scores.json",
    }
    text = (tmp_path / "scores.json").read_text()
    (tmp_path / "scores.json").write_text(text.replace("site-0", "site-9"))
    assert not all(check.passed for check in verify(tmp_path))


def test_exact_scores_and_known_noise_void_the_certificate():
    assert "no noise" in scored().certificate_sentence
    known = scored(budget=Budget(epsilon=1.0), insecure_noise_seed=1)
    assert "known seed" in known.certificate_sentence


# With noise: unbiased, with the errors that are stated


def drawn(layout: Layout, columns, labels, sigma: float, label_sigma: float, runs: int):
    rng = np.random.default_rng(5)
    for _ in range(runs):
        yield estimate(
            Counts(
                tuple(c + sigma * rng.standard_normal(c.shape) for c in columns),
                labels + label_sigma * rng.standard_normal(labels.shape),
                sigma,
                label_sigma,
            ),
            layout,
            "x",
        ).scores


def exact_counts(frame: pd.DataFrame):
    codes = scorer_of(recipe()).codes(records_of(frame, SCHEMA, "x"))
    columns = [
        np.bincount(c, minlength=s).astype(float)
        for c, s in zip(codes.T, LAYOUT.sizes, strict=False)
    ]
    table = LAYOUT.labels
    labels = np.bincount(codes[:, -1], minlength=table.cells).reshape(-1, table.outcomes)
    return columns, labels.astype(float)


@pytest.mark.parametrize("frame", [people(2000, 1), people(2000, 1, 0.6)], ids=["alike", "apart"])
def test_scores_are_unbiased_under_noise_and_their_errors_are_as_stated(frame):
    columns, labels = exact_counts(frame)
    exact = estimate(Counts(tuple(columns), labels, 0.0, 0.0), LAYOUT, "x").scores
    found = list(drawn(LAYOUT, columns, labels, 25.0, 10.0, 40))
    for name in ("records", "mean_distance", "accuracy", "balanced_accuracy", "auroc", "missing"):
        values = np.array([getattr(s, name).value for s in found])
        stated = np.array([getattr(s, name).error for s in found])
        truth = getattr(exact, name).value
        spread = np.sqrt(((values - truth) ** 2).mean())
        # The correction of distances has a bias of its own, far below the excess of about 0.04.
        slack = 0.004 if name == "mean_distance" else 0.0
        assert abs(values.mean() - truth) < 5 * values.std() / math.sqrt(40) + slack, name
        assert 0.6 < np.sqrt((stated**2).mean()) / spread < 1.5, name
    apart = [
        np.abs(c / 2000 - made).sum() / 2 for c, made in zip(columns, LAYOUT.shares, strict=True)
    ]
    assert np.mean(apart) == pytest.approx(exact.mean_distance.value)


def test_noise_alone_would_make_distances_far_too_large():
    columns, labels = exact_counts(people(2000, 1))
    rng = np.random.default_rng(2)
    noisy = [(c + 25 * rng.standard_normal((300, *c.shape))) / 2000 for c in columns]
    raw = np.mean(
        [np.abs(n - m).sum(-1).mean() / 2 for n, m in zip(noisy, LAYOUT.shares, strict=True)]
    )
    exact = estimate(Counts(tuple(columns), labels, 0.0, 0.0), LAYOUT, "x").scores
    assert raw - exact.mean_distance.value > 0.02


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_the_stated_error_is_that_of_the_noise_whoever_adds_it(trust):
    budget = Budget(epsilon=2.0, trust=trust)
    # Of one column: records alone are looked at.
    colours = {name: frame[["colour"]] for name, frame in OWNERS.items()}
    alone = SYNTHETIC[["colour"]], Schema(columns=[SCHEMA.column("colour")]), budget
    pulls = []
    for seed in range(6):
        found = federated_scores(colours, *alone, insecure_noise_seed=seed, seed=0)
        for own, frame in zip(found.owners, OWNERS.values(), strict=True):
            pulls.append((own.records.value - len(frame)) / own.records.error)
    statistic = float(np.sum(np.square(pulls)))
    assert chi2.ppf(1e-7, len(pulls)) < statistic < chi2.isf(1e-7, len(pulls))


def test_owners_blocks_and_the_common_one_tell_the_pooled_counts_together():
    errors = {}
    for per_owner in (True, False):
        budget = Budget(epsilon=1.0, trust="central")
        found = scored(budget=budget, per_owner=per_owner)
        errors[per_owner] = found.pooled.records.error
        assert bool(found.owners) == bool(found.across) == per_owner
    # Half of the budget for the common block, a third of that again from the three owners' own.
    assert errors[True] / errors[False] == pytest.approx(math.sqrt(2 / (1 + 1 / 3)), rel=1e-3)


def test_the_spread_over_owners_does_not_hold_the_noise():
    rng = np.random.default_rng(8)
    truth, error = np.array([0.7, 0.72, 0.8, 0.86, 0.9]), 0.04
    found = []
    for _ in range(400):
        noisy = truth + error * rng.standard_normal(5)
        scores = [Scores("x", Figure(9.0, 1.0), accuracy=Figure(v, error)) for v in noisy]
        found.append(across(scores, attrgetter("accuracy")))
    variances = np.square([one.spread for one in found])
    assert variances.mean() == pytest.approx(truth.var(), rel=0.15)
    means = np.array([one.unweighted.value for one in found])
    assert means.std() == pytest.approx(found[0].unweighted.error, rel=0.2)
    alike = [Scores("x", Figure(9.0, 1.0), accuracy=Figure(0.8, error))] * 3
    assert across(alike, attrgetter("accuracy")).spread == 0


def test_an_owner_too_small_for_the_noise_says_so():
    owners = {"large": people(4000, 1), "small": people(5, 2), "none": people(5, 2).iloc[:0]}
    found = scored(owners, Budget(epsilon=0.5), insecure_noise_seed=4)
    for own in found.owners[1:]:
        assert own.accuracy is own.mean_distance is own.auroc is own.missing is None
        assert own.notes == ("fewer records than the noise lets tell from none",)
    assert found.owners[0].accuracy is not None
    assert found.across["accuracy"].owners == 1
    assert found.across["accuracy"].spread is None
    json.dumps(found.to_dict(), allow_nan=False)


def test_an_owner_of_one_class_has_no_auroc():
    frame = people(900, 3)
    owners = {"ill": frame[frame["outcome"] == "ill"], "both": people(900, 4)}
    for budget in (FREE, Budget(epsilon=5.0, curious=1)):
        own = scored(owners, budget, insecure_noise_seed=None).owners[0]
        assert own.auroc is None
        assert "auroc: only one class is certain to be there" in own.notes
        assert own.balanced_accuracy.value == pytest.approx(own.accuracy.value, abs=0.05)


# Clients


def many(clients: int) -> dict[str, pd.DataFrame]:
    return {f"c{k}": people(20 + 7 * (k % 5), k, (k % 3) / 2) for k in range(clients)}


def test_without_noise_clients_scores_are_averaged_and_capped():
    owners = many(9)
    own = [scored({"x": frame}).pooled for frame in owners.values()]
    values = np.array([s.mean_distance.value for s in own])
    budget = Budget(epsilon=math.inf, unit="client", trust="central")
    found = scored(owners, budget)
    assert found.pooled is None and found.owners == ()
    over = found.across["mean_distance"]
    assert over.weighted.value == over.unweighted.value == pytest.approx(values.mean())
    assert over.spread == pytest.approx(values.std(), abs=1e-9)
    weights = np.minimum([len(f) for f in owners.values()], 30)
    accuracy = np.array([s.accuracy.value for s in own])
    capped = scored(owners, budget, cap=30).across["accuracy"]
    assert capped.weighted.value == pytest.approx(np.average(accuracy, weights=weights))
    assert capped.unweighted is None
    mean = np.average(accuracy, weights=weights)
    spread = np.sqrt(np.average((accuracy - mean) ** 2, weights=weights))
    assert capped.spread == pytest.approx(spread, abs=1e-9)


def test_noisy_means_over_clients_are_unbiased_with_their_errors():
    owners = many(20)
    exact = scored(owners, Budget(epsilon=math.inf, unit="client", trust="central"))
    budget = Budget(epsilon=16.0, unit="client", trust="central")
    pulls = []
    for seed in range(5):
        over = scored(owners, budget, insecure_noise_seed=seed).across
        for name in ("accuracy", "mean_distance", "missing"):
            figure = over[name].weighted
            pulls.append((figure.value - exact.across[name].weighted.value) / figure.error)
    statistic = float(np.sum(np.square(pulls)))
    assert chi2.ppf(1e-6, len(pulls)) < statistic < chi2.isf(1e-6, len(pulls))


def test_too_few_clients_for_the_noise_are_null_with_a_note():
    budget = Budget(epsilon=1.0, unit="client", trust="distributed")
    found = scored(budget=budget)
    assert all(a.weighted is None for a in found.across.values())
    assert "leaves nothing to tell" in found.notes[0]
    json.dumps(found.to_dict(), allow_nan=False)


# Dropouts


@pytest.mark.parametrize("trust", ["central", "distributed", "local"])
def test_an_owner_that_does_not_answer_is_named_and_the_others_are_scored(
    monkeypatch, tmp_path, trust
):
    carried(monkeypatch, without_the_first)
    found = scored(budget=Budget(epsilon=5.0, trust=trust), survivors=0.6, folder=tmp_path)
    (missed,) = found.certificate.content["incidents"]
    assert (missed["client"], missed["rounds"]) == ("site-0", 1)
    assert found.notes == ("did not answer: site-0",)
    assert found.owners[0].notes == ("did not answer",)
    assert found.pooled.records.value == pytest.approx(1900, abs=100)


def test_too_few_answers_are_an_error_and_stay_charged(monkeypatch, tmp_path):
    carried(monkeypatch, without_the_first)
    with pytest.raises(FederationError):
        scored(budget=Budget(epsilon=5.0), folder=tmp_path)
    assert len(Ledger.read(tmp_path / "ledger.jsonl").events) == 1
    assert not (tmp_path / "scores.json").exists()


# Odd tables


def test_a_numeric_target_or_nothing_beside_it_is_said():
    numeric = Schema(columns=SCHEMA.columns, target="dose")
    found = federated_scores(OWNERS, SYNTHETIC, numeric, FREE)
    assert found.notes == ("no scores of a classifier: the target 'dose' is a number",)
    assert found.pooled.accuracy is None and found.pooled.mean_distance is not None
    alone = Schema(columns=[SCHEMA.columns[3]], target="outcome")
    frames = {name: frame[["outcome"]] for name, frame in OWNERS.items()}
    found = federated_scores(frames, SYNTHETIC[["outcome"]], alone, Budget(epsilon=1.0))
    assert "no column besides" in found.notes[0]


def test_synthetic_rows_of_one_class_answer_that_class():
    made = SYNTHETIC.assign(outcome="ill")
    found = federated_scores(OWNERS, made, SCHEMA, FREE).pooled
    truth = pd.concat(OWNERS.values())["outcome"]
    assert found.accuracy.value == pytest.approx((truth == "ill").mean())
    assert found.balanced_accuracy.value == pytest.approx(0.5)
    assert found.auroc.value == pytest.approx(0.5)


def test_labels_that_are_missing_or_undeclared_are_not_scored():
    frame = people(400, 3)
    spoilt = frame.assign(outcome=frame["outcome"].where(np.arange(400) % 4 > 0, "dead"))
    kept = scored({"x": frame[np.arange(400) % 4 > 0]}).pooled
    assert scored({"x": spoilt}).pooled.accuracy == kept.accuracy


def test_columns_without_a_value_and_single_rows_are_scored():
    empty = SYNTHETIC.assign(dose=np.nan, colour=None)
    found = federated_scores({"x": people(50, 1)}, empty, SCHEMA, FREE)
    assert found.columns["dose"].value == pytest.approx(people(50, 1)["dose"].notna().mean())
    one = federated_scores({"x": people(1, 1)}, SYNTHETIC.iloc[:1], SCHEMA, FREE)
    json.dumps(one.to_dict(), allow_nan=False)


@pytest.mark.parametrize("budget", [FREE, Budget(epsilon=1.0), Budget(epsilon=9.0, unit="client")])
def test_owners_without_any_record_are_scored_like_others(budget):
    nobody_has_any = {name: frame.iloc[:0] for name, frame in OWNERS.items()}
    found = federated_scores(nobody_has_any, SYNTHETIC, SCHEMA, budget)
    json.dumps(found.to_dict(), allow_nan=False)
    assert len(found.owners) == (3 if budget.unit == "record" else 0)


def test_faulty_input_is_refused_before_anything_is_asked(monkeypatch):
    carried(monkeypatch, nobody)
    with pytest.raises(DataError, match="lacks columns"):
        scored({"x": people(5, 1).drop(columns="dose")})
    with pytest.raises(DataError, match="lacks columns"):
        scored({"x": people(5, 1), "y": people(5, 1).drop(columns="dose").iloc[:0]})
    with pytest.raises(DataError, match="no rows"):
        federated_scores(OWNERS, SYNTHETIC.iloc[:0], SCHEMA, FREE)
    with pytest.raises(ConfigError, match="by name"):
        federated_scores(list(OWNERS.values()), SYNTHETIC, SCHEMA, FREE)
    with pytest.raises(ConfigError, match="bins"):
        scored(bins=1)
    with pytest.raises(ConfigError, match="ledger was given for"):
        scored(owners_ledgers={"nowhere": Ledger.create(Job(budget=FREE))})
    with pytest.raises(ConfigError, match="per_owner"):
        scored(dict.fromkeys(map(str, range(2500)), people(1, 0)))


# Images


IMAGES = ImageSchema(
    shape=[6, 6], maximum=16, target=Categorical(name="half", values=["left", "right"])
)


def halves(count: int, seed: int) -> Images:
    """One half bright, with noise; the label says which."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 9, (count, 6, 6))
    for image, label in zip(pixels, labels, strict=True):
        image[:, 3 * label : 3 * label + 3] += 6
    return Images(pixels.astype(np.uint8), labels)


def test_images_are_scored_by_the_student_network_and_their_brightness():
    owners = {"a": halves(150, 1), "b": halves(250, 2)}
    exact = federated_scores(owners, halves(400, 3), IMAGES, FREE)
    assert exact.pooled.accuracy.value > 0.95
    assert exact.columns.keys() == {"brightness"}
    assert exact.pooled.missing is exact.synthetic_missing is exact.pooled.auroc is None
    assert exact.target == "half"
    noisy = federated_scores(owners, halves(400, 3), IMAGES, Budget(epsilon=3.0, curious=1))
    assert noisy.pooled.accuracy.value == pytest.approx(exact.pooled.accuracy.value, abs=0.1)
    flipped = {"a": Images(owners["a"].pixels, 1 - owners["a"].labels)}
    assert federated_scores(flipped, halves(400, 3), IMAGES, FREE).pooled.accuracy.value < 0.05


@pytest.mark.parametrize(
    "wrong",
    [
        Images(np.zeros((5, 6, 6), np.uint8), np.full(5, 7)),
        Images(np.zeros((5, 6, 6), np.uint8)),
        Images(np.zeros((5, 4, 4), np.uint8), np.zeros(5, np.int64)),
    ],
    ids=["label", "no labels", "shape"],
)
def test_images_that_do_not_fit_are_refused_before_anything_is_charged(wrong, tmp_path):
    owners = {"a": halves(20, 1), "b": wrong}
    with pytest.raises(DataError, match="b: "):
        federated_scores(owners, halves(20, 3), IMAGES, Budget(epsilon=3.0), folder=tmp_path / "s")
    assert not (tmp_path / "s").exists()


def test_an_images_cells_do_not_depend_on_the_images_beside_it():
    made = halves(200, 3)
    scorer = scorer_of(Recipe(IMAGES, made, 10, 0))
    others = Images(
        np.random.default_rng(1).integers(0, 17, (300, 6, 6)).astype(np.uint8),
        np.zeros(300, np.int64),
    )
    whole = scorer.codes(others)
    for places in (np.array([7]), np.arange(100, 137)):
        np.testing.assert_array_equal(scorer.codes(others.take(places)), whole[places])
    assert scorer.codes(others.take(np.zeros(0, np.int64))).shape == (0, 2)
