"""Private vectors of simulated clients: each its own, on disk, for the owner alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import FederationError, ReleaseError
from fedsynth.federation.client.memory import MemoryVector
from fedsynth.federation.runtimes.state_file import StateFile


def test_a_state_comes_back_as_it_was_saved(tmp_path: Path):
    for state in (MemoryVector(), StateFile(tmp_path / "states").slot(5)):
        assert state.load() is None
        state.save(np.array([1, np.nan, -0.0], np.float32))
        np.testing.assert_array_equal(state.load(), np.array([1, np.nan, -0.0], np.float32))


@given(writes=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 100)), max_size=30))
def test_slots_never_touch_each_other(
    tmp_path_factory: pytest.TempPathFactory, writes: list[tuple[int, int]]
):
    file = StateFile(tmp_path_factory.mktemp("states") / "states")
    expected: dict[int, int] = {}
    for index, value in writes:
        file.slot(index).save(np.full(4, value, np.float32))
        expected[index] = value
    for index in range(21):
        loaded = file.slot(index).load()
        if index in expected:
            np.testing.assert_array_equal(loaded, np.full(4, expected[index], np.float32))
        else:
            assert loaded is None
    file.close()


@pytest.mark.parametrize("size", [0, 2, 4])
def test_a_vector_of_another_size_is_refused_before_it_runs_into_a_neighbour(
    tmp_path: Path, size: int
):
    file = StateFile(tmp_path / "states")
    file.slot(1).save(np.ones(3, np.float32))
    with pytest.raises(FederationError, match="slot"):
        file.slot(0).save(np.zeros(size, np.float32))
    assert file.slot(0).load() is None
    np.testing.assert_array_equal(file.slot(1).load(), np.ones(3))


def test_states_survive_a_restart_and_are_for_the_owner_alone(tmp_path: Path):
    path = tmp_path / "states"
    first = StateFile(path)
    first.slot(1).save(np.array([1, 2], np.float32))
    first.close()
    np.testing.assert_array_equal(StateFile(path).slot(1).load(), [1, 2])
    assert path.stat().st_mode & 0o077 == 0


def test_a_file_whose_making_was_cut_off_has_no_vectors_and_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """It was once taken for damaged, and the job could not go on."""
    path = tmp_path / "states"

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as cut, pytest.raises(KeyboardInterrupt):
        cut.setattr("os.pwrite", killed)
        StateFile(path).slot(1).save(np.ones(3, np.float32))
    again = StateFile(path)
    assert again.read(1) is None
    again.slot(1).save(np.ones(3, np.float32))
    again.close()
    np.testing.assert_array_equal(StateFile(path).read(1), np.ones(3))
    assert [entry.name for entry in tmp_path.iterdir()] == ["states"]


def test_clients_never_touched_take_no_room(tmp_path: Path):
    file = StateFile(tmp_path / "states")
    file.slot(30_000).save(np.zeros(1000, np.float32))
    assert (tmp_path / "states").stat().st_blocks * 512 < 2**20


def test_a_job_without_private_vectors_makes_no_file(tmp_path: Path):
    file = StateFile(tmp_path / "deep" / "states")
    assert file.slot(0).load() is None
    file.close(delete=True)
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize("content", [b"", b"fedsynth", b"\0" * 4000])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes):
    (tmp_path / "states").write_bytes(content)
    with pytest.raises(ReleaseError, match="damaged or of an earlier version"):
        StateFile(tmp_path / "states")
