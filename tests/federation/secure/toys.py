"""Stand-ins for the ciphers, a hundred times as fast and of no worth against an attacker.

For tests of what owners sign and hand over, thousands of them: whoever plays the attacker there
breaks no cipher, but says whatever it likes.
"""

from __future__ import annotations

import hashlib
from contextlib import contextmanager

import pytest

from fedsynth.federation.secure import masks


def _hash(*parts):
    return hashlib.sha256(b"|".join(parts)).digest()


def identity_of(secret):
    return _hash(b"identity", secret)


def sign(secret, message):
    return _hash(b"signature", identity_of(secret), message) * 2


def is_signed(public, signature, message):
    return signature == _hash(b"signature", public, message) * 2


def derive(secret, *purpose):
    return _hash(secret, *purpose)


def public_of(secret):
    return _hash(b"public", secret)


def agree(secret, publics):
    own = public_of(secret)
    return [_hash(b"agreed", *sorted((own, public))) for public in publics]


def seal(key, plain):
    return plain + _hash(key, plain)[: masks.TAG]


def unseal(key, box):
    plain = box[: -masks.TAG]
    return plain if seal(key, plain) == box else None


def stream(key, size):
    return hashlib.shake_128(key).digest(size)


@contextmanager
def toys(mask):
    """Owners and servers with stand-ins, and what stands for `masks.mask`."""
    with pytest.MonkeyPatch.context() as patch:
        for toy in (identity_of, sign, is_signed, derive, public_of, agree, seal, unseal, stream):
            patch.setattr(masks, toy.__name__, toy)
        patch.setattr(masks, "mask", mask)
        yield
