"""Searches on synthetic rows: repeatable, resumable, and blind to real rows."""

from __future__ import annotations

import json
import pickle
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError, ReleaseError
from fedsynth.evaluation.reading.scores import score_numbers
from fedsynth.tuning import tuning
from fedsynth.tuning.rows import encode, features_of, supervise
from fedsynth.tuning.spaces import named_space
from fedsynth.tuning.tuned import Candidate, Tuned
from tests.methods.small import SCHEMA, table
from tests.tuning.conftest import release

OPTIONS = {"trials": 3, "rows": 250, "seed": 3}
FEW = {**OPTIONS, "trials": 2}
NEIGHBOURS = "k nearest neighbours"


@pytest.fixture(scope="module")
def found(releases: list[Path]) -> Tuned:
    """A search whose settings do for some dozens of real rows."""
    return fs.tune(releases[0], NEIGHBOURS, {"n_neighbors": (1, 50)}, **FEW)


def test_the_same_search_finds_the_same(releases: list[Path]):
    first, second = (fs.tune(releases[0], NEIGHBOURS, **OPTIONS) for _ in range(2))
    assert first.table().equals(second.table())
    assert first.best == second.best and first.defaults == second.defaults


def test_a_search_that_was_cut_off_goes_on_as_if_it_had_not_been(
    releases: list[Path], tmp_path: Path
):
    whole = fs.tune(releases[0], NEIGHBOURS, **OPTIONS)
    kept = tmp_path / "search.db"

    class Killed(BaseException):
        pass

    def die(step: str, done: int, total: int, **_: object) -> None:
        if done == 2:
            raise Killed

    with pytest.raises(Killed):
        fs.tune(releases[0], NEIGHBOURS, **OPTIONS, storage=kept, progress=die)
    resumed = fs.tune(releases[0], NEIGHBOURS, **OPTIONS, storage=kept)
    assert resumed.table().equals(whole.table())
    # Nothing is tried anew where all has been.
    again = fs.tune(releases[0], NEIGHBOURS, **OPTIONS, storage=kept)
    assert again.table().equals(whole.table())


def test_searches_in_one_storage_are_kept_apart(releases: list[Path], tmp_path: Path):
    kept = tmp_path / "search.db"
    first = fs.tune(releases[0], NEIGHBOURS, **FEW, storage=kept)
    other = fs.tune(releases[1], NEIGHBOURS, **FEW, storage=kept)
    assert len(first.candidates) == len(other.candidates) == FEW["trials"]
    assert (first.releases, other.releases) == tuple((str(one),) for one in releases)
    wider = fs.tune(releases[0], NEIGHBOURS, {"n_neighbors": (1, 3)}, **FEW, storage=kept)
    assert {one.settings["model__n_neighbors"] for one in wider.candidates} <= {1, 2, 3}


def test_of_several_releases_the_mean_rank_decides(releases: list[Path]):
    found = fs.tune(releases, NEIGHBOURS, **OPTIONS)
    scores = found.table()[[str(one) for one in releases]]
    ranks = scores.rank(ascending=False).mean(axis=1)
    assert found.table()["rank"].tolist() == ranks.tolist() == sorted(ranks)
    assert found.best.scores == tuple(scores[found.table().trial == found.best.number].iloc[0])
    alone = [fs.tune(one, NEIGHBOURS, **{**OPTIONS, "trials": 1}).defaults for one in releases]
    assert found.defaults == tuple(own for (own,) in alone)
    gains = np.subtract(found.best.scores, found.defaults)
    assert found.gains == tuple(gains)
    shown = " ".join(str(found).split())
    assert f"from release to release {gains.min():+.4f} to {gains.max():+.4f}" in shown


def test_every_model_is_searched_and_trains_on_real_rows(releases: list[Path]):
    real = table(80, 7)
    for name in ("gradient boosting", "logistic regression", "random forest"):
        found = fs.tune(releases[0], name, trials=1, rows=100)
        # The table tells outcomes by dose alone.
        assert found.compare(table(150, 8), table(150, 9)).tuned > 0.95
    model = found.train(real)
    assert set(model.predict(supervise(real, SCHEMA).x)) <= {"well", "ill"}


