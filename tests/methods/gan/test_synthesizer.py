"""FedGAN and FedCTGAN as a whole: budgets, what is learned, conditions, files, odd data."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.stats import binom

from fedsynth.data.images import Images
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import BudgetExceeded, ConfigError, DataError, ReleaseError
from fedsynth.jobs.loading import load
from fedsynth.methods.gan.pategan.settings import PATEGANSettings
from fedsynth.methods.gan.settings import FedCTGANSettings, FedGANSettings
from fedsynth.methods.gan.synthesizer import FedCTGAN, FedGAN
from fedsynth.methods.training.generating import GeneratorTrainer
from fedsynth.privacy.budget import Budget
from fedsynth.release import write_release
from fedsynth.schema import (
    Boolean,
    Categorical,
    Continuous,
    ImageSchema,
    Schema,
)
from fedsynth.schema.checking import check
from tests.methods.gan.games import PIXELS, pictures
from tests.methods.small import SCHEMA, owners, table

FREE = Budget(epsilon=math.inf, trust="central")
FREE_CLIENTS = Budget(epsilon=math.inf, trust="central", unit="client")
QUICK = {
    "rounds": 3,
    "rate": 1.0,
    "hidden": (8,),
    "discriminator_hidden": (8,),
    "latent": 2,
    "generator_steps": 1,
    "generator_batch": 20,
}
LOCAL = {"local_steps": 2, "batch_size": 8}


def quick(method=FedGAN, schema=SCHEMA, **settings):
    return method(schema, **{**QUICK, **settings})


def budget_of(unit, trust="central", epsilon=2.0):
    return Budget(epsilon=epsilon, unit=unit, trust=trust)


@pytest.mark.parametrize(
    ("method", "unit", "trust", "settings"),
    [
        (FedGAN, "record", "central", {"discriminator": "quadratic"}),
        (FedGAN, "record", "local", {"discriminator": "quadratic"}),
        (
            FedGAN,
            "record",
            "distributed",
            {"discriminator": "mlp", "auxiliary_loss": 1.0, "penalty": 1.0},
        ),
        (FedCTGAN, "record", "distributed", {}),
        (FedGAN, "client", "central", LOCAL),
        (FedGAN, "client", "local", LOCAL),
        (FedGAN, "client", "distributed", {"scheme": "sep", **LOCAL}),
        (FedCTGAN, "client", "distributed", LOCAL),
    ],
)
def test_every_scheme_trust_and_unit_gives_rows_of_the_schema_within_its_budget(
    trust, method, unit, settings
):
    synth = quick(method, **settings).fit(owners(40, 30, 20), budget_of(unit, trust))
    rows = synth.sample(50, seed=0)
    assert len(rows) == 50
    assert check(rows, SCHEMA) == []
    assert list(rows.columns) == [column.name for column in SCHEMA.columns]
    assert 1.98 < synth.ledger.spent().epsilon <= 2.0


def test_a_sampled_training_spends_its_budget_too():
    synth = quick(rate=0.5).fit(owners(40, 30, 20), budget_of("record"))
    assert 1.98 < synth.ledger.spent().epsilon <= 2.0


def test_two_gradients_of_a_record_and_those_of_generated_rows_are_one_event_a_round():
    for settings in ({"discriminator": "mlp", "penalty": 1.0}, {"discriminator": "quadratic"}):
        synth = quick(auxiliary_loss=1.0, **settings).fit(owners(40), budget_of("record"))
        labels = [event.label for event in synth.ledger.events]
        assert labels == ["histogram", "label-tables", *["gan-gradient"] * 3]
        assert len({event.round for event in synth.ledger.events}) == 5
    synth = quick(FedCTGAN, **LOCAL).fit(owners(40, 20), budget_of("client"))
    labels = [event.label for event in synth.ledger.events]
    assert labels == ["histogram", *["gan-training"] * 3]


@pytest.mark.parametrize(
    ("method", "discriminator"), [(FedGAN, "quadratic"), (FedGAN, "mlp"), (FedCTGAN, "mlp")]
)
def test_the_tables_structure_is_learned_where_no_noise_hides_it(method, discriminator):
    synth = method(
        SCHEMA, discriminator=discriminator, rounds=8, rate=0.5, noise_multiplier=0.0,
        hidden=(32,), latent=4, generator_steps=4, generator_batch=100, learning_rate=1e-2,
    )  # fmt: skip
    rows = synth.fit(owners(400, 400), FREE).sample(4000, seed=0)
    assert synth.remarks == ()
    for frame in (rows, table(4000, seed=7)):
        ill = frame["outcome"] == "ill"
        assert 0.25 < ill.mean() < 0.36
        assert (frame.loc[ill, "dose"] >= 6.5).mean() > 0.9
        assert (frame.loc[~ill, "dose"] < 4).mean() > 0.9
        assert (frame.loc[ill, "colour"].dropna() == "red").mean() > 0.9
        assert 0.06 < frame["colour"].isna().mean() < 0.15


TWINS = Schema(
    columns=[Categorical(name="a", values=["x", "y"]), Categorical(name="b", values=["x", "y"])]
)


@pytest.mark.parametrize(
    "settings",
    [
        {
            "discriminator": "quadratic", "rounds": 8, "clip": 3.0, "matching": 100.0,
            "generator_batch": 150,
        },
        {"discriminator": "mlp", "rounds": 30, "discriminator_learning_rate": 2e-2},
    ],
)  # fmt: skip
def test_what_no_released_table_tells_is_learned_from_the_discriminator(settings):
    # Without a target there are no tables of pairs: that a and b agree is in gradients alone.
    letters = np.random.default_rng(0).choice(["x", "y"], 400)
    frame = pd.DataFrame({"a": letters, "b": letters})
    synth = FedGAN(
        TWINS, rate=1.0, hidden=(32,), latent=8, noise_multiplier=0.0, learning_rate=1e-2,
        **settings,
    )  # fmt: skip
    rows = synth.fit([frame[:200], frame[200:]], FREE).sample(2000, seed=0)
    # They would agree half of the time.
    assert (rows["a"] == rows["b"]).mean() > 0.75
    assert 0.35 < (rows["a"] == "x").mean() < 0.65


def test_matching_gradients_moves_no_share_of_a_column():
    # A quadratic discriminator sees no shares: with more of x among both, more rows would agree.
    letters = np.random.default_rng(0).choice(["x", "y"], 400)
    frame = pd.DataFrame({"a": letters, "b": letters})
    synth = FedGAN(
        TWINS, rate=1.0, hidden=(32,), noise_multiplier=0.0, rounds=15, generator_batch=200,
        learning_rate=2e-2,
    )  # fmt: skip
    # From here shares would move to .75 if rows were seen from the released means.
    rows = synth.fit(frame, FREE, seed=1).sample(2000, seed=0)
    assert (rows["a"] == rows["b"]).mean() > 0.57
    assert 0.4 < (rows["a"] == "x").mean() < 0.6


@pytest.mark.parametrize(("scheme", "matching"), [("uni", 1.0), ("sep", 0.0)])
def test_client_level_training_learns_as_well(scheme, matching):
    synth = FedGAN(
        SCHEMA, scheme=scheme, matching=matching, rounds=8, rate=1.0, clip=1e3, hidden=(16,),
        latent=4, discriminator_hidden=(16,), discriminator_learning_rate=2e-2, learning_rate=2e-2,
        local_steps=3, batch_size=60, generator_batch=60, generator_steps=3,
    )  # fmt: skip
    rows = synth.fit(owners(100, 100, 100), FREE_CLIENTS).sample(2000, seed=0)
    ill = rows["outcome"] == "ill"
    assert rows.loc[ill, "dose"].mean() > rows.loc[~ill, "dose"].mean() + 2


@pytest.fixture(scope="module", params=[FedGAN, FedCTGAN])
def fitted(request):
    return quick(request.param).fit(owners(80), FREE)


def test_where_holds_for_every_row_and_proportions_for_their_shares(fitted):
    assert (fitted.sample(200, where={"outcome": "ill"}, seed=0)["outcome"] == "ill").all()
    drawn = fitted.sample(4000, proportions={"ill": 9, "well": 1}, seed=0)["outcome"]
    low, high = binom.ppf([1e-9, 1 - 1e-9], 4000, 0.9)
    assert low <= (drawn == "ill").sum() <= high
    with pytest.raises(ConfigError, match="at least 1"):
        fitted.sample(0)


@pytest.mark.parametrize(
    ("where", "held"),
    [
        ({"colour": "red"}, lambda rows: rows["colour"] == "red"),
        ({"dose": {"from": 3.0}}, lambda rows: rows["dose"] >= 3),
        (
            {"colour": ["green", "red"], "smoker": True, "outcome": "well"},
            lambda rows: (
                rows["colour"].isin(["green", "red"])
                & rows["smoker"].astype(bool)
                & (rows["outcome"] == "well")
            ),
        ),
    ],
)
def test_conditions_on_other_columns_hold_for_every_row(fitted, where, held):
    rows = fitted.sample(150, where=where, seed=0)
    assert held(rows).all()
    assert check(rows, SCHEMA) == []


def test_a_generator_that_can_be_asked_draws_a_rare_cell_when_it_is(monkeypatch):
    synth = FedCTGAN(
        SCHEMA, rounds=5, rate=1.0, noise_multiplier=0.0, hidden=(16,), latent=2,
        learning_rate=1e-2, generator_batch=100,
    )  # fmt: skip
    frame = table(400)
    frame.loc[(frame["colour"] == "blue") & (frame.index > 40), "colour"] = "green"
    synth.fit(frame, FREE)
    blue, genuine = [], TableEncoding.columns

    def watched(self, codes, rng):
        result = genuine(self, codes, rng)
        blue.append((result["colour"] == 2).mean())
        return result

    monkeypatch.setattr(TableEncoding, "columns", watched)
    rows = synth.sample(500, where={"colour": "blue"}, seed=0)
    assert (rows["colour"] == "blue").all()
    assert (frame["colour"] == "blue").mean() < 0.05
    # Most of the first rows drawn are blue already.
    assert blue[0] > 0.5
    del blue[:]
    synth.sample(2000, seed=0)
    assert blue[0] < 0.15


def test_fits_repeat_with_the_insecure_seed_and_never_without():
    budget = Budget(epsilon=1.0)

    def weights(**options):
        return quick(FedCTGAN).fit(owners(60), budget, **options).learned.generators

    same = [weights(seed=1, insecure_noise_seed=5) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(weights(seed=1), weights(seed=1))


FITS = {
    "fedgan, record": (FedGAN, FREE, {}),
    "fedctgan, record": (FedCTGAN, FREE, {}),
    "sep": (FedGAN, FREE_CLIENTS, {"scheme": "sep", **LOCAL}),
}


OTHER = Schema(columns=[column for column in SCHEMA.columns if column.name != "smoker"])
NARROW = OTHER.model_copy(update={"target": "outcome"})


def with_hidden(game, hidden):
    return {**game, "generator": {**game["generator"], "hidden": hidden}}


def test_a_state_whose_parts_do_not_fit_is_refused():
    arrays, meta = quick(FedCTGAN).fit(owners(60), FREE).model_state()
    FedCTGAN.from_state(SCHEMA, arrays, meta)
    wrong = [
        (SCHEMA, {**arrays, "generators": arrays["generators"][:-1]}, meta),
        (SCHEMA, {**arrays, "frequencies": arrays["frequencies"][:-1]}, meta),
        (SCHEMA, {**arrays, "profiles": arrays["profiles"][:, :-1]}, meta),
        (SCHEMA, {**arrays, "profiles": arrays["profiles"][:1]}, meta),
        (SCHEMA, {}, meta),
        (SCHEMA, arrays, {key: meta[key] for key in ("game", "settings")}),
        (SCHEMA, arrays, {**meta, "encoding": None}),
        (SCHEMA, arrays, {**meta, "game": {**meta["game"], "classes": 3}}),
        (SCHEMA, arrays, {**meta, "game": {**meta["game"], "parts": 2}}),
        (SCHEMA, arrays, {**meta, "game": {**meta["game"], "asks": False}}),
        (SCHEMA, {**arrays, "generators": arrays["generators"] * np.nan}, meta),
        (SCHEMA, {**arrays, "frequencies": arrays["frequencies"] * np.nan}, meta),
        (SCHEMA, {**arrays, "frequencies": arrays["frequencies"] * 0}, meta),
        (SCHEMA, {**arrays, "profiles": arrays["profiles"] * np.nan}, meta),
        (SCHEMA, {**arrays, "profiles": -arrays["profiles"]}, meta),
        (SCHEMA, arrays, {**meta, "game": with_hidden(meta["game"], "wide")}),
        (SCHEMA, arrays, {**meta, "game": with_hidden(meta["game"], [None])}),
        (SCHEMA, arrays, {**meta, "game": None}),
        (SCHEMA, arrays, {**meta, "settings": {"rounds": "many"}}),
        (SCHEMA, arrays, {**meta, "remarks": None}),
        (OTHER, arrays, meta),
        (NARROW, arrays, meta),
    ]
    for schema, parts, told in wrong:
        with pytest.raises(ReleaseError):
            FedCTGAN.from_state(schema, parts, told)


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("name", ["learning_rate", "discriminator_learning_rate"])
@pytest.mark.parametrize("rate", [1.0, 1e6])
def test_a_run_never_ends_in_nan(unit, name, rate):
    synth = quick(
        rounds=4, discriminator="mlp", look_every=2, clip=100.0, average=0.5, **{name: rate}
    )
    synth.fit(owners(40, 40), budget_of(unit, epsilon=0.05))
    assert np.isfinite(synth.learned.generators).all()
    rows = synth.sample(100, seed=0)
    assert check(rows, SCHEMA) == []


def breaking(monkeypatch, call):
    """Has a generator's weights become no numbers at a step."""
    genuine, steps = GeneratorTrainer.step, []

    def step(self, *arguments):
        steps.append(1)
        if len(steps) == call:
            self.learner.move(torch.full((self.generator.dim,), float("nan")))
        return genuine(self, *arguments)

    monkeypatch.setattr(GeneratorTrainer, "step", step)


