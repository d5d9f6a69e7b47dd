"""Whatever bytes come at whatever step: what is raised is a FedsynthError, and nothing is lost."""

from __future__ import annotations

import contextlib
import copy
import functools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import FederationError, FedsynthError, PrivacyError
from fedsynth.federation.secure import masks
from fedsynth.federation.secure.frames import (
    MOST_PARTS,
    Part,
    Step,
    copy_vector,
    read,
    read_members,
    read_vector,
    write,
)
from fedsynth.federation.secure.state import Session, State
from tests.federation.secure.owners import exchange, make
from tests.federation.secure.toys import toys

MASK, NAME = masks.mask, "owner 0"
STEPS = st.sampled_from(Step)
# Threshold of three owners, and the steps that there are then.
ASKED = st.sampled_from([(2, step) for step in Step] + [(3, Step.KEYS), (3, Step.MASKED)])


@functools.cache
def reached(threshold):
    """Owners, and for each step: server, what owner 0 had kept, was asked, and answered."""
    found = {}
    with toys(MASK):
        leader, owners = make(3, threshold)
        leader.begin(0, owners.dim, following=1)
        opened = None
        while not opened:
            step, before, kept = leader._step, copy.deepcopy(leader), owners.kept.get(NAME)
            request = leader.requests()[NAME]
            found[step] = before, kept, request, owners.answer(NAME, request)
            opened = exchange(leader, owners)
    return owners, found


def damaged(frame):
    """Cut off, lengthened, with a byte changed, of another step, round or attempt; or anything."""
    places = st.integers(0, len(frame) - 1)
    numbers = st.integers(0, 2) | st.integers(0, 2**64 - 1)

    def change(place, byte):
        return frame[:place] + bytes([byte]) + frame[place + 1 :]

    def rename(step, round, attempt):
        first, *rest = read(frame)
        return write([Part(step, round, attempt, first.fields), *rest])

    return (
        st.builds(change, places, st.integers(0, 255))
        | st.builds(frame.__getitem__, st.builds(slice, places))
        | st.builds(frame.__add__, st.binary(min_size=1, max_size=40))
        | st.builds(rename, STEPS, numbers, numbers)
        | st.binary(max_size=60)
    )


@given(data=st.data(), asked=ASKED)
def test_an_owner_raises_our_own_errors_and_goes_on(data, asked):
    threshold, step = asked
    owners, steps = reached(threshold)
    _, kept, request, answer = steps[step]
    owners.kept = {NAME: kept} if kept else {}
    hostile = data.draw(damaged(request))
    with toys(MASK):
        owners.start(NAME)
        before = owners.parties[NAME]._state
        try:
            owners.answer(NAME, hostile)
        except FedsynthError as error:
            assert str(error)
            assert owners.parties[NAME]._state is before
            again = owners.answer(NAME, request)
            # Keys, which ride on LIVING, or on MASKED, are fresh.
            assert again == answer or step in (
                Step.KEYS,
                {2: Step.LIVING, 3: Step.MASKED}[threshold],
            )


@given(data=st.data(), asked=ASKED)
def test_a_server_raises_our_own_errors_and_still_takes_the_true_answer(data, asked):
    threshold, step = asked
    _, steps = reached(threshold)
    leader, _, _, answer = steps[step]
    leader = copy.deepcopy(leader)
    with toys(MASK):
        try:
            leader.receive(NAME, data.draw(damaged(answer)))
        except FederationError as error:
            assert str(error)
            leader.receive(NAME, answer)
        assert NAME not in leader.requests()


@given(st.binary(max_size=200))
def test_a_frame_is_read_or_refused(frame):
    with contextlib.suppress(FederationError):
        assert write(read(frame)) == frame


PARTS = st.builds(
    Part,
    STEPS,
    st.integers(0, 2**64 - 1),
    st.integers(0, 2**64 - 1),
    st.lists(st.binary(max_size=20), max_size=3).map(tuple),
)


@given(st.lists(PARTS, min_size=1, max_size=MOST_PARTS))
def test_what_was_written_is_read(parts):
    assert read(write(parts)) == tuple(parts)


@pytest.mark.parametrize("field", [b"", bytes(2), bytes(4), bytes((0, 1, 2))])
def test_a_list_of_owners_has_one_form(field):
    with pytest.raises(FederationError, match="a list of owners is damaged"):
        read_members(field, 3)
    assert read_members(bytes((1, 0, 1)), 3) == (0, 2)


@given(st.data())
def test_a_kept_state_that_was_damaged_or_is_anothers_is_refused(data):
    sessions = st.none() | st.builds(Session, st.integers(0, 9), st.integers(0, 9), st.binary())
    state = data.draw(st.builds(State, st.integers(0, 9), st.integers(-1, 9), sessions, sessions))
    written = state.write(b"owner")
    assert State.read(written, b"owner") == state
    for one, whose in ((data.draw(damaged_state(written)), b"owner"), (written, b"other")):
        with pytest.raises(PrivacyError, match="damaged, or of another owner"):
            State.read(one, whose)


def damaged_state(written):
    """Any other bytes near it."""
    places = st.integers(0, len(written) - 1)
    flip = lambda at, bit: written[:at] + bytes([written[at] ^ 1 << bit]) + written[at + 1 :]  # noqa: E731
    return st.builds(flip, places, st.integers(0, 7)) | st.builds(
        written.__getitem__, st.builds(slice, places)
    )


@pytest.mark.parametrize(
    "values",
    [np.ones(3), np.ones(3, int), np.ones(3, "u2"), np.ones((1, 3), "u8"), np.ones(0, "u8")],
)
def test_other_than_one_row_of_uint32_or_uint64_is_no_contribution(values):
    with pytest.raises(FederationError, match="rows of uint32 or uint64"):
        copy_vector(values)


@pytest.mark.parametrize("kind", ["<u4", ">u4", "u8", ">u8"])
def test_numbers_cross_as_little_endian_whatever_they_are_here(kind):
    values = np.arange(5, dtype=kind)
    written, copied = copy_vector(values)
    assert np.array_equal(read_vector(written, copied.tobytes()), values)
