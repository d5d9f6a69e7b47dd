"""Whether a generator still learns: looked at in its own samples, so it costs nothing.

A generator has *collapsed* when rows of the same label hardly differ, and *diverged* when a weight
or a cell is no finite number. The last state that was neither is kept.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, field, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from fedsynth.methods.training.generating import GeneratorTrainer
from fedsynth.methods.training.saving import Arrays
from fedsynth.models.vae import unflatten

# Pairs of rows looked at.
_PAIRS = 1024
# A generator whose variety falls below this part of what it could be has collapsed.
_LEAST = 0.1
# Where even that is less, rows are alike by right: a column of one category, say.
_SLIGHT = 5e-3


@dataclass(frozen=True)
class Look:
    """What was seen of a generator.

    Attributes:
        round: when.
        variety: how much two rows with the same labels differ, on average: a table's in which share
            of the columns, an image's pixels by how much; NaN where cells are not finite.
        spread: the same of two rows of any labels.
        wanted: the variety of rows drawn from the released tables, where there is one for each
            class, or there are no classes; else None.
        distance: total variation of the cells of a class from the released tables, mean over
            columns, over classes by their shares; None where there are no tables.
    """

    round: int
    variety: float
    spread: float
    wanted: float | None
    distance: float | None


@dataclass
class Watch:
    """The looks at one generator, and its last good weights.

    Attributes:
        kept: flat weights of the last good state; of the best one by ``distance`` with `patience`.
        at: its round.
        looks: so far.
        patience: looks without a smaller distance after which the training stops; None for never.
            The distance is from released tables, so stopping by it costs nothing.
    """

    kept: Tensor
    at: int = 0
    looks: list[Look] = field(default_factory=list)
    patience: int | None = None

    def look(self, trainer: GeneratorTrainer, weights: Tensor, number: int, seed: int) -> None:
        """Look at flat weights after round ``number``."""
        self.looks.append(_look(trainer, weights, number, seed))
        last = self.looks[-1]
        if not self.collapsed and not self.diverged and (self.patience is None or self._best):
            self.kept, self.at = weights.clone(), last.round

    def state(self) -> Arrays:
        """What :meth:`restore` needs."""
        looks = [astuple(look) for look in self.looks]
        return {
            "kept": self.kept.numpy(),
            "at": np.array(self.at),
            # What was not measured is NaN.
            "looks": np.array(looks, np.float64).reshape(len(looks), len(fields(Look))),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of :meth:`state`."""
        self.kept, self.at = torch.from_numpy(np.array(arrays["kept"])), int(arrays["at"].item())
        self.looks = []
        for number, variety, spread, *rest in arrays["looks"].tolist():
            expected, distance = (None if np.isnan(value) else value for value in rest)
            self.looks.append(Look(int(number), variety, spread, expected, distance))

    @property
    def diverged(self) -> bool:
        return bool(self.looks) and not np.isfinite(self.looks[-1].variety)

    @property
    def collapsed(self) -> bool:
        """Whether the last look saw next to no variety beside what the released tables promise, or
        without such beside the greatest seen and how much rows of any labels differ."""
        if not self.looks or self.diverged:
            return False
        last, possible = self.looks[-1], self.looks[-1].wanted
        if possible is None:
            seen = [look.variety for look in self.looks if np.isfinite(look.variety)]
            possible = max(*seen, last.spread)
        return possible > _SLIGHT and last.variety <= _LEAST * possible

    @property
    def _best(self) -> bool:
        distances = [look.distance for look in self.looks if look.distance is not None]
        return not distances or distances[-1] <= min(distances)

    @property
    def stalled(self) -> bool:
        """Whether patience is out."""
        if self.patience is None:
            return False
        distances = [look.distance for look in self.looks if look.distance is not None]
        return len(distances) - 1 - int(np.argmin(distances or [0.0])) >= self.patience

    def remarks(self, subject: str) -> tuple[str, ...]:
        """What a user must know of the end of the training, in sentences."""
        if self.diverged:
            what = "diverged"
        elif self.collapsed:
            what = "collapsed: its rows of one label hardly differ"
        else:
            return ()
        return (
            f"{subject} {what} by round {self.looks[-1].round}; the weights of round {self.at} are "
            "kept. Lower learning_rate or discriminator_learning_rate, or raise mode_seeking_loss",
        )


def _look(trainer: GeneratorTrainer, flat: Tensor, number: int, seed: int) -> Look:
    """Look with random numbers of its own, so that looking changes nothing."""
    source = torch.Generator().manual_seed(seed)
    generator, conditions = trainer.generator, trainer.conditions
    labels = conditions.draw(_PAIRS, source)
    if labels is not None:
        labels = torch.cat([labels, labels])
    weights = unflatten(flat, generator.layers)
    cells = generator.sample(weights, labels, 2 * _PAIRS, source)
    # Two rows that differ in a column differ in two of its cells.
    shape = generator.cells
    scale = shape.width / (2 * len(shape.columns)) if shape.columns else 1.0
    variety = scale * float((cells[:_PAIRS] - cells[_PAIRS:]).abs().mean())
    spread = scale * float((cells[1:] - cells[:-1]).abs().mean())
    if not bool(cells.isfinite().all()) or not bool(flat.isfinite().all()):
        variety = float("nan")
    return Look(
        number, variety, spread, _expected_variety(trainer), _distance(trainer, cells, labels)
    )


def _expected_variety(trainer: GeneratorTrainer) -> float | None:
    """The share of the columns in which two rows of the same class differ by the tables."""
    profiles, classes = trainer.profiles, torch.from_numpy(trainer.conditions.classes).float()
    columns = trainer.generator.cells.columns
    if profiles is None or 0 in columns or (len(classes) and len(profiles) != len(classes)):
        return None
    apart = (profiles * (1 - profiles)).sum(1) / len(columns)
    return float(apart @ (classes / classes.sum())) if len(classes) else float(apart[0])


def _distance(trainer: GeneratorTrainer, cells: Tensor, labels: Tensor | None) -> float | None:
    profiles = trainer.profiles
    if profiles is None:
        return None
    classes = torch.zeros(len(cells), dtype=torch.int64)
    if labels is not None and len(profiles) > 1:
        classes = labels if labels.dim() == 1 else labels[:, 0]
    total = 0.0
    for number in torch.unique(classes):
        members = cells[classes == number]
        gap = (members.mean(0) - profiles[number]).abs().sum() / 2
        total += len(members) / len(cells) * float(gap) / len(trainer.generator.cells.columns)
    return total
