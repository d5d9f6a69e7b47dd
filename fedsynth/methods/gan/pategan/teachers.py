"""Discriminators that learn side by side, each from its own records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from fedsynth.methods.gan.game import Game
from fedsynth.methods.training.learner import BETAS
from fedsynth.models import adversarial, gan

_TINY = 1e-8


@dataclass(frozen=True, eq=False)
class Teacher:
    """One discriminator and Adam's state for it.

    Attributes:
        flat: weights [dim].
        first, second: moving averages of gradients and of their squares [dim].
        steps: taken.
    """

    flat: Tensor
    first: Tensor
    second: Tensor
    steps: int

    @staticmethod
    def new(scorer: gan.Scorer, seed: int) -> Teacher:
        """Of weights drawn by the seed."""
        flat = gan.initial(scorer.layers, torch.Generator().manual_seed(seed))
        return Teacher(flat, torch.zeros_like(flat), torch.zeros_like(flat), 0)


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """What one teacher learns from.

    Attributes:
        records, labels: its own, as codes or pixels [n, ...], and [n] or None.
        fakes, fake_labels: generated ones.
        real, fake: which of them it sees in each step, [steps, batch].
    """

    records: Tensor
    labels: Tensor | None
    fakes: Tensor
    fake_labels: Tensor | None
    real: Tensor
    fake: Tensor


def training_set(
    records: Tensor,
    labels: Tensor | None,
    fakes: Tensor,
    fake_labels: Tensor | None,
    steps: int,
    batch: int,
    rng: np.random.Generator,
) -> TrainingSet:
    """A training set of records in random order against generated rows of the same classes.

    Else a teacher whose records are mostly of one class would learn to judge by the class.
    """
    real = rng.integers(len(records), size=(steps, batch))
    fake = rng.integers(len(fakes), size=(steps, batch))
    if labels is not None and fake_labels is not None:
        real_labels, theirs = labels.numpy()[real], fake_labels.numpy()
        for label in np.unique(real_labels):
            alike = np.flatnonzero(theirs == label)
            if len(alike):
                at = real_labels == label
                fake[at] = rng.choice(alike, int(at.sum()))
    return TrainingSet(
        records, labels, fakes, fake_labels, torch.from_numpy(real), torch.from_numpy(fake)
    )


def train(
    game: Game, teachers: Sequence[Teacher], training_sets: Sequence[TrainingSet], rate: float
) -> list[Teacher]:
    """The teachers after their training, all of as many steps, by Adam; each as if alone."""
    layers = game.discriminator.layers
    flat = torch.stack([teacher.flat for teacher in teachers])
    first = torch.stack([teacher.first for teacher in teachers])
    second = torch.stack([teacher.second for teacher in teachers])
    taken = torch.tensor([[float(teacher.steps)] for teacher in teachers])
    for step in range(len(training_sets[0].real)):
        weights = gan.leaves(flat, layers)
        # A teacher's loss has weight 1, however many stand beside it.
        gradients = torch.autograd.grad(_losses(game, weights, training_sets, step).sum(), weights)
        slope = gan.flatten(gradients)
        taken = taken + 1
        first = BETAS[0] * first + (1 - BETAS[0]) * slope
        second = BETAS[1] * second + (1 - BETAS[1]) * slope.square()
        mean, spread = first / (1 - BETAS[0] ** taken), second / (1 - BETAS[1] ** taken)
        flat = flat - rate * mean / (spread.sqrt() + _TINY)
    return [Teacher(flat[i], first[i], second[i], int(taken[i])) for i in range(len(teachers))]


def _losses(
    game: Game, weights: list[Tensor], training_sets: Sequence[TrainingSet], step: int
) -> Tensor:
    """The logistic loss of every teacher, [teachers], on records as real and on generated ones."""
    total = torch.zeros(len(training_sets))
    for real in (True, False):
        rows, labels = [], []
        for own_set in training_sets:
            at = (own_set.real if real else own_set.fake)[step]
            rows.append((own_set.records if real else own_set.fakes)[at])
            known = own_set.labels if real else own_set.fake_labels
            if known is not None:
                labels.append(known[at])
        stacked = torch.stack(rows)
        cells = game.dense(stacked.flatten(0, 1)).view(*stacked.shape[:2], -1)
        logits = adversarial.conditional_logits(
            game.discriminator.logits(weights, cells), torch.stack(labels) if labels else None
        )
        total = total + adversarial.adversarial_losses(logits, real, "logistic").mean(1)
    return total
