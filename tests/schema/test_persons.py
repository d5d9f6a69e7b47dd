"""What all rows of a person share is declared, drafted where rows bear it out, and counted."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fedsynth as fs
from fedsynth.errors import SchemaError
from fedsynth.schema import Categorical, Identifier, ImageSchema, Integer, Schema
from fedsynth.schema.persons import count_varying

KEY = Identifier(name="key")
BORN = Integer(name="born", lower=0, upper=99, of="person")
COST = Integer(name="cost", lower=0, upper=99)
SCHEMA = Schema(columns=[KEY, BORN, COST], person="key")


def test_a_schema_keeps_what_is_of_a_person(tmp_path):
    SCHEMA.save(tmp_path / "schema.yaml")
    loaded = Schema.load(tmp_path / "schema.yaml")
    assert loaded == SCHEMA
    assert loaded.of_person == ("born",)
    assert "of a person" in str(loaded)
    assert SCHEMA.rename({"born": "year"}).of_person == ("year",)
    assert SCHEMA.edit("born", of=None).of_person == ()


def test_without_the_person_nothing_is_of_one():
    left = SCHEMA.drop("key")
    assert left.person is None
    assert left.column("born").of is None


@pytest.mark.parametrize(
    ("columns", "person", "said"),
    [
        ([KEY, BORN], None, "nothing says whose a row is"),
        ([KEY.model_copy(update={"of": "person"}), BORN], "key", "'key' is an identifier"),
    ],
)
def test_what_cannot_be_of_a_person_is_refused(columns, person, said):
    with pytest.raises(SchemaError, match=said):
        Schema(columns=columns, person=person)


def test_of_is_of_a_person_alone():
    with pytest.raises(SchemaError, match=r"column 'born' .* `of` must be person, not 'persons'"):
        Integer(name="born", lower=0, upper=99, of="persons")
    with pytest.raises(SchemaError, match="is for columns of tables"):
        ImageSchema(shape=(2, 2), target=Categorical(name="y", values=["a"], of="person"))


def test_what_equals_a_persons_value_is_of_the_person_too():
    with pytest.raises(SchemaError, match=r"'born' is `of: person`, .* only if 'cost' is"):
        SCHEMA.with_constraint({"equal": ["cost", "born"]})
    both = SCHEMA.edit("cost", of="person").with_constraint({"equal": ["cost", "born"]})
    assert both.of_person == ("cost",)


def test_a_total_is_of_a_person_only_if_its_parts_are():
    total = Integer(name="all", lower=0, upper=198)
    columns = [KEY, BORN, COST]
    rule = {"sum": {"total": "all", "parts": ["born", "cost"]}}
    free = Schema(columns=[*columns, total], person="key", constraints=[rule])
    assert free.of_person == ("born",)
    with pytest.raises(SchemaError, match=r"'all' is `of: person`, .* only if 'cost' is"):
        free.edit("all", of="person")


def test_what_a_column_settles_is_of_a_person_only_if_that_is():
    kind = Categorical(name="kind", values=["a", "b"])
    word = Categorical(name="word", values=["x", "y"])
    table = {"source": "kind", "column": "word", "values": {"a": "x", "b": "y"}}
    columns, rule = [KEY, BORN, kind, word], {"determines": table}
    free = Schema(columns=columns, person="key", constraints=[rule])
    with pytest.raises(SchemaError, match=r"'word' is `of: person`, .* only if 'kind' is"):
        free.edit("word", of="person")
    assert free.edit("kind", of="person").of_person == ("born", "kind")


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from([0.0, 1.0, np.nan])), min_size=1, max_size=30
    )
)
def test_persons_with_several_values_are_counted_and_gaps_are_alike(rows):
    keys, cells = (np.array(part) for part in zip(*rows, strict=True))
    counted = pd.Series(cells).groupby(keys).nunique(dropna=False)
    persons = pd.factorize(keys)[0].astype(np.int64)
    assert count_varying(persons, cells) == int((counted > 1).sum())


def visits(seed=0):
    """Three rows of each of 50 persons: born stays, cost changes, one row in 150 is flagged."""
    rng = np.random.default_rng(seed)
    who = np.repeat(np.arange(50), 3)
    return pd.DataFrame(
        {
            "patient": 100 + who,
            "born": rng.integers(1930, 2000, 50)[who],
            "cost": rng.integers(0, 500, 150),
            "rare": np.where(np.arange(150) < 3, "yes", "no"),
        }
    )


def test_a_draft_declares_what_stays_within_each_person_and_not_what_may_by_chance():
    found = fs.draft(visits())
    assert found.schema.of_person == ("born",)
    (told,) = [one for one in found.findings if one.kind == "of-person"]
    assert told.column == "born"
    assert not told.cells


def test_a_draft_of_several_owners_takes_equal_keys_for_two_persons():
    west, east = visits(), visits(seed=1)
    assert fs.draft({"west": west, "east": east}).schema.of_person == ("born",)
    east.loc[0, "born"] += 1
    assert fs.draft({"west": west, "east": east}).schema.of_person == ()
