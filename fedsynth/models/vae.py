"""Variational autoencoders as functions of flat parameter vectors (paper 001, section 4.3)."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from fedsynth.models import likelihood, mlp
from fedsynth.models.spec import VAESpec

__all__ = [
    "VAESpec",
    "decode",
    "initial",
    "loss",
    "probabilities",
    "record_gradients",
    "sample",
    "unflatten",
]

# Beyond this a record's gradient has overflowed or soon would; squares and products stay finite.
GRADIENT_BOUND = 1e8
_SAMPLE_CHUNK = 8192


def unflatten(flat: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Views of a flat vector [..., sum of products of shapes] as weights [..., *shape]."""
    parts = torch.split(flat, [math.prod(shape) for shape in shapes], dim=-1)
    return [part.view(*part.shape[:-1], *shape) for part, shape in zip(parts, shapes, strict=True)]


def initial(
    spec: VAESpec, generator: torch.Generator, output_logits: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Draws weights uniformly within +-1/sqrt(fan in), torch's own rule for its layers.

    Args:
        spec: the model.
        generator: the only source of randomness.
        output_logits: what the decoder starts from. With a label bias: [classes, width], such as
            log-probabilities of each class, instead of zeros. Without: [width], which replaces the
            output layer's bias ("mlp" only).

    Returns:
        Float32 vectors phi [encoder_dim] and theta [decoder_dim].
    """
    phi = _drawn(spec.encoder_shapes, generator)
    shapes = spec.decoder_shapes
    theta = _drawn(shapes[:-1] if spec.label_bias else shapes, generator)
    if spec.label_bias:
        logits = torch.zeros(spec.classes, spec.width) if output_logits is None else output_logits
        theta = torch.cat([theta, logits.float().T.flatten()])
    elif output_logits is not None:
        unflatten(theta, shapes)[-1][:, -1] = output_logits
    return phi, theta


def _drawn(shapes: Sequence[tuple[int, ...]], generator: torch.Generator) -> Tensor:
    parts, scale = [], 1.0
    for shape in shapes:
        if len(shape) == 2:
            scale = (shape[1] - 1) ** -0.5
        elif len(shape) == 4:
            scale = math.prod(shape[1:]) ** -0.5
        parts.append((2 * torch.rand(math.prod(shape), generator=generator) - 1) * scale)
    return torch.cat(parts)


def dense_input(spec: VAESpec, x: Tensor) -> Tensor:
    """Records as the networks see them: codes [..., d] or pixels [..., width] to [..., width]."""
    return likelihood.one_hot(x, spec.sizes) if spec.sizes else x.float()


def dense_labels(spec: VAESpec, y: Tensor | None, like: Tensor) -> Tensor:
    """Labels as one-hot rows [..., classes], for records or latent vectors `like` [..., k]."""
    if spec.classes == 0:
        return like.new_zeros(*like.shape[:-1], 0)
    if y is None:
        raise ValueError(f"the model is conditioned on {spec.classes} classes; labels are needed")
    return likelihood.one_hot_labels(y, spec.classes)


def loss(
    spec: VAESpec, phi: Tensor, theta: Tensor, x: Tensor, y: Tensor | None, noise: Tensor
) -> Tensor:
    """Negative evidence lower bound of each record, in nats.

    Args:
        spec: the model.
        phi: encoder weights [encoder_dim].
        theta: decoder weights [decoder_dim].
        x: codes, integers [b, d], or pixels in [0, 1], [b, width].
        y: labels [b], or None for a model without classes.
        noise: standard normal draws [b, latent], for the reparametrised posterior sample.

    Returns:
        Reconstruction + kl_weight * KL, at most `spec.bound`, [b]; finite for finite parameters.
    """
    cells = dense_input(spec, x)
    encoder = unflatten(phi, spec.encoder_shapes)
    decoder = unflatten(theta, spec.decoder_shapes)
    return negative_elbo(spec, encoder, decoder, cells, dense_labels(spec, y, cells), noise)


def negative_elbo(
    spec: VAESpec,
    encoder: Sequence[Tensor],
    decoder: Sequence[Tensor],
    cells: Tensor,
    labels: Tensor,
    noise: Tensor,
    tape: mlp.Tape | None = None,
) -> Tensor:
    """`loss` on weights, dense records and one-hot labels, for one model or many stacked."""
    mean, spread = mlp.forward(encoder, cells, tape).chunk(2, dim=-1)
    log_variance = spread.clamp(-likelihood.LOG_VARIANCE_BOUND, likelihood.LOG_VARIANCE_BOUND)
    u = mean + (0.5 * log_variance).exp() * noise
    logits = decode_dense(spec, decoder, u, labels, tape)
    if spec.sizes:
        reconstruction = likelihood.table_loss(logits, cells, spec.sizes)
    else:
        reconstruction = likelihood.image_loss(logits, cells)
    total = reconstruction + spec.kl_weight * likelihood.gaussian_kl(mean, log_variance)
    return total.clamp(max=spec.bound)


def decode_dense(
    spec: VAESpec,
    decoder: Sequence[Tensor],
    u: Tensor,
    labels: Tensor,
    tape: mlp.Tape | None = None,
) -> Tensor:
    """Logits [..., width] of latent vectors [..., latent] and one-hot labels [..., classes]."""
    layers = decoder[:-1] if spec.label_bias else decoder
    logits = mlp.forward(layers, torch.cat([u, labels], dim=-1), tape)
    if not spec.label_bias:
        return logits
    direct = labels @ decoder[-1].mT
    if tape is not None:
        tape.record(labels, direct)
    return logits + mlp.bounded(direct)


def decode(spec: VAESpec, theta: Tensor, u: Tensor, y: Tensor | None) -> Tensor:
    """Logits [b, width] of latent vectors u [b, latent] and labels y [b] (None without classes)."""
    decoder = unflatten(theta, spec.decoder_shapes)
    return decode_dense(spec, decoder, u, dense_labels(spec, y, u))


def probabilities(spec: VAESpec, logits: Tensor) -> Tensor:
    """Softmax within each column of a table, or the sigmoid of each pixel: [..., width]."""
    return likelihood.table_probabilities(logits, spec.sizes) if spec.sizes else logits.sigmoid()


def sample(
    spec: VAESpec,
    theta: Tensor,
    y: Tensor | None,
    generator: torch.Generator,
    rows: int | None = None,
) -> Tensor:
    """Draws records: u from N(0, I), the label given, through the decoder.

    Args:
        spec: the model.
        theta: decoder weights [decoder_dim].
        y: labels [n], one for each record; None for a model without classes.
        generator: the only source of randomness.
        rows: how many records, for a model without classes.

    Returns:
        Codes, int32 [n, d], or pixel means in [0, 1], float32 [n, width].

    Raises:
        ValueError: if neither labels nor a number of rows say how many.
    """
    if y is None and rows is None:
        raise ValueError("give labels, or for a model without classes the number of rows")
    total = len(y) if y is not None else rows or 0
    parts = []
    with torch.no_grad():
        for start in range(0, max(total, 1), _SAMPLE_CHUNK):
            count = min(_SAMPLE_CHUNK, total - start)
            u = torch.randn(count, spec.latent, generator=generator, device=theta.device)
            labels = None if y is None else y[start : start + count]
            logits = decode(spec, theta, u, labels)
            if spec.sizes:
                parts.append(likelihood.draw_codes(logits, spec.sizes, generator))
            else:
                parts.append(logits.sigmoid())
    return torch.cat(parts)


def record_gradients(
    spec: VAESpec, phi: Tensor, theta: Tensor, x: Tensor, y: Tensor | None, noise: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Each record's gradient of `loss`, as factors: one pair a layer, encoder's first.

    A record's gradient with respect to a layer's matrix is `outer(left, right)`; all of them,
    flattened and joined, are its gradient with respect to `[phi, theta]`.

    Args:
        spec: an "mlp" model.
        phi: encoder weights [encoder_dim].
        theta: decoder weights [decoder_dim].
        x: codes [b, d] or pixels [b, width].
        y: labels [b], or None for a model without classes.
        noise: standard normal draws [b, latent].

    Returns:
        Pairs (left [b, out], right [b, in + 1]), the constant one last; for a label bias
        (left [b, width], right [b, classes]). Entries are within +-1e8, NaN as 0, so a record
        whose gradient overflows float32 stays finite.
    """
    cells = dense_input(spec, x)
    encoder = unflatten(phi.detach(), spec.encoder_shapes)
    decoder = unflatten(theta.detach(), spec.decoder_shapes)
    tape = mlp.Tape()
    with torch.enable_grad():
        losses = negative_elbo(
            spec, encoder, decoder, cells, dense_labels(spec, y, cells), noise, tape
        )
        lefts = torch.autograd.grad(losses.sum(), tape.outputs)
    pairs = zip(lefts, tape.inputs, strict=True)
    return [(_finite(left).cpu(), right.detach().cpu()) for left, right in pairs]


def _finite(gradient: Tensor) -> Tensor:
    return gradient.clamp_(-GRADIENT_BOUND, GRADIENT_BOUND).nan_to_num_(nan=0.0)
