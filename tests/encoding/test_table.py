"""A table as codes and back, from a noisy histogram."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score

from fedsynth.data.tables import conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import DataError, ReleaseError, SchemaError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from tests.encoding.encoding_strategies import frames, schemas


def histogram(frame, schema):
    layout = HistogramLayout.of(schema)
    positions = layout.positions(conform(frame, schema))
    return np.bincount(positions.ravel(), minlength=layout.dim).astype(np.float64)


def encoding_of(frame, schema, sigma=0.0, seed=0, bins=24):
    exact = histogram(frame, schema)
    noisy = exact + np.random.default_rng(seed).normal(0, 1, exact.shape) * sigma
    return TableEncoding.from_histogram(schema, noisy, sigma, bins)


def round_trip(frame, encoding, seed=0):
    codes = encoding.encode(conform(frame, encoding.schema))
    return encoding.decode(codes, np.random.default_rng(seed))


def draw_rows(encoding, rows, seed=0):
    """Rows whose columns are independent, from the encoding's own frequencies."""
    rng = np.random.default_rng(seed)
    codes = [
        rng.choice(size, rows, p=frequency)
        for size, frequency in zip(encoding.sizes, encoding.frequencies, strict=True)
    ]
    return encoding.decode(np.stack(codes, axis=1).astype(np.int32), rng)


def claims(rows=20_000, seed=0):
    """Amounts that are mostly 0 or capped, hours that are mostly 40, and a smooth age."""
    rng = np.random.default_rng(seed)
    amount = np.round(np.where(rng.random(rows) < 0.9, 0, rng.exponential(2000, rows)), 2)
    amount[rng.random(rows) < 0.01] = 99_999.99
    hours = np.where(rng.random(rows) < 0.5, 40, rng.integers(1, 100, rows))
    return pd.DataFrame(
        {
            "amount": np.minimum(amount, 99_999.99),
            "hours": hours,
            "age": np.clip(rng.normal(50, 15, rows).round(), 17, 90).astype(int),
            "kind": rng.choice(["a", "b", "c"], rows, p=[0.6, 0.39, 0.01]),
            "seen": pd.Series(np.where(rng.random(rows) < 0.3, None, rng.random(rows) < 0.5)),
        }
    )


CLAIMS = Schema(
    columns=(
        Continuous(name="amount", lower=0, upper=99_999.99, decimals=2),
        Integer(name="hours", lower=1, upper=99),
        Integer(name="age", lower=17, upper=90),
        Categorical(name="kind", values=("a", "b", "c")),
        Boolean(name="seen", missing=True),
    )
)


