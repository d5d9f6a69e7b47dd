"""Lines chained by hashes, in a file that one process at a time may write: a ledger on disk."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Iterator
from io import FileIO
from pathlib import Path
from typing import Any

from fedsynth.errors import PrivacyError, ReleaseError, UnwrittenError

START = "0" * 64
# What a chain adds to a line.
LINK = frozenset({"line", "previous", "hash"})
# How any line begins.
_FIRST = b'{"'


class Chain:
    """Lines that are numbered and chained, in a file or (``path`` None) nowhere but in their hash.

    Args:
        file: :func:`locked`; None where nothing is to be written, or nothing any more.
        head, count: hash of the last line, and number of lines, so far.
    """

    def __init__(
        self, path: Path | None, file: FileIO | None, head: str = START, count: int = 0
    ) -> None:
        self.path, self.head = path, head
        self._file, self._count = file, count

    def append(self, line: dict[str, Any]) -> None:
        """Number, chain and write a line; on disk when this returns.

        Raises:
            PrivacyError: closed, or the disk does not take it (UnwrittenError); then nothing may
                follow it.
        """
        line = {"line": self._count, **line, "previous": self.head}
        line["hash"] = digest(line)
        if self.path is not None:
            self._write(canonical(line) + b"\n")
        self.head = line["hash"]
        self._count += 1

    def _write(self, line: bytes) -> None:
        if self._file is None:
            raise PrivacyError(f"{self.path}: this ledger is closed")
        why = ""
        try:
            whole = self._file.write(line) == len(line)
            os.fsync(self._file.fileno())
        except OSError as error:
            whole, why = False, f" ({error.strerror})"
        if not whole:
            # Part of the line may be there: nothing may follow it before `open` has cut it off.
            self.close()
            raise UnwrittenError(
                f"{self.path}: cannot be written{why}, so nothing may be released. Make room on "
                "the disk, then resume"
            )

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def locked(path: Path, *, create: bool) -> tuple[FileIO, bytes]:
    """Open a file for this process alone, unbuffered, and read it.

    Args:
        create: make it where there is none.

    Raises:
        PrivacyError: another process has it.
    """
    file = path.open("a+b" if create else "r+b", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise PrivacyError(f"{path}: another process is writing this ledger") from None
    if not os.path.samestat(os.fstat(file.fileno()), path.stat()):
        # Since it was opened, another process put a new file in its place.
        file.close()
        raise PrivacyError(f"{path}: another process is writing this ledger")
    file.seek(0)
    return file, file.read()


def is_begun(content: bytes) -> bool:
    """Whether there is a whole line; what stands before it was cut short is a ledger not yet begun,
    which nothing was charged to."""
    return b"\n" in content or not (content.startswith(_FIRST) or _FIRST.startswith(content))


def canonical(line: dict[str, Any]) -> bytes:
    """The one spelling of a line."""
    return json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def parse_strictly(text: str | bytes) -> Any:
    """JSON in which no key stands twice (two readers could read two things), and no NaN or
    infinity. Raises ValueError."""

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        content = dict(pairs)
        if len(content) < len(pairs):
            raise ValueError("a key stands twice")
        return content

    try:
        return json.loads(text, object_pairs_hook=once, parse_constant=_refuse)
    except RecursionError:
        raise ValueError("lists within lists without end") from None


def _refuse(word: str) -> None:
    raise ValueError(f"{word} is no JSON")


def digest(line: dict[str, Any]) -> str:
    """SHA-256 of everything in a line but its hash."""
    return hashlib.sha256(canonical({k: v for k, v in line.items() if k != "hash"})).hexdigest()


def checked(content: bytes, path: Path) -> Iterator[dict[str, Any]]:
    """The lines of a ledger, each checked against its hash, its predecessor's, and its spelling."""
    previous = START
    for number, raw in enumerate(content.split(b"\n")[:-1]):
        try:
            line = json.loads(raw)
            intact = (
                line["line"] == number
                and line["previous"] == previous
                and line["hash"] == digest(line)
                and raw == canonical(line)
            )
        except (ValueError, KeyError, TypeError, RecursionError):
            intact = False
        if not intact:
            raise ReleaseError(
                f"{path}, line {number + 1}: damaged or changed since it was written"
            )
        previous = line["hash"]
        yield line
