"""A trained classifier gone on with at one owner, on its own rows, which stays with that owner.

The rounds' weights are released, so what an owner does with them at home asks nobody and costs
nothing. By itself it is the fine-tuning of adapFL (Sáinz-Pardo Díaz 2025, Algorithm 7); with
`proximal` it descends along a client's objective in Ditto (Li et al. 2021, "Ditto: fair and robust
federated learning through personalization", equation 1), at the weights that the rounds end with
and not beside each round.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedsynth.data.conforming import Conformed
from fedsynth.data.images import Images
from fedsynth.errors import ConfigError
from fedsynth.methods.classifier.learned import Learned
from fedsynth.models.classifier import losses
from fedsynth.views import Said, Shown, View


class Predicting(Protocol):
    """What :class:`~fedsynth.FederatedClassifier` predicts by."""

    def predict_proba(self, data: pd.DataFrame | Images) -> NDArray[np.float64]: ...

    def predict(self, data: pd.DataFrame | Images) -> NDArray[Any]: ...

    def score(self, data: pd.DataFrame | Images) -> float: ...


@dataclass(frozen=True)
class Tuning:
    """How an owner goes on: passes over its rows, rows of a step, the rate of its SGD, and the
    weight of half the squared distance from where it began in its loss."""

    epochs: int
    batch_size: int
    learning_rate: float
    proximal: float


class PersonalClassifier(Shown):
    """What an owner made of a released classifier: as private as its rows.

    No budget covers it, so it can be neither released nor saved; `predict`, `predict_proba` and
    `score` are those of :class:`~fedsynth.FederatedClassifier`.
    """

    def __init__(self, model: Predicting, rows: int) -> None:
        self._model, self.rows = model, rows

    def predict_proba(self, data: pd.DataFrame | Images) -> NDArray[np.float64]:
        """Of every class, float64 [n, classes]."""
        return self._model.predict_proba(data)

    def predict(self, data: pd.DataFrame | Images) -> NDArray[Any]:
        """The likeliest of the target's values for every row, [n]."""
        return self._model.predict(data)

    def score(self, data: pd.DataFrame | Images) -> float:
        """The share of labelled rows that :meth:`predict` names right."""
        return self._model.score(data)

    def _view(self) -> View:
        told = f"Fine-tuned on {self.rows:,} rows of one owner: as private as they are."
        return View("Personal classifier", [Said(told, "caution")])


def fine_tune(
    learned: Learned, own: Conformed | Images, how: Tuning, seed: int
) -> NDArray[np.float32]:
    """The weights [dim] that an owner's SGD ends with.

    Raises:
        ConfigError: they are no numbers any more.
    """
    features, network = learned.model.features, learned.model.network
    start = torch.from_numpy(learned.weights.copy())
    weights, x = start.clone(), torch.from_numpy(features.vectors(own))
    y = torch.from_numpy(features.labels(own))
    rng = np.random.default_rng(seed)
    for _ in range(how.epochs):
        order = torch.from_numpy(rng.permutation(len(y)))
        for at in torch.split(order, how.batch_size):
            moving = weights.requires_grad_()
            logits = network.answers(moving, x[at])
            (slope,) = torch.autograd.grad(losses(logits, y[at]).mean(), moving)
            weights = weights.detach()
            weights = weights - how.learning_rate * (slope + how.proximal * (weights - start))
    if not torch.isfinite(weights).all():
        raise ConfigError("learning_rate: the weights grew beyond all numbers; take a smaller one")
    return np.asarray(weights.numpy(), np.float32)