@given(schemas(), st.data(), st.sampled_from((0.0, 0.3, 30.0)), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_any_table_goes_there_and_back(schema, data, sigma, seed):
    frame = data.draw(frames(schema))
    encoding = encoding_of(frame, schema, sigma, seed, bins=data.draw(st.integers(1, 30)))
    conformed = conform(frame, schema)
    codes = encoding.encode(conformed)
    assert codes.dtype == np.int32
    assert codes.shape == (len(frame), len(schema.modelled))
    assert (codes >= 0).all() and (codes < encoding.sizes).all()
    for frequency in encoding.frequencies:
        assert (frequency >= 0).all()
        assert frequency.sum() == pytest.approx(1)
    back = encoding.decode(codes, np.random.default_rng(seed))
    again = conform(back, schema)
    assert set(again.outside.values()) == {0}
    assert (encoding.encode(again) == codes).all()


@given(schemas(), st.data(), st.sampled_from((0.0, 5.0)))
@settings(max_examples=10, deadline=None)
def test_any_code_decodes_to_a_row_of_the_schema(schema, data, sigma):
    encoding = encoding_of(data.draw(frames(schema)), schema, sigma)
    codes = np.stack([np.arange(24) % size for size in encoding.sizes], axis=1)
    back = encoding.decode(codes, np.random.default_rng(0))
    again = conform(back, schema)
    assert set(again.outside.values()) == {0}
    assert (encoding.encode(again) == codes).all()
    for column in schema.columns:
        if isinstance(column, Continuous):
            values = back[column.name].dropna().tolist()
            assert values == [round(value, column.decimals) for value in values]


@given(schemas(), st.integers(0, 2**32 - 1), st.floats(0, 1e3), st.floats(-1e3, 1e3))
@settings(max_examples=10, deadline=None)
def test_any_histogram_gives_a_valid_encoding(schema, seed, sigma, shift):
    """Negative counts, zero totals, counts that contradict each other: noise may do all of it."""
    dim = HistogramLayout.of(schema).dim
    noisy = np.random.default_rng(seed).normal(shift, 100, dim)
    encoding = TableEncoding.from_histogram(schema, noisy, sigma)
    assert encoding.records >= 1
    assert min(encoding.sizes) >= 1
    back = draw_rows(encoding, 5)
    assert set(conform(back, schema).outside.values()) == {0}


@pytest.mark.parametrize("fill", [0.0, -5.0, -1e9])
@pytest.mark.parametrize("sigma", [0.0, 10.0])
def test_histograms_without_a_record_still_encode(fill, sigma):
    dim = HistogramLayout.of(CLAIMS).dim
    encoding = TableEncoding.from_histogram(CLAIMS, np.full(dim, fill), sigma)
    assert encoding.records == 1
    assert len(draw_rows(encoding, 10)) == 10


@given(schemas(), st.data(), st.sampled_from((0.0, 20.0)))
@settings(max_examples=8, deadline=None)
def test_documents_give_back_the_same_encoding(schema, data, sigma):
    encoding = encoding_of(data.draw(frames(schema)), schema, sigma)
    document = json.loads(json.dumps(encoding.to_dict()))
    again = TableEncoding.from_dict(document)
    assert again.to_dict() == encoding.to_dict()
    assert again.schema == schema
    codes = np.stack([np.arange(12) % size for size in encoding.sizes], axis=1)
    pd.testing.assert_frame_equal(
        again.decode(codes, np.random.default_rng(3)),
        encoding.decode(codes, np.random.default_rng(3)),
    )


def test_edges_and_frequencies_depend_on_the_noisy_histogram_alone():
    """Two tables whose noise happens to give the same counts get the same encoding, to the bit."""
    first, second = (histogram(claims(rows, seed=rows), CLAIMS) for rows in (500, 900))
    noise = np.random.default_rng(0).integers(-9, 10, len(first)).astype(float)
    other = (first + noise) - second
    one = TableEncoding.from_histogram(CLAIMS, first + noise, 5.0)
    two = TableEncoding.from_histogram(CLAIMS, second + other, 5.0)
    assert not np.array_equal(first, second)
    assert one.to_dict() == two.to_dict()


def test_the_same_generator_decodes_the_same_table():
    frame = claims(2000)
    encoding = encoding_of(frame, CLAIMS, 20.0)
    pd.testing.assert_frame_equal(round_trip(frame, encoding), round_trip(frame, encoding))
    assert not round_trip(frame, encoding, 0).equals(round_trip(frame, encoding, 1))


def test_without_noise_the_frequencies_are_exact():
    frame = claims()
    encoding = encoding_of(frame, CLAIMS)
    assert encoding.records == pytest.approx(len(frame))
    codes = encoding.encode(conform(frame, CLAIMS))
    for index, frequency in enumerate(encoding.frequencies):
        share = np.bincount(codes[:, index], minlength=len(frequency)) / len(frame)
        np.testing.assert_allclose(frequency, share, atol=1e-9)


@pytest.mark.parametrize(("sigma", "slack"), [(0.0, 0.0), (30.0, 0.006), (100.0, 0.015)])
def test_frequent_single_values_survive_the_noise(sigma, slack):
    frame = claims()
    encoding = encoding_of(frame, CLAIMS, sigma)
    there_and_back, independent = round_trip(frame, encoding), draw_rows(encoding, len(frame))
    for name, value in (("amount", 0), ("amount", 99_999.99), ("hours", 40)):
        share = (frame[name] == value).mean()
        error = 5 * np.sqrt(share / len(frame))
        assert (there_and_back[name] == value).mean() == pytest.approx(share, abs=slack + error / 5)
        assert (independent[name] == value).mean() == pytest.approx(share, abs=slack + error)


@pytest.mark.parametrize(("sigma", "limit"), [(0.0, 0.01), (30.0, 0.03), (100.0, 0.08)])
def test_one_way_marginals_survive_the_noise(sigma, limit):
    frame = claims()
    encoding = encoding_of(frame, CLAIMS, sigma)
    independent = draw_rows(encoding, 100_000)
    for name in ("amount", "hours", "age"):
        edges = np.unique(np.quantile(frame[name], np.linspace(0, 1, 21))[1:-1])
        real, ours = (
            np.bincount(np.searchsorted(edges, part[name], "right"), minlength=len(edges) + 1)
            / len(part)
            for part in (frame, independent)
        )
        assert np.abs(real - ours).sum() / 2 < limit
    missing = independent["seen"].isna().mean()
    assert missing == pytest.approx(frame["seen"].isna().mean(), abs=0.01)


@pytest.mark.parametrize("sigma", [0.0, 1.0, 20.0])
def test_a_constant_column_stays_constant(sigma):
    schema = Schema(
        columns=(
            Integer(name="n", lower=0, upper=10**6),
            Categorical(name="c", values=("only",)),
            Continuous(name="point", lower=2.5, upper=2.5, decimals=1),
        )
    )
    frame = pd.DataFrame({"n": [4321] * 3000, "c": "only", "point": 2.5})
    encoding = encoding_of(frame, schema, sigma)
    back = round_trip(frame, encoding)
    # A cell of this column is 8 values wide.
    assert (back["n"] // 8 == 4321 // 8).all()
    assert (back["c"] == "only").all() and (back["point"] == 2.5).all()
    assert encoding.sizes[1:] == (1, 1)


@pytest.mark.parametrize("sigma", [0.0, 20.0])
def test_a_column_that_is_always_missing_comes_back_missing(sigma):
    schema = Schema(
        columns=(
            Continuous(name="x", lower=0, upper=1, decimals=3, missing=True),
            Integer(name="n", lower=0, upper=5, missing=True),
            Categorical(name="c", values=("a", "b"), missing=True),
            Datetime(name="t", lower="2020-01-01", upper="2021-01-01", missing=True),
        )
    )
    frame = pd.DataFrame({name: [None] * 2000 for name in "xnct"})
    encoding = encoding_of(frame, schema, sigma)
    assert draw_rows(encoding, 500).isna().mean().min() > 0.95
    assert round_trip(frame, encoding).isna().all(axis=None)


BOUNDS = {
    "age": (17, 90),
    "fnlwgt": (0, 1_500_000),
    "education-num": (1, 16),
    "capital-gain": (0, 99_999),
    "capital-loss": (0, 5000),
    "hours-per-week": (1, 99),
}


@pytest.fixture(scope="module")
def adult(shared_data):
    frame = pd.read_csv(shared_data / "adult" / "adult.csv.gz", keep_default_na=False)
    schema = Schema(
        columns=tuple(
            Integer(name=name, lower=BOUNDS[name][0], upper=BOUNDS[name][1])
            if name in BOUNDS
            else Categorical(name=name, values=tuple(sorted(frame[name].unique())))
            for name in frame
        ),
        target="income",
    )
    return frame.sample(frac=1, random_state=0, ignore_index=True), schema


def test_a_classifier_learns_from_adult_after_the_round_trip(adult):
    frame, schema = adult
    train, test = frame[:10_000], frame[-5_000:]

    def features(rows):
        codes = conform(rows, schema).columns
        return np.stack([codes[name] for name in frame if name != "income"], axis=1)

    def auroc(rows):
        model = HistGradientBoostingClassifier(random_state=0, max_iter=20)
        model.fit(features(rows), rows["income"])
        return roc_auc_score(test["income"], model.predict_proba(features(test))[:, 1])

    best = auroc(train)
    for sigma, loss in ((0.0, 0.004), (15.0, 0.007)):
        back = round_trip(train, encoding_of(train, schema, sigma))
        assert auroc(back) > best - loss
        for name, value in (("capital-gain", 0), ("capital-gain", 99_999), ("hours-per-week", 40)):
            assert (back[name] == value).mean() == pytest.approx(
                (train[name] == value).mean(), abs=2e-3
            )


def test_no_rows_decode_to_an_empty_table():
    encoding = TableEncoding.from_edges(EDGES)
    back = encoding.decode(np.zeros((0, 3), np.int32), np.random.default_rng(0))
    assert (len(back), list(back)) == (0, ["n", "x", "c"])


def test_five_thousand_categories():
    values = tuple(f"v{i}" for i in range(5000))
    schema = Schema(columns=(Categorical(name="c", values=values),))
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"c": np.where(rng.random(20_000) < 0.5, "v7", rng.choice(values, 20_000))}
    )
    encoding = encoding_of(frame, schema, 30.0)
    # Nearly all hold four records, far below the noise: they share a code.
    assert encoding.sizes[0] < 20
    back = round_trip(frame, encoding)["c"]
    assert (back == "v7").mean() == pytest.approx(0.5, abs=0.01)
    assert (back[frame["c"] == "v7"] == "v7").all()
    assert back[back != "v7"].value_counts(normalize=True).max() < 0.02


