"""PATE-GAN from rows to rows: budgets, both units, odd tables, images, releases, resuming."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tests.methods.small as small
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError, PrivacyError, ReleaseError
from fedsynth.methods.gan.pategan import settings as settings_module
from fedsynth.methods.gan.pategan import training as training_module
from fedsynth.methods.gan.pategan.settings import PATEGANSettings
from fedsynth.methods.gan.pategan.synthesizer import PATEGAN
from fedsynth.methods.gan.settings import FedGANSettings
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.trail.certificate import certify
from fedsynth.schema import Boolean, Categorical, Continuous, ImageSchema, Integer, Schema

OPEN = Budget(epsilon=math.inf)
# So large that the noise is calibrated quickly.
LOOSE = Budget(epsilon=40.0, delta=1e-5, curious=1)
QUICK = {
    "rounds": 3,
    "teachers": 2,
    "queries": 16,
    "warmup": 5,
    "local_steps": 2,
    "batch_size": 8,
    "student_steps": 2,
    "generator_steps": 1,
    "generator_batch": 32,
    "hidden": (16,),
    "discriminator_hidden": (8,),
    "bins": 8,
    "look_every": 1,
}


def fitted(schema, owners, budget=OPEN, **settings):
    synth = PATEGAN(schema, **{**QUICK, **settings})
    return synth.fit(owners, budget, insecure_noise_seed=7)


@pytest.fixture(scope="module")
def learned():
    """Without noise, long enough to learn something."""
    owners = small.owners(400, 300)
    settings = {"teachers": 4, "queries": 64, "generator_steps": 5, "learning_rate": 5e-3}
    return fitted(small.SCHEMA, owners, rounds=12, **settings)


def test_rows_keep_what_the_clients_rows_have_in_common(learned):
    rows = learned.sample(1500, seed=0)
    dose = rows.groupby("outcome")["dose"].mean()
    assert dose["ill"] > dose["well"] + 1
    assert (rows["outcome"] == "ill").mean() == pytest.approx(0.3, abs=0.1)
    assert learned.remarks == ()


def test_conditions_and_proportions_are_met(learned):
    assert (learned.sample(40, where={"outcome": "ill"}, seed=1)["outcome"] == "ill").all()
    old = learned.sample(20, where={"age": {"from": 30}}, seed=1)
    assert (old["age"] >= 30).all()
    mixed = learned.sample(400, proportions={"well": 1, "ill": 3}, seed=1)
    assert (mixed["outcome"] == "ill").mean() == pytest.approx(0.75, abs=0.1)


@pytest.mark.parametrize(
    ("unit", "trust"), [("record", "distributed"), ("record", "local"), ("client", "central")]
)
def test_a_job_costs_its_budget_and_hardly_less(unit, trust):
    budget = Budget(epsilon=2.0, delta=1e-3, unit=unit, trust=trust)
    synth = fitted(small.SCHEMA, small.owners(40, 30, 20), budget)
    assert 1.97 <= synth.ledger.spent().epsilon <= 2.0
    labels = [event.label for event in synth.ledger.events]
    assert labels == ["histogram", "label-tables", *["pate-verdicts"] * 3]
    queries, exchanged = 16, 2 if unit == "record" else 1
    assert synth.ledger.events[-1].terms.clip == pytest.approx(
        math.sqrt(exchanged * queries), rel=1e-4
    )
    neighbours = certify(synth.ledger, {}).content["guarantee"]["neighbours"]
    assert neighbours == ("zero-out-one" if unit == "client" else "add-or-remove-one")


def test_the_student_learns_the_shares_of_the_votes(monkeypatch):
    # Half of all rows, by one cell, are said to be real: a student that learns tells them apart.
    seen, coins = {}, torch.Generator().manual_seed(0)

    def ask_shares(self, queries, labels):
        seen["training"] = self
        return (queries[:, 0] > 0.5).float() + 0.5 * torch.randn(len(queries), generator=coins)

    monkeypatch.setattr(training_module.StudentTraining, "_ask_shares", ask_shares)
    fitted(
        small.SCHEMA,
        small.owners(100),
        rounds=20,
        queries=256,
        student_steps=10,
        smoothing=0.0,
        generator_steps=1,
        learning_rate=1e-9,
        discriminator_learning_rate=2e-2,
    )
    training = seen["training"]
    rows, labels = training.trainer.rows(400)
    with torch.no_grad():
        said = training.game.discriminate(training.student.weights, rows, labels).sigmoid()
    gap = said[rows[:, 0] > 0.5].mean() - said[rows[:, 0] < 0.5].mean()
    assert gap > 0.5


NUMBERS = Schema(columns=[Continuous(name=n, lower=0, upper=1, decimals=2) for n in "ab"])
CODES = Schema(
    columns=[Categorical(name="c", values=list("xyz"), missing=True), Boolean(name="y")],
    target="y",
)
LONE = Schema(columns=[Categorical(name="y", values=["u", "v"])], target="y")
ONE_CLASS = Schema(
    columns=[Integer(name="n", lower=0, upper=9), Categorical(name="y", values=["u"])], target="y"
)
SPACED = [0.25, 0.5, 0.75, 1.0, np.inf]


@pytest.mark.parametrize("labelled", [True, False])
def test_images_with_and_without_labels(labelled):
    rng = np.random.default_rng(0)
    target = Categorical(name="d", values=["a", "b"]) if labelled else None
    schema = ImageSchema(shape=(6, 6), maximum=16, target=target)
    labels = rng.integers(0, 2, 12) if labelled else None
    images = Images(rng.integers(0, 17, (12, 6, 6)).astype(np.uint8), labels)
    synth = fitted(schema, [images, images.take(np.arange(5))], LOOSE)
    drawn = synth.sample(6, seed=0)
    assert drawn.pixels.shape == (6, 6, 6) and drawn.pixels.max() <= 16
    if labelled:
        assert (synth.sample(5, where={"d": "b"}, seed=0).labels == 1).all()
    else:
        assert drawn.labels is None


class Crash(Exception):
    pass


def test_an_interrupted_job_goes_on_with_teachers_begun_anew(tmp_path, monkeypatch):
    real = training_module.StudentTraining._ask_shares

    def job(resume=False):
        synth = PATEGAN(small.SCHEMA, **{**QUICK, "rounds": 6})
        return synth.fit(
            small.owners(30, 20),
            LOOSE,
            folder=tmp_path,
            resume=resume,
            checkpoint_every=2,
            insecure_noise_seed=7,
        )

    def crash(self, *given):
        if self.round == 4:
            raise Crash
        return real(self, *given)

    with monkeypatch.context() as patch:
        patch.setattr(training_module.StudentTraining, "_ask_shares", crash)
        with pytest.raises(Crash):
            job()
    synth = job(resume=True)
    assert [event.label for event in synth.ledger.events].count("pate-verdicts") == 6
    assert synth.ledger.spent().epsilon <= 40
    assert len(synth.sample(10, seed=0)) == 10


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"scheme": "sep"}, "no setting scheme"),
        ({"rate": 0.5}, "no setting rate"),
        ({"sampling": "fixed"}, "no setting sampling"),
        ({"auxiliary_loss": 1.0}, "no setting auxiliary_loss"),
        ({"discriminator": "quadratic"}, "no setting discriminator"),
        ({"classifier_hidden": (8,)}, "no setting classifier_hidden"),
        ({"clip": 3.0}, "clip is that of the votes"),
        ({"architecture": "conv"}, "dense networks"),
    ],
)
def test_settings_of_fedgan_that_do_not_apply_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        PATEGANSettings(**settings).resolved(Budget(epsilon=1.0), small.SCHEMA)


USED = """
architecture latent hidden discriminator_hidden smoothing bins rounds clip noise_multiplier
histogram_share label_table_share local_steps batch_size discriminator_learning_rate learning_rate
schedule generator_steps generator_batch matching mode_seeking_loss max_gradient_norm average
look_every patience
"""


def test_every_setting_of_fedgan_is_used_or_refused():
    assert set(FedGANSettings.model_fields) == set(USED.split()) | set(settings_module._FIXED)


@pytest.mark.parametrize("unit", ["record", "client"])
def test_resolved_settings_are_settings_too(unit):
    # As a job's own file keeps them.
    budget = Budget(epsilon=1.0, unit=unit)
    full = PATEGANSettings().resolved(budget, small.SCHEMA)
    again = PATEGANSettings(**full.model_dump(exclude_none=True))
    assert again.resolved(budget, small.SCHEMA) == full
    assert full.teachers == (100 if unit == "record" else 1)


def test_an_impossible_budget_asks_nothing(tmp_path):
    with pytest.raises(PrivacyError):
        PATEGAN(small.SCHEMA, noise_multiplier=0.1, **QUICK).fit(
            small.owners(9), Budget(epsilon=0.1), folder=tmp_path
        )


@pytest.mark.parametrize("part", ["generators", "frequencies"])
def test_parts_that_do_not_fit_are_refused(part, learned):
    arrays, meta = learned.model_state()
    with pytest.raises(ReleaseError):
        PATEGAN.from_state(small.SCHEMA, {**arrays, part: arrays[part][:-1]}, meta)
    with pytest.raises(ReleaseError):
        PATEGAN.from_state(CODES, arrays, meta)


def test_a_resumed_job_begins_where_the_last_checkpoint_was_but_for_the_teachers(
    monkeypatch, tmp_path
):
    saved, begun = [], []
    save, run = training_module.StudentTraining.save, training_module.StudentTraining.run

    def known(training):
        arrays = {"draws": training.source.get_state().numpy(), "round": np.array(training.round)}
        for name, learner in (("student", training.student), ("own", training.trainer.learner)):
            arrays |= {f"{name}.{key}": values for key, values in learner.state().items()}
        return [np.array(values) for values in arrays.values()]

    def saving(training):
        save(training)
        saved.append(known(training))

    def running(training):
        begun.append(known(training))
        return run(training)

    monkeypatch.setattr(training_module.StudentTraining, "save", saving)
    monkeypatch.setattr(training_module.StudentTraining, "run", running)

    def stopping(label, done, total, epsilon):
        if (label, done) == ("training", 2):
            raise KeyboardInterrupt

    options = {"folder": tmp_path, "checkpoint_every": 1, "insecure_noise_seed": 1}
    synth = PATEGAN(small.SCHEMA, **QUICK)
    with pytest.raises(KeyboardInterrupt):
        synth.fit(small.owners(60, 40), OPEN, **options, progress=stopping)
    last = saved[-1]
    synth.fit(small.owners(60, 40), OPEN, **options, resume=True)
    assert last[1] == 1
    for result, wanted in zip(begun[1], last, strict=True):
        np.testing.assert_array_equal(result, wanted)
