"""Adjust a decoder's label bias until its classes have given one-way distributions."""

from __future__ import annotations

import torch
from torch import Tensor

from fedsynth.models import vae
from fedsynth.models.spec import VAESpec

_DRAWS = 4096
# Probabilities in memory at once: 128 MB.
_CELLS = 2**25
_STEPS = 20
_DAMPING = 0.8
_FLOOR = 1e-7


def match_profiles(
    spec: VAESpec, theta: Tensor, profiles: Tensor, generator: torch.Generator
) -> Tensor:
    """Move the label bias so that decoded columns, given a class, are distributed as `profiles`.

    Iterative proportional fitting of the output biases over a fixed sample of latent vectors: each
    step adds the log ratio of wanted to decoded probability.

    Args:
        spec: a model with a label bias.
        theta: decoder weights [decoder_dim].
        profiles: wanted probabilities [classes, width], each column's part summing to 1.
        generator: the only source of randomness.

    Returns:
        Decoder weights [decoder_dim] that differ from `theta` in the label bias alone.

    Raises:
        ValueError: the model has no label bias.
    """
    if not spec.label_bias:
        raise ValueError("only a model with a label bias can be matched to class profiles")
    adjusted = theta.clone()
    bias = adjusted[spec.label_bias_at].view(spec.width, spec.classes)
    draws = max(1, min(_DRAWS, _CELLS // spec.width))
    u = torch.randn(draws, spec.latent, generator=generator)
    target = profiles.float().clamp_min(_FLOOR)
    with torch.no_grad():
        for label in range(spec.classes):
            logits = vae.decode(spec, adjusted, u, torch.full((draws,), label))
            shift = torch.zeros(spec.width)
            for _ in range(_STEPS):
                decoded = vae.probabilities(spec, logits + shift).mean(0)
                ratio = target[label] / decoded.clamp_min(_FLOOR)
                shift += _DAMPING * ratio.log().clamp(-2, 2)
            bias[:, label] += shift
    return adjusted
