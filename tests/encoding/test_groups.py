"""Rare categories that share a code."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.tables import conform
from fedsynth.encoding.groups import Groups
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import DataError, ReleaseError
from fedsynth.schema import Boolean, Categorical, Schema


def unconditional(masses):
    return np.zeros((len(masses), 0), bool)


def town(count, **options):
    return Categorical(name="town", values=tuple(f"t{i}" for i in range(count)), **options)


def encoding_of(counts, sigma=1.0, rare=3.0, missing=None, **schema):
    column = town(len(counts), missing=missing is not None)
    made = Schema(columns=(column,), **schema)
    tail = [] if missing is None else [missing]
    noisy = np.array([*counts, *tail], np.float64)
    return TableEncoding.from_histogram(made, noisy, sigma, rare=rare)


def codes_of(encoding, values):
    frame = pd.DataFrame({"town": pd.Series(values, dtype=object)})
    return encoding.encode(conform(frame, encoding.schema))[:, 0].tolist()


def test_categories_below_three_deviations_share_a_code_and_no_others_do():
    encoding = encoding_of([100, 2, 50, 0, 1, 90])
    assert encoding.sizes == (4,)
    assert codes_of(encoding, [f"t{i}" for i in range(6)]) == [0, 3, 1, 3, 3, 2]
    assert encoding.frequencies[0] == pytest.approx(np.array([100, 50, 90, 3]) / 243)
    assert encoding.labels("town") == ["t0", "t2", "t5", "t1 or 2 more rare values"]


def test_a_single_rare_category_keeps_its_code():
    encoding = encoding_of([100, 1, 50])
    assert encoding.sizes == (3,) and encoding.bins == (None,)


def test_without_noise_every_category_keeps_its_code():
    assert encoding_of([100, 0, 0, 1], sigma=0.0).sizes == (4,)
    assert encoding_of([100, 2, 1, 90], rare=0.0).sizes == (4,)


def test_all_categories_may_be_rare():
    encoding = encoding_of([0, 0, 0], sigma=5.0)
    assert encoding.sizes == (1,)
    drawn = encoding.decode(np.zeros((3000, 1), np.int32), np.random.default_rng(0))
    assert drawn["town"].value_counts().to_numpy() == pytest.approx(1000, abs=100)


def test_a_missing_cell_keeps_the_last_code_however_rare():
    encoding = encoding_of([100, 1, 1, 80], missing=2.5)
    assert codes_of(encoding, ["t0", "t1", "t3", None]) == [0, 2, 1, 3]
    drawn = encoding.decode(np.array([[3], [0], [2]]), np.random.default_rng(0))["town"]
    assert drawn.isna().tolist() == [True, False, False]
    assert encoding.labels("town")[-1] == "missing"


def test_the_target_and_booleans_keep_every_category():
    assert encoding_of([100, 1, 1, 80], target="town").sizes == (4,)
    schema = Schema(columns=(Boolean(name="b"), town(4)))
    noisy = np.array([0.0, 1.0, 1.0, 0.0, 0.0, 0.0])
    assert TableEncoding.from_histogram(schema, noisy, 10.0).sizes == (2, 1)


def test_a_share_that_is_no_number_is_refused():
    for rare in (-1.0, np.nan, np.inf):
        with pytest.raises(DataError, match="rare"):
            encoding_of([1, 2, 3], rare=rare)


def test_a_group_is_restored_by_its_categories_weights():
    groups = Groups(np.array([0, 1, 1, 1]), np.array([1.0, 1.0, 0.0, 3.0]))
    drawn = groups.decode(np.repeat([1, 0], 20_000), np.random.default_rng(0))
    shares = np.bincount(drawn[:20_000], minlength=4) / 20_000
    # Four standard deviations of a share of 20,000 draws.
    assert shares == pytest.approx([0, 0.25, 0, 0.75], abs=4 * np.sqrt(0.1875 / 20_000))
    assert shares[2] == 0 and (drawn[20_000:] == 0).all()


def test_rare_categories_are_drawn_by_the_counts_that_they_were_merged_with():
    masses = np.array([90.0, 1.0, 0.0, 3.0])
    groups = Groups.of(masses, 5.0, unconditional(masses))
    drawn = groups.decode(np.ones(20_000, np.int64), np.random.default_rng(0))
    shares = np.bincount(drawn, minlength=4) / 20_000
    assert shares == pytest.approx([0, 0.25, 0, 0.75], abs=4 * np.sqrt(0.1875 / 20_000))


@given(st.lists(st.floats(0, 50), min_size=1, max_size=30), st.floats(0, 20), st.data())
@settings(deadline=None)
def test_only_rare_categories_on_one_side_of_every_condition_share_a_code(masses, least, data):
    counts = np.array(masses)
    count = data.draw(st.integers(0, 2))
    flags = data.draw(
        st.lists(st.booleans(), min_size=count * len(counts), max_size=count * len(counts))
    )
    sides = np.array(flags, bool).reshape(len(counts), count)
    groups = Groups.of(counts, least, sides)
    codes = np.arange(len(counts)) if groups is None else groups.codes
    for a in range(len(counts)):
        for b in range(a):
            alike = (sides[a] == sides[b]).all() and counts[a] < least and counts[b] < least
            assert (codes[a] == codes[b]) == alike
    if groups is not None:
        assert set(codes) == set(range(groups.size))
        drawn = groups.decode(codes, np.random.default_rng(0))
        assert (codes[drawn] == codes).all()


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0.1, 9), st.booleans()), min_size=1))
def test_the_allowed_share_of_a_group_is_by_weight_and_only_allowed_are_drawn(entries):
    groups, weights, allowed = (np.array(part) for part in zip(*entries, strict=True))
    groups = np.unique(groups, return_inverse=True)[1]
    kept, shares = Groups(groups, weights).restrict(allowed)
    for code in range(groups.max() + 1):
        own = groups == code
        assert shares[code] == pytest.approx(weights[own & allowed].sum() / weights[own].sum())
    drawn = kept.decode(np.repeat(np.arange(len(shares)), 20), np.random.default_rng(0))
    possible = np.repeat(shares, 20) > 0
    assert allowed[drawn[possible]].all()


def test_a_condition_on_categories_that_the_counts_do_not_show_is_met_evenly():
    groups = Groups(np.array([0, 1, 1, 1, 1]), np.array([1.0, 1.0, 0.0, 0.0, 3.0]))
    kept, shares = groups.restrict(np.array([False, False, True, True, False]))
    assert shares.tolist() == [0.0, 0.5]
    drawn = kept.decode(np.ones(4000, np.int64), np.random.default_rng(0))
    assert np.bincount(drawn) == pytest.approx([0, 0, 2000, 2000], abs=150)


def test_groups_survive_the_way_through_json():
    encoding = encoding_of([100, 2.7, 50, 0, 1.1, 90], missing=3.0)
    text = json.dumps(encoding.to_dict(), allow_nan=False)
    back = TableEncoding.from_dict(json.loads(text))
    assert json.dumps(back.to_dict()) == text
    codes = np.random.default_rng(0).integers(0, encoding.sizes[0], (500, 1))
    first, second = (e.decode(codes, np.random.default_rng(1)) for e in (encoding, back))
    pd.testing.assert_frame_equal(first, second)


@pytest.mark.parametrize(
    "damage",
    [
        {"codes": [0, 1, 2]},
        {"codes": [0, 1, 2, 3, 3, -1]},
        {"codes": [0, 4, 1, 4, 4, 9]},
        {"weights": [1.0] * 5},
        {"weights": [1.0, 1, 1, 1, 1, -1]},
        {"weights": [1.0, 1, 1, 1, 1, float("nan")]},
        {"weights": [1.0, 0, 1, 0, 0, 1]},
        {"weights": None},
        {"codes": [0] * 3, "weights": [1.0] * 3},
    ],
)
def test_damaged_groups_are_refused(damage):
    document = encoding_of([100, 2, 50, 0, 1, 90]).to_dict()
    document["columns"][0]["bins"] |= damage
    with pytest.raises(ReleaseError):
        TableEncoding.from_dict(document)


def test_groups_of_the_target_or_of_numbers_are_refused():
    document = encoding_of([100, 2, 50, 0, 1, 90]).to_dict()
    document["schema"]["target"] = "town"
    with pytest.raises(ReleaseError, match="town"):
        TableEncoding.from_dict(document)


# The other more than 16 bits tell apart.
@pytest.mark.parametrize("count", [5_000, 70_000])
def test_any_number_of_categories_goes_there_and_back(count):
    rng = np.random.default_rng(0)
    column = town(count)
    schema = Schema(columns=(column,))
    common = 50
    values = np.where(rng.random(20_000) < 0.9, rng.integers(0, common, 20_000), count - 1)
    layout = HistogramLayout.of(schema)
    noisy = np.bincount(values, minlength=layout.dim) + rng.normal(0, 10, layout.dim)
    encoding = TableEncoding.from_histogram(schema, noisy, 10.0)
    # Of pure noise, about one in 740 is above three standard deviations.
    assert common < encoding.sizes[0] < common + 2 + count / 300
    frame = pd.DataFrame({"town": np.array(column.values, object)[values]})
    codes = encoding.encode(conform(frame, schema))
    drawn = encoding.decode(codes, rng)["town"]
    assert (drawn == frame["town"]).mean() > 0.99
    assert len(encoding.labels("town")) == encoding.sizes[0]
