"""Variational autoencoders as functions of flat parameter vectors (paper 001, section 4.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from fedsynth.models import conv, likelihood, mlp
from fedsynth.models.spec import Layer, VAESpec

__all__ = [
    "Layer",
    "VAESpec",
    "classify",
    "decode",
    "initial",
    "loss",
    "probabilities",
    "record_gradients",
    "sample",
    "unflatten",
]

Anew = Callable[[Tensor, Tensor, Tensor | None, torch.Generator], Tensor]
"""From drawn codes [n, d], their logits [n, width] and labels [n] to other codes."""

# Beyond this a record's gradient has overflowed or soon would; squares and products stay finite.
GRADIENT_BOUND = 1e8
# With activations within 1e4, sums over a layer's inputs stay far from float32's 3e38.
WEIGHT_BOUND = 1e28
# Logits decoded at once: 32 MB, be a table a dozen cells wide or a million.
_SAMPLE_CELLS = 2**23


def unflatten(flat: Tensor, layers: Sequence[Layer]) -> list[Tensor]:
    """A flat vector's weights [..., outputs, inputs] and biases [..., outputs] in turn.

    They are bounded by +-1e28, so that no forward pass over finite parameters meets a NaN.
    """
    weights = []
    for layer, part in zip(layers, torch.split(flat, [la.size for la in layers], -1), strict=True):
        matrix = part.view(*part.shape[:-1], layer.outputs, layer.columns)
        weights += [matrix[..., :-1], matrix[..., -1]] if layer.bias else [matrix]
    return [weight.clamp(-WEIGHT_BOUND, WEIGHT_BOUND) for weight in weights]


def initial(
    spec: VAESpec,
    generator: torch.Generator,
    output_logits: Tensor | None = None,
    classifier: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Draws weights uniformly within +-1/sqrt(fan in), torch's own rule for its layers.

    Deviations that are learned start as those of the numbers: 1.

    Args:
        spec: the model.
        generator: the only source of randomness.
        output_logits: what the decoder starts from. With a label bias: [classes, width], such as
            log-probabilities of each class, instead of zeros. Without: [width], which replaces the
            output layer's bias ("mlp" only).
        classifier: what the auxiliary classifier starts from, [classes, width + 1] with the bias
            last, instead of zeros.

    Returns:
        Float32 vectors phi [encoder_dim] and theta [decoder_dim].
    """
    phi = _draw_weights(spec.encoder_layers, generator)
    theta = _draw_weights(spec.decoder_layers, generator)
    if spec.learns_deviations:
        theta[-spec.decoder_layers[-1].size :] = 0.0
    bias, tail = theta[spec.label_bias_at], theta[spec.classifier_at]
    tail.copy_(torch.zeros_like(tail) if classifier is None else classifier.float().flatten())
    if spec.label_bias:
        logits = torch.zeros(spec.classes, spec.width) if output_logits is None else output_logits
        bias.copy_(logits.float().T.flatten())
    elif output_logits is not None:
        last = spec.decoder_layers[-2 if spec.classifier_weight else -1]
        stop = spec.label_bias_at.stop
        theta[stop - last.size : stop].view(-1, last.columns)[:, -1] = output_logits
    return phi, theta


def _draw_weights(layers: Sequence[Layer], generator: torch.Generator) -> Tensor:
    draws = [torch.rand(layer.size, generator=generator) for layer in layers]
    scales = [layer.inputs**-0.5 for layer in layers]
    return torch.cat([(2 * d - 1) * scale for d, scale in zip(draws, scales, strict=True)])


def dense_input(spec: VAESpec, x: Tensor) -> Tensor:
    """Records as the networks see them: rows [..., d] or pixels [..., width] to [..., width].

    A number that is a gap stays NaN.
    """
    if not spec.sizes:
        return x.float()
    cells = likelihood.one_hot(x[..., spec.numbers :], spec.sizes)
    return torch.cat([x[..., : spec.numbers], cells], dim=-1) if spec.numbers else cells


