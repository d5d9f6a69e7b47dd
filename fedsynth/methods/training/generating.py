"""A generator's training against a discriminator: all of it is post-processing, and free.

Whatever is known of the real rows here was released: the discriminator's weights or logits,
tables of the columns, a classifier.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.methods.training.learner import Learner
from fedsynth.models import adversarial, gan

# Below it pairs count as equal.
_LEAST_RATIO = 1e-2
# Under every class's share, as a part of the mean one: so that no class is never drawn.
_FLOOR = 1e-3

Discriminate = Callable[[Tensor, Tensor | None], Tensor]
"""From records [b, width] and labels to a discriminator's logits [b], with gradients."""


@dataclass(frozen=True)
class Objective:
    """What a generator strives for, beside being taken for real.

    Attributes:
        loss: of the discriminator's logits.
        matching: weight of the squared distance between the cells' means in each class and the
            released tables, summed over cells, over classes by their shares (after the information
            loss of Park et al. 2018, table-GAN, on released values alone).
        conditional_loss: weight of the cross-entropy of drawing the cell that was asked for (Xu et
            al. 2019, CTGAN, section 4.3).
        auxiliary_loss: weight of the classifier's cross-entropy (Odena et al. 2017, AC-GAN).
        mode_seeking_loss: weight of the mode-seeking term: see :func:`mode_seeking_ratio`.
        max_gradient_norm: L2 norm to which the gradient of a step is cut.
    """

    loss: adversarial.Loss = "logistic"
    matching: float = 0.0
    conditional_loss: float = 0.0
    auxiliary_loss: float = 0.0
    mode_seeking_loss: float = 0.0
    max_gradient_norm: float | None = None


@dataclass(frozen=True)
class Conditions:
    """Which labels generated rows are given, by released frequencies.

    Attributes:
        classes: shares of the target's classes [classes]; empty for none.
        cells: shares of each column's categories in the order of the cells, in each class [classes,
            width] or in all [1, width], each column's part summing to 1: then every row is also
            asked for one cell, of a column drawn evenly (Xu et al. 2019, training by sampling,
            without its reweighting, which would have to be done to real rows too and so break
            their secret sampling); None for none.
        sizes: of the columns, summing to width.
    """

    classes: NDArray[np.float64]
    cells: NDArray[np.float64] | None = None
    sizes: tuple[int, ...] = ()

    @property
    def count(self) -> int:
        """Labels that there are: of classes, then of cells."""
        return len(self.classes) + (0 if self.cells is None else self.cells.shape[1])

    def draw(self, rows: int, source: torch.Generator) -> Tensor | None:
        """Labels [rows], or [rows, 2] of classes and cells; None where there are none at all."""
        classes = None
        if len(self.classes):
            shares = torch.from_numpy(self.classes + _FLOOR * self.classes.mean() + 1e-12)
            classes = torch.multinomial(shares, rows, True, generator=source)
        return self.complete(classes, rows, source)

    def complete(self, classes: Tensor | None, rows: int, source: torch.Generator) -> Tensor | None:
        """Labels of rows whose classes [rows] are known."""
        if self.cells is None:
            return classes
        shares = torch.from_numpy(self.cells).clamp(min=0) + 1e-12
        if classes is None or len(shares) == 1:
            cells_asked = torch.multinomial(shares[0], rows, True, generator=source)
        else:
            # By a uniform number under the class's running sums: no table of rows by cells.
            sums = shares.cumsum(1)
            drawn = torch.rand(rows, generator=source, dtype=sums.dtype) * sums[classes, -1]
            cells_asked = torch.zeros(rows, dtype=torch.int64)
            for number in torch.unique(classes):
                members = classes == number
                places = torch.searchsorted(sums[number], drawn[members], right=True)
                cells_asked[members] = places.clamp(max=sums.shape[1] - 1)
        cells = cells_asked + len(self.classes)
        return cells if classes is None else torch.stack([classes, cells], dim=1)


