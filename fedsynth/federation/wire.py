"""Frames: what passes between a server and a site, in bytes, read without trust in who wrote them.

A frame is :data:`MAGIC` (its last byte is the version), the length of its head (4 bytes,
big-endian), the head, and perhaps arrays in the safetensors format or, of :data:`STEPS`, bytes that
mean nothing here. The head is a JSON object in one spelling: `kind`, and of each kind the fields in
:data:`FIELDS`, all of them and no others.
Sizes are looked at before anything is parsed. Nothing is executed, and there are no pickles.
"""

from __future__ import annotations

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fedsynth.errors import FederationError, FedsynthError
from fedsynth.federation.request import Answer, Request
from fedsynth.federation.secure.state import Standing
from fedsynth.privacy.trail.chain import parse_strictly
from fedsynth.privacy.trail.spelling import read_terms, spell

T = TypeVar("T")
Arrays = Mapping[str, NDArray[Any]]

MAGIC = b"fsw\x03"
VERSION = version("fedsynth")
"""Both sides run the same one: what a task does is what its name says in it."""
ASKS = ""
"""In the place of a version: of who only asks whether it may join."""
MOST_BYTES, MOST_HEAD, MOST_NAMES = 64 << 20, 8 << 20, 1 << 20
"""Bytes of a frame, of its head, and of what names its arrays."""
MOST_VALUES, MOST_DEPTH = 1_000_000, 60
"""Of a head: its values, and lists within lists."""
DTYPES = frozenset(
    ["F64", "F32", "F16", "I64", "I32", "I16", "I8", "U64", "U32", "U16", "U8", "BOOL"]
)

FIELDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(fields.split())
    for kind, fields in {
        # A site, when it joins: what it has of jobs that it is in, {job: [session, posts]}.
        "hello": "name version insecure jobs",
        # The server: a job as its ledger's first line says it.
        "offer": "job session roster version most_records participations settled",
        "post": "job session sequence key value",
        # With it a step of the sum that it is of, in hexadecimal; empty where there is none.
        "ask": "job round task terms dim kept settings steps participations most_records step",
        # A step of a secure sum.
        "step": "job round exchange",
        "settle": "job rounds",
        "close": "job finished",
        # Where a message starts a site that is to dial: what it shows then.
        "start": "token",
        # A site's replies; the last to a frame that is none, of no job and no round.
        # Of secure sums, who takes part by the site's own file: {owner: public key}.
        "accept": "job keys",
        "answer": "job round",
        # In the place of an answer that is added up in secret, and so leaves in steps alone; with
        # the site's part in the step that came along, or why there is none.
        "ready": "job round attempt earliest given begun code",
        # A site's part in a step, or why there is none.
        "stepped": "job round exchange code",
        "refuse": "job round code",
        "fail": "job round code",
        "receipt": "job",
        "damage": "code",
    }.items()
}

STEPS = frozenset(["step", "stepped", "ready"])
"""Kinds whose bytes behind the head are a frame of :mod:`fedsynth.federation.secure.frames`, or
none."""

_HEAD = struct.Struct(">4sI")
_TEXT = re.compile(rb'"(?:[^"\\\\]|\\\\.)*"')


class FrameError(FederationError):
    """Bytes that are no frame.

    Attributes:
        code: what is wrong, one of a few words: it tells nothing of what the bytes were.
    """

    def __init__(self, code: str, words: str) -> None:
        super().__init__(f"a frame that is none: {words}")
        self.code = code


@dataclass(frozen=True)
class Frame:
    """What one side tells the other.

    Attributes:
        kind: a key of :data:`FIELDS`.
        plain: its fields.
        arrays: public ones of a request, or the numbers of an answer.
        body: of a step of a secure sum, or a part in one.
    """

    kind: str
    plain: Mapping[str, Any]
    arrays: Arrays = field(default_factory=dict)
    body: bytes = b""

    def get(self, name: str, kind: type[T]) -> T:
        """A field. Raises FrameError where there is none of that type: 1 is not True."""
        value = self.plain.get(name)
        if type(value) is not kind:
            raise FrameError("fields", f"{name} of {self.kind} is of another type")
        return value

    def whole(self, name: str, least: int = 0) -> int:
        """A field that is a whole number of at least so much. Raises FrameError else."""
        value = self.get(name, int)
        if not least <= value < 2**53:
            raise FrameError("fields", f"{name} of {self.kind} is out of range")
        return value

    def count(self, name: str) -> int | None:
        """A field that is a whole number of at least 1, or null."""
        return None if self.plain[name] is None else self.whole(name, 1)