def check_records(spec: VAESpec, x: Tensor) -> None:
    """Raises ValueError if records have the wrong width, or codes lie outside their columns."""
    if x.dim() != 2 or x.shape[1] != spec.columns:
        shape, width = tuple(x.shape), spec.columns
        raise ValueError(f"records have the shape {shape}; it must be (rows, {width})")
    if spec.sizes and len(x):
        # A code too large would land in the next column's cells, and nothing would show it.
        codes = x[:, spec.numbers :]
        lowest, highest = codes.amin(0).tolist(), codes.amax(0).tolist()
        for column, size in enumerate(spec.sizes):
            if lowest[column] < 0 or highest[column] >= size:
                raise ValueError(f"column {column} has codes outside 0 to {size - 1}")


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
        x: numbers, NaN for gaps, and codes [b, d], or pixels in [0, 1], [b, width].
        y: labels [b], or None for a model without classes.
        noise: standard normal draws [b, latent], for the reparametrised posterior sample.

    Returns:
        Reconstruction + kl_weight * KL, and the auxiliary classifier's share, at most `spec.bound`,
        [b]; finite for finite parameters.
    """
    cells = dense_input(spec, x)
    encoder = unflatten(phi, spec.encoder_layers)
    decoder = unflatten(theta, spec.decoder_layers)
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
    numbers = cells[..., : spec.numbers]
    # A gap is seen as 0, the mean.
    cells = cells.nan_to_num(0.0) if spec.numbers else cells
    if spec.kind == "conv":
        posterior = conv.encode(encoder, cells, spec.shape, tape)
    else:
        posterior = mlp.forward(encoder, cells, tape, spec.activation)
    mean, spread = posterior.chunk(2, dim=-1)
    log_variance = spread.clamp(-likelihood.LOG_VARIANCE_BOUND, likelihood.LOG_VARIANCE_BOUND)
    u = mean + (0.5 * log_variance).exp() * noise
    logits = decode_dense(spec, decoder, u, labels, tape)
    total = spec.kl_weight * likelihood.gaussian_kl(mean, log_variance)
    if spec.shape:
        total = total + likelihood.image_loss(logits, cells)
    if spec.numbers:
        spread = log_deviations(spec, decoder, labels, tape)
        total = total + likelihood.number_loss(logits[..., : spec.numbers], numbers, spread)
    if spec.sizes:
        own = cells[..., spec.numbers :]
        total = total + likelihood.table_loss(logits[..., spec.numbers :], own, spec.sizes)
    if spec.classifier_weight:
        guess = mlp.affine(decoder[-2], decoder[-1], cells)
        if tape is not None:
            tape.record(cells, guess, mlp.dense_factors)
        surprise = -(mlp.bound(guess).log_softmax(-1) * labels).sum(-1)
        total = total + spec.classifier_weight * surprise
    return total.clamp(max=spec.bound)


def decode_dense(
    spec: VAESpec,
    decoder: Sequence[Tensor],
    u: Tensor,
    labels: Tensor,
    tape: mlp.Tape | None = None,
) -> Tensor:
    """Logits [..., width] of latent vectors [..., latent] and one-hot labels [..., classes].

    Of numbers they are the means.
    """
    decoder = decoder[:-2] if spec.classifier_weight else decoder
    layers = decoder[:-1] if spec.label_bias or spec.learns_deviations else decoder
    inputs = torch.cat([u, labels], dim=-1)
    if spec.kind == "conv":
        logits = conv.decode(layers, inputs, spec.shape, tape)
    else:
        logits = mlp.forward(layers, inputs, tape, spec.activation)
    if not spec.label_bias:
        return logits
    direct = labels @ decoder[-1].mT
    if tape is not None:
        tape.record(labels, direct, mlp.plain_factors)
    return logits + mlp.bound(direct)


def log_deviations(
    spec: VAESpec, decoder: Sequence[Tensor], labels: Tensor, tape: mlp.Tape | None = None
) -> Tensor:
    """Logarithms of the numbers' deviations: learned ones for each one-hot label
    [..., numbers], or the spec's own [1]."""
    if spec.sigma is not None:
        return labels.new_tensor([math.log(spec.sigma)])
    if not spec.classes:
        labels = labels.new_ones(*labels.shape[:-1], 1)
    spread = labels @ decoder[-1].mT
    if tape is not None:
        tape.record(labels, spread, mlp.plain_factors)
    return spread


def decode(spec: VAESpec, theta: Tensor, u: Tensor, y: Tensor | None) -> Tensor:
    """Logits [b, width] of latent vectors u [b, latent] and labels y [b] (None without classes)."""
    decoder = unflatten(theta, spec.decoder_layers)
    return decode_dense(spec, decoder, u, dense_labels(spec, y, u))