@dataclass(frozen=True, eq=False)
class GeneratorTrainer:
    """A generator that learns.

    Attributes:
        generator: the network.
        learner: its weights.
        objective: what it strives for.
        conditions: which labels its rows get.
        profiles: shares of every cell in each class [classes, width], or in all rows [1, width],
            of released tables; None without tables.
        source: of latent vectors, labels and drawn categories.
    """

    generator: gan.Generator
    learner: Learner
    objective: Objective
    conditions: Conditions
    profiles: Tensor | None
    source: torch.Generator

    def latent(self, rows: int) -> Tensor:
        """Standard normal [rows, latent]."""
        return torch.randn(rows, self.generator.latent, generator=self.source)

    def rows(self, count: int) -> tuple[Tensor, Tensor | None]:
        """Records [count, width] of the present weights, without gradients, and their labels."""
        labels = self.conditions.draw(count, self.source)
        with torch.no_grad():
            cells = self.generator.draw(
                self.learner.weights, self.latent(count), labels, self.source
            )
        return cells, labels

    def step(
        self,
        rows: int,
        discriminate: Discriminate,
        classify: Callable[[Tensor], Tensor] | None = None,
    ) -> float:
        """One step of Adam on fresh rows: pairs of the same labels, which are to differ.

        Args:
            rows: how many.
            discriminate: the discriminator.
            classify: from records to the classifier's logits [b, classes].

        Returns:
            The loss.
        """
        half = -(-rows // 2)
        labels = self.conditions.draw(half, self.source)
        if labels is not None:
            labels = torch.cat([labels, labels])
        latent = self.latent(2 * half)
        scores = self.generator.scores(self.learner.weights, latent, labels)
        cells = self.generator.sample_records(scores, self.source)
        loss = adversarial.adversarial_losses(
            discriminate(cells, labels), True, self.objective.loss
        ).mean()
        loss = loss + self._extras(latent, scores, cells, labels, classify)
        self.learner.descend(loss, self.objective.max_gradient_norm)
        return float(loss.detach())

    def _extras(
        self,
        latent: Tensor,
        scores: Tensor,
        cells: Tensor,
        labels: Tensor | None,
        classify: Callable[[Tensor], Tensor] | None,
    ) -> Tensor:
        objective, loss = self.objective, torch.zeros(())
        classes = self._classes(labels)
        if objective.matching and self.profiles is not None:
            known = classes if len(self.profiles) > 1 else None
            loss = loss + objective.matching * profile_distance(cells, known, self.profiles)
        if objective.conditional_loss and labels is not None and self.conditions.cells is not None:
            targets = (labels if labels.dim() == 1 else labels[:, -1]) - len(
                self.conditions.classes
            )
            loss = loss + objective.conditional_loss * conditional_cross_entropy(
                scores, targets, self.conditions.sizes
            )
        if objective.auxiliary_loss and classify is not None and classes is not None:
            loss = loss + objective.auxiliary_loss * functional.cross_entropy(
                classify(cells), classes
            )
        if objective.mode_seeking_loss:
            loss = loss + objective.mode_seeking_loss * mode_seeking_ratio(
                latent, cells, len(cells) // 2
            )
        return loss

    def _classes(self, labels: Tensor | None) -> Tensor | None:
        if labels is None or not len(self.conditions.classes):
            return None
        return labels if labels.dim() == 1 else labels[:, 0]


def profile_distance(cells: Tensor, classes: Tensor | None, profiles: Tensor) -> Tensor:
    """Squared distance of the cells' means in each class from the profiles, classes by their rows.

    Args:
        cells: records [b, width].
        classes: their classes [b]; None where there is one profile for all.
        profiles: [classes, width].
    """
    if classes is None:
        return (cells.mean(0) - profiles[0]).square().sum()
    marks = functional.one_hot(classes, len(profiles)).to(cells.dtype)
    counts = marks.sum(0)
    means = marks.T @ cells / counts.clamp(min=1)[:, None]
    return (counts / len(cells) * (means - profiles).square().sum(1)).sum()


def conditional_cross_entropy(scores: Tensor, targets: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """Mean cross-entropy of the cells asked for [b] under scores [b, width] of all columns."""
    starts = torch.tensor(np.cumsum([0, *sizes[:-1]]))
    column = torch.bucketize(targets, starts, right=True) - 1
    owners = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    masked = scores.masked_fill(owners[None] != column[:, None], -torch.inf)
    return functional.cross_entropy(masked, targets)


def mode_seeking_ratio(latent: Tensor, cells: Tensor, half: int) -> Tensor:
    """How little rows of a pair differ for what their latent vectors do, mean over pairs.

    The inverse of the ratio of mean absolute differences (Mao et al. 2019, "Mode seeking generative
    adversarial networks"). Pairs are the rows i and half + i.
    """
    apart = (cells[:half] - cells[half:]).abs().mean(1)
    latents = (latent[:half] - latent[half:]).abs().mean(1)
    return (1 / (apart / latents.clamp_min(1e-6) + _LEAST_RATIO)).mean()