def write(frame: Frame) -> bytes:
    """The bytes of a frame; :func:`read` is the inverse.

    Raises:
        FederationError: values that JSON does not hold, arrays of other types, or too many.
    """
    arrays = {name: np.asarray(array, order="C") for name, array in frame.arrays.items()}
    try:
        head = _spell({"kind": frame.kind, **frame.plain})
        body = save(arrays) if arrays else frame.body
        whole = b"".join((_HEAD.pack(MAGIC, len(head)), head, body))
        _demand_within(head, whole)
        kinds = _kinds(body) if arrays else set()
    except (SafetensorError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise FrameError("kind", f"{frame.kind} holds what is not sent") from error
    stray = frame.arrays if frame.kind in STEPS else frame.body
    if frame.plain.keys() != FIELDS[frame.kind] or stray or not kinds <= DTYPES:
        raise FrameError("kind", f"{frame.kind} holds what is not sent")
    return whole


def read(whole: bytes, most: int = MOST_BYTES) -> Frame:
    """A frame of its bytes.

    Args:
        most: how many bytes it may have.

    Raises:
        FrameError: whatever is none.
    """
    if len(whole) > most:
        raise FrameError("oversized", "it is too large")
    if len(whole) < _HEAD.size:
        raise FrameError("truncated", "it is cut short")
    magic, size = _HEAD.unpack_from(whole)
    if magic != MAGIC:
        raise FrameError("version", "it is of another program, or version")
    if size > MOST_HEAD:
        raise FrameError("oversized", "its head is too large")
    head, body = whole[_HEAD.size : _HEAD.size + size], whole[_HEAD.size + size :]
    if len(head) < size:
        raise FrameError("truncated", "its head is cut short")
    _demand_within(head, whole)
    try:
        plain = parse_strictly(head)
        if type(plain) is not dict or _spell(plain) != head:
            raise ValueError("another spelling")
    except (ValueError, RecursionError, UnicodeError):
        raise FrameError("damaged", "its head is no JSON of one spelling") from None
    kind = plain.pop("kind", None)
    if type(kind) is not str or kind not in FIELDS:
        raise FrameError("unknown", "it is of a kind that nobody here knows")
    if plain.keys() != FIELDS[kind]:
        raise FrameError("fields", f"{kind} has other fields")
    if kind in STEPS:
        return Frame(kind, plain, body=body)
    return Frame(kind, plain, _read_arrays(body))


def is_question(whole: bytes) -> bool:
    """Whether bytes are those of a frame `ask`."""
    return whole[_HEAD.size :].startswith(b'{"kind":"ask",')


def _spell(plain: Mapping[str, Any]) -> bytes:
    return json.dumps(plain, separators=(",", ":"), allow_nan=False, default=dict).encode()


def _demand_within(head: bytes, whole: bytes) -> None:
    """Raises FrameError for what would take much more memory than its bytes, once it is parsed."""
    if len(head) > MOST_HEAD or len(whole) > MOST_BYTES:
        raise FrameError("oversized", "it is too large")
    opened = head.count(b"[") + head.count(b"{")
    if opened + head.count(b",") > MOST_VALUES:
        raise FrameError("oversized", "it has too many values")
    if opened > MOST_DEPTH and _depth(head) > MOST_DEPTH:
        raise FrameError("nested", "lists stand in lists too deep")


def _depth(head: bytes) -> int:
    """Of lists within lists; in texts brackets mean nothing."""
    marks = np.frombuffer(_TEXT.sub(b"", head), np.uint8)
    opens = (marks == ord("[")) | (marks == ord("{"))
    closes = (marks == ord("]")) | (marks == ord("}"))
    return int(np.cumsum(opens.view(np.int8) - closes.view(np.int8), dtype=np.int32).max(initial=0))


def _kinds(body: bytes) -> set[str]:
    """Types of the arrays in safetensors."""
    if int.from_bytes(body[:8], "little") > MOST_NAMES:
        raise FrameError("oversized", "it has too many arrays")
    named = parse_strictly(body[8 : 8 + int.from_bytes(body[:8], "little")])
    return {entry["dtype"] for entry in named.values()}


def _read_arrays(body: bytes) -> dict[str, NDArray[Any]]:
    if not body:
        return {}
    try:
        if not _kinds(body) <= DTYPES:
            raise ValueError("another type")
        arrays: dict[str, NDArray[Any]] = load(body)
        if any(side > MOST_BYTES for array in arrays.values() for side in array.shape):
            raise ValueError("no such shape")
    except (SafetensorError, ValueError, KeyError, TypeError, AttributeError, OverflowError):
        raise FrameError("array", "its arrays cannot be read") from None
    return arrays


def pack_request(request: Request, step: bytes = b"") -> bytes:
    """A request as a frame `ask`.

    Args:
        step: of the sum that it is of, which goes with it.
    """
    plain = {
        "job": request.job,
        "round": request.round,
        "task": request.task,
        "terms": spell(request.terms),
        "dim": request.dim,
        "kept": request.kept,
        "settings": request.settings,
        "steps": request.steps,
        "participations": request.participations,
        "most_records": request.most_records,
        "step": step.hex(),
    }
    return write(Frame("ask", plain, request.arrays))


def unpack_request(frame: Frame) -> Request:
    """The inverse of :func:`pack_request`. Raises FrameError for what is no request."""
    try:
        terms = read_terms(frame.get("terms", dict))
    except (FedsynthError, TypeError, AttributeError):
        raise FrameError("terms", "its terms cannot be read") from None
    return Request(
        frame.get("task", str),
        terms,
        frame.whole("dim", 1),
        frame.whole("kept"),
        frame.arrays,
        frame.get("settings", dict),
        frame.get("job", str),
        frame.whole("round"),
        frame.count("steps"),
        frame.count("participations"),
        frame.count("most_records"),
    )


def unpack_step(frame: Frame) -> bytes:
    """The step of a sum that came with a request, or nothing. Raises FrameError for what is no
    step."""
    try:
        return bytes.fromhex(frame.get("step", str))
    except ValueError:
        raise FrameError("fields", "its step is no hexadecimal") from None


def pack_answer(answer: Answer) -> bytes:
    """An answer as a frame; whose it is, the stream that it comes by tells."""
    plain = {"job": answer.job, "round": answer.round}
    return write(Frame("answer", plain, {"values": answer.values}))


def unpack_answer(frame: Frame, client: str) -> Answer:
    """The inverse of :func:`pack_answer`. Raises FrameError for what is no answer: other than one
    row of float64."""
    values = frame.arrays.get("values")
    if len(frame.arrays) != 1 or values is None or values.dtype != np.float64 or values.ndim != 1:
        raise FrameError("array", "its numbers are no row of float64")
    return Answer(client, frame.get("job", str), frame.whole("round"), values)


def pack_ready(request: Request, standing: Standing, code: str = "", part: bytes = b"") -> bytes:
    """That a site has something to give to a round's sum, and where it stands in sums, which is no
    secret.

    Args:
        code, part: of the step that came with the question: why it takes no part, or its part.
    """
    plain = {"job": request.job, "round": request.round, **vars(standing), "code": code}
    return write(Frame("ready", plain, body=part))


def unpack_ready(frame: Frame) -> Standing:
    """The inverse of :func:`pack_ready`. Raises FrameError for what is none."""
    attempts: list[tuple[int, int] | None] = []
    for name in ("given", "begun"):
        match frame.plain[name]:
            case None:
                attempts.append(None)
            case [int(round), int(attempt)] if round >= 0 and 0 <= attempt < 2**53:
                attempts.append((round, attempt))
            case _:
                raise FrameError("fields", f"{name} of {frame.kind} is no attempt at a round")
    frame.get("code", str)
    return Standing(frame.whole("attempt", -1), frame.whole("earliest"), *attempts)
