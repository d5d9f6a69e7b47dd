"""Train on synthetic, test on real: baselines by count, ceilings, and odd training rows."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn import metrics
from sklearn.naive_bayes import GaussianNB

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.measures.agreement import SETTINGS
from fedsynth.evaluation.measures.utility import (
    _note_standard,
    compare,
    train_on_synthetic,
    utility,
)
from fedsynth.evaluation.models.classifiers import CLASSIFIERS, train_boosting
from fedsynth.evaluation.models.trials import mean_figures
from fedsynth.evaluation.reading.labelled import label_rows
from fedsynth.evaluation.reading.rows import read_rows, shuffle_columns
from fedsynth.evaluation.reading.scores import score
from fedsynth.evaluation.report.sections.utility import utility_section
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from tests.evaluation.learning_tables import (
    BINARY,
    COLUMNS,
    DATE,
    NUMBER,
    THREE,
    frame,
    rows,
    taught,
)

SCHEMA = Schema(
    columns=(
        Identifier(name="id"),
        Continuous(name="x", lower=-5, upper=5, decimals=3, missing=True),
        Categorical(name="colour", values=("red", "green", "blue"), missing=True),
        Datetime(name="day", lower="2020-01-01", upper="2020-12-30", missing=True),
        Boolean(name="flag"),
        Categorical(name="y", values=("no", "yes")),
    ),
    target="y",
)


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """y follows x where x is known, else the colour, and is right nine times in ten."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=rows).round(3)
    colour = rng.choice(["red", "green", "blue"], rows)
    known = rng.random(rows) < 0.7
    yes = np.where(known, x > 0.5, colour == "blue") ^ (rng.random(rows) < 0.1)
    days = pd.Timestamp("2020-01-01") + pd.to_timedelta(rng.integers(365, size=rows), "D")
    return pd.DataFrame(
        {
            "id": np.arange(rows),
            "x": np.where(known, x, np.nan),
            "colour": colour,
            "day": days,
            "flag": rng.random(rows) < 0.5,
            "y": np.where(yes, "yes", "no"),
        }
    )


def test_real_rows_reach_the_ceiling_and_noise_rows_fall_to_chance():
    real, test = table(3000), table(3000, 1)
    rng = np.random.default_rng(2)
    senseless = real.assign(y=rng.permutation(real["y"]))
    found = compare(real, test, senseless, SCHEMA)
    assert 0.86 < found.real.accuracy <= 0.92
    assert found.real.auroc > 0.85
    assert abs(found.synthetic.auroc - 0.5) < 0.1
    share = (test["y"] == "no").mean()
    assert found.majority.accuracy == pytest.approx(share)
    assert (found.majority.auroc, found.majority.balanced_accuracy) == (0.5, 0.5)
    assert found.majority.rows == 3000


def test_the_majority_is_the_training_rows_not_the_test_rows():
    real = table(40).assign(y=["yes"] * 30 + ["no"] * 10)
    test = table(40, 1).assign(y=["yes"] * 10 + ["no"] * 30)
    assert compare(real, test, real, SCHEMA).majority.accuracy == 0.25


def test_real_rows_as_synthetic_score_as_real_rows_and_repeat():
    real, test = table(300), table(300, 1)
    found = compare(real, test, real, SCHEMA, seed=3)
    assert found.synthetic == found.real == train_on_synthetic(real, test, SCHEMA, seed=3)


def test_synthetic_rows_of_one_class_score_like_that_answer():
    real, test = table(200), table(200, 1)
    found = compare(real, test, real.assign(y="no"), SCHEMA).synthetic
    assert found.auroc == 0.5
    assert found.accuracy == pytest.approx((test["y"] == "no").mean())


@pytest.mark.parametrize("few", [1, 2, 3])
def test_a_handful_of_synthetic_rows_is_scored(few):
    real = table(60)
    found = compare(real, real, real.iloc[:few], SCHEMA).synthetic
    assert 0 <= found.accuracy <= 1


