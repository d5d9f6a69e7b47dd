"""A job's folder is one process's at a time, from its first file to its certificate.

The ledger's own lock bounds what is charged; this one keeps two processes from writing one release.
"""

from __future__ import annotations

import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import IO

from fedsynth.durable import make_folder
from fedsynth.errors import PrivacyError
from fedsynth.files import refused

CHECKPOINT = "checkpoint"
"""Folder of what is needed to resume a job."""
LOCK = "lock"

_HELD: ContextVar[frozenset[Path]] = ContextVar("held", default=frozenset())


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold a job's folder, which is made where there is none; who holds it may hold it again.

    What a kill leaves of this is `checkpoint/lock`, which the next process takes over. A folder
    that is made is its user's alone until the job is finished; then its mode is any new folder's,
    which the lock of a job that has begun remembers.

    Raises:
        PrivacyError: another process holds it.
        MachineError: the system refuses it.
    """
    place = folder.resolve()
    if place in _HELD.get():
        yield
        return
    new = not folder.exists()
    file = _lock(place)
    token = _HELD.set(_HELD.get() | {place})
    try:
        yield
    finally:
        _HELD.reset(token)
        lock, mode = place / CHECKPOINT / LOCK, _mode_in(file)
        with suppress(OSError):
            # Whoever finished the job removed it, and another process may have made a new one.
            finished = not _is_of(lock, file)
            if finished and mode:
                place.chmod(mode)
            elif not finished and not (mode and any(p != lock for p in lock.parent.iterdir())):
                lock.unlink()
            lock.parent.rmdir()
            if new:
                place.rmdir()
        file.close()


def _lock(folder: Path) -> IO[bytes]:
    path, mode = folder / CHECKPOINT / LOCK, 0
    if not folder.exists():
        make_folder(folder)
        mode = stat.S_IMODE(folder.stat().st_mode)
        folder.chmod(0o700)
    while True:
        make_folder(path.parent, private=True)
        try:
            file = path.open("a+b")
        except FileNotFoundError:
            # Whoever had it removed it, with its folder.
            continue
        except OSError as error:
            raise refused(path, error) from None
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise PrivacyError(
                f"{folder}: another process is at work on this job. Wait for it to end: a job goes "
                "on in one process"
            ) from None
        except OSError as error:
            file.close()
            raise refused(path, error, "locked") from None
        if _is_of(path, file):
            if mode:
                file.write(f"{mode:o}".encode())
                file.flush()
            return file
        # Whoever had it removed it in between.
        file.close()


def _mode_in(file: IO[bytes]) -> int:
    """The mode that the folder is to have in the end; 0 for one that was there before its job."""
    file.seek(0)
    written = file.read(8)
    return int(written, 8) if written.isdigit() else 0


def _is_of(path: Path, file: IO[bytes]) -> bool:
    """Whether the file at a path is the one that is open."""
    try:
        return os.path.samestat(path.stat(), os.fstat(file.fileno()))
    except FileNotFoundError:
        return False