@pytest.mark.parametrize("unit", ["record", "client"])
def test_a_generator_that_diverges_ends_the_job_and_is_told_of(monkeypatch, unit):
    breaking(monkeypatch, 8)
    told = []
    synth = quick(rounds=20, look_every=5)
    budget = FREE if unit == "record" else FREE_CLIENTS
    synth.fit(owners(40), budget, progress=lambda *step: told.append(step[:2]))
    (remark,) = synth.remarks
    assert "diverged by round 10" in remark and "round 5 are kept" in remark
    assert told[-1] == ("training", 10)
    assert np.isfinite(synth.learned.generators).all()
    assert check(synth.sample(100, seed=0), SCHEMA) == []


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_a_generator_that_collapses_is_told_of(average):
    flat = Schema(columns=[Categorical(name="a", values=list("wxyz")), Boolean(name="b")])
    frame = pd.DataFrame({"a": list("wxyz") * 10, "b": [True, False] * 20})
    synth = quick(
        schema=flat, discriminator="mlp", rounds=20, learning_rate=3.0, matching=0.0,
        average=average, look_every=5, discriminator_learning_rate=1e-9, loss="wasserstein",
    )  # fmt: skip
    synth.fit(frame, FREE)
    (remark,) = synth.remarks
    assert "collapsed" in remark
    assert len(set(synth.sample(200, seed=0)["a"])) > 1