def test_classes_that_no_synthetic_row_has_are_scored():
    schema = Schema(
        columns=(
            Integer(name="x", lower=0, upper=3),
            Categorical(name="y", values=("a", "b", "c", "d")),
        ),
        target="y",
    )
    x = np.repeat(np.arange(4), 50)
    real = pd.DataFrame({"x": x, "y": np.array(list("abcd"))[x]})
    found = compare(real, real, real[real["y"].isin(["b", "d"])], schema)
    assert found.real.accuracy == 1
    assert found.synthetic.accuracy == 0.5
    assert found.synthetic.balanced_accuracy == 0.5
    # b and d against the rest, at worst tied with one class more; a and c are tied throughout.
    assert 0.5 <= found.synthetic.auroc < 1


def test_gaps_everywhere_constants_and_categories_unseen_in_training_are_taken():
    real = table(150)
    made = real.assign(x=np.nan, colour=None, day=pd.NaT, flag=True)
    found = compare(real, real, made, SCHEMA)
    assert found.synthetic.auroc == 0.5
    assert found.real.auroc > 0.7
    # With no feature known at all, every row gets the classes' shares.
    names = ["x", "colour", "day"]
    schema = Schema(columns=[*(SCHEMA.column(n) for n in names), SCHEMA.column("y")], target="y")
    bare, seen = made[[*names, "y"]], real[[*names, "y"]]
    assert compare(seen, seen, bare, schema).synthetic == compare(seen, seen, bare, schema).majority
    partly = made.assign(colour=["red", "green"] * 75)
    assert 0 <= train_on_synthetic(partly, real, SCHEMA).auroc <= 1


def test_a_column_of_more_categories_than_trees_take_is_used():
    values = tuple(range(400))
    schema = Schema(
        columns=(Categorical(name="code", values=values), Categorical(name="y", values=(0, 1))),
        target="y",
    )
    code = np.tile(values, 3)
    real = pd.DataFrame({"code": code, "y": (code >= 200).astype(int)})
    assert compare(real, real, real, schema).synthetic.accuracy > 0.99


def test_a_rare_class_among_many_rows_is_no_obstacle():
    # Above 10,000 rows scikit-learn would hold a stratified part out, which a lone row forbids.
    rng = np.random.default_rng(0)
    schema = Schema(
        columns=(
            Continuous(name="x", lower=0, upper=1, decimals=2),
            Categorical(name="y", values=("a", "b", "c")),
        ),
        target="y",
    )
    x = rng.random(10_500).round(2)
    y = np.where(x > 0.5, "a", "b").astype(object)
    y[0] = "c"
    made = pd.DataFrame({"x": x, "y": y})
    assert train_on_synthetic(made, made.iloc[:500], schema).accuracy > 0.95


def test_what_cannot_be_classified_is_refused():
    real = table(20)
    columns = SCHEMA.columns
    for target in (None, "x"):
        with pytest.raises(ConfigError, match="target"):
            compare(real, real, real, Schema(columns=columns, target=target))
    alone = Schema(columns=columns[-1:], target="y")
    with pytest.raises(ConfigError, match="besides"):
        compare(real[["y"]], real[["y"]], real[["y"]], alone)
    with pytest.raises(DataError, match="synthetic"):
        compare(real, real, real.iloc[:0], SCHEMA)
    with pytest.raises(DataError, match="real test"):
        compare(real, real.drop(columns="x"), real, SCHEMA)


def judged(synthetic, train, real, models=("gradient boosting (histogram)",), **settings):
    return utility(synthetic, train, real, models=models, **settings)


def test_real_rows_as_synthetic_give_identical_figures_for_every_model():
    train, test = rows(100), rows(80, seed=1)
    copy = rows(100)
    found = judged(copy, train, test, models="standard", seed=4)
    assert len(found.models) == 6
    for model in found.models:
        assert model.synthetic == model.real
        assert model.rows == {"synthetic": 100, "real": 100}
        assert model.seconds > 0
    assert found.curves["synthetic"] == found.curves["real"]
    again = judged(copy, train, test, models="standard", seed=4)
    assert [m.augmented for m in again.models] == [m.augmented for m in found.models]
    assert again.agreement == found.agreement
    assert again.baselines == found.baselines


