"""Tables cut into cells, and the marginals counted in them, against pandas."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fedsynth.evaluation.measures.marginals as module
from fedsynth.evaluation.measures.marginals import marginal_errors, pair_distances, total_variations
from fedsynth.evaluation.reading.codes import Codes, encode_tables, quantile_cuts
from fedsynth.evaluation.reading.rows import shuffle_columns
from tests.evaluation.compared_people import people


def frames(codes: Codes) -> list[pd.DataFrame]:
    return [pd.DataFrame(table.T) for table in codes.tables]


def variation(first: pd.DataFrame, second: pd.DataFrame, columns: tuple[int, ...]) -> float:
    """By pandas: half the L1 distance of relative frequencies."""
    shares = [frame.groupby(list(columns)).size() / len(frame) for frame in (first, second)]
    return float(shares[0].sub(shares[1], fill_value=0).abs().sum() / 2)


def test_cells_by_hand():
    real = people(8, x=[-4, -3, -2, -1, 0, 1, 2, None], count=[0, 0, 0, 0, 0, 5, 6, 7])
    made = people(4, x=[-5, -3, 5, None], count=[0, 1, 6, 100], colour=["red", "?", "pink", None])
    codes = encode_tables([real, made], bins=2)
    # x is cut at its median -1; of count, the spike 0 is the median, and a cell of its own only
    # where several quantiles fall on it.
    assert codes.tables[0][3].tolist() == [0, 0, 0, 1, 1, 1, 1, 2]
    assert codes.tables[1][3].tolist() == [0, 0, 1, 2]
    assert codes.sizes[3] == 3
    quarters = encode_tables([real, made], bins=4)
    # Quartiles 0, 0, 5: cells below 0, 0, between 0 and 5, from 5; and the gap's.
    assert quarters.tables[0][2].tolist() == [1, 1, 1, 1, 1, 3, 3, 3]
    assert quarters.tables[1][2].tolist() == [1, 2, 3, 3]
    assert quarters.sizes[2] == 5
    # A category, one for all undeclared ones, the gap.
    assert codes.tables[1][0].tolist() == [0, 3, 3, 4]
    assert codes.sizes[0] == 5


@settings(max_examples=50, deadline=None)
@given(
    values=st.lists(st.integers(-3, 9) | st.none(), max_size=80),
    bins=st.integers(1, 25),
)
def test_cuts_rise_and_leave_no_heavy_cell_but_single_values(values, bins):
    array = np.array(values, dtype=float)
    cuts = quantile_cuts(array, bins)
    assert (np.diff(cuts) > 0).all()
    known = array[~np.isnan(array)]
    cells = np.searchsorted(cuts, known, side="right")
    for cell in np.unique(cells):
        held = known[cells == cell]
        # A cell ends at the next quantile, beside which equal values may lie.
        assert len(held) <= 2 * len(known) / bins + 1 or len(np.unique(held)) <= 2


def test_continuous_cells_have_equal_mass():
    values = np.random.default_rng(0).normal(size=2000)
    counts = np.bincount(np.searchsorted(quantile_cuts(values, 20), values, side="right"))
    assert len(counts) == 20
    assert abs(counts - 100).max() <= 1


@pytest.mark.parametrize("order", [1, 2, 3])
def test_errors_equal_those_by_pandas(order):
    real, made, other = people(400), people(300, 1, 0.2), people(350, 2)
    codes = encode_tables([real, made, other])
    real_frame, *others = frames(codes)
    sets = list(itertools.combinations(range(6), order))
    for found, frame in zip(marginal_errors(codes, real.names, order), others, strict=True):
        by_hand = [variation(real_frame, frame, chosen) for chosen in sets]
        assert found.mean == pytest.approx(np.mean(by_hand))
        assert found.worst == pytest.approx(max(by_hand))
        worst = sets[int(np.argmax(by_hand))]
        assert found.worst_columns == tuple(real.names[j] for j in worst)
        assert (found.order, found.sets) == (order, len(sets))


def test_the_map_of_pairs_equals_crosstabs():
    real, made = people(400), people(300, 1, 0.2)
    codes = encode_tables([real, made])
    (found,) = pair_distances(codes)
    first, second = frames(codes)
    for i, j in itertools.combinations_with_replacement(range(6), 2):
        if i == j:
            assert found[i, i] == pytest.approx(variation(first, second, (i,)))
            continue
        tables = [pd.crosstab(frame[i], frame[j], normalize=True) for frame in (first, second)]
        wide = [
            t.reindex(index=range(codes.sizes[i]), columns=range(codes.sizes[j]), fill_value=0)
            for t in tables
        ]
        assert found[i, j] == pytest.approx(np.abs(wide[0] - wide[1]).to_numpy().sum() / 2)
    np.testing.assert_array_equal(found, found.T)
    # A pair is never closer than its columns are.
    assert (found >= np.maximum.outer(np.diag(found), np.diag(found)) - 1e-12).all()


def test_identity_is_at_zero_and_independence_at_zero_for_single_columns_only():
    real = people(600)
    codes = encode_tables([real, real, shuffle_columns(real, 0)])
    same, alone = pair_distances(codes)
    assert same.max() == 0
    assert np.diag(alone).max() == 0
    assert alone[3, 4] > 0.3
    assert marginal_errors(codes, real.names, 3)[0].worst == 0


def test_few_and_many_cells_are_counted_alike(monkeypatch):
    codes = encode_tables([people(300), people(200, 1), people(100, 2)])
    chosen = np.array([0, 2, 3, 4])
    dense = total_variations(codes, chosen)
    monkeypatch.setattr(module, "_DENSE", 1)
    np.testing.assert_allclose(total_variations(codes, chosen), dense)
    assert min(dense) > 0


def test_the_order_of_rows_and_of_categories_changes_nothing():
    real, made = people(200), people(150, 1, 0.2)
    order = np.random.default_rng(0).permutation(150)
    (found,) = pair_distances(encode_tables([real, made]))
    (shuffled,) = pair_distances(encode_tables([real, made.take(order)]))
    np.testing.assert_allclose(found, shuffled)
    renamed = []
    for rows in (real, made):
        values = rows.values.copy()
        colour = values[:, 0]
        values[:, 0] = np.where(np.isnan(colour), np.nan, (colour + 1) % 3)
        renamed.append(type(rows)(rows.schema, values, rows.outside))
    np.testing.assert_allclose(found, pair_distances(encode_tables(renamed))[0])
