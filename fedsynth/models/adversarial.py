"""Discriminators: which of their logits count, losses, gradient penalty, gradients of records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from fedsynth.models import mlp
from fedsynth.models.vae import make_finite

Loss = Literal["logistic", "wasserstein"]


class Network(Protocol):
    """From records [b, width] to logits [b, outputs]; the tape notes what factors need."""

    def logits(
        self, weights: Sequence[Tensor], cells: Tensor, tape: mlp.Tape | None = None
    ) -> Tensor: ...


def conditional_logits(logits: Tensor, labels: Tensor | None) -> Tensor:
    """A logit [b] of each record: the first one, and where labels are given those of them added.

    A head for each class beside one for all (after Miyato and Koyama 2018, "cGANs with projection
    discriminator").

    Args:
        logits: [..., b, 1 + classes].
        labels: [..., b], or [..., b, several].
    """
    if labels is None:
        return logits[..., 0]
    indices = labels.unsqueeze(-1) if labels.dim() < logits.dim() else labels
    return logits[..., 0] + logits.gather(-1, indices + 1).sum(-1)


def adversarial_losses(logits: Tensor, real: bool, loss: Loss) -> Tensor:
    """A discriminator's loss on each record: that it takes for real, or for generated.

    The generator's, which wants its own taken for real, is that of real ones: non-saturating
    (Goodfellow et al. 2014) or Wasserstein (Arjovsky et al. 2017).
    """
    signed = -logits if real else logits
    return functional.softplus(signed) if loss == "logistic" else signed


def gradient_penalty(
    discriminate: Callable[[Tensor], Tensor], cells: Tensor, bound: float = 1.0
) -> Tensor:
    """Mean squared excess of a logit's gradient norm over ``bound``, at records [..., b, width].

    The one-sided gradient penalty (Gulrajani et al. 2017; Petzka et al. 2018). At generated records
    it depends on no real one.
    """
    at = cells.detach().requires_grad_()
    (slopes,) = torch.autograd.grad(discriminate(at).sum(), at, create_graph=True)
    norms = (slopes.square().sum(-1) + 1e-12).sqrt()
    return (norms - bound).clamp(min=0).square().mean(-1)


def record_gradients(
    network: Network, weights: Sequence[Tensor], cells: Tensor, loss: Callable[[Tensor], Tensor]
) -> list[tuple[Tensor, Tensor]]:
    """Each record's gradient of its loss, as factors (left, right), one pair a layer.

    A record's gradient of a layer's matrix, bias last, is ``outer(left, right)``; a convolution's
    is written out (left is one). See :func:`fedsynth.models.vae.record_gradients`.

    Args:
        weights: matrices and biases in turn.
        cells: records [b, width].
        loss: from logits [b, outputs] to losses [b], each of its own record alone.
    """
    tape = mlp.Tape()
    with torch.enable_grad():
        fixed = [weight.detach() for weight in weights]
        losses = loss(network.logits(fixed, cells, tape))
        lefts = torch.autograd.grad(losses.sum(), tape.outputs)
    steps = zip(tape.rules, lefts, tape.inputs, strict=True)
    return [rule(make_finite(gradient), inputs) for rule, gradient, inputs in steps]
