"""Linkability: copies are caught, independent samples are not, hand-worked links."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks import vectors
from fedsynth.evaluation.attacks.inference import inference
from fedsynth.evaluation.attacks.linkability import linkability
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Boolean, Categorical, Continuous, Schema
from tests.evaluation.attacked_people import SCHEMA, drawn_rows, people


@pytest.fixture
def adult(adult_rows) -> Rows:
    return adult_rows


def parts(rows: Rows, seed: int, *sizes: int) -> list[Rows]:
    order = np.random.default_rng(seed).permutation(len(rows))[: sum(sizes)]
    return [rows.take(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


@pytest.mark.parametrize("neighbours", [1, 10])
def test_a_copy_of_real_training_rows_is_caught(adult, neighbours):
    train, real = parts(adult, 1, 3000, 600)
    risk = linkability(train, train, real, neighbours=neighbours, attempts=600)
    assert risk.caught
    assert risk.stronger
    assert risk.attack == 1
    assert risk.low > 0.95
    assert (risk.name, risk.column, risk.attempts) == ("linkability", None, 600)
    assert "given away" in risk.sentence


@pytest.mark.parametrize("seed", range(4))
def test_an_independent_sample_of_real_rows_is_not(adult, seed):
    train, real, other = parts(adult, seed, 2000, 600, 2000)
    risk = linkability(other, train, real, attempts=600, seed=seed)
    assert not risk.caught
    assert risk.attack == pytest.approx(risk.control, abs=0.08)
    assert risk.low < 0.03


@pytest.mark.parametrize(("members", "held"), [(300, 300), (300, 60), (60, 300)])
def test_made_up_people_are_caught_when_copied_and_not_otherwise(members, held):
    train, real = drawn_rows(members, 1), drawn_rows(held, 2)
    assert linkability(train, train, real).caught
    for seed in range(3, 13):
        assert not linkability(drawn_rows(members, seed), train, real, seed=seed).caught


def test_the_alarm_seldom_rings_by_chance():
    alarms, rows = 0, drawn_rows(40 * 240, 1000)
    for seed, drawn in enumerate(np.arange(len(rows)).reshape(40, 3, 80)):
        train, real, other = (rows.take(part) for part in drawn)
        alarms += linkability(other, train, real, seed=seed).caught
    assert alarms <= 1


PLANE = Schema(
    columns=[
        Continuous(name="a", lower=0, upper=100, decimals=0),
        Continuous(name="b", lower=0, upper=100, decimals=0),
    ]
)


def plane(*points: tuple[float, float]) -> Rows:
    return read_rows(pd.DataFrame(points, columns=["a", "b"], dtype=float), PLANE, "plane")


def test_links_by_hand():
    synthetic = plane((0, 0), (50, 50), (100, 100))
    # (1, 2) is near (0, 0) by both; (49, 99) near the second by a, the third by b.
    members, others = plane((1, 2), (98, 97)), plane((49, 99), (60, 55))
    risk = linkability(synthetic, members, others)
    assert (risk.attack, risk.control, risk.risk) == (1, 0.5, 1)
    # By two neighbours each all share one, so nothing is left to gain.
    both = linkability(synthetic, members, others, neighbours=2)
    assert (both.attack, both.control, both.risk) == (1, 1, 0)
    # By all of them, too; more than there are is as many as there are.
    assert linkability(synthetic, members, others, neighbours=9).control == 1


def test_rows_as_near_as_the_nearest_count_too():
    # 30 rows agree with the member by a, 30 by b, one by both.
    synthetic = plane(
        *[(10, i) for i in range(50, 80)], *[(i, 20) for i in range(50, 80)], (10, 20)
    )
    assert linkability(synthetic, plane((10, 20)), plane((10, 45))).attack == 1
    without = synthetic.take(np.arange(60))
    assert linkability(without, plane((10, 20)), plane((10, 45))).attack == 0


def test_random_neighbours_meet_as_often_as_the_formula_says():
    train, real = drawn_rows(1500, 1), drawn_rows(50, 2)
    risk = linkability(drawn_rows(100, 3), train, real, neighbours=10)
    # 1 - (90 over 10) / (100 over 10)
    assert risk.baseline == pytest.approx(0.6695, abs=0.04)


def test_chosen_halves_are_used(adult):
    train, real = parts(adult, 1, 1000, 300)
    halves = (("age", "fnlwgt"), ("education", "occupation"))
    assert linkability(train, train, real, halves=halves).caught
    # Columns that hardly tell people apart link nobody in particular.
    coarse = linkability(train, train, real, halves=(("sex",), ("race",)))
    assert coarse.risk < 0.05


@pytest.mark.parametrize(
    ("halves", "message"),
    [
        ((("x",), ("z",)), "no column 'z'"),
        ((("x",), ("x", "y")), "none to both"),
        (((), ("x",)), "a column or more"),
        ((("id",), ("x",)), "no column 'id'"),
    ],
)
def test_wrong_halves_are_refused(halves, message):
    rows = drawn_rows(20, 1)
    with pytest.raises(ConfigError, match=message):
        linkability(rows, rows, rows, halves=halves)


def test_one_column_cannot_be_split():
    schema = Schema(columns=[Boolean(name="f")])
    rows = read_rows(pd.DataFrame({"f": [True, False]}), schema, "one")
    with pytest.raises(DataError, match="two columns or more"):
        linkability(rows, rows, rows)


def test_neither_row_order_nor_names_of_categories_matter():
    train, real, other = (drawn_rows(150, seed) for seed in (1, 2, 3))
    risk = linkability(other, train, real)
    rng = np.random.default_rng(0)
    shuffled = [rows.take(rng.permutation(150)) for rows in (other, train, real)]
    assert linkability(*shuffled) == risk
    values = ("blue", "red", "green")
    renamed = Schema(
        columns=[Categorical(name="colour", values=values, missing=True), *SCHEMA.columns[2:]],
        target="flag",
    )
    tables = [read_rows(people(150, seed).drop(columns="id"), renamed, "t") for seed in (3, 1, 2)]
    assert linkability(*tables) == risk


def test_ten_rows_gaps_and_unseen_categories():
    frame = people(10, 1)
    frame["day"] = pd.NaT
    frame["x"] = np.nan
    frame.loc[0, "colour"] = "mauve"
    rows, held = read_rows(frame, SCHEMA, "ten"), drawn_rows(10, 2)
    assert linkability(rows, rows, held).attack == 1
    for tables in ((held, rows, rows), (rows.take(np.array([0])), rows, held)):
        risk = linkability(*tables)
        figures = (risk.risk, risk.low, risk.high, risk.attack, risk.control, risk.baseline)
        assert all(0 <= figure <= 1 for figure in figures)
        assert not risk.caught


def test_a_table_of_gaps_links_everybody_and_tells_nothing():
    rows = drawn_rows(10, 1)
    gaps = replace(rows, values=np.full_like(rows.values, np.nan))
    risk = linkability(gaps, gaps, gaps)
    assert (risk.attack, risk.control, risk.risk, risk.caught) == (1, 1, 0, False)


def test_a_release_too_large_to_search_is_sampled_and_says_so(monkeypatch):
    monkeypatch.setattr(vectors, "MOST_VECTORS", 150)
    train, real = drawn_rows(600, 1), drawn_rows(300, 2)
    risk = linkability(train, train, real)
    assert risk.caught
    assert 0.15 < risk.attack < 0.4
    assert "among 150 of the 600 synthetic rows" in risk.sentence
    found = inference(train, train, real, secrets=("y",))
    assert found.risks[0].caught
    assert "among 150 of the 600 synthetic rows" in found.risks[0].sentence
    assert "among 150 of the 600 synthetic rows" in found.attributes[0].sentence
