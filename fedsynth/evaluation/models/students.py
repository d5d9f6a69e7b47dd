"""The student networks of Margaritis (paper 001), section 4.4.3: trained on synthetic rows, scored
on real ones.

Images: convolution 3x3 to 32 maps, max pooling 2x2, dense 100, dense C. Tables: dense 1024 ReLU,
dropout .25, dense 1024 sigmoid, dropout .4, dense C. The paper names no optimiser; these are
trained by Adam on the cross-entropy of a softmax, in the image net with ReLU.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from fedsynth.data.tables import Images
from fedsynth.errors import ConfigError
from fedsynth.evaluation.reading.labelled import Labelled, features_of, label_features
from fedsynth.evaluation.reading.scores import Scores, answer_always, score
from fedsynth.models.adam import Adam
from fedsynth.models.allocating import allocate
from fedsynth.schema import Boolean, Categorical, ImageSchema, Schema

_CHUNK = 2000
_ONE_HOT_LIMIT = 255


@dataclass(frozen=True)
class Training:
    """How a student learns: passes over the rows, rows in a step, Adam's step size, and by what
    share of it weights shrink a step (Loshchilov and Hutter, Decoupled Weight Decay)."""

    epochs: int = 5
    batch: int = 64
    learning_rate: float = 1e-3
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if min(self.epochs, self.batch) < 1 or not self.learning_rate > 0:
            raise ConfigError("a student needs epochs, a batch and a learning rate above 0")


DEFAULT = Training()


def train_on_synthetic(
    synthetic: pd.DataFrame | Images,
    real_test: pd.DataFrame | Images,
    schema: Schema | ImageSchema,
    seed: int = 0,
    training: Training = DEFAULT,
    layers: int = 1,
) -> Scores:
    """Scores on real rows of the student network trained on synthetic ones.

    The paper reports `accuracy` for images and `f1_positive` for Epilepsy. `layers`: convolutions
    of an image student, 1 (the paper's) or 2.

    Raises:
        ConfigError: the schema has no target of categories.
        DataError: data that do not fit the schema, are empty or carry no labels.
    """
    made = label_features(synthetic, schema, "synthetic")
    test = label_features(real_test, schema, "real test")
    if isinstance(schema, Schema):
        probabilities = table_probabilities(made, test.x, schema, seed, training)
    else:
        probabilities = image_probabilities(made, test.x, seed, training, layers)
    return score(probabilities, test.y)


def image_probabilities(
    train: Labelled,
    x: NDArray[np.floating],
    seed: int = 0,
    training: Training = DEFAULT,
    layers: int = 1,
) -> NDArray[np.float64]:
    """Class probabilities [n, classes] of images float32 [n, channels, height, width] in [0, 1]."""
    generator = torch.Generator().manual_seed(seed)
    _, channels, height, width = train.x.shape
    student = ImageStudent((channels, height, width), train.classes, generator, layers=layers)
    train_net(student, train, generator, training)
    return _probabilities(student, train, x)


def image_classifier(
    train: Labelled, seed: int = 0, training: Training = DEFAULT
) -> Callable[[NDArray[np.floating]], NDArray[np.int64]]:
    """A function from images float32 [n, channels, height, width] to the classes [n] that a student
    trained once says.

    It takes images one by one: in a batch, rounding makes an image's answer depend on the others.
    """
    generator = torch.Generator().manual_seed(seed)
    _, channels, height, width = train.x.shape
    student = ImageStudent((channels, height, width), train.classes, generator)
    only = int(train.y[0]) if len(np.unique(train.y)) == 1 else None
    train_net(student, train, generator, training)

    def answers(x: NDArray[np.floating]) -> NDArray[np.int64]:
        if only is not None:
            return np.full(len(x), only, np.int64)
        inputs = torch.as_tensor(x, dtype=torch.float32)
        with torch.no_grad():
            said = [int(student(one[None], None).argmax()) for one in inputs]
        return np.array(said, np.int64)

    return answers


def table_probabilities(
    train: Labelled,
    x: NDArray[np.floating],
    schema: Schema,
    seed: int = 0,
    training: Training = DEFAULT,
) -> NDArray[np.float64]:
    """Class probabilities [n, classes] of rows float64 [n, d] as `Labelled` holds them."""
    return table_classifier(train, schema, seed, training)(x)


def table_classifier(
    train: Labelled, schema: Schema, seed: int = 0, training: Training = DEFAULT
) -> Callable[[NDArray[np.floating]], NDArray[np.float64]]:
    """A function from rows float64 [n, d] to the class probabilities [n, classes] that a student
    trained once gives."""
    generator = torch.Generator().manual_seed(seed)
    as_inputs = _scaling(train.x, schema)
    inputs = as_inputs(train.x)
    student = TableStudent(inputs.shape[1], train.classes, generator)
    scaled = Labelled(inputs, train.y, train.classes)
    train_net(student, scaled, generator, training)
    return lambda x: _probabilities(student, scaled, as_inputs(x))


class ImageStudent(nn.Module):
    """Logits [b, classes] from images [b, channels, height, width], height and width at least 4;
    the paper's with 32 maps and 100 hidden units.

    With two layers, on 10x10 pixels at least, 16 maps and again 32 of those, each pooled.
    """

    def __init__(
        self,
        shape: tuple[int, int, int],
        classes: int,
        generator: torch.Generator,
        maps: int = 32,
        hidden: int = 100,
        layers: int = 1,
    ) -> None:
        super().__init__()
        channels, height, width = shape
        least = {1: 4, 2: 10}[layers]
        if min(height, width) < least:
            raise ConfigError(
                f"the student network needs images of {least}x{least} pixels, not {height}x{width}"
            )
        steps = [channels, maps] if layers == 1 else [channels, maps // 2, maps]
        for _ in range(layers):
            height, width = (height - 2) // 2, (width - 2) // 2
        pooled = maps * height * width
        self.convolutions = nn.ModuleList(
            nn.Conv2d(inner, outer, 3, device="meta") for inner, outer in pairwise(steps)
        )
        self.hidden = nn.Linear(pooled, hidden, device="meta")
        self.output = nn.Linear(hidden, classes, device="meta")
        _initialise(self, generator)

    def forward(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        for convolution in self.convolutions:
            # Pooling before ReLU gives the same values from a quarter of the work.
            x = functional.relu(functional.max_pool2d(convolution(x), 2))
        logits: Tensor = self.output(functional.relu(self.hidden(x.flatten(1))))
        return logits


class TableStudent(nn.Module):
    """Logits [b, classes] from inputs [b, width]; without a generator nothing is dropped."""

    def __init__(self, width: int, classes: int, generator: torch.Generator) -> None:
        super().__init__()
        self.first = nn.Linear(width, 1024, device="meta")
        self.second = nn.Linear(1024, 1024, device="meta")
        self.output = nn.Linear(1024, classes, device="meta")
        _initialise(self, generator)

    def forward(self, x: Tensor, generator: torch.Generator | None) -> Tensor:
        hidden = _drop(functional.relu(self.first(x)), 0.25, generator)
        hidden = _drop(torch.sigmoid(self.second(hidden)), 0.4, generator)
        logits: Tensor = self.output(hidden)
        return logits


def _initialise(net: nn.Module, generator: torch.Generator) -> None:
    """Glorot uniform weights and zero biases, drawn from the generator alone.

    Layers made on the meta device have drawn nothing from torch's global generator.
    """
    allocate(net)
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            nn.init.zeros_(parameter)
        else:
            nn.init.xavier_uniform_(parameter, generator=generator)


def _drop(x: Tensor, rate: float, generator: torch.Generator | None) -> Tensor:
    """Dropout by a generator of our own, which torch's layer does not take."""
    if generator is None:
        return x
    return x * (torch.rand(x.shape, generator=generator) >= rate) / (1 - rate)


def train_net(
    student: nn.Module, train: Labelled, generator: torch.Generator, training: Training
) -> None:
    """Fit the student, unless all labels are the same."""
    if len(np.unique(train.y)) == 1:
        return
    inputs, labels = torch.as_tensor(train.x, dtype=torch.float32), torch.as_tensor(train.y)
    weights = list(student.parameters())
    optimiser = Adam(weights, training.learning_rate, decay=training.weight_decay)
    for _ in range(training.epochs):
        for batch in torch.split(torch.randperm(len(labels), generator=generator), training.batch):
            loss = functional.cross_entropy(student(inputs[batch], generator), labels[batch])
            optimiser.step(torch.autograd.grad(loss, weights))


def _probabilities(
    student: nn.Module, train: Labelled, tests: NDArray[np.floating]
) -> NDArray[np.float64]:
    """A student's answers; the one label of `train` if there is only one."""
    if len(np.unique(train.y)) == 1:
        return answer_always(int(train.y[0]), len(tests), train.classes)
    return answers_of(student, tests)


def answers_of(student: nn.Module, tests: NDArray[np.floating]) -> NDArray[np.float64]:
    """A trained student's class probabilities [n, classes] of its inputs [n, ..]."""
    with torch.no_grad():
        chunks = torch.split(torch.as_tensor(tests, dtype=torch.float32), _CHUNK)
        parts = [student(chunk, None).softmax(dim=1) for chunk in chunks]
    return torch.cat(parts).numpy().astype(np.float64)


def _scaling(
    x: NDArray[np.floating], schema: Schema
) -> Callable[[NDArray[np.floating]], NDArray[np.float32]]:
    """Numbers to mean 0 and deviation 1 as in `x`, a gap to 0 and a flag; categories one-hot."""
    columns = features_of(schema)

    def as_inputs(rows: NDArray[np.floating]) -> NDArray[np.float32]:
        parts = []
        for j, column in enumerate(columns):
            size = len(column.categories) if isinstance(column, Categorical | Boolean) else 0
            if 0 < size <= _ONE_HOT_LIMIT:
                parts.append(rows[:, j, None] == np.arange(size))
                continue
            known = x[~np.isnan(x[:, j]), j]
            mean, deviation = (known.mean(), known.std()) if len(known) else (0.0, 0.0)
            scaled = (rows[:, j] - mean) / (deviation or 1.0)
            parts.append(np.nan_to_num(scaled)[:, None])
            if column.missing or len(known) < len(x):
                parts.append(np.isnan(rows[:, j, None]))
        return np.concatenate(parts, axis=1).astype(np.float32)

    return as_inputs