def test_a_target_of_numbers_is_searched_by_r2(tmp_path: Path):
    schema = SCHEMA.model_copy(update={"target": "dose"})
    folder = release(tmp_path / "numbers", schema, table(400))
    found = fs.tune(folder, "ridge regression", trials=2, rows=100)
    assert found.metric == "r2" and set(found.settings) == {"model__alpha"}
    with pytest.raises(ConfigError, match="logistic regression"):
        fs.tune(folder, "logistic regression")


def test_the_unit_of_a_target_of_numbers_does_not_matter():
    """Models with a margin or a step size of their own would learn nothing of large numbers."""
    schema = SCHEMA.model_copy(update={"target": "dose"})
    known, others = supervise(table(200), schema), supervise(table(100, 1), schema)
    for name in ("support vectors", "multilayer perceptron", "k nearest neighbours"):
        space = named_space(name, schema)
        model = space.build(schema, 0)
        assert set(space.choices) <= set(model.get_params())
        small = model.fit(known.x, known.y).predict(others.x)
        large = model.fit(known.x, 1e5 * known.y).predict(others.x)
        np.testing.assert_allclose(large, 1e5 * small, rtol=1e-6)
        assert score_numbers(small, others.y).r2 > 0.9
        own = space.defaults(model)
        assert own is not None
        assert space.capacity(space.settings_of(own)) is not None


def test_an_estimator_of_ones_own_is_searched(releases: list[Path]):
    space = {"C": (0.01, 1.0, "log"), "fit_intercept": [True, False]}
    bare = fs.tune(releases[0], LogisticRegression(), space, **OPTIONS)
    assert set(bare.settings) == {"model__C", "model__fit_intercept"}
    whole = make_pipeline(FunctionTransformer(lambda x: x[["dose"]]), LogisticRegression())
    found = fs.tune(releases[0], whole, {"logisticregression__C": (0.01, 1.0)}, **OPTIONS)
    assert found.best.capacity is None
    assert found.best.score == max(one.score for one in found.candidates)


def test_one_setting_of_a_model_can_be_narrowed(releases: list[Path]):
    found = fs.tune(releases[0], NEIGHBOURS, {"n_neighbors": (7, 9)}, **OPTIONS)
    assert {one.settings["model__n_neighbors"] for one in found.candidates} <= {7, 8, 9}


def test_cells_are_read_as_the_schema_means_them():
    """Amounts, moments in a zone and numbers in texts, not as scikit-learn would take them."""
    schema = fs.Schema(
        columns=[
            fs.Continuous(
                name="cost", lower=0, upper=9e4, decimals=2, format="$1,234.50", dtype="object"
            ),
            fs.Datetime(
                name="at",
                lower="2020-01-01",
                upper="2020-12-31",
                resolution="hour",
                zone="Europe/Berlin",
            ),
            fs.Categorical(name="grade", values=[1, 2], missing=True, dtype="float64"),
            fs.Categorical(name="y", values=["a", "b"]),
        ],
        target="y",
    )
    frame = pd.DataFrame(
        {
            "cost": ["$1,000.50", "$2.00", "$3.00"],
            "at": pd.to_datetime(["2020-01-01 01:00+01:00"] * 3, utc=True).tz_convert(
                "Europe/Berlin"
            ),
            "grade": [2.0, None, 1.0],
            "y": ["a", "b", "a"],
        }
    )
    known = supervise(frame, schema)
    matrix = encode(known.x, features_of(schema), schema.missing_values)
    np.testing.assert_array_equal(matrix[:, 0], [1000.5, 2, 3])
    np.testing.assert_array_equal(matrix[:, 1], [1, 1, 1])
    np.testing.assert_array_equal(matrix[:, 2], [1, np.nan, 0])
    for name in ("gradient boosting", "logistic regression", "k nearest neighbours"):
        model = named_space(name, schema).build(schema, 0)
        steps = pickle.loads(pickle.dumps(model))[:-1]
        assert steps.fit_transform(known.x, known.y).shape[0] == 3


