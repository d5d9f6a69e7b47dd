"""A quadratic discriminator whose released gradients the generator matches.

The discriminator is ``D(x) = 1/2 sum_h a_h (w_h . (x - c))^2``: unit vectors w_h, fixed signs a_h,
and for the centre c the released shares of the cells in the row's class, which the generator has
anyway. A round releases the noisy mean of the real records' clipped gradients of D. The generator
does not ascend D, a direction without end in which noise drowns it: it brings the mean gradient of
its own rows to the released one (feature matching, Salimans et al. 2016, with gradients as the
features), for many remembered rounds at once, and stops where the noise begins. The discriminator
turns towards what is left of the difference: noisy power iteration on the difference of the second
moments of real and generated rows. As such moments say nothing of shares, generated rows are seen
from their own means: the shares are held by the tables (``matching``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.methods.training.learner import Arrays
from fedsynth.models.gan import signs_of

# Remembered rounds that a step of the generator looks at.
_ROUNDS = 16
# How far a unit vector turns in a round: by half its length.
_TURN = 0.5
# Rows of a class that its released shares count for in the mean of few generated ones.
_ROWS = 20.0
# Of the squared distance in units of the clip, in the generator's loss.
_WEIGHT = 100.0


class Matcher:
    """The discriminator at the server, and what was released of it.

    Args:
        units: number of vectors.
        centre: of the rows, [classes, width] or [1, width].
        clip: L2 bound on a record's gradient of the discriminator, as clients clip it.
        source: of the first vectors, and of which rounds a step looks at.
    """

    def __init__(self, units: int, centre: Tensor, clip: float, source: torch.Generator) -> None:
        self.centre, self.clip, self.source = centre, clip, source
        drawn = torch.randn(units, centre.shape[1], generator=source)
        self.weights = drawn / drawn.norm(dim=1, keepdim=True)
        self.asked = torch.zeros(0, *drawn.shape)
        self.released = torch.zeros(0, *drawn.shape)

    def remember(self, released: Tensor) -> None:
        """A round's released mean gradient [units * width] of the present vectors."""
        gradient = released.view_as(self.weights)
        self.asked = torch.cat([self.asked, self.weights[None]])
        self.released = torch.cat([self.released, gradient[None]])

    def gap(self, cells: Tensor, classes: Tensor | None) -> Tensor:
        """Squared distance of released and generated mean gradients, mean over some rounds.

        The product of the distances of two halves of the rows: its expectation is the squared
        distance itself, without the variance of the rows' mean.
        """
        count = len(self.asked)
        chosen = torch.randperm(count, generator=self.source)[: min(_ROUNDS, count)]
        asked, released = self.asked[chosen], self.released[chosen]
        rows, half = self.centre_rows(cells, classes), len(cells) // 2
        first = released - mean_gradients(asked, rows[:half], self.clip)
        second = released - mean_gradients(asked, rows[half:], self.clip)
        return _WEIGHT / self.clip**2 * (first * second).sum() / len(chosen)

    def turn(self, cells: Tensor, classes: Tensor | None) -> None:
        """Turn the vectors towards what the last released gradient has and these rows have not."""
        generated = mean_gradients(self.asked[-1:], self.centre_rows(cells, classes), self.clip)[0]
        left = generated - self.released[-1]
        self.weights = self.weights + _TURN * left / left.norm(dim=1, keepdim=True).clamp(min=1e-9)
        self.weights = self.weights / self.weights.norm(dim=1, keepdim=True)

    def centre_rows(self, cells: Tensor, classes: Tensor | None) -> Tensor:
        """Generated rows [b, width], centred at their own means in each class.

        The released shares are where real rows are centred, and generated ones soon: until then,
        rows off the centre would have second moments that real ones owe to their columns' ties.
        """
        known = torch.zeros(len(cells), dtype=torch.int64)
        if len(self.centre) > 1 and classes is not None:
            known = classes
        marks = functional.one_hot(known, len(self.centre)).to(cells.dtype)
        counts = marks.sum(0)[:, None]
        means = (marks.T @ cells + _ROWS * self.centre) / (counts + _ROWS)
        return cells - means[known]

    def state(self) -> Arrays:
        """What :meth:`restore` needs."""
        return {
            "weights": self.weights.numpy(),
            "asked": self.asked.numpy(),
            "released": self.released.numpy(),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of :meth:`state`."""
        for name in ("weights", "asked", "released"):
            setattr(self, name, torch.from_numpy(np.array(arrays[name])))


def mean_gradients(weights: Tensor, rows: Tensor, clip: float) -> Tensor:
    """Mean clipped gradients of ``-D`` at centred rows, through which gradients reach the rows.

    Args:
        weights: of several rounds, [rounds, units, width].
        rows: [b, width].

    Returns:
        [rounds, units, width].
    """
    rounds, units, width = weights.shape
    signs = signs_of(units)
    lefts = -(rows @ weights.reshape(-1, width).T).view(len(rows), rounds, units) * signs
    norms = lefts.norm(dim=2) * rows.norm(dim=1, keepdim=True)
    scaled = lefts * (clip / norms.clamp(min=clip))[..., None]
    means: Tensor = scaled.flatten(1).T @ rows / len(rows)
    return means.view(rounds, units, width)
