"""PrivBayes: structures found, tables normalised, votes counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.errors import ConfigError, PrivacyError
from fedsynth.federation.client.answering import answer
from fedsynth.federation.client.client import Client
from fedsynth.federation.request import Request
from fedsynth.marginals import Domain
from fedsynth.methods.marginal.network import network
from fedsynth.methods.marginal.privbayes import PrivBayes
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.sampling import Poisson
from fedsynth.schema import Categorical, Schema
from tests.federation.vectors import terms
from tests.methods.small import SCHEMA, owners


@given(st.integers(1, 6), st.integers(1, 3), st.integers(0, 2**32))
@settings(max_examples=20)
def test_a_network_is_acyclic_and_within_its_limits(columns, degree, seed):
    rng = np.random.default_rng(seed)
    domain = Domain(tuple(rng.integers(1, 6, columns).tolist()))
    scores = rng.normal(0, 1, (columns, columns))
    first = int(rng.integers(columns))
    families = network(scores + scores.T, domain, degree, first, 30)
    assert sorted(family.child for family in families) == list(range(columns))
    assert families[0].child == first and families[0].parents == ()
    seen = set()
    for family in families:
        assert set(family.parents) <= seen and len(family.parents) <= degree
        assert not family.parents or domain.cells(family.clique) <= 30
        seen.add(family.child)


def test_the_strongest_dependence_comes_first():
    scores = np.array([[0, 1, 5, 0], [1, 0, 4, 0.5], [5, 4, 0, 0], [0, 0.5, 0, 0]], float)
    families = network(scores, Domain((2, 2, 2, 2)), 1, 0, 100)
    assert [(f.child, f.parents) for f in families] == [(0, ()), (2, (0,)), (1, (2,)), (3, (1,))]


def chained(rows, seed):
    """c0 -> c1 -> c2, each equal to the one before in nine of ten rows."""
    rng = np.random.default_rng(seed)
    c = np.zeros((rows, 3), int)
    c[:, 0] = rng.integers(0, 2, rows)
    for k in (1, 2):
        c[:, k] = np.where(rng.random(rows) < 0.9, c[:, k - 1], 1 - c[:, k - 1])
    return pd.DataFrame({f"c{k}": np.array(["n", "y"])[c[:, k]] for k in range(3)})


CHAIN = Schema(columns=[Categorical(name=f"c{k}", values=["n", "y"]) for k in range(3)])


@pytest.mark.parametrize("structure", ["sums", "votes"])
def test_a_chain_is_found_and_kept(structure):
    tables = [chained(200, seed) for seed in range(40)]
    synth = PrivBayes(CHAIN, degree=1, structure=structure).fit(
        tables, Budget(epsilon=20.0, delta=1e-5, curious=1)
    )
    rows = synth.sample(5000, seed=0)
    assert (rows["c0"] == rows["c1"]).mean() == pytest.approx(0.9, abs=0.03)
    assert (rows["c0"] == rows["c2"]).mean() == pytest.approx(0.82, abs=0.04)


def test_votes_are_not_given_as_rows_of_records():
    # One row of all records would be charged as one record's, amplified by a draw that it ignores.
    client = Client("a", None, 50)
    asked = Request("network-votes", terms(unit="record", sampling=Poisson(0.1)), 3)
    with pytest.raises(PrivacyError, match="a row a client"):
        list(answer([client], asked))


def test_votes_are_one_row_a_client_and_charged_to_records_at_half_their_noise():
    synth = PrivBayes(SCHEMA, structure="votes").fit(owners(50, 60), Budget(epsilon=1.0, curious=1))
    votes = [event for event in synth.ledger.events if event.label == "network-votes"]
    assert [event.terms.unit for event in votes] == ["client"]
    assert 0.97 < synth.ledger.spent().epsilon <= 1.0
    others = sum(1 / e.terms.noise_multiplier**2 for e in synth.ledger.events if e not in votes)
    voted = sum(4 / e.terms.noise_multiplier**2 for e in votes)
    whole = others + voted
    # Half of what the histogram's tenth leaves.
    assert voted / whole == pytest.approx(0.45, rel=1e-3)
    sums = PrivBayes(SCHEMA).fit(owners(50, 60), Budget(epsilon=1.0, curious=1)).ledger.events
    assert whole == pytest.approx(sum(1 / e.terms.noise_multiplier**2 for e in sums), rel=1e-3)


def test_by_laplace_noise_epsilon_is_the_releases_own_and_hardly_needs_a_delta():
    budget = Budget(epsilon=4.0, delta=1e-9, trust="central")
    plan = PrivBayes(SCHEMA, mechanism="laplace").plan(budget, 3)
    assert [release.terms.mechanism for release in plan.releases] == ["laplace"] * 3
    # The histogram's ones, and tables whose weights sum to one, in the L1 norm.
    clips = [release.terms.clip / (1 + 1e-5) for release in plan.releases]
    assert clips == pytest.approx([7, 1, 1])
    pure = sum(1 / release.terms.noise_multiplier for release in plan.releases)
    assert pure <= 4.0
    assert plan.epsilon() == pytest.approx(pure, rel=1e-3)
    assert pure == pytest.approx(4.0, rel=1e-3)


@pytest.mark.parametrize("trust", ["central", "local"])
def test_laplace_noise_keeps_a_chain(trust):
    synth = PrivBayes(CHAIN, degree=1, mechanism="laplace").fit(
        [chained(400, seed) for seed in range(10)],
        Budget(epsilon=40.0, delta=1e-5, trust=trust),
        insecure_noise_seed=1,
    )
    rows = synth.sample(5000, seed=0)
    assert (rows["c0"] == rows["c1"]).mean() == pytest.approx(0.9, abs=0.04)
    with pytest.raises(ConfigError, match="votes take gaussian"):
        PrivBayes(CHAIN, mechanism="laplace", structure="votes").plan(Budget(epsilon=1.0), 3)


@pytest.mark.parametrize(
    ("settings_", "said"), [({"degree": 0}, "1 to 5"), ({"structure": "vote"}, "sums or votes")]
)
def test_wrong_settings_are_explained(settings_, said):
    with pytest.raises(ConfigError, match=said):
        PrivBayes(SCHEMA, **settings_)
