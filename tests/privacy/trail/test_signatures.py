"""Keys and signatures: whose they are, and that they hold for one release alone."""

from __future__ import annotations

import json
import stat
import subprocess
from pathlib import Path

import pytest

from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.privacy.trail.signatures import NAME, make_key, read_keys, read_signatures, sign

HEAD, OTHER = "a" * 64, "b" * 64


@pytest.fixture
def keys(tmp_path: Path) -> tuple[Path, Path]:
    return make_key(tmp_path / "north")


def test_a_signature_holds_for_its_head_alone(tmp_path: Path, keys):
    made = sign(tmp_path, HEAD, keys[0], "North")
    assert made.holds(HEAD) and not made.holds(OTHER)
    assert read_signatures(tmp_path) == (made,)
    assert read_keys(keys[1]) == {made.key: "north"}


def test_others_signatures_stay_and_one_key_signs_once(tmp_path: Path, keys):
    second, _ = make_key(tmp_path / "south")
    sign(tmp_path, OTHER, keys[0], "North")
    sign(tmp_path, HEAD, second, "South")
    sign(tmp_path, HEAD, keys[0], "North again")
    assert [one.name for one in read_signatures(tmp_path)] == ["South", "North again"]
    assert all(one.holds(HEAD) for one in read_signatures(tmp_path))


def test_openssl_checks_what_was_signed(tmp_path: Path, keys):
    """Another library's word: OpenSSL, by the documented message."""
    made = sign(tmp_path, HEAD, keys[0], "North")
    (tmp_path / "message").write_bytes(b"fedsynth release\n" + HEAD.encode())
    (tmp_path / "signature").write_bytes(bytes.fromhex(made.signature))
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-inkey", keys[1], "-rawin"]
    try:
        done = subprocess.run(
            [*command, "-in", tmp_path / "message", "-sigfile", tmp_path / "signature"],
            capture_output=True,
            check=False,
        )
    except FileNotFoundError:
        pytest.skip("there is no openssl")
    assert done.returncode == 0, done.stderr


def test_a_private_key_is_its_owners_and_is_never_overwritten(tmp_path: Path, keys):
    assert stat.S_IMODE(keys[0].stat().st_mode) == 0o600
    before = keys[0].read_bytes()
    with pytest.raises(ConfigError, match="exists already"):
        make_key(tmp_path / "north")
    assert keys[0].read_bytes() == before


@pytest.mark.parametrize("change", ["name", "key", "signature"])
def test_a_changed_part_no_longer_holds_or_is_another_name(tmp_path: Path, keys, change: str):
    sign(tmp_path, HEAD, keys[0], "North")
    content = json.loads((tmp_path / NAME).read_text())
    changed = content[0][change]
    content[0][change] = changed[:-1] + ("1" if changed[-1] == "0" else "0")
    (tmp_path / NAME).write_text(json.dumps(content))
    # A name is what somebody calls himself: the key is what is trusted.
    assert read_signatures(tmp_path)[0].holds(HEAD) is (change == "name")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{}",
        "[1]",
        '[{"name": "x"}]',
        '[{"name": 1, "key": "", "signature": ""}]',
        '[{"name": "x", "name": "y", "key": "", "signature": ""}]',
    ],
)
def test_damaged_signatures_are_said_to_be_damaged(tmp_path: Path, text: str):
    (tmp_path / NAME).write_text(text)
    if text == "{}":
        assert read_signatures(tmp_path) == ()
        return
    with pytest.raises(ReleaseError, match="damaged"):
        read_signatures(tmp_path)


def test_what_is_no_key_is_refused(tmp_path: Path, keys):
    (tmp_path / "words.pub").write_text("no key")
    with pytest.raises(ConfigError, match=r"words\.pub: no Ed25519 public key"):
        read_keys(tmp_path)
    with pytest.raises(ConfigError, match="no Ed25519 private key"):
        sign(tmp_path, HEAD, keys[1], "North")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match="holds no public keys"):
        read_keys(tmp_path / "empty")
