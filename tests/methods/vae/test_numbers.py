"""A Gaussian likelihood: rows as numbers of unit variance and codes, and back within bounds."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from fedsynth.data.tables import conform
from fedsynth.encoding.bins import Bins
from fedsynth.encoding.grid import Grid
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.methods.vae.numbers import Numbers, _moments
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, Continuous, ImageSchema, Integer, Schema
from fedsynth.schema.checking import check
from tests.methods.small import SCHEMA, owners

FREE = Budget(epsilon=math.inf, trust="central")
CLIENTS = Budget(epsilon=math.inf, unit="client", trust="central", units=2)
GAPPED = Schema(
    columns=[
        Categorical(name="kind", values=["a", "b", "c"]),
        Continuous(name="x", lower=-50, upper=50, decimals=2, missing=True),
        Integer(name="n", lower=0, upper=1000),
        Categorical(name="y", values=["no", "yes"]),
    ],
    target="y",
)


def gapped(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    x = np.round(rng.normal(10, 3, rows), 2)
    return pd.DataFrame(
        {
            "kind": rng.choice(["a", "b", "c"], rows),
            "x": np.where(rng.random(rows) < 0.25, np.nan, x),
            "n": rng.integers(300, 321, rows),
            "y": rng.choice(["no", "yes"], rows),
        }
    )


def encoding_of(frame, schema=GAPPED):
    """The encoding of a table's own histogram, without noise."""
    data, layout = conform(frame, schema), HistogramLayout.of(schema)
    counts = np.bincount(layout.positions(data).ravel(), minlength=layout.dim)
    return data, TableEncoding.from_histogram(schema, counts.astype(float), 0.0)


def test_rows_are_numbers_of_unit_variance_codes_of_gaps_and_codes_and_come_back():
    frame = gapped()
    data, encoding = encoding_of(frame)
    numbers = Numbers(encoding)
    rows = numbers.vectors(data)
    assert numbers.sizes == (2, 3, 2)
    assert rows.shape == (len(frame), 2 + 3)
    np.testing.assert_allclose(np.nanmean(rows[:, :2], axis=0), 0, atol=0.05)
    np.testing.assert_allclose(np.nanstd(rows[:, :2], axis=0), 1, atol=0.05)
    np.testing.assert_array_equal(np.isnan(rows[:, 0]), frame["x"].isna())
    np.testing.assert_array_equal(rows[:, 2], frame["x"].isna())
    place = len(numbers.numeric) + numbers.target
    labels = rows[:, place].astype(np.int64)
    np.testing.assert_array_equal(labels, frame["y"] == "yes")
    back = numbers.columns(np.delete(rows, place, axis=1), labels, np.random.default_rng(0))
    for name, values in data.columns.items():
        np.testing.assert_allclose(back[name], values, rtol=1e-4, atol=1e-4)


def test_a_row_s_numbers_hang_on_no_other_row():
    data, encoding = encoding_of(gapped())
    numbers, some = Numbers(encoding), np.array([3, 17, 5])
    np.testing.assert_array_equal(numbers.vectors(data)[some], numbers.vectors(data.take(some)))


def test_a_column_of_one_value_is_scaled_by_half_its_unit():
    frame = gapped().assign(n=7)
    data, encoding = encoding_of(frame)
    numbers = Numbers(encoding)
    assert numbers.scales[1][1] == pytest.approx(0.5)
    assert np.isfinite(numbers.vectors(data)[:, 1]).all()


@pytest.mark.parametrize("shape", ["normal", "laplace", "even"])
def test_bounds_far_from_all_values_do_not_widen_a_column_that_few_bins_tell(shape):
    # Four bins of a quarter each, as noise leaves them, on a range of 24 deviations.
    grid = Grid(-2000, 2000)
    laws = {
        "normal": stats.norm(scale=165),
        "laplace": stats.laplace(scale=165 / 2**0.5),
        "even": stats.uniform(-286, 572),
    }
    cuts = np.rint(laws[shape].ppf([0.25, 0.5, 0.75])).astype(np.int64) + 2000
    bins = Bins(grid, np.array([0, *cuts]), np.arange(4), np.full(4, 0.25))
    mean, deviation = _moments(bins, np.full(4, 0.25))
    assert mean == pytest.approx(0, abs=2)
    assert 0.7 < deviation / 165 < 1.5


def test_even_values_over_all_of_a_range_have_its_deviation():
    bins = Bins(Grid(0, 399), np.arange(0, 400, 100), np.arange(4), np.full(4, 0.25))
    mean, deviation = _moments(bins, np.full(4, 0.25))
    assert (mean, deviation) == pytest.approx((199.5, 400 / 12**0.5), rel=0.01)