@pytest.mark.parametrize("scheme", ["uni", "sep"])
def test_clients_of_one_class_without_rows_and_with_fewer_than_a_batch_do_no_harm(scheme):
    frame = table(30)
    tables = {
        "well": frame[frame["outcome"] == "well"],
        "ill": frame[frame["outcome"] == "ill"][:1],
        "none": frame[:0],
    }
    synth = quick(scheme=scheme, local_steps=3, batch_size=50).fit(tables, budget_of("client"))
    assert check(synth.sample(30, seed=0), SCHEMA) == []
    rows = quick().fit(tables, budget_of("record")).sample(30, seed=0)
    assert check(rows, SCHEMA) == []


def test_owners_may_be_a_mapping_a_list_or_a_single_table_and_some_may_be_empty():
    for given in (owners(20, 10), [table(20), table(10)], table(30), [table(20), table(3)[:0]]):
        assert len(quick().fit(given, FREE).sample(5)) == 5


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "no owner of data"),
        ([table(5), table(0).drop(columns="dose")], "dose"),
        ([table(5).drop(columns="dose")], "dose"),
        ([Images(np.zeros((1, 2, 2), np.uint8))], "describes a table"),
    ],
)
def test_data_that_cannot_be_used_is_named_before_anything_is_asked(given, said, tmp_path):
    with pytest.raises(DataError, match=said):
        quick().fit(given, Budget(epsilon=1.0), folder=tmp_path)
    assert not (tmp_path / "ledger.jsonl").exists()


