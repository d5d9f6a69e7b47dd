"""Settings of a synthesizer chosen on public rows."""

from __future__ import annotations

import numpy as np
import pytest

import fedsynth as fs
from fedsynth.errors import ConfigError, DataError
from fedsynth.federation.simulation import repeats
from fedsynth.tuning import selecting
from tests.small_jobs import SCHEMA, table

SMALL = fs.Schema.from_dict(SCHEMA)
PUBLIC = table(400, 5)
BUDGET = fs.Budget(epsilon=3.0, delta=1e-4)
# Nearly all of the budget for the first question leaves its pairs nothing but noise.
GOOD, BAD = fs.MST(SMALL), fs.MST(SMALL, histogram_share=0.99999)


@pytest.fixture(scope="module")
def selected():
    return fs.select([BAD, GOOD], PUBLIC, BUDGET, 3, records=3000)


def test_what_is_better_every_time_is_chosen_and_stays_unfitted(selected):
    assert selected.chosen == 1 and selected.scores.shape == (2, 3)
    assert (selected.scores[1] > selected.scores[0]).all()
    assert selected.best.settings == GOOD.settings
    for one in (selected.best, GOOD, BAD):
        with pytest.raises(ConfigError, match="fit"):
            one.sample(1)


def test_nothing_private_is_asked_and_a_choice_can_be_repeated(selected):
    before = dict(repeats._JOBS)
    again = fs.select([BAD, GOOD], PUBLIC, BUDGET, 3, records=3000)
    assert before == repeats._JOBS
    assert np.array_equal(again.scores, selected.scores)


@pytest.mark.parametrize(
    ("scores", "chosen"),
    [
        ([[0.5, 0.5], [0.6, 0.4], [0.9, 0.49]], 0),
        ([[0.5, 0.5], [0.6, 0.6], [0.9, 0.7]], 2),
        ([[0.5, 0.5], [0.51, 0.51], [0.99, 0.5]], 1),
    ],
)
def test_the_first_is_kept_unless_another_is_better_every_time(scores, chosen):
    assert selecting._choose(np.array(scores)) == chosen


def test_it_is_shown_with_what_was_set(selected):
    shown = repr(selected)
    assert shown.startswith("Candidate 1 of 2, by 3 fits of each to 3,000 public rows")
    assert "histogram_share=0.99999" in shown and "defaults" in shown
    assert "nothing private was asked" in shown


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"candidates": [GOOD]}, ConfigError, "two synthesizers"),
        ({"candidates": [GOOD, "aim"]}, ConfigError, "two synthesizers"),
        ({"candidates": [GOOD, fs.MST(SMALL.drop("age"))]}, ConfigError, "different schemas"),
        ({"repeats": 1}, ConfigError, "repeats"),
        ({"holdout": 1.0}, ConfigError, "holdout"),
        ({"public": PUBLIC.head(3)}, DataError, "too few"),
        ({"score": lambda drawn, held: None}, ConfigError, "finite number"),
    ],
)
def test_what_cannot_be_chosen_among_is_refused(change, error, said):
    given = {"candidates": [GOOD, BAD], "public": PUBLIC, **change}
    with pytest.raises(error, match=said):
        fs.select(given.pop("candidates"), given.pop("public"), BUDGET, 3, **given)
