"""What a histogram allows AIM to ask, against hand-worked cases."""

from __future__ import annotations

import math

import pytest

from fedsynth.methods.marginal.aim import AIM
from fedsynth.methods.marginal.allowing import COARSE, allow, allowances, say_allowed
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, Integer, Schema

NUMBERS = [Integer(name=f"n{k}", lower=0, upper=99) for k in range(9)]
YES = Categorical(name="y", values=["no", "yes"])
FEW = Schema(columns=[*NUMBERS, YES], target="y")
NUMBER = Schema(columns=NUMBERS, target="n0")
NONE = Schema(columns=NUMBERS)


def allowed(schema, records, budget=None, **settings):
    budget = budget or Budget(epsilon=1.0, delta=1e-5, curious=0)
    synth = AIM(schema, **settings)
    plan = synth.plan(budget, 5)
    return allow(schema, synth.resolved(plan.budget), plan, records), plan


def noise(plan):
    return plan.terms(COARSE).summed_scale(5)


def test_a_typical_cell_of_a_pair_stands_above_its_noise():
    """All 36 pairs of 9 numbers: records / bins^2 is at least 1.2 times the noise of one, and one
    bin more would be too many."""
    found, plan = allowed(NONE, 20_000)
    sigma = noise(plan) * math.sqrt(36)
    assert found.tier == "workload"
    assert 20_000 / found.bins**2 >= 1.2 * sigma > 20_000 / (found.bins + 1) ** 2


def test_where_triples_are_asked_a_pair_is_known_as_their_sum():
    found, plan = allowed(FEW, 200_000, bins=64)
    sigma = noise(plan) * math.sqrt(36 * 2)
    assert (found.tier, found.best) == ("workload", 0)
    assert 200_000 / found.bins**2 >= 1.2 * sigma > 200_000 / (found.bins + 1) ** 2


@pytest.mark.parametrize("schema", [FEW, NUMBER, NONE], ids=["few", "number", "none"])
def test_fewer_records_never_allow_more(schema):
    ranks = {"columns": 0, "target": 1, "workload": 2}
    found = [allowed(schema, records)[0] for records in (10, 100, 600, 1_000, 10**4, 10**6)]
    tiers, cells = [ranks[one.tier] for one in found], [one.cells for one in found]
    assert tiers == sorted(tiers) and cells == sorted(cells)
    assert (tiers[0], tiers[-1]) == (0, 2) and (1 in tiers) == (schema is not NONE)


def test_without_noise_everything_is_asked():
    for schema in (FEW, NONE):
        found, _ = allowed(schema, 50, Budget(epsilon=math.inf, curious=0), bins=30)
        assert (found.bins, found.tier, found.cells) == (30, "workload", 60_000)


@pytest.mark.parametrize("trust", ["distributed", "central"])
def test_a_model_of_a_target_that_is_a_number_has_room_for_twelve_tables_of_three(trust):
    budget = Budget(epsilon=1.0, delta=1e-5, trust=trust)
    for bins in (24, 64):
        assert allowed(NUMBER, 10**7, budget, bins=bins)[0].bins == 17
    assert 12 * 17**3 <= 60_000 < 12 * 18**3
    assert allowed(NUMBER, 10**7, budget, max_cells=1_000_000)[0].bins == 24
    assert allowed(NUMBER, 10**7, budget, max_cells=1_000)[0].bins == 4


def test_bins_and_cells_are_at_most_those_of_the_settings():
    assert allowed(NONE, 10**9, bins=7)[0].bins == 7
    assert allowed(NONE, 10, bins=2)[0].bins == 2
    assert allowed(NONE, 10**9, max_cells=500)[0].cells == 500


def test_a_trusted_server_has_the_noise_of_one_table():
    found, _ = allowed(FEW, 5_000, Budget(epsilon=1.0, delta=1e-5, trust="central"))
    assert (found.tier, found.best) == ("workload", 0) and found.bins > 4


def test_what_somebody_names_is_asked():
    assert allowed(NONE, 10, workload=[["n0", "n1"]])[0].tier == "workload"


@pytest.mark.parametrize("schema", [FEW, NUMBER, NONE], ids=["few", "number", "none"])
def test_what_is_said_of_all_numbers_of_records_holds_on_both_sides_of_every_change(schema):
    synth = AIM(schema)
    plan = synth.plan(Budget(epsilon=1.0, delta=1e-5, curious=0), 5)
    settings = synth.resolved(plan.budget)
    known = allowances(schema, settings, plan)
    least = {one.tier: records for records, one in known}
    assert list(least) == [t for t in ("workload", "target", "columns") if t in least]
    for tier, records in least.items():
        assert allow(schema, settings, plan, 1.01 * records).tier == tier
        if records > 1:
            assert allow(schema, settings, plan, 0.98 * records).tier != tier
    said = say_allowed(known)
    assert said.count(" records on (") == len(least) - 1 and said.count("of fewer records") == 1
