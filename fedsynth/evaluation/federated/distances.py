"""Total variation of columns from counts that carry noise of a known width.

Half the L1 norm of noisy differences is too large, for a column of C cells by up to ``C s / sqrt(2
pi)`` with s the noise's standard deviation in a share; and no function of them is unbiased, since
the absolute value has a kink. So the true differences are given a prior whose width is learned from
all columns together (empirical Bayes: Efron 2016, "Empirical Bayes deconvolution estimates";
Stephens 2017, "False discovery rates: a new deal"):

    D_c = delta_c + N(0, s_c^2),  delta_c ~ sum_k pi_k N(0, tau_k^2 (q_c + 1/n)),

where q_c is the synthetic share of cell c, n the records, tau_k a grid from ``1/sqrt(n)`` up and pi
found by EM from equal weights. A cell's difference widens like the root of its share, as a sample's
does, and by no less: the records are a sample, at best of what the synthetic rows are of. The
mixture lets few cells differ a lot. A column's distance is half the sum of the posterior means of
``|delta_c|``, which is unbiased as far as the prior holds.

The error of a distance is its root mean square deviation in simulations: differences drawn from the
posterior, noise added, all of it estimated again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

Floats = NDArray[np.float64]

_WIDTHS = 12
_STEPS = 100
_DRAWS = 60
_CELLS = 2**22
"""Entries of one array over draws, widths and cells: bounds memory."""


@dataclass(frozen=True, eq=False)
class Distances:
    """Of each column [d] and their mean, with standard errors; all in [0, 1]."""

    values: Floats
    errors: Floats
    mean_error: float

    @property
    def mean(self) -> float:
        return float(self.values.mean())


def distances(
    columns: Sequence[Floats], made: Sequence[Floats], records: float, error: float, sigma: float
) -> Distances:
    """Total variation between counts of every column's cells [C_j] and synthetic shares [C_j].

    Args:
        records, error: how many records there are, and the standard error of that.
        sigma: standard deviation of the noise in each count; 0 gives the plain formula.
    """
    apart = [_centred(c / records - q) for c, q in zip(columns, made, strict=True)]
    if sigma == 0:
        values = np.array([np.abs(one).sum() / 2 for one in apart])
        return Distances(np.minimum(values, 1.0), np.zeros(len(values)), 0.0)
    shares = np.concatenate(list(made))
    lengths = np.array([len(one) for one in made])
    # What taking off a column's mean leaves of the noise; the number of records is noisy as well.
    left = np.repeat(1 - 1 / lengths, lengths)
    noise = np.sqrt((sigma / records) ** 2 * left + (error / records * shares) ** 2)
    prior = _Prior.of(np.concatenate(apart), noise, shares, records)
    starts = np.cumsum([0, *lengths[:-1]])

    def totals(cells: Floats) -> Floats:
        summed: Floats = np.add.reduceat(cells, starts, axis=-1)
        return np.minimum(summed / 2, 1.0)

    values = totals(prior.sizes(np.concatenate(apart)[None])[0])
    off = _deviations(prior, np.concatenate(apart), totals)
    mean_error = float(np.sqrt((off.mean(axis=1) ** 2).mean()))
    return Distances(values, np.sqrt((off**2).mean(axis=0)), mean_error)


def _centred(apart: Floats) -> Floats:
    """True differences of a column sum to 0."""
    centred: Floats = apart - apart.mean()
    return centred


@dataclass(frozen=True, eq=False)
class _Prior:
    """The mixture's widths: variances of noise [m] and of differences under each width [k, m]."""

    noise: Floats
    variances: Floats

    @classmethod
    def of(cls, apart: Floats, noise: Floats, shares: Floats, records: float) -> _Prior:
        scale, low = np.sqrt(shares + 1 / records), records**-0.5
        high = max(2 * float(np.abs(apart).max() / np.median(scale)), 2 * low)
        widths = np.geomspace(low, high, _WIDTHS)
        return cls(noise**2, (widths[:, None] * scale) ** 2)

    def weights(self, apart: Floats) -> Floats:
        """Posterior probability of each width [..., k, m] for differences [..., m], by EM."""
        total = self.variances + self.noise
        logs = -0.5 * (apart[..., None, :] ** 2 / total + np.log(total))
        likelihood = np.exp(logs - logs.max(axis=-2, keepdims=True))
        turned = np.swapaxes(likelihood, -1, -2)
        mixed = np.full((*likelihood.shape[:-2], 1, likelihood.shape[-2]), 1 / len(self.variances))
        for _ in range(_STEPS):
            mixed = mixed * ((1 / (mixed @ likelihood)) @ turned) / likelihood.shape[-1]
        weights: Floats = np.swapaxes(mixed, -1, -2) * likelihood / (mixed @ likelihood)
        return weights

    @property
    def kept(self) -> Floats:
        """What shrinking leaves of a difference under each width [k, m]."""
        kept: Floats = self.variances / (self.variances + self.noise)
        return kept

    def sizes(self, apart: Floats) -> Floats:
        """Posterior means of the absolute differences [..., m]."""
        centre, spread = self.kept * apart[..., None, :], np.sqrt(self.kept * self.noise)
        ratio = np.divide(centre, spread, out=np.zeros_like(centre), where=spread > 0)
        # The mean of a folded normal variable.
        tails = np.sqrt(2 / np.pi) * spread * np.exp(-(ratio**2) / 2)
        folded = tails + centre * (1 - 2 * ndtr(-ratio))
        sizes: Floats = (self.weights(apart) * folded).sum(axis=-2)
        return sizes

    def draw(self, apart: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Differences from the posterior [count, m]."""
        below = np.cumsum(self.weights(apart), axis=0)
        drawn = (rng.random((count, 1, len(apart))) > below[None, :-1]).sum(axis=1)
        kept = np.take_along_axis(self.kept, drawn, axis=0)
        found: Floats = kept * apart + np.sqrt(kept * self.noise) * rng.standard_normal(drawn.shape)
        return found


def _deviations(prior: _Prior, apart: Floats, totals: Callable[[Floats], Floats]) -> Floats:
    """Estimates less truths [draws, d] where the truth is drawn from the posterior."""
    rng = np.random.default_rng(0)
    truths = prior.draw(apart, _DRAWS, rng)
    noisy = truths + np.sqrt(prior.noise) * rng.standard_normal(truths.shape)
    step = max(1, _CELLS // prior.variances.size)
    blocks = [prior.sizes(noisy[start : start + step]) for start in range(0, _DRAWS, step)]
    return totals(np.concatenate(blocks)) - totals(np.abs(truths))
