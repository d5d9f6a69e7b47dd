"""Files that are there whole or not at all, and still there after a power cut."""

from __future__ import annotations

import os
from pathlib import Path

from fedsynth.errors import ConfigError
from fedsynth.files import writing


def sync(path: Path) -> None:
    """Have a file, or a folder's entries, on disk: only then does a new file survive a crash."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def make_folder(path: Path, *, private: bool = False) -> None:
    """Make a folder, and those above it, on disk when this returns; one that is there stays.

    Args:
        private: its user alone may look into it.

    Raises:
        MachineError: the system refuses it.
    """
    missing = []
    with writing(path):
        for place in (path, *path.parents):
            if place.exists():
                break
            missing.append(place)
        path.mkdir(mode=0o700 if private else 0o777, parents=True, exist_ok=True)
        for place in missing:
            sync(place.parent)


def write_whole(path: Path, body: bytes, *, private: bool = False) -> None:
    """Write a file, all of it or nothing, on disk when this returns; one of the same bytes stays as
    it is.

    Args:
        private: its user alone may read it.

    Raises:
        MachineError: the system refuses it; what stood there stands there still.
    """
    with writing(path):
        if path.is_file() and path.read_bytes() == body:
            if private:
                path.chmod(0o600)
            return
        fresh = path.with_name(f"{path.name}.new")
        with fresh.open("wb") as file:
            if private:
                os.fchmod(file.fileno(), 0o600)
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        sync(path.parent)


def write_new(path: Path, body: bytes, *, private: bool = False) -> None:
    """Write a file that is not there yet, such as a key, on disk when this returns.

    Args:
        private: its user alone may read it, from the first byte.

    Raises:
        ConfigError: it exists.
        MachineError: the system refuses it.
    """
    if path.exists():
        raise ConfigError(f"{path} exists already: choose another name or folder")
    with writing(path):
        mode = 0o600 if private else 0o666
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        with os.fdopen(descriptor, "wb") as file:
            file.write(body)
            file.flush()
            os.fsync(file.fileno())
        sync(path.parent)
