"""Owners' persons before anything is asked: who lacks them, who repeats nowhere, who is twice."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from fedsynth.errors import DataError
from fedsynth.federation.client.floor import Floor
from fedsynth.federation.simulation.simulation import Simulation
from fedsynth.privacy.budget import Budget
from fedsynth.privacy.noise import NoiseSource
from fedsynth.schema import Identifier, Integer, Schema

SCHEMA = Schema(
    columns=[Identifier(name="key"), Integer(name="age", lower=0, upper=99)], person="key"
)


def table(*keys):
    return pd.DataFrame({"key": keys, "age": 30})


def told_of(owners, schema=SCHEMA):
    told = []
    floor = Floor(budget=Budget(epsilon=math.inf, trust="central"), cohort=len(owners))
    Simulation(owners, schema).clients(NoiseSource(), {}, floor, 1.0, told.append)
    return told


def test_the_same_key_at_two_owners_is_told_as_two_units_and_the_counts_only_to_the_owner():
    (told,) = told_of({"north": table(1, 1, 2), "south": table("2", "3", "3", "1")})
    assert told.startswith("2 of 3 keys in 'key' stand at several owners")
    assert told.bare.startswith("keys in 'key' stand at several owners")
    assert "as many units" in told.bare


def test_an_owner_whose_keys_do_not_repeat_is_told_that_a_person_is_a_row():
    (told,) = told_of({"north": table(1, 1), "south": table(2, 3), "empty": table()})
    assert told == "no key in 'key' repeats at south: a person is a row there"


def test_repeated_keys_of_one_owner_alone_need_no_word():
    assert told_of({"north": table(1, 1), "south": table(2, 2)}) == []


@pytest.mark.parametrize("rows", [0, 2])
def test_an_owner_without_the_persons_column_is_refused(rows):
    lacking = table(1, 1).drop(columns="key")[:rows]
    with pytest.raises(DataError, match="south: lacks the column 'key', which says whose"):
        Simulation({"north": table(1), "south": lacking}, SCHEMA)


def test_an_owner_without_rows_has_no_person():
    assert Simulation({"north": table()}, SCHEMA)._data["north"].persons.tolist() == []


def test_owners_are_told_of_persons_with_several_values_and_logs_of_no_figures():
    born = Integer(name="born", lower=0, upper=9, of="person")
    schema = Schema(columns=[*SCHEMA.columns, born], person="key")
    frame = table(1, 1, 2, 2, 3).assign(born=[1, 1, 2, 3, 4])
    (told,) = told_of({"west": frame, "east": frame[:2]}, schema)[1:]
    assert "west: born of 1;" in told
    assert "west: born;" in told.bare
    assert "1" not in told.bare
