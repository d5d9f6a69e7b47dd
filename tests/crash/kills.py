"""A process that kills itself at one of the things that it does to files.

What a kill after one operation leaves is what one before the next leaves, so each operation is a
point before it, a write another in its midst, and the end of all one more. Operations are counted
below one folder; what the wrappers here do not see, an audit hook tells of.
"""

from __future__ import annotations

import builtins
import io
import os
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FOLLOWED = Path("/proc/self/fd").exists()
"""Whether this system tells which file a descriptor is of."""

# By the name in `os`: what it is called, and its arguments that are paths or descriptors.
_PATHS = {
    "replace": ("rename", (0, 1)),
    "rename": ("rename", (0, 1)),
    "unlink": ("remove", (0,)),
    "remove": ("remove", (0,)),
    "mkdir": ("mkdir", (0,)),
    "rmdir": ("rmdir", (0,)),
    "link": ("link", (0, 1)),
    "truncate": ("truncate", (0,)),
    "ftruncate": ("truncate", (0,)),
    "fsync": ("fsync", (0,)),
    "fdatasync": ("fsync", (0,)),
}
_AUDITED = {"os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.link", "os.truncate"}
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


@dataclass(frozen=True)
class Point:
    """Where a process can be killed.

    Attributes:
        number: of the operation, from 1.
        kind: what it is about to do: "write", or in the midst of: "half a write".
        name: of the file.
    """

    number: int
    kind: str
    name: str


class Killer:
    """Counts operations below a folder in this process, for good, and dies at one of them.

    Args:
        below: the folder.
        at: number of the point to die at; 0 for none.
        told: a file outside it that gets a line a point.
    """

    def __init__(self, below: Path, at: int = 0, told: Path | None = None) -> None:
        self._below, self._at, self._count = below.resolve(), at, 0
        self._told: int | None = None
        if told is not None:
            self._told = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        # Before they are replaced.
        self._open, self._write = io.open, os.write
        self._inside = 0
        for name, (kind, places) in _PATHS.items():
            if hasattr(os, name):
                setattr(os, name, self._around(getattr(os, name), kind, places))
        for name in ("write", "pwrite"):
            setattr(os, name, self._writing(getattr(os, name)))
        os.open = self._opening(os.open, _os_flags)
        builtins.open = io.open = self._opening(io.open, _mode_flags, watched=True)
        sys.addaudithook(self._audit)

    def reach(self, kind: str, name: str) -> None:
        """A point: the process dies here if it is its turn."""
        if self._count_one(kind, name):
            self._die()

    def _count_one(self, kind: str, name: str) -> bool:
        self._count += 1
        if self._told is not None:
            self._write(self._told, f"{self._count}\t{kind}\t{name}\n".encode())
        return self._count == self._at

    @staticmethod
    def _die() -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    def _ours(self, place: Any, folder: int | None = None) -> str | None:
        """The path below the folder, or None for one that is elsewhere."""
        if isinstance(place, int):
            path = _file_of(place)
        else:
            path = Path(os.fsdecode(place))
            if folder is not None:
                path = _file_of(folder) / path
            # Folders may be reached through a link, or by `..`.
            path = path.parent.resolve() / path.name
        return str(path.relative_to(self._below)) if self._below in path.parents else None

    def _around(self, real: Callable[..., Any], kind: str, places: tuple[int, ...]) -> Any:
        def replaced(*arguments: Any, **keywords: Any) -> Any:
            source = keywords.get("dir_fd", keywords.get("src_dir_fd"))
            folders = [source, keywords.get("dst_dir_fd")]
            names = [self._ours(arguments[k], folders[k]) for k in places]
            if any(names) and not self._inside:
                self.reach(kind, " to ".join(str(name) for name in names))
            self._inside += 1
            try:
                return real(*arguments, **keywords)
            finally:
                self._inside -= 1

        return replaced

    def _writing(self, real: Callable[..., Any]) -> Any:
        def replaced(descriptor: int, body: bytes, *place: int) -> int:
            name = self._ours(descriptor)
            if name is not None:
                self.reach("write", name)
                if self._count_one("half a write", name):
                    real(descriptor, body[: len(body) // 2], *place)
                    self._die()
            written: int = real(descriptor, body, *place)
            return written

        return replaced

    def _opening(self, real: Callable[..., Any], flags: Any, *, watched: bool = False) -> Any:
        def replaced(place: Any, *arguments: Any, **keywords: Any) -> Any:
            name = None
            if flags(*arguments, **keywords) and not isinstance(place, int):
                name = self._ours(place, keywords.get("dir_fd"))
            if name is None:
                return real(place, *arguments, **keywords)
            self.reach("open", name)
            self._inside += 1
            try:
                opened = real(place, *arguments, **keywords)
            finally:
                self._inside -= 1
            return _Watched(opened, name, self) if watched else opened

        return replaced

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What was not announced by a wrapper, a library's own for one."""
        opens = event == "open" and arguments[2] is not None and arguments[2] & _WRITING
        if self._inside or not (opens or event in _AUDITED):
            return
        place = arguments[0]
        if isinstance(place, str | bytes | os.PathLike) and (name := self._ours(place)):
            self.reach(f"unseen {event}", name)


def _os_flags(flags: int, *_: Any, **__: Any) -> bool:
    return bool(flags & _WRITING)


def _mode_flags(mode: str = "r", *_: Any, **__: Any) -> bool:
    return bool(set(mode) & set("wax+"))


def _file_of(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}").readlink()


class _Watched:
    """A file whose writes are points."""

    def __init__(self, file: Any, name: str, killer: Killer) -> None:
        self._file, self._name, self._killer = file, name, killer

    def write(self, body: Any) -> int:
        self._killer.reach("write", self._name)
        if self._killer._count_one("half a write", self._name):
            self._file.write(body[: len(body) // 2])
            self._file.flush()
            self._killer._die()
        written: int = self._file.write(body)
        return written

    def truncate(self, *size: int) -> int:
        self._killer.reach("truncate", self._name)
        size_now: int = self._file.truncate(*size)
        return size_now

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __iter__(self) -> Any:
        return iter(self._file)

    def __enter__(self) -> _Watched:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()
