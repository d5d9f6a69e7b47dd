"""The last of what was written, and nothing older, however a write ends."""

from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path

from fedsynth.durable import write_whole
from fedsynth.errors import MachineError, ReleaseError
from fedsynth.files import reason, refused

_MAGIC = b"fsjrnl01"
# Of an entry: bytes that follow, twice, and their SHA-256.
_HEAD = struct.Struct("<qq32s")
_MOST = 1 << 20


class Journal:
    """A file that its user alone may read, of which the last entry counts.

    Entries are appended, so a write is one flush of the disk. One that was cut short was never
    acted on, and is dropped; one that is whole and damaged is not passed over for an older one.
    Once a MiB has been written, the file is made anew with the last entry alone.

    Args:
        fresh: whether it begins anew, without what a file of that name says.

    Raises:
        ReleaseError: the file is none of this format, or its last entry is damaged.
        MachineError: the system refuses it.
    """

    def __init__(self, path: Path, *, fresh: bool) -> None:
        self._path, self._start, self._end = path, 0, 0
        if fresh:
            write_whole(path, _MAGIC, private=True)
        self._open()

    @property
    def last(self) -> bytes | None:
        """What was written last; None where nothing was."""
        head = os.pread(self._file.fileno(), _HEAD.size, self._start)
        if not head:
            return None
        length, _, digest = _HEAD.unpack(head)
        body = os.pread(self._file.fileno(), length, self._start + _HEAD.size)
        if hashlib.sha256(body).digest() != digest:
            raise self._damaged
        return body

    def write(self, body: bytes) -> None:
        """Append an entry; on disk when this returns.

        Raises:
            MachineError: the disk does not take it; what was written last stands.
        """
        entry = _HEAD.pack(len(body), len(body), hashlib.sha256(body).digest()) + body
        if self._end + len(entry) > _MOST + 2 * len(entry):
            self._file.close()
            write_whole(self._path, _MAGIC + entry, private=True)
            self._open()
            return
        try:
            os.ftruncate(self._file.fileno(), self._end)
            written = 0
            while written < len(entry):
                written += os.pwrite(self._file.fileno(), entry[written:], self._end + written)
            os.fsync(self._file.fileno())
        except OSError as error:
            raise refused(self._path, error) from None
        self._start, self._end = self._end, self._end + len(entry)

    def close(self) -> None:
        """Let go of the file."""
        self._file.close()

    def _open(self) -> None:
        try:
            self._file = self._path.open("r+b", buffering=0)
        except OSError as error:
            raise MachineError(f"{self._path} cannot be opened ({reason(error)})") from None
        number, size = self._file.fileno(), os.fstat(self._file.fileno()).st_size
        if os.pread(number, len(_MAGIC), 0) != _MAGIC:
            self._file.close()
            raise self._damaged
        self._start = self._end = len(_MAGIC)
        while len(head := os.pread(number, _HEAD.size, self._end)) == _HEAD.size:
            length, again, _ = _HEAD.unpack(head)
            if length != again:
                self._file.close()
                raise self._damaged
            if not 0 <= length <= size - self._end - _HEAD.size:
                break
            self._start, self._end = self._end, self._end + _HEAD.size + length

    @property
    def _damaged(self) -> ReleaseError:
        return ReleaseError(f"{self._path} is damaged, or of another version of fedsynth")
