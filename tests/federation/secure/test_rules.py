"""Under which numbers of owners, dropouts and curious ones a sum is taken part in."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError
from fedsynth.federation.secure.rules import Roster, Rules, list_rules
from fedsynth.privacy.terms import Terms

# Owners, threshold, who may drop, Gaussian noise of a sum over all; one owner curious. The first
# of each is the least threshold, the last lets nobody drop. As docs/secure-sums.md says.
TABLE = """
2 2 0 1.41
3 3 0 1.22
5 4 1 1.29
5 5 0 1.12
10 6 4 1.41
10 8 2 1.20
10 10 0 1.05
30 16 14 1.41
30 24 6 1.14
30 30 0 1.02
"""


@pytest.mark.parametrize("line", TABLE.split("\n")[1:-1])
def test_who_may_drop_and_how_much_more_noise(line):
    cohort, threshold, drop, noise = line.split()
    rules = Rules(int(cohort), int(threshold), 1)
    assert rules in list_rules(int(cohort), 1)
    assert (rules.may_drop, f"{rules.noise:.2f}") == (int(drop), noise)


def test_the_documents_table_is_this_one():
    told = (Path(__file__).parents[3] / "docs" / "secure-sums.md").read_text(encoding="utf-8")
    for line in TABLE.split("\n")[1:-1]:
        assert "| " + " | ".join(line.split()) + " |" in told


@given(cohort=st.integers(2, 100), data=st.data())
def test_the_least_threshold_is_where_two_groups_share_an_honest_owner(cohort, data):
    """Two groups of t among n share 2t - n at least, of whom c may be curious."""
    curious = data.draw(st.integers(0, cohort - 1))
    thresholds = [rules.threshold for rules in list_rules(cohort, curious)]
    assert thresholds == [t for t in range(1, cohort + 1) if 2 * t - cohort > curious]
    for threshold in {0, thresholds[0] - 1, cohort + 1}:
        with pytest.raises(ConfigError, match=r"threshold: .* is not from"):
            Rules(cohort, threshold, curious)


@pytest.mark.parametrize("rules", list_rules(5, 1) + list_rules(6, 2), ids=str)
def test_any_two_groups_share_an_honest_owner_by_enumeration(rules):
    groups = list(combinations(range(rules.cohort), rules.threshold))
    curious = set(range(rules.curious))
    assert all(set(one) & set(other) - curious for one in groups for other in groups)


@pytest.mark.parametrize("numbers", [(1, 1, 0), (101, 101, 1), (3, 3, 3), (3, 3, -1)])
def test_other_cohorts_are_refused(numbers):
    with pytest.raises(ConfigError):
        Rules(*numbers)


@given(cohort=st.integers(2, 100), data=st.data())
def test_whoever_drops_and_tells_the_rest_carries_the_whole_noise(cohort, data):
    """The terms' shares are as many as the honest owners that are sure to be in a sum."""
    curious = data.draw(st.integers(0, cohort - 1))
    rules = data.draw(st.sampled_from(list_rules(cohort, curious)))
    terms = Terms(
        unit="record",
        trust="distributed",
        clip=1.0,
        noise_multiplier=1.0,
        survivors=rules.threshold,
        curious=rules.curious,
    )
    honest = rules.cohort - rules.may_drop - rules.curious
    assert terms.shares == rules.shares == honest >= 1
    assert rules.noise == pytest.approx(terms.summed_scale(cohort) / terms.noise.wider)


KEYS = {"a": bytes(32), "b": b"b" * 32}


@pytest.mark.parametrize(
    "keys, said",
    [
        ({"a": bytes(32)}, "1 owners' keys for a cohort of 2"),
        ({**KEYS, "c": b"c" * 32}, "3 owners' keys"),
        ({"a": bytes(32), "b": bytes(32)}, "the same key"),
        ({"a": bytes(32), "b": b"b"}, "b: a public Ed25519 key has 32 bytes"),
    ],
)
def test_a_roster_has_a_key_of_its_own_for_each_owner(keys, said):
    with pytest.raises(ConfigError, match=said):
        Roster("job", keys, Rules(2, 2, 1))


def test_a_roster_is_told_apart_by_all_that_owners_agree_on():
    rosters = [
        Roster("job", KEYS, Rules(2, 2, 1)),
        Roster("bob", KEYS, Rules(2, 2, 1)),
        Roster("job", KEYS, Rules(2, 2, 0)),
        Roster("job", {"a": KEYS["a"], "c": KEYS["b"]}, Rules(2, 2, 1)),
        Roster("job", {"a": KEYS["b"], "b": KEYS["a"]}, Rules(2, 2, 1)),
    ]
    contexts = {
        one.context(round, attempt) for one in rosters for round in (0, 1) for attempt in (0, 1)
    }
    assert len(contexts) == 4 * len(rosters)
