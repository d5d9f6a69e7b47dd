"""A model and its account belong together."""

from __future__ import annotations

import pytest

from fedsynth.errors import ConfigError
from fedsynth.federation.server.channel import Channel
from fedsynth.privacy.terms import Budget
from fedsynth.registry import METHODS
from tests.methods.small import SCHEMA, owners

TABLES = sorted(set(METHODS) - {"fusion-gan"})
FAST = {
    "fedctgan": {"rounds": 1},
    "fedgan": {"rounds": 1},
    "fedvae": {"rounds": 1},
    "hybrid-fusion": {"edges": 2},
    "mean-embedding": {"steps": 1},
    "pate": {"teachers": 2, "queries": 10},
    "pate-gan": {"rounds": 1},
}


@pytest.mark.parametrize("name", TABLES)
def test_after_a_fit_that_fails_there_is_no_model_to_release(name, monkeypatch, tmp_path):
    synth = METHODS[name](SCHEMA, **FAST.get(name, {}))
    free = Budget(epsilon=float("inf"), trust="local")
    synth.fit(owners(30, 40), free)
    rows = synth.sample(3, seed=0)

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Channel, "_take", interrupted)
    private = Budget(epsilon=0.1, trust="local")
    with pytest.raises(KeyboardInterrupt):
        synth.fit(owners(30, 40), free if name in ("fusion",) else private)
    with pytest.raises(ConfigError, match="nothing to sample from"):
        synth.sample(3)
    with pytest.raises(ConfigError, match="nothing to sample from"):
        synth.release(tmp_path / "r", rows)
    assert not (tmp_path / "r" / "certificate.json").exists()
