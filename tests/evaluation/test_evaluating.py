"""fs.evaluate on any pair of tables or images: a correct figure or a clear error, never a NaN."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.evaluating import PRIVATE, PUBLIC
from fedsynth.evaluation.measures.detection import Detection
from fedsynth.evaluation.measures.quality import Quality
from fedsynth.schema import Categorical, Integer, Schema
from tests.evaluation.attacked_people import SCHEMA, people

QUICK = ("logistic regression",)
MEMBERSHIP = {
    f"membership, {name}"
    for name in ("density ratio", "nearest row", "matching cells", "equal rows")
}
SINGLING = {"singling out, one column", "singling out, several columns"}


@pytest.fixture
def unscored(monkeypatch):
    """Without SDMetrics' reports, what boosting tells apart and ranks of settings, most of an
    evaluation, where tables are ordinary ones or these not looked at."""
    nothing = Quality(None, None, None, None, None)
    monkeypatch.setattr("fedsynth.evaluation.measures.fidelity.quality", lambda *_: nothing)
    guessed = Detection("gradient boosting", 0.5, 0.0, 1.0, None, None, None)
    monkeypatch.setattr("fedsynth.evaluation.measures.detection._boost", lambda *_: guessed)
    monkeypatch.setattr("fedsynth.evaluation.measures.utility.SETTINGS", ())


@pytest.fixture
def look(tmp_path):
    """Evaluates; the result holds no NaN as JSON and becomes a page."""

    def run(*tables, **options):
        found = fs.evaluate(*tables, **{"models": QUICK, **options})
        content = found.to_dict()
        text = json.dumps(content, allow_nan=False)
        page, written = found.save(tmp_path / "report")
        assert json.loads(written.read_text(encoding="utf-8")) == json.loads(text)
        body = page.read_text(encoding="utf-8")
        shown = re.sub("<(script|style).*?</(script|style)>", "", body, flags=re.DOTALL)
        assert body.rstrip().endswith("</html>") and not re.search(r"\bnan\b", shown, re.IGNORECASE)
        assert len(found.summary.headlines) == 4
        return found

    return run


def test_a_mixed_table_has_every_part(look):
    found = look(people(100, 0), people(90, 1), SCHEMA, train=people(80, 2), title="people")
    content = found.to_dict()
    assert content["data"] == {
        "kind": "table",
        "columns": 6,
        "target": "flag",
        "task": "classification",
        "rows": {"real": 100, "synthetic": 90, "train": 80},
    }
    assert [one["name"] for one in content["fidelity"]["columns"]] == list(found_names())
    assert [one["order"] for one in content["fidelity"]["marginals"]] == [1, 2, 3]
    assert content["utility"]["models"][0]["rows"] == {"synthetic": 90, "real": 80}
    assert len(found.privacy.membership) == 4 and len(found.privacy.attributes) == 6
    assert (content["title"], content["certificate"], content["seed"]) == ("people", None, 0)
    assert found.caught == [] and found.notes == found.fidelity.notes + found.utility.notes


def found_names():
    return (column.name for column in SCHEMA.modelled)


@pytest.mark.usefixtures("unscored")
def test_without_training_rows_halves_of_the_real_ones_are_compared(look):
    real, made = people(101, 0), people(60, 1)
    found = look(real, made, SCHEMA)
    assert found.utility.models[0].rows == {"synthetic": 50, "real": 50}
    assert found.privacy.membership == () and found.privacy.risks == ()
    assert "were not given" in found.privacy.skipped[0]
    assert "one half of the real rows" in found.notes[0]
    assert "No attack was run" in found.summary.verdict
    again = fs.evaluate(real, made, SCHEMA, models=QUICK)
    assert (again.fidelity, again.summary) == (found.fidelity, found.summary)
    assert fs.evaluate(real, made, SCHEMA, models=QUICK, seed=1).fidelity != found.fidelity


@pytest.mark.usefixtures("unscored")
def test_without_a_schema_one_is_drafted_from_the_real_rows(look):
    real = people(60, 0)
    # Values of the real rows, which the draft allows.
    train, made = (
        pd.DataFrame({name: np.roll(real[name], k * by) for k, name in enumerate(real)})
        for by in (1, 7)
    )
    found = look(real, made, train=train)
    assert "No schema was given" in found.notes[0] and found.utility is None
    assert "names no target" in found.notes[-1]
    assert "names no target" in found.summary.headlines[0].meaning
    drafted = look(real, made, Schema.draft(real), train=train)
    assert drafted.fidelity == found.fidelity and drafted.privacy == found.privacy


@pytest.mark.usefixtures("unscored")
def test_a_target_of_numbers_is_regressed(look):
    schema = Schema(columns=SCHEMA.columns, target="y")
    found = look(people(150, 0), people(150, 1), schema, train=people(150, 2), models="standard")
    assert (found.about["task"], found.utility.primary) == ("regression", "r2")
    assert found.utility.models[0].synthetic["r2"] > 0.6
    assert found.summary.headlines[0].name == "R2 on real rows"


@pytest.mark.usefixtures("unscored")
def test_real_rows_of_one_class_leave_nothing_to_score(look):
    one = people(60, 0).assign(flag=True)
    found = look(one, people(60, 1), SCHEMA, train=people(60, 2))
    assert found.utility.models[0].synthetic["auroc"] is None
    assert found.utility.models[0].synthetic["accuracy"] is not None
    assert "cannot be told" in found.summary.verdict


@pytest.mark.usefixtures("unscored")
def test_synthetic_rows_of_one_class_teach_nothing(look):
    made = people(200, 1).assign(flag=False)
    found = look(people(200, 0), made, SCHEMA, train=people(200, 2))
    assert found.utility.models[0].synthetic["auroc"] == 0.5
    assert found.utility.models[0].real["auroc"] > 0.6
    assert "Models learn little" in found.summary.verdict


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize("columns", [("colour", "count", "day"), ("flag",)], ids=" ".join)
@pytest.mark.parametrize("side", ["real", "synthetic", "train"])
def test_a_column_without_a_value_is_counted_as_missing(look, columns, side):
    tables = {"real": people(40, 0), "synthetic": people(40, 1), "train": people(40, 2)}
    tables[side] = tables[side].assign(**dict.fromkeys(columns))
    schema = SCHEMA
    for name in set(columns) - {"flag"}:
        schema = schema.edit(name, missing=True)
    if columns == ("flag",) and side != "synthetic":
        # Of rows that may not lack it none can be held against others.
        with pytest.raises(DataError, match=f"{side}: every row has a cell outside the schema"):
            look(tables["real"], tables["synthetic"], schema, train=tables["train"])
        return
    found = look(tables["real"], tables["synthetic"], schema, train=tables["train"])
    for score in found.fidelity.columns:
        gone = side if score.name in columns else None
        assert (score.missing["real"] == 1) == (gone == "real")
        assert (score.missing["synthetic"] == 1) == (gone == "synthetic")
        assert (score.score == 0) == (gone in ("real", "synthetic"))
        assert (score.real == 0) == (gone in ("real", "train"))
    if columns == ("flag",):
        assert found.utility is None
        assert "no row has a value of the target 'flag'" in found.summary.headlines[0].meaning
        assert any("no row has a value of the target" in note for note in found.notes)


def test_columns_without_a_value_anywhere_are_drafted_and_compared(look):
    real, made = (people(30, seed).assign(x=None, colour=None) for seed in (0, 1))
    assert look(real, made).fidelity.columns[0].score >= 0


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize(
    ("rows", "schema"),
    [(10, SCHEMA), (5, None), (2, SCHEMA), (2, None)],
    ids=["10", "5 drafted", "2", "2 drafted"],
)
def test_few_rows_are_evaluated(look, rows, schema):
    if rows == 2:
        look(people(rows, 0), people(rows, 1), schema)
    found = look(people(rows, 0), people(rows, 1), schema, train=people(rows, 2))
    assert found.fidelity.detection == () and found.caught == []
    assert ("So few rows could raise no alarm" in found.summary.verdict) == (rows < 10)


@pytest.mark.usefixtures("unscored")
def test_ten_copied_rows_are_caught_and_five_cannot_be(look):
    assert look(people(10, 0), people(10, 1), SCHEMA, train=people(10, 1)).caught
    found = look(people(5, 0), people(5, 1), SCHEMA, train=people(5, 1))
    assert found.caught == [] and "nothing is known" in found.summary.verdict
    assert any("100.0% of the synthetic rows equal" in line for line in found.summary.beware)


@pytest.mark.usefixtures("unscored")
def test_one_row_needs_others_to_compare(look):
    with pytest.raises(DataError, match="real: one row cannot be compared"):
        look(people(1, 0), people(5, 1), SCHEMA)
    found = look(people(1, 0), people(1, 1), SCHEMA, train=people(1, 2))
    assert "Membership" in found.privacy.skipped[0]
    assert look(people(9, 0), people(1, 1), SCHEMA, train=people(9, 2)).caught == []


def test_a_table_of_one_column(look):
    parts = [people(50, seed)[["x"]] for seed in range(3)]
    found = look(parts[0], parts[1], train=parts[2])
    assert found.fidelity.pairs is None and len(found.fidelity.marginals) == 1
    assert "The column is off by" in found.summary.verdict
    skipped = " ".join(found.privacy.skipped)
    assert "Linkability: " in skipped and "Inference: " in skipped
    reasons = found.to_dict()["reasons"]
    assert any(text.startswith("Linkability: ") for text in reasons["risks"])
    assert f"Inference: {reasons['attributes'][0]}" in found.privacy.skipped
    target = Schema(columns=(SCHEMA.column("x"),), target="x")
    assert "no column besides the target" in look(parts[0], parts[1], target).notes[-1]


@pytest.mark.usefixtures("unscored")
def test_cells_of_another_kind_are_counted(look):
    odd = people(50, 1).astype(object)
    for column, value in (("x", "abc"), ("count", "seven"), ("colour", 3), ("day", "never")):
        odd.loc[:9, column] = value
    odd.loc[0, "flag"] = "perhaps"
    found = look(people(50, 0), odd, SCHEMA, train=people(50, 2))
    outside = {one.name: one.outside for one in found.fidelity.columns}
    assert outside == pytest.approx(
        {"colour": 0.2, "count": 0.2, "x": 0.2, "y": 0, "day": 0.2, "flag": 0.02}
    )
    assert "schema does not allow: colour, count, x, day, flag." in found.summary.beware[-1]
    look(odd, people(50, 0), train=people(50, 2))


BOUNDED = Schema(
    columns=[
        Integer(name="age", lower=18, upper=90),
        Categorical(name="zip", values=["a", "b"], missing=True),
        Categorical(name="job", values=["p", "q"]),
    ]
)


@pytest.mark.usefixtures("unscored")
def test_the_best_rows_that_a_schema_allows_score_best_and_the_rest_is_told(look):
    """Of 100 real rows ten are above the bound, twenty unlisted, five of a job that fits nowhere:
    the best possible rows are the other 95, clamped and with gaps."""
    ages, zips = np.arange(100) % 70 + 18, np.array(list("ab") * 50, object)
    jobs = np.array(["p"] * 40 + ["q"] * 60, object)
    real = pd.DataFrame({"age": ages, "zip": zips, "job": jobs})
    best = real.copy()
    real.loc[:9, "age"], best.loc[:9, "age"] = 95, 90
    real.loc[20:39, "zip"], best.loc[20:39, "zip"] = "c", None
    real.loc[95:, "job"] = "z"
    best = best[:95]
    train = real.assign(age=np.roll(real.age, 7))
    found = look(real, best, BOUNDED, train=train)
    for one in found.fidelity.columns:
        assert (one.score, one.coverage, one.outside) == (1, 1, 0)
    assert [one.real_outside for one in found.fidelity.columns] == [0.1, 0.2, 0.05]
    assert [one.mean for one in found.fidelity.marginals] == [0, 0, 0]
    told = (
        "Real rows: 20 % of zip, 10 % of age, 5 % of job lies outside the schema, and no synthetic "
        "table can hold it. It counts as what is learned from it: the bound, `other` or missing. "
        "5 of 100 rows fit nowhere and are left out."
    )
    assert told in found.notes


@pytest.mark.usefixtures("unscored")
def test_where_the_schema_was_drafted_no_real_row_is_left_out(look):
    """The generator did not know it, so training rows may be what it does not allow."""
    real, train = people(50, 0), people(50, 2).assign(colour="violet")
    found = look(real, people(50, 1), None, train=train)
    assert not any("left out" in note for note in found.notes if "rows:" in note)
    colour = next(one for one in found.fidelity.columns if one.name == "colour")
    assert colour.real == 0


@pytest.mark.usefixtures("unscored")
def test_unseen_categories_are_counted(look):
    made = people(50, 1).assign(colour="violet")
    for schema in (SCHEMA, None):
        found = look(people(50, 0), made, schema, train=people(50, 2))
        colour = next(one for one in found.fidelity.columns if one.name == "colour")
        assert (colour.outside, colour.score) == (1, 0)


@pytest.mark.parametrize("side", ["real", "synthetic", "train"])
def test_columns_that_differ_are_named_with_their_side(side):
    tables = {key: people(9, n) for n, key in enumerate(("real", "synthetic", "train"))}
    good = tables[side]
    for frame, message in (
        (good.drop(columns="y"), f"{side}: lacks columns of the schema: 'y'"),
        (good.assign(shoe=1), f"{side}: has columns that the schema does not declare: 'shoe'"),
        (good.iloc[:0], f"{side}: has no rows"),
        (17, f"{side}: is a int; give a table"),
    ):
        tables[side] = frame
        with pytest.raises(DataError, match=message):
            fs.evaluate(tables["real"], tables["synthetic"], SCHEMA, train=tables["train"])


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"secrets": ["flagg"]}, "secrets: there is no column 'flagg'; did you mean 'flag'"),
        ({"sensitive": ["flag"]}, "name those, too"),
        ({"quasi_identifiers": ["agee"]}, "there is no column 'agee'"),
        ({"quasi_identifiers": ["x"]}, "sensitive columns: name one"),
        ({"models": ["boosting"]}, "no model for classification is called 'boosting'"),
    ],
)
def test_wrong_options_are_explained_with_and_without_train(options, message):
    for train in (None, people(9, 2)):
        with pytest.raises(ConfigError, match=message):
            fs.evaluate(people(9, 0), people(9, 1), SCHEMA, train=train, **options)


@pytest.mark.usefixtures("unscored")
def test_named_secrets_are_attacked(look):
    found = look(people(50, 0), people(50, 1), SCHEMA, train=people(50, 2), secrets=["y"])
    assert [one.column for one in found.privacy.attributes] == ["y"]


@pytest.mark.usefixtures("unscored")
def test_quasi_identifiers_are_looked_at_where_they_are_named(look):
    pytest.importorskip("pycanon")
    columns = {"quasi_identifiers": ["colour"], "sensitive": ["flag"]}
    found = look(people(50, 0), people(50, 1), SCHEMA, **columns)
    assert found.privacy.anonymity.quasi_identifiers == ("colour",)
    assert set(found.privacy.anonymity.tables) == {"synthetic", "real"}


@pytest.mark.usefixtures("unscored")
def test_disclosure_says_whether_the_rows_are_public(look):
    tables = people(20, 0), people(20, 1), SCHEMA
    private, public = look(*tables), look(*tables, public=True)
    assert private.to_dict()["disclosure"] == {"public": False, "text": PRIVATE}
    assert public.to_dict()["disclosure"] == {"public": True, "text": PUBLIC}
    assert private.public is False and public.public is True


@pytest.mark.usefixtures("unscored")
def test_progress_names_each_part_and_ends_whole():
    seen: dict[str, list[tuple[int, int]]] = {}

    def progress(part, done, total):
        seen.setdefault(part, []).append((done, total))

    tables = people(20, 0), people(20, 1), SCHEMA
    fs.evaluate(*tables, train=people(20, 2), models=QUICK, progress=progress)
    assert list(seen) == ["fidelity", "utility", "attacks"]
    assert all(steps[-1][0] == steps[-1][1] for steps in seen.values())


def test_rows_and_tables_are_left_as_they_were():
    tables = [people(20, seed) for seed in range(3)]
    before = [table.copy(deep=True) for table in tables]
    fs.evaluate(tables[0], tables[1], train=tables[2], models=QUICK)
    for table, old in zip(tables, before, strict=True):
        pd.testing.assert_frame_equal(table, old)


def attributes(names):
    return {f"inference of {name}" for name in names}


@pytest.mark.usefixtures("unscored")
def test_a_copy_is_caught_by_every_attack_and_must_not_be_handed_out(look):
    train = people(150, 2)
    found = look(people(150, 0), train.sample(frac=1, random_state=0), SCHEMA, train=train)
    secrets = [one.column for one in found.privacy.attributes]
    assert set(found.caught) == MEMBERSHIP | SINGLING | {"linkability"} | attributes(secrets)
    assert found.summary.verdict.startswith(
        f"Do not hand these rows out: {len(found.caught)} attacks tell training rows from others."
    )
    assert found.summary.beware[0].startswith("Training rows can be told from others by: memb")
    assert found.summary.headlines[-1].value > 0.99


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize("seed", range(2))
def test_an_independent_sample_is_caught_by_none(look, seed):
    tables = [people(120, 10 * seed + k) for k in (3, 4, 5)]
    found = look(tables[0], tables[1], SCHEMA, train=tables[2], seed=seed)
    assert found.caught == []
    assert "No attack told training rows from others." in found.summary.verdict


@pytest.fixture
def adult(adult_table):
    return adult_table


def parts(adult, seed):
    """150 rows never seen, 300 to learn from, and 300 others."""
    frame, schema = adult
    order = np.random.default_rng(seed).permutation(len(frame))
    cuts = order[:150], order[150:450], order[450:750]
    return (*(frame.iloc[cut].reset_index(drop=True) for cut in cuts), schema)


@pytest.mark.usefixtures("unscored")
def test_a_copy_of_adult_is_caught_by_every_attack(look, adult):
    real, train, _, schema = parts(adult, 0)
    secrets = ["occupation"]
    found = look(real, train.iloc[::-1], schema, train=train, secrets=secrets)
    assert set(found.caught) == MEMBERSHIP | SINGLING | {"linkability"} | attributes(secrets)
    assert "Do not hand these rows out" in found.summary.verdict


@pytest.mark.usefixtures("unscored")
@pytest.mark.parametrize("seed", [1])
def test_an_independent_sample_of_adult_is_caught_by_none(look, adult, seed):
    real, train, made, schema = parts(adult, seed)
    found = look(real, made, schema, train=train, secrets=["occupation"], seed=seed)
    assert found.caught == []
    assert "No attack told training rows from others." in found.summary.verdict
    assert "Models learn" in found.summary.verdict


@pytest.mark.usefixtures("unscored")
def test_real_rows_that_were_learned_from_are_refused_or_told(look):
    train, fresh = people(100, 0), people(100, 1)
    with pytest.raises(DataError, match="most of these rows equal a training row") as refused:
        look(train, fresh, SCHEMA, train=train)
    # Errors end in logs: no share of private rows.
    assert not re.search(r"\d", str(refused.value))
    mixed = pd.concat([train[:20], people(80, 2)], ignore_index=True)
    found = look(mixed, fresh, SCHEMA, train=train)
    assert "of the real rows equal a training row" in found.summary.beware[0]
    assert "say nothing" in found.summary.verdict
    assert (
        "equal a training row"
        not in look(people(100, 2), fresh, SCHEMA, train=train).summary.beware[0]
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"seed": -1}, "seed must be"),
        ({"seed": 1.5}, "seed must be"),
        ({"models": None}, "models must be"),
        ({"title": b"x"}, "title must be"),
        ({"secrets": "abc"}, "no column 'abc'"),
        ({"quasi_identifiers": "abc"}, "no column 'abc'"),
    ],
)
def test_options_of_another_kind_are_named(options, words):
    with pytest.raises(ConfigError, match=words):
        fs.evaluate(people(60, 0), people(60, 1), SCHEMA, **options)
