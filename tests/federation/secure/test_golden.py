"""One attempt with fixed secrets, byte by byte, and worked out a second time from the page alone.

`python -m tests.federation.secure.test_golden` writes it anew, for a new version of the protocol.
"""

from __future__ import annotations

import hashlib
import hmac
import json
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

from fedsynth.federation.secure import masks, party
from fedsynth.federation.secure.frames import Step
from fedsynth.federation.secure.leader import Leader
from fedsynth.federation.secure.party import Party
from fedsynth.federation.secure.rules import Roster, Rules

GOLDEN = Path(__file__).with_name("golden.json")
JOB, ROUND, ATTEMPT, NAMES = "golden", 7, 2, ("Ada", "Béla", "Chloé", "Dai")
# Dai's numbers come late: his masking key is opened.
LATE = 3
IDENTITIES = [bytes([1 + place]) * 32 for place in range(4)]
SEEDS = [bytes([101 + place]) * 32 for place in range(4)]
# Below zero they wrap.
VALUES = [np.arange(5, dtype="<u8") - np.uint64(place * 10**9) for place in range(4)]


def record():
    """Every request and answer, and the sum, as hexadecimal."""
    roster = Roster(
        JOB,
        {name: masks.identity_of(one) for name, one in zip(NAMES, IDENTITIES, strict=True)},
        Rules(4, 3, 1),
    )
    parties, said = {}, []
    for name, identity in zip(NAMES, IDENTITIES, strict=True):
        parties[name] = Party(name, identity, roster, lambda state: None)
    leader, opened = Leader(roster, ATTEMPT), None
    leader.begin(ROUND, 5)
    with pytest.MonkeyPatch.context() as patch:
        while not opened:
            step = leader._step
            for name, request in leader.requests().items():
                place = NAMES.index(name)
                patch.setattr(party.os, "urandom", lambda size, place=place: SEEDS[place])
                answer = parties[name].answer(request, lambda round, place=place: VALUES[place])
                said.append([step.name, name, request.hex(), answer.hex()])
                if (step, place) != (Step.MASKED, LATE):
                    leader.receive(name, answer)
            opened = leader.advance()
    return {"said": said, "total": [int(one) for one in opened.total]}


@cache
def golden():
    return json.loads(GOLDEN.read_text(encoding="utf-8"))


def test_every_byte_of_an_attempt_is_the_golden_one():
    assert record() == golden()


# From here on nothing of fedsynth is used.
LABEL, PRIME = b"fedsynth secure sum 1\n", 2**255 - 19


def join(*parts):
    return b"".join(len(part).to_bytes(8, "big") + part for part in parts)


def derive(secret, *purpose):
    """HKDF-SHA256 (RFC 5869) without salt, of one block."""
    extracted = hmac.digest(bytes(32), secret, "sha256")
    return hmac.digest(extracted, LABEL + join(*purpose) + b"\x01", "sha256")


def x25519(secret, point):
    """RFC 7748, section 5."""
    bits = int.from_bytes(secret, "little") & ~7 & (2**255 - 1) | 2**254
    one, x = point & (2**255 - 1), point & (2**255 - 1)
    x2, z2, x3, z3 = 1, 0, x, 1
    for bit in reversed(range(255)):
        if bits >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
        a, b, c, d = x2 + z2, x2 - z2, x3 + z3, x3 - z3
        da, cb, aa, bb = d * a, c * b, a * a, b * b
        x3, z3 = (da + cb) ** 2 % PRIME, one * (da - cb) ** 2 % PRIME
        x2, z2 = aa * bb % PRIME, (aa - bb) * (aa + 121665 * (aa - bb)) % PRIME
        if bits >> bit & 1:
            x2, z2, x3, z3 = x3, z3, x2, z2
    return (x2 * pow(z2, -1, PRIME) % PRIME).to_bytes(32, "little")


def public_of(secret):
    return x25519(secret, 9)


def agree(secret, public):
    return x25519(secret, int.from_bytes(public, "little"))


def keystream(key, size):
    return Cipher(algorithms.AES256(key), modes.CTR(bytes(16))).encryptor().update(bytes(size))


def split(secret, threshold, point, coins):
    powers = [int.from_bytes(coins[at : at + 48]) for at in range(0, 48 * (threshold - 1), 48)]
    terms = zip((*powers, int.from_bytes(secret)), reversed(range(threshold)), strict=True)
    return (sum(factor * point**power for factor, power in terms) % PRIME).to_bytes(32)


