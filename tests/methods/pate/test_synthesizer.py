"""PATE from rows to rows: budgets, both units, public rows, odd tables, releases, resuming."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import yaml

import tests.methods.small as small
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, DataError, ReleaseError
from fedsynth.methods.pate import learned as learned_module
from fedsynth.methods.pate import student as student_module
from fedsynth.methods.pate import synthesizer as synthesizer_module
from fedsynth.methods.pate.inputs import Inputs
from fedsynth.methods.pate.sources import size_of
from fedsynth.methods.pate.synthesizer import PATE
from fedsynth.methods.sampling.predicting import Predictor
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import certify
from fedsynth.schema import Boolean, Categorical, Continuous, ImageSchema, Integer, Schema

OPEN = Budget(epsilon=math.inf)
# So large that the noise is calibrated quickly.
LOOSE = Budget(epsilon=40.0, delta=1e-5, curious=1)
QUICK = {"teachers": 2, "queries": 60, "steps": 10}
DIGITS = ImageSchema(shape=(4, 4), maximum=16, target=Categorical(name="d", values=["a", "b"]))


@pytest.fixture(autouse=True)
def brief(monkeypatch):
    monkeypatch.setattr(student_module, "_STEPS", 30)
    monkeypatch.setattr(synthesizer_module, "_OTHERS", 100)
    monkeypatch.setattr(learned_module, "_LEAST_CHOICE", 1_500)


@pytest.fixture
def longer(monkeypatch):
    """What a student needs to learn something."""
    monkeypatch.setattr(student_module, "_STEPS", 150)
    monkeypatch.setattr(synthesizer_module, "_OTHERS", 300)


def fitted(schema, owners, budget=OPEN, public=None, **settings):
    synth = PATE(schema, public=public, **{**QUICK, **settings})
    return synth.fit(owners, budget, insecure_noise_seed=7)


def right(synth) -> float:
    """Accuracy on rows that nobody has seen."""
    test = small.table(400, seed=77)
    said = synth.probabilities(test)
    np.testing.assert_allclose(said.sum(axis=1), 1)
    return float(((said[:, 1] > 0.5) == (test["outcome"] == "ill")).mean())


def images(count: int, seed: int, labelled: bool = True) -> Images:
    """Bright above or below."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 5, (count, 4, 4))
    pixels[labels == 0, :2] += 11
    pixels[labels == 1, 2:] += 11
    return Images(pixels.astype(np.uint8), labels if labelled else None)


@pytest.fixture(scope="module")
def learned():
    synth = PATE(small.SCHEMA, teachers=12, queries=100, steps=15)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(student_module, "_STEPS", 200)
        patch.setattr(synthesizer_module, "_OTHERS", 300)
        return synth.fit(small.owners(500, 400), LOOSE, insecure_noise_seed=7)


def test_the_student_learned_what_the_teachers_know(learned):
    assert isinstance(learned, Predictor)
    assert right(learned) > 0.9


def test_sampled_rows_carry_the_students_labels(learned):
    rows = learned.sample(1500, seed=0)
    dose = rows.groupby("outcome")["dose"].mean()
    assert dose["ill"] > dose["well"] + 1
    assert (rows["outcome"] == "ill").mean() == pytest.approx(0.3, abs=0.1)
    assert list(rows.columns) == [c.name for c in small.SCHEMA.columns]


def test_conditions_and_proportions_are_met(learned):
    assert (learned.sample(40, where={"outcome": "ill"}, seed=1)["outcome"] == "ill").all()
    old = learned.sample(20, where={"age": {"from": 30}, "outcome": "well"}, seed=1)
    assert (old["age"] >= 30).all() and (old["outcome"] == "well").all()
    mixed = learned.sample(400, proportions={"well": 1, "ill": 3}, seed=1)
    assert (mixed["outcome"] == "ill").mean() == pytest.approx(0.75, abs=0.1)
    with pytest.raises(ConfigError):
        learned.sample(4, where={"outcome": "dead"})


def test_probabilities_do_not_look_at_labels(learned):
    test = small.table(50, seed=9)
    other = learned.probabilities(test.drop(columns="outcome"))
    assert np.array_equal(learned.probabilities(test), other)


@pytest.mark.parametrize(
    ("unit", "trust"), [("record", "distributed"), ("client", "central"), ("client", "local")]
)
def test_a_job_costs_its_budget_and_hardly_less(unit, trust):
    budget = Budget(epsilon=2.0, delta=1e-3, unit=unit, trust=trust)
    synth = fitted(small.SCHEMA, small.owners(40, 30, 20), budget)
    assert 1.98 <= synth.ledger.spent().epsilon <= 2.0
    assert [event.label for event in synth.ledger.events] == ["fusion-statistics", "pate-votes"]
    assert all(event.terms.unit == unit for event in synth.ledger.events)
    neighbours = certify(synth.ledger, {}).content["guarantee"]["neighbours"]
    assert neighbours == ("zero-out-one" if unit == "client" else "add-or-remove-one")
    assert len(synth.sample(10, seed=0)) == 10


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_laplace_noise_costs_its_budget_too(trust):
    budget = Budget(epsilon=2.0, delta=1e-5, trust=trust, curious=1)
    synth = fitted(small.SCHEMA, small.owners(40, 30), budget, noise="laplace")
    assert 1.98 <= synth.ledger.spent().epsilon <= 2.0
    assert {event.terms.mechanism for event in synth.ledger.events} == {"laplace"}


