"""Images as models take them, and the student network as a scikit-learn estimator."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin

from fedsynth.evaluation.reading.labelled import Labelled
from fedsynth.schema import ImageSchema

if TYPE_CHECKING:
    import torch


def flatten(pixels: NDArray[np.uint8], maximum: int) -> NDArray[np.float32]:
    """Pixels [n, height, width(, channels)] as rows [n, channels x height x width] in [0, 1]."""
    scaled = np.divide(np.minimum(pixels, maximum), maximum, dtype=np.float32)
    if scaled.ndim == 4:
        scaled = scaled.transpose(0, 3, 1, 2)
    return scaled.reshape(len(scaled), -1)


def shape_of(schema: ImageSchema) -> tuple[int, int, int]:
    """Channels, height and width."""
    height, width, channels = (*schema.shape, 1)[:3]
    return channels, height, width


class StudentNetwork(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """The student network for images of Margaritis (paper 001), of any width.

    Args:
        shape: channels, height and width, of which rows are the pixels in [0, 1].
        maps, hidden: of the convolution, and units of the dense layer behind it.
        epochs, batch, learning_rate, weight_decay: see
            :class:`fedsynth.evaluation.models.students.Training`.
        random_state: seed of weights and batches.
    """

    def __init__(
        self,
        shape: tuple[int, int, int] = (1, 28, 28),
        maps: int = 32,
        hidden: int = 100,
        epochs: int = 5,
        batch: int = 64,
        learning_rate: float = 1e-3,
        weight_decay: float = 0.0,
        random_state: int = 0,
    ) -> None:
        self.shape = shape
        self.maps = maps
        self.hidden = hidden
        self.epochs = epochs
        self.batch = batch
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state

    def fit(self, x: NDArray[np.floating[Any]], y: NDArray[Any]) -> StudentNetwork:
        """Train on rows [n, pixels] and their labels [n]."""
        import torch

        from fedsynth.evaluation.models.students import ImageStudent, Training, train_net

        self.classes_, codes = np.unique(y, return_inverse=True)
        generator = torch.Generator().manual_seed(self.random_state)
        self.net_: torch.nn.Module = ImageStudent(
            self.shape, len(self.classes_), generator, self.maps, self.hidden
        )
        training = Training(self.epochs, self.batch, self.learning_rate, self.weight_decay)
        labelled = Labelled(self._images(x), codes.astype(np.int64), len(self.classes_))
        train_net(self.net_, labelled, generator, training)
        return self

    def predict_proba(self, x: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
        """Probabilities [n, classes] of rows [n, pixels], in the order of `classes_`."""
        from fedsynth.evaluation.models.students import answers_of

        if len(self.classes_) == 1:
            return np.ones((len(x), 1))
        return answers_of(self.net_, self._images(x))

    def predict(self, x: NDArray[np.floating[Any]]) -> NDArray[Any]:
        """The likeliest label of each row."""
        return np.asarray(self.classes_[self.predict_proba(x).argmax(axis=1)])

    def _images(self, x: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        return np.asarray(x, np.float32).reshape(len(x), *self.shape)
