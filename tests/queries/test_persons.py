"""The histogram of rows a person: what it counts, what follows from it, and the clip it chooses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from fedsynth.errors import ReleaseError
from fedsynth.queries.persons import RowsAPerson, price_for
from fedsynth.queries.tasks.persons import BINS, bins_of

# Persons of one to fifteen rows, six on average.
MANY = np.array([547, 487, 442, 398, 368, 330, 294, 269, 258, 234, 216, 224, 240, 233, 171])


def histogram(persons: np.ndarray, sigma: float = 0.0) -> RowsAPerson:
    """Of so many persons of 1, 2, .. rows."""
    bins = bins_of(np.arange(1, len(persons) + 1))
    return RowsAPerson(tuple(np.bincount(bins, persons, BINS).tolist()), sigma)


def test_bins_double_and_the_last_has_all_that_have_more():
    rows = np.array([1, 2, 3, 4, 5, 8, 9, 16, 17, 32_768, 32_769, 10**9])
    assert bins_of(rows).tolist() == [0, 1, 2, 2, 3, 3, 4, 4, 5, 15, 16, 16]


def test_persons_and_rows_follow_from_the_histogram():
    known = histogram(MANY)
    assert known.persons == MANY.sum() and known.most == 16
    assert known.sizes.sum() == pytest.approx(1) and (known.sizes >= 0).all()
    # Bins of one number of rows are exact, the others right in sum.
    assert known.sizes[:2] * known.persons == pytest.approx(MANY[:2])
    assert known.sizes[4:8].sum() * known.persons == pytest.approx(MANY[4:8].sum())
    assert known.rows == pytest.approx(MANY @ np.arange(1, 16), rel=0.02)
    assert known.mean == pytest.approx(known.rows / known.persons)


def test_bins_within_the_noise_are_empty_and_noise_alone_is_one_row_each():
    counts = np.zeros(BINS)
    counts[[0, 1, 5, 16]] = 900, -30, 81, 79
    known = RowsAPerson(tuple(counts), 20.0)
    assert known.most == 32 and len(known.sizes) == 32
    assert known.persons == 951 and known.deviation == pytest.approx(20 * math.sqrt(6))
    assert known.sizes[1] == 0 and known.sizes[0] < 1
    nobody = RowsAPerson((-5.0,) * BINS, 20.0)
    assert (nobody.persons, nobody.sizes.tolist(), nobody.choose_clip(1)) == (1.0, [1.0], 1.0)


def test_the_price_is_what_a_clip_of_so_many_rows_costs_beside_one_row_a_person():
    known = histogram(np.array([100, 100]))
    assert (known.price(1), known.price(2)) == (1.0, pytest.approx(2 * 200 / 300))
    every = histogram(np.array([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 10]))
    assert every.price(9) == pytest.approx(1.0)


@pytest.mark.parametrize(("epsilon", "wanted"), [(0.1, 1.2), (1, 1.2), (2, 1.35), (9, 1.5)])
def test_a_clip_is_raised_until_its_price_is_reached(epsilon, wanted):
    assert price_for(epsilon) == pytest.approx(wanted)
    known = histogram(MANY)
    clip = known.choose_clip(epsilon)
    assert clip == round(clip, 1) and known.price(clip) <= wanted < known.price(clip + 0.11)


def test_a_clip_is_not_above_what_anybody_has():
    four = histogram(np.array([0, 0, 0, 500]))
    assert 1 <= four.choose_clip(1) <= four.choose_clip(9) <= 4


def test_a_damaged_histogram_is_refused_and_a_whole_one_read():
    known = histogram(MANY, 3.5)
    assert RowsAPerson.from_dict(known.to_dict()) == known
    whole = known.to_dict()
    for damage in (
        {"counts": [1.0]},
        {"sigma": -1.0},
        {"sigma": "much"},
        {"counts": [math.nan] * BINS},
        {"counts": 3},
    ):
        with pytest.raises(ReleaseError, match="damaged"):
            RowsAPerson.from_dict({**whole, **damage})
    with pytest.raises(ReleaseError, match="damaged"):
        RowsAPerson.from_dict({})
