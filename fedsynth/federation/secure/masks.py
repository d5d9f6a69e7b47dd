"""Signatures, agreed keys, sealed shares and masks: all that is asked of `cryptography`.

Ed25519 and X25519 (RFC 8032, 7748), HKDF-SHA256 (RFC 5869), ChaCha20-Poly1305 (RFC 8439) and
AES-256 in counter mode. Every key is derived for one purpose and used once, so counters and nonces
start at zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from cryptography.exceptions import InvalidSignature, InvalidTag
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey, X25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from numpy.typing import NDArray

from fedsynth.errors import ConfigError, FederationError

Vector = NDArray[Any]
"""uint32 or uint64 [dim]."""

LABEL = b"fedsynth secure sum 1\n"
"""Before all that is signed, hashed or derived here, so that it passes for nothing else."""

KEY = 32
SIGNATURE = 64
TAG = 16
CHUNK = 2**18
"""Bytes of a mask at a time: with what it is added to, they stay in the processor's cache."""

_ZEROS = bytes(CHUNK)


def identity_of(secret: bytes) -> bytes:
    """The public Ed25519 key of a secret one, 32 bytes each.

    Raises:
        ConfigError: of another length.
    """
    return _signer(secret).public_key().public_bytes_raw()


def sign(secret: bytes, message: bytes) -> bytes:
    """A message's Ed25519 signature, 64 bytes; deterministic."""
    return _signer(secret).sign(LABEL + message)


def is_signed(public: bytes, signature: bytes, message: bytes) -> bool:
    """Whether the key's owner signed the message here."""
    try:
        Ed25519PublicKey.from_public_bytes(public).verify(signature, LABEL + message)
    except (InvalidSignature, ValueError):
        return False
    return True


def _signer(secret: bytes) -> Ed25519PrivateKey:
    try:
        return Ed25519PrivateKey.from_private_bytes(secret)
    except ValueError:
        raise ConfigError(f"an Ed25519 private key has {KEY} bytes, not {len(secret)}") from None


def join(*parts: bytes) -> bytes:
    """Parts with their lengths, so that no two lists of parts give the same bytes."""
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def derive(secret: bytes, *purpose: bytes) -> bytes:
    """32 bytes of a secret for one purpose; they tell nothing of it or of other purposes' bytes."""
    return HKDF(SHA256(), KEY, None, LABEL + join(*purpose)).derive(secret)


def public_of(secret: bytes) -> bytes:
    """The public X25519 key of a secret one, 32 bytes each."""
    return X25519PrivateKey.from_private_bytes(secret).public_key().public_bytes_raw()


def agree(secret: bytes, publics: Iterable[bytes]) -> list[bytes]:
    """What a secret X25519 key shares with each public one, 32 bytes each.

    Raises:
        FederationError: one is of small order, with which everybody shares the same.
    """
    own = X25519PrivateKey.from_private_bytes(secret)
    try:
        return [own.exchange(X25519PublicKey.from_public_bytes(public)) for public in publics]
    except ValueError:
        raise FederationError("an owner's public key is none that agrees with others") from None


def seal(key: bytes, plain: bytes) -> bytes:
    """Encrypt and authenticate; 16 bytes longer. One message a key."""
    return ChaCha20Poly1305(key).encrypt(bytes(12), plain, LABEL)


def unseal(key: bytes, box: bytes) -> bytes | None:
    """The inverse of :func:`seal`; None for what was not sealed by this key."""
    try:
        return ChaCha20Poly1305(key).decrypt(bytes(12), box, LABEL)
    except InvalidTag:
        return None


def stream(key: bytes, size: int) -> bytes:
    """The first bytes of a key's stream."""
    drawn: bytes = _encryptor(key).update(bytes(size))
    return drawn


def mask(values: Vector, added: Sequence[bytes], removed: Sequence[bytes]) -> None:
    """Add and subtract the masks of keys, in place, modulo 2^32 or 2^64.

    A mask is the key's stream, read as little-endian numbers of the values' width.
    """
    streams: list[tuple[Any, Any]] = [(_encryptor(key), np.add) for key in added]
    streams += [(_encryptor(key), np.subtract) for key in removed]
    buffer = bytearray(CHUNK + 15)
    drawn = np.frombuffer(buffer, values.dtype, CHUNK // values.itemsize)
    for start in range(0, len(values), len(drawn)):
        part: Any = values[start : start + len(drawn)]
        zeros = memoryview(_ZEROS)[: part.nbytes]
        for one, combine in streams:
            one.update_into(zeros, buffer)
            combine(part, drawn[: len(part)], out=part)


def _encryptor(key: bytes) -> Any:
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor()
