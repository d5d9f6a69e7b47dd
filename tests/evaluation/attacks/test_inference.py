"""Inference: copies are caught, independent samples are not, hand-worked guesses."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks.inference import default_secrets, inference
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Boolean, Categorical, Continuous, Schema
from tests.evaluation.attacked_people import SCHEMA, drawn_rows, people


@pytest.fixture
def adult(adult_rows) -> Rows:
    return adult_rows


def parts(rows: Rows, seed: int, *sizes: int) -> list[Rows]:
    order = np.random.default_rng(seed).permutation(len(rows))[: sum(sizes)]
    return [rows.take(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


def test_a_copy_of_real_training_rows_is_caught_in_every_secret(adult):
    train, real = parts(adult, 1, 1500, 400)
    found = inference(train, train, real, attempts=400)
    assert [risk.column for risk in found.risks] == [each.column for each in found.attributes]
    assert found.risks[0].column == "income"
    assert len(found.risks) == 6
    for risk, each in zip(found.risks, found.attributes, strict=True):
        assert risk.caught
        assert each.caught
        assert risk.risk > 0.85
        assert risk.low > 0.7
        assert risk.stronger
        assert "given away" in risk.sentence
        assert each.synthetic > 0.9
        assert each.synthetic > each.held_out
        assert each.gain == pytest.approx(each.synthetic - each.others)
        assert 0 < each.low < each.gain < each.high


@pytest.mark.parametrize("seed", range(2))
def test_an_independent_sample_of_real_rows_is_caught_in_none(adult, seed):
    train, real, other = parts(adult, seed, 1200, 400, 1200)
    found = inference(other, train, real, attempts=400, seed=seed)
    for risk, each in zip(found.risks, found.attributes, strict=True):
        assert not risk.caught
        assert not each.caught
        assert risk.low < 0.12
        assert each.low < 0.04
        assert each.gain == pytest.approx(0, abs=0.1)
        # Real rows of the same population serve as well as such a release.
        assert each.held_out == pytest.approx(each.synthetic, abs=0.15)


@pytest.mark.parametrize(("members", "held"), [(300, 300), (300, 60), (60, 300)])
def test_made_up_people_are_caught_when_copied_and_not_otherwise(members, held):
    train, real = drawn_rows(members, 1), drawn_rows(held, 2)
    secrets = ("flag", "x", "y", "day")
    assert all(risk.caught for risk in inference(train, train, real, secrets=secrets).risks[1:])
    for seed in range(3, 7):
        found = inference(drawn_rows(members, seed), train, real, seed=seed)
        assert not any(risk.caught for risk in found.risks)


NUMBER_AND_LETTER = Schema(
    columns=(
        Continuous(name="n", lower=0, upper=1000, decimals=1, missing=True),
        Categorical(name="c", values=("a", "b", "c"), missing=True),
    ),
)


def pairs(numbers, letters) -> Rows:
    frame = pd.DataFrame({"n": np.array(numbers, float), "c": letters})
    return read_rows(frame, NUMBER_AND_LETTER, "pairs")


def test_guesses_by_hand():
    synthetic = pairs([0, 100, 200, 300], ["a", "b", "a", None])
    train = pairs([1, 99, 205, 310], ["a", "b", "b", None])
    real = pairs([1, 99, 205, 310], ["b", "b", "b", "b"])
    found = inference(synthetic, train, real, secrets=("c",))
    (risk,), (each,) = found.risks, found.attributes
    # Guesses are a, b, a and a gap; right for the training rows but once, for the others once.
    assert (risk.attack, risk.control, risk.attempts) == (0.75, 0.25, 4)
    assert risk.risk == pytest.approx((0.75 - 0.25) / (1 - 0.25))
    assert (each.synthetic, each.others, each.gain, each.rows) == (0.75, 0.25, 0.5, 4)
    # Held-out rows say b to all; the release's commonest letter is a.
    assert (each.held_out, each.commonest) == (0.5, 0.25)
    assert (each.caught, risk.caught) == (False, False)


def test_the_interval_of_a_gain_by_hand():
    # Right for all of ten and none of ten: Clopper-Pearson's limits are .6915 and .3085.
    synthetic = pairs([0, 100], ["a", "b"])
    all_right, all_wrong = pairs([0] * 10, ["a"] * 10), pairs([0] * 10, ["b"] * 10)
    each = inference(synthetic, all_right, all_wrong, secrets=("c",)).attributes[0]
    assert (each.gain, each.high) == (1, 1)
    assert each.low == pytest.approx(1 - math.hypot(0.3085, 0.3085), abs=1e-4)
    each = inference(synthetic, all_wrong, all_right, secrets=("c",)).attributes[0]
    assert (each.gain, each.low, each.caught) == (-1, -1, False)


def test_a_number_is_right_within_a_twentieth_of_the_release_s_range():
    # From its 5 to its 95 % quantile the release is 90 wide, so 4.5 is near enough; its median is
    # 150, which is what "commonest" guesses of a number.
    synthetic = pairs(np.arange(100, 201), ["a"] * 101)
    near, far = pairs([154.5, 145.5], ["a", "a"]), pairs([154.6, 145.4], ["a", "a"])
    assert inference(synthetic, near, far, secrets=("n",)).attributes[0].commonest == 1
    assert inference(synthetic, far, near, secrets=("n",)).attributes[0].commonest == 0


def test_the_naive_guess_is_a_random_synthetic_value():
    synthetic = pairs(np.arange(100), ["a"] * 75 + ["b"] * 25)
    train = pairs(np.arange(1000) / 10, ["a"] * 1000)
    risk = inference(synthetic, train, train.take(np.arange(50)), secrets=("c",)).risks[0]
    assert risk.baseline == pytest.approx(0.75, abs=0.05)


def test_an_attack_no_better_than_guessing_says_so():
    rng = np.random.default_rng(0)
    synthetic, train, real = (
        pairs(rng.random(200).round(1), rng.choice(["a", "b"], 200)) for _ in range(3)
    )
    risk = inference(synthetic, train, real, secrets=("c",)).risks[0]
    assert not risk.stronger
    assert "says little" in risk.sentence


def test_default_secrets_are_the_target_and_what_is_hard_to_guess():
    rows = drawn_rows(500, 1)
    chosen = default_secrets(rows)
    # "count" is 0 in four rows of five, so it comes last.
    assert chosen[0] == "flag"
    assert chosen[-1] == "count"
    assert sorted(chosen) == sorted(rows.names)


def test_secrets_are_those_named():
    rows = drawn_rows(30, 1)
    found = inference(rows, rows, drawn_rows(30, 2), secrets=("day", "colour"))
    assert [risk.column for risk in found.risks] == ["day", "colour"]
    for wrong in ("dya", "id"):
        with pytest.raises(ConfigError, match="secrets: there is no column"):
            inference(rows, rows, rows, secrets=(wrong,))


def test_one_column_leaves_nothing_to_guess_from():
    schema = Schema(columns=[Boolean(name="f")])
    rows = read_rows(pd.DataFrame({"f": [True, False]}), schema, "one")
    with pytest.raises(DataError, match="two columns or more"):
        inference(rows, rows, rows)


def test_neither_row_order_nor_names_of_categories_matter():
    secrets = ("colour", "x", "flag", "day")
    train, real, other = (drawn_rows(150, seed) for seed in (1, 2, 3))
    found = inference(other, train, real, secrets=secrets)
    rng = np.random.default_rng(0)
    shuffled = [rows.take(rng.permutation(150)) for rows in (other, train, real)]
    assert inference(*shuffled, secrets=secrets).attributes == found.attributes
    renamed = Schema(
        columns=[
            Categorical(name="colour", values=("blue", "red", "green"), missing=True),
            *SCHEMA.columns[2:],
        ],
        target="flag",
    )
    tables = [read_rows(people(150, seed).drop(columns="id"), renamed, "t") for seed in (3, 1, 2)]
    assert inference(*tables, secrets=secrets) == found


def test_ten_rows_gaps_and_unseen_categories():
    frame = people(10, 1)
    frame["day"] = pd.NaT
    frame.loc[0, "colour"] = "mauve"
    rows, held = read_rows(frame, SCHEMA, "ten"), drawn_rows(10, 2)
    for tables in ((rows, rows, held), (held, rows, rows), (rows.take(np.array([0])), rows, held)):
        found = inference(*tables)
        for risk, each in zip(found.risks, found.attributes, strict=True):
            figures = (
                *(risk.risk, risk.low, risk.high, risk.attack, risk.control, risk.baseline),
                *(each.synthetic, each.others, each.held_out, each.commonest),
            )
            assert all(0 <= figure <= 1 for figure in figures)
            assert -1 <= each.low <= each.gain <= each.high <= 1


def test_a_secret_that_is_always_missing_tells_nothing():
    rows = drawn_rows(40, 1)
    values = rows.values.copy()
    values[:, rows.names.index("day")] = np.nan
    gaps = replace(rows, values=values)
    found = inference(gaps, gaps, gaps, secrets=("day",))
    (risk,), (each,) = found.risks, found.attributes
    assert (risk.attack, risk.control, risk.risk, risk.caught) == (1, 1, 0, False)
    assert (each.gain, each.commonest) == (0, 1)
