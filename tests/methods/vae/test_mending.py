"""Synthetic rows that break the schema's constraints are mended, in codes."""

import math

import numpy as np
import pandas as pd
import pytest

from fedsynth.data.tables import conform
from fedsynth.errors import ConfigError
from fedsynth.methods.sampling import mending
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, Integer, Schema

FREE = Budget(epsilon=math.inf, trust="central")
COLUMNS = (
    Integer(name="start", lower=0, upper=60),
    Integer(name="stop", lower=0, upper=60),
    Categorical(name="role", values=["husband", "wife", "child"]),
    Categorical(name="sex", values=["f", "m"]),
)


def schema_of(*constraints, target="sex"):
    return Schema(columns=COLUMNS, target=target, constraints=constraints)


def table(rows, seed=0):
    rng = np.random.default_rng(seed)
    start = rng.integers(0, 61, rows)
    role = rng.choice(["husband", "wife", "child"], rows)
    sex = np.where(role == "husband", "m", np.where(role == "wife", "f", rng.choice(["f", "m"])))
    stop = np.minimum(60, start + rng.integers(0, 20, rows))
    return pd.DataFrame({"start": start, "stop": stop, "role": role, "sex": sex})


def fitted(schema, **settings):
    # Hardly trained, so that nothing but mending keeps the constraints.
    synth = FedVAE(schema, rounds=2, hidden=(8,), latent=2, pair_share=0.0, **settings)
    return synth.fit({"a": table(80)}, FREE, seed=0)


def test_no_sampled_row_breaks_a_constraint_and_conditions_still_hold():
    never = {"never": {"role": "husband", "sex": "f"}}
    young = {"never": {"role": ["husband", "wife"], "start": {"to": 17}}}
    schema = schema_of(never, young, {"ordered": ["start", "stop"]})
    synth, plain = fitted(schema), fitted(schema_of())

    def broken(rows):
        return schema.broken(conform(rows, schema).columns)

    assert broken(plain.sample(2000, seed=0)).mean() > 0.2
    assert not broken(synth.sample(2000, seed=0)).any()
    women = synth.sample(2000, where={"sex": "f"}, seed=1)
    assert not broken(women).any() and (women["sex"] == "f").all()
    drawn = synth.sample(4000, proportions={"f": 3, "m": 1}, seed=2)
    assert not broken(drawn).any()
    assert (drawn["sex"] == "f").mean() == pytest.approx(0.75, abs=0.04)
    pd.testing.assert_frame_equal(synth.sample(50, seed=3), synth.sample(50, seed=3))


def test_a_forbidden_label_is_given_to_no_row_and_refused_as_a_condition(monkeypatch):
    monkeypatch.setattr(mending, "_ROUNDS", 4)
    synth = fitted(schema_of({"never": {"sex": "f"}}))
    assert (synth.sample(300, seed=0)["sex"] == "m").all()
    with pytest.raises(ConfigError, match="constraints and the condition on its target"):
        synth.sample(300, where={"sex": "f"}, seed=0)


def test_a_table_that_nothing_meets_is_refused(monkeypatch):
    monkeypatch.setattr(mending, "_ROUNDS", 4)
    synth = fitted(schema_of({"never": {"sex": ["f", "m"]}}, target=None))
    with pytest.raises(ConfigError, match="meets the schema's constraints"):
        synth.sample(20, seed=0)
