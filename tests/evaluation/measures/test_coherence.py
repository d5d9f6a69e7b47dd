"""Rows that make sense: against combinations counted by hand."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from fedsynth.evaluation.measures.coherence import coherence
from fedsynth.evaluation.reading.rows import read_rows, shuffle_columns
from fedsynth.schema import Categorical, Datetime, Integer, Schema

WHO = Categorical(name="who", values=("husband", "wife", "child"), missing=True)
SEX = Categorical(name="sex", values=("man", "woman"))
LEVEL = Integer(name="level", lower=0, upper=30, missing=True)
SCHEMA = Schema(columns=(WHO, SEX))


def rows_of(schema, *counted):
    """So many rows of each kind: (count, cell, cell, ..)."""
    names = [column.name for column in schema.modelled]
    cells = [list(row) for count, *row in counted for _ in range(count)]
    return read_rows(pd.DataFrame(cells, columns=names, dtype=object), schema, "rows")


COUPLES = rows_of(
    SCHEMA,
    (300, "husband", "man"),
    (300, "wife", "woman"),
    (200, "child", "man"),
    (200, "child", "woman"),
)


def test_rows_with_a_combination_that_real_rows_lack_are_counted():
    made = rows_of(
        SCHEMA,
        (6, "husband", "man"),
        (3, "wife", "man"),
        (1, "husband", "woman"),
        (10, "child", "man"),
    )
    found = coherence(made, COUPLES, COUPLES)
    # Of 300 husbands and 500 women 150 would be both, and none is; children tell nothing.
    (pair,) = found.worst
    assert (pair.columns, pair.settled, pair.cells) == (("who", "sex"), (), 2)
    assert (found.synthetic, found.real) == (4 / 20, 0.0)
    assert (pair.example, pair.share) == (("wife", "man"), 3 / 20)
    # Each column on its own has its 150 in either of the two cells, of 1,000, give or take.
    assert found.trivial == pair.trivial == pytest.approx(0.3, abs=0.05)


def test_a_column_that_follows_from_another_is_found_where_cells_are_too_few_to_tell():
    schema = Schema(columns=(Categorical(name="school", values=tuple("abcdefgh")), LEVEL))
    rare = ((60, x, i) for i, x in enumerate("abcdefgh"))
    real = rows_of(schema, (300, "a", 0), *rare)
    made = rows_of(schema, (5, "c", 2), (4, "c", 3), (1, "b", None))
    found = coherence(made, real, real)
    (pair,) = found.worst
    assert set(pair.settled) == {"school", "level"}
    assert pair.example == ("c", "3")
    # A gap is a value: no real row lacks it.
    assert (pair.synthetic, found.real) == (5 / 10, 0.0)


def test_gaps_that_go_with_values_are_combinations_too():
    schema = Schema(columns=(WHO, LEVEL))
    real = rows_of(schema, (200, "wife", None), (200, None, 4))
    found = coherence(rows_of(schema, (1, None, None), (3, "wife", None)), real, real)
    assert (found.synthetic, found.worst[0].example) == (1 / 4, ("missing", "missing"))


@pytest.mark.parametrize(("empty", "pairs"), [(0, 1), (1, 0)])
def test_a_cell_is_nearly_empty_where_so_few_are_not_by_chance(empty, pairs):
    # 280 x 280 / 1,120 = 70 are expected. Nobody: a mean of 7, a tenth, has no such luck in 1,000.
    real = rows_of(
        SCHEMA, (empty, "wife", "man"), (280 - empty, "wife", "woman"), (280, "child", "man"),
        (560, "child", "woman"),
    )  # fmt: skip
    assert coherence(real, real, real).pairs == pairs


@pytest.mark.parametrize("rows", [10, 100, 1_000])
def test_columns_that_know_nothing_of_each_other_have_no_such_pair(rows):
    rng = np.random.default_rng(rows)
    names = [f"c{i}" for i in range(12)]
    schema = Schema(columns=[Integer(name=name, lower=0, upper=99) for name in names])
    # Few values and many, even and lopsided, and one that no two rows share.
    shapes = [rng.integers(0, 2 + 3 * i, rows) for i in range(6)]
    shapes += [rng.geometric(0.1 * i + 0.4, rows) for i in range(5)] + [np.arange(rows) % 100]
    frame = pd.DataFrame(dict(zip(names, shapes, strict=True))).clip(0, 99)
    real = read_rows(frame, schema, "real")
    found = coherence(real, real, real)
    assert (found.pairs, found.synthetic, found.tried) == (0, 0.0, 66)


def test_real_rows_break_next_to_nothing_and_their_columns_shuffled_much():
    rng = np.random.default_rng(0)
    schema = Schema(
        columns=(
            Categorical(name="kind", values=tuple("abcde")),
            Integer(name="code", lower=0, upper=100),
            Datetime(name="day", lower="2020-01-01", upper="2020-12-31"),
            Integer(name="other", lower=0, upper=1_000),
        )
    )

    def draw(rows):
        kind = rng.integers(0, 5, rows)
        day = pd.Timestamp("2020-01-01") + pd.to_timedelta(
            kind * 60 + rng.integers(0, 50, rows), "D"
        )
        odd = rng.random(rows) < 0.003
        code = np.where(odd, rng.integers(0, 100, rows), 7 * kind)
        cells = {
            "kind": np.array([*"abcde"])[kind],
            "code": code,
            "day": day,
            "other": rng.integers(0, 1_000, rows),
        }
        return read_rows(pd.DataFrame(cells), schema, "rows")

    train, real = draw(3_000), draw(3_000)
    found = coherence(shuffle_columns(train, 1), train, real)
    assert found.synthetic > 0.85 and found.trivial > 0.85
    assert found.real < 0.006
    assert {("kind", "code"), ("kind", "day")} <= {one.columns for one in found.worst}
    assert not [one for one in found.worst if "other" in one.columns]
    assert coherence(train, train, real).synthetic < 0.006


def test_rows_that_break_what_the_schema_declares_are_counted_beside():
    schema = Schema(columns=(WHO, SEX), constraints=[{"never": {"who": "child", "sex": "man"}}])
    made = rows_of(schema, (3, "child", "man"), (1, None, "man"), (4, "wife", "woman"))
    assert coherence(made, made, made).declared == 3 / 8
    assert coherence(COUPLES, COUPLES, COUPLES).declared is None
