"""Frames: reading undoes writing, and whatever else comes is refused with a code."""

from __future__ import annotations

import json
import pickle
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from safetensors.numpy import save

from fedsynth.errors import FederationError
from fedsynth.federation import wire
from fedsynth.federation.request import Answer, Request
from fedsynth.federation.wire import Frame, FrameError, read, write
from fedsynth.privacy.sampling import Poisson
from tests.federation.vectors import terms

WORDS = st.text(max_size=8)
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | NUMBERS | WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=8,
)
KINDS = st.sampled_from(["<f8", "<f4", "<i8", "<u4", "u1", "?"])
ARRAYS = st.dictionaries(
    WORDS.filter(lambda name: name != "__metadata__"),
    KINDS.flatmap(lambda kind: arrays.arrays(kind, arrays.array_shapes(min_dims=0, min_side=0))),
    max_size=3,
)
TERMS = st.sampled_from(
    [
        terms(),
        terms(unit="record", trust="distributed", sampling=Poisson(0.1), survivors=3, curious=1),
        terms(unit="record", trust="local", mechanism="laplace", norm="l1"),
        terms(mechanism="exponential", norm="l1"),
    ]
)
COUNTS = st.none() | st.integers(1, 10**6)
REQUESTS = st.builds(
    Request,
    task=WORDS,
    terms=TERMS,
    dim=st.integers(1, 10**9),
    kept=st.integers(0, 9),
    arrays=ARRAYS,
    settings=st.dictionaries(WORDS, PLAIN, max_size=3),
    job=WORDS,
    round=st.integers(0, 10**6),
    steps=COUNTS,
    participations=COUNTS,
    most_records=COUNTS,
)
ASK = Request("aim", terms(), 3, arrays={"x": np.arange(6.0).reshape(2, 3)}, job="job")


def code_of(body: bytes, most: int = wire.MOST_BYTES) -> str:
    with pytest.raises(FederationError) as caught:
        frame = read(body, most)
        wire.unpack_request(frame) if frame.kind == "ask" else wire.unpack_answer(frame, "north")
    assert isinstance(caught.value, FrameError)
    return caught.value.code


def framed(head: bytes, body: bytes = b"") -> bytes:
    return wire.MAGIC + len(head).to_bytes(4, "big") + head + body


def spelled(**plain: object) -> bytes:
    return json.dumps(plain, separators=(",", ":")).encode()


@given(request=REQUESTS)
def test_reading_a_request_undoes_writing_it(request):
    body = wire.pack_request(request)
    again = wire.unpack_request(read(body))
    assert replace(again, arrays={}) == replace(request, arrays={})
    assert again.digest == request.digest
    assert again.arrays.keys() == request.arrays.keys()
    for name, array in request.arrays.items():
        assert again.arrays[name].dtype == array.dtype
        assert again.arrays[name].shape == array.shape
        assert again.arrays[name].tobytes() == array.tobytes()
    assert wire.pack_request(again) == body


@given(values=arrays.arrays("<f8", st.integers(0, 20)), round=st.integers(0, 10**9))
def test_reading_an_answer_undoes_writing_it(values, round):
    again = wire.unpack_answer(read(wire.pack_answer(Answer("c", "job", round, values))), "c")
    assert (again.client, again.job, again.round) == ("c", "job", round)
    assert again.values.tobytes() == values.tobytes()


@given(value=PLAIN)
def test_what_is_announced_arrives_as_it_was_in_the_same_order(value):
    post = Frame("post", {"job": "j", "session": "s", "sequence": 1, "key": "k", "value": value})
    again = read(write(post)).plain["value"]
    assert json.dumps(again) == json.dumps(value)


@given(request=REQUESTS, data=st.data())
def test_a_damaged_frame_is_no_frame_or_another_one_and_nothing_else_happens(request, data):
    body = bytearray(wire.pack_request(request))
    for _ in range(data.draw(st.integers(1, 3))):
        body[data.draw(st.integers(0, len(body) - 1))] = data.draw(st.integers(0, 255))
    body = bytes(body[: data.draw(st.integers(0, len(body)))])
    try:
        again = read(body)
        if again.kind == "ask":
            wire.unpack_request(again)
    except FrameError as error:
        assert error.code.isalpha()


STEP = {"job": "job", "round": 0, "exchange": 1}


@given(body=st.binary(max_size=200))
def test_bytes_of_a_step_come_through_as_they_are_and_go_with_no_other_kind(body):
    frame = Frame("step", STEP, body=body)
    assert read(write(frame)) == frame
    for other in (
        Frame("step", STEP, {"x": np.zeros(1)}, body),
        Frame("receipt", {"job": "job"}, body=body + b"x"),
    ):
        with pytest.raises(FrameError):
            write(other)


