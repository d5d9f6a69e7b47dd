"""What every registered mechanism keeps to: a new one needs its law here, and nothing else."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from functools import lru_cache

import numpy as np
import pytest
from dp_accounting import rdp
from scipy import stats
from scipy.special import logsumexp, softmax

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.privacy import mechanisms
from fedsynth.privacy.accounting import spent
from fedsynth.privacy.curves import orders
from fedsynth.privacy.mechanisms import mechanism_of, norm_of, register, stable_law
from fedsynth.privacy.mechanisms.mechanism import Additive, Mechanism
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.sampling import Everyone, FixedSize, Poisson
from fedsynth.privacy.terms import Terms
from fedsynth.privacy.trail.spelling import read_terms, spell
from fedsynth.privacy.trust import TRUSTS

# A correct draw fails a test of fit with this probability.
FALSE_ALARM = 1e-8
DRAWS = 4_000
DELTA = 1e-5


@dataclass(frozen=True)
class Law:
    """Of noise of scale 1, from another source than the product: density, and both tails."""

    density: Callable[[np.ndarray], np.ndarray]
    below: Callable[[np.ndarray], np.ndarray]
    beyond: Callable[[float], float]
    deviation: float | None


@lru_cache(maxsize=8)
def law_of(kind: Additive) -> Law:
    if kind.name == "gaussian":
        return Law(stats.norm.pdf, stats.norm.cdf, lambda x: 2 * stats.norm.sf(x), 1.0)
    if kind.name == "laplace":
        law = stats.laplace
        return Law(law.pdf, law.cdf, lambda x: 2 * law.sf(x), math.sqrt(2))
    assert kind.name == "stable"
    alpha = kind.alpha
    places = np.sinh(np.linspace(1e-9, 40, 2000))
    tails = np.log(stable_law.survival(places, alpha))

    def below(x: np.ndarray) -> np.ndarray:
        away = np.exp(np.interp(np.abs(x), places, tails))
        return np.where(x > 0, 1 - away, away)

    return Law(
        lambda x: stable_law.density(x, alpha),
        below,
        lambda x: 2 * float(stable_law.survival(np.array([x]), alpha)[0]),
        None,
    )


def indices(name: str) -> list[float | None]:
    try:
        mechanism_of(name)
    except PrivacyError:
        return [1.0, 1.7]
    return [None]


KINDS = [(name, alpha) for name in mechanisms.names() for alpha in indices(name)]


def terms(name: str, alpha: float | None, noise: float = 2.0, **changes) -> Terms:
    given = {"unit": "record", "trust": "central", "clip": 1.0, "norm": norm_of(name)}
    kind = {"mechanism": name, "alpha": alpha, "noise_multiplier": noise}
    return Terms(**{**given, **kind, **changes})


@lru_cache(maxsize=32)
def pairs(kind: Mechanism, noise: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Distributions of a release in neighbouring data sets, as probabilities of outcomes."""
    return list(_pairs(kind, noise))