def test_a_budget_that_noise_of_ones_own_would_break_is_kept():
    with pytest.raises(BudgetExceeded):
        quick(noise_multiplier=0.1).fit(owners(30), Budget(epsilon=1.0))


@pytest.mark.parametrize(
    ("method", "schema", "unit", "settings", "said"),
    [
        (FedGAN, SCHEMA, "record", {"scheme": "sep"}, "one GAN a class"),
        (FedGAN, SCHEMA, "client", {"scheme": "sep", "asks": True}, "under scheme uni"),
        (FedGAN, SCHEMA, "record", {"architecture": "conv"}, "at least 16 pixels"),
        (FedGAN, SCHEMA, "client", {"discriminator": "quadratic"}, "at the record level"),
        (FedGAN, SCHEMA, "record", {"discriminator": "quadratic", "asks": True}, "without asks"),
        (FedGAN, PIXELS, "record", {"discriminator": "quadratic"}, "for tables"),
        (FedGAN, SCHEMA, "record", {"local_steps": 2}, "training at clients"),
        (FedGAN, SCHEMA, "record", {"sampling": "fixed"}, "Poisson"),
        (FedGAN, SCHEMA, "client", {"auxiliary_loss": 1.0}, "unit record"),
        (FedGAN, TWINS, "record", {"auxiliary_loss": 1.0}, "data with classes"),
        (FedGAN, TWINS, "client", {"scheme": "sep"}, "one GAN a class"),
        (FedGAN, SCHEMA, "record", {"conditional_loss": 1.0}, "needs asks"),
        (FedGAN, SCHEMA, "record", {"learning_rate": 1e39}, "at most a million"),
        (FedGAN, PIXELS, "record", {"architecture": "residual"}, "for tables"),
        (FedGAN, PIXELS, "record", {"matching": 1.0}, "for tables"),
        (FedGAN, PIXELS, "record", {"patience": 1}, "for tables"),
        (FedGAN, PIXELS, "record", {"architecture": "conv", "hidden": (1, 2)}, "one number"),
        # Its released gradients are matched as those of the Wasserstein loss.
        (FedGAN, SCHEMA, "record", {"loss": "logistic"}, "with loss wasserstein"),
        (FedGAN, SCHEMA, "client", {"scheme": "sep", "matching": 1.0}, "under scheme uni"),
        (FedGAN, SCHEMA, "client", {"scheme": "sep", "patience": 1}, "under scheme uni"),
        (FedGAN, SCHEMA, "record", {"classifier_hidden": (8,)}, "needs auxiliary_loss"),
        (FedGAN, PIXELS, "client", {"classifier_hidden": (8,)}, "needs auxiliary_loss"),
    ],
)
def test_settings_that_contradict_the_job_are_named(method, schema, unit, settings, said):
    with pytest.raises(ConfigError, match=said):
        method(schema, **settings).fit(owners(5), budget_of(unit))