@pytest.mark.parametrize("scheme", ["uni", "sep"])
def test_gaussians_learn_where_each_class_s_numbers_lie(scheme):
    settings = {"rounds": 30, "rate": 1.0, "hidden": (16,), "learning_rate": 1.0}
    synth = FedVAE(SCHEMA, likelihood="gaussian", scheme=scheme, noise_multiplier=0.0, **settings)
    rows = synth.fit(owners(200, 200), FREE, seed=0).sample(2000, seed=0)
    assert check(rows, SCHEMA) == []
    ill = rows["outcome"] == "ill"
    assert rows.loc[ill, "dose"].mean() == pytest.approx(7.5, abs=0.5)
    assert rows.loc[~ill, "dose"].mean() == pytest.approx(2.5, abs=0.5)
    assert (synth.sample(50, where={"outcome": "ill"}, seed=1)["outcome"] == "ill").all()


def test_numbers_beyond_the_bounds_become_the_bound_and_it_is_told():
    # Ages are even over all of their range, so a Gaussian's tails lie outside.
    small = {"rounds": 2, "hidden": (8,), "latent": 2}
    synth = FedVAE(SCHEMA, likelihood="gaussian", sigma=1.0, **small)
    synth.fit(owners(100, 100), FREE, seed=0)
    ages = synth.sample(2000, seed=0)["age"]
    assert ages.between(18, 90).all()
    assert ((ages == 18) | (ages == 90)).mean() > 0.02
    assert any("beyond the bounds" in told and "age" in told for told in synth.remarks)
    bins = FedVAE(SCHEMA, pair_share=0.0, **small).fit(owners(100, 100), FREE, seed=0)
    assert not any("beyond the bounds" in told for told in bins.remarks)


def test_drawn_rows_keep_the_schema_s_constraints():
    columns = [Integer(name=name, lower=0, upper=60) for name in ("start", "stop")]
    columns.append(Categorical(name="y", values=["no", "yes"]))
    schema = Schema(columns=columns, target="y", constraints=[{"ordered": ["start", "stop"]}])
    rng = np.random.default_rng(0)
    start = rng.integers(0, 40, 100)
    frame = pd.DataFrame({"start": start, "stop": start + 5, "y": rng.choice(["no", "yes"], 100)})
    synth = FedVAE(schema, likelihood="gaussian", rounds=2, hidden=(8,), latent=2)
    rows = synth.fit(frame, FREE, seed=0).sample(300, seed=0)
    assert (rows["start"] <= rows["stop"]).all()


def test_a_client_s_decoder_has_the_paper_s_number_of_weights():
    schema = Schema(
        columns=[Integer(name=f"X{j}", lower=-9, upper=9) for j in range(178)]
        + [Categorical(name="y", values=[0, 1])],
        target="y",
    )
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"X{j}": rng.integers(-9, 10, 12) for j in range(178)})
    frame["y"] = [0, 1] * 6
    synth = FedVAE(schema, likelihood="gaussian", sigma=1.0, rounds=1, rate=1.0)
    synth.fit([frame, frame], CLIENTS, seed=0)
    assert synth.learned.theta.shape == (2 * 34_082,)
    again = FedVAE.from_state(schema, *synth.model_state())
    pd.testing.assert_frame_equal(again.sample(5, seed=1), synth.sample(5, seed=1))


@pytest.mark.parametrize("unit", ["record", "client"])
def test_the_histogram_that_gaussians_are_scaled_by_has_the_tables_part_unless_told(unit):
    def first(**settings):
        budget = Budget(epsilon=1.0, unit=unit, trust="central")
        plan = FedVAE(SCHEMA, rounds=10, rate=1.0, **settings).plan(budget, 3)
        return plan.labels[:-1], 1 / plan.releases[0].terms.noise_multiplier ** 2

    bins = first()[1]
    labels, scaled = first(likelihood="gaussian")
    assert labels == ("histogram",)
    assert scaled / bins == pytest.approx(0.2 / 0.03)
    assert first(likelihood="gaussian", histogram_share=0.03)[1] == pytest.approx(bins)


def test_networks_of_other_columns_are_no_release():
    synth = FedVAE(SCHEMA, likelihood="gaussian", rounds=1, hidden=(4,), latent=2)
    learned = synth.fit(owners(60), FREE, seed=0).learned
    learned.check()
    spec = learned.model.spec
    # As many weights, for other columns.
    other = replace(spec, sizes=(spec.sizes[0] - 1, *spec.sizes[1:-1], spec.sizes[-1] + 1))
    with pytest.raises(ReleaseError, match="not of its encoding's columns"):
        replace(learned, model=replace(learned.model, spec=other)).check()


@pytest.mark.parametrize(
    ("schema", "settings", "said"),
    [
        (ImageSchema(shape=(16, 16)), {"likelihood": "gaussian"}, "for tables"),
        (SCHEMA, {"sigma": 1.0}, "sigma needs likelihood gaussian"),
        (SCHEMA, {"likelihood": "gaussian", "label_table_share": 0.1}, "need likelihood bins"),
        (SCHEMA, {"likelihood": "gaussian", "classifier_weight": 1.0}, "need likelihood bins"),
    ],
)
def test_what_a_likelihood_cannot_do_is_refused(schema, settings, said):
    with pytest.raises(ConfigError, match=said):
        FedVAE(schema, **settings).plan(FREE, 2)