def test_bounds_of_1e12_keep_zero_and_two_decimals():
    schema = Schema(columns=(Continuous(name="x", lower=-5e11, upper=5e11, decimals=2),))
    rng = np.random.default_rng(0)
    values = np.where(rng.random(4000) < 0.4, 0, rng.normal(0, 1e11, 4000).round(2))
    frame = pd.DataFrame({"x": values})
    back = round_trip(frame, encoding_of(frame, schema, 5.0))["x"]
    assert (back == 0).mean() == pytest.approx((values == 0).mean(), abs=1e-3)
    assert back.between(-5e11, 5e11).all()
    assert back.tolist() == [round(value, 2) for value in back.tolist()]
    assert np.std(back) == pytest.approx(np.std(values), rel=0.1)


@pytest.mark.parametrize("rows", [1, 2])
@pytest.mark.parametrize("sigma", [0.0, 50.0])
def test_tiny_tables(rows, sigma):
    frame = claims(rows)
    encoding = encoding_of(frame, CLAIMS, sigma)
    assert len(round_trip(frame, encoding)) == rows
    if sigma == 0:
        pd.testing.assert_frame_equal(round_trip(frame, encoding), round_trip(frame, encoding, 9))


EDGES = Schema(
    columns=(
        Integer(name="n", lower=0, upper=100, edges=(0, 10, 50, 100), spikes=(0, 40)),
        Continuous(name="x", lower=0, upper=1, decimals=1, edges=(0, 0.25, 1), missing=True),
        Categorical(name="c", values=("a", "b")),
    )
)


