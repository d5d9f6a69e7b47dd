"""What is said of errors holds about as often as it says."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.errors import ConfigError
from fedsynth.marginals import Domain, Measurement, fit
from fedsynth.methods.marginal.errors import bound_errors, tabulate_errors
from fedsynth.methods.marginal.mst import MST
from fedsynth.privacy.budget import Budget
from tests.methods.small import SCHEMA, owners

NAMES = ("a", "b", "c")
TRUTH = np.array([[40.0, 300, 5], [120, 80, 55]])
SIGMA = 10.0


def measured(rng):
    """The table of a and b, and that of c alone, with noise."""
    pair = TRUTH + rng.normal(0, SIGMA, TRUTH.shape)
    alone = np.array([350.0, 250]) + rng.normal(0, SIGMA, 2)
    return [Measurement((0, 1), pair, SIGMA), Measurement((2,), alone, SIGMA)]


@pytest.mark.parametrize("level", [0.5, 0.95])
def test_errors_hold_as_often_as_they_say(level):
    """Where the model lies on what was measured, just as often; elsewhere no seldomer."""
    rng = np.random.default_rng(1)
    exact, of_model = [], []
    for draw in range(300):
        measurements = measured(rng)
        pair = measurements[0]
        off = np.abs(pair.values - TRUTH)
        exact.append((off <= bound_errors(pair.values, pair, level)).mean())
        if draw < 30:
            model = fit(Domain((2, 3, 2)), measurements, iterations=60)
            counts = model.marginal((0, 1)) * model.total
            of_model.append((np.abs(counts - TRUTH) <= bound_errors(counts, pair, level)).mean())
    # 1,800 cells: four standard deviations of their share are .047 at most.
    assert np.mean(exact) == pytest.approx(level, abs=0.047)
    assert np.mean(of_model) >= level - 0.047


def test_what_nobody_measured_is_said_to_be_the_models_alone():
    measurements = measured(np.random.default_rng(0))
    model = fit(Domain((2, 3, 2)), measurements, iterations=20)
    table = tabulate_errors(model, measurements, NAMES, None, 0.95).set_index("columns")
    assert list(table.index) == ["a", "b", "c", "a, b"]
    # Noise of 10 a cell: a sums three cells.
    assert table.loc["a", "error"] >= 1.96 * 10 * 3**0.5 - 1e-6
    assert table["cells"].tolist() == [2, 3, 2, 6]
    assert table.loc["c", "use"] == "well" and table.loc["a, b", "use"] == "roughly"
    asked = tabulate_errors(model, measurements, NAMES, [(1, 2)], 0.95)
    assert asked["use"].tolist() == ["not measured"] and asked["error"].isna().all()


def test_a_fitted_synthesizer_tells_of_columns_and_pairs_that_are_named():
    synth = MST(SCHEMA).fit(owners(300), Budget(epsilon=2.0, trust="central"), seed=1)
    table = synth.errors()
    names = [column.name for column in SCHEMA.modelled]
    assert table["columns"].tolist()[: len(names)] == names
    assert (table["worst"] >= table["error"]).all()
    assert (synth.errors(level=0.5)["error"] < table["error"]).all()
    named = synth.errors(["age", ["smoker", "outcome"]])
    assert named["columns"].tolist() == ["age", "smoker, outcome"]
    with pytest.raises(ConfigError, match="did you mean 'smoker'"):
        synth.errors([["smokr", "age"]])
