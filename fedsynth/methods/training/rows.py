"""What a drawn record adds to a step of the networks that see real rows.

A step's noisy sum holds, of every drawn record, the gradient of the discriminator's loss on it as
real, that of an auxiliary classifier's loss, and perhaps a small mark in the place of its class.
The discriminator's loss on generated rows and all of the generator are post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.models import adversarial, gan
from fedsynth.privacy.rows.clipping import clip_and_sum, factors
from fedsynth.privacy.rows.factored import FactoredRows

# Of the squared clip: the marks' part, and of the rest the discriminator's where there is a
# classifier.
_MARKS, _DISCRIMINATOR = 0.01, 0.5

Factors = list[tuple[NDArray[np.float32], NDArray[np.float32]]]


@dataclass(frozen=True)
class Weights:
    """Of the networks that see real rows, matrices and biases in turn; no classifier, none."""

    discriminator: Sequence[Tensor]
    classifier: Sequence[Tensor]


@dataclass(frozen=True)
class Seen:
    """Records [b] as the networks see them.

    Attributes:
        cells: for the classifier, [b, width].
        blurred: for the discriminator, [b, width]: the same, with noise where there is any.
        labels: for the discriminator, [b] or [b, several]; None for one that knows no labels.
        classes: for the classifier and the marks, [b]; None without either.
    """

    cells: Tensor
    blurred: Tensor
    labels: Tensor | None
    classes: Tensor | None


@dataclass(frozen=True)
class Row:
    """A record's row: gradients of discriminator and classifier, and its mark.

    Each part is clipped to its own share of the clip, so that a classifier with large gradients
    does not shrink the discriminator's, and marks stay whole.

    Attributes:
        discriminator, classifier: whose gradients they are; perhaps no classifier.
        clip: L2 bound on a row.
        marks: places for marks; 0 for no marks.
        loss: the discriminator's.
    """

    discriminator: gan.Scorer
    classifier: gan.Scorer | None
    clip: float
    marks: int = 0
    loss: adversarial.Loss = "logistic"

    @property
    def mark(self) -> float:
        """The number in the place of a record's class."""
        return self.clip * math.sqrt(_MARKS) if self.marks else 0.0

    @property
    def discriminator_clip(self) -> float:
        share = _DISCRIMINATOR if self.classifier else 1.0
        return math.sqrt((self.clip**2 - self.mark**2) * share)

    @property
    def classifier_clip(self) -> float:
        return math.sqrt((self.clip**2 - self.mark**2) * (1 - _DISCRIMINATOR))

    @property
    def stops(self) -> tuple[int, int]:
        """Where in a row the classifier's part begins, and the marks."""
        first = self.discriminator.dim
        return first, first + (self.classifier.dim if self.classifier else 0)

    @property
    def dim(self) -> int:
        """Length of a row: discriminator, classifier, marks."""
        return self.stops[1] + self.marks

    def of(self, seen: Seen, weights: Weights) -> FactoredRows:
        """Rows of records [b]; a row depends on its own record alone, and on secret noise."""
        parts = self.discriminator_gradients(
            seen.blurred, seen.labels, weights.discriminator, real=True
        )
        if self.classifier is not None:
            assert seen.classes is not None
            classes = seen.classes
            gradients = adversarial.record_gradients(
                self.classifier,
                weights.classifier,
                seen.cells,
                lambda logits: functional.cross_entropy(logits, classes, reduction="none"),
            )
            parts += _clip(gradients, self.classifier_clip)
        if self.marks:
            rows = len(seen.cells)
            places = torch.zeros(rows, dtype=torch.int64) if seen.classes is None else seen.classes
            marks = (functional.one_hot(places, self.marks).float() * self.mark).numpy()
            parts.append((np.ones((rows, 1), np.float32), marks))
        return FactoredRows(parts, width=self.dim)

    def discriminator_gradients(
        self, cells: Tensor, labels: Tensor | None, weights: Sequence[Tensor], real: bool
    ) -> Factors:
        """Of the discriminator's loss on records as real ones or as generated, clipped."""
        gradients = adversarial.record_gradients(
            self.discriminator,
            weights,
            cells,
            lambda logits: adversarial.adversarial_losses(
                adversarial.conditional_logits(logits, labels), real, self.loss
            ),
        )
        return _clip(gradients, self.discriminator_clip)

    def generated_gradient(
        self, cells: Tensor, labels: Tensor | None, weights: Sequence[Tensor]
    ) -> NDArray[np.float64]:
        """Mean gradient [discriminator.dim] of the loss on generated records, each clipped as a
        real one's: else the generated would weigh more."""
        rows = FactoredRows(self.discriminator_gradients(cells, labels, weights, real=False))
        return clip_and_sum(rows, self.clip) / len(cells)


def _clip(gradients: list[tuple[Tensor, Tensor]], clip: float) -> Factors:
    """Factors of gradients [b] with the norm of each at most `clip`."""
    pairs = [(left.numpy(), right.numpy()) for left, right in gradients]
    scale = factors(FactoredRows(pairs), clip).astype(np.float32)[:, None]
    return [(left * scale, right) for left, right in pairs]