def test_public_edges_need_no_question():
    encoding = TableEncoding.from_edges(EDGES)
    assert encoding.sizes == (5, 3, 2)
    assert encoding.labels("n") == ["0", "1 to 9", "10 to 49", "40", "50 to 100"]
    assert encoding.labels("x") == ["0 to 0.2", "0.3 to 1", "missing"]
    assert encoding.labels("c") == ["a", "b"]
    for size, frequency in zip(encoding.sizes, encoding.frequencies, strict=True):
        assert frequency.tolist() == [1 / size] * size
    frame = pd.DataFrame({"n": [0, 9, 40, 41, 100], "x": [0.2, 0.3, None, 1, 0], "c": ["a"] * 5})
    codes = encoding.encode(conform(frame, EDGES))
    assert codes.T.tolist() == [[0, 1, 3, 2, 4], [0, 1, 2, 1, 0], [0] * 5]
    assert TableEncoding.from_dict(encoding.to_dict()).to_dict() == encoding.to_dict()


def test_public_edges_hold_whatever_the_noise():
    noisy = np.random.default_rng(0).normal(0, 1000, HistogramLayout.of(EDGES).dim)
    encoding = TableEncoding.from_histogram(EDGES, noisy, 1000.0, rare=0.0)
    assert encoding.sizes == (5, 3, 2)
    assert encoding.labels("n") == TableEncoding.from_edges(EDGES).labels("n")


def test_bins_that_a_spike_or_the_decimals_empty_do_not_exist():
    schema = Schema(
        columns=(
            Integer(name="n", lower=0, upper=9, edges=(0, 5, 6, 9), spikes=(5,)),
            Continuous(name="x", lower=0, upper=1, decimals=1, edges=(0, 0.31, 0.39, 1)),
        )
    )
    encoding = TableEncoding.from_edges(schema)
    assert encoding.labels("n") == ["0 to 4", "5", "6 to 9"]
    assert encoding.labels("x") == ["0 to 0.3", "0.4 to 1"]


def test_a_column_without_edges_is_named():
    with pytest.raises(SchemaError, match="'amount'"):
        TableEncoding.from_edges(CLAIMS)


@pytest.mark.parametrize(
    ("noisy", "sigma"),
    [
        (np.zeros(3), 1.0),
        (np.full(HistogramLayout.of(EDGES).dim, np.nan), 1.0),
        (np.zeros(HistogramLayout.of(EDGES).dim), -1.0),
        (np.zeros(HistogramLayout.of(EDGES).dim), np.inf),
    ],
)
def test_histograms_of_another_schema_or_with_holes_are_refused(noisy, sigma):
    with pytest.raises(DataError, match="histogram"):
        TableEncoding.from_histogram(EDGES, noisy, sigma)


@pytest.mark.parametrize("codes", [[[0, 0]], [[0, 0, 2]], [[-1, 0, 0]], [0, 0, 0]])
def test_codes_that_are_none_are_refused(codes):
    with pytest.raises(DataError, match="codes"):
        TableEncoding.from_edges(EDGES).decode(np.array(codes), np.random.default_rng(0))


@pytest.mark.parametrize(
    "damage",
    [
        {"schema": {}},
        {"records": None},
        {"records": 0.5},
        {"records": 10**400},
        {"columns": []},
        {"columns": [None, None, None]},
        {"columns": [{"bins": None, "frequencies": [1.0]}] * 3},
    ],
)
def test_damaged_documents_are_refused(damage):
    document = TableEncoding.from_edges(EDGES).to_dict()
    with pytest.raises((ReleaseError, SchemaError)):
        TableEncoding.from_dict({**document, **damage})


def test_frequencies_that_are_none_are_refused():
    document = TableEncoding.from_edges(EDGES).to_dict()
    for wrong in ([0.5, 0.6], [1.5, -0.5], [1.0], "half", [float("nan"), 1.0]):
        columns = [*document["columns"][:2], {"bins": None, "frequencies": wrong}]
        with pytest.raises(ReleaseError, match=r"frequenc|damaged"):
            TableEncoding.from_dict({**document, "columns": columns})