def test_fedctgan_is_for_tables():
    with pytest.raises(ConfigError, match="fedgan for images"):
        FedCTGAN(PIXELS)


@pytest.mark.parametrize("plain", [{"asks": False}, {"scheme": "sep"}])
def test_defaults_of_fedctgan_give_way_to_what_is_asked(plain):
    settings = FedCTGANSettings(**plain).resolved(FREE_CLIENTS, SCHEMA)
    assert not settings.asks
    assert settings.conditional_loss == 0


@pytest.mark.parametrize("kind", [FedGANSettings, FedCTGANSettings, PATEGANSettings])
@pytest.mark.parametrize("schema", [SCHEMA, TWINS, PIXELS, ImageSchema(shape=(8, 8), maximum=16)])
@pytest.mark.parametrize("budget", [FREE, FREE_CLIENTS])
def test_settled_settings_settle_to_themselves(kind, schema, budget):
    asked = [{"scheme": "sep"}, {"architecture": "conv"}, {"auxiliary_loss": 1.0}, {"asks": True}]
    for given in ({}, *asked):
        try:
            settled = kind(**given).resolved(budget, schema)
        except ConfigError:
            continue
        again = kind(**settled.model_dump(mode="json", exclude_none=True))
        assert again.resolved(budget, schema) == settled


def small_pictures(count, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 3, (count, 8, 8))
    for side in (0, 1):
        pixels[labels == side, :, 4 * side : 4 * side + 4] += 13
    return Images(pixels.astype(np.uint8), labels.astype(np.int64))


