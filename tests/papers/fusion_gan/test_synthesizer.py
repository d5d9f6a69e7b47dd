"""Fusion GAN from rows to rows: odd tables, images, budgets, releases."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest

import tests.methods.small as small
from fedsynth.data.images import Images
from fedsynth.errors import BudgetExceeded, ConfigError, PrivacyError, ReleaseError
from fedsynth.papers.fusion_gan.networks import Networks
from fedsynth.papers.fusion_gan.synthesizer import FusionGAN
from fedsynth.papers.fusion_gan.tasks.local_training import LOCAL_GAN
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.schema import Boolean, Categorical, Continuous, ImageSchema, Integer, Schema

OPEN = Budget(epsilon=math.inf)
# So large that the noise is calibrated quickly; the plan's own tests have the usual ones.
PRIVATE = Budget(epsilon=40.0, delta=1e-5, trust="local")
QUICK = {"steps": 4, "union": 200, "union_steps": 4}


def fitted(schema, owners, budget=OPEN, seed=0, **settings):
    synth = FusionGAN(schema, **{**QUICK, **settings})
    return synth.fit(owners, budget, seed=seed, insecure_noise_seed=7)


@pytest.fixture(scope="module")
def learned():
    """As published, trained long enough to have learned something."""
    return fitted(small.SCHEMA, small.owners(400, 300), steps=60, union=600, union_steps=60)


def test_the_global_classifier_learned_what_the_clients_know(learned):
    test = small.table(500, seed=9)
    said = learned.probabilities(test)
    assert said.shape == (500, 2)
    assert np.allclose(said.sum(axis=1), 1)
    assert ((said[:, 1] > 0.5) == (test["outcome"] == "ill")).mean() > 0.9


def test_probabilities_do_not_look_at_labels(learned):
    test = small.table(50, seed=9)
    other = test.assign(outcome="ill")
    assert np.array_equal(learned.probabilities(test), learned.probabilities(other))


@pytest.mark.parametrize("conditional", [False, True])
def test_conditions_on_the_target_are_exact(conditional, learned):
    synth = learned
    if conditional:
        owners = small.owners(60, 40)
        synth = fitted(small.SCHEMA, owners, conditional=True, classifier_hidden=(8,))
    rows = synth.sample(40, where={"outcome": "ill"}, seed=1)
    assert (rows["outcome"] == "ill").all()
    mixed = synth.sample(400, proportions={"well": 1, "ill": 3}, seed=1)
    assert (mixed["outcome"] == "ill").mean() == pytest.approx(0.75, abs=0.1)
    old = synth.sample(20, where={"age": {"from": 30}}, seed=1)
    assert (old["age"] >= 30).all()


def test_a_class_that_no_generator_draws_is_refused_in_words(learned):
    arrays, meta = learned.model_state()
    arrays = {name: array.copy() for name, array in arrays.items()}
    synth = FusionGAN.from_state(small.SCHEMA, arrays, meta)
    # A classifier that always says "well": its output layer's bias, the last column, decides.
    networks = synth.learned.networks
    outputs = networks.classifier.layers[-1]
    synth.learned.classifiers[:, -outputs.size :] = 0
    synth.learned.classifiers[:, -outputs.size + outputs.columns - 1] = 50.0
    with pytest.raises(ConfigError, match="conditional: true"):
        synth.sample(3, where={"outcome": "ill"}, seed=0)


def test_rows_keep_what_the_clients_rows_have_in_common(learned):
    rows = learned.sample(2000, seed=0)
    dose = rows.groupby("outcome")["dose"].mean()
    assert dose["ill"] > dose["well"] + 1
    assert rows["age"].between(18, 90).all()
    assert list(rows.columns) == [c.name for c in small.SCHEMA.columns]


def test_as_published_the_counts_are_exact_and_one_message_is_sent(learned):
    owners = small.owners(400, 300)
    expected = [
        [(table["outcome"] == value).sum() for value in ("well", "ill")]
        for table in owners.values()
    ]
    assert learned.learned.counts.tolist() == expected
    assert len(learned.ledger.events) == 1
    assert math.isinf(learned.ledger.spent().epsilon)


def test_a_private_job_spends_its_budget_in_one_message():
    synth = fitted(small.SCHEMA, small.owners(50, 30, 1), PRIVATE)
    (event,) = synth.ledger.events
    assert event.steps == QUICK["steps"]
    assert 0.98 * 40 <= synth.ledger.spent().epsilon <= 40
    assert len(synth.sample(30, seed=0)) == 30


def test_estimated_counts_come_near_the_true_ones():
    synth = fitted(small.SCHEMA, small.owners(3000), PRIVATE, steps=30, batch=16)
    true = [(small.table(3000)["outcome"] == v).sum() for v in ("well", "ill")]
    # Noise of the marks and of the samples: some tens of records.
    assert np.allclose(synth.learned.counts[0], true, atol=250)
    assert not np.array_equal(synth.learned.counts[0], true)


def test_a_private_fit_without_noise_learns():
    # The same steps as with noise, by a ledger that admits none of it.
    tables = small.owners(2000)
    synth = fitted(small.SCHEMA, tables, Budget(epsilon=1e4, delta=1e-5, trust="local"), steps=120)
    test = small.table(300, seed=9)
    networks, learned = synth.learned.networks, synth.learned
    own = FusionGAN.from_state(small.SCHEMA, *synth.model_state())
    object.__setattr__(own._learned, "classifier", learned.classifiers[0])
    assert networks.conditional
    said = own.probabilities(test)[:, 1] > 0.5
    assert (said == (test["outcome"] == "ill")).mean() > 0.9


def test_a_clients_message_does_not_depend_on_who_is_beside_it():
    alone = fitted(small.SCHEMA, {"site-0": small.table(30)})
    others = {"site-0": small.table(30), "site-1": small.table(20, seed=1)}
    # The first client's coins come first from the same seed.
    together = fitted(small.SCHEMA, others)
    assert np.array_equal(alone.learned.generators[0], together.learned.generators[0])
    assert np.array_equal(alone.learned.classifiers[0], together.learned.classifiers[0])


def test_the_published_task_refuses_terms_that_promise_privacy():
    synth = FusionGAN(small.SCHEMA)
    budget = Budget(epsilon=1.0, trust="central")
    with pytest.raises(PrivacyError, match="trust: local"):
        synth.fit(small.owners(5), budget)
    terms = Terms(unit="record", trust="local", clip=1.0, noise_multiplier=0.0)

    class Asked:
        pass

    Asked.terms = terms
    with pytest.raises(PrivacyError, match="without privacy"):
        next(LOCAL_GAN.contribute([], [], Asked()))


NUMBERS = Schema(columns=[Continuous(name=n, lower=0, upper=1, decimals=2) for n in "ab"])
CODES = Schema(
    columns=[Categorical(name="c", values=list("xyz"), missing=True), Boolean(name="y")],
    target="y",
)
LONE = Schema(columns=[Categorical(name="y", values=["u", "v"])], target="y")
ONE = Schema(columns=[Integer(name="n", lower=3, upper=3)])
ONE_CLASS = Schema(
    columns=[Integer(name="n", lower=0, upper=9), Categorical(name="y", values=["u"])], target="y"
)
SPACED = [0.25, 0.5, 0.75, 1.0, 0.0]


@pytest.mark.parametrize("budget", [OPEN, PRIVATE], ids=["published", "private"])
def test_a_class_absent_at_a_client_is_drawn_from_the_others(budget):
    ill = small.table(60).assign(outcome="ill")
    synth = fitted(small.SCHEMA, [ill, small.table(60, seed=1)], budget, conditional=True)
    rows = synth.sample(20, where={"outcome": "well"}, seed=0)
    assert (rows["outcome"] == "well").all()
    if budget is OPEN:
        assert synth.learned.counts[0, 0] == 0
        owners = synth.learned._owners(np.zeros(50, np.int64), 50, np.random.default_rng(0))
        assert set(owners) == {1}


@pytest.mark.parametrize(("shape", "budget"), [((16, 16), OPEN), ((8, 8), PRIVATE)])
@pytest.mark.parametrize("labelled", [True, False])
def test_images_of_any_size_with_and_without_labels(shape, budget, labelled):
    rng = np.random.default_rng(0)
    target = Categorical(name="d", values=["a", "b"]) if labelled else None
    schema = ImageSchema(shape=shape, maximum=16, target=target)
    labels = rng.integers(0, 2, 12) if labelled else None
    images = Images(rng.integers(0, 17, (12, *shape)).astype(np.uint8), labels)
    synth = fitted(schema, [images], budget, hidden=None, conditional=labelled)
    drawn = synth.sample(6, seed=0)
    assert drawn.pixels.shape == (6, *shape)
    assert drawn.pixels.max() <= 16
    if labelled:
        assert (synth.sample(5, where={"d": "b"}, seed=0).labels == 1).all()
        assert synth.probabilities(images).shape == (12, 2)
    else:
        assert drawn.labels is None
        with pytest.raises(ConfigError, match="no classes"):
            synth.sample(5, where={"d": "b"})


@pytest.mark.parametrize("part", ["generators", "classifiers", "counts", "classifier"])
def test_parts_that_do_not_fit_are_refused(part, learned):
    arrays, meta = learned.model_state()
    with pytest.raises(ReleaseError):
        FusionGAN.from_state(small.SCHEMA, {**arrays, part: arrays[part][..., :-1]}, meta)
    with pytest.raises(ReleaseError):
        FusionGAN.from_state(CODES, arrays, meta)
    with pytest.raises(ReleaseError):
        FusionGAN.from_state(small.SCHEMA, {}, meta)


def test_progress_names_every_client():
    seen = []
    FusionGAN(small.SCHEMA, **QUICK).fit(
        small.owners(9, 8, 7), OPEN, progress=lambda *told: seen.append(told[:3])
    )
    assert seen == [("clients", k, 3) for k in (1, 2, 3)]


def test_a_repeated_fit_is_the_same_under_known_coins():
    one, same = (fitted(small.SCHEMA, small.owners(20, 10), PRIVATE) for _ in range(2))
    assert np.array_equal(one.learned.generators, same.learned.generators)
    pd.testing.assert_frame_equal(one.sample(9, seed=1), same.sample(9, seed=1))


def test_an_owner_whose_account_is_spent_sends_nothing():
    synth = fitted(small.SCHEMA, small.owners(20), PRIVATE)
    with pytest.raises(BudgetExceeded):
        synth.ledger.charge(synth.ledger.events[0])


def test_a_client_without_rows_sends_untrained_networks():
    tables = {"a": small.table(5), "b": small.table(0)}
    assert small.federation(tables)[1].records == 0
    synth = fitted(small.SCHEMA, tables)
    assert synth.learned.counts[1].tolist() == [0, 0]
    assert isinstance(synth.learned.networks, Networks)


def test_with_little_noise_released_counts_are_the_rows_of_each_class():
    tables = small.owners(400, 250)
    generous = Budget(epsilon=400.0, delta=1e-5, trust="local")
    synth = fitted(small.SCHEMA, tables, generous, steps=25, rate=0.5)
    for counts, frame in zip(synth.learned.counts, tables.values(), strict=True):
        true = [(frame["outcome"] == label).sum() for label in ("well", "ill")]
        np.testing.assert_allclose(counts, true, rtol=0.15)
