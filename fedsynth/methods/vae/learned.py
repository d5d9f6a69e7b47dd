"""What a fit of FedVAE leaves behind, and the rows that it draws; all of it is post-processing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray

from fedsynth.codec import GIVEN
from fedsynth.data.images import Images
from fedsynth.encoding import image
from fedsynth.encoding.resolution import undivided_remarks
from fedsynth.encoding.table import TableEncoding
from fedsynth.errors import ReleaseError
from fedsynth.marginals import tell_empty
from fedsynth.methods.sampling.drawing import Columns, draw_table
from fedsynth.methods.sampling.labels import demand_shares, draw_codes, draw_labels
from fedsynth.methods.vae.coupling import Potential, draw_anew
from fedsynth.methods.vae.mending import mend_codes
from fedsynth.methods.vae.numbers import Numbers
from fedsynth.methods.vae.records import Model
from fedsynth.models import vae
from fedsynth.schema import ImageSchema, Schema
from fedsynth.schema.target import conditions, target_index
from fedsynth.views import Outlined

Floats = NDArray[np.float32]

_ROWS = 1_000
"""Drawn to see how many numbers lie beyond their bounds."""


@dataclass(frozen=True, repr=False)
class Learned(Outlined):
    """What a fit leaves behind, all of it released or computed from released values.

    Attributes:
        model: the VAE's spec, and how many stand side by side.
        theta: decoder weights of all parts.
        frequencies: estimated share of each class, [classes]; empty without classes.
        encoding: bins of a table; None for images.
        schema: of the rows.
        potentials: by which drawn columns are led to go together; none where nothing tells.
        left_out: what was not asked, in sentences.
    """

    model: Model
    theta: Floats
    frequencies: NDArray[np.float64]
    encoding: TableEncoding | None
    schema: Annotated[Schema | ImageSchema, GIVEN]
    potentials: tuple[Potential, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What could not be learned, and what drawn rows are not, in sentences."""
        numbers = self._numbers
        if numbers is None:
            told = undivided_remarks(self.encoding)
            return (*told, *self.left_out, *self._empty_remarks())
        rng, generator = np.random.default_rng(0), torch.Generator().manual_seed(0)
        labels = draw_labels(self.schema, self.frequencies, _ROWS, None, None, rng)
        drawn = self._decode(labels, _ROWS, generator)
        told = undivided_remarks(self.encoding, scaled=True)
        return (*told, *numbers.remarks(drawn))

    @property
    def _numbers(self) -> Numbers | None:
        """How rows are made of what the decoder draws; None of images, and where all are codes."""
        return Numbers(self.encoding) if self.encoding and self.model.spec.numbers else None

    def _empty_remarks(self) -> list[str]:
        never = [(one.clique, one.never) for one in self.potentials if one.never.any()]
        if not never or not isinstance(self.schema, Schema):
            return []
        names = [column.name for column in self.schema.modelled]
        if self.model.labelled:
            names.remove(str(self.schema.target))
        return [
            "combinations of values that released counts show next to nobody in are hardly ever "
            f"drawn: {tell_empty(never, names)}"
        ]

    def check(self) -> None:
        if self.theta.shape != (self.model.parts * self.model.spec.decoder_dim,):
            raise ReleaseError("the model's weights are not of the length that its spec says")
        if not np.isfinite(self.theta).all():
            raise ReleaseError("the model's weights are not all numbers")
        demand_shares(self.frequencies, conditions(self.schema))
        if (self.encoding is None) != isinstance(self.schema, ImageSchema):
            raise ReleaseError("the model's encoding is not of the schema's kind")
        for one in self.potentials:
            one.check(self.model.spec)
        numbers, spec = self._numbers, self.model.spec
        if numbers is not None:
            sizes = numbers.sizes
            if self.model.labelled:
                sizes = sizes[: numbers.target] + sizes[numbers.target + 1 :]
            if (spec.numbers, spec.sizes) != (len(numbers.numeric), sizes):
                raise ReleaseError("the model's networks are not of its encoding's columns")

    def draw(
        self,
        rows: int,
        where: Mapping[str, Any] | None,
        proportions: Mapping[Any, float] | None,
        seed: int | None,
    ) -> pd.DataFrame | Images:
        """Rows whose condition on the target is met exactly, and not by rejection."""
        numbers = self._numbers
        if numbers is not None and isinstance(self.schema, Schema):
            draw_numbers = partial(self._draw_numbers, numbers)
            given = self.frequencies, rows, where, proportions, seed
            return draw_table(self.schema, *given, draw_numbers)
        rng = np.random.default_rng(seed)
        labels = draw_labels(self.schema, self.frequencies, rows, where, proportions, rng)
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        fixed = bool(where or proportions)
        if isinstance(self.schema, ImageSchema):
            drawn, labels = self._draw(labels, rows, fixed, generator, rng)
            return Images(image.decode(drawn, self.schema), labels)
        assert self.encoding is not None
        place = 0 if labels is None else target_index(self.schema)

        def draw(at: NDArray[np.intp]) -> NDArray[np.int64]:
            own = labels if labels is None else labels[at]
            drawn, own = self._draw(own, len(at), fixed, generator, rng)
            codes = drawn.astype(np.int64)
            return codes if own is None else np.insert(codes, place, own, axis=1)

        codes = draw(np.arange(rows))
        if self.schema.rules:
            codes = mend_codes(self.encoding, codes, draw, rng, fixed=fixed)
        return self.encoding.decode(codes, rng)

    def _draw_numbers(
        self,
        numbers: Numbers,
        labels: NDArray[np.int64] | None,
        rows: int,
        rng: np.random.Generator,
    ) -> Columns:
        """Columns of rows with given labels: see :data:`fedsynth.methods.sampling.drawing.Draw`."""
        generator = torch.Generator().manual_seed(int(rng.integers(2**62)))
        return numbers.columns(self._decode(labels, rows, generator), labels, rng)

    def _draw(
        self,
        labels: NDArray[np.int64] | None,
        rows: int,
        fixed: bool,
        generator: torch.Generator,
        rng: np.random.Generator,
    ) -> tuple[NDArray[Any], NDArray[np.int64] | None]:
        """Records without the target's column, and labels: those, or if not `fixed` better ones."""
        drawn = self._decode(labels, rows, generator)
        if self.model.spec.classifier_weight and not fixed:
            labels = self._classify(drawn, rng)
        return drawn, labels

    def _classify(self, drawn: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
        """A label for each drawn record, from the auxiliary classifier's probabilities.

        The decoder's classes tell columns and label apart one by one; the classifier weighs all
        columns together, so rows labelled by it teach other classifiers more.
        """
        theta = torch.from_numpy(self.theta)
        chances = vae.classify(self.model.spec, theta, torch.from_numpy(drawn)).double().numpy()
        return draw_codes(chances, rng)

    def _decode(
        self, labels: NDArray[np.int64] | None, rows: int, generator: torch.Generator
    ) -> NDArray[Any]:
        """Numbers and codes without the target's column, or pixel intensities, [rows, ...]."""
        model, theta = self.model, torch.from_numpy(self.theta)
        if model.parts == 1:
            classes = None
            if model.spec.classes and labels is not None:
                classes = torch.from_numpy(labels)
            anew = None
            if self.potentials:
                anew = partial(draw_anew, model.spec.sizes, self.potentials)
            drawn = vae.sample(model.spec, theta, classes, generator, rows, anew)
            return np.asarray(drawn.numpy())
        assert labels is not None
        codes = model.spec.table and not model.spec.numbers
        records = np.zeros((rows, model.spec.columns), np.int32 if codes else np.float32)
        for part in np.unique(labels):
            at = labels == part
            weights = model.decoder_part(theta, int(part))
            records[at] = vae.sample(model.spec, weights, None, generator, int(at.sum())).numpy()
        return records
