"""Keys, seals and masks: bound to their purpose, right at every length."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, FederationError
from fedsynth.federation.secure import masks
from fedsynth.federation.secure.keys import Secrets

KEYS = st.binary(min_size=32, max_size=32)


@pytest.mark.parametrize("kind", ["<u4", "<u8"])
@pytest.mark.parametrize("beyond", [-1, 0, 1, masks.CHUNK // 4 + 3])
def test_a_mask_is_its_keys_stream_whatever_the_length(kind, beyond):
    size = masks.CHUNK // np.dtype(kind).itemsize + beyond
    values, keys = np.arange(size, dtype=kind), [bytes([one]) * 32 for one in range(3)]
    drawn = [np.frombuffer(masks.stream(key, values.nbytes), kind) for key in keys]
    masked = values.copy()
    masks.mask(masked, keys[:2], keys[2:])
    assert np.array_equal(masked, values + drawn[0] + drawn[1] - drawn[2])
    masks.mask(masked, keys[2:], keys[:2])
    assert np.array_equal(masked, values)


def test_the_stream_is_aes_in_counter_mode_from_zero():
    """NIST's GCM vectors (case 13 of McGrew and Viega, 2005): the block of counter zero is the
    hash key."""
    assert masks.stream(bytes(32), 16).hex() == "dc95c078a2408989ad48a21492842087"


def test_agreed_keys_are_those_of_the_standard():
    """RFC 7748, section 6.1."""
    alice, bob, shared = map(
        bytes.fromhex,
        (
            "77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a",
            "5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb",
            "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742",
        ),
    )
    assert masks.agree(alice, [masks.public_of(bob)]) == [shared]
    assert masks.agree(bob, [masks.public_of(alice)]) == [shared]


@given(KEYS, st.binary(max_size=40), st.data())
def test_a_box_opens_by_its_key_alone_and_unchanged(key, plain, data):
    box = masks.seal(key, plain)
    assert masks.unseal(key, box) == plain
    place = data.draw(st.integers(0, len(box) - 1))
    changed = box[:place] + bytes([box[place] ^ 1]) + box[place + 1 :]
    assert masks.unseal(key, changed) is None
    assert masks.unseal(bytes([key[0] ^ 1]) + key[1:], box) is None


def test_a_signature_holds_for_its_message_and_key_and_here_alone():
    secret, other = bytes(32), bytes([1]) * 32
    signature = masks.sign(secret, b"list")
    assert masks.is_signed(masks.identity_of(secret), signature, b"list")
    assert not masks.is_signed(masks.identity_of(secret), signature, b"other")
    assert not masks.is_signed(masks.identity_of(other), signature, b"list")
    assert not masks.is_signed(bytes(32), signature, b"list")
    assert not masks.is_signed(masks.identity_of(secret), b"", b"list")
    release = masks.LABEL.replace(b"secure sum 1", b"release")
    assert release == b"fedsynth release\n" and not masks.LABEL.startswith(release)


@pytest.mark.parametrize("public", [bytes(32), bytes([1]) + bytes(31)])
def test_a_key_that_agrees_with_everybody_is_refused(public):
    with pytest.raises(FederationError, match="none that agrees"):
        masks.agree(bytes(32), [public])


def test_an_identity_of_another_length_is_refused():
    with pytest.raises(ConfigError, match="32 bytes, not 31"):
        masks.identity_of(bytes(31))


def test_a_seed_used_again_gives_other_secrets():
    """In another attempt they are bound to: should the operating system ever repeat itself."""
    one, other = (Secrets.make(bytes(32), context) for context in (b"one", b"other"))
    parts = [*vars(one).values(), *vars(other).values()]
    assert len(set(parts)) == len(parts)