def classify(spec: VAESpec, theta: Tensor, x: Tensor) -> Tensor:
    """Probabilities [b, classes] of each record's label, by the auxiliary classifier.

    Args:
        spec: a model with a classifier.
        theta: decoder weights [decoder_dim].
        x: codes [b, d] or pixels [b, width].
    """
    if not spec.classifier_weight:
        raise ValueError("the model has no auxiliary classifier")
    weight, bias = unflatten(theta, spec.decoder_layers)[-2:]
    probabilities = []
    for piece in torch.split(x, max(1, _SAMPLE_CELLS // spec.width)):
        logits = mlp.affine(weight, bias, dense_input(spec, piece))
        probabilities.append(mlp.bound(logits).softmax(-1))
    return torch.cat(probabilities)


def probabilities(spec: VAESpec, logits: Tensor) -> Tensor:
    """Softmax within each column of codes, or the sigmoid of each pixel: [..., width]."""
    return likelihood.log_softmax(logits, spec.sizes).exp() if spec.table else logits.sigmoid()


def sample(
    spec: VAESpec,
    theta: Tensor,
    y: Tensor | None,
    generator: torch.Generator,
    rows: int | None = None,
    anew: Anew | None = None,
) -> Tensor:
    """Draws records: u from N(0, I), the label given, through the decoder.

    Args:
        spec: the model.
        theta: decoder weights [decoder_dim].
        y: labels [n], one for each record; None for a model without classes.
        generator: the only source of randomness.
        rows: how many records, for a model without classes.
        anew: what replaces drawn codes, of a table without numbers.

    Returns:
        Codes, int32 [n, d]; of a table with numbers, numbers and codes, float32 [n, d]; or pixel
        means in [0, 1], float32 [n, width].

    Raises:
        ValueError: if neither labels nor a number of rows say how many.
    """
    if y is None and rows is None:
        raise ValueError("give labels, or for a model without classes the number of rows")
    total = len(y) if y is not None else rows or 0
    chunk = max(1, _SAMPLE_CELLS // spec.width)
    parts = []
    with torch.no_grad():
        for start in range(0, max(total, 1), chunk):
            count = min(chunk, total - start)
            u = torch.randn(count, spec.latent, generator=generator, device=theta.device)
            labels = None if y is None else y[start : start + count]
            logits = decode(spec, theta, u, labels)
            if not spec.table:
                parts.append(logits.sigmoid())
                continue
            own = logits[..., spec.numbers :]
            codes = likelihood.draw_codes(own, spec.sizes, generator) if spec.sizes else own.int()
            if anew is not None:
                codes = anew(codes, logits, labels, generator)
            if spec.numbers:
                decoder = unflatten(theta, spec.decoder_layers)
                spread = log_deviations(spec, decoder, dense_labels(spec, labels, u))
                means = logits[..., : spec.numbers]
                numbers = likelihood.draw_numbers(means, spread, generator)
                codes = torch.cat([numbers, codes], dim=-1)
            parts.append(codes)
    return torch.cat(parts)


def record_gradients(
    spec: VAESpec, phi: Tensor, theta: Tensor, x: Tensor, y: Tensor | None, noise: Tensor
) -> list[tuple[Tensor, Tensor]]:
    """Each record's gradient of `loss`, as factors: one pair a layer, encoder's first.

    A record's gradient with respect to a layer's matrix is `outer(left, right)`; all of them,
    flattened and joined, are its gradient with respect to `[phi, theta]`. There is one pair for
    each of `spec.encoder_layers` and then of `spec.decoder_layers`.

    Args:
        spec: the model.
        phi: encoder weights [encoder_dim].
        theta: decoder weights [decoder_dim].
        x: numbers and codes [b, d], or pixels [b, width].
        y: labels [b], or None for a model without classes.
        noise: standard normal draws [b, latent].

    Returns:
        Pairs on the CPU. A dense layer's: left [b, outputs], right [b, inputs + 1] with the
        constant one last. A label bias's, or learned deviations': left [b, width or numbers],
        right [b, classes], one-hot. A convolution's: left ones [b, 1], right [b, layer.size]. All
        are finite for finite parameters, and so are norms taken in float32: what overflowed is
        cut off at +-1e8.

    Raises:
        ValueError: if a record has the wrong width or a code lies outside its column.
    """
    check_records(spec, x)
    cells = dense_input(spec, x)
    encoder = unflatten(phi.detach(), spec.encoder_layers)
    decoder = unflatten(theta.detach(), spec.decoder_layers)
    tape = mlp.Tape()
    with torch.enable_grad():
        losses = negative_elbo(
            spec, encoder, decoder, cells, dense_labels(spec, y, cells), noise, tape
        )
        lefts = torch.autograd.grad(losses.sum(), tape.outputs)
    steps = zip(tape.rules, lefts, tape.inputs, strict=True)
    factors = [rule(make_finite(gradient), inputs) for rule, gradient, inputs in steps]
    return [(left.cpu(), right.cpu()) for left, right in factors]


def make_finite(gradient: Tensor) -> Tensor:
    """A gradient within +-1e8, NaN as 0, in place."""
    return gradient.clamp_(-GRADIENT_BOUND, GRADIENT_BOUND).nan_to_num_(nan=0.0)
