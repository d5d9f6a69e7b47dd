"""What crosses: parts of a step each, in one layout, read without trust in who wrote them.

A frame is a version byte and its parts; a part is step (1 byte), round and attempt (8 each), number
of fields (1), and each field after its length (4). Big-endian; vectors are little-endian.

| step | the server asks with | an owner answers with |
| --- | --- | --- |
| KEYS | roster's digest; cohort, threshold, curious | two public keys, a commitment, a signature |
| SHARES | who has keys; their answers | who gets shares; a sealed box for each |
| MASKED | who dealt shares; their boxes for this owner | type of numbers; masked numbers |
| MASKED, where all are needed | who has keys; their answers | as above |
| LIVING | whose masked numbers came | a signature of that list |
| UNMASK | who signed it; signatures | of whom shares; a share each |

Who: a byte for each owner of the roster, 1 or 0.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from fedsynth.errors import FederationError
from fedsynth.federation.secure.masks import Vector

VERSION = 1
_HEAD, _LENGTH = struct.Struct(">BQQB"), struct.Struct(">I")
MOST_PARTS, MOST_BYTES = 2, 2**32 - 1
KINDS = ("<u4", "<u8")


class Step(IntEnum):
    """The five exchanges of a round; where all owners are needed, KEYS and MASKED alone."""

    KEYS = 1
    SHARES = 2
    MASKED = 3
    LIVING = 4
    UNMASK = 5


@dataclass(frozen=True)
class Part:
    """What one step of one attempt asks or answers."""

    step: Step
    round: int
    attempt: int
    fields: tuple[bytes, ...]

    def expect(self, *sizes: int | None) -> tuple[bytes, ...]:
        """The fields, if they are as many and as long as these; None is any length.

        Raises:
            FederationError: they are not.
        """
        lengths = [len(field) for field in self.fields]
        if len(lengths) != len(sizes) or any(
            size not in (None, length) for size, length in zip(sizes, lengths, strict=True)
        ):
            raise FederationError(f"{self.name} has fields of other lengths")
        return self.fields

    @property
    def name(self) -> str:
        return f"{self.step.name} of round {self.round}, attempt {self.attempt},"


def write(parts: Iterable[Part]) -> bytes:
    """A frame; :func:`read` is the inverse.

    Raises:
        FederationError: a field of 4 GiB or more.
    """
    written = [bytes([VERSION])]
    for part in parts:
        head = _HEAD.pack(part.step, part.round, part.attempt, len(part.fields))
        written.append(head)
        for field in part.fields:
            if len(field) > MOST_BYTES:
                raise FederationError("a secure sum's numbers must take less than 4 GiB")
            written += (_LENGTH.pack(len(field)), field)
    return b"".join(written)


def read(frame: bytes) -> tuple[Part, ...]:
    """The parts of a frame, one or two.

    Raises:
        FederationError: whatever is no frame.
    """
    try:
        if frame[0] != VERSION:
            raise FederationError(f"a secure sum's frame of version {frame[0]}, not {VERSION}")
        parts: list[Part] = []
        at = 1
        while at < len(frame) and len(parts) < MOST_PARTS:
            step, round, attempt, count = _HEAD.unpack_from(frame, at)
            at += _HEAD.size
            fields = []
            for _ in range(count):
                (length,) = _LENGTH.unpack_from(frame, at)
                at += _LENGTH.size
                fields.append(bytes(frame[at : at + length]))
                at += length
            parts.append(Part(Step(step), round, attempt, tuple(fields)))
    except (IndexError, struct.error, ValueError):
        raise FederationError("a secure sum's frame is cut off or damaged") from None
    if at != len(frame) or not parts:
        raise FederationError("a secure sum's frame is cut off or damaged")
    return tuple(parts)


def write_members(places: Collection[int], cohort: int) -> bytes:
    """Places of owners, a byte each."""
    return bytes(place in places for place in range(cohort))


def read_members(field: bytes, cohort: int) -> tuple[int, ...]:
    """The inverse of :func:`write_members`, ascending. Raises FederationError for no such list."""
    if len(field) != cohort or set(field) - {0, 1}:
        raise FederationError("a list of owners is damaged")
    return tuple(place for place, member in enumerate(field) if member)


def cut(field: bytes, size: int, count: int) -> list[bytes]:
    """Equal pieces of a field. Raises FederationError where it has not so many of that size."""
    if len(field) != size * count:
        raise FederationError(f"a field has {len(field)} bytes, not {count} times {size}")
    return [field[start : start + size] for start in range(0, len(field), size)]


def copy_vector(values: Vector) -> tuple[bytes, Vector]:
    """Type of numbers, and a little-endian copy of them.

    Raises:
        FederationError: other than one row of at least one uint32 or uint64.
    """
    kind = np.dtype(values.dtype).newbyteorder("<")
    if kind.str not in KINDS or values.ndim != 1 or not len(values):
        raise FederationError(
            "a secure sum is over rows of uint32 or uint64, of one number or more"
        )
    return kind.str.encode(), np.array(values, kind, order="C")


def read_vector(kind: bytes, numbers: bytes) -> Vector:
    """Numbers from a frame, not to be written to. Raises FederationError where they are none."""
    if kind.decode("ascii", "replace") not in KINDS or len(numbers) % int(kind[2:]):
        raise FederationError("masked numbers are damaged")
    return np.frombuffer(numbers, kind.decode())
