"""The student: a classifier that learns from released votes alone."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.methods.pate.denoising import Smoother
from fedsynth.methods.pate.inputs import Inputs, standardise
from fedsynth.methods.pate.settings import Labels
from fedsynth.methods.sampling.classifier import Classifier, one_thread
from fedsynth.models import mlp
from fedsynth.models.adam import Adam
from fedsynth.queries.votes import Votes

Floats = NDArray[np.float64]

_STEPS, _BATCH = 2_000, 128
_LEARNING_RATE, _DECAY = 1e-3, 1e-2
# Of the moving average of the weights.
_AVERAGE = 0.01


def train(
    inputs: Inputs, queries: Floats, votes: Votes, others: Floats, labels: Labels, seed: int
) -> Classifier:
    """The student.

    Args:
        queries: rows [Q, width] that were voted on.
        others: rows [n, width] that were not, but look like them.
        labels: denoised shares, of all rows; or the class of most noisy votes, of the queries.
    """
    standards = inputs.standards(queries)
    if labels == "argmax":
        rows, targets = queries, np.eye(inputs.classes)[votes.counts.argmax(axis=1)]
    else:
        rows = np.concatenate([queries, others])
        targets = Smoother.fit(queries, votes, standards).shares(rows)
    return distil(rows, targets, standards, seed)


def distil(rows: Floats, wanted: Floats, standards: tuple[Floats, Floats], seed: int) -> Classifier:
    """A classifier whose probabilities are near the wanted ones in squares (the Brier score).

    Args:
        rows: [n, width].
        wanted: [n, classes], each row summing to 1.
        standards: mean and scale of the inputs.
    """
    start = Classifier.initial(*standards, wanted.shape[1], seed=seed)
    weights = [torch.from_numpy(w.copy()).requires_grad_() for w in start.weights]
    average = [w.detach().clone() for w in weights]
    x = torch.from_numpy(standardise(rows, *standards).astype(np.float32))
    targets = torch.from_numpy(wanted.astype(np.float32))
    source = torch.Generator().manual_seed(seed)
    optimiser = Adam(weights, _LEARNING_RATE, decay=_DECAY)
    with one_thread():
        for _ in range(_STEPS):
            at = torch.randint(len(x), (_BATCH,), generator=source)
            predicted = mlp.forward(weights, x[at]).softmax(1)
            loss = ((predicted - targets[at]) ** 2).sum(1).mean()
            optimiser.step(torch.autograd.grad(loss, weights))
            with torch.no_grad():
                for mean, new in zip(average, weights, strict=True):
                    mean.lerp_(new, _AVERAGE)
    return Classifier(start.mean, start.scale, tuple(w.numpy() for w in average))
