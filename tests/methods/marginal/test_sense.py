"""Cells that what was released shows to be next to empty: by hand, and no others by chance."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import fedsynth as fs
from fedsynth.encoding.table import TableEncoding
from fedsynth.marginals import Domain, Evidence, JunctionTree, Measurement, Model, find_empty
from fedsynth.methods.marginal.graphical import Learned

SIGMA = 10.0


def evidence_of(table, noise=None, sigma=SIGMA):
    values = table + (0 if noise is None else noise)
    columns = [
        Measurement((0,), table.sum(axis=1), sigma),
        Measurement((1,), table.sum(axis=0), sigma),
    ]
    return Evidence([*columns, Measurement((0, 1), values, sigma)])


def test_a_cell_far_below_what_its_columns_would_put_there_is_empty():
    # 600 x 600 / 1,800 = 200 are expected; 1.5 deviations and 7 are to be half of it at most.
    table = np.array([[600.0, 0], [600, 600]])
    assert find_empty(evidence_of(table, sigma=62.1), [(0, 1)], 1_800) == []
    ((pair, mask),) = find_empty(evidence_of(table, sigma=61.9), [(0, 1)], 1_800)
    assert pair == (0, 1) and mask.tolist() == [[False, True], [False, False]]


def test_a_table_that_is_empty_but_for_a_cell_a_value_is_so_in_cells_too_small_to_tell():
    sizes = np.array([2_000.0, 1_500, 900, 300, 80])
    rng = np.random.default_rng(0)
    noise = rng.normal(0, SIGMA, (5, 5))
    ((_, mask),) = find_empty(evidence_of(np.diag(sizes), noise), [(0, 1)], sizes.sum())
    assert not mask.diagonal().any() and mask.sum() >= 18


def test_with_the_target_a_cell_must_be_emptier():
    """A tenth of what is expected, with two deviations to spare: 2 x 6.5 + 7 of 200."""
    table = np.array([[600.0, 0], [600, 600]])
    for sigma, found in ((6.6, 0), (6.4, 1)):
        assert len(find_empty(evidence_of(table, sigma=sigma), [(0, 1)], 1_800, 1)) == found


def test_a_count_that_stands_above_its_noise_is_none_of_an_empty_cell():
    # 1,000 x 1,000 / 4,000 = 250 are expected; 2 deviations are 40.
    table = np.array([[960.0, 40], [960 * 2, 1_080]])
    assert find_empty(evidence_of(table, sigma=20.0), [(0, 1)], 4_000) != []
    table[0] = 958, 42
    assert find_empty(evidence_of(table, sigma=20.0), [(0, 1)], 4_000) == []


def test_a_value_that_goes_with_one_other_has_cells_that_are_too_small_to_tell():
    """Each of the others may hold 55 by chance, half of which noise hides; all together 490."""
    table = np.outer([600.0, 3_000, 3_000], np.full(10, 0.1))
    table[0] = [600.0, *[0] * 9]
    noise = np.zeros(table.shape)
    noise[0, 1:] = [-50, 50, -40, 30, 0, 20, -20, 55, -40]
    ((_, mask),) = find_empty(evidence_of(table, noise, 15.0), [(0, 1)], table.sum())
    assert mask[0].tolist() == [False, True, False, True, True, True, True, True, False, True]
    assert not mask[1:].any()


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


def test_rows_keep_out_of_cells_that_the_model_cannot_forbid():
    """a and b go with c each, and no clique holds both; whoever has one has not the other."""
    schema = fs.Schema(columns=[fs.Boolean(name=name) for name in "cab"], target="c")
    encoding = TableEncoding.from_histogram(schema, np.full(6, 1_000.0), 1.0)
    domain = Domain((2, 2, 2))
    model = Model(JunctionTree.of(domain, [(0, 1), (0, 2)]), {}, 2_000.0)
    told = Measurement((1, 2), np.array([[0.0, 1_000], [1_000, 0]]), SIGMA)
    columns = [Measurement((k,), np.full(2, 1_000.0), SIGMA) for k in range(3)]
    learned = Learned(encoding, model, (*columns, told))
    codes, _, _ = learned.sample_codes(2_000, None, None, 0)
    # Of as many rows with a as without b within each c all would find partners.
    assert (codes[:, 1] != codes[:, 2]).mean() > 0.9
    # Few rows find partners, too, among which classes stay where they are.
    apart, untold = 0, Learned(encoding, model, tuple(columns))
    for seed in range(5):
        before, codes = (
            one.sample_codes(4, None, {False: 0.25, True: 0.75}, seed)[0]
            for one in (untold, learned)
        )
        assert codes[:, 0].tolist() == before[:, 0].tolist()
        apart += int((codes[:, 1] != codes[:, 2]).sum())
    assert apart >= 18