def test_two_estimators_of_one_class_are_two_searches(releases: list[Path], tmp_path: Path):
    kept, space = tmp_path / "search.db", {"C": (0.01, 1.0, "log")}
    for weight in (None, "balanced"):
        model = LogisticRegression(class_weight=weight)
        fs.tune(releases[0], model, space, trials=1, rows=60, storage=kept)
    import optuna

    assert len(optuna.get_all_study_names(f"sqlite:///{kept}")) == 2


def test_searches_are_told_apart_by_everything_that_a_model_is_and_by_nothing_else():
    def other(x):
        return x * 2

    values = [(64,), (128,), [64, 64], np.log, abs, other, lambda x: x, Ridge(1), Ridge(2), 1, "1"]
    described = [tuning._describe(value) for value in values]
    assert len(set(described)) == len(values)
    assert tuning._describe(lambda x: x) != tuning._describe(lambda x: -x)
    assert not any(" at 0x" in text for text in described)
    assert tuning._describe(object()) == tuning._describe(object()) == "object"


def test_choices_of_ones_own_need_not_be_numbers(releases: list[Path]):
    """How much a model may learn is then not known, and the best is taken."""
    space = {"gamma": ["scale", 0.1]}
    found = fs.tune(releases[0], "support vectors", space, trials=3, rows=60)
    assert {one.capacity for one in found.candidates} == {None}
    assert found.best == found.candidates[0]
    assert "<svg" in str(found._repr_html_())


def test_nothing_that_scikit_learn_says_of_real_rows_gets_out(releases: list[Path]):
    def choke(x: pd.DataFrame) -> pd.DataFrame:
        if (x["age"] == 77).all():
            raise ValueError(f"cannot take {x['age'].max()}")
        return x[["dose"]]

    whole = make_pipeline(FunctionTransformer(choke), LogisticRegression())
    found = fs.tune(releases[0], whole, {"logisticregression__C": [1.0]}, trials=1, rows=100)
    real = table(60, 1).assign(age=20)
    odd = real.assign(age=77)
    for train, test in ((odd, real), (real, odd)):
        with pytest.raises(DataError) as caught:
            found.compare(train, test)
        assert caught.value.__suppress_context__ and "77" not in str(caught.value)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"model": "gradient bosting"}, "did you mean 'gradient boosting'"),
        ({"model": 3}, "scikit-learn estimator"),
        ({"model": LogisticRegression()}, "needs a space"),
        ({"model": LogisticRegression(), "space": {"c": (1, 2)}}, "no setting 'c'"),
        ({"space": {"learning_rat": (0.1, 0.2)}}, "did you mean 'learning_rate'"),
        ({"space": {"learning_rate": (0.2, 0.1)}}, "give \\(low, high\\)"),
        ({"space": {"learning_rate": (0.0, 0.1, "log")}}, "0 < low"),
        ({"space": {"learning_rate": "0.1"}}, "give \\(low, high\\)"),
        ({"space": {"learning_rate": []}}, "list of values"),
        ({"space": {"learning_rate": [0.1, "0.1"]}}, "two that read alike"),
        ({"model": Ridge(), "space": {"alpha": (1, 2)}}, "give a classifier"),
        (
            {"model": LogisticRegression(solver="none such"), "space": {"C": (1, 2)}},
            "cannot be trained as it is",
        ),
        ({"metric": "roc"}, "auroc"),
        ({"metric": "r2"}, "auroc"),
        ({"trials": 0}, "trials"),
        ({"rows": 3}, "rows"),
        ({"jobs": 0}, "jobs"),
        ({"pairs": 0}, "pairs"),
        ({"storage": 3}, "storage must be a path"),
        ({"progress": "yes"}, "progress"),
    ],
)
def test_wrong_searches_are_told_before_anything_is_tried(releases, arguments, words):
    with pytest.raises(ConfigError, match=words):
        fs.tune(releases[0], **arguments)


def test_settings_that_no_candidate_can_be_trained_with_are_told(releases: list[Path]):
    with pytest.raises(ConfigError, match="no candidate could be trained"):
        fs.tune(releases[0], LogisticRegression(), {"penalty": ["none such"]}, **OPTIONS)


