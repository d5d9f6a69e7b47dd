"""Rows of a generator by class, under conditions and constraints."""

from __future__ import annotations

import numpy as np
import pytest

from fedsynth.errors import ConfigError
from fedsynth.methods.sampling.drawing import Conditioning, draw_table
from fedsynth.schema import Categorical, Continuous, Integer, Schema

PEOPLE = Schema(
    columns=(
        Integer(name="age", lower=0, upper=99),
        Continuous(name="weight", lower=0.0, upper=200.0, decimals=1, missing=True),
        Categorical(name="sick", values=("no", "yes")),
    ),
    target="sick",
)
SHARES = np.array([0.75, 0.25])


def draw(labels, rows, rng):
    """The sick are 60 to 79, the others 20 to 59; weights off the grid, a tenth missing."""
    age = np.where(labels == 1, rng.integers(60, 80, rows), rng.integers(20, 60, rows))
    weight = rng.uniform(-10, 90, rows)
    return {"age": age, "weight": np.where(rng.random(rows) < 0.1, np.nan, weight)}


def drawn(rows=4000, where=None, proportions=None, seed=0, schema=PEOPLE, **changes):
    return draw_table(schema, changes.get("shares", SHARES), rows, where, proportions, seed, draw)


def test_classes_have_their_shares_and_numbers_stand_on_the_schemas_grid():
    rows = drawn()
    assert abs((rows.sick == "yes").mean() - 0.25) < 5 * np.sqrt(0.25 * 0.75 / 4000)
    assert rows.weight.min() == 0.0
    assert np.allclose(rows.weight.dropna() * 10, np.round(rows.weight.dropna() * 10))
    assert abs(rows.weight.isna().mean() - 0.1) < 0.03


def test_a_seed_repeats_and_another_does_not():
    assert drawn(seed=3).equals(drawn(seed=3))
    assert not drawn(seed=3).equals(drawn(seed=4))


def test_a_condition_on_the_target_is_exact_even_for_a_class_that_noise_emptied():
    assert (drawn(where={"sick": "yes"}).sick == "yes").all()
    assert (drawn(where={"sick": "yes"}, shares=np.array([1.0, 0.0])).sick == "yes").all()
    assert set(drawn(where={"sick": ["no", "yes"]}).sick) == {"no", "yes"}


def test_a_condition_on_another_column_changes_the_classes_as_bayes_says():
    rows = drawn(where={"age": {"from": 50, "to": 69}})
    assert rows.age.between(50, 69).all()
    # A quarter of the healthy and half of the sick: 3/16 and 1/8 of all.
    share = (1 / 8) / (1 / 8 + 3 / 16)
    assert abs((rows.sick == "yes").mean() - share) < 5 * np.sqrt(share * (1 - share) / 4000)


def test_not_many_more_rows_are_drawn_than_a_condition_takes():
    asked = []

    def counted(labels, rows, rng):
        asked.append(rows)
        return draw(labels, rows, rng)

    # About two rows in five meet it.
    draw_table(PEOPLE, SHARES, 50, {"age": {"to": 40}}, None, 0, counted)
    assert sum(asked) < 500


def test_proportions_hold_whatever_else_is_asked():
    rows = drawn(where={"age": {"from": 50, "to": 69}}, proportions={"yes": 0.9, "no": 0.1})
    assert rows.age.between(50, 69).all()
    assert abs((rows.sick == "yes").mean() - 0.9) < 5 * np.sqrt(0.09 / 4000)


def test_missing_cells_can_be_asked_for():
    assert drawn(200, where={"weight": None}).weight.isna().all()


def test_a_constraint_holds_in_every_row():
    schema = PEOPLE.model_copy(
        update={
            "constraints": Schema(
                columns=PEOPLE.columns,
                constraints=({"never": {"sick": "yes", "age": {"from": 70, "to": 99}}},),
            ).constraints
        }
    )
    rows = drawn(schema=schema)
    assert not ((rows.sick == "yes") & (rows.age >= 70)).any()
    assert (rows.sick == "yes").any()


@pytest.mark.parametrize(
    "where, proportions, said",
    [
        ({"age": 19}, None, "0 of 20 rows"),
        ({"sick": "yes", "age": 30}, None, "hardly a row"),
        ({"agee": 30}, None, "age"),
        ({"sick": "maybe"}, None, "maybe"),
        ({"sick": "yes"}, {"yes": 1.0}, "not both"),
        (None, {"perhaps": 1.0}, "perhaps"),
        (None, {"yes": -1.0}, "not negative"),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_words(where, proportions, said):
    with pytest.raises(ConfigError, match=said):
        drawn(20, where=where, proportions=proportions)


def test_conditions_that_a_constraint_excludes_are_refused_before_a_draw():
    never = {"never": {"age": {"to": 15}, "sick": "yes"}}
    schema = Schema(columns=PEOPLE.columns, target="sick", constraints=[never])
    for age in (5, (3, 15), [2, 4]):
        with pytest.raises(ConfigError, match="age, sick are never to 15, yes at once"):
            Conditioning.of(schema, SHARES, {"age": age, "sick": "yes"}, None)
    for where in ({"age": (3, 16), "sick": "yes"}, {"age": 5}, {"age": 5, "sick": ["no", "yes"]}):
        Conditioning.of(schema, SHARES, where, None)


def test_without_classes_the_target_is_a_column_like_others():
    schema = Schema(columns=PEOPLE.columns[:1], target="age")

    def ages(labels, rows, rng):
        assert labels is None
        return {"age": rng.integers(0, 100, rows)}

    rows = draw_table(schema, np.zeros(0), 50, {"age": [7, 8]}, None, 0, ages)
    assert set(rows.age) == {7, 8}
    with pytest.raises(ConfigError, match="proportions"):
        draw_table(schema, np.zeros(0), 50, None, {"7": 1.0}, 0, ages)
