"""An owner's secrets of one attempt, all made from one seed, and what of them is public.

From one seed, so that an answer that was lost is given again to the byte, and what must outlive a
crash is short.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fedsynth.federation.secure import masks, shamir
from fedsynth.federation.secure.frames import cut

SECRET = 31
"""Bytes of a secret that is dealt out: 248 bits, which always fit the field of shares."""
SHARE = 32
BOX = 2 * SHARE + masks.TAG
"""Bytes of a peer's two shares, sealed."""
KEYS = 3 * masks.KEY + masks.SIGNATURE


@dataclass(frozen=True)
class PublicKeys:
    """What an owner shows of an attempt's secrets.

    Attributes:
        sealing, masking: X25519 keys, 32 bytes each.
        commitment: to the secret of its own mask: the server knows a wrong one by it.
        signature: of all three, the attempt and which is for what.
    """

    sealing: bytes
    masking: bytes
    commitment: bytes
    signature: bytes

    @classmethod
    def read(cls, field: bytes) -> PublicKeys:
        """From KEYS bytes."""
        return cls(field[:32], field[32:64], field[64:96], field[96:])

    def write(self) -> bytes:
        return self.sealing + self.masking + self.commitment + self.signature

    def is_signed(self, identity: bytes, context: bytes) -> bool:
        return masks.is_signed(identity, self.signature, self._message(context))

    def sign(self, identity: bytes, context: bytes) -> PublicKeys:
        """The same with the signature of a secret identity."""
        signature = masks.sign(identity, self._message(context))
        return PublicKeys(self.sealing, self.masking, self.commitment, signature)

    def _message(self, context: bytes) -> bytes:
        roles = (b"seals", self.sealing, b"masks", self.masking, b"commits", self.commitment)
        return masks.join(b"keys", context, *roles)


def read_public(field: bytes, places: Sequence[int]) -> dict[int, PublicKeys]:
    """Public keys of owners, one after another. Raises FederationError for another length."""
    cuts = cut(field, KEYS, len(places))
    return {place: PublicKeys.read(own) for place, own in zip(places, cuts, strict=True)}


@dataclass(frozen=True)
class Secrets:
    """What an owner makes for one attempt.

    Attributes:
        sealing: X25519 key; what it agrees on with a peer's seals the shares between the two.
        masking: 31 bytes, dealt out: the X25519 key comes from it that masks are agreed on by.
        own: 31 bytes, dealt out: the owner's own mask comes from it.
        coins: of the polynomials that deal the two out.
    """

    sealing: bytes
    masking: bytes
    own: bytes
    coins: bytes

    @classmethod
    def make(cls, seed: bytes, context: bytes) -> Secrets:
        """Those of a seed of 32 uniform bytes."""
        parts = (b"sealing", b"masking", b"own", b"coins")
        sealing, masking, own, coins = (masks.derive(seed, part, context) for part in parts)
        return cls(sealing, masking[:SECRET], own[:SECRET], coins)

    def show(self, identity: bytes, context: bytes) -> PublicKeys:
        """The public part, signed."""
        sealing, masking = masks.public_of(self.sealing), masks.public_of(masking_key(self.masking))
        return PublicKeys(sealing, masking, commit(self.own, context), b"").sign(identity, context)

    def deal(self, threshold: int, places: Iterable[int]) -> list[tuple[bytes, bytes]]:
        """For each place, shares of `masking` and of `own`, 32 bytes each."""
        size = shamir.COINS * (threshold - 1)
        coins, points = masks.stream(self.coins, 2 * size), [place + 1 for place in places]
        masking = shamir.split(int.from_bytes(self.masking), threshold, points, coins[:size])
        own = shamir.split(int.from_bytes(self.own), threshold, points, coins[size:])
        dealt = zip(masking, own, strict=True)
        return [(first.to_bytes(SHARE), second.to_bytes(SHARE)) for first, second in dealt]


def masking_key(masking: bytes) -> bytes:
    """The secret X25519 key of a secret that was dealt out."""
    return masks.derive(masking, b"masking key")


def commit(own: bytes, context: bytes) -> bytes:
    return masks.derive(own, b"commitment", context)


def own_mask(own: bytes, context: bytes) -> bytes:
    """Key of an owner's own mask."""
    return masks.derive(own, b"own mask", context)


def pair_mask(agreed: bytes, context: bytes, one: int, other: int) -> bytes:
    """Key of the mask that the first of two places adds and the second takes off."""
    return masks.derive(agreed, b"pair mask", context, bytes(sorted((one, other))))


def box_key(agreed: bytes, context: bytes, dealer: int, taker: int) -> bytes:
    """Key of the box with a dealer's shares for a taker."""
    return masks.derive(agreed, b"box", context, bytes((dealer, taker)))


def believed(context: bytes, takers: bytes, public: bytes, dealers: bytes, living: bytes) -> bytes:
    """What owners sign before they open a sum: all lists of the attempt."""
    return masks.join(b"living", context, takers, public, dealers, living)
