"""Shares of a secret: enough give it back, fewer say nothing."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product

from hypothesis import given
from hypothesis import strategies as st

from fedsynth.federation.secure import shamir
from fedsynth.federation.secure.shamir import COINS, PRIME, combine, split, weights


@given(data=st.data())
def test_any_threshold_of_shares_give_the_secret(data):
    points = data.draw(st.lists(st.integers(1, 100), min_size=1, max_size=12, unique=True))
    threshold = data.draw(st.integers(1, len(points)))
    secret = data.draw(st.integers(0, PRIME - 1))
    coins = data.draw(st.binary(min_size=COINS * threshold, max_size=COINS * threshold))
    shares = dict(zip(points, split(secret, threshold, points, coins), strict=True))
    helpers = data.draw(st.permutations(points))[:threshold]
    assert combine([shares[point] for point in helpers], weights(tuple(helpers))) == secret


def test_shares_lie_on_the_polynomial_worked_out_by_hand():
    """3 + 5 x + 2 x^2 at 1, 2 and 10; its coefficients come highest first."""
    coins = (2).to_bytes(COINS) + (5).to_bytes(COINS)
    assert split(3, 3, (1, 2, 10), coins) == [10, 21, 253]
    assert weights((1, 2, 4)) == tuple(
        w % PRIME for w in (8 * pow(3, -1, PRIME), -2, pow(3, -1, PRIME))
    )


def test_fewer_shares_than_the_threshold_are_uniform_whatever_the_secret(monkeypatch):
    """Counted over all polynomials modulo 7: any two of four owners' shares of three."""
    monkeypatch.setattr(shamir, "PRIME", 7)
    for secret, points in product((0, 3, 6), combinations(range(1, 5), 2)):
        seen = Counter()
        for drawn in product(range(7), repeat=2):
            coins = b"".join(one.to_bytes(COINS) for one in drawn)
            seen[tuple(split(secret, 3, points, coins))] += 1
        assert set(seen) == set(product(range(7), repeat=2)) and set(seen.values()) == {1}


def test_one_share_too_few_gives_another_secret():
    coins = bytes(range(2 * COINS))
    shares = split(42, 3, (1, 2, 3), coins)
    assert combine(shares[:2], weights((1, 2))) != 42
    assert combine(shares, weights((1, 2, 3))) == 42


def test_the_field_is_one():
    import sympy

    assert sympy.isprime(PRIME)