def test_releases_must_have_a_target_of_two_values_and_one_schema(
    releases: list[Path], tmp_path: Path
):
    aimless = release(tmp_path / "aimless", SCHEMA.model_copy(update={"target": None}), table(100))
    with pytest.raises(ConfigError, match="names no target"):
        fs.tune(aimless)
    with pytest.raises(ConfigError, match="different schemas"):
        numbers = SCHEMA.model_copy(update={"target": "dose"})
        fs.tune([releases[0], release(tmp_path / "other", numbers, table(100))])
    with pytest.raises(ConfigError, match="or several"):
        fs.tune([])


def test_draws_of_one_class_are_told():
    one = table(50).assign(outcome="ill")
    with pytest.raises(DataError, match="same value of the target 'outcome'"):
        supervise(one, SCHEMA, "rows")


def test_scores_of_real_rows_stay_out_of_the_search(releases: list[Path], tmp_path: Path):
    kept = tmp_path / "search.db"
    found = fs.tune(releases[0], NEIGHBOURS, {"n_neighbors": (1, 50)}, **FEW, storage=kept)
    before = kept.read_bytes()
    scores = found.compare(table(100, 5), table(100, 6), candidates=True)
    assert kept.read_bytes() == before
    assert scores.best is not None and scores.regret == pytest.approx(scores.best - scores.tuned)


def test_settings_are_also_chosen_by_cross_validation_on_real_rows(found: Tuned):
    train, test = table(120, 5), table(100, 6)
    private = found.compare(train, test, folds=2)
    assert private.best is None
    # scikit-learn's own search among the same settings, and the default.
    known, others = supervise(train, SCHEMA), supervise(test, SCHEMA)
    own = found.build().get_params()
    names = list(found.settings)
    grid = [{name: [own[name]] for name in names}]
    grid += [{name: [one.settings[name]] for name in names} for one in found.candidates]
    folds = StratifiedKFold(2, shuffle=True, random_state=OPTIONS["seed"])
    search = GridSearchCV(found.build(), grid, scoring="roc_auc", cv=folds)
    search.fit(known.x, known.y)
    assert private.searched == pytest.approx(search.score(others.x, others.y))


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"folds": 1}, ConfigError, "folds must be a whole number of at least 2"),
        ({"folds": 200}, DataError, "120 real rows are too few for 200 folds"),
    ],
)
def test_folds_that_are_none_are_told(found: Tuned, given, error, words):
    with pytest.raises(error, match=words):
        found.compare(table(120, 5), table(100, 6), **given)


def test_what_is_told_of_real_rows_says_that_it_is_private(found: Tuned):
    private = found.compare(table(120, 5), table(100, 6), folds=2)
    shown = " ".join(str(private).split())
    assert "no epsilon covers them" in shown and "no part of a release" in shown
    assert f"{private.searched:.4f}" in shown
    assert set(private.to_dict()) == {"metric", "default", "tuned", "searched"}


@pytest.mark.parametrize("name", ["gradient boosting", "support vectors", "multilayer perceptron"])
@pytest.mark.parametrize("target", ["outcome", "dose"])
def test_the_code_to_paste_makes_the_model_that_was_found(name: str, target: str):
    schema = SCHEMA.model_copy(update={"target": target})
    space = named_space(name, schema)
    first = {one: choice[0] for one, choice in space.choices.items()}
    found = Tuned(
        name, "auroc", ("a",), 9, (0.5,), (Candidate(0, first, (0.5,), 1.0, 0.0),), 0,
        Candidate(0, first, (0.5,), 1.0, 0.0), schema, space,
    )  # fmt: skip
    known: dict[str, object] = {}
    imports, _, written = found.code.partition("\n\n")
    exec(imports, known)
    made, meant = eval(written, known), found.pipeline.named_steps["model"]
    own, expected = made.get_params(), meant.get_params()
    expected.pop("categorical_features", None), own.pop("categorical_features", None)
    simple = [key for key, value in expected.items() if not hasattr(value, "get_params")]
    assert {key: own[key] for key in simple} == {key: expected[key] for key in simple}


