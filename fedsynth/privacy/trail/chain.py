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

from fedsynth.errors import PrivacyError, ReleaseError

START = "0" * 64


def locked(path: Path, *, create: bool) -> FileIO:
    """Open a file for this process alone, unbuffered.

    Raises:
        FileExistsError: it is to be created and is there.
        PrivacyError: another process has it.
    """
    file = path.open("x+b" if create else "r+b", buffering=0)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise PrivacyError(f"{path}: another process is writing this ledger") from None
    if create:
        _sync_directory(path.parent)
    return file


def _sync_directory(folder: Path) -> None:
    """A new file survives a crash only once its directory entry is on disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def canonical(line: dict[str, Any]) -> bytes:
    """The one spelling of a line."""
    return json.dumps(line, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


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
