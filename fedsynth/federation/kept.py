"""What was given of a job's rounds, written down before anybody gets it: so it can be given again.

Whoever gives something of a round keeps it first. Then what is not kept was never given, whenever
the process was stopped: such a round may be made once more under the charge that it has. And what
is kept is given again to the last bit, which is one release, however often it is sent. A client's
side keeps answers (:mod:`fedsynth.federation.runtimes.local`), on disk before they leave it; the
server what it released (:mod:`fedsynth.federation.server.rounds`).
"""

from __future__ import annotations

import hashlib
import json
import os
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load, save

from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import MachineError, ReleaseError
from fedsynth.files import reason, refused

Arrays = Mapping[str, NDArray[Any]]

_MAGIC = b"fskept01"
# Behind it the first round that is not settled.
_START = struct.Struct("<8sq")
# Of a round: its number, bytes that follow, and their SHA-256.
_HEAD = struct.Struct("<qq32s")


class Kept:
    """Rounds in a file that its user alone may read; those that are settled are let go of.

    Args:
        path: of a file that :meth:`create` made. A last entry that was cut short was never given,
            so it is dropped.
        durable: whether what is kept is on disk before it is given. Otherwise a power cut may take
            the last entries: from the first that is not whole on, they are dropped.

    Raises:
        ReleaseError: no such file, or none of this format.
    """

    def __init__(self, path: Path, *, durable: bool) -> None:
        self.path, self._durable = path, durable
        try:
            # Unbuffered, and let go of even where nobody closes it.
            self._file = path.open("r+b", buffering=0)
        except OSError as error:
            raise ReleaseError(f"{path} cannot be opened ({reason(error)})") from None
        head = os.pread(self._file.fileno(), _START.size, 0)
        if len(head) < _START.size or not head.startswith(_MAGIC):
            self._file.close()
            raise ReleaseError(f"{path} is damaged, or no file of rounds of this fedsynth")
        self.settled: int = _START.unpack(head)[1]
        self._places: dict[int, tuple[int, int, bytes]] = {}
        self._end, size = _START.size, os.fstat(self._file.fileno()).st_size
        while len(head := os.pread(self._file.fileno(), _HEAD.size, self._end)) == _HEAD.size:
            number, length, digest = _HEAD.unpack(head)
            start = self._end + _HEAD.size
            if not 0 <= length <= size - start:
                break
            if not durable and hashlib.sha256(self._read(start, length)).digest() != digest:
                break
            self._places[number] = start, length, digest
            self._end = start + length

    @classmethod
    def create(cls, path: Path, settled: int = 0, *, durable: bool) -> Kept:
        """A file of no rounds, on disk when this returns; one that is there is replaced.

        Raises:
            MachineError: the disk does not take it.
        """
        try:
            make_folder(path.parent)
            write_whole(path, _START.pack(_MAGIC, settled), private=True)
        except OSError as error:
            _refuse(path, error)
        return cls(path, durable=durable)

    def unsent(self, number: int) -> bool:
        """Whether nothing of a round was ever given."""
        return number >= self.settled and number not in self._places

    def find(self, number: int) -> tuple[str, dict[str, NDArray[Any]], Any] | None:
        """The digest of what was asked in a round, and what was given: arrays, and plain values.
        None of rounds that were not, or are settled.

        Raises:
            ReleaseError: the file was damaged since.
        """
        if number < self.settled or number not in self._places:
            return None
        start, length, digest = self._places[number]
        body = self._read(start, length)
        try:
            if hashlib.sha256(body).digest() != digest:
                raise ValueError("another hash")
            head = int.from_bytes(body[:8], "little")
            told = json.loads(json.loads(body[8 : 8 + head])["__metadata__"]["told"])
            return str(told["asked"]), load(body), told["plain"]
        except (SafetensorError, ValueError, KeyError, TypeError):
            raise ReleaseError(
                f"{self.path} is damaged: what was given of round {number} cannot be read. "
                "Delete the file to go on without it: the round stays paid for"
            ) from None

    def keep(self, number: int, asked: str, arrays: Arrays, plain: Any) -> None:
        """Write down what a round gives; on disk when this returns, if it is to be durable.

        Args:
            asked: digest of what was asked.
            plain: JSON-able.

        Raises:
            MachineError: the disk does not take it, so nothing may be given.
        """
        whole = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        body = save(whole, {"told": json.dumps({"asked": asked, "plain": plain})})
        digest = hashlib.sha256(body).digest()
        entry = _HEAD.pack(number, len(body), digest) + body
        try:
            os.ftruncate(self._file.fileno(), self._end)
            written = 0
            while written < len(entry):
                written += os.pwrite(self._file.fileno(), entry[written:], self._end + written)
            self._sync()
        except OSError as error:
            _refuse(self.path, error)
        self._places[number] = self._end + _HEAD.size, len(body), digest
        self._end += len(entry)

    def settle(self, rounds: int) -> None:
        """Let go of all rounds below ``rounds``: whoever got them has them for good, and none of
        them is given or made again. Those from there on stay.

        Raises:
            MachineError: the disk does not take it.
        """
        if rounds <= self.settled:
            return
        try:
            os.pwrite(self._file.fileno(), _START.pack(_MAGIC, rounds), 0)
            # Without it what was given would look as if it were not, once it is cut off.
            self._sync()
            self.settled = rounds
            if all(number < rounds for number in self._places):
                os.ftruncate(self._file.fileno(), _START.size)
                self._places, self._end = {}, _START.size
        except OSError as error:
            _refuse(self.path, error)

    def _read(self, start: int, length: int) -> bytes:
        return os.pread(self._file.fileno(), length, start)

    def _sync(self) -> None:
        if self._durable:
            os.fsync(self._file.fileno())

    def close(self, *, delete: bool = False) -> None:
        """Let go of the file, and of what is in it."""
        self._file.close()
        if delete:
            self.path.unlink(missing_ok=True)


def _refuse(path: Path, error: OSError) -> NoReturn:
    raise MachineError(
        f"{refused(path, error)}. Nothing of the round is given, and nothing is lost: resume the "
        "job then, and what is paid for is not paid again"
    ) from None