@pytest.mark.usefixtures("longer")
def test_public_rows_are_labelled_and_the_votes_have_the_whole_budget():
    public = small.table(150, seed=40).drop(columns="outcome")
    budget = Budget(epsilon=5.0, delta=1e-5, curious=1)
    synth = fitted(small.SCHEMA, small.owners(500, 400), budget, public, teachers=20)
    assert [event.label for event in synth.ledger.events] == ["pate-votes"]
    assert 4.95 <= synth.ledger.spent().epsilon <= 5.0
    assert right(synth) > 0.85
    rows = synth.sample(80, seed=2)
    known = set(map(tuple, public[["age", "dose"]].to_numpy()))
    assert set(map(tuple, rows[["age", "dose"]].to_numpy().astype(float))) <= known
    assert (synth.sample(20, where={"outcome": "ill"}, seed=0)["outcome"] == "ill").all()


def test_labels_of_public_rows_are_not_looked_at():
    public = small.table(80, seed=40)
    one = fitted(small.SCHEMA, small.owners(60, 50), public=public)
    other = fitted(small.SCHEMA, small.owners(60, 50), public=public.assign(outcome="ill"))
    pd.testing.assert_frame_equal(one.sample(30, seed=0), other.sample(30, seed=0))


def test_a_release_tells_of_no_more_queries_than_were_asked(tmp_path):
    synth = fitted(small.SCHEMA, small.owners(60, 50), public=small.table(20, seed=40), queries=90)
    synth.release(tmp_path / "release", synth.sample(5, seed=0))
    told = yaml.safe_load((tmp_path / "release" / "config.yaml").read_text())
    assert told["settings"]["queries"] == 20


def test_public_rows_survive_a_release():
    synth = fitted(small.SCHEMA, small.owners(60, 50), public=small.table(40, seed=40))
    arrays, meta = synth.model_state()
    loaded = PATE.from_state(small.SCHEMA, arrays, meta)
    pd.testing.assert_frame_equal(loaded.sample(30, seed=5), synth.sample(30, seed=5))
    with pytest.raises(ReleaseError, match="public rows"):
        PATE.from_state(small.SCHEMA, {**arrays, "public:age": arrays["public:age"][:-1]}, meta)
    broken = np.full_like(arrays["public:colour"], 9)
    with pytest.raises(ReleaseError, match="categories"):
        PATE.from_state(small.SCHEMA, {**arrays, "public:colour": broken}, meta)


@pytest.mark.usefixtures("longer")
@pytest.mark.parametrize("unit", ["record", "client"])
def test_public_images_teach_a_student(unit):
    owners = [images(60, seed) for seed in range(8)]
    budget = Budget(epsilon=40.0, delta=1e-5, unit=unit, curious=1)
    public = images(120, 50, labelled=False)
    teachers = 5 if unit == "record" else 1
    synth = PATE(DIGITS, public=public, teachers=teachers, queries=60, steps=10)
    synth.fit(owners, budget, insecure_noise_seed=7)
    test = images(200, 60)
    assert (synth.probabilities(test).argmax(axis=1) == test.labels).mean() > 0.9
    drawn = synth.sample(50, seed=1)
    above = drawn.pixels[:, :2].mean(axis=(1, 2)) > drawn.pixels[:, 2:].mean(axis=(1, 2))
    assert (above == (drawn.labels == 0)).mean() > 0.9
    assert (synth.sample(9, where={"d": "b"}, seed=0).labels == 1).all()
    loaded = PATE.from_state(DIGITS, *synth.model_state())
    assert np.array_equal(loaded.sample(9, seed=3).pixels, synth.sample(9, seed=3).pixels)


def test_images_need_public_ones():
    with pytest.raises(ConfigError, match="public="):
        PATE(DIGITS).fit([images(5, 0)], OPEN)
    with pytest.raises(ConfigError, match=r"\[4, 4\]"):
        PATE(DIGITS, public=Images(np.zeros((3, 5, 5), np.uint8)))
    with pytest.raises(ConfigError, match="no rows"):
        PATE(DIGITS, public=Images(np.zeros((0, 4, 4), np.uint8)))


def test_public_rows_must_fit_the_schema():
    with pytest.raises(DataError):
        PATE(small.SCHEMA, public=pd.DataFrame({"age": [3]}))
    with pytest.raises(ConfigError):
        PATE(small.SCHEMA, public=images(3, 0))


