"""Generators and scoring networks of generative adversarial networks, over flat weight vectors.

A record is a vector of *cells*: the intensities of an image in [0, 1]; or for a table a number in
[-1, 1] for every number and one cell for each category, one-hot. A *scorer* maps cells to logits: a
discriminator (Goodfellow et al. 2014) and a classifier are both one. Nothing normalises over a
batch, so a record's gradient depends on no other record.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any, Literal

import torch
from torch import Tensor
from torch.nn import functional

from fedsynth.models import conv, mlp
from fedsynth.models.cells import UPSAMPLING, Cells
from fedsynth.models.likelihood import one_hot_labels
from fedsynth.models.spec import Layer
from fedsynth.models.vae import unflatten

Kind = Literal["mlp", "conv", "quadratic"]
GeneratorKind = Literal["mlp", "conv", "residual"]

# Kernel of the generator's transposed convolutions: a multiple of their stride of 2 paints pixels
# equally often (Odena et al. 2016, "Deconvolution and checkerboard artifacts").
_KERNEL = 4
_DOWNSAMPLING = 8
# Of the softmax through which gradients of drawn categories pass (Jang et al. 2017).
_TEMPERATURE = 0.5
# Cells generated at once: 32 MB.
_CELLS = 2**23


@dataclass(frozen=True)
class Scorer:
    """A network from a record to logits.

    Attributes:
        cells: what it sees.
        kind: "mlp" (dense ReLU layers); "conv" (three convolutions with stride 2); or "quadratic":
            the only logit is half the sum of squared projections of the record, every other one
            negative.
        outputs: logits.
        hidden: widths of the dense hidden layers, channels of the three convolutions, or the number
            of projections.
    """

    cells: Cells
    kind: Kind
    outputs: int
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == "conv" and len(self.hidden) != 3:
            raise ValueError("a scorer of convolutions needs the channels of three")
        if self.kind == "quadratic" and (len(self.hidden), self.outputs) != (1, 1):
            raise ValueError("a quadratic scorer has one logit and a number of projections")

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The affine maps in the order of the flat vector."""
        if self.kind == "mlp":
            return _dense(self.cells.width, *self.hidden, self.outputs)
        if self.kind == "quadratic":
            return (Layer(self.hidden[0], self.cells.width, bias=False),)
        height, width = (-(-side // _DOWNSAMPLING) for side in self.cells.shape[:2])
        channels = (self.cells.channels, *self.hidden)
        kernels = [Layer(b, 9 * a) for a, b in pairwise(channels)]
        return (*kernels, *_dense(channels[-1] * height * width, self.outputs))

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return sum(layer.size for layer in self.layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, without the cells; :meth:`from_dict` gives the same network back."""
        return {"kind": self.kind, "outputs": self.outputs, "hidden": list(self.hidden)}

    @staticmethod
    def from_dict(cells: Cells, plain: Mapping[str, Any]) -> Scorer:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        hidden = tuple(int(width) for width in plain["hidden"])
        return Scorer(cells, plain["kind"], int(plain["outputs"]), hidden)

    def logits(
        self, weights: Sequence[Tensor], cells: Tensor, tape: mlp.Tape | None = None
    ) -> Tensor:
        """Logits [b, outputs] of records [b, width]; the tape notes what factors need.

        Dense networks may be several side by side: weights, records and logits then have a leading
        axis.
        """
        if self.kind == "conv":
            return conv.encode(weights, cells, self.cells.shape, tape)
        if self.kind == "quadratic":
            projected = functional.linear(cells, weights[0])
            if tape is not None:
                tape.record(cells, projected, lambda gradient, inputs: (gradient, inputs))
            return (projected.square() @ signs_of(len(weights[0])) / 2)[:, None]
        return mlp.forward(weights, cells, tape)


def signs_of(units: int) -> Tensor:
    """Of the projections of a quadratic scorer [units]: plus and minus in turn."""
    return 1.0 - 2.0 * (torch.arange(units) % 2)


@dataclass(frozen=True)
class Generator:
    """A network from a standard normal vector, and perhaps a label, to a record.

    Attributes:
        cells: what it draws.
        kind: "mlp"; or "residual": what goes into a dense hidden layer goes beside its output into
            the next (Xu et al. 2019, CTGAN, without its normalisation over batches), so the last
            layer sees the label too; or "conv": a dense layer and two transposed convolutions
            (after Radford et al. 2016, likewise).
        latent: length of the normal vector, at least 1.
        classes: labels that it is conditioned on, of which a record may have several; 0 for none.
        hidden: widths of the hidden layers; of a "conv" generator its channels, twice as many after
            the dense layer as after the first convolution.
    """

    cells: Cells
    kind: GeneratorKind
    latent: int
    classes: int = 0
    hidden: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        if self.kind == "conv" and len(self.hidden) != 1:
            raise ValueError("a generator of convolutions needs one number of channels")

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The affine maps in the order of the flat vector."""
        inputs = self.latent + self.classes
        if self.kind == "mlp":
            return _dense(inputs, *self.hidden, self.cells.width)
        if self.kind == "residual":
            seen = list(accumulate((inputs, *self.hidden)))
            return tuple(
                Layer(outputs, width)
                for outputs, width in zip((*self.hidden, self.cells.width), seen, strict=True)
            )
        (width,) = self.hidden
        channels = (2 * width, width, self.cells.channels)
        kernels = [Layer(b, _KERNEL**2 * a) for a, b in pairwise(channels)]
        return (*_dense(inputs, 2 * width * math.prod(self._quarter)), *kernels)

    @property
    def dim(self) -> int:
        """Length of the flat vector."""
        return sum(layer.size for layer in self.layers)

    @property
    def _quarter(self) -> tuple[int, ...]:
        return tuple(side // UPSAMPLING for side in self.cells.shape[:2])

    def to_dict(self) -> dict[str, Any]:
        """JSON-able, without the cells; :meth:`from_dict` gives the same network back."""
        return {
            "kind": self.kind,
            "latent": self.latent,
            "classes": self.classes,
            "hidden": list(self.hidden),
        }

    @staticmethod
    def from_dict(cells: Cells, plain: Mapping[str, Any]) -> Generator:
        """Raises KeyError, TypeError or ValueError for what :meth:`to_dict` does not give."""
        return Generator(
            cells,
            plain["kind"],
            int(plain["latent"]),
            int(plain["classes"]),
            tuple(int(width) for width in plain["hidden"]),
        )

    def scores(self, weights: Sequence[Tensor], latent: Tensor, labels: Tensor | None) -> Tensor:
        """What cells are drawn from, [rows, width]: logits of categories and of pixels.

        Args:
            latent: standard normal vectors [rows, latent].
            labels: [rows], or [rows, several] where a record has several; of a conditional one.
        """
        inputs = latent
        if self.classes:
            assert labels is not None
            inputs = torch.cat([inputs, multi_hot(labels, self.classes)], dim=1)
        return self._outputs(weights, inputs)

    def sample_records(self, scores: Tensor, source: torch.Generator) -> Tensor:
        """Records [rows, width] of scores, through which gradients reach these.

        Categories are drawn and one-hot; their gradient is that of a softmax (the straight-through
        estimator).

        Args:
            source: of the drawn categories.
        """
        return scores.sigmoid() if self.cells.shape else self._sample_cells(scores, source)

    def draw(
        self,
        weights: Sequence[Tensor],
        latent: Tensor,
        labels: Tensor | None,
        source: torch.Generator,
    ) -> Tensor:
        """Records [rows, width]: :meth:`sample_records` of :meth:`scores`."""
        return self.sample_records(self.scores(weights, latent, labels), source)

    def sample(
        self, weights: Sequence[Tensor], labels: Tensor | None, rows: int, source: torch.Generator
    ) -> Tensor:
        """Records [rows, width] without gradients, in chunks that fit in memory."""
        chunk = max(1, _CELLS // self.cells.width)
        parts = []
        with torch.no_grad():
            for at in range(0, max(rows, 1), chunk):
                chunk_labels = None if labels is None else labels[at : at + chunk]
                latent = torch.randn(min(chunk, rows - at), self.latent, generator=source)
                parts.append(self.draw(weights, latent, chunk_labels, source))
        return torch.cat(parts)

    def _outputs(self, weights: Sequence[Tensor], inputs: Tensor) -> Tensor:
        if self.kind == "mlp":
            return mlp.forward(weights, inputs)
        if self.kind == "residual":
            for weight, bias in zip(weights[:-2:2], weights[1:-2:2], strict=True):
                hidden = mlp.rectify(functional.linear(inputs, weight, bias))
                inputs = torch.cat([inputs, hidden], dim=1)
            return mlp.bound(functional.linear(inputs, *weights[-2:]))
        x = mlp.rectify(mlp.forward(weights[:2], inputs))
        height, width = self._quarter
        # Channels innermost: see models.conv.
        x = x.view(len(x), height, width, -1).permute(0, 3, 1, 2)
        for weight, bias in zip(weights[2::2], weights[3::2], strict=True):
            kernel = weight.view(len(weight), -1, _KERNEL, _KERNEL).transpose(0, 1)
            outputs = functional.conv_transpose2d(x, kernel, bias, stride=2, padding=1)
            x = mlp.rectify(outputs)
        return mlp.bound(outputs).permute(0, 2, 3, 1).flatten(1)

    def _sample_cells(self, outputs: Tensor, source: torch.Generator) -> Tensor:
        parts = torch.split(outputs, [max(1, size) for size in self.cells.columns], dim=1)
        race = torch.empty_like(outputs).exponential_(generator=source).clamp_min_(1e-20).log()
        races = torch.split(race, [part.shape[1] for part in parts], dim=1)
        drawn = [
            _categories(part - own) if size else part.tanh()
            for part, own, size in zip(parts, races, self.cells.columns, strict=True)
        ]
        return torch.cat(drawn, dim=1)


def _categories(scores: Tensor) -> Tensor:
    soft = (scores / _TEMPERATURE).softmax(-1)
    hard = torch.zeros_like(soft).scatter_(1, soft.argmax(1, keepdim=True), 1.0)
    return hard + (soft - soft.detach())


def _dense(*widths: int) -> tuple[Layer, ...]:
    return tuple(Layer(outputs, inputs) for inputs, outputs in pairwise(widths))


def initial(layers: Sequence[Layer], source: torch.Generator) -> Tensor:
    """A flat vector: weights uniform within +-sqrt(3 / inputs), biases 0 (LeCun et al. 1998)."""
    parts = []
    for layer in layers:
        drawn = (2 * torch.rand(layer.outputs, layer.inputs, generator=source) - 1) * math.sqrt(
            3 / max(1, layer.inputs)
        )
        parts.append(functional.pad(drawn, (0, 1)).flatten())
    return torch.cat(parts)


def leaves(flat: Tensor, layers: Sequence[Layer]) -> list[Tensor]:
    """Matrices and biases in turn, each a tensor of its own that gradients are asked of."""
    return [part.detach().clone().requires_grad_() for part in unflatten(flat, layers)]


def flatten(weights: Sequence[Tensor]) -> Tensor:
    """The inverse of :func:`leaves`; of several networks side by side [networks, dim]."""
    pairs = zip(weights[::2], weights[1::2], strict=True)
    return torch.cat([torch.cat([m, b[..., None]], -1).flatten(-2) for m, b in pairs], -1).detach()


def multi_hot(labels: Tensor, classes: int) -> Tensor:
    """One-hot rows [rows, classes] of labels [rows], or their sums for [rows, several]."""
    if labels.dim() == 1:
        return one_hot_labels(labels, classes)
    return torch.zeros(len(labels), classes).scatter_(1, labels, 1.0)
