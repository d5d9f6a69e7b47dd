"""A chained file: one writer, one spelling, every change shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from fedsynth.errors import PrivacyError, ReleaseError
from fedsynth.privacy.trail import chain


def written(*payloads: str) -> bytes:
    content, previous = b"", chain.START
    for number, payload in enumerate(payloads):
        line = {"line": number, "payload": payload, "previous": previous}
        line["hash"] = previous = chain.digest(line)
        content += chain.canonical(line) + b"\n"
    return content


def test_a_chain_gives_back_what_was_written():
    lines = list(chain.checked(written("a", "ü", "\n"), Path("x")))
    assert [line["payload"] for line in lines] == ["a", "ü", "\n"]


@pytest.mark.parametrize(
    "change",
    [
        lambda c: c.replace(b"\n", b"\r", 1),
        lambda c: c.replace(b":", b": ", 1),
        lambda c: c.replace(b'"payload":"a"', b'"payload":"x"'),
        lambda c: c.replace(b'"payload":"a"', b'"payload":"\\u0061"'),
        lambda c: c.replace(b'{"hash"', b'{"hash":"x","hash"', 1),
        lambda c: c[c.index(b"\n") + 1 :],
        lambda c: b"\n".join(reversed(c.splitlines())) + b"\n",
        lambda c: b"[" * 200_000 + b"\n",
        lambda c: c + b"\n",
        lambda c: b"null\n" + c,
    ],
)
def test_a_line_that_is_changed_respelt_dropped_or_moved_is_named(change):
    with pytest.raises(ReleaseError, match=r"x, line \d: damaged"):
        list(chain.checked(change(written("a", "b")), Path("x")))


def test_a_file_has_one_writer_which_reads_it(tmp_path: Path):
    path = tmp_path / "file"
    file, content = chain.locked(path, create=True)
    assert content == b""
    file.write(b"line\n")
    for create in (True, False):
        with pytest.raises(PrivacyError, match="another process"):
            chain.locked(path, create=create)
    file.close()
    file, content = chain.locked(path, create=False)
    assert content == b"line\n"
    file.close()


@pytest.mark.parametrize("content", [b"", b"{", b'{"bud', b'{"budget":{"curious":null'])
def test_a_first_line_cut_short_is_no_beginning(content: bytes):
    assert not chain.is_begun(content)


@pytest.mark.parametrize("content", [b"\n", b"a list of mine", b"{a: b}", b'{"budget":1}\n{"bud'])
def test_a_whole_line_is_one_and_what_is_no_ledger_is_not_taken_for_a_new_one(content: bytes):
    assert chain.is_begun(content)
