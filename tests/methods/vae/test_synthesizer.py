import math

import numpy as np
import pytest
from scipy.stats import binom

from fedsynth.data.images import Images
from fedsynth.errors import BudgetExceeded, ConfigError, DataError, ReleaseError
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import (
    Categorical,
    ImageSchema,
)
from fedsynth.schema.checking import check
from tests.methods.small import SCHEMA, owners, table

FREE = Budget(epsilon=math.inf, trust="central")
QUICK = {"rounds": 4, "hidden": (8,), "latent": 2, "pair_share": 0.0}


def quick(**settings):
    return FedVAE(SCHEMA, **{**QUICK, **settings})


@pytest.mark.parametrize(
    ("unit", "trust", "settings"),
    [
        ("record", "central", {"encoder": "shared"}),
        ("record", "local", {"encoder": "shared"}),
        ("record", "distributed", {"encoder": "private"}),
        ("record", "distributed", {"encoder": "frozen"}),
        ("record", "distributed", {"scheme": "sep"}),
        ("client", "central", {"scheme": "uni"}),
        ("client", "local", {"scheme": "uni", "encoder": "shared"}),
        ("client", "distributed", {"scheme": "sep"}),
    ],
)
def test_every_scheme_trust_and_unit_gives_rows_of_the_schema_within_its_budget(
    unit, trust, settings
):
    budget = Budget(epsilon=2.0, unit=unit, trust=trust, units=None if unit == "record" else 3)
    synth = quick(**settings, rate=1.0 if unit == "client" else 0.5)
    rows = synth.fit(owners(40, 30, 20), budget).sample(50, seed=0)
    assert len(rows) == 50
    assert check(rows, SCHEMA) == []
    assert list(rows.columns) == [column.name for column in SCHEMA.columns]
    assert 0 < synth.ledger.spent().epsilon <= 2.0


def test_the_tables_structure_is_learned_where_no_noise_hides_it():
    synth = FedVAE(SCHEMA, rounds=30, rate=0.5, noise_multiplier=0.0, pair_share=0.0)
    rows = synth.fit(owners(400, 400), FREE).sample(4000, seed=0)
    real = table(4000, seed=7)
    for frame in (rows, real):
        ill = frame["outcome"] == "ill"
        assert 0.25 < ill.mean() < 0.35
        assert (frame.loc[ill, "dose"] >= 6.5).mean() > 0.9
        assert (frame.loc[~ill, "dose"] < 4).mean() > 0.9
        assert (frame.loc[ill, "colour"].dropna() == "red").mean() > 0.9
        assert 0.07 < frame["colour"].isna().mean() < 0.13


def test_client_level_training_learns_as_well():
    budget = Budget(epsilon=math.inf, unit="client", trust="central")
    synth = FedVAE(
        SCHEMA, scheme="sep", rounds=14, rate=1.0, clip=10.0, learning_rate=0.1, hidden=(32,)
    )
    rows = synth.fit(owners(100, 100), budget).sample(2000, seed=0)
    ill = rows["outcome"] == "ill"
    assert rows.loc[ill, "dose"].mean() > rows.loc[~ill, "dose"].mean() + 2


def test_where_holds_for_every_row_and_proportions_for_their_shares():
    synth = quick().fit(owners(60), FREE)
    assert (synth.sample(200, where={"outcome": "ill"}, seed=0)["outcome"] == "ill").all()
    drawn = synth.sample(4000, proportions={"ill": 9, "well": 1}, seed=0)["outcome"]
    low, high = binom.ppf([1e-9, 1 - 1e-9], 4000, 0.9)
    assert low <= (drawn == "ill").sum() <= high
    with pytest.raises(ConfigError, match="at least 1"):
        synth.sample(0)


def test_fits_repeat_with_the_insecure_seed_and_never_without():
    budget = Budget(epsilon=1.0)

    def weights(**options):
        return quick(rate=1.0).fit(owners(60), budget, **options).learned.theta

    same = [weights(seed=1, insecure_noise_seed=5) for _ in range(2)]
    np.testing.assert_array_equal(*same)
    assert not np.array_equal(weights(seed=1), weights(seed=1))


