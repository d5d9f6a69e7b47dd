from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from torch.nn import functional

from fedsynth.models import likelihood

sizes_strategy = st.lists(st.integers(1, 6), min_size=1, max_size=8).map(tuple)


def codes_for(sizes, rows, generator):
    return torch.stack([torch.randint(0, s, (rows,), generator=generator) for s in sizes], dim=1)


@settings(deadline=None)
@given(sizes=sizes_strategy, seed=st.integers(0, 100))
def test_one_hot_cells_are_each_column_s_own_side_by_side(sizes, seed):
    codes = codes_for(sizes, 4, torch.Generator().manual_seed(seed))
    expected = [functional.one_hot(codes[:, j], size) for j, size in enumerate(sizes)]
    assert torch.equal(likelihood.one_hot(codes.int(), sizes), torch.cat(expected, dim=1).float())


def test_a_label_that_is_no_class_is_a_row_of_zeros():
    rows = likelihood.one_hot_labels(torch.tensor([1, -1, 3]), 3)
    assert rows.tolist() == [[0, 1, 0], [0, 0, 0], [0, 0, 0]]


@settings(deadline=None)
@given(sizes=sizes_strategy, seed=st.integers(0, 100))
def test_a_table_s_loss_is_the_sum_of_its_columns_cross_entropies(sizes, seed):
    generator = torch.Generator().manual_seed(seed)
    codes = codes_for(sizes, 5, generator)
    logits = 3 * torch.randn(5, sum(sizes), generator=generator)
    parts = torch.split(logits, sizes, dim=1)
    expected = sum(
        functional.cross_entropy(part, codes[:, j], reduction="none")
        for j, part in enumerate(parts)
    )
    losses = likelihood.table_loss(logits, likelihood.one_hot(codes, sizes), sizes)
    torch.testing.assert_close(losses, expected)


def test_an_image_s_loss_is_the_bernoulli_log_likelihood():
    logits = torch.tensor([[0.0, 2.0]])
    expected = math.log(2) - 0.25 * math.log(1 / (1 + math.exp(-2)))
    expected -= 0.75 * math.log(1 - 1 / (1 + math.exp(-2)))
    assert likelihood.image_loss(logits, torch.tensor([[1.0, 0.25]])).item() == pytest.approx(
        expected, rel=1e-6
    )


@settings(deadline=None)
@given(seed=st.integers(0, 100), latent=st.integers(1, 5))
def test_kl_is_torch_s_closed_form(seed, latent):
    generator = torch.Generator().manual_seed(seed)
    mean, log_variance = torch.randn(2, 3, latent, generator=generator)
    posterior = torch.distributions.Normal(mean, (0.5 * log_variance).exp())
    prior = torch.distributions.Normal(torch.zeros(latent), torch.ones(latent))
    expected = torch.distributions.kl_divergence(posterior, prior).sum(1)
    torch.testing.assert_close(likelihood.gaussian_kl(mean, log_variance), expected)


def test_kl_is_zero_at_the_prior_and_half_the_squared_distance_from_it():
    mean = torch.tensor([[0.0, 0.0], [3.0, 4.0]])
    assert likelihood.gaussian_kl(mean, torch.zeros(2, 2)).tolist() == [0.0, 12.5]


@settings(max_examples=5, deadline=None)
@given(seed=st.integers(0, 2**31))
def test_codes_are_drawn_with_their_softmax_probabilities(seed):
    # A chi-square test on each column: false alarm below 1e-8 a column.
    sizes, rows = (4, 1, 7), 20_000
    generator = torch.Generator().manual_seed(seed)
    logits = 1.5 * torch.randn(12, generator=generator)
    codes = likelihood.draw_codes(logits.expand(rows, -1), sizes, generator)
    assert codes.dtype == torch.int32
    assert (codes[:, 1] == 0).all()
    for j, start in ((0, 0), (2, 5)):
        expected = rows * logits[start : start + sizes[j]].double().softmax(0)
        counts = torch.bincount(codes[:, j], minlength=sizes[j]).double()
        assert stats.chisquare(counts.numpy(), expected.numpy()).pvalue > 1e-8


def test_an_impossible_category_is_never_drawn():
    logits = torch.tensor([0.0, -200.0, 0.0]).expand(50_000, -1)
    codes = likelihood.draw_codes(logits, (3,), torch.Generator().manual_seed(0))
    assert set(codes.unique().tolist()) == {0, 2}
