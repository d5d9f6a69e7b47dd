import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError
from fedsynth.methods.sampling.labels import draw_labels
from fedsynth.queries.counting import Counts
from fedsynth.queries.estimates import class_profiles, label_frequencies, to_simplex
from fedsynth.schema import Boolean, Categorical, Integer, Schema
from fedsynth.schema.target import conditions
from tests.methods.small import SCHEMA

finite = st.floats(-100, 100)


@given(arrays(np.float64, st.integers(1, 8), elements=finite), st.floats(0.1, 100))
def test_the_projection_lies_on_the_simplex(values, total):
    projection = to_simplex(values, total)
    assert (projection >= 0).all()
    assert projection.sum() == pytest.approx(total)


@given(arrays(np.float64, 4, elements=finite), arrays(np.float64, 4, elements=st.floats(0.01, 1)))
def test_no_point_of_the_simplex_is_nearer_than_the_projection(values, other):
    projection = to_simplex(values, 10.0)
    other = 10 * other / other.sum()
    assert np.sum((projection - values) ** 2) <= np.sum((other - values) ** 2) + 1e-6


def test_the_projection_is_what_a_solver_finds():
    values = np.array([3.0, -2.0, 0.5, 1.0])
    solved = minimize(
        lambda x: np.sum((x - values) ** 2),
        np.full(4, 0.5),
        bounds=[(0, None)] * 4,
        constraints={"type": "eq", "fun": lambda x: x.sum() - 2},
    )
    np.testing.assert_allclose(to_simplex(values, 2.0), solved.x, atol=1e-5)


def test_many_vectors_are_projected_as_each_alone():
    values, totals = np.random.default_rng(0).normal(size=(50, 6)), np.geomspace(1e-3, 1e3, 50)
    for total in (totals, np.full(50, 2.0)):
        alone = [to_simplex(row, float(own)) for row, own in zip(values, total, strict=True)]
        np.testing.assert_array_equal(to_simplex(values, total), alone)
    np.testing.assert_array_equal(to_simplex(values, 2.0), alone)


def test_label_frequencies_survive_counts_below_zero():
    frequencies, total = label_frequencies(Counts(np.array([-5.0, 20.0, 5.0]), 3.0))
    assert total == 20
    assert frequencies.sum() == pytest.approx(1)
    assert frequencies[0] == 0
    frequencies, total = label_frequencies(Counts(np.array([-5.0, -20.0]), 3.0))
    assert total == 1
    assert frequencies.sum() == pytest.approx(1)


def test_exact_tables_give_exact_profiles():
    schema = Schema(
        columns=[
            Categorical(name="a", values=["x", "y", "z"]),
            Boolean(name="b"),
            Categorical(name="t", values=["p", "q"]),
        ],
        target="t",
    )
    noisy = np.array([3.0, 2, 5, 4, 6, 7, 3])
    encoding = TableEncoding.from_histogram(schema, noisy, 0.0)
    by_a = np.array([[2.0, 1, 4], [1, 1, 1]])
    by_b = np.array([[3.0, 4], [1, 2]])
    counts = Counts(np.concatenate([by_a.ravel(), by_b.ravel()]), 0.0)
    profiles, shares = class_profiles(counts, encoding, 2, np.array([0, 6]))
    wanted = np.hstack([by_a / [[7], [3]], by_b / [[7], [3]]])
    np.testing.assert_allclose(profiles, wanted, atol=1e-6)
    np.testing.assert_allclose(shares, [0.7, 0.3])


def test_a_class_rarer_than_the_noise_takes_the_profile_of_all():
    schema = Schema(
        columns=[
            Categorical(name="a", values=["x", "y"]),
            Categorical(name="t", values=["p", "q"]),
        ],
        target="t",
    )
    encoding = TableEncoding.from_histogram(schema, np.array([500.0, 500, 1000, 0]), 0.0)
    counts = Counts(np.array([900.0, 100, -3, 2]), 50.0)
    profiles, _ = class_profiles(counts, encoding, 1, np.array([0]))
    np.testing.assert_allclose(profiles[1], profiles[0], atol=0.05)
    assert (profiles > 0).all()


def test_where_fixes_every_label_and_its_spelling_may_be_text():
    rng = np.random.default_rng(0)
    labels = draw_labels(SCHEMA, np.array([0.7, 0.3]), 50, {"outcome": "ill"}, None, rng)
    assert (labels == 1).all()
    schema = Schema(
        columns=[Integer(name="x", lower=0, upper=9), Categorical(name="y", values=[0, 1])],
        target="y",
    )
    assert (draw_labels(schema, np.ones(2) / 2, 5, {"y": "1"}, None, rng) == 1).all()


def test_frequencies_and_proportions_decide_the_shares():
    rng = np.random.default_rng(0)
    drawn = draw_labels(SCHEMA, np.array([0.7, 0.3]), 100_000, None, None, rng)
    # Six standard deviations: a false alarm in 5e8 runs.
    assert abs(np.mean(drawn) - 0.3) < 6 * np.sqrt(0.21 / 100_000)
    drawn = draw_labels(SCHEMA, np.array([0.7, 0.3]), 1000, None, {"ill": 1}, rng)
    assert (drawn == 1).all()


@pytest.mark.parametrize(
    ("where", "proportions", "said"),
    [
        ({"age": 3}, None, "target 'outcome' alone"),
        ({"outcome": "il"}, None, "did you mean 'ill'"),
        ({"outcome": "ill"}, {"ill": 1}, "either where or proportions"),
        (None, {"ill": -1, "well": 2}, "not negative"),
        (None, {"ill": 0.0}, "not all zero"),
    ],
)
def test_conditions_that_cannot_be_met_are_refused(where, proportions, said):
    rng = np.random.default_rng(0)
    with pytest.raises(ConfigError, match=said):
        draw_labels(SCHEMA, np.array([0.7, 0.3]), 5, where, proportions, rng)


@pytest.mark.parametrize(
    ("columns", "target", "why"),
    [
        ([Integer(name="x", lower=0, upper=9)], None, "names no categorical target"),
        ([Integer(name="x", lower=0, upper=9)], "x", "names no categorical target"),
        ([Categorical(name="y", values=[0, 1])], "y", "target is the only column"),
    ],
)
def test_a_model_without_classes_refuses_conditions_and_says_truly_why(columns, target, why):
    schema = Schema(columns=columns, target=target)
    assert conditions(schema) == 0
    for asked in ({"where": {"y": 1}}, {"proportions": {1: 1.0}}):
        full = {"where": None, "proportions": None, **asked}
        with pytest.raises(ConfigError, match=f"no classes to condition on.*{why}"):
            draw_labels(schema, np.zeros(0), 5, **full, rng=np.random.default_rng(0))