NUMBERS = Schema(columns=[Continuous(name=n, lower=0, upper=1, decimals=2) for n in "ab"])
LONE = Schema(columns=[Categorical(name="y", values=["u", "v"])], target="y")
CODES = Schema(
    columns=[Categorical(name="c", values=list("xyz"), missing=True), Boolean(name="y")],
    target="y",
)
AMOUNTS = Schema(
    columns=[
        Continuous(name="a", lower=0, upper=1e6, decimals=2),
        Categorical(name="y", values=["u", "v"]),
    ],
    target="y",
)
ONE_CLASS = Schema(
    columns=[Integer(name="n", lower=0, upper=9), Categorical(name="y", values=["u"])], target="y"
)
FLAGS = {"y": [True, False, True]}


@pytest.mark.parametrize("schema", [NUMBERS, LONE, ImageSchema(shape=(4, 4))])
def test_without_classes_there_is_nothing_to_vote_on(schema):
    with pytest.raises(ConfigError, match="target of categories"):
        PATE(schema)


@pytest.mark.usefixtures("longer")
def test_labels_of_most_votes_teach_as_published():
    synth = fitted(small.SCHEMA, small.owners(500, 400), labels="argmax")
    assert right(synth) > 0.85


def test_an_infinite_epsilon_voids_the_certificate():
    synth = fitted(small.SCHEMA, small.owners(30))
    assert certify(synth.ledger, {}).void is not None


class Crash(Exception):
    pass


@pytest.mark.parametrize("step", ["ask_votes", "train"])
@pytest.mark.parametrize("drawn", [True, False])
def test_an_interrupted_job_asks_nothing_twice_and_ends_as_if_never_interrupted(
    tmp_path, monkeypatch, step, drawn
):
    budget = LOOSE
    public = None if drawn else small.table(40, seed=40)
    if step == "ask_votes" and not drawn:
        pytest.skip("nothing was asked yet")

    def crash(*_, **__):
        raise Crash

    def job(folder, resume=False):
        synth = PATE(small.SCHEMA, public=public, **QUICK)
        return synth.fit(
            small.owners(30, 20), budget, folder=folder, resume=resume, insecure_noise_seed=7
        )

    with monkeypatch.context() as patch:
        patch.setattr(synthesizer_module, step, crash)
        with pytest.raises(Crash):
            job(tmp_path / "a")
    synth = job(tmp_path / "a", resume=True)
    assert len(synth.ledger.events) == 1 + drawn
    assert synth.ledger.spent().epsilon <= 40
    if step == "train":
        pd.testing.assert_frame_equal(
            synth.sample(20, seed=1), job(tmp_path / "b").sample(20, seed=1)
        )


def test_a_job_is_resumed_with_the_same_public_rows(tmp_path, monkeypatch):
    def crash(*_, **__):
        raise Crash

    with monkeypatch.context() as patch:
        patch.setattr(synthesizer_module, "train", crash)
        with pytest.raises(Crash):
            PATE(small.SCHEMA, public=small.table(40, seed=1), **QUICK).fit(
                small.owners(30), OPEN, folder=tmp_path, insecure_noise_seed=7
            )
    other = PATE(small.SCHEMA, public=small.table(40, seed=2), **QUICK)
    with pytest.raises(ConfigError, match="other public rows"):
        other.fit(small.owners(30), OPEN, folder=tmp_path, resume=True, insecure_noise_seed=7)


def test_progress_counts_teachers():
    seen = []
    PATE(small.SCHEMA, **QUICK).fit(
        small.owners(9, 8), OPEN, progress=lambda *told: seen.append(told[:3])
    )
    assert ("teachers", 4, 4) in seen


@pytest.mark.parametrize("part", ["student", "frequencies", "shares"])
def test_parts_that_do_not_fit_are_refused(part, learned):
    arrays, meta = learned.model_state()
    with pytest.raises(ReleaseError):
        PATE.from_state(small.SCHEMA, {**arrays, part: arrays[part][..., :-1]}, meta)
    with pytest.raises(ReleaseError):
        PATE.from_state(CODES, arrays, meta)
    with pytest.raises(ReleaseError):
        PATE.from_state(small.SCHEMA, {}, meta)


def test_rows_to_choose_from_are_classified_some_at_a_time_and_alike(monkeypatch):
    synth = fitted(small.SCHEMA, small.table(200))
    whole = synth.sample(60, seed=0)
    sizes, genuine = [], Inputs.matrix

    def matrix(self, rows):
        sizes.append(size_of(rows))
        return genuine(self, rows)

    monkeypatch.setattr(Inputs, "matrix", matrix)
    monkeypatch.setattr(learned_module, "_CELLS", 700 * synth.learned.inputs.width)
    pd.testing.assert_frame_equal(synth.sample(60, seed=0), whole)
    assert max(sizes) == 700
    assert sum(sizes) >= 1_500
