"""Files that strangers may have made, and disks that may refuse: one way in, one way to say so.

What is read here is a plain file (no folder, device or pipe, which would block or never end) of at
most so many bytes. What the system refuses is a :class:`MachineError` that says which file, what
the system says, and what to do.
"""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from fedsynth.errors import FedsynthError, MachineError
from fedsynth.views import spell_bytes

TEXT, FIGURES, LINES = 8_000_000, 64_000_000, 256_000_000
"""Bytes at most of YAML, of JSON, and of a ledger's lines."""

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
    (stat.S_ISSOCK, "a socket"),
)
_ADVICE = {
    errno.ENOSPC: "make room on that disk",
    errno.EDQUOT: "make room on that disk",
    errno.EFBIG: "this process may write no file as large: raise its limit (ulimit -f)",
    errno.EROFS: "choose a place that can be written",
    errno.EACCES: "see to its permissions, or choose another place",
    errno.EPERM: "see to its permissions, or choose another place",
    errno.ENOENT: "make its folder first",
    errno.ENOTDIR: "its folder is a file: choose another place",
    errno.EISDIR: "a folder stands there: name a file",
    errno.ENAMETOOLONG: "choose a shorter name",
    errno.EMFILE: "let this process have more files open (ulimit -n)",
    errno.ENFILE: "close other programs",
    errno.ENOMEM: "make memory free",
    errno.EIO: "check that disk",
}
# A path that leads nowhere is the fault of whoever gave it, all else is the machine's.
_NOWHERE = (
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
    errno.ELOOP,
    errno.ENXIO,
    errno.EINVAL,
)


def reason(error: OSError) -> str:
    """What the system says, in a few words; never a path, nor nothing."""
    return error.strerror or (os.strerror(error.errno) if error.errno else type(error).__name__)


def refused(path: str | Path, error: OSError, done: str = "written") -> MachineError:
    """The error for a file that could not be "written" or "read"."""
    advice = _ADVICE.get(error.errno or 0)
    if error.errno is None and done == "written" and not Path(path).parent.is_dir():
        # As pandas says it.
        code = errno.ENOTDIR if Path(path).parent.exists() else errno.ENOENT
        return refused(path, OSError(code, os.strerror(code)))
    words = f"{path}: cannot be {done} ({reason(error)})"
    return MachineError(words if advice is None else f"{words}: {advice}")


def blame_machine(error: OSError | MemoryError) -> MachineError:
    """The error for what the system refused where nobody knew of which file."""
    if isinstance(error, MemoryError):
        return MachineError(
            "there is not enough memory for this: close other programs, take a larger machine, or "
            "fewer rows, columns or a smaller model"
        )
    if error.filename is None:
        return MachineError(f"the system refused to go on ({reason(error)})")
    return refused(os.fsdecode(error.filename), error, "opened")


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """What the system refuses while a file or a folder is written is a MachineError that names it,
    or the one in it that the system named."""
    try:
        yield
    except OSError as error:
        named = error.filename if isinstance(error.filename, str | os.PathLike) else path
        raise refused(os.fspath(named), error) from None


@contextmanager
def private() -> Iterator[None]:
    """What is written meanwhile is this user's alone: for commands, which have one thread."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def open_plain(path: str | Path, fault: type[FedsynthError]) -> io.BufferedReader:
    """Open a plain file to read bytes.

    Raises:
        `fault`: there is none, or something else stands there.
        MachineError: the system refuses it.
    """
    try:
        # Else opening a pipe would wait for whoever writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except ValueError:
        raise fault(f"{path!r}: is no path") from None
    except OSError as error:
        if error.errno in _NOWHERE:
            raise fault(f"{path}: cannot be read ({reason(error)}); check the path") from None
        raise refused(path, error, "read") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        kind = next((name for is_kind, name in _KINDS if is_kind(mode)), "no plain file")
        raise fault(f"{path}: is {kind}: give a file")
    return os.fdopen(descriptor, "rb")


def read_plain(path: str | Path, fault: type[FedsynthError], most: int = TEXT) -> bytes:
    """The bytes of a plain file. Raises as :func:`open_plain`, and for more than `most` bytes."""
    with open_plain(path, fault) as file:
        try:
            body = file.read(most + 1)
        except OSError as error:
            raise refused(path, error, "read") from None
    if len(body) > most:
        raise fault(f"{path}: is larger than {spell_bytes(most)}, the most that is read of such")
    return body


def demand_plain(path: str | Path, fault: type[FedsynthError]) -> None:
    """Raises as :func:`open_plain`, for what a library opens itself."""
    open_plain(path, fault).close()


class Limited(io.RawIOBase):
    """A stream that ends with an error after so many bytes: a small file may unpack to anything.

    Args:
        file: is closed with it.
        most: bytes.
        error: that is raised for more.
    """

    def __init__(self, file: IO[bytes], most: int, error: FedsynthError) -> None:
        self._file, self._left, self._error = file, most, error

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        piece = self._file.read(min(len(buffer), 1 << 20))
        self._left -= len(piece)
        if self._left < 0:
            raise self._error
        buffer[: len(piece)] = piece
        return len(piece)

    def close(self) -> None:
        self._file.close()
        super().close()


def demand_unpacked(path: str | Path, fault: type[FedsynthError]) -> None:
    """Raises `fault` where a zip file (.npz, .xlsx) says that it unpacks to more than memory
    holds. No member gives more than it says."""
    with open_plain(path, fault) as file:
        try:
            with zipfile.ZipFile(file) as archive:
                size = sum(member.file_size for member in archive.infolist())
        except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, UnicodeError):
            # What it is, its own reader says.
            return
    if size > memory() // 2:
        raise too_large(path, fault, size)


def too_large(path: str | Path, fault: type[FedsynthError], size: int) -> FedsynthError:
    """The error for what would take that many bytes of memory, or more."""
    return fault(
        f"{path}: unpacks to {spell_bytes(size)} or more, too much for this machine's memory "
        f"({spell_bytes(memory())}): is it damaged, or a trap? Else split it"
    )


def memory() -> int:
    """Bytes of this machine's memory."""
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def module_path() -> list[str]:
    """Where this process finds modules, without the working directory unless fedsynth is there:
    what lies there may be anybody's."""
    root = str(Path(__file__).absolute().parents[1])
    here = {"", os.curdir, str(Path.cwd())}
    kept = [path for path in sys.path if path == root or path not in here]
    return kept if root in kept else [root, *kept]