def test_the_first_model_is_the_one_of_the_comparison():
    made, train, test = (frame(n, BINARY, seed) for n, seed in ((300, 2), (200, 0), (150, 1)))
    found = judged(*(read_rows(t, BINARY, "t") for t in (made, train, test)), seed=3)
    expected = compare(train, test, made, BINARY, seed=3)
    for side in ("synthetic", "real"):
        figures = getattr(found.models[0], side)
        assert figures == {m: getattr(getattr(expected, side), m) for m in figures}
        assert {*found.metrics, "f1_positive"} == set(figures)
    majority = found.baselines[0]
    assert majority.name == "commonest class"
    assert majority.scores["accuracy"] == expected.majority.accuracy
    assert majority.scores["auroc"] == 0.5
    both = train_on_synthetic(pd.concat([made, train]), test, BINARY, seed=3)
    assert found.models[0].augmented["auroc"] == pytest.approx(both.auroc, abs=1e-9)


def test_shuffled_labels_are_worth_as_much_as_nothing():
    train, test = rows(300), rows(600, seed=1)
    senseless = frame(300, seed=2)
    senseless["y"] = np.random.default_rng(0).permutation(senseless["y"])
    found = judged(read_rows(senseless, BINARY, "t"), train, test, models="standard")
    for model in found.models:
        assert abs(model.synthetic["auroc"] - 0.5) < 0.13, model.name
        assert model.real["auroc"] > 0.75
    figures = [
        score(train_boosting(label_rows(shuffle_columns(train, seed)), seed)(label_rows(test)),
              label_rows(test).y).auroc for seed in range(3)
    ]  # fmt: skip
    nothing = {baseline.name: baseline.scores for baseline in found.baselines}
    assert nothing["independent columns"]["auroc"] == pytest.approx(np.mean(figures))
    assert abs(nothing["independent columns"]["auroc"] - 0.5) < 0.13
    assert nothing["commonest class"]["f1"] < 0.45


def test_independent_columns_keep_every_column_and_no_relation():
    table = taught(400)
    found = label_rows(shuffle_columns(table.rows, 0))
    assert len(found) == 400
    for j in range(5):
        np.testing.assert_array_equal(np.sort(found.rows.values[:, j]),
                                      np.sort(table.rows.values[:, j]))  # fmt: skip
    np.testing.assert_array_equal(found.x, found.rows.values[:, :4])
    np.testing.assert_array_equal(found.y, found.rows.values[:, 4])
    # Each column is shuffled on its own: sizes no longer go with answers.
    before, after = (np.corrcoef(t.x[:, 1], t.y)[0, 1] for t in (table, found))
    assert before > 0.4
    assert abs(after) < 0.2


def test_the_mean_of_figures_is_known_where_all_are():
    found = mean_figures([{"a": 1.0, "b": None}, {"a": 2.0, "b": 3.0}])
    assert found == {"a": 1.5, "b": None}


def test_curves_are_scikit_learns_and_at_most_200_points():
    train, test = rows(200), rows(500, seed=1)
    found = judged(rows(100, seed=2), train, test, augment=False)
    answers = train_boosting(label_rows(train), 0)(label_rows(test))[:, 1]
    curve = found.curves["real"]
    assert len(curve["fpr"]) == len(curve["tpr"]) <= 200
    area = metrics.auc(curve["fpr"], curve["tpr"])
    truth = label_rows(test).y
    assert area == pytest.approx(metrics.roc_auc_score(truth, answers), abs=0.005)
    assert found.models[0].real["auroc"] == pytest.approx(metrics.roc_auc_score(truth, answers))
    assert judged(rows(90, THREE), rows(90, THREE), rows(90, THREE, 1)).curves is None


def test_what_a_tuner_sees_is_validated_on_synthetic_rows_alone():
    made, train, test = rows(200, seed=2), rows(100), rows(100, seed=1)
    found = judged(
        made, train, test, models=["decision tree", "naive Bayes", "linear discriminant"], seed=5
    )
    group = found.agreement.classifiers
    assert group.names == ("decision tree", "naive Bayes", "linear discriminant")
    assert group.real == tuple(model.real["auroc"] for model in found.models)
    order = np.random.default_rng(5).permutation(200)
    table = label_rows(made)
    held, trained = (table.take(np.sort(part)) for part in (order[160:], order[:160]))
    expected = GaussianNB().fit(trained.vectors(trained).astype(float), trained.y)
    chances = expected.predict_proba(trained.vectors(held).astype(float))[:, 1]
    assert group.synthetic[1] == pytest.approx(metrics.roc_auc_score(held.y, chances))
    # Rows of its own world: senseless real rows do not change it.
    other = judged(made, rows(100, y=["no", "yes"] * 50), test, models=["naive Bayes"], seed=5)
    assert other.agreement.classifiers.synthetic == (group.synthetic[1],)
    assert other.agreement.classifiers.spearman is None
    assert any("no rank agreement of models" in note for note in other.notes)


