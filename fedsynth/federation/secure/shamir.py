"""Secrets dealt out so that `threshold` shares give them back and fewer say nothing (Shamir 1979).

A polynomial of degree threshold - 1 over the integers modulo 2^255 - 19 has the secret at 0 and an
owner's share at the owner's point, from 1 on.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

PRIME = 2**255 - 19
COINS = 48
"""Bytes that a coefficient is made of: 128 bits more than the field's, so none is likelier than
another by more than 2^-128."""


def split(secret: int, threshold: int, points: Iterable[int], coins: bytes) -> list[int]:
    """The shares of a secret in [0, PRIME) at the points, each in [0, PRIME).

    Args:
        coins: uniform bytes, COINS for each of threshold - 1 coefficients.
    """
    starts = range(0, COINS * (threshold - 1), COINS)
    upper = [int.from_bytes(coins[start : start + COINS], "big") % PRIME for start in starts]
    shares = []
    for point in points:
        value = 0
        for coefficient in (*upper, secret):
            # Reduced once at the end: points are small, so it stays short.
            value = value * point + coefficient
        shares.append(value % PRIME)
    return shares


@lru_cache(maxsize=16)
def weights(points: tuple[int, ...]) -> tuple[int, ...]:
    """Lagrange's, by which distinct points' shares add up to the secret."""
    found = []
    for point in points:
        above = below = 1
        for other in points:
            if other != point:
                above = above * other % PRIME
                below = below * (other - point) % PRIME
        found.append(above * pow(below, -1, PRIME) % PRIME)
    return tuple(found)


def combine(shares: Iterable[int], weighed: Iterable[int]) -> int:
    """The secret of as many shares as the threshold, by the weights of their points."""
    return sum(share * weight for share, weight in zip(shares, weighed, strict=True)) % PRIME
