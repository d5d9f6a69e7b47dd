"""Who vouches for a release: Ed25519 signatures of its ledger's head, which fixes everything in it.

A signature says that its owner saw this release and stands for it; what it costs follows from the
ledger alone. Without one, whoever can write all files of a release can write others that agree.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from fedsynth.durable import write_new, write_whole
from fedsynth.errors import ConfigError, ReleaseError
from fedsynth.files import read_plain, writing
from fedsynth.privacy.trail.chain import parse_strictly

NAME = "signatures.json"
PRIVATE, PUBLIC = ".key", ".pub"
# What else is signed by the same key must not be taken for a release.
_PURPOSE = b"fedsynth release\n"


@dataclass(frozen=True)
class Signature:
    """One signature.

    Attributes:
        name: that its owner goes by; whether it is theirs, only the key tells.
        key: public key, 32 bytes in hexadecimal.
        signature: 64 bytes, likewise.
    """

    name: str
    key: str
    signature: str

    def holds(self, head: str) -> bool:
        """Whether the key signed this head."""
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        try:
            key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(self.key))
            key.verify(bytes.fromhex(self.signature), _PURPOSE + head.encode())
        except (InvalidSignature, ValueError):
            return False
        return True


def make_key(path: Path) -> tuple[Path, Path]:
    """Write a fresh key pair as PEM: the private one for its owner alone, and the public one.

    Args:
        path: without an ending.

    Raises:
        ConfigError: one of the files exists.
        MachineError: they cannot be written.
    """
    from cryptography.hazmat.primitives import serialization as pem
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = Ed25519PrivateKey.generate()
    secret = key.private_bytes(pem.Encoding.PEM, pem.PrivateFormat.PKCS8, pem.NoEncryption())
    public = key.public_key().public_bytes(pem.Encoding.PEM, pem.PublicFormat.SubjectPublicKeyInfo)
    paths = path.with_name(path.name + PRIVATE), path.with_name(path.name + PUBLIC)
    for file, body, own in zip(paths, (secret, public), (True, False), strict=True):
        write_new(file, body, private=own)
    return paths


def sign(folder: Path, head: str, key: Path, name: str) -> Signature:
    """Sign a release's head, beside the signatures that stand there.

    Args:
        key: PEM file of an Ed25519 private key without a password.

    Raises:
        ConfigError: no such key.
        ReleaseError: the signatures that stand there are damaged.
    """
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    secret = Ed25519PrivateKey.from_private_bytes(read_secret(key))
    made = Signature(
        name,
        secret.public_key().public_bytes_raw().hex(),
        secret.sign(_PURPOSE + head.encode()).hex(),
    )
    others = [one for one in read_signatures(folder) if one.key != made.key]
    body = json.dumps([asdict(one) for one in (*others, made)], indent=1) + "\n"
    with writing(folder / NAME):
        write_whole(folder / NAME, body.encode())
    return made


def read_secret(key: Path) -> bytes:
    """The 32 bytes of a private key in a PEM file. Raises ConfigError where it holds none."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    try:
        secret = serialization.load_pem_private_key(read_plain(key, ConfigError), None)
    except (ValueError, TypeError):
        secret = None
    if not isinstance(secret, Ed25519PrivateKey):
        raise ConfigError(
            f"{key}: no Ed25519 private key in PEM form without a password; `fedsynth key NAME` "
            "makes one"
        )
    return secret.private_bytes_raw()


def read_signatures(folder: Path) -> tuple[Signature, ...]:
    """Those of a release, whether they hold or not. Raises ReleaseError for a damaged file."""
    path = folder / NAME
    if not path.exists():
        return ()
    try:
        found = tuple(Signature(**one) for one in parse_strictly(read_plain(path, ReleaseError)))
        if not all(isinstance(part, str) for one in found for part in asdict(one).values()):
            raise ValueError("not texts")
    except (ValueError, TypeError):
        raise ReleaseError(f"{path} is damaged: these are no signatures") from None
    return found


def read_keys(path: Path) -> Mapping[str, str]:
    """Public keys by hexadecimal bytes: the name of the file that each stands in, without ending.

    Args:
        path: a PEM file, or a folder of files that end in ``.pub`` or ``.pem``.

    Raises:
        ConfigError: there are none, or one that is no Ed25519 public key.
    """
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    files = [path]
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix in (PUBLIC, ".pem"))
    if not files:
        raise ConfigError(f"{path}: holds no public keys (files ending in {PUBLIC} or .pem)")
    keys = {}
    for file in files:
        try:
            key = serialization.load_pem_public_key(read_plain(file, ConfigError))
        except ValueError:
            key = None
        if not isinstance(key, Ed25519PublicKey):
            raise ConfigError(f"{file}: no Ed25519 public key in PEM form")
        keys[key.public_bytes_raw().hex()] = file.stem
    return keys
