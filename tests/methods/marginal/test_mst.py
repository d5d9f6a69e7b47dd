"""MST: a spanning tree of the strongest pairs."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from fedsynth.methods.marginal.mst import MST
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, Schema

SCHEMA = Schema(
    columns=[Categorical(name=f"c{k}", values=["a", "b", "c"]) for k in range(5)], target="c4"
)


def chained(rows=3000):
    """A chain 0 - 3 - 1 - 4 - 2, each equal to the one before in eight of ten rows."""
    rng = np.random.default_rng(0)
    codes = np.zeros((rows, 5), int)
    order = [0, 3, 1, 4, 2]
    codes[:, 0] = rng.integers(0, 3, rows)
    for before, after in itertools.pairwise(order):
        other = rng.integers(0, 3, rows)
        codes[:, after] = np.where(rng.random(rows) < 0.8, codes[:, before], other)
    return pd.DataFrame({f"c{k}": np.array(["a", "b", "c"])[codes[:, k]] for k in range(5)})


@pytest.mark.parametrize("trust", ["central", "distributed"])
def test_the_tree_that_made_the_rows_is_found(trust):
    budget = Budget(epsilon=5.0, delta=1e-5, trust=trust)
    synth = MST(SCHEMA).fit([chained()], budget)
    tree = {m.clique for m in synth.learned.measurements[-4:]}
    assert tree == {(0, 3), (1, 3), (1, 4), (2, 4)}
    assert all(len(clique) == 2 for clique in synth.learned.model.tree.cliques)
    rows = synth.sample(4000, seed=0)
    assert (rows["c1"] == rows["c3"]).mean() == pytest.approx(0.8 + 0.2 / 3, abs=0.04)


@pytest.mark.parametrize(("trust", "messages"), [("central", 6), ("distributed", 3), ("local", 3)])
def test_messages_are_few(trust, messages):
    budget = Budget(epsilon=1.0, delta=1e-5, trust=trust)
    synth = MST(SCHEMA).fit([chained(300)], budget)
    assert len(synth.ledger.events) == messages


def test_columns_that_nothing_joins_are_left_alone():
    rng = np.random.default_rng(1)
    frame = pd.DataFrame({f"c{k}": rng.choice(["a", "b", "c"], 400) for k in range(5)})
    synth = MST(SCHEMA).fit([frame], Budget(epsilon=1.0))
    assert len(synth.sample(50, seed=0)) == 50
