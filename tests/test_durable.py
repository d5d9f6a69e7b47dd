"""Files are there whole or not at all."""

from __future__ import annotations

import os

import pytest

from fedsynth.durable import make_folder, write_whole
from fedsynth.errors import MachineError


def test_a_file_is_written_whole_and_left_alone_where_it_says_the_same(tmp_path, monkeypatch):
    path = tmp_path / "file"
    (tmp_path / "file.new").write_text("left by a kill")
    write_whole(path, b"one")
    inode = path.stat().st_ino
    write_whole(path, b"one")
    assert (path.read_bytes(), path.stat().st_ino) == (b"one", inode)
    assert [entry.name for entry in tmp_path.iterdir()] == ["file"]

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MachineError, match=r"file: cannot be written \(No space .* make room"):
        write_whole(path, b"two")
    assert path.read_bytes() == b"one"


def test_a_private_file_is_its_users_alone(tmp_path):
    write_whole(tmp_path / "file", b"one", private=True)
    assert (tmp_path / "file").stat().st_mode & 0o077 == 0


def test_a_folder_and_those_above_it_are_on_disk_when_it_is_made(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr("fedsynth.durable.sync", synced.append)
    make_folder(tmp_path / "a" / "b")
    assert set(synced) == {tmp_path, tmp_path / "a"}
    make_folder(tmp_path / "a" / "b")
    assert len(synced) == 2
