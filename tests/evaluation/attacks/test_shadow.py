"""Shadow models: copies and leaks are caught, methods that ignore their rows are not."""

from __future__ import annotations

import json
from dataclasses import asdict

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from fedsynth.errors import ConfigError, DataError
from fedsynth.evaluation.attacks import shadow
from fedsynth.evaluation.attacks.reading import Reading
from fedsynth.evaluation.attacks.shadow import shadow_attack
from fedsynth.evaluation.reading.rows import read_rows
from fedsynth.schema import Categorical, Integer, Schema
from tests.evaluation.attacked_people import COLOURS, SCHEMA, people


def copy(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    return rows


def fresh(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Ignores the rows but for their number."""
    return people(len(rows), 10**6 + seed)


def partly(rows: pd.DataFrame, seed: int, share: float = 0.3) -> pd.DataFrame:
    """Copies a share of the rows at random."""
    copied = np.random.default_rng(seed).random(len(rows)) < share
    return fresh(rows, seed).where(pd.Series(~copied), rows)


def shuffled(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
    """Copies no row, but every one-way marginal."""
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.permutation(rows[name].to_numpy()) for name in rows})


@pytest.fixture
def few_redraws(monkeypatch):
    """For what no redraw comes near: the alarm's level is not the matter."""
    monkeypatch.setattr(shadow, "_REDRAWS", 300)


@pytest.mark.parametrize("rows", [24, 200])
def test_a_copy_is_told_perfectly(few_redraws, rows):
    found = shadow_attack(copy, people(rows, 1), SCHEMA)
    assert found.caught
    assert found.auroc == pytest.approx(1, abs=0.001)
    assert 0.8 < found.auroc_low <= found.auroc <= found.auroc_high == 1
    assert found.tpr[1].value > 0.99
    assert found.members == found.others == 8 * min(rows, 100)


def test_a_copy_of_real_rows_is_caught_and_other_real_rows_are_not(adult_table, few_redraws):
    frame, schema = adult_table
    frame = frame.sample(5000, random_state=2).reset_index(drop=True)
    pool, rest = frame[:200], frame[200:]

    def others(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        return rest.sample(len(rows), random_state=seed)

    settings = {"shadows": 8, "targets": 50}
    assert shadow_attack(copy, pool, schema, **settings).auroc > 0.99
    found = shadow_attack(others, pool, schema, **settings)
    assert not found.caught
    assert found.auroc_low < 0.5 < found.auroc_high


@pytest.mark.parametrize("method", [partly, shuffled])
def test_leaks_without_a_full_copy_are_caught(few_redraws, method):
    found = shadow_attack(method, people(60, 3), SCHEMA)
    assert found.caught
    assert 0.6 < found.auroc < 0.98
    assert found.auroc_low > 0.5


def test_a_method_that_ignores_its_rows_is_as_rarely_caught_as_promised():
    everybody = people(20_000, 10**6)

    def others(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        return everybody.take(np.random.default_rng(seed).integers(20_000, size=len(rows)))

    found = [
        shadow_attack(others, people(30, s), SCHEMA, shadows=6, targets=15, seed=s)
        for s in range(15)
    ]
    # At 0.001, the same in every run: one alarm or more has chance 0.02.
    assert not any(attack.caught for attack in found)
    assert np.mean([attack.auroc for attack in found]) == pytest.approx(0.5, abs=0.04)
    covered = np.mean([attack.auroc_low <= 0.5 <= attack.auroc_high for attack in found])
    assert covered > 0.92


def test_the_alarm_is_exact_however_trials_depend(monkeypatch):
    # Intervals are not looked at.
    monkeypatch.setattr(shadow, "_RESAMPLES", 2)
    # Statistics that all targets of a release share, and all releases of a target.
    caught = 0
    for seed in range(80):
        rng = np.random.default_rng(seed)
        inside = shadow._draw_halves(1, 4, 20, rng)[0]
        read = rng.normal(size=(8, 1, 2)) + rng.normal(size=(1, 10, 2)) ** 3
        read = read + 0.1 * rng.normal(size=(8, 10, 2))
        caught += shadow._judge(read, inside[:, :10], 20, rng).caught
    assert caught <= 1


def test_intervals_cover_the_mean_of_repetitions(monkeypatch):
    # The alarm is not looked at.
    monkeypatch.setattr(shadow, "_REDRAWS", 1)
    monkeypatch.setattr(shadow, "_RESAMPLES", 200)
    found = [
        shadow_attack(partly, people(60, 100 + s), SCHEMA, shadows=8, targets=30, seed=s)
        for s in range(10)
    ]
    mean = np.mean([attack.auroc for attack in found])
    assert 0.55 < mean < 0.75
    assert sum(a.auroc_low <= mean <= a.auroc_high for a in found) >= 8
    assert np.mean([a.auroc_high - a.auroc_low for a in found]) < 0.35


def test_the_ratio_is_a_gaussian_log_likelihood_ratio():
    # Two targets of like moments, so that nothing is drawn anywhere.
    known = np.array([3.0, 1, 2, -1, -3, -2])[None, :, None] * np.ones((1, 1, 2))
    signs = np.array([1.0, 1, 1, -1, -1, -1])[None, :, None] * np.ones((1, 1, 2))
    fresh_values = np.array([[[0.5, -1.0], [2.0, 0.0]]])
    expected = norm(2, 1).logpdf(fresh_values) - norm(-2, 1).logpdf(fresh_values)
    assert shadow._ratio(known, signs, fresh_values) == pytest.approx(expected, abs=1e-4)


def test_effects_that_chance_explains_are_drawn_together():
    rng = np.random.default_rng(2)
    signs = np.where(shadow._draw_halves(1, 4, 300, rng)[0], 1.0, -1.0)[None]
    noise, effects = rng.normal(size=(1, 8, 300)), rng.choice([0, 6], 300)
    noise -= noise.mean(axis=1, keepdims=True)
    same = shadow._ratio(noise, signs, noise[:, :2])
    assert np.abs(same).mean() < 0.4
    # Effects of a few targets stay.
    strong = noise + signs * effects
    strong -= strong.mean(axis=1, keepdims=True)
    ratio = shadow._ratio(strong, signs, np.full((1, 2, 300), 4.0))
    assert ratio[0, 0, effects > 0].min() > 2 * np.abs(ratio[0, 0, effects == 0]).mean()


def test_halves_are_complementary_and_every_shadow_differs():
    inside = shadow._draw_halves(3, 4, 10, np.random.default_rng(1))
    assert inside.shape == (3, 8, 10)
    assert (inside.sum(axis=2) == 5).all()
    assert (inside[:, ::2] ^ inside[:, 1::2]).all()
    assert len(np.unique(inside.reshape(24, 10), axis=0)) > 15


def test_members_are_the_rows_that_a_shadow_was_trained_on(monkeypatch):
    trained, targets, inside = [], [], []
    of, judged = Reading.of, shadow._judge

    def make(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        trained.append(set(rows.y))
        return rows

    def reading(rows, chosen, rng):
        targets.extend(chosen.values[:, 3])
        return of(rows, chosen, rng)

    def judging(read, members, *rest):
        inside.append(members)
        return judged(read, members, *rest)

    monkeypatch.setattr(shadow.Reading, "of", reading)
    monkeypatch.setattr(shadow, "_judge", judging)
    pool = people(30, 4).assign(y=np.arange(30) / 10)
    shadow_attack(make, pool, SCHEMA, shadows=4, targets=12)
    assert len(targets) == 12
    for members, values in zip(inside[0], trained, strict=True):
        assert list(members) == [y in values for y in targets]


def test_a_method_that_copies_rare_rows_alone_is_caught():
    def rare(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        return fresh(rows, seed).where(rows.y < 8.5, rows)

    pool = people(60, 9).assign(
        y=lambda frame: frame.y.where(frame.id % 12 > 0, 9 - frame.id / 200)
    )
    found = shadow_attack(rare, pool, SCHEMA, shadows=12)
    assert found.caught
    assert found.auroc < 0.58


def test_shadows_get_halves_of_the_pool_and_progress_is_told():
    pool, sizes, told = people(31, 4), [], []

    def make(rows: pd.DataFrame, seed: int) -> pd.DataFrame:
        assert list(rows.columns) == list(pool.columns)
        assert set(rows.id) <= set(pool.id)
        assert list(rows.index) == list(range(15))
        sizes.append((len(rows), seed))
        return rows

    shadow_attack(make, pool, SCHEMA, shadows=4, progress=lambda *step: told.append(step))
    assert [size for size, _ in sizes] == [15] * 4
    assert len({seed for _, seed in sizes}) == 4
    assert told == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4)]


def test_the_order_of_the_rows_does_not_matter():
    pool = people(40, 5)
    settings = {"shadows": 4, "targets": 10}
    plain = shadow_attack(partly, pool, SCHEMA, **settings)
    other = shadow_attack(partly, pool.sample(frac=1, random_state=1), SCHEMA, **settings)
    assert plain == other
    assert plain != shadow_attack(partly, pool, SCHEMA, seed=1, **settings)


def test_names_of_categories_do_not_matter():
    names = dict(zip(COLOURS, ("zinc", "opal", "alum"), strict=True))
    colour = Categorical(name="colour", values=tuple(names.values()), missing=True)
    schema = Schema(columns=tuple(colour if c.name == "colour" else c for c in SCHEMA.columns))
    pool = people(40, 6)
    renamed = pool.assign(colour=pool.colour.map(names))
    settings = {"shadows": 4, "targets": 10}
    assert shadow_attack(copy, pool, SCHEMA, **settings) == shadow_attack(
        copy, renamed, schema, **settings
    )


ONE = Schema(columns=(Integer(name="a", lower=0, upper=10**6, missing=True),))


@pytest.mark.parametrize(
    "values",
    [[None] * 10, [5] * 10, [1, None] * 5],
    ids=["all missing", "constant", "gaps"],
)
def test_degenerate_tables_give_finite_figures(values):
    found = shadow_attack(copy, pd.DataFrame({"a": pd.Series(values, dtype=float)}), ONE, shadows=4)
    assert found.auroc == pytest.approx(0.5, abs=0.3)
    assert found.auroc_low < found.auroc_high
    assert not found.caught
    json.dumps(asdict(found), allow_nan=False)


def test_one_column_copied(few_redraws):
    values = np.random.default_rng(7).choice(10**6, 60, replace=False)
    assert shadow_attack(copy, pd.DataFrame({"a": values}), ONE).auroc > 0.99


def test_ten_rows_are_caught_from_many_trials(few_redraws):
    found = shadow_attack(copy, people(10, 8), SCHEMA)
    assert found.members == 80
    assert found.caught
    json.dumps(asdict(found), allow_nan=False)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shadows": 5}, "even number of shadows"),
        ({"shadows": 2}, "even number of shadows"),
        ({"targets": 0}, "targets must be a whole number of at least 1"),
    ],
)
def test_settings_that_cannot_be_are_errors(settings, words):
    with pytest.raises(ConfigError, match=words):
        shadow_attack(copy, people(40, 5), SCHEMA, **settings)


def test_a_pool_that_is_too_small_and_rows_that_do_not_fit_are_errors():
    with pytest.raises(DataError, match="at least 4 rows and has 3"):
        shadow_attack(copy, people(3, 5), SCHEMA)
    with pytest.raises(DataError, match="synthetic rows of shadow 1"):
        shadow_attack(lambda rows, seed: rows.drop(columns="x"), people(9, 5), SCHEMA)


def test_statistics_are_hand_worked():
    schema = Schema(
        columns=(
            Categorical(name="c", values=("p", "q")),
            Categorical(name="d", values=("p", "q"), missing=True),
        )
    )
    pool = read_rows(pd.DataFrame({"c": list("ppqq"), "d": ["p", "q", "q", None]}), schema, "pool")
    reading = Reading.of(pool, pool, np.random.default_rng(0))
    release = pd.DataFrame({"c": list("ppqp"), "d": ["p", "q", "q", "q"]})
    read = reading.statistics(read_rows(release, schema, "release"))
    # Rows (p, p), (p, q), (q, q), (q, gap): shares of their cells, then of their pairs.
    single = [3 / 4 * 1 / 4, 3 / 4 * 3 / 4, 1 / 4 * 3 / 4, 1 / 4 * 1 / 8]
    assert read[:, 4] == pytest.approx(np.log(single))
    assert read[:, 5] == pytest.approx(np.log([1 / 4, 2 / 4, 1 / 4, 1 / 8]))
    assert (read[:3, 0] > 5).all()
    assert read[3, 0] < 1
    # (p, p) is met by its own: p in 3 of 5 and p in 2 of 5 (one added to each count).
    assert read[0, 2] == pytest.approx(-np.log(3 / 5 * 2 / 5))


def test_a_gap_is_no_large_number():
    schema = Schema(columns=(Integer(name="a", lower=0, upper=99, missing=True),))

    def rows(*values: float | None):
        return read_rows(pd.DataFrame({"a": pd.Series(values, dtype=float)}), schema, "rows")

    pool = rows(*range(40), None)
    read = Reading.of(pool, rows(39, None), np.random.default_rng(0)).statistics(rows(38, 39, None))
    assert read[:, 4] == pytest.approx(np.log([2 / 3, 1 / 3]))
