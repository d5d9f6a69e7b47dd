"""What was given of a round is given again, or known not to have been given."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import MachineError, ReleaseError
from fedsynth.federation import kept as module
from fedsynth.federation.kept import Kept

VALUES = np.array([1.5, -2.0, np.pi])


def filled(path: Path, rounds: int = 2, *, durable: bool = True) -> Kept:
    kept = Kept.create(path, durable=durable)
    for number in range(rounds):
        kept.keep(number, f"asked {number}", {"total": VALUES + number}, [number, "told"])
    return kept


def same(found, number: int) -> bool:
    asked, arrays, plain = found
    told = (asked, plain) == (f"asked {number}", [number, "told"])
    return told and arrays["total"].tobytes() == (VALUES + number).tobytes()


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("keep"), st.integers(0, 6)),
        st.tuples(st.just("settle"), st.integers(0, 7)),
        st.tuples(st.just("restart"), st.none()),
    ),
    max_size=12,
)


@settings(max_examples=30)
@given(steps=STEPS, durable=st.booleans())
def test_it_is_a_mapping_that_outlives_its_process(steps, durable):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kept"
        kept, known, settled = Kept.create(path, durable=durable), {}, 0
        for step, number in steps:
            if step == "restart":
                kept.close()
                kept = Kept(path, durable=durable)
            elif step == "settle":
                kept.settle(number)
                settled = max(settled, number)
            elif number not in known and number >= settled:
                kept.keep(number, f"asked {number}", {"total": VALUES + number}, [number, "told"])
                known[number] = number
        for number in range(8):
            found = kept.find(number)
            assert (found is not None) == (number in known and number >= settled)
            assert found is None or same(found, number)
            assert kept.unsent(number) == (number >= settled and number not in known)
        kept.close(delete=True)
        assert not list(Path(folder).iterdir())


@pytest.mark.parametrize("durable", [True, False])
def test_an_entry_that_was_cut_short_was_never_given(tmp_path, durable):
    path = tmp_path / "kept"
    filled(path, 1).close()
    whole = path.stat().st_size
    filled(path, 2).close()
    body = path.read_bytes()
    for size in (*range(whole, len(body), 41), len(body) - 1):
        path.write_bytes(body[:size])
        kept = Kept(path, durable=durable)
        assert same(kept.find(0), 0) and kept.find(1) is None and kept.unsent(1)
        # It is written over.
        kept.keep(1, "asked 1", {"total": VALUES + 1}, [1, "told"])
        kept.close()
        kept = Kept(path, durable=durable)
        assert same(kept.find(0), 0) and same(kept.find(1), 1)
        kept.close()


def test_what_was_given_and_damaged_since_is_not_taken_for_something_that_was_not(tmp_path):
    path = tmp_path / "kept"
    filled(path).close()
    body = bytearray(path.read_bytes())
    body[-3] ^= 1
    path.write_bytes(bytes(body))
    kept = Kept(path, durable=True)
    assert not kept.unsent(1)
    with pytest.raises(ReleaseError, match="round 1"):
        kept.find(1)
    kept.close()
    # Unless a power cut may have done it.
    assert Kept(path, durable=False).unsent(1)


def test_only_its_user_may_read_it(tmp_path):
    filled(tmp_path / "kept")
    assert (tmp_path / "kept").stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("call", ["pwrite", "fsync"])
def test_what_the_disk_does_not_take_is_not_given_and_may_be_kept_later(
    tmp_path, monkeypatch, call
):
    kept = filled(tmp_path / "kept", 1)

    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(MachineError, match="No space left"):
        patch.setattr(module.os, call, full)
        kept.keep(1, "asked 1", {"total": VALUES}, None)
    assert kept.unsent(1)
    kept.keep(1, "asked 1", {"total": VALUES + 1}, [1, "told"])
    assert same(kept.find(0), 0) and same(kept.find(1), 1)


def test_a_file_of_another_kind_is_refused_in_words(tmp_path):
    for content in (b"", b"fskept0", b"something else of some length"):
        (tmp_path / "kept").write_bytes(content)
        with pytest.raises(ReleaseError, match="damaged, or no file"):
            Kept(tmp_path / "kept", durable=True)
    with pytest.raises(ReleaseError, match="cannot be opened"):
        Kept(tmp_path / "none", durable=True)
