"""The histogram's shape follows from the schema, and a record moves it by a fixed amount."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fedsynth.data.tables import Conformed, conform
from fedsynth.encoding.histogram import HistogramLayout
from fedsynth.errors import DataError
from fedsynth.schema import Boolean, Categorical, Continuous, Datetime, Identifier, Integer, Schema
from tests.encoding.encoding_strategies import frames, schemas


@given(schemas(), st.data())
@settings(max_examples=10, deadline=None)
def test_every_record_touches_each_of_its_levels_exactly_once(schema, data):
    layout = HistogramLayout.of(schema)
    positions = layout.positions(conform(data.draw(frames(schema)), schema))
    assert positions.shape[1] == layout.per_record
    assert (positions >= 0).all() and (positions < layout.dim).all()
    assert (np.diff(np.sort(positions, axis=1), axis=1) > 0).all()
    slices = layout.slices
    for column in layout.columns:
        part = slices[column.name]
        inside = (positions >= part.start) & (positions < part.stop)
        assert (inside.sum(axis=1) == len(column.levels)).all()


@given(schemas())
@settings(max_examples=15, deadline=None)
def test_the_shape_is_fixed_by_the_schema_alone(schema):
    layout, again = (
        HistogramLayout.of(schema),
        HistogramLayout.of(Schema.from_dict(schema.to_dict())),
    )
    assert (layout.dim, layout.per_record, layout.slices) == (
        again.dim,
        again.per_record,
        again.slices,
    )
    assert sum(part.stop - part.start for part in layout.slices.values()) == layout.dim


def test_counts_of_a_small_table_by_hand():
    schema = Schema(
        columns=(
            Identifier(name="id"),
            Categorical(name="c", values=("a", "b"), missing=True),
            Integer(name="n", lower=0, upper=33, spikes=(7,), missing=True),
        )
    )
    frame = pd.DataFrame({"c": ["b", None, "b", "a", "b"], "n": [0, 33, None, 7, 20]})
    layout = HistogramLayout.of(schema)
    counts = np.bincount(layout.positions(conform(frame, schema)).ravel(), minlength=layout.dim)
    # Counted apart at both levels: the bounds (0 is one of them), the declared 7, and "missing".
    apart = [1, 1, 1, 1]
    fine = [0] * 34
    fine[20] = 1
    assert layout.per_record == 3
    assert counts.tolist() == [1, 3, 1, 0, 1, 0, *apart, *fine, *apart]


def test_bounds_and_zero_are_counted_apart_where_the_column_has_a_tree():
    schema = Schema(
        columns=(
            Continuous(name="wide", lower=-5e11, upper=5e11, decimals=3),
            Integer(name="narrow", lower=1, upper=5),
            Datetime(name="t", lower="2000-01-01", upper="2030-01-01", resolution="second"),
        )
    )
    wide, narrow, moment = HistogramLayout.of(schema).columns
    assert wide.grid.values(wide.spikes).tolist() == [-5e11, 0, 5e11]
    assert narrow.spikes.size == 0
    assert moment.grid.values(moment.spikes).tolist() == [0, moment.grid.upper]
    assert not wide.alone.any()


def test_declared_edges_need_no_tree():
    schema = Schema(
        columns=(
            Integer(name="n", lower=0, upper=10**6, edges=(0, 10, 1000, 10**6), spikes=(10,)),
            Boolean(name="b"),
        )
    )
    layout = HistogramLayout.of(schema)
    assert (layout.dim, layout.per_record) == (3 + 1 + 2, 2)
    frame = pd.DataFrame({"n": [9, 10, 11, 999, 1000, 10**6], "b": [True] * 6})
    assert layout.positions(conform(frame, schema))[:, 0].tolist() == [0, 3, 1, 1, 2, 2]


def test_five_thousand_categories_and_a_hundred_wide_columns_stay_small():
    many = Categorical(name="c", values=tuple(f"v{i}" for i in range(5000)))
    wide = tuple(Integer(name=f"n{i}", lower=0, upper=4095) for i in range(178))
    layout = HistogramLayout.of(Schema(columns=(many, *wide)))
    assert layout.dim == 5000 + 178 * (16 + 256 + 4096 + 3 * 2)
    assert layout.per_record == 1 + 178 * 3


def test_an_undeclared_missing_value_is_refused():
    layout = HistogramLayout.of(Schema(columns=(Integer(name="n", lower=0, upper=9),)))
    with pytest.raises(DataError, match=r"'n'.*missing"):
        layout.positions(Conformed({"n": np.array([np.nan])}, {"n": 0}, 1))