def test_settings_are_ranked_alike_on_rows_of_the_same_kind(monkeypatch):
    monkeypatch.setattr("fedsynth.evaluation.measures.utility.SETTINGS", SETTINGS[1::2])
    monkeypatch.setattr("fedsynth.evaluation.measures.agreement._ROUNDS", 90)
    made, train, test = rows(1000, seed=2), rows(700), rows(1000, seed=1)
    found = judged(made, train, test, augment=False).agreement.settings
    assert found.n == 6
    assert found.spearman > 0.6
    pair = stats.spearmanr(found.synthetic, found.real).statistic
    assert found.spearman == pytest.approx(pair)
    # The last setting: a rate of .4, 64 leaves; here on the test rows after real ones.
    settings = {"learning_rate": 0.4, "max_leaf_nodes": 64, "min_samples_leaf": 5, "rounds": 30}
    fit = train_boosting(label_rows(train), 0, l2_regularization=1.0, **settings)
    answers = fit(label_rows(test))
    assert found.real[-1] == pytest.approx(score(answers, label_rows(test).y).auroc)


def test_a_part_is_drawn_of_many_rows_and_said(monkeypatch):
    monkeypatch.setattr("fedsynth.evaluation.measures.utility._TESTED", 2_000)
    train, test = rows(3300), rows(2_050, seed=1)
    found = judged(rows(3200, seed=2), train, test, models=["naive Bayes", "support vectors"])
    full, part = found.models
    assert full.rows == {"synthetic": 3200, "real": 3300}
    assert part.rows == {"synthetic": 3000, "real": 3000}
    assert full.augmented is not None
    assert part.augmented is None
    assert any("random sample" in note for note in found.notes)
    assert "Utility: tested on 2,000 of 2,050 real rows." in found.notes
    assert judged(rows(50), rows(50), rows(50, seed=1), augment=False).models[0].augmented is None


def test_rows_without_labels_are_left_out_and_counted():
    made = rows(40, seed=2, y=[*["perhaps"] * 10, *["yes", "no"] * 15])
    found = judged(made, rows(60), rows(50, seed=1))
    assert found.models[0].rows == {"synthetic": 30, "real": 60}
    said = "10 of 40 synthetic rows were left out: their y is missing or outside the schema"
    assert any(said in note for note in found.notes)
    for place in range(3):
        tables = [rows(40, seed=seed) for seed in range(3)]
        tables[place] = rows(40, y=None)
        with pytest.raises(DataError, match=r"(synthetic|real training|real test): no row has"):
            judged(*tables)


def test_a_test_set_of_one_class_has_accuracy_and_no_auroc():
    found = judged(rows(100, seed=2), rows(100), rows(50, seed=1, y="yes"), models="standard")
    for model in found.models:
        assert 0 < model.synthetic["accuracy"] <= 1
        assert model.synthetic["auroc"] is model.synthetic["average_precision"] is None
    assert found.curves is None
    assert any("cannot be computed" in note for note in found.notes)
    assert found.agreement.classifiers.spearman is None


def test_synthetic_rows_of_one_class_answer_that_class():
    test = rows(50, seed=1)
    found = judged(rows(60, seed=2, y="yes"), rows(60), test, models="standard")
    for model in found.models:
        assert model.synthetic["auroc"] == 0.5
        assert model.synthetic["accuracy"] == (label_rows(test).y == 1).mean()
    assert any("synthetic rows are all of one class" in note for note in found.notes)
    assert found.agreement.classifiers.note is not None


def test_ten_rows_of_ten_classes_give_figures_or_a_note():
    schema = Schema(
        columns=(*COLUMNS, Categorical(name="y", values=tuple("abcdefghij"))), target="y"
    )
    tables = [
        read_rows(frame(10, seed=s).assign(y=list("abcdefghij")), schema, "t") for s in range(3)
    ]
    names = ["decision tree", "linear discriminant", "k nearest neighbours"]
    found = judged(*tables, models=names)
    by_name = {model.name: model for model in found.models}
    assert set(by_name["linear discriminant"].real.values()) == {None}
    assert any("linear discriminant could not be fitted to the real training rows" in note
               for note in found.notes)  # fmt: skip
    assert by_name["decision tree"].real["accuracy"] is not None
    json.dumps(dataclasses.asdict(found), allow_nan=False)


