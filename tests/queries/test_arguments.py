"""What users give a synthesizer is made sure of before anything is drawn."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.agreed import demand_whole
from fedsynth.errors import ConfigError
from fedsynth.privacy.budget import Budget
from fedsynth.queries.arguments import budget_of, demand_draw, demand_none, demand_rows, rename


@pytest.mark.parametrize("rows", [0, -3, 10.5, "7", True, np.float64(0.5), np.int64(0), np.inf])
def test_a_whole_number_of_at_least_one_row_is_drawn(rows):
    with pytest.raises(ConfigError, match="rows must be a whole number of at least 1"):
        demand_rows("sample", rows)


def test_how_many_rows_is_asked_where_nobody_says():
    with pytest.raises(ConfigError, match=r"how many rows to draw, as sample\(1_000\)"):
        demand_rows("sample", None)


@pytest.mark.parametrize("seed", [-1, 1.5, "a", False, np.nan])
def test_a_seed_is_a_whole_number(seed):
    with pytest.raises(ConfigError, match="seed must be a whole number of at least 0"):
        demand_draw(None, None, seed)


@pytest.mark.parametrize("given", [np.int32(7), 7.0, np.float64(7), np.uint64(7)])
def test_whole_numbers_of_every_kind_become_python_s(given):
    found = demand_whole("rows", given, 1)
    assert found == 7 and type(found) is int


def test_seeds_may_be_of_any_size():
    assert demand_draw({}, {}, np.uint64(0)) == 0
    assert demand_draw(None, None, 2**80) == 2**80


@pytest.mark.parametrize(
    "given, words",
    [
        (Budget(epsilon=1, delta=1e-5), {}),
        ({"epsilon": 1, "delta": 1e-5}, {}),
        (None, {"epsilon": 1, "delta": 1e-5, "unit": None}),
    ],
)
def test_a_budget_is_the_same_however_it_is_said(given, words):
    assert budget_of(given, **words) == Budget(1, delta=1e-5)


def test_epsilon_alone_is_a_budget():
    assert budget_of(2) == budget_of(np.float64(2)) == Budget(2) == Budget(epsilon=2)


@pytest.mark.parametrize("given", [None, {}, {"delta": 1e-5}])
def test_no_epsilon_is_made_up(given):
    with pytest.raises(ConfigError, match="there is no default"):
        budget_of(given)


def test_a_budget_is_said_in_one_place():
    with pytest.raises(ConfigError, match="a budget was given, and epsilon, unit beside it"):
        budget_of(Budget(epsilon=1), epsilon=1, unit="record", delta=None)


def test_arguments_go_by_the_names_of_other_tools_too():
    assert rename("sample", {"rows": None, "seed": 1}, {"num_rows": 5}) == (5, 1)
    assert rename("sample", {"rows": None, "seed": None}, {"n": 5, "random_state": 2}) == (5, 2)


@pytest.mark.parametrize("words", [{"num_rows": 5, "n": 5}, {"n": 5, "seed": 2}])
def test_an_argument_under_two_names_is_given_twice(words):
    with pytest.raises(ConfigError, match="given already"):
        rename("sample", {"rows": None, "seed": 1}, words)


def test_a_keyword_of_another_tool_leads_to_ours():
    with pytest.raises(ConfigError, match="'random_state'; it is called 'seed' here"):
        demand_none("fit", ["random_state"], ["seed", "folder"])
    with pytest.raises(ConfigError, match=r"'num_rows'.*folder"):
        demand_none("fit", ["num_rows"], ["seed", "folder"])
