"""Cells that what was released shows to be next to empty: by hand, and no others by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.marginals import Evidence, Measurement
from fedsynth.methods.marginal.sense import find_empty

SIGMA = 10.0


def evidence_of(table, noise=None, sigma=SIGMA):
    values = table + (0 if noise is None else noise)
    columns = [
        Measurement((0,), table.sum(axis=1), sigma),
        Measurement((1,), table.sum(axis=0), sigma),
    ]
    return Evidence([*columns, Measurement((0, 1), values, sigma)])


def test_a_cell_far_below_what_its_columns_would_put_there_is_empty():
    # 600 x 600 / 1,800 = 200 are expected; two deviations and 7 are to be a tenth of it at most.
    table = np.array([[600.0, 0], [600, 600]])
    assert find_empty(evidence_of(table, sigma=6.6), [(0, 1)], 1_800) == []
    ((pair, mask),) = find_empty(evidence_of(table, sigma=6.4), [(0, 1)], 1_800)
    assert pair == (0, 1) and mask.tolist() == [[False, True], [False, False]]


def test_a_table_that_is_empty_but_for_a_cell_a_value_is_so_in_cells_too_small_to_tell():
    sizes = np.array([2_000.0, 1_500, 900, 300, 80])
    rng = np.random.default_rng(0)
    noise = rng.normal(0, SIGMA, (5, 5))
    ((_, mask),) = find_empty(evidence_of(np.diag(sizes), noise), [(0, 1)], sizes.sum())
    assert not mask.diagonal().any() and mask.sum() >= 18


@pytest.mark.parametrize("sigma", [0.0, SIGMA])
def test_no_cell_is_empty_where_columns_are_independent(sigma):
    rng = np.random.default_rng(1)
    for _ in range(50):
        table = np.outer(rng.dirichlet(np.ones(6)), rng.dirichlet(np.ones(4))) * 5_000
        noise = rng.normal(0, 1, table.shape) * sigma
        assert find_empty(evidence_of(table, noise, sigma), [(0, 1)], 5_000) == []


def test_without_noise_no_cell_that_holds_anybody_is_empty():
    table = np.array([[900.0, 1], [0, 900]])
    ((_, mask),) = find_empty(evidence_of(table, sigma=0.0), [(0, 1)], 1_801)
    assert mask.tolist() == [[False, False], [True, False]]


def test_pairs_that_nobody_measured_stay_as_they_are():
    columns = Evidence([Measurement((0,), np.ones(2), 1.0), Measurement((1,), np.ones(2), 1.0)])
    assert find_empty(columns, [(0, 1)], 2.0) == []


def test_rows_never_hold_what_counts_show_next_to_nobody_in_and_it_is_told():
    values = list("abcde")
    schema = fs.Schema(
        columns=[fs.Categorical(name=name, values=values) for name in ("code", "name", "other")]
    )
    rng = np.random.default_rng(3)
    codes = rng.choice(values, 4_000, p=[0.4, 0.3, 0.15, 0.1, 0.05])
    table = pd.DataFrame({"code": codes, "name": codes, "other": rng.choice(values, 4_000)})
    synth = fs.AIM(schema).fit(table, fs.Budget(epsilon=1.0, delta=1e-5, trust="central"))
    rows = synth.sample(4_000, seed=0)
    assert (rows["code"].astype(str) == rows["name"].astype(str)).all()
    assert any("20 of code with name" in remark for remark in synth.remarks)
    shares = rows["code"].value_counts(normalize=True)
    assert shares["a"] == pytest.approx((codes == "a").mean(), abs=0.04)
