"""Rows of one person: on one side of every split, attacked as one, and their likeness no alarm."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.errors import DataError
from fedsynth.evaluation.attacks.membership import membership
from fedsynth.evaluation.attacks.predicates import LARGEST, Indexed, Predicates
from fedsynth.evaluation.attacks.shadow import shadow_attack
from fedsynth.evaluation.attacks.singling_out import singling_out
from fedsynth.evaluation.comparing import (
    _choose_reference,
    _note_persons,
    _table,
    _warn_of_persons,
)
from fedsynth.evaluation.evaluating import _agree
from fedsynth.evaluation.measures.detection import half_of
from fedsynth.evaluation.reading.rows import Rows, conform_rows, read_rows
from fedsynth.tuning.rows import fold, supervise
from tests.evaluation.attacked_people import SCHEMA, drawn_rows, people

PERSONS = fs.Schema(columns=SCHEMA.columns, target="flag", person="id")


def visits(persons: int, seed: int, most: int = 6) -> pd.DataFrame:
    """So many rows of each, alike but for the column `count`."""
    one = people(persons, seed)
    table = one.loc[np.repeat(np.arange(persons), most)].reset_index(drop=True)
    rng = np.random.default_rng(seed)
    return table.assign(count=np.where(rng.random(len(table)) < 0.8, table["count"], 0))


def drawn(persons: int, seed: int) -> Rows:
    return read_rows(visits(persons, seed), PERSONS, "visits")


def test_persons_go_with_their_rows():
    rows = drawn(5, 0)
    assert rows.persons.tolist() == np.repeat(np.arange(5), 6).tolist()
    taken = rows.take(np.array([29, 0, 6]))
    assert taken.persons.tolist() == [4, 0, 1] and taken.people.tolist() == [0, 1, 2]
    broken = replace(rows, values=rows.values.copy())
    broken.values[:7, 1] = np.nan
    assert conform_rows(broken).persons.tolist() == rows.persons[7:].tolist()
    assert drawn_rows(5, 0).persons is None
    assert drawn_rows(5, 0).people.tolist() == [0, 1, 2, 3, 4]


@given(st.lists(st.integers(0, 8), min_size=1, max_size=40), st.integers(1, 20), st.integers(0, 9))
def test_samples_take_a_row_of_each_or_whole_persons(keys, most, seed):
    rows = read_rows(people(len(keys), 0).assign(id=keys), PERSONS, "t")
    each = rows.one_each(seed)
    assert sorted(each.persons) == list(range(len(set(keys))))
    whole = rows.sample_people(most, seed)
    sizes, taken = (np.bincount(part.persons, minlength=9) for part in (rows, whole))
    assert all(count in (0, size) for count, size in zip(taken, sizes, strict=False))
    # One person's at least, even if they are more than asked for.
    assert len(whole) > 0 and (len(whole) <= max(most, sizes.max()))


@given(st.integers(2, 30), st.integers(0, 9))
def test_no_half_holds_a_part_of_a_person(persons, seed):
    rows = drawn(persons, seed)
    others, tested, _ = _choose_reference(None, rows, seed)
    assert not set(others.persons) & set(tested.persons)
    assert len(others) + len(tested) == len(rows) and len(others) and len(tested)
    half = half_of(rows.people, np.random.default_rng(seed))
    assert not set(rows.persons[half]) & set(rows.persons[~half])


@pytest.mark.parametrize("target", ["flag", "y"])
def test_folds_keep_persons_apart(target):
    schema = fs.Schema(columns=SCHEMA.columns, target=target, person="id")
    rows = supervise(visits(40, 1), schema)
    for learned, others in (parts := fold(rows, 4, schema, 0)):
        assert not set(learned.persons) & set(others.persons)
    assert sum(len(others) for _, others in parts) == len(rows)
    with pytest.raises(DataError, match="persons' rows are too few for 4 folds"):
        fold(supervise(visits(3, 4), schema), 4, schema, 0)


def test_persons_alike_in_themselves_raise_no_alarm_and_copies_of_them_do():
    """Rows of nobody are taken for independent: then an independent table is called a copy."""
    train, real, fresh = drawn(60, 0), drawn(60, 1000), drawn_rows(400, 2000)
    found = membership(fresh, train, real)
    assert not any(attack.caught for attack in found)
    assert {attack.members for attack in found} == {60}
    alone = (replace(rows, persons=None) for rows in (train, real))
    caught = {attack.name for attack in membership(fresh, *alone) if attack.caught}
    assert caught == {"density ratio", "matching cells"}
    copies = membership(train.one_each(0), train, real)
    assert all(attack.caught for attack in copies)
    assert copies[-1].sentence.startswith("60 of 60 training persons have a row that equals")
    assert all(risk.caught for risk in singling_out(train.one_each(0), train, real, attempts=300))


def test_who_meets_a_description_is_a_person():
    rows = drawn(5, 3)
    column = np.array([[rows.names.index("y")]])
    for low in np.unique(rows.values[:, column[0, 0]]):
        (met,) = Indexed.of(rows).meeting(
            Predicates(column, np.array([[low]]), np.array([[LARGEST]]))
        )
        assert met.tolist() == sorted(set(rows.persons[rows.values[:, column[0, 0]] >= low]))


def test_shadow_halves_are_of_persons():
    seen = []

    def make(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        seen.append(rows)
        return people(20, seed)

    found = shadow_attack(make, visits(9, 0), PERSONS, shadows=4, targets=6, progress=False)
    for rows in seen:
        assert len(rows) == 24 and (rows["id"].value_counts() == 6).all()
    assert found.members == found.others == 12
    with pytest.raises(DataError, match="at least 4 persons and has 3"):
        shadow_attack(make, visits(3, 0), PERSONS, shadows=4, progress=False)


def test_real_rows_of_persons_that_were_learned_from_are_told():
    table = visits(10, 0)
    order = np.random.default_rng(0).permutation(len(table))
    sides = {"train": table.iloc[order[:30]], "real": table.iloc[order[30:]]}
    told = _warn_of_persons(sides, PERSONS)
    share = sides["real"]["id"].isin(sides["train"]["id"]).mean()
    assert told.startswith(f"{share:.1%} of the real rows have a key in 'id'")
    by_person = {"train": table[:30], "real": table[30:]}
    assert _warn_of_persons(by_person, PERSONS) is None
    assert _warn_of_persons({**sides, "train": None}, PERSONS) is None
    assert len(_note_persons(PERSONS, drawn(3, 0))) == 1
    assert _note_persons(PERSONS, read_rows(people(4, 0), PERSONS, "t")) == []


def test_the_rows_of_one_person_cannot_be_compared():
    with pytest.raises(DataError, match="rows of one person cannot be compared"):
        fs.evaluate(
            synthetic=people(20, 1), schema=PERSONS, real=visits(1, 0), progress=False, models=[]
        )


def test_gaps_are_a_fault_where_a_person_is_named_and_rows_are_real():
    real, made = visits(30, 0, 3), people(60, 2)
    gaps = visits(30, 1, 3).astype({"id": object})
    gaps.loc[3, "id"] = None
    for synthetic in (made.assign(id=None), made.drop(columns="id")):
        assert _table(synthetic, PERSONS, "synthetic").persons is None
    with pytest.raises(DataError, match="train: there are rows without a person"):
        _table(gaps, PERSONS, "train")
    # Nobody said that these are persons: a draft did.
    sides = {
        side: table.rename(columns={"id": "patient_id"})
        for side, table in (("real", real), ("train", gaps))
    }
    assert _agree(None, sides, "flag")[0].person is None
    assert _agree(None, {**sides, "train": None}, "flag")[0].person == "patient_id"
