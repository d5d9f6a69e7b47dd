"""The terms of the evidence lower bound, and draws from the decoder's distribution."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, groupby

import torch
from torch import Tensor
from torch.nn import functional

# exp(8) is far beyond any posterior variance that a standard normal prior asks for.
LOG_VARIANCE_BOUND = 8.0
# Deviations of numbers of unit variance, from a hundredth of it to a hundred times.
LOG_SIGMA_BOUND = math.log(100)


def one_hot(codes: Tensor, sizes: Sequence[int]) -> Tensor:
    """Codes [..., d] as float32 one-hot cells [..., sum(sizes)], columns side by side."""
    starts = torch.tensor([0, *accumulate(sizes)][:-1], device=codes.device)
    cells = codes.new_zeros(*codes.shape[:-1], sum(sizes), dtype=torch.float32)
    return cells.scatter_(-1, codes.long() + starts, 1.0)


def one_hot_labels(y: Tensor, classes: int) -> Tensor:
    """Labels [...] as float32 [..., classes]; a label outside 0..classes-1 is a row of zeros."""
    return (y.unsqueeze(-1) == torch.arange(classes, device=y.device)).float()


def log_softmax(logits: Tensor, sizes: Sequence[int]) -> Tensor:
    """Log-probabilities within each column: [..., width] to [..., width].

    Neighbouring columns of equal size go together, which is several times faster than padding all
    to the widest, and than one call a column where there are hundreds.
    """
    runs = [(size, len(list(run))) for size, run in groupby(sizes)]
    parts = torch.split(logits, [size * count for size, count in runs], dim=-1)
    scaled = [
        part.view(*part.shape[:-1], count, size).log_softmax(-1).flatten(-2)
        for part, (size, count) in zip(parts, runs, strict=True)
    ]
    return torch.cat(scaled, dim=-1)


def table_loss(logits: Tensor, cells: Tensor, sizes: Sequence[int]) -> Tensor:
    """Sum over columns of the softmax cross-entropy in nats: [..., width] twice to [...]."""
    return -(log_softmax(logits, sizes) * cells).sum(-1)


def number_loss(means: Tensor, numbers: Tensor, log_sigma: Tensor | float) -> Tensor:
    """Sum over columns of a Gaussian's negative log-density in nats, without log(2 pi)/2.

    Args:
        means, numbers: [..., k]; a number that is NaN, a gap, counts 0.
        log_sigma: logarithms of the deviations, [..., k] or one for all.

    Returns:
        Losses [...].
    """
    known = ~numbers.isnan()
    sigma = torch.as_tensor(log_sigma, device=means.device)
    sigma = sigma.clamp(-LOG_SIGMA_BOUND, LOG_SIGMA_BOUND)
    # Gaps are filled before the square: 0 times NaN is NaN, in the gradient too.
    apart = (numbers.nan_to_num(0.0) - means) * (-sigma).exp()
    return torch.where(known, 0.5 * apart.square() + sigma, 0.0).sum(-1)


def image_loss(logits: Tensor, pixels: Tensor) -> Tensor:
    """Bernoulli cross-entropy in nats, summed over pixels in [0, 1]: [..., width] to [...]."""
    terms = functional.binary_cross_entropy_with_logits(logits, pixels, reduction="none")
    return terms.sum(-1)


def gaussian_kl(mean: Tensor, log_variance: Tensor) -> Tensor:
    """KL divergence in nats of N(mean, exp(log_variance)) from N(0, I): [..., latent] to [...]."""
    return 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum(-1)


def draw_numbers(means: Tensor, log_sigma: Tensor, generator: torch.Generator) -> Tensor:
    """A number of each Gaussian: means [..., k] and logarithms of deviations to [..., k]."""
    sigma = log_sigma.clamp(-LOG_SIGMA_BOUND, LOG_SIGMA_BOUND).exp()
    normal = torch.empty_like(means).normal_(generator=generator)
    return means + sigma * normal


def draw_codes(logits: Tensor, sizes: Sequence[int], generator: torch.Generator) -> Tensor:
    """One category of each column, by its softmax probability: [..., width] to int32 [..., d].

    An exponential race (the Gumbel-max trick): argmin of E_j / p_j falls on j with probability p_j.
    """
    race = torch.empty_like(logits).exponential_(generator=generator)
    scores = logits - race.log()
    winners = [group.argmax(-1) for group in torch.split(scores, list(sizes), dim=-1)]
    return torch.stack(winners, dim=-1).int()
