"""Replies in any order: one sum, to the last bit, and no answer stays longer than it must."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import FederationError
from fedsynth.federation.request import Answer, Incident, Request
from fedsynth.federation.runtimes.gathering import Gathering
from tests.federation.vectors import terms

NAMES = tuple("abcdef")
ASKED = Request("t", terms(), 2, job="job", round=3)
REFUSES = Incident("x", 3, "refuses")


def answer(name: str, values: object = None) -> Answer:
    rng = np.random.default_rng(ord(name))
    made = rng.normal(size=2) * 10.0 ** rng.integers(-9, 9) if values is None else values
    return Answer(name, "job", 3, np.asarray(made, np.float64))


@given(order=st.permutations(NAMES), refusing=st.sets(st.sampled_from(NAMES), max_size=3))
def test_whoever_is_first_the_sum_is_the_same_to_the_last_bit(order, refusing):
    gathering = Gathering(ASKED, NAMES, single=False)
    for name in order:
        gathering.take(name, REFUSES if name in refusing else answer(name))
        # Held are those alone that somebody before them is waited for.
        left = set(gathering.missing)
        assert all(any(first in left for first in NAMES[: NAMES.index(held)])
                   for held in gathering._early)  # fmt: skip
    assert not gathering._early and not gathering.missing
    wanted = np.zeros(2)
    for name in NAMES:
        if name not in refusing:
            wanted += answer(name).values
    summed = gathering.summed
    assert summed.total.tobytes() == wanted.tobytes()
    assert summed.answered == len(NAMES) - len(refusing)
    assert len(summed.incidents) == len(refusing)


@given(order=st.permutations(NAMES))
def test_messages_are_brought_in_the_order_of_the_cohort(order):
    gathering = Gathering(ASKED, NAMES, single=True)
    for name in order:
        gathering.take(name, answer(name))
    assert [one.client for one in gathering.answers] == list(NAMES)


def test_a_second_reply_or_a_strangers_changes_nothing():
    gathering = Gathering(ASKED, "ab", single=False)
    for name in ("a", "a", "x", "b", "b"):
        gathering.take(name, answer(name, [1, 1]))
    assert gathering.summed.total.tolist() == [2, 2]


@pytest.mark.parametrize(
    ("values", "reason"), [([1, np.nan], "not finite"), ([1, np.inf], "not finite"), ([1], "shape")]
)
def test_an_answer_that_is_none_is_left_out_and_told(values, reason):
    gathering = Gathering(ASKED, "ab", single=False)
    gathering.take("a", answer("a", values))
    gathering.take("b", answer("b", [1, 2]))
    summed = gathering.summed
    assert summed.total.tolist() == [1, 2] and summed.answered == 1
    assert [one.client for one in summed.incidents] == ["a"] and reason in summed.incidents[
        0
    ].reason


@pytest.mark.parametrize("others", ["did not answer", "failed: no answer within 1 s", None])
def test_what_all_fail_at_is_no_clients_fault_unless_somebody_was_not_heard(others):
    gathering = Gathering(ASKED, "abc", single=False)
    gathering.take("a", REFUSES)
    gathering.take("b", Incident("b", 3, "failed: ran out of memory"))
    gathering.take("c", Incident("c", 3, others or "failed: ran out of memory"))
    if others is not None:
        assert gathering.summed.answered == 0
        return
    with pytest.raises(FederationError, match="every client that was asked failed: ran out"):
        _ = gathering.summed