SMALL = ImageSchema(shape=(8, 8), maximum=16, target=Categorical(name="digit", values=[0, 1]))


@pytest.mark.parametrize(
    ("unit", "settings"),
    [
        ("record", {"classifier_hidden": (8,)}),
        ("client", LOCAL),
        ("client", {"scheme": "sep", **LOCAL}),
    ],
)
def test_images_keep_their_shape_range_and_labels(unit, settings, tmp_path):
    synth = quick(schema=SMALL, **settings)
    synth.fit([small_pictures(30), small_pictures(20)], budget_of(unit))
    drawn = synth.sample(25, seed=0)
    assert drawn.pixels.shape == (25, 8, 8)
    assert drawn.pixels.dtype == np.uint8 and drawn.pixels.max() <= 16
    assert (synth.sample(9, where={"digit": 1}, seed=0).labels == 1).all()
    write_release(tmp_path / "out", synth, drawn)
    np.testing.assert_array_equal(load(tmp_path / "out").sample(25, seed=0).pixels, drawn.pixels)
    with pytest.raises(ReleaseError):
        FedGAN.from_state(PIXELS, *synth.model_state())
    with pytest.raises(ReleaseError):
        FedGAN.from_state(SCHEMA, *synth.model_state())


def test_images_are_learned_where_no_noise_hides_them():
    synth = FedGAN(
        SMALL, rounds=25, noise_multiplier=0.0, rate=1.0, hidden=(16,), latent=4,
        discriminator_hidden=(16,), classifier_hidden=(16,), learning_rate=2e-2, average=0.9,
        discriminator_learning_rate=2e-2, generator_batch=100,
    )  # fmt: skip
    drawn = synth.fit(small_pictures(200), FREE).sample(200, seed=0)
    left = drawn.pixels[:, :, :4].mean((1, 2))
    right = drawn.pixels[:, :, 4:].mean((1, 2))
    assert (left > right)[drawn.labels == 0].mean() > 0.95
    assert (right > left)[drawn.labels == 1].mean() > 0.95


def test_images_without_labels_are_synthesised_too():
    schema = ImageSchema(shape=(8, 8), maximum=16)
    drawn = quick(schema=schema).fit(Images(small_pictures(30).pixels), FREE).sample(7, seed=0)
    assert drawn.labels is None
    assert len(drawn.pixels) == 7


@pytest.mark.parametrize(
    ("unit", "settings"),
    [
        ("record", {"classifier_hidden": (2, 2, 2)}),
        ("client", LOCAL),
        ("client", {"scheme": "sep", **LOCAL}),
    ],
)
def test_convolutions_run_at_both_units(unit, settings):
    synth = FedGAN(
        PIXELS,
        **{**QUICK, "rounds": 2, "hidden": (2,), "discriminator_hidden": (2, 2, 2), **settings},
        architecture="conv",
    )  # fmt: skip
    synth.fit([pictures(8), pictures(5, 1)], Budget(epsilon=math.inf, unit=unit, trust="central"))
    drawn = synth.sample(3, seed=0)
    assert drawn.pixels.shape == (3, 16, 16)


def test_classes_of_asked_rows_are_those_of_the_released_tables_by_bayes_rule():
    learned = quick(FedCTGAN).fit(owners(300, 200), FREE).learned
    sizes, tables = learned.game.cells.columns, learned.known.profiles
    # Colours stand behind ages; red ones are mostly ill.
    red = tables[:, sizes[0]]
    expected = learned.known.frequencies * red
    request = learned.request_condition(SCHEMA, {"colour": "red"})
    np.testing.assert_allclose(request.frequencies, expected / expected.sum(), atol=1e-6)
    assert request.frequencies[1] > 0.95
    assert learned.known.frequencies[1] < 0.5


def test_a_table_too_wide_to_ask_for_every_cell_is_refused_before_anything_is_asked():
    wide = Schema(
        columns=[Continuous(name=f"c{k}", lower=0, upper=1, decimals=3) for k in range(300)]
    )
    frame = pd.DataFrame({column.name: [0.1, 0.5] for column in wide.columns})
    with pytest.raises(ConfigError, match=r"fedctgan: asks .* set fewer bins, or asks: false"):
        FedCTGAN(wide).fit(frame, Budget(epsilon=1.0))
    FedCTGAN(wide, bins=4).settings.resolved(Budget(epsilon=1.0), wide)
