"""Four owners who add up shares of noise, whatever carries them: what the same come to in the
plain."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Request
from fedsynth.federation.runtimes.local import LocalRuntime
from fedsynth.federation.secure.rules import Rules
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.privacy.trail.ledger import Ledger
from tests.federation.vectors import Vectors, clients, terms

DIM = 5
NAMES = ["c0", "c1", "c2", "c3"]
RULES = Rules(4, 3, 1)


def ask(number: int = 0, **changes) -> Request:
    own = {"unit": "record", "trust": "distributed", "survivors": 3, "curious": 1, **changes}
    return Request(Vectors.name, terms(**own), DIM, job="job", round=number)


def owners(folder: Path | None = None, names: Sequence[str] = NAMES) -> list[Client]:
    """Four clients of different rows, or some of them, with accounts on disk where there is a
    folder."""
    known = clients(4, DIM, 2)
    for place, client in enumerate(known):
        client.data = client.data * (1 + place)
        client.coins = NoiseSource(place)
        if folder is not None and client.name in names:
            budget = Budget(epsilon=100.0, delta=1e-5, unit="record", trust="central")
            client.ledger = Ledger.of_owner(folder / f"{client.name}.jsonl", budget)
    return [client for client in known if client.name in names]


def exact(noise: dict | None = None, names: Sequence[str] = NAMES) -> np.ndarray:
    """What the same clients' answers add up to in the plain."""
    runtime = LocalRuntime(owners())
    runtime.open("job", {})
    return runtime.sum(ask(**(noise or {})), names).total