def _pairs(kind: Mechanism, noise: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    if not isinstance(kind, Additive):
        rng = np.random.default_rng(3)
        for _ in range(20):
            scores = rng.normal(0, 3, 4)
            moved = scores + rng.choice([-1.0, 0.3, 1.0], 4)
            yield softmax(scores / noise), softmax(moved / noise)
        return
    # One number moved by the whole clip: places far into the tails, dense around both centres.
    density, shift = law_of(kind).density, 1 / noise
    edges = np.sinh(np.linspace(-12, 12, 2401)) + shift / 2
    middles, widths = (edges[1:] + edges[:-1]) / 2, np.diff(edges)
    here, there = (density(middles - by) * widths for by in (0.0, shift))
    kept = (here > 1e-280) & (there > 1e-280)
    here, there = here[kept], there[kept]
    yield here, there
    yield there, here


def check_mechanism(name: str, alpha: float | None) -> None:
    """Everything that the rest of fedsynth relies on."""
    kind = mechanism_of(name, alpha)
    check_registered(kind, alpha)
    check_terms(kind, alpha)
    check_renyi(kind)
    check_loss(kind)
    if isinstance(kind, Additive):
        law = law_of(kind)
        check_shares(kind, law)
        check_scale(kind, law, alpha)
        check_reach(kind, law)


def check_registered(kind: Mechanism, alpha: float | None) -> None:
    assert kind.name in mechanisms.names()
    assert kind == mechanism_of(kind.name, alpha) and hash(kind) is not None
    assert [f.name for f in fields(kind)] == ([] if alpha is None else ["alpha"])
    assert kind.selects is not isinstance(kind, Additive)
    with pytest.raises(ConfigError, match="already"):
        register(type(kind))
    with pytest.raises(PrivacyError, match="index"):
        mechanism_of(kind.name, 1.5 if alpha is None else None)


def check_terms(kind: Mechanism, alpha: float | None) -> None:
    """Round trip; a clip of the other norm is refused; so is every pair that protects nobody."""
    made = terms(kind.name, alpha)
    assert made.kind == kind and read_terms(spell(made)) == made
    with pytest.raises(PrivacyError, match=kind.name):
        terms(kind.name, alpha, norm={"l1": "l2", "l2": "l1"}[kind.norm])
    admitted = set()
    for trust in TRUSTS:
        for sampling in (Everyone(), Poisson(0.3), FixedSize(2, 9)):
            given = {"trust": trust, "sampling": sampling, "unit": "client", "survivors": 3}
            try:
                one = terms(kind.name, alpha, **given)
            except PrivacyError:
                continue
            admitted.add((trust, sampling.kind))
            assert read_terms(spell(one)) == one
            # Whatever is admitted is accounted for, or refused there.
            try:
                assert 0 < spent({one: 1}, DELTA).epsilon < math.inf
            except PrivacyError as error:
                assert sampling != Everyone() and "no analysis" in str(error)
    assert ("central", "everyone") in admitted
    assert kind.selects or {(trust, "everyone") for trust in TRUSTS} <= admitted
    assert spent({terms(kind.name, alpha, 0.0): 1}, DELTA).epsilon == math.inf


def check_renyi(kind: Mechanism) -> None:
    """Not below the divergence of any pair; twice the clip is half the noise."""
    for noise in (0.7, 3.0):
        curve = kind.renyi(noise, Everyone(), False)
        assert curve.shape == orders().shape and (np.diff(curve) >= -1e-9).all()
        for p, q in pairs(kind, noise):
            for order in (1.5, 2.0, 8.0, 32.0):
                logs = order * np.log(p) + (1 - order) * np.log(q)
                found = float(logsumexp(logs)) / (order - 1)
                assert found <= curve[list(orders()).index(order)] * (1 + 1e-4) + 1e-6
        half = kind.renyi(noise / 2, Everyone(), False)
        np.testing.assert_allclose(kind.renyi(noise, Everyone(), True), half, rtol=1e-12)


def check_loss(kind: Mechanism) -> None:
    """Not below the hockey-stick divergence of any pair; composed, not above the Renyi bound."""
    for noise in (0.7, 3.0):
        loss = kind.loss(noise, Everyone(), 1)
        for p, q in pairs(kind, noise):
            for epsilon in (0.0, 0.3, 1.0):
                found = float(np.maximum(p - math.exp(epsilon) * q, 0).sum())
                assert found <= loss.get_delta_for_epsilon(epsilon) + 1e-5
        curve = kind.renyi(noise, Everyone(), False)
        for count, composed in ((1, loss), (4, kind.loss(noise, Everyone(), 4))):
            bound = rdp.compute_epsilon(orders(), count * curve, DELTA)[0]
            tight = composed.get_epsilon_for_delta(DELTA)
            assert 0.3 * bound < tight <= bound * 1.001 + 1e-3
    with pytest.raises(PrivacyError):
        # Nobody knows a loss distribution under a relation that exchanges units.
        kind.admit(TRUSTS["central"], FixedSize(2, 9))
        kind.loss(2.0, FixedSize(2, 9), 1)


def check_shares(kind: Additive, law: Law) -> None:
    """Shares add up to the whole, in law; more of them to the growth that is said."""
    for shares in (1, 3, 20):
        source, total = NoiseSource(41), np.zeros(DRAWS)
        for _ in range(shares):
            total += kind.add(np.zeros(DRAWS), 1.0, shares, 1.0, source)
        total /= kind.growth(shares)
        assert stats.kstest(total, law.below).pvalue > FALSE_ALARM
        # It would show if it were off by half.
        assert stats.kstest(total * 1.5, law.below).pvalue < FALSE_ALARM
    assert kind.growth(1) == 1
    assert kind.growth(6) == pytest.approx(kind.growth(2) * kind.growth(3))


def check_scale(kind: Additive, law: Law, alpha: float | None) -> None:
    """Noise of the whole, whoever adds it, is of the scale that terms say."""
    source = NoiseSource(42)
    if law.deviation is not None:
        assert kind.deviation(3.0) == pytest.approx(3 * law.deviation)
    central = terms(kind.name, alpha, 1.5, clip=2.0)
    assert (central.scale, central.client_scale) == (3.0 * kind.wider, 0.0)
    assert 1 <= kind.wider < 1.001
    noisy = central.noised(np.full(DRAWS, 7.0), source)
    assert stats.kstest((noisy - 7) / 3, law.below).pvalue > FALSE_ALARM
    np.testing.assert_array_equal(central.client_noised(noisy, source), noisy)
    local = terms(kind.name, alpha, 1.5, clip=2.0, trust="local")
    message = local.client_noised(np.zeros(DRAWS), source)
    assert stats.kstest(message / 3, law.below).pvalue > FALSE_ALARM
    shared = terms(kind.name, alpha, 1.5, clip=2.0, trust="distributed", survivors=3)
    total = sum(shared.client_noised(np.zeros(DRAWS), source) for _ in range(3))
    assert stats.kstest(total / 3, law.below).pvalue > FALSE_ALARM
    assert shared.summed_scale(3) == pytest.approx(central.scale)
    assert shared.summed_scale(4) == pytest.approx(central.scale * kind.growth(4) / kind.growth(3))


def check_reach(kind: Additive, law: Law) -> None:
    """The tail bound, against the law for one number and against draws for many."""
    assert law.beyond(kind.reach(1, 1)) <= 1.1e-14
    order = {"l1": 1, "l2": 2}[kind.norm]
    for dim in (1, 30):
        for shares in (1, 7):
            source = NoiseSource(43)
            draws = kind.add(np.zeros(50 * dim), 1.0, shares, 1.0, source).reshape(50, dim)
            draws /= kind.growth(shares)
            assert np.linalg.norm(draws, order, axis=1).max() <= kind.reach(dim, shares)


@pytest.mark.parametrize(("name", "alpha"), KINDS)
def test_every_mechanism_keeps_to_what_is_asked_of_it(name: str, alpha: float | None):
    check_mechanism(name, alpha)


def test_a_mechanism_that_nobody_knows_is_refused():
    for ask in (mechanism_of, norm_of):
        with pytest.raises(ConfigError, match="levy"):
            ask("levy")
