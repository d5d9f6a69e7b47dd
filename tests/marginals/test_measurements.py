"""What measurements say of a marginal without a model."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.errors import ConfigError
from fedsynth.marginals import Measurement, estimate_marginal, estimate_total


def test_weights_by_hand():
    """A pair of 2 by 3 cells with sigma 3 against its row's own with sigma 1.

    Summed over three cells the pair's variance is 27, the other's 1: weights 1/28 and 27/28.
    """
    pair = Measurement((0, 1), np.array([[1.0, 2, 3], [4, 5, 6]]), 3.0)
    single = Measurement((0,), np.array([34.0, 15.0]), 1.0)
    estimate = estimate_marginal([pair, single], (0,))
    assert estimate is not None
    np.testing.assert_allclose(estimate.values, [(6 + 27 * 34) / 28, 15.0])
    assert estimate.sigma == pytest.approx(np.sqrt(27 / 28))


def test_columns_that_nothing_holds_are_unknown():
    pair = Measurement((0, 1), np.zeros((2, 2)), 1.0)
    assert estimate_marginal([pair], (0, 2)) is None
    assert estimate_marginal([], (0,)) is None


def test_an_exact_table_overrules_noisy_ones():
    exact, noisy = Measurement((0,), np.array([5.0, 6]), 0.0), Measurement((0,), np.zeros(2), 1.0)
    estimate = estimate_marginal([noisy, exact], (0,))
    assert estimate is not None
    assert estimate.sigma == 0
    np.testing.assert_array_equal(estimate.values, [5, 6])


def test_the_deviation_is_that_of_the_estimate():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 50, (3, 4, 2)).astype(float)
    errors = []
    for _ in range(3000):
        ms = [
            Measurement((0, 1, 2), truth + rng.normal(0, 2, truth.shape), 2.0),
            Measurement((1, 2), truth.sum(axis=0) + rng.normal(0, 5, (4, 2)), 5.0),
            Measurement((0, 1), truth.sum(axis=2) + rng.normal(0, 4, (3, 4)), 4.0),
        ]
        estimate = estimate_marginal(ms, (1,))
        assert estimate is not None
        errors.append(estimate.values - truth.sum(axis=(0, 2)))
    measured = np.concatenate(errors)
    assert estimate.sigma == pytest.approx(measured.std(), rel=0.03)
    assert abs(measured.mean()) < 5 * estimate.sigma / np.sqrt(measured.size)


def test_the_total_weighs_every_table_by_its_cells():
    """Sums of 4 cells with sigma 1 and of 9 with sigma 2: variances 4 and 36, weights 9 to 1."""
    ms = [
        Measurement((0, 1), np.full((2, 2), 25.0), 1.0),
        Measurement((2,), np.full(9, 10.0), 2.0),
    ]
    assert estimate_total(ms) == pytest.approx((9 * 100 + 90) / 10)
    assert estimate_total([Measurement((0,), np.array([-5.0, 1.0]), 1.0)]) == 1.0
    assert estimate_total([]) == 1.0


@pytest.mark.parametrize(
    ("values", "sigma"),
    [([1.0, np.nan], 1.0), ([np.inf, 0], 1.0), ([1, 2], -1.0), ([1, 2], np.nan), ([1, 2], np.inf)],
)
def test_a_measurement_of_no_number_is_refused(values, sigma):
    with pytest.raises(ConfigError, match=r"columns \[4\]"):
        Measurement((4,), np.array(values, float), sigma)


def test_a_table_is_not_summed_onto_columns_it_lacks():
    with pytest.raises(ConfigError, match="cannot be summed"):
        Measurement((0, 1), np.zeros((2, 2)), 1.0).project((0, 2))


def test_cells_of_different_noise_are_weighed_one_by_one():
    """Variances 1 and 4 against 4 and 1: weights 4/5 and 1/5 in the first cell."""
    one = Measurement((0,), np.array([10.0, 20]), (1.0, 2.0))
    two = Measurement((0,), np.array([20.0, 10]), (2.0, 1.0))
    estimate = estimate_marginal([one, two], (0,))
    assert estimate is not None
    np.testing.assert_allclose(estimate.values, [12, 12])
    np.testing.assert_allclose(estimate.sigma, [0.8**0.5] * 2)
    assert one.project(()).sigma == pytest.approx(5**0.5)


def test_a_deviation_for_every_cell_or_for_all():
    with pytest.raises(ConfigError, match="one for all cells or one for each"):
        Measurement((0,), np.zeros(3), (1.0, 2.0))