def context():
    owners = []
    for name, identity in sorted(zip(NAMES, IDENTITIES, strict=True)):
        public = Ed25519PrivateKey.from_private_bytes(identity).public_key()
        owners += [name.encode(), public.public_bytes_raw()]
    digest = hashlib.sha256(
        LABEL + join(b"roster", JOB.encode(), bytes((4, 3, 1)), *owners)
    ).digest()
    return join(b"attempt", digest, ROUND.to_bytes(8), ATTEMPT.to_bytes(8))


def secrets(place):
    parts = (b"sealing", b"masking", b"own", b"coins")
    sealing, masking, own, coins = (derive(SEEDS[place], part, context()) for part in parts)
    return sealing, masking[:31], own[:31], coins


def masking_key(place):
    return derive(secrets(place)[1], b"masking key")


def fields(step, name):
    """Of an answer, by hand: after version, step, round, attempt and number of fields."""
    (answer,) = [one for s, n, _, one in golden()["said"] if (s, n) == (step, name)]
    left, found = bytes.fromhex(answer)[19:], []
    while left:
        size = int.from_bytes(left[:4])
        found.append(left[4 : 4 + size])
        left = left[4 + size :]
    return found


def verify(place, signature, message):
    public = Ed25519PrivateKey.from_private_bytes(IDENTITIES[place]).public_key()
    Ed25519PublicKey.from_public_bytes(public.public_bytes_raw()).verify(signature, LABEL + message)


@pytest.mark.parametrize("place", range(4))
def test_keys_are_those_of_a_second_reading(place):
    (shown,) = fields("KEYS", NAMES[place])
    sealing, masking, commitment = (
        public_of(secrets(place)[0]),
        public_of(masking_key(place)),
        derive(secrets(place)[2], b"commitment", context()),
    )
    assert shown[:96] == sealing + masking + commitment
    roles = (b"seals", sealing, b"masks", masking, b"commits", commitment)
    verify(place, shown[96:], join(b"keys", context(), *roles))


def shares(dealer, taker):
    _, masking, own, coins = secrets(dealer)
    drawn = keystream(coins, 2 * 48 * 2)
    return split(masking, 3, taker + 1, drawn[:96]), split(own, 3, taker + 1, drawn[96:])


def test_shares_are_those_of_a_second_reading():
    for dealer in range(4):
        takers, boxes = fields("SHARES", NAMES[dealer])
        others = [place for place in range(4) if place != dealer]
        assert takers == bytes(place != dealer for place in range(4))
        for number, taker in enumerate(others):
            agreed = agree(secrets(dealer)[0], public_of(secrets(taker)[0]))
            key = derive(agreed, b"box", context(), bytes((dealer, taker)))
            box = boxes[80 * number : 80 * (number + 1)]
            plain = ChaCha20Poly1305(key).decrypt(bytes(12), box, LABEL)
            assert plain == b"".join(shares(dealer, taker))


@pytest.mark.parametrize("place", range(4))
def test_masked_numbers_are_those_of_a_second_reading(place):
    kind, numbers = fields("MASKED", NAMES[place])
    own = keystream(derive(secrets(place)[2], b"own mask", context()), 40)
    expected = VALUES[place] + np.frombuffer(own, "<u8")
    for other in {0, 1, 2, 3} - {place}:
        agreed = agree(masking_key(place), public_of(masking_key(other)))
        pair = bytes(sorted((place, other)))
        mask = np.frombuffer(keystream(derive(agreed, b"pair mask", context(), pair), 40), "<u8")
        expected = expected + mask if place < other else expected - mask
    assert kind == b"<u8" and numbers == expected.tobytes()


@pytest.mark.parametrize("place", range(3))
def test_what_is_signed_and_handed_over_is_that_of_a_second_reading(place):
    takers, public = bytes([1] * 4), b"".join(fields("KEYS", name)[0] for name in NAMES)
    (signature,) = fields("LIVING", NAMES[place])
    verify(
        place, signature, join(b"living", context(), takers, public, takers, bytes((1, 1, 1, 0)))
    )
    about, given = fields("UNMASK", NAMES[place])
    assert about == takers
    own = [shares(dealer, place)[1] for dealer in range(3)]
    assert given == b"".join([*own, shares(LATE, place)[0]])


def test_the_sum_is_that_of_the_three_whose_numbers_came():
    assert golden()["total"] == [int(one) for one in VALUES[0] + VALUES[1] + VALUES[2]]


if __name__ == "__main__":
    GOLDEN.write_text(json.dumps(record(), indent=0) + "\n", encoding="utf-8")