@pytest.mark.parametrize(
    ("schema", "models"),
    [(BINARY, "standard"), (THREE, ["decision tree"]), (NUMBER, "standard"), (DATE, None)],
    ids=["2", "3", "number", "date"],
)
def test_the_figures_are_plain_json_whatever_is_predicted(schema, models):
    steps = []
    found = judged(
        rows(60, schema, 2),
        rows(60, schema),
        rows(60, schema, 1),
        models=models or "gradient boosting (histogram)",
        progress=lambda done, all_: steps.append((done, all_)),
    )
    content = json.loads(json.dumps(dataclasses.asdict(found), allow_nan=False))
    assert content["target"] == "y"
    assert content["task"] == ("classification" if schema.classes else "regression")
    assert content["primary"] in content["metrics"]
    assert {"classifiers", "settings"} == set(content["agreement"])
    for model in content["models"]:
        assert set(model["synthetic"]) >= set(content["metrics"])
    assert steps == [(i, len(found.models) + 2) for i in range(len(found.models) + 3)]


def test_numbers_are_predicted_beside_their_mean():
    train, test = rows(500, NUMBER), rows(400, NUMBER, 1)
    found = judged(rows(500, NUMBER, 2), train, test, models="thorough")
    assert (found.task, found.primary, found.metrics) == ("regression", "r2", ("r2", "mae"))
    assert len(found.models) == 5
    for model in found.models:
        assert model.real["r2"] > 0.6
        assert model.synthetic["r2"] > 0.6
    mean, shuffled = found.baselines
    truth, guess = label_rows(test).y, label_rows(train).y.mean()
    assert mean.name == "mean"
    assert mean.scores["r2"] == pytest.approx(metrics.r2_score(truth, np.full(400, guess)))
    assert mean.scores["mae"] == pytest.approx(np.abs(truth - guess).mean())
    assert shuffled.scores["r2"] < 0.1
    assert found.agreement.settings.spearman == 1


def test_days_are_the_unit_of_a_dates_errors():
    found = judged(rows(300, DATE, 2), rows(300, DATE), rows(300, DATE, 1), augment=False)
    assert 5 < found.models[0].real["mae"] < 40
    assert "Utility: mean absolute errors are in days." in found.notes


def test_a_constant_number_to_predict_has_errors_and_no_r2():
    found = judged(rows(60, NUMBER, 2), rows(60, NUMBER), rows(40, NUMBER, 1, y=3.0))
    assert found.models[0].real["r2"] is None
    assert found.models[0].real["mae"] >= 0
    assert any("R2 cannot be computed" in note for note in found.notes)


def test_what_cannot_be_predicted_is_refused_in_words():
    for schema in (Schema(columns=COLUMNS), Schema(columns=COLUMNS[3:], target="flag")):
        table = read_rows(frame(9)[[c.name for c in schema.modelled]], schema, "t")
        with pytest.raises(ConfigError, match="target"):
            judged(table, table, table)
    table = rows(9)
    with pytest.raises(ConfigError, match=r"naive bias.*naive Bayes"):
        judged(table, table, table, models=["naive bias"])
    with pytest.raises(ConfigError, match="names none"):
        judged(table, table, table, models=[])


def test_the_report_draws_it():
    found = judged(rows(60, seed=2), rows(60), rows(60, seed=1), models=["random forest"])
    content = {"utility": dataclasses.asdict(found)}
    assert "Random forest" in str(utility_section(content))


def test_models_that_standard_leaves_out_are_named():
    left = [learner.name for learner in CLASSIFIERS[6:]]
    noted = _note_standard("standard", "classification")
    assert len(left) == 8 and all(name in noted[0] for name in left)
    assert "`thorough` trains them" in noted[0] and noted[0].part == "utility"
    assert not _note_standard("thorough", "classification") + _note_standard([], "classification")
    assert not _note_standard("standard", "regression"), "it leaves none out"