@given(body=st.binary(max_size=200))
def test_bytes_are_no_frame(body):
    assert code_of(body) in ("truncated", "version")
    assert code_of(framed(body)) == "damaged"


def ask(**changes: object) -> bytes:
    """The request with fields of its head changed."""
    frame = read(wire.pack_request(ASK))
    return framed(spelled(kind="ask", **{**frame.plain, **changes}))


def sent(body: bytes) -> bytes:
    return framed(spelled(kind="answer", job="a", round=0), body)


HARMFUL = {
    "pickle": (pickle.dumps({"a": 1}), "version"),
    "of another version": (b"fsw\x01" + wire.pack_request(ASK)[4:], "version"),
    "cut off": (wire.pack_request(ASK)[:20], "truncated"),
    "without numbers": (wire.pack_request(ASK)[:-8], "array"),
    "announces 4 GB": (wire.MAGIC + b"\xff\xff\xff\xff{}", "oversized"),
    "of an unknown kind": (framed(spelled(kind="exec", code="1")), "unknown"),
    "of no kind": (framed(spelled(kind=["ask"])), "unknown"),
    "no mapping": (framed(b"[]"), "damaged"),
    "with a field more": (ask(more=1), "fields"),
    "with a field less": (framed(spelled(kind="settle", job="job")), "fields"),
    "with a key twice": (framed(b'{"kind":"accept","job":"a","job":"b"}'), "damaged"),
    "of another spelling": (framed(b'{"kind": "accept","job":"a"}'), "damaged"),
    "with NaN": (framed(b'{"kind":"settle","job":"a","rounds":NaN}'), "damaged"),
    "lists in lists": (framed(b"[" * 10**6 + b"]" * 10**6), "nested"),
    "lists in lists, fewer": (framed(b"[" * 5000 + b"]" * 5000), "nested"),
    "brackets in texts": (framed(b'{"kind":"receipt","job":"' + b"[" * 99 + b'"}'), "fields"),
    "a million values": (framed(b"[" + b"0," * 1_100_000 + b"0]"), "oversized"),
    "a round below 0": (ask(round=-1), "fields"),
    "a round that is true": (ask(round=True), "fields"),
    "no numbers asked": (ask(dim=0), "fields"),
    "half a number asked": (ask(dim=1.5), "fields"),
    "a task that is a list": (ask(task=["aim"]), "fields"),
    "settings that are a list": (ask(settings=[]), "fields"),
    "terms that are none": (ask(terms={}), "terms"),
    "terms of lists": (ask(terms={"sampling": [["kind", "everyone"]], "unit": []}), "terms"),
    "noise below 0": (ask(terms={**wire.spell(ASK.terms), "noise_multiplier": -1.0}), "terms"),
    "float32": (sent(save({"values": np.zeros(3, "f4")})), "array"),
    "a table": (sent(save({"values": np.zeros((2, 2))})), "array"),
    "no values": (sent(b""), "array"),
    "no safetensors": (sent(b"\x01\0\0\0\0\0\0\0x"), "array"),
    "a gigabyte of names": (sent((2**30).to_bytes(8, "little")), "oversized"),
    "complex numbers": (sent(save({"values": np.zeros(3, "c8")})), "array"),
}


@pytest.mark.parametrize("case", HARMFUL)
def test_what_is_made_to_harm_is_refused_before_it_takes_memory(case):
    body, code = HARMFUL[case]
    tracemalloc.start()
    try:
        if case == "brackets in texts":
            assert read(body).plain["job"] == "[" * 99
        else:
            assert code_of(body) == code
        assert tracemalloc.get_traced_memory()[1] < 16 * len(body) + 200_000
    finally:
        tracemalloc.stop()


def test_a_frame_above_the_limit_is_not_looked_at():
    body = wire.pack_request(ASK)
    assert read(body, len(body)).kind == "ask"
    assert code_of(body, len(body) - 1) == "oversized"


@pytest.mark.parametrize(
    "changes",
    [
        {"settings": {"a": float("nan")}},
        {"settings": {"a": object}},
        {"arrays": {"x": np.array(["text"])}},
        {"arrays": {"x": np.array([object()])}},
        {"arrays": {"x": np.zeros(2, complex)}},
        {"arrays": {"x": np.zeros(2, np.complex64)}},
        {"arrays": {"x": np.zeros(wire.MOST_BYTES // 8)}},
    ],
    ids=["no number", "no value", "texts", "objects", "complex", "short complex", "too many"],
)
def test_what_no_frame_holds_is_not_written(changes):
    with pytest.raises(FederationError):
        wire.pack_request(replace(ASK, **changes))
