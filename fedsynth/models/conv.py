"""The paper's image networks (paper 001, section 4.4.3), for one model.

Activations lie with their channels innermost: oneDNN's convolutions are several times faster on
that layout, and one model after another is several times faster than all as a grouped convolution.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional

from fedsynth.models import mlp

_KERNEL = 3
_ENCODER_STRIDES = (2, 2, 2)
_DECODER_STRIDES = (1, 1, 2, 2, 1)


def encode(
    weights: Sequence[Tensor], pixels: Tensor, shape: Sequence[int], tape: mlp.Tape | None = None
) -> Tensor:
    """Three convolutions with stride 2 and a dense layer.

    Args:
        weights: matrices [out, in * 9] and biases [out] in turn, then the dense layer's.
        pixels: images [b, height * width * channels], channels innermost.
        shape: height, width and channels, the last optional.
        tape: if given, records what gradients by factors need.

    Returns:
        Outputs [b, 2 * latent].
    """
    height, width = shape[:2]
    x = pixels.view(len(pixels), height, width, _inputs(weights[0])).permute(0, 3, 1, 2)
    for stride, weight, bias in zip(_ENCODER_STRIDES, weights[:6:2], weights[1:6:2], strict=True):
        kernel = weight.view(len(weight), _inputs(weight), _KERNEL, _KERNEL)
        outputs = functional.conv2d(x, kernel, bias, stride, padding=1)
        if tape is not None:
            tape.record(x, outputs, partial(_convolution_factors, stride=stride))
        x = mlp.rectify(outputs)
    return mlp.forward(weights[6:], x.permute(0, 2, 3, 1).flatten(1), tape)


def decode(
    weights: Sequence[Tensor], inputs: Tensor, shape: Sequence[int], tape: mlp.Tape | None = None
) -> Tensor:
    """A dense layer to a quarter of the image's sides, and five transposed convolutions.

    Args:
        weights: the dense layer's matrix and bias, then [out, in * 9] and [out] in turn.
        inputs: latent vectors and one-hot labels [b, latent + classes].
        shape: height, width and channels, the last optional.
        tape: if given, records what gradients by factors need.

    Returns:
        Logits [b, height * width * channels].
    """
    x = mlp.forward(weights[:2], inputs, tape).clamp(min=0.0)
    height, width = shape[0] // 4, shape[1] // 4
    x = x.view(len(x), height, width, _inputs(weights[2])).permute(0, 3, 1, 2)
    for stride, weight, bias in zip(_DECODER_STRIDES, weights[2::2], weights[3::2], strict=True):
        kernel = weight.view(len(weight), _inputs(weight), _KERNEL, _KERNEL).transpose(0, 1)
        outputs = functional.conv_transpose2d(
            x, kernel, bias, stride, padding=1, output_padding=stride - 1
        )
        if tape is not None:
            tape.record(x, outputs, partial(_transposed_factors, stride=stride))
        x = mlp.rectify(outputs)
    return mlp.bound(outputs).permute(0, 2, 3, 1).flatten(1)


def _inputs(weight: Tensor) -> int:
    return weight.shape[-1] // _KERNEL**2


def _convolution_factors(gradient: Tensor, inputs: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    patches = functional.unfold(inputs, _KERNEL, padding=1, stride=stride)
    return _as_factors(gradient.flatten(2) @ patches.mT, gradient)


def _transposed_factors(gradient: Tensor, inputs: Tensor, stride: int) -> tuple[Tensor, Tensor]:
    patches = functional.unfold(gradient, _KERNEL, padding=1, stride=stride)
    matrices = patches @ inputs.flatten(2).mT
    matrices = (
        matrices.view(*gradient.shape[:2], _KERNEL**2, inputs.shape[1]).transpose(2, 3).flatten(2)
    )
    return _as_factors(matrices, gradient)


def _as_factors(matrices: Tensor, gradient: Tensor) -> tuple[Tensor, Tensor]:
    # A convolution's gradient is a sum of outer products, one a pixel: its factor is all of it.
    joined = torch.cat([matrices, gradient.flatten(2).sum(-1, keepdim=True)], dim=-1).flatten(1)
    return joined.new_ones(len(joined), 1), joined
