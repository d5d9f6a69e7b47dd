"""How far a person's rows count, as budgets say it."""

from __future__ import annotations

import math

import pytest

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.terms import Terms
from fedsynth.queries.terms import HAIR, terms_for_everyone
from fedsynth.queries.votes import vote_terms


def persons(**given) -> Budget:
    return Budget(epsilon=1, unit="person", trust="central", **given)


@pytest.mark.parametrize(
    ("given", "l2", "l1"),
    [
        ({}, 0.85, 1.0),
        ({"person_clip": 1}, 1.0, 1.0),
        ({"weigh": "row", "person_clip": 2.5}, 2.5, 2.5),
    ],
)
def test_a_clip_is_so_many_rows_and_in_l1_never_less_than_the_mean_is_long(given, l2, l1):
    budget = persons(**given)
    assert (budget.reach("l2"), budget.reach("l1")) == (l2, l1)
    assert terms_for_everyone(budget, 3.0, 1.0, 1).clip == pytest.approx(3 * l2 * HAIR)
    assert terms_for_everyone(budget, 3.0, 1.0, 1, "laplace").clip == pytest.approx(3 * l1 * HAIR)
    # A person exchanges one group's row, as a record does.
    record = Budget(epsilon=1, trust="central")
    assert vote_terms(budget, 1.0, 1, 9, "gaussian").clip == (
        vote_terms(record, 1.0, 1, 9, "gaussian").clip
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"weigh": "row", "person_share": 0}, "needs person_clip"),
        ({"person_share": 1}, "0 or a share below 1"),
        ({"person_share": -0.1}, "0 or a share below 1"),
        ({"unit": "record", "person_share": 0.1}, "person_share is for unit: person"),
        ({"weigh": "house"}, "weigh cannot be 'house'"),
        ({"person_clip": 0}, "above 0"),
        ({"person_clip": -1}, "above 0"),
        ({"person_clip": math.inf}, "above 0"),
        ({"person_clip": math.nan}, "above 0"),
        ({"person_clip": 2}, "at most 1, or weigh: row"),
        ({"unit": "record", "weigh": "row"}, "weigh is for unit: person"),
        ({"unit": "client", "person_clip": 1}, "person_clip is for unit: person"),
    ],
)
def test_a_clip_or_weights_that_make_no_sense_are_refused_with_what_to_do(given, said):
    with pytest.raises(ConfigError, match=said):
        persons(**given) if "unit" not in given else Budget(epsilon=1, **given)


@pytest.mark.parametrize(("unit", "weigh"), [("person", None), ("record", "row"), ("person", "x")])
def test_terms_say_how_a_persons_rows_are_weighed_and_no_others_do(unit, weigh):
    with pytest.raises(PrivacyError, match="cannot be weighed"):
        Terms(unit=unit, trust="central", clip=1, noise_multiplier=1, weigh=weigh)
