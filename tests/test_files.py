"""What is opened is a plain file of a size that is read; what a system refuses is told with it."""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import sys
import zipfile

import pytest

from fedsynth import files
from fedsynth.errors import DataError, MachineError, ReleaseError, SchemaError
from fedsynth.files import (
    Limited,
    blame_machine,
    demand_unpacked,
    module_path,
    private,
    read_plain,
    refused,
    writing,
)


@pytest.mark.parametrize("kind", ["a folder", "a pipe", "a device", "a link to a device"])
def test_what_is_no_plain_file_is_not_read(tmp_path, kind):
    path = tmp_path / "it"
    if kind == "a folder":
        path.mkdir()
    elif kind == "a pipe":
        os.mkfifo(path)
    elif kind == "a link to a device":
        path.symlink_to("/dev/zero")
    path = "/dev/zero" if kind == "a device" else path
    with pytest.raises(SchemaError, match=f"is {kind.removeprefix('a link to ')}: give a file"):
        read_plain(path, SchemaError)


def test_a_file_is_read_up_to_its_limit_and_no_further(tmp_path):
    (tmp_path / "f").write_bytes(b"12345")
    assert read_plain(tmp_path / "f", DataError, 5) == b"12345"
    with pytest.raises(ReleaseError, match="larger than 4 bytes"):
        read_plain(tmp_path / "f", ReleaseError, 4)


def test_a_path_that_leads_nowhere_is_its_givers_fault_and_a_refusal_the_machines(
    tmp_path, monkeypatch
):
    with pytest.raises(DataError, match=r"No such file or directory\); check the path"):
        read_plain(tmp_path / "no", DataError)

    def refuse(*arguments, **named):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(files.os, "open", refuse)
    with pytest.raises(MachineError, match=r"cannot be read \(Permission denied\): see to its"):
        read_plain(tmp_path / "no", DataError)


@pytest.mark.parametrize(
    ("code", "advice"),
    [(errno.ENOSPC, "make room"), (errno.EROFS, "can be written"), (errno.EMFILE, "ulimit")],
)
def test_a_refusal_names_the_file_and_what_to_do(tmp_path, code, advice):
    with pytest.raises(MachineError, match=advice) as told, writing(tmp_path / "f"):
        raise OSError(code, os.strerror(code))
    assert f"{tmp_path / 'f'}: cannot be written ({os.strerror(code)})" in str(told.value)


def test_a_refusal_without_a_reason_has_words_all_the_same(tmp_path):
    assert "None" not in str(refused(tmp_path / "f", OSError("odd")))
    assert "None" not in str(blame_machine(OSError("odd")))
    assert "No such file" in str(refused(tmp_path / "no" / "f", OSError("no directory")))
    assert "not enough memory" in str(blame_machine(MemoryError()))


def test_a_stream_ends_with_an_error_after_so_many_bytes():
    packed = gzip.compress(bytes(10**6))
    error = DataError("too much")
    for most, good in ((10**6, True), (10**6 - 1, False)):
        opened = gzip.open(io.BytesIO(packed))  # noqa: SIM115
        stream = io.BufferedReader(Limited(opened, most, error))
        if good:
            assert len(stream.read()) == 10**6
        else:
            with pytest.raises(DataError, match="too much"):
                stream.read()


def test_an_archive_that_unpacks_to_more_than_memory_is_refused(tmp_path, monkeypatch):
    with zipfile.ZipFile(tmp_path / "a.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", bytes(10**6))
    demand_unpacked(tmp_path / "a.npz", DataError)
    monkeypatch.setattr(files, "memory", lambda: 10**6)
    with pytest.raises(DataError, match="unpacks to 1 MB or more"):
        demand_unpacked(tmp_path / "a.npz", DataError)


def test_the_working_directory_is_no_place_for_modules(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for here in ("", ".", str(tmp_path)):
        monkeypatch.setattr(sys, "path", [here, "/elsewhere"])
        assert not {"", ".", str(tmp_path)} & set(module_path())
        assert module_path()[-1] == "/elsewhere" and len(module_path()) == 2


def test_files_are_private_meanwhile(tmp_path):
    before = os.umask(0o022)
    try:
        with private():
            (tmp_path / "a").touch()
        (tmp_path / "b").touch()
    finally:
        os.umask(before)
    modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in "ab"]
    assert modes == [0o600, 0o644]
