"""What a variational autoencoder is: its sizes, and how its weights lie in flat vectors."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import Any, Literal

from fedsynth.models import mlp

# Pixels of the decoder's first feature map, per side of the image, and of the encoder's last.
_UPSAMPLING = 4
_DOWNSAMPLING = 8
# Of a number some 45 deviations off: what is merely rare still teaches.
_NUMBER_BOUND = 1000.0


@dataclass(frozen=True)
class Layer:
    """One affine map: in a flat vector a matrix [outputs, inputs + 1], its bias the last column.

    A convolution is the affine map of its patches: `inputs` is input channels times 3 times 3, in
    that order. A map without bias is a matrix [outputs, inputs].
    """

    outputs: int
    inputs: int
    bias: bool = True

    @property
    def columns(self) -> int:
        """Columns of the matrix, the bias included."""
        return self.inputs + self.bias

    @property
    def size(self) -> int:
        """Entries of the matrix."""
        return self.outputs * self.columns


@dataclass(frozen=True)
class VAESpec:
    """A VAE for tables or for images in [0, 1] (paper 001, section 4.4.3).

    A table has `numbers`, `sizes` or both; an image a `shape`. The encoder sees the record alone;
    the decoder sees `[u, onehot(y)]`, u in R^latent (paper 001, Algorithm 6).

    Attributes:
        kind: "mlp" (dense ReLU layers) or "conv" (the paper's image architecture).
        latent: size of the latent vector, at least 1.
        numbers: columns of a table that hold numbers, of about unit variance; they come first.
            Each is one linear output, the mean of a Gaussian; a gap is NaN and teaches nothing.
        sizes: codes of each further column of a table, each at least 1: a softmax each.
        shape: height and width of an image, and its channels where it has several.
        hidden: widths of the encoder's hidden layers; the decoder has them reversed. "mlp" only.
        classes: labels the decoder is conditioned on; 0 for none.
        activation: of the dense hidden layers.
        label_bias: adds a direct linear map from the one-hot label to the output logits.
        classifier_weight: if positive, an auxiliary linear classifier learns the label from the
            record in the same steps, its cross-entropy added to the loss with this weight; labels
            of synthetic records can then be drawn from it (as in Odena et al. 2017, AC-GAN).
        kl_weight: factor of the KL term, 0 to 1e6; 1 is the evidence lower bound.
        loss_bound: a record's loss in nats is clamped to this, and teaches nothing beyond it;
            None is ten times the loss of a uniform guess, and 1,000 nats for each number.
        sigma: standard deviation of the numbers' Gaussians, 0.01 to 100; None learns one for
            each and for each class.

    Raises:
        ValueError: if the fields contradict one another.
    """

    kind: Literal["mlp", "conv"]
    latent: int
    sizes: tuple[int, ...] = ()
    shape: tuple[int, ...] = ()
    hidden: tuple[int, ...] = ()
    classes: int = 0
    activation: mlp.Activation = "relu"
    label_bias: bool = False
    classifier_weight: float = 0.0
    kl_weight: float = 1.0
    loss_bound: float | None = None
    numbers: int = 0
    sigma: float | None = None

    def __post_init__(self) -> None:
        for name in ("sizes", "shape", "hidden"):
            object.__setattr__(self, name, tuple(int(size) for size in getattr(self, name)))
        self._check_sizes()
        if self.kind not in ("mlp", "conv"):
            raise ValueError(f"kind is {self.kind!r}; it must be 'mlp' or 'conv'")
        if self.kind == "conv":
            self._check_conv()
        if self.label_bias and self.classes == 0:
            raise ValueError("label_bias needs classes, and there are none")
        if not 0 <= self.classifier_weight <= 1e6:
            raise ValueError(
                f"classifier_weight is {self.classifier_weight}; it must be within 0 and 1e6"
            )
        if self.classifier_weight and self.classes == 0:
            raise ValueError("a classifier needs classes, and there are none")
        if not 0 <= self.kl_weight <= 1e6:
            raise ValueError(f"kl_weight is {self.kl_weight}; it must be within 0 and 1e6")
        if not self.bound > self.uniform_loss:
            raise ValueError(
                f"loss_bound is {self.bound:g} nats, and a uniform guess already costs "
                f"{self.uniform_loss:g}: nothing would ever be learned; raise it"
            )

    def _check_sizes(self) -> None:
        if self.table == bool(self.shape):
            raise ValueError("give either the sizes of a table's columns or an image's shape")
        if self.numbers < 0 or not (self.sigma is None or 0.01 <= self.sigma <= 100):
            raise ValueError("numbers must not be negative, and sigma lie within 0.01 and 100")
        if self.numbers and (self.label_bias or self.classifier_weight):
            raise ValueError("label_bias and classifier_weight are for codes, not for numbers")
        if self.shape and len(self.shape) not in (2, 3):
            raise ValueError(f"shape is {self.shape}; it must be height, width (and channels)")
        if min(*self.sizes, *self.shape, *self.hidden, self.latent, 1) < 1:
            raise ValueError("sizes, shape, hidden and latent must be positive")
        if self.classes < 0:
            raise ValueError(f"classes is {self.classes}; it must not be negative")

    def _check_conv(self) -> None:
        if not self.shape or self.hidden:
            raise ValueError("a conv model is for images and has no hidden layers to choose")
        if self.shape[0] % _UPSAMPLING or self.shape[1] % _UPSAMPLING:
            raise ValueError(f"an image of {self.shape} needs height and width divisible by 4")

    @property
    def table(self) -> bool:
        """Whether records are rows of a table."""
        return bool(self.numbers or self.sizes)

    @property
    def learns_deviations(self) -> bool:
        """Whether the deviations of numbers are the decoder's weights."""
        return bool(self.numbers) and self.sigma is None

    @property
    def columns(self) -> int:
        """Length of a record as it is given: numbers and codes, or pixels times channels."""
        return self.numbers + len(self.sizes) if self.table else self.width

    @property
    def width(self) -> int:
        """Length of a record as the networks see it: numbers and one-hot cells, or pixels."""
        return self.numbers + sum(self.sizes) if self.table else math.prod(self.shape)

    @property
    def uniform_loss(self) -> float:
        """Reconstruction loss, in nats, of a decoder that knows nothing.

        Of a number of unit variance, which has no least one, that of the mean and its deviation.
        """
        if self.table:
            return 0.5 * self.numbers + sum(math.log(size) for size in self.sizes)
        return self.width * math.log(2)

    @property
    def bound(self) -> float:
        """The largest loss of one record, in nats."""
        if self.loss_bound is not None:
            return self.loss_bound
        labels = self.classifier_weight * math.log(max(1, self.classes))
        return 10 * (self.uniform_loss + labels) + 1 + _NUMBER_BOUND * self.numbers

    @property
    def channels(self) -> int:
        """Channels of an image."""
        return self.shape[2] if len(self.shape) == 3 else 1

    @property
    def encoder_layers(self) -> tuple[Layer, ...]:
        """The encoder's affine maps in the order of its flat vector; two outputs a latent."""
        if self.kind == "mlp":
            return _dense(self.width, *self.hidden, 2 * self.latent)
        height, width = (-(-side // _DOWNSAMPLING) for side in self.shape[:2])
        kernels = _kernels(self.channels, 32, 64, 64)
        return (*kernels, *_dense(64 * height * width, 2 * self.latent))

    @property
    def decoder_layers(self) -> tuple[Layer, ...]:
        """The decoder's affine maps in the order of its flat vector.

        A label bias comes behind the networks' layers, then the auxiliary classifier; or the
        logarithms of the numbers' deviations, a column a class.
        """
        if self.learns_deviations:
            plain = _dense(self.latent + self.classes, *reversed(self.hidden), self.width)
            return (*plain, Layer(self.numbers, max(1, self.classes), bias=False))
        label = (Layer(self.width, self.classes, bias=False),) if self.label_bias else ()
        if self.classifier_weight:
            label = (*label, Layer(self.classes, self.width))
        inputs = self.latent + self.classes
        if self.kind == "mlp":
            return (*_dense(inputs, *reversed(self.hidden), self.width), *label)
        pixels = (self.shape[0] // _UPSAMPLING) * (self.shape[1] // _UPSAMPLING)
        kernels = _kernels(32, 32, 64, 64, 32, self.channels)
        return (*_dense(inputs, 32 * pixels), *kernels, *label)

    @property
    def label_bias_at(self) -> slice:
        """Where the label bias [width, classes] lies in the decoder's flat vector; or nowhere."""
        sizes = [layer.size for layer in self.decoder_layers]
        stop = sum(sizes[:-1]) if self.classifier_weight else sum(sizes)
        return slice(stop - self.width * self.classes if self.label_bias else stop, stop)

    @property
    def classifier_at(self) -> slice:
        """Where the classifier [classes, width + 1] lies in the decoder's vector; or nowhere."""
        return slice(self.label_bias_at.stop, self.decoder_dim)

    @property
    def encoder_dim(self) -> int:
        """Length of the encoder's flat vector, E."""
        return sum(layer.size for layer in self.encoder_layers)

    @property
    def decoder_dim(self) -> int:
        """Length of the decoder's flat vector, D."""
        return sum(layer.size for layer in self.decoder_layers)

    def to_dict(self) -> dict[str, Any]:
        """JSON-able; `from_dict` gives the same spec back."""
        return {key: list(v) if isinstance(v, tuple) else v for key, v in asdict(self).items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> VAESpec:
        """The inverse of `to_dict`.

        Raises:
            ValueError: if a key is unknown, one without a default is missing, or values contradict.
        """
        known = {field.name for field in fields(cls)}
        if not {"kind", "latent"} <= set(values) <= known:
            raise ValueError(f"a model's spec has the keys {sorted(known)}; found {sorted(values)}")
        return cls(**values)


def _dense(*widths: int) -> tuple[Layer, ...]:
    return tuple(Layer(outputs, inputs) for inputs, outputs in pairwise(widths))


def _kernels(*channels: int) -> tuple[Layer, ...]:
    return tuple(Layer(outputs, 9 * inputs) for inputs, outputs in pairwise(channels))
