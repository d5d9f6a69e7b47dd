"""What the server announces of its networks, and records as they see them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.federation.client.view import View
from fedsynth.methods.training.batches import batch_of
from fedsynth.methods.training.rows import Seen
from fedsynth.models import adversarial, gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.models.likelihood import one_hot
from fedsynth.models.vae import unflatten

Floats = NDArray[np.float32]

# What the first generator's other inputs weigh where it starts from released tables.
_QUIET = 0.3
# Logit of a cell that is asked for, beside the log of its share.
_ASKED = 10.0


@dataclass(frozen=True)
class Game:
    """Networks and rules.

    Attributes:
        generator, discriminator: of one game.
        classifier: an auxiliary one, from records to the target's classes; None for none.
        parts: games side by side: one a class under the scheme ``sep``, else 1.
        classes: of the target; 0 where nothing is conditioned on.
        asks: whether rows are asked for a cell beside their class.
        loss: of the discriminator.
        smoothing: standard deviation of the noise on cells that a discriminator sees.
        penalty: weight of the slope penalty on generated rows.
    """

    generator: Generator
    discriminator: Scorer
    classifier: Scorer | None
    parts: int
    classes: int
    asks: bool
    loss: adversarial.Loss
    smoothing: float
    penalty: float

    @property
    def cells(self) -> Cells:
        return self.generator.cells

    @property
    def labelled(self) -> bool:
        """Whether a table's target is the label, and has no cells."""
        return self.classes > 0

    @property
    def quadratic(self) -> bool:
        """Whether the generator matches a quadratic discriminator's gradients."""
        return self.discriminator.kind == "quadratic"

    def discriminate(self, weights: list[Tensor], cells: Tensor, labels: Tensor | None) -> Tensor:
        """The discriminator's logits [b] of records as it sees them."""
        return adversarial.conditional_logits(self.discriminator.logits(weights, cells), labels)

    def penalty_gradient(
        self, weights: list[Tensor], cells: Tensor, labels: Tensor | None
    ) -> Tensor:
        """Gradient [discriminator.dim] of the slope penalty at generated rows."""
        penalty = adversarial.gradient_penalty(
            lambda rows: self.discriminate(weights, rows, labels), cells
        )
        # The last bias moves no slope.
        gradients = torch.autograd.grad(penalty, weights, allow_unused=True)
        parts = [
            torch.zeros_like(weight) if slope is None else slope
            for weight, slope in zip(weights, gradients, strict=True)
        ]
        return gan.flatten(parts)

    def discriminator_weights(self, flat: Tensor, part: int) -> list[Tensor]:
        """Matrices and biases of one part of a flat vector of all."""
        size = self.discriminator.dim
        return unflatten(flat[part * size : (part + 1) * size], self.discriminator.layers)

    def generator_weights(self, flat: Tensor, part: int) -> list[Tensor]:
        """Likewise of the generator."""
        size = self.generator.dim
        return unflatten(flat[part * size : (part + 1) * size], self.generator.layers)

    def dense(self, x: Tensor) -> Tensor:
        """Cells [b, width] of codes [b, columns], or of pixels as they are."""
        return x if self.cells.shape else one_hot(x.long(), self.cells.columns)

    def seen(self, client: View, rows: NDArray[np.int64], rng: np.random.Generator) -> Seen:
        """Records of a client as the networks see them.

        Args:
            rng: secret, of the client's coins: of the smoothing, and of the column whose cell
                stands as the condition of a row. Rows are drawn before, so how often one takes part
                does not depend on what is in it.
        """
        batch = batch_of(client, rows, self.labelled)
        cells = self.dense(batch.x)
        classes = batch.y if self.classes else None
        if self.quadratic:
            centre = client.board.read("centre", _read_centre)
            return Seen(cells, cells - centre_of(centre, classes), None, classes)
        labels = classes if self.parts == 1 else None
        if self.asks:
            column = torch.from_numpy(rng.integers(0, batch.x.shape[1], len(rows)))
            starts = torch.tensor(np.cumsum([0, *self.cells.columns[:-1]]))
            conditions = (
                batch.x.long().gather(1, column[:, None])[:, 0] + starts[column] + self.classes
            )
            labels = conditions if labels is None else torch.stack([labels, conditions], dim=1)
        return Seen(cells, self.add_noise(cells, rng), labels, classes)

    def add_noise(self, cells: Tensor, rng: np.random.Generator) -> Tensor:
        """Cells with the noise that a discriminator sees."""
        if not self.smoothing:
            return cells
        noise = rng.standard_normal(tuple(cells.shape), np.float32)
        return cells + self.smoothing * torch.from_numpy(noise)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` gives the same game back."""
        return {
            **self.cells.to_dict(),
            "generator": self.generator.to_dict(),
            "discriminator": self.discriminator.to_dict(),
            "classifier": None if self.classifier is None else self.classifier.to_dict(),
            "parts": self.parts,
            "classes": self.classes,
            "asks": self.asks,
            "loss": self.loss,
            "smoothing": self.smoothing,
            "penalty": self.penalty,
        }

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Game:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        cells, classifier = Cells.from_dict(plain), plain["classifier"]
        return Game(
            Generator.from_dict(cells, plain["generator"]),
            Scorer.from_dict(cells, plain["discriminator"]),
            None if classifier is None else Scorer.from_dict(cells, classifier),
            int(plain["parts"]),
            int(plain["classes"]),
            bool(plain["asks"]),
            plain["loss"],
            float(plain["smoothing"]),
            float(plain["penalty"]),
        )


def _read_centre(plain: list[list[float]]) -> Tensor:
    return torch.tensor(plain)


def centre_of(centre: Tensor, classes: Tensor | None) -> Tensor:
    """The centre of every row, [b, width], or one for all where there is one."""
    return centre[classes] if len(centre) > 1 and classes is not None else centre[:1]


def initialise(
    generator: Generator, profiles: Tensor | None, source: torch.Generator, asks: bool = False
) -> Tensor:
    """First weights of a generator; with tables such that its rows nearly have them.

    The last layer's bias, or where the layer sees the label the label's own column, is the log of
    the share of each cell, and a cell that a row is asked for is far likelier; everything else
    starts small. As cells are asked for as often as they come, rows still have the tables.

    Args:
        profiles: shares of the cells [classes, width] or [1, width].
        asks: whether the last labels are cells to ask for.
    """
    flat = gan.initial(generator.layers, source)
    if profiles is None:
        return flat
    weights = unflatten(flat, generator.layers)
    matrix, bias = weights[-2].clone() * _QUIET, weights[-1].clone()
    logs = profiles.clamp(min=1e-9).log()
    if len(profiles) > 1 and generator.kind == "residual":
        matrix[:, generator.latent : generator.latent + len(profiles)] = logs.T
    else:
        bias = profiles.mean(0).clamp(min=1e-9).log()
    if asks and generator.kind == "residual":
        cells = torch.arange(generator.cells.width)
        matrix[cells, generator.latent + generator.classes - len(cells) + cells] = _ASKED
    return gan.flatten([*weights[:-2], matrix, bias])
