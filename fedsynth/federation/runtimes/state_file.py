"""The private vectors of many simulated clients in one sparse file."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fedsynth.errors import FederationError, ReleaseError

Floats = NDArray[np.float32]

_MAGIC = b"fedsynth"
_HEAD = 16


class StateFile:
    """One slot a client, all of the size of the first vector that is saved.

    Read and written in place rather than mapped, so that neither memory nor the resident set grows
    with the number of clients; a client never touched takes no disk either. The file is made with
    the first vector, so a job without any has none.

    Args:
        path: a file of an interrupted job is taken up.

    Raises:
        ReleaseError: the file is none of this format.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None
        self._size = 0
        if path.exists():
            self._file = os.open(path, os.O_RDWR)
            head = os.pread(self._file, _HEAD, 0)
            if len(head) < _HEAD or not head.startswith(_MAGIC):
                os.close(self._file)
                raise ReleaseError(
                    f"{path} is damaged or of an earlier version: start the job anew in another "
                    "folder"
                )
            self._size = int.from_bytes(head[len(_MAGIC) :], "little")

    def slot(self, index: int) -> Slot:
        """The place of one client's vector."""
        return Slot(self, index)

    def read(self, index: int) -> Floats | None:
        if self._file is None:
            return None
        raw = os.pread(self._file, self._width, self._place(index))
        if len(raw) < self._width or raw[-1] == 0:
            return None
        return np.frombuffer(raw[:-1], np.float32).copy()

    def write(self, index: int, values: Floats) -> None:
        if self._file is None:
            self._create(values.size)
        if values.size != self._size:
            raise FederationError(
                f"a private vector of {values.size} numbers does not fit its slot of {self._size}"
            )
        # The byte behind the values says that they are there: a hole in the file reads as zeros.
        raw = np.ascontiguousarray(values, np.float32).tobytes() + b"\x01"
        assert self._file is not None
        os.pwrite(self._file, raw, self._place(index))

    def close(self, *, delete: bool = False) -> None:
        """Let go of the file, and of the vectors in it."""
        if self._file is not None:
            os.close(self._file)
            self._file = None
        if delete:
            self._path.unlink(missing_ok=True)

    @property
    def _width(self) -> int:
        return 4 * self._size + 1

    def _place(self, index: int) -> int:
        return _HEAD + index * self._width

    def _create(self, size: int) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Under its name once it has a head: a file without one would be taken for damaged.
        fresh = self._path.with_name(f"{self._path.name}.new")
        fresh.unlink(missing_ok=True)
        self._file = os.open(fresh, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        self._size = size
        os.pwrite(self._file, _MAGIC + size.to_bytes(_HEAD - len(_MAGIC), "little"), 0)
        fresh.rename(self._path)


@dataclass(frozen=True)
class Slot:
    """One client's place in the file: a private vector."""

    file: StateFile
    index: int

    def load(self) -> Floats | None:
        return self.file.read(self.index)

    def save(self, values: Floats) -> None:
        self.file.write(self.index, values)
