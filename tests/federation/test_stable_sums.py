"""Stable noise through the door: sums and messages carry it as accounted, whoever adds it."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy import stats

from fedsynth.privacy.accounting import spent
from fedsynth.privacy.mechanisms import stable_law as law
from tests.federation.vectors import channel, clients, ledger, terms

TASK = "test-vectors"
DIM = 20_000
SEED = 21


def promised(alpha: float, **changes):
    return terms(
        norm="l1", mechanism="stable", alpha=alpha, clip=2.0, noise_multiplier=1.5, **changes
    )


PLACES = np.sinh(np.linspace(1e-9, 30, 3000))


@cache
def log_survival(alpha: float) -> np.ndarray:
    return np.log(law.survival(PLACES, alpha))


def is_stable(values: np.ndarray, alpha: float) -> bool:

    def below(x: np.ndarray) -> np.ndarray:
        beyond = np.exp(np.interp(np.abs(x), PLACES, log_survival(alpha)))
        return np.where(x > 0, 1 - beyond, beyond)

    return bool(stats.kstest(values, below).pvalue > 1e-6)


@pytest.mark.parametrize(
    ("trust", "survivors", "alpha"),
    [("central", 1, 1.0), ("distributed", 3, 1.6), ("distributed", 5, 1.0), ("local", 1, 1.6)],
)
def test_a_released_sum_carries_noise_of_the_scale_that_is_said(trust, survivors, alpha):
    # Rows of L1 norm 1, in one coordinate: the clip of 2 leaves them as they are.
    owners = clients(5, DIM, value=0.0)
    for client in owners:
        client.data[0, 0] = 1.0
    account = ledger("client", trust=trust, insecure=True)
    kind = promised(alpha, trust=trust, survivors=survivors)
    released = channel(owners, account, seed=SEED).sum(TASK, kind, DIM)
    signal = np.eye(1, DIM)[0] * 5
    scale = kind.summed_scale(released.answered)
    assert is_stable((released.value - signal) / scale, alpha)
    assert not is_stable((released.value - signal) / scale * 1.15, alpha)
    # Centrally one draw, locally five whole ones, shared as many shares as answered.
    shares = {"central": 1, "local": 5, "distributed": 5 / survivors}[trust]
    assert scale == pytest.approx(3.0 * shares ** (1 / alpha))
    assert account.counts == {kind: 1}
    assert account.spent().epsilon == spent({kind: 1}, 1e-5).epsilon


def test_messages_of_clients_carry_the_whole_noise_each():
    kind = promised(1.6, trust="local", unit="record")
    collected = channel(
        clients(2, DIM, value=0.0), ledger("record", insecure=True), seed=SEED
    ).collect(TASK, kind, DIM)
    assert all(is_stable(message / kind.scale, 1.6) for message in collected.values)