def test_a_search_is_saved_as_a_page_without_real_scores(releases: list[Path], tmp_path: Path):
    found = fs.tune(releases, NEIGHBOURS, **FEW)
    found.compare(table(250, 5), table(100, 6))
    found.save(tmp_path / "found")
    files = {file.name: file.read_text() for file in (tmp_path / "found").iterdir()}
    assert set(files) == {"settings.json", "trials.csv", "search.html"}
    kept = json.loads(files["settings.json"])
    assert kept["settings"]["n_neighbors"] == found.settings["model__n_neighbors"]
    assert kept["score"] == found.best.score
    table_ = pd.read_csv(tmp_path / "found" / "trials.csv")
    assert table_["trial"].tolist() == [one.number for one in found.candidates]
    page = files["search.html"]
    assert "KNeighborsClassifier(" in page and "Why this costs no privacy" in page
    assert page.count("<svg") == 1 and "src=" not in page and "href=" not in page
    assert str(found._repr_html_()).count("<svg") == 1
    with pytest.raises(ConfigError, match="exists already"):
        found.save(tmp_path / "found")
    found.plot(tmp_path / "found.svg")
    assert (tmp_path / "found.svg").read_text().startswith("<svg")
    with pytest.raises(ConfigError, match="exists already"):
        found.plot(tmp_path / "found.svg")


def test_values_of_settings_that_no_file_has_are_written_as_text(
    releases: list[Path], tmp_path: Path
):
    space = {"metric": ["cosine", np.dot]}
    found = fs.tune(releases[0], KNeighborsClassifier(), space, trials=1, rows=60)
    found.save(tmp_path / "found")
    assert json.loads((tmp_path / "found" / "settings.json").read_text())["settings"]


def test_a_folder_of_releases_stands_for_all_in_it(releases: list[Path], tmp_path: Path):
    found = fs.tune(releases[0].parent, NEIGHBOURS, **FEW)
    assert found.releases == tuple(map(str, releases))
    assert found.candidates == fs.tune(releases, NEIGHBOURS, **FEW).candidates
    with pytest.raises(ReleaseError, match="no complete release"):
        fs.tune(tmp_path)
    # A release of a model that makes no rows is none to tune on.
    (tmp_path / "model").mkdir()
    shutil.copy(releases[0] / "certificate.json", tmp_path / "model")
    (tmp_path / "b").symlink_to(releases[1])
    assert tuning.find_releases(tmp_path) == [tmp_path / "b"]
    with pytest.raises(ReleaseError, match="there is no such folder"):
        fs.tune(tmp_path / "none")


def test_pairs_are_draws_that_every_candidate_is_tried_on(releases: list[Path]):
    one, two = (fs.tune(releases[0], NEIGHBOURS, **FEW, pairs=n) for n in (1, 2))
    assert one.default != two.default
    assert [each.settings for each in one.candidates if each.number == 0] == [
        each.settings for each in two.candidates if each.number == 0
    ]


@pytest.mark.parametrize(
    ("model", "methods", "warned"),
    [
        ("random forest", {"aim"}, True),
        ("multilayer perceptron", {"aim"}, True),
        ("random forest", {"aim", "fedvae"}, False),
        ("random forest", {"mst"}, False),
        ("gradient boosting", {"aim"}, False),
    ],
)
def test_what_was_measured_against_a_method_is_said_of_that_alone(model, methods, warned):
    assert bool(tuning._cautions(model, methods)) == warned


def test_real_rows_too_few_for_the_settings_are_told(releases: list[Path]):
    found = fs.tune(releases[0], NEIGHBOURS, {"n_neighbors": (100, 200)}, **OPTIONS)
    with pytest.raises(DataError, match="on 50 real rows: settings were found on 250"):
        found.train(table(50, 5))


@pytest.mark.parametrize("target", ["outcome", "dose"])
def test_spaces_hold_the_default_but_where_they_leave_corners_out(target: str):
    schema = SCHEMA.model_copy(update={"target": target})
    linear = "logistic regression" if target == "outcome" else "ridge regression"
    for name in (
        "gradient boosting", "multilayer perceptron", "support vectors", NEIGHBOURS, linear,
    ):  # fmt: skip
        space = named_space(name, schema)
        assert space.defaults(space.build(schema, 0)) is not None, name
    forest = named_space("random forest", schema)
    assert forest.defaults(forest.build(schema, 0)) is None