def test_a_state_whose_parts_do_not_fit_is_refused():
    arrays, meta = quick().fit(owners(60), FREE).model_state()
    with pytest.raises(ReleaseError):
        FedVAE.from_state(SCHEMA, {**arrays, "theta": arrays["theta"][:-1]}, meta)
    with pytest.raises(ReleaseError):
        FedVAE.from_state(SCHEMA, arrays, {key: meta[key] for key in ("model", "settings")})


@pytest.mark.parametrize("unit", ["record", "client"])
def test_a_run_never_ends_in_nan(unit):
    budget = Budget(epsilon=0.05, unit=unit, trust="central", units=2 if unit == "client" else None)
    synth = quick(learning_rate=1e4, rate=1.0, rounds=12, clip=100.0)
    synth.fit(owners(40, 40), budget)
    assert np.isfinite(synth.learned.theta).all()
    assert check(synth.sample(100, seed=0), SCHEMA) == []


def test_more_columns_than_records_and_clients_of_one_class_do_no_harm():
    frame = table(30)
    tables = {"well": frame[frame["outcome"] == "well"], "ill": frame[frame["outcome"] == "ill"]}
    for unit in ("record", "client"):
        budget = Budget(epsilon=1.0, unit=unit, curious=1)
        rows = quick(rate=1.0).fit(tables, budget).sample(30, seed=0)
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
        ([table(5).assign(extra=1)], "extra"),
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


PIXELS = ImageSchema(shape=(4, 4), maximum=16, target=Categorical(name="digit", values=[0, 1]))


def pictures(count, seed=0):
    """Class 0 is bright on the left, class 1 on the right."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, count)
    pixels = rng.integers(0, 3, (count, 4, 4))
    for side in (0, 1):
        pixels[labels == side, :, 2 * side : 2 * side + 2] += 13
    return Images(pixels.astype(np.uint8), labels.astype(np.int64))


@pytest.mark.parametrize("unit", ["record", "client"])
@pytest.mark.parametrize("scheme", ["uni", "sep"])
def test_images_keep_their_shape_range_and_labels(unit, scheme):
    budget = Budget(epsilon=5.0, unit=unit, curious=1)
    synth = FedVAE(PIXELS, scheme=scheme, rate=1.0, **QUICK)
    drawn = synth.fit([pictures(30), pictures(20)], budget).sample(25, seed=0)
    assert drawn.pixels.shape == (25, 4, 4)
    assert drawn.pixels.dtype == np.uint8
    assert drawn.pixels.max() <= 16
    only = synth.sample(9, where={"digit": 1}, seed=0)
    assert (only.labels == 1).all()


def test_images_are_learned_where_no_noise_hides_them():
    synth = FedVAE(PIXELS, rounds=50, noise_multiplier=0.0)
    drawn = synth.fit(pictures(300), FREE).sample(200, seed=0)
    left = drawn.pixels[:, :, :2].mean((1, 2))
    right = drawn.pixels[:, :, 2:].mean((1, 2))
    assert (left > right)[drawn.labels == 0].all()
    assert (right > left)[drawn.labels == 1].all()


def test_images_without_labels_are_synthesised_too():
    schema = ImageSchema(shape=(4, 4), maximum=16)
    drawn = FedVAE(schema, **QUICK).fit(Images(pictures(30).pixels), FREE).sample(7, seed=0)
    assert drawn.labels is None
    assert len(drawn.pixels) == 7


def test_convolutions_run_at_both_units():
    schema = ImageSchema(shape=(8, 8), maximum=16)
    pixels = np.random.default_rng(0).integers(0, 17, (6, 8, 8)).astype(np.uint8)
    for unit in ("record", "client"):
        budget = Budget(epsilon=5.0, unit=unit, curious=1)
        synth = FedVAE(schema, architecture="conv", hidden=(), latent=2, rounds=2, rate=1.0)
        drawn = synth.fit([Images(pixels), Images(pixels)], budget).sample(3, seed=0)
        assert drawn.pixels.shape == (3, 8, 8)


@pytest.mark.parametrize("label", [-1, 2])
def test_labels_outside_the_classes_are_refused_before_anything_is_asked(label, tmp_path):
    wrong = Images(np.zeros((2, 4, 4), np.uint8), np.array([0, label], np.int64))
    with pytest.raises(DataError, match="from 0 to 1"):
        FedVAE(PIXELS, **QUICK).fit(wrong, Budget(epsilon=1.0), folder=tmp_path)
    assert not (tmp_path / "ledger.jsonl").exists()
