"""A job's folder is one process's at a time, and nothing is left of that."""

from __future__ import annotations

import errno
import fcntl
import os

import pytest

from fedsynth.errors import MachineError, PrivacyError
from fedsynth.holding import _HELD, CHECKPOINT, LOCK, hold


def tried(folder) -> bool:
    """Whether another process can hold the folder."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    code = 1
    try:
        # The child of a holder is no other process to it.
        _HELD.set(frozenset())
        with hold(folder):
            code = 0
    except PrivacyError:
        pass
    finally:
        os._exit(code)


def test_a_folder_that_is_held_is_nobody_elses_and_its_holders_again(tmp_path):
    folder = tmp_path / "deep" / "r"
    with hold(folder):
        assert not tried(folder)
        with hold(folder / ".." / "r"):
            assert not tried(folder)
        assert not tried(folder)
        assert tried(tmp_path / "other")
        (folder / "mine").touch()
    assert tried(folder)
    assert [path.name for path in folder.iterdir()] == ["mine"]
    assert not (tmp_path / "other").exists()


def test_a_folder_that_was_made_for_nothing_goes_again_whatever_ended_it(tmp_path):
    with pytest.raises(ZeroDivisionError), hold(tmp_path / "r"):
        _ = 1 / 0
    assert not (tmp_path / "r").exists()
    with hold(tmp_path / "r"):
        pass


def test_what_a_kill_leaves_is_taken_over(tmp_path):
    lock = tmp_path / CHECKPOINT / LOCK
    lock.parent.mkdir()
    lock.touch()
    with hold(tmp_path):
        assert not tried(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_who_finished_a_job_leaves_the_next_holders_lock_alone(tmp_path):
    lock = tmp_path / CHECKPOINT / LOCK
    with hold(tmp_path):
        lock.unlink()
        lock.touch()
        inode = lock.stat().st_ino
    assert lock.stat().st_ino == inode


def test_what_the_machine_refuses_is_told_as_that(tmp_path, monkeypatch):
    def none(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", none)
    with pytest.raises(MachineError, match="lock: cannot be locked"), hold(tmp_path / "r"):
        pass
    (tmp_path / "file").touch()
    with pytest.raises(MachineError, match="file"), hold(tmp_path / "file" / "r"):
        pass
