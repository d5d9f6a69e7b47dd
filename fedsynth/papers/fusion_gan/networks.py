"""The networks of a client, and its message: generator, classifier, how many rows of each class."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from fedsynth.data.images import Images
from fedsynth.data.tables import Conformed
from fedsynth.encoding import image
from fedsynth.methods.sampling.intervals import Encoding, cells_of
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions

Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Networks:
    """What the server announces: everybody's networks have the same shapes.

    Attributes:
        generator: draws records; conditional if it has classes.
        discriminator: first logit real or not; if conditional, a further one for every class.
        classifier: a logit for every class; None for data without classes.
    """

    generator: Generator
    discriminator: Scorer
    classifier: Scorer | None

    @staticmethod
    def of(settings: FusionGANSettings, schema: Schema | ImageSchema) -> Networks:
        """The networks of resolved settings."""
        cells, classes = cells_of(schema), conditions(schema)
        known = classes if settings.conditional else 0
        kind = settings.architecture or "mlp"
        hidden = settings.hidden or ()
        generator = Generator(cells, kind, settings.latent, known, hidden)
        discriminator = Scorer(cells, kind, 1 + known, settings.discriminator_hidden or ())
        classifier = None
        if classes:
            classifier = Scorer(cells, kind, classes, settings.classifier_hidden or ())
        return Networks(generator, discriminator, classifier)

    @property
    def classes(self) -> int:
        """Of the labels; 0 without."""
        return self.classifier.outputs if self.classifier else 0

    @property
    def conditional(self) -> bool:
        return self.generator.classes > 0

    @property
    def classifier_dim(self) -> int:
        return self.classifier.dim if self.classifier else 0

    @property
    def counts_dim(self) -> int:
        """One count a class, or one of all rows."""
        return max(1, self.classes)

    @property
    def dim(self) -> int:
        """Length of a message."""
        return self.generator.dim + self.classifier_dim + self.counts_dim

    def message(
        self, generator: torch.Tensor, classifier: torch.Tensor | None, counts: NDArray[np.floating]
    ) -> NDArray[np.float64]:
        """A message [dim] of flat weights and counts."""
        parts = [generator.numpy(), *([] if classifier is None else [classifier.numpy()]), counts]
        return np.concatenate([np.asarray(part, np.float64) for part in parts])

    def parts(self, messages: NDArray[np.float64]) -> tuple[Floats, Floats, NDArray[np.float64]]:
        """Generators [k, .], classifiers [k, .] and counts [k, counts_dim] of messages [k, dim]."""
        stops = [self.generator.dim, self.generator.dim + self.classifier_dim]
        first, second, counts = np.split(messages, stops, axis=1)
        return first.astype(np.float32), second.astype(np.float32), counts

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; :meth:`from_dict` gives the same networks back."""
        return {
            **self.generator.cells.to_dict(),
            "generator": self.generator.to_dict(),
            "discriminator": self.discriminator.to_dict(),
            "classifier": None if self.classifier is None else self.classifier.to_dict(),
        }

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Networks:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        cells, classifier = Cells.from_dict(plain), plain["classifier"]
        return Networks(
            Generator.from_dict(cells, plain["generator"]),
            Scorer.from_dict(cells, plain["discriminator"]),
            None if classifier is None else Scorer.from_dict(cells, classifier),
        )


@dataclass(frozen=True)
class Records:
    """Records as networks see them: cells float32 [n, width], labels int64 [n] or None."""

    x: torch.Tensor
    y: torch.Tensor | None

    def __len__(self) -> int:
        return len(self.x)

    def take(self, rows: torch.Tensor) -> Records:
        return Records(self.x[rows], None if self.y is None else self.y[rows])


def records_of(
    data: Conformed | Images, rows: NDArray[np.int64], schema: Schema | ImageSchema
) -> Records:
    """The rows of a client's data. A record's cells depend on no other record."""
    if isinstance(schema, ImageSchema):
        assert isinstance(data, Images)
        images = data.take(rows)
        y = None if images.labels is None else torch.from_numpy(images.labels)
        return Records(torch.from_numpy(image.encode(images, schema)), y)
    assert isinstance(data, Conformed)
    taken = {name: values[rows] for name, values in data.columns.items()}
    y = torch.from_numpy(taken[str(schema.target)]) if conditions(schema) else None
    return Records(torch.from_numpy(Encoding(schema).encode(taken)), y)
