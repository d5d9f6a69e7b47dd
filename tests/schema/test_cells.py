"""A cell's text is the same, whether it is found alone or for all that are equal."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fedsynth.schema.cells import texts_of
from fedsynth.schema.columns import text_of

CELLS = st.sampled_from([True, False, 1, 0, 1.0, 0.5, "1", " 1 ", "True", "x", None])


@given(st.lists(CELLS, max_size=12))
def test_texts_of_mixed_cells_are_each_ones_own(cells):
    found = texts_of(pd.Series(cells, dtype=object))
    assert [None if pd.isna(text) else text for text in found] == [
        None if cell is None else text_of(cell) for cell in cells
    ]


@pytest.mark.parametrize("dtype", ["int64", "float64", "bool", "Int64", "category", "object"])
def test_texts_of_a_column_of_one_type_keep_their_places(dtype):
    cells = pd.Series([1, 0, 1, 1], index=[3, 1, 2, 0], name="n").astype(dtype)
    found = texts_of(cells)
    assert list(found.index) == [3, 1, 2, 0] and found.name == "n"
    assert list(found) == [text_of(cell) for cell in cells]
