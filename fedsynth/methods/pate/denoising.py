"""Vote shares without most of their noise: what similar rows were voted says of each other.

The noise of released votes is known, and teachers vote alike on rows that are alike. So the shares
of a class are modelled as a Gaussian process over the rows (Rasmussen and Williams 2006, sections
2.2 and 5.4.1), whose kernel and amplitude are those of the largest evidence. All of it is
post-processing of the released votes and of public rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh

from fedsynth.methods.pate.inputs import standardise
from fedsynth.queries.estimates import to_simplex
from fedsynth.queries.votes import Votes

Floats = NDArray[np.float64]

# Length scales of the kernels that are tried, in typical distances of two rows; 0 is a linear one.
_LENGTHS = (0.0, 0.25, 0.5, 1.0, 2.0, 4.0)
_AMPLITUDES = np.geomspace(1e-5, 10, 25)
# Variances of shares that no kernel explains (teachers that differ by chance).
_NUGGETS = (1e-6, 1e-4, 1e-3, 1e-2, 1e-1)
_CHUNK = 4_000


@dataclass(frozen=True, eq=False)
class Smoother:
    """A posterior mean of the vote shares.

    Attributes:
        length: of the kernel, 0 for a linear one.
        mean, scale: by which inputs are standardised, [width].
        rows: standardised queries, [Q, width].
        prior: mean shares, [classes].
        weights: of the queries, [Q, classes].
    """

    length: float
    mean: Floats
    scale: Floats
    rows: Floats
    prior: Floats
    weights: Floats

    @staticmethod
    def fit(queries: Floats, votes: Votes, standards: tuple[Floats, Floats]) -> Smoother:
        """Of votes on queries [Q, width], under the kernel of the largest evidence."""
        rows = standardise(queries, *standards)
        shares = votes.shares
        prior = shares.mean(axis=0)
        best, chosen = -np.inf, (0.0, np.zeros_like(shares))
        for length in _LENGTHS:
            values, vectors = eigh(_kernel(rows, rows, length))
            evidence, weights = _largest(
                np.maximum(values, 0.0), vectors, shares - prior, votes.share_variance
            )
            if evidence > best:
                best, chosen = evidence, (length, weights)
        return Smoother(chosen[0], *standards, rows, prior, chosen[1])

    def shares(self, inputs: Floats) -> Floats:
        """Of every class, [n, classes], nonnegative with sum 1, for rows [n, width]."""
        shares = np.zeros((len(inputs), len(self.prior)))
        for at in range(0, len(inputs), _CHUNK):
            rows = standardise(inputs[at : at + _CHUNK], self.mean, self.scale)
            shares[at : at + _CHUNK] = _kernel(rows, self.rows, self.length) @ self.weights
        return to_simplex(shares + self.prior, 1.0)


def _kernel(a: Floats, b: Floats, length: float) -> Floats:
    width = max(1, a.shape[1])
    products = a @ b.T
    if length == 0:
        return np.asarray(products / width)
    squares = (a**2).sum(axis=1)[:, None] + (b**2).sum(axis=1)[None, :] - 2 * products
    return np.asarray(np.exp(-np.maximum(squares, 0.0) / (2 * length**2 * width)))


def _largest(
    values: Floats, vectors: Floats, shares: Floats, variance: float
) -> tuple[float, Floats]:
    """The largest log evidence over amplitudes, and the weights [Q, classes] that go with it.

    Args:
        values, vectors: of the kernel matrix.
        shares: centred, [Q, classes].
        variance: of their noise.
    """
    turned = vectors.T @ shares
    power = (turned**2).sum(axis=1)
    best, spread, amplitude = -np.inf, np.ones_like(values), 0.0
    for nugget in _NUGGETS:
        for candidate in _AMPLITUDES:
            total = candidate * values + variance + nugget
            evidence = -0.5 * float(shares.shape[1] * np.log(total).sum() + (power / total).sum())
            if evidence > best:
                best, spread, amplitude = evidence, total, float(candidate)
    return best, np.asarray(amplitude * (vectors @ (turned / spread[:, None])))
