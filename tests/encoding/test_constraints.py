"""Combinations of codes that constraints exclude, and codes that part where constraints do."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from fedsynth.data.tables import conform
from fedsynth.encoding.constraints import is_impossible, structural_zeros
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ConfigError, SchemaError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Integer, Schema
from fedsynth.schema.conditions import condition_on
from tests.encoding.encoding_strategies import columns as any_column
from tests.encoding.encoding_strategies import frames

AGE = Integer(name="age", lower=0, upper=90, missing=True)
SEX = Categorical(name="sex", values=("f", "m"))
ROLE = Categorical(name="role", values=("husband", "wife", "child", "cousin", "ward"))


def encoding_of(schema, counts=None, sigma=0.0, **options):
    dim = HistogramLayout.of(schema).dim
    noisy = np.full(dim, 50.0) if counts is None else counts
    return TableEncoding.from_histogram(schema, noisy, sigma, **options)


def noisy_encoding(schema, seed, sigma=3.0):
    rng = np.random.default_rng(seed)
    dim = HistogramLayout.of(schema).dim
    counts = rng.exponential(20, dim) * (rng.random(dim) < 0.5)
    return encoding_of(schema, counts + rng.normal(0, sigma, dim), sigma)


def draw_values(encoding, codes, seed=0):
    """Values of codes [n, d] drawn without regard to any constraint."""
    plain = TableEncoding(
        Schema(columns=encoding.schema.columns),
        encoding.bins,
        encoding.frequencies,
        encoding.records,
    )
    return conform(plain.decode(codes, np.random.default_rng(seed)), plain.schema).columns


def test_a_forbidden_combination_is_one_impossible_cell():
    schema = Schema(
        columns=(SEX, AGE, ROLE), constraints=({"never": {"role": "husband", "sex": "f"}},)
    )
    ((clique, mask),) = structural_zeros(encoding_of(schema))
    assert clique == (0, 2)
    assert mask.shape == (2, 5) and mask.sum() == 1 and mask[0, 0]


def test_a_single_column_can_be_forbidden_a_value_or_to_be_missing():
    constraints = ({"never": {"role": ["ward", "cousin"]}}, {"never": {"age": None}})
    encoding = encoding_of(Schema(columns=(AGE, ROLE), constraints=constraints))
    (first, roles), (second, ages) = structural_zeros(encoding)
    assert (first, second) == ((1,), (0,))
    assert roles.tolist() == [False, False, False, True, True]
    assert ages.tolist() == [False] * (encoding.sizes[0] - 1) + [True]


def test_columns_in_order_exclude_bins_that_lie_above():
    schema = Schema(
        columns=(
            Integer(name="end", lower=0, upper=30, edges=(0, 10, 20, 30)),
            Integer(name="start", lower=0, upper=30, edges=(0, 10, 20, 30), missing=True),
        ),
        constraints=({"ordered": ["start", "end"]},),
    )
    ((clique, mask),) = structural_zeros(TableEncoding.from_edges(schema))
    assert clique == (0, 1)
    # Rows: end in [0, 10), [10, 20), [20, 30]; columns: start in the same, or missing.
    assert mask.astype(int).tolist() == [[0, 1, 1, 0], [0, 0, 1, 0], [0, 0, 0, 0]]


def test_dates_in_order_are_compared_by_the_calendar():
    schema = Schema(
        columns=(
            Datetime(name="a", lower="2020-01-01", upper="2020-01-02"),
            Datetime(name="b", lower="2019-12-31", upper="2020-01-03"),
        ),
        constraints=({"ordered": ["a", "b"]},),
    )
    encoding = encoding_of(schema)
    assert encoding.sizes == (2, 4)
    ((_, mask),) = structural_zeros(encoding)
    assert mask.astype(int).tolist() == [[1, 0, 0, 0], [1, 1, 0, 0]]


def test_of_several_columns_in_order_each_neighbouring_pair_has_a_table():
    names = ["c", "a", "b"]
    made = tuple(Integer(name=name, lower=0, upper=3, edges=(0, 1, 2, 3)) for name in "abc")
    schema = Schema(columns=made, constraints=({"ordered": names},))
    tables = structural_zeros(TableEncoding.from_edges(schema))
    assert [clique for clique, _ in tables] == [(0, 2), (0, 1)]
    (_, first), (_, second) = tables
    # Bins 0, 1 and 2 to 3: c <= a has a in rows, a <= b has a in rows, too.
    assert first.tolist() == np.triu(np.ones((3, 3), bool), 1).tolist()
    assert second.tolist() == np.tril(np.ones((3, 3), bool), -1).tolist()


def test_a_table_too_large_for_memory_is_refused_with_its_size():
    wide = tuple(
        Categorical(name=name, values=tuple(f"{name}{i}" for i in range(2049))) for name in "ab"
    )
    schema = Schema(columns=wide, constraints=({"never": {"a": "a0", "b": "b0"}},))
    encoding = encoding_of(schema)
    with pytest.raises(ConfigError, match=r"constraint 1.*4,198,401"):
        structural_zeros(encoding)
    codes = np.array([[0, 0], [0, 1], [1, 0]])
    assert is_impossible(encoding, codes).tolist() == [True, False, False]


@st.composite
def constrained_schemas(draw):
    columns = tuple(draw(any_column(f"c{k}")) for k in range(draw(st.integers(1, 3))))
    constraints = []
    for _ in range(draw(st.integers(1, 2))):
        chosen = draw(st.lists(st.sampled_from(columns), min_size=1, unique_by=lambda c: c.name))
        constraints.append({"never": {c.name: draw(conditions(c)) for c in chosen}})
    numbers = [c.name for c in columns if isinstance(c, Integer | Continuous)]
    if len(numbers) > 1 and draw(st.booleans()):
        constraints.append({"ordered": numbers})
    try:
        return Schema(columns=columns, constraints=constraints)
    except SchemaError:
        assume(False)


def conditions(column):
    if isinstance(column, Categorical | Boolean):
        return st.lists(st.sampled_from(column.categories), min_size=1)
    if isinstance(column, Integer | Continuous):
        middle = (column.lower + column.upper) // 2
        ranges = st.sampled_from(
            ({"to": middle}, {"from": middle}, {"from": middle, "to": column.upper})
        )
        return ranges | st.lists(st.integers(column.lower, column.upper), min_size=1, max_size=5)
    return st.just({"from": "2020-02-28", "to": "2020-02-28"})


@given(constrained_schemas(), st.data(), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_no_row_that_meets_the_constraints_has_impossible_codes(schema, data, seed):
    encoding = noisy_encoding(schema, seed)
    conformed = conform(data.draw(frames(schema)), schema)
    codes = encoding.encode(conformed)
    assert (is_impossible(encoding, codes) <= schema.broken(conformed.columns)).all()


@given(constrained_schemas(), st.integers(0, 2**32 - 1))
@settings(max_examples=10, deadline=None)
def test_rows_of_other_codes_never_break_a_forbidden_combination(schema, seed):
    never = tuple(c for c in schema.constraints if hasattr(c, "never"))
    only = schema.model_copy(update={"constraints": never})
    encoding = noisy_encoding(only, seed)
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, 100) for size in encoding.sizes], axis=1)
    values = draw_values(encoding, codes, seed)
    assert (is_impossible(encoding, codes) == only.broken(values)).all()


@given(constrained_schemas(), st.integers(0, 2**32 - 1))
@settings(max_examples=8, deadline=None)
def test_tables_of_combinations_agree_with_rows(schema, seed):
    encoding = noisy_encoding(schema, seed)
    rng = np.random.default_rng(seed)
    codes = np.stack([rng.integers(0, size, 200) for size in encoding.sizes], axis=1)
    covered = np.zeros(len(codes), bool)
    for clique, mask in structural_zeros(encoding):
        assert list(clique) == sorted(set(clique))
        assert mask.shape == tuple(encoding.sizes[k] for k in clique) and mask.dtype == bool
        covered |= mask[tuple(codes[:, k] for k in clique)]
    assert (covered == is_impossible(encoding, codes)).all()


def test_a_bin_ends_where_a_constraint_begins_and_no_mass_is_lost():
    schema = Schema(columns=(AGE, SEX))
    counts = np.random.default_rng(0).poisson(40, HistogramLayout.of(schema).dim).astype(float)
    young = {"never": {"age": {"to": 15}, "sex": "m"}}
    parted = Schema(columns=(AGE, SEX), constraints=(young, {"never": {"age": [33, 77]}}))
    without = encoding_of(schema, counts, bins=5)
    encoding = encoding_of(parted, counts, bins=5)
    ages = pd.DataFrame({"age": np.arange(91), "sex": "f"})
    codes = encoding.encode(conform(ages, parted))[:, 0]
    sides = [(age <= 15, age in (33, 77)) for age in range(91)]
    for a, b in itertools.combinations(range(91), 2):
        assert codes[a] != codes[b] or sides[a] == sides[b]
    coarse = without.encode(conform(ages, schema))[:, 0]
    for code in range(without.sizes[0] - 1):
        inner = np.unique(codes[coarse == code])
        held = encoding.frequencies[0][inner].sum()
        assert held == pytest.approx(without.frequencies[0][code])
    assert encoding.frequencies[0][-1] == without.frequencies[0][-1]
    # 33 and 77 are one side of one condition; if they were in one bin, they are together.
    assert (codes[33] == codes[77]) == (coarse[33] == coarse[77])


def test_a_parted_bin_shares_its_mass_by_its_density():
    column = Integer(name="n", lower=0, upper=9, edges=(0, 9))
    schema = Schema(columns=(column,), constraints=({"never": {"n": {"from": 3, "to": 4}}},))
    encoding = encoding_of(schema, np.array([100.0]))
    assert encoding.labels("n") == ["0 to 9", "3 to 4"]
    assert encoding.frequencies[0] == pytest.approx([0.8, 0.2])
    public = TableEncoding.from_edges(schema)
    assert public.labels("n") == ["0 to 9", "3 to 4"]
    assert public.frequencies[0].tolist() == [0.5, 0.5]


def test_rare_categories_on_different_sides_of_a_constraint_do_not_share_a_code():
    schema = Schema(
        columns=(ROLE, SEX), constraints=({"never": {"role": ["child", "ward"], "sex": "m"}},)
    )
    encoding = encoding_of(schema, np.array([100.0, 1, 1, 1, 1, 60, 44]), sigma=2.0)
    codes = encoding.encode(conform(pd.DataFrame({"role": list(ROLE.values), "sex": "f"}), schema))[
        :, 0
    ]
    assert codes.tolist() == [0, 1, 2, 1, 2]
    shares = encoding.likelihood("role", condition_on(ROLE, ["child", "ward"]))
    assert set(shares.tolist()) == {0.0, 1.0}
    ((_, mask),) = structural_zeros(encoding)
    assert mask[codes[2], 1] and mask.sum() == 1
