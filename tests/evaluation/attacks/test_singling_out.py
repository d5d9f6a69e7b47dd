"""Singling out: copies are caught, independent samples are not; counts as a plain loop has them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import hypergeom

from fedsynth.evaluation.attacks.predicates import (
    LARGEST,
    Indexed,
    Predicates,
    of_one_column,
    of_several,
)
from fedsynth.evaluation.attacks.risks import residual, residual_interval
from fedsynth.evaluation.attacks.singling_out import _Outcome, singling_out
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Boolean, Categorical, Continuous, Integer, Schema
from tests.evaluation.attacked_people import SCHEMA, drawn_rows, people

NUMBER_AND_LETTER = Schema(
    columns=(
        Integer(name="n", lower=0, upper=1000, missing=True),
        Categorical(name="c", values=("a", "b", "c"), missing=True),
    )
)


@pytest.fixture
def adult(adult_rows) -> Rows:
    return adult_rows


def parts(rows: Rows, seed: int, *sizes: int) -> list[Rows]:
    order = np.random.default_rng(seed).permutation(len(rows))[: sum(sizes)]
    return [rows.take(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


def pairs(numbers, letters) -> Rows:
    frame = pd.DataFrame({"n": pd.array(numbers, "Int64"), "c": letters})
    return read_rows(frame, NUMBER_AND_LETTER, "pairs")


@pytest.mark.parametrize("held", [100, 800])
def test_a_copy_of_real_training_rows_is_caught_by_both(adult, held):
    train, real = parts(adult, 1, 800, held)
    risks = singling_out(train, train, real)
    assert [risk.name for risk in risks] == [
        "singling out, one column",
        "singling out, several columns",
    ]
    for risk in risks:
        assert risk.caught
        assert risk.stronger
        assert risk.attack > 0.97
        assert risk.risk > 0.95
        assert risk.low > 0.9
        assert risk.baseline < 0.2
        assert "given away" in risk.sentence


@pytest.mark.parametrize(("seed", "held"), [(0, 250), (1, 1500)])
def test_an_independent_sample_of_real_rows_is_caught_by_neither(adult, seed, held):
    train, real, other = parts(adult, seed, 1500, held, 1500)
    for risk in singling_out(other, train, real, seed=seed):
        assert not risk.caught
        assert risk.attempts > 500
        assert risk.risk < 0.15
        assert risk.low < 0.04
        assert risk.attack == pytest.approx(risk.control, abs=0.12)


@pytest.mark.parametrize(("members", "held"), [(400, 400), (400, 80), (80, 400)])
def test_made_up_people_are_caught_when_copied_and_not_otherwise(members, held):
    train, real = drawn_rows(members, 1), drawn_rows(held, 2)
    for risk in singling_out(train, train, real):
        assert risk.caught
        assert risk.low > 0.8
    for seed in range(3, 4):
        for risk in singling_out(drawn_rows(members, seed), train, real, seed=seed):
            assert not risk.caught


def test_the_alarm_seldom_rings_by_chance():
    # Two risks of 40 independent releases: at .1 % an alarm in them has a chance of 8 %, two .3 %.
    alarms, rows = 0, drawn_rows(40 * 180, 1000)
    for seed, drawn in enumerate(np.arange(len(rows)).reshape(40, 3, 60)):
        train, real, other = (rows.take(part) for part in drawn)
        alarms += sum(risk.caught for risk in singling_out(other, train, real, seed=seed))
    assert alarms <= 1


def test_the_risk_of_a_part_that_is_copied_lies_between(adult):
    train, real, other = parts(adult, 5, 1200, 400, 1200)
    half = np.arange(600)
    mixed = Rows(
        train.schema,
        np.concatenate([train.values[half], other.values[half]]),
        np.concatenate([train.outside[half], other.outside[half]]),
    )
    for risk in singling_out(mixed, train, real):
        assert risk.caught
        assert 0.2 < risk.low < risk.risk < risk.high < 0.6
        assert risk.risk == pytest.approx(residual(risk.attack, risk.control))


def test_a_copy_that_repeats_every_row_is_caught_all_the_same(adult):
    train, real = parts(adult, 2, 1000, 500)
    for risk in singling_out(train.take(np.repeat(np.arange(1000), 3)), train, real):
        assert risk.attack > 0.95
        assert risk.caught


def test_descriptions_of_one_column_by_hand():
    made = Indexed.of(pairs([5, 7, 7, 9, None], ["a", "a", "b", "b", None]))
    found = of_one_column(made, (0, 4), 100, np.random.default_rng(0))
    told = set(zip(found.columns[:, 0], found.low[:, 0], found.high[:, 0], strict=True))
    # 5, 9 and the gap are the only ones of their kind, 5 the least and 9 the largest; a gap in c.
    assert told == {
        (0, 5, 5),
        (0, 9, 9),
        (0, np.inf, np.inf),
        (0, -LARGEST, 5),
        (0, 9, LARGEST),
        (1, np.inf, np.inf),
    }


def test_success_by_hand():
    # Unique: 5 (and at most 5), 9 (and at least 9); of c nothing.
    synthetic = pairs([5, 7, 7, 9], ["a", "a", "b", "b"])
    train = pairs([3, 5, 9, 9], ["a", "a", "b", "b"])
    real = pairs([5, 20, 20, 20], ["a", "a", "b", "b"])
    risk, _ = singling_out(synthetic, train, real)
    # =5 fits one training row; <=5, =9 and >=9 fit two.
    assert (risk.attempts, risk.attack) == (4, 0.25)
    assert not risk.caught


@given(st.integers(0, 2**32 - 1))
def test_matches_are_those_of_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    rows = drawn_rows(40, seed % 1000)
    made = Indexed.of(rows)
    values = np.where(np.isnan(rows.values), np.inf, rows.values)
    columns = np.argsort(rng.random((15, 6)), axis=1)[:, : rng.integers(1, 7)]
    low = values[rng.integers(40, size=15)[:, None], columns]
    high = np.where(rng.random(low.shape) < 0.5, low, np.where(np.isinf(low), low, LARGEST))
    for i, found in enumerate(made.matches(Predicates(columns, low, high))):
        cells = values[:, columns[i]]
        wanted = np.flatnonzero(((cells >= low[i]) & (cells <= high[i])).all(axis=1))
        assert sorted(found) == wanted.tolist()


def test_descriptions_of_several_columns_fit_one_row_each_and_another_each():
    rows = drawn_rows(200, 3)
    made = Indexed.of(rows, distinct=True)
    for attempts in (60, 1000):
        found = of_several(made, rows.sizes, 3, attempts, np.random.default_rng(1))
        met = [tuple(places) for places in made.matches(found)]
        assert all(len(places) == 1 for places in met)
        assert len(set(met)) == len(met)
        assert 50 < len(found) <= attempts


def test_the_mean_over_deals_is_that_of_drawing_rows_at_random():
    rng = np.random.default_rng(0)
    hits, counts = np.array([True, False]), np.array([1, 3])
    outcome = _Outcome(hits, counts, np.array([1, 0]), [], members=30, others=10)
    drawn = [(rng.permutation(40)[:30] < 3).sum() == 1 for _ in range(20_000)]
    assert outcome.dealt(np.array([3]))[0] == pytest.approx(np.mean(drawn), abs=0.01)
    assert outcome.dealt(np.array([3]))[0] == pytest.approx(hypergeom(40, 30, 3).pmf(1))


def test_the_permutation_test_by_hand():
    # Ten descriptions fit a row each, all of them training rows: of 20 rows, as many of each kind,
    # the chance is 1 / (20 over 10).
    met = [np.array([i]) for i in range(10)]
    ones, none = np.ones(10, int), np.zeros(10, int)
    outcome = _Outcome(ones == 1, ones, none, met, members=10, others=10)
    assert outcome.p_value(np.random.default_rng(0)) == pytest.approx(1 / 2000)
    # One description that does: one half.
    one = _Outcome(ones[:1] == 1, ones[:1], none[:1], met[:1], members=10, others=10)
    assert one.p_value(np.random.default_rng(0)) == pytest.approx(0.5, abs=0.25)
    # Descriptions that fit the same row are one piece of evidence, not ten.
    same = _Outcome(ones == 1, ones, none, [met[0]] * 10, members=10, others=10)
    assert same.p_value(np.random.default_rng(0)) > 0.2


def test_neither_row_order_nor_names_of_categories_matter(adult):
    train, real, other = parts(adult, 7, 700, 700, 700)
    rng = np.random.default_rng(0)
    renamed = []
    maps = {j: rng.permutation(size) for j, size in enumerate(train.sizes) if size}
    for rows in (other, train, real):
        values = rows.values.copy()
        for j, codes in maps.items():
            known = ~np.isnan(values[:, j])
            values[known, j] = codes[values[known, j].astype(int)]
        renamed.append(replace(rows, values=values))
    shuffled = [rows.take(rng.permutation(len(rows))) for rows in (other, train, real)]
    risks = singling_out(other, train, real, attempts=5000)
    for risk, same in zip(risks, singling_out(*renamed, attempts=5000), strict=True):
        assert (risk.attempts, risk.attack) == (same.attempts, same.attack)
        assert risk.control == pytest.approx(same.control, abs=1e-12)
    again = singling_out(*shuffled, attempts=5000)
    assert (again[0].attack, again[0].control) == (risks[0].attack, risks[0].control)
    assert again[1].attack == pytest.approx(risks[1].attack, abs=0.05)


def test_the_same_seed_gives_the_same_figures():
    tables = [drawn_rows(100, seed) for seed in (1, 2, 3)]
    assert singling_out(*tables, seed=4) == singling_out(*tables, seed=4)


def test_nothing_unique_is_said_not_hidden():
    table = pairs([5, 5, 7, 7], ["a", "a", "b", "b"])
    for risk in singling_out(table.take(np.array([0, 1])), table, table):
        # Equal rows count as one, and that one is alone in its table.
        assert risk.attempts > 0
    flags = Schema(columns=[Boolean(name="f"), Boolean(name="g")])
    frame = pd.DataFrame({"f": [True, True, False, False], "g": [True, False, True, False]})
    rows = read_rows(frame, flags, "flags")
    one, several = singling_out(rows, rows, rows)
    assert one.attempts == 0
    assert (one.risk, one.low, one.high) == (0, 0, 1)
    assert "Nothing to try" in one.sentence
    assert several.attempts == 4


def test_one_column_leaves_out_what_needs_several():
    schema = Schema(columns=[Continuous(name="x", lower=0, upper=1, decimals=6)])
    rng = np.random.default_rng(0)
    train, real = (
        read_rows(pd.DataFrame({"x": rng.random(50).round(6)}), schema, "t") for _ in range(2)
    )
    (risk,) = singling_out(train, train, real)
    assert risk.caught
    assert risk.risk > 0.9


def test_ten_rows_gaps_and_unseen_categories():
    frame = people(10, 1)
    frame["day"] = pd.NaT
    frame.loc[0, "colour"] = "mauve"
    rows, held = read_rows(frame, SCHEMA, "ten"), drawn_rows(10, 2)
    for tables in ((rows, rows, held), (held, rows, rows), (rows.take(np.array([0])), rows, held)):
        for risk in singling_out(*tables):
            figures = (risk.risk, risk.low, risk.high, risk.attack, risk.control, risk.baseline)
            assert all(0 <= figure <= 1 for figure in figures)
            assert risk.low <= risk.risk <= risk.high


@pytest.mark.parametrize(("n", "a", "c"), [(50, 0.3, 0.3), (1000, 0.3, 0.1), (200, 0.9, 0.5)])
def test_the_interval_of_a_residual_covers_it(n, a, c):
    rng = np.random.default_rng(n)
    covered = 0
    for x, y in zip(rng.binomial(n, a, 600) / n, rng.binomial(n, c, 600) / n, strict=True):
        low, high = residual_interval(x, n, y, n)
        covered += low <= residual(a, c) <= high
        assert low <= residual(x, y) <= high
    assert 0.935 <= covered / 600 <= 0.995


def test_an_interval_where_nothing_is_left_to_gain_is_all_or_nothing():
    assert residual_interval(1, 10, 1, 10) == (0, 1)
    assert residual(1, 1) == 0
    low, high = residual_interval(1, 10, 0, 10)
    assert 0.6 < low < high == 1
