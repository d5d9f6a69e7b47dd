"""Membership attacks: copies are caught, independent samples are not, and seldom by chance."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy.stats import fisher_exact, mannwhitneyu

from fedsynth.errors import DataError
from fedsynth.evaluation.attacks import membership as module
from fedsynth.evaluation.attacks import scoring as scoring_module
from fedsynth.evaluation.attacks.membership import equal_rows, judge_scores, membership
from fedsynth.evaluation.attacks.neighbours import row_keys
from fedsynth.evaluation.reading.confidence import ALARM
from fedsynth.evaluation.reading.rows import Rows, read_rows
from fedsynth.schema import Categorical, Integer, Schema
from tests.evaluation.attacked_people import COLOURS, SCHEMA, drawn_rows, people

NAMES = ["density ratio", "nearest row", "matching cells", "equal rows"]


@pytest.fixture(scope="module")
def adult(adult_rows) -> list[Rows]:
    """Training rows, held-out rows and others of the same population."""
    order = np.random.default_rng(4).permutation(len(adult_rows))
    return [adult_rows.take(part) for part in np.split(order[:2500], [1000, 1500])]


def together(*tables: Rows) -> Rows:
    values = np.concatenate([rows.values for rows in tables])
    return Rows(tables[0].schema, values, np.concatenate([rows.outside for rows in tables]))


def test_a_copy_of_real_training_rows_is_caught_by_every_attack(adult):
    train, real, _ = adult
    found = membership(train, train, real)
    assert [attack.name for attack in found] == NAMES
    for attack in found:
        assert attack.caught
        assert attack.auroc > 0.98
        assert attack.auroc_low > 0.97
        others = 500 if attack.name == "equal rows" else 250
        assert (attack.members, attack.others) == (1000, others)
        assert "can be told" in attack.sentence
    assert found[0].tpr[1].value > 0.95


def test_an_independent_sample_of_real_rows_is_caught_by_none(adult):
    train, real, other = adult
    for attack in membership(other, train, real):
        assert not attack.caught
        assert attack.auroc == pytest.approx(0.5, abs=0.06)
        assert attack.tpr[1].value < 0.04
        assert "No training row stood out" in attack.sentence


def test_a_few_copied_rows_are_caught(adult):
    train, real, other = adult
    found = membership(together(train.take(np.arange(80)), other.take(np.arange(920))), train, real)
    assert found[0].caught
    assert found[0].auroc < 0.6
    assert found[0].tpr[1].value == pytest.approx(0.08, abs=0.03)


def test_copies_with_small_noise_are_caught(adult):
    train, real, other = adult
    rng = np.random.default_rng(2)
    values = train.values[:200].copy()
    number = np.array(train.sizes) == 0
    spread = np.nanstd(train.values[:, number], axis=0)
    values[:, number] += rng.normal(0, 0.01, (200, number.sum())) * spread
    noisy = Rows(train.schema, values, train.outside[:200])
    assert membership(together(noisy, other.take(np.arange(800))), train, real)[0].caught


def test_matching_cells_find_copies_whose_other_cells_changed(adult):
    train, real, other = adult
    rng = np.random.default_rng(3)
    donors = other.values[rng.integers(len(other), size=train.values.shape), np.arange(15)]
    values = np.where(rng.random(train.values.shape) < 0.3, donors, train.values)
    found = membership(Rows(train.schema, values, train.outside), train, real)
    assert found[2].caught
    assert found[2].auroc > found[1].auroc + 0.1


@pytest.mark.parametrize("seed", range(3))
def test_a_small_mixed_table_copied_and_not(seed):
    train, real, other = (drawn_rows(rows, 50 + 3 * seed + rows) for rows in (120, 100, 130))
    assert [attack.caught for attack in membership(train, train, real)] == [True] * 4
    assert [attack.caught for attack in membership(other, train, real)] == [False] * 4


def test_alarms_about_independent_samples_are_as_rare_as_promised():
    found, rows = [], drawn_rows(40 * 180, 1000)
    for seed, drawn in enumerate(np.arange(len(rows)).reshape(40, 3, 60)):
        tables = (rows.take(part) for part in drawn)
        found.append(membership(*tables, seed=seed))
    # 160 attacks at 0.001, the same in every run: two alarms or more have chance 0.02.
    assert sum(attack.caught for attacks in found for attack in attacks) <= 1
    # Whatever tells the attacker members leans to one side long before it raises alarms.
    areas = np.array([[attack.auroc for attack in attacks] for attacks in found])
    assert (np.abs(areas.mean(axis=0) - 0.5) <= 4.5 * areas.std(axis=0) / np.sqrt(40)).all()


@pytest.mark.parametrize(("rows", "rounds", "kinds"), [((60, 60), 120, 10**6), ((12, 12), 60, 3)])
def test_alarms_about_random_scores_are_as_rare_as_promised(rows, rounds, kinds):
    rng = np.random.default_rng(8)
    scores = (rng.integers(kinds, size=sum(rows)).astype(float) for _ in range(rounds))
    caught = sum(judge_scores("", s[: rows[0]], s[rows[0] :]).caught for s in scores)
    assert caught <= {120: 1, 60: 0}[rounds]


def test_the_figures_are_those_of_the_scores():
    rng = np.random.default_rng(9)
    members, others = rng.normal(0.5, 1, 300), rng.normal(0, 1, 200)
    found = judge_scores("x", members, others)
    assert found.auroc == pytest.approx(mannwhitneyu(members, others).statistic / 300 / 200)
    assert found.auroc_low < found.auroc < found.auroc_high
    assert found.caught
    cut = np.sort(others)[-2]
    assert [rate.fpr for rate in found.tpr] == [0.001, 0.01]
    assert found.tpr[1].value == np.mean(members > cut)
    assert found.tpr[0].value is found.tpr[0].low is found.tpr[0].high is None
    assert "at 1% false alarms" in found.sentence
    assert "false alarms" not in judge_scores("x", members, others[:98]).sentence
    assert not judge_scores("x", others, members).caught


def test_a_few_members_at_the_top_raise_the_alarm():
    rng = np.random.default_rng(10)
    members, others = rng.normal(0, 1, 2000), rng.normal(0, 1, 2000)
    assert not judge_scores("x", members, others).caught
    members[:40] += 10
    found = judge_scores("x", members, others)
    assert found.caught
    assert found.auroc_low < 0.5


def test_the_order_of_the_rows_does_not_matter_even_to_samples(monkeypatch):
    monkeypatch.setattr(module, "SEARCHED", 60)
    tables = [drawn_rows(100, part) for part in (1, 2, 3)]
    rng = np.random.default_rng(0)
    shuffled = [rows.take(rng.permutation(100)) for rows in tables]
    assert membership(*tables, most=40) == membership(*shuffled, most=40)
    assert membership(*tables, most=40) != membership(*tables, most=40, seed=1)


@pytest.mark.parametrize("copied", [True, False])
def test_names_of_categories_do_not_matter(copied):
    frames = [people(150, part) for part in (1, 2, 3)]
    if copied:
        frames[0] = frames[1]
    plain = membership(*(read_rows(frame, SCHEMA, "people") for frame in frames))
    names = dict(zip(COLOURS, ("zinc", "opal", "alum"), strict=True))
    for values, exact in ((("zinc", "opal", "alum"), True), (("alum", "opal", "zinc"), False)):
        colour = Categorical(name="colour", values=values, missing=True)
        columns = tuple(colour if c.name == "colour" else c for c in SCHEMA.columns)
        renamed = [frame.assign(colour=frame.colour.map(names)) for frame in frames]
        schema = Schema(columns=columns)
        found = membership(*(read_rows(frame, schema, "renamed") for frame in renamed))
        if exact:
            assert found == plain
        for one, other in zip(found, plain, strict=True):
            # Another declared order draws another half of the held-out rows.
            assert one.caught == other.caught == copied
            assert one.auroc_low <= other.auroc_high
            assert other.auroc_low <= one.auroc_high


def test_copies_among_more_rows_than_are_searched_are_found(monkeypatch):
    train, real, other = (drawn_rows(rows, rows) for rows in (200, 160, 3000))
    monkeypatch.setattr(module, "SEARCHED", 300)
    found = membership(together(other, train), train, real)
    assert found[0].caught
    assert found[0].auroc > 0.9
    assert not any(attack.caught for attack in membership(other, train, real))


ONE = Schema(columns=(Integer(name="a", lower=0, upper=10**6, missing=True),))


def numbers(values) -> Rows:
    return read_rows(pd.DataFrame({"a": pd.Series(values, dtype=float)}), ONE, "numbers")


def test_one_column():
    rng = np.random.default_rng(12)
    train, real, other = (numbers(rng.integers(10**6, size=200)) for _ in range(3))
    assert all(attack.caught for attack in membership(train, train, real))
    assert not any(attack.caught for attack in membership(other, train, real))


@pytest.mark.parametrize("value", [None, 5], ids=["all missing", "constant"])
def test_a_table_without_information_is_guessing(value):
    rows = numbers([value] * 80)
    for attack in membership(rows, rows, rows):
        assert not attack.caught
        assert attack.auroc == 0.5
        assert attack.auroc_low < 0.5 < attack.auroc_high
        json.dumps(asdict(attack), allow_nan=False)


@pytest.mark.parametrize(("train", "real"), [(10, 10), (10, 2), (1, 2), (10, 11)])
def test_ten_rows_give_wide_figures_and_say_when_they_cannot_tell(train, real):
    found = membership(drawn_rows(10, 0), drawn_rows(train, 1), drawn_rows(real, 2))
    for attack in found:
        assert attack.auroc_high - attack.auroc_low > 0.4
        assert attack.others == (real if attack.name == "equal rows" else real - real // 2)
        assert ("this says nothing" in attack.sentence) == (real < 10)
        json.dumps(asdict(attack), allow_nan=False)


def test_a_few_dozen_copies_among_many_rows_are_caught(adult):
    train, real, other = adult
    for copies, caught in ((40, True), (0, False)):
        made = together(train.take(np.arange(copies)), other)
        found = equal_rows(*map(row_keys, (made, train, real)))
        assert found.caught == caught
        assert ("are copied" in found.sentence) == caught
        members, others = (np.isin(row_keys(rows), row_keys(made)) for rows in (train, real))
        assert found.auroc == pytest.approx(0.5 + (members.mean() - others.mean()) / 2)
        assert f"{members.sum():,} of 1,000 training rows" in found.sentence
        assert f"{others.sum():,} of 500 rows never seen" in found.sentence


def test_each_question_of_the_alarm_is_asked_at_a_third_of_its_level():
    """Members that score a little higher on the whole, and fill the top no more than others do."""
    top, rest = 1000.0 + np.arange(40), np.arange(180.0)
    found = []
    for shift in range(16, 24):
        members, others = np.append(rest + shift + 0.5, top[::2]), np.append(rest, top[1::2])
        p = mannwhitneyu(members, others, alternative="greater").pvalue
        found.append((p, judge_scores("", members, others).caught))
    missed, caught = (min(p for p, c in found if not c), max(p for p, c in found if c))
    assert 0.5 < caught / (0.001 / 3) < 1 < missed / (0.001 / 3) < 2


def test_equal_rows_are_fishers_test():
    made, own = np.arange(12, dtype=np.uint64), np.arange(12, 1000, dtype=np.uint64)
    for hits in range(13):
        train = np.concatenate([made[:hits], own[: 40 - hits]])
        expected = fisher_exact([[hits, 40 - hits], [0, 30]], alternative="greater").pvalue
        assert equal_rows(made, train, own[100:130]).caught == (expected <= ALARM)


def test_rows_that_were_not_searched_are_mentioned(monkeypatch):
    tables = [drawn_rows(100, part) for part in (1, 2, 3)]
    assert not any("searched" in attack.sentence for attack in membership(*tables))
    monkeypatch.setattr(module, "SEARCHED", 60)
    found = membership(*tables)
    assert ["Only 60 of the 100 synthetic" in attack.sentence for attack in found] == [
        *[True] * 3,
        False,
    ]


def coarse(rows: int, seed: int, kinds: int) -> Rows:
    return numbers(np.random.default_rng([13, seed]).integers(kinds, size=rows))


def test_what_a_copy_would_score_is_said_where_rows_are_alike():
    train, real, other = (coarse(400, seed, 3) for seed in range(3))
    for attack in membership(train, train, real):
        assert not attack.caught
        assert "a copy of the training rows would score above in 50.0% of pairs" in attack.sentence
        assert "not even that would be noticed" in attack.sentence
    train, real, other = (coarse(400, seed, 1000) for seed in range(3))
    told = membership(train, train, real)
    for attack, copy in zip(membership(other, train, real), told, strict=True):
        assert copy.caught
        assert "a copy" not in copy.sentence
        assert f"a copy of the training rows would score above in {copy.auroc:.1%}" in (
            attack.sentence
        )
        assert "noticed" not in attack.sentence
    rows = [drawn_rows(100, part) for part in (1, 2, 3)]
    assert not any("a copy" in attack.sentence for attack in membership(*rows))


def test_an_attacker_without_rows_is_an_error():
    with pytest.raises(DataError, match="at least two real rows"):
        membership(drawn_rows(10, 0), drawn_rows(10, 1), drawn_rows(1, 2))


def test_exchanged_tables_are_remarked():
    train, real = drawn_rows(100, 1), drawn_rows(200, 2)
    found = membership(real, train, real)
    assert not any(attack.caught for attack in found)
    assert all("exchanged" in attack.sentence for attack in found)


def test_hand_worked_scores():
    # The scale is the 5 to 95 % range of the attacker's rows, 900.
    own = numbers(range(0, 1001, 100))
    scoring = scoring_module.Scoring.of(numbers([100]), numbers([640]), own)
    scores = scoring.scores(numbers([100, 145, 190, 610, 700]))

    def log(*distances: int) -> float:
        return np.mean([np.log(d / 900 + 0.06) if d else np.log(0.001) for d in distances])

    expected = [
        log(0, 100, 100, 200, 300, 400, 500, 600) + log(45, 90, 510, 600) - 2 * log(0),
        log(40, 60, 140, 160, 240, 260, 340, 360) + log(60, 450, 495, 540) - 2 * log(30),
    ]
    assert scores["density ratio"] == pytest.approx(expected, abs=1e-4)
    assert scores["nearest row"] == pytest.approx([0, -30 / 900], abs=1e-6)
    # As near as the synthetic row are 1 and 0 of the attacker's 11; as near as his nearest three
    # are 1, 3 and 3, then 1, 2 and 3. One is added to every count.
    surprise = np.log(12) - np.log([2, 1])
    usual = np.log(12) - np.array([np.log([2, 4, 4]).mean(), np.log([2, 3, 4]).mean()])
    assert scores["matching cells"] == pytest.approx(surprise - usual)


def test_agreement_is_surprising_where_few_share_it():
    schema = Schema(
        columns=(
            Categorical(name="c", values=tuple("pqr"), missing=True),
            Integer(name="a", lower=0, upper=9, missing=True),
        )
    )

    def rows(c, a) -> Rows:
        frame = pd.DataFrame({"c": c, "a": pd.Series(a, dtype=float)})
        return read_rows(frame, schema, "rows")

    own = rows(["p", "p", "r", None], [1, 2, None, None])
    candidates = rows(["p", "q", None], [4, 1, None]).values[None]
    # As close as p are 2 of 4, as q in place of p the 3 known; as 3 away 2, as none away 1.
    found = scoring_module.agreement(rows(["p"], [1]).values, candidates, own)
    expected = -np.log([[3 / 5 * 3 / 5, 4 / 5 * 2 / 5, 1]])
    assert found == pytest.approx(-np.sort(-expected))
    # Of the gaps, one is in the first column and two are in the second.
    found = scoring_module.agreement(rows([None], [None]).values, candidates, own)
    assert found == pytest.approx(-np.log([[2 / 5 * 3 / 5, 1, 1]]))
