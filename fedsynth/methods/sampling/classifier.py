"""The classifier of paper 004: two hidden layers of 100, on standardised inputs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fedsynth.errors import ReleaseError
from fedsynth.models import mlp
from fedsynth.models.adam import Adam

HIDDEN = (100, 100)
LEARNING_RATE = 1e-3
_EPOCHS, _LEAST_STEPS = 20, 500
# A heavy-tailed feature may put a row hundreds of deviations out; it need not steer every weight.
_FARTHEST = 10.0
# A softmax with this lead is 1 in float64.
_CERTAIN = 1e3
_CHUNK = 8192

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network and the standardisation of its inputs.

    Attributes:
        mean, scale: of the inputs, float64 [width]; scale positive. A standardised input beyond
            +-10 counts as +-10.
        weights: matrices float32 [out, in] and biases [out] in turn, for layers of 100, 100 and
            `classes` outputs.
    """

    mean: Floats
    scale: Floats
    weights: tuple[NDArray[np.float32], ...]

    @property
    def width(self) -> int:
        """Inputs."""
        return len(self.mean)

    @property
    def classes(self) -> int:
        return len(self.weights[-1])

    @staticmethod
    def size(width: int, classes: int) -> int:
        """Length of :meth:`to_vector`."""
        return 2 * width + sum(rows * (columns + 1) for rows, columns in _shapes(width, classes))

    @staticmethod
    def initial(mean: Floats, scale: Floats, classes: int, *, seed: int) -> Classifier:
        """Weights drawn uniformly within +-1/sqrt(inputs of the layer), torch's own rule."""
        generator = torch.Generator().manual_seed(seed)
        weights: list[NDArray[np.float32]] = []
        for rows, columns in _shapes(len(mean), classes):
            reach = max(1, columns) ** -0.5
            for shape in ((rows, columns), (rows,)):
                drawn = 2 * torch.rand(shape, generator=generator) - 1
                weights.append((drawn * reach).numpy())
        return Classifier(np.asarray(mean, np.float64), np.asarray(scale, np.float64), (*weights,))

    @staticmethod
    def train(
        x: Floats,
        y: NDArray[np.int64],
        classes: int,
        *,
        seed: int,
        epochs: int | None = None,
        batch: int = 128,
        start: Classifier | None = None,
    ) -> Classifier:
        """Fit by Adam on the cross-entropy, on one thread.

        Args:
            x: inputs, finite, [n, width].
            y: labels [n] from 0 to `classes` - 1.
            epochs: passes over the rows; by default 20, and as many as make 500 steps.
            batch: rows in a step.
            start: a classifier of the same shape to go on from, with its standardisation; by
                default a new one, standardised by `x`.

        Returns:
            The classifier. Without `start`, a constant answer where all rows are of one class, and
            equal probabilities where there are no rows; with `start`, that itself without rows.
        """
        model = start
        if model is None:
            if len(present := np.unique(y)) < 2:
                return _constant(x, present, classes)
            model = Classifier.initial(*standardisation(x), classes, seed=seed)
        if not len(y):
            return model
        steps = -(-len(y) // batch)
        passes = max(_EPOCHS, -(-_LEAST_STEPS // steps)) if epochs is None else epochs
        with one_thread():
            weights = [torch.from_numpy(w.copy()).requires_grad_() for w in model.weights]
            _descend(weights, model._standardise(x), torch.from_numpy(y), passes, batch, seed)  # noqa: SLF001
        trained = tuple(w.detach().numpy() for w in weights)
        return Classifier(model.mean, model.scale, trained)

    def probabilities(self, x: Floats) -> Floats:
        """Of every class, float64 [n, classes], rows summing to 1. `x` is [n, width], finite."""
        weights = [torch.from_numpy(w) for w in self.weights]
        probabilities = np.zeros((len(x), self.classes))
        with one_thread(), torch.no_grad():
            for at in range(0, len(x), _CHUNK):
                scores = mlp.forward(weights, self._standardise(x[at : at + _CHUNK]))
                probabilities[at : at + _CHUNK] = torch.softmax(scores.double(), 1).numpy()
        return probabilities

    def to_vector(self) -> Floats:
        """Standardisation and weights in one float64 vector of :meth:`size` numbers."""
        parts = [self.mean, self.scale, *(w.ravel() for w in self.weights)]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])

    @staticmethod
    def from_vector(vector: Floats, width: int, classes: int) -> Classifier:
        """The inverse of :meth:`to_vector`.

        Raises:
            ReleaseError: a vector of another length, not finite, or with a scale that is none.
        """
        if vector.shape != (Classifier.size(width, classes),):
            raise ReleaseError(
                f"a classifier of {width} inputs and {classes} classes is a vector of "
                f"{Classifier.size(width, classes)} numbers, not {list(vector.shape)}"
            )
        scale = vector[width : 2 * width]
        if not np.isfinite(vector).all() or not (scale > 0).all():
            raise ReleaseError("a classifier's vector must be finite, and its scales positive")
        weights: list[NDArray[np.float32]] = []
        at = 2 * width
        for rows, columns in _shapes(width, classes):
            for shape in ((rows, columns), (rows,)):
                stop = at + int(np.prod(shape))
                weights.append(vector[at:stop].reshape(shape).astype(np.float32))
                at = stop
        return Classifier(vector[:width].copy(), scale.copy(), tuple(weights))

    def _standardise(self, x: Floats) -> Tensor:
        z = np.clip((x - self.mean) / self.scale, -_FARTHEST, _FARTHEST)
        return torch.from_numpy(z.astype(np.float32))


def standardisation(x: Floats) -> tuple[Floats, Floats]:
    """Mean and standard deviation of every column, [width] each; 1 where a column is constant."""
    if not len(x):
        return np.zeros(x.shape[1]), np.ones(x.shape[1])
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    # A constant column's deviation is a rounding error of its mean, not always 0.
    constant = deviation <= 1e-9 * np.maximum(np.abs(mean), 1e-30)
    return mean, np.where(constant, 1.0, deviation)


@contextmanager
def one_thread() -> Iterator[None]:
    """Torch on one thread: products this small are slower on several."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _shapes(width: int, classes: int) -> list[tuple[int, int]]:
    """(outputs, inputs) of every layer."""
    return list(zip((*HIDDEN, classes), (width, *HIDDEN), strict=True))


def _constant(x: Floats, present: NDArray[np.int64], classes: int) -> Classifier:
    mean, scale = standardisation(x)
    weights = [
        np.zeros(shape, np.float32)
        for rows, columns in _shapes(x.shape[1], classes)
        for shape in ((rows, columns), (rows,))
    ]
    weights[-1][present] = _CERTAIN
    return Classifier(mean, scale, tuple(weights))


def _descend(
    weights: list[Tensor], x: Tensor, y: Tensor, epochs: int, batch: int, seed: int
) -> None:
    """Adam over shuffled batches; the weights are changed in place."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = Adam(weights, LEARNING_RATE)
    for _ in range(epochs):
        for rows in torch.split(torch.randperm(len(y), generator=generator), batch):
            loss = functional.cross_entropy(mlp.forward(weights, x[rows]), y[rows])
            optimiser.step(torch.autograd.grad(loss, weights))
