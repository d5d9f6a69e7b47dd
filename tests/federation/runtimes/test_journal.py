"""A journal: what was written last is there again, and never something older in its place."""

from __future__ import annotations

import errno
import os
import stat
from contextlib import closing
from pathlib import Path
from unittest.mock import patch

import pytest

from fedsynth.errors import MachineError, ReleaseError
from fedsynth.federation.runtimes import journal as module
from fedsynth.federation.runtimes.journal import Journal

STATES = [b"first", b"", b"a third that is longer"]


def write(path: Path, *states: bytes) -> None:
    with closing(Journal(path, fresh=True)) as journal:
        for state in states:
            journal.write(state)
            assert journal.last == state


def last(path: Path) -> bytes | None:
    with closing(Journal(path, fresh=False)) as journal:
        return journal.last


def test_the_last_is_there_again_for_its_user_alone_and_a_fresh_one_forgets_it(tmp_path):
    path = tmp_path / "j"
    for count in range(len(STATES) + 1):
        write(path, *STATES[:count])
        assert last(path) == (STATES[count - 1] if count else None)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    write(path)
    assert last(path) is None


def test_an_entry_that_was_cut_short_anywhere_was_never_acted_on(tmp_path):
    path = tmp_path / "j"
    write(path, *STATES[:2])
    before = path.stat().st_size
    with closing(Journal(path, fresh=False)) as journal:
        journal.write(STATES[2])
    whole = path.read_bytes()
    for size in range(before, len(whole)):
        path.write_bytes(whole[:size])
        assert last(path) == STATES[1]
        with closing(Journal(path, fresh=False)) as journal:
            journal.write(b"next")
        assert last(path) == b"next"


def test_a_damaged_last_entry_is_not_passed_over_for_an_older_one(tmp_path):
    path = tmp_path / "j"
    write(path, *STATES)
    whole = path.read_bytes()
    for place in (0, *range(len(whole) - len(STATES[2]) - 48, len(whole))):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ReleaseError, match="is damaged"):
            last(path)
    path.unlink()
    with pytest.raises(MachineError, match="cannot be opened"):
        last(path)


def test_it_does_not_grow_without_end(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST", 2_000)
    path, sizes = tmp_path / "j", []
    with closing(Journal(path, fresh=True)) as journal:
        for number in range(100):
            journal.write(bytes([number]) * 90)
            assert journal.last == bytes([number]) * 90
            sizes.append(path.stat().st_size)
    assert max(sizes) < 2_400 and sizes[-1] > 90
    assert last(path) == bytes([99]) * 90


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_what_a_full_disk_does_not_take_leaves_the_last_as_it_was(call, tmp_path):
    path = tmp_path / "j"
    with closing(Journal(path, fresh=True)) as journal:
        journal.write(b"before")
        full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        with (
            patch.object(module.os, call, side_effect=full),
            pytest.raises(MachineError, match=r"No space left on device.*make room"),
        ):
            journal.write(b"lost")
        assert journal.last == b"before"
        journal.write(b"after")
    assert last(path) == b"after"
