"""One epoch of local training for many clients at once: no Python loop over small models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor

from fedsynth.models import mlp, vae
from fedsynth.models.spec import Layer, VAESpec

# Weights of one stack, in floats: 8 MB stay in a processor's last-level cache from step to step.
STACK_FLOATS = 2**21
_DENSE = torch.contiguous_format


@dataclass(frozen=True)
class _Rows:
    """The rows of some clients, each client's side by side: its first and how many, both [k].

    The records may lie on an accelerator; where they start and end is counted on the CPU.
    """

    x: Tensor
    y: Tensor | None
    noise: Tensor
    starts: Tensor
    counts: Tensor

    def of(self, clients: Tensor) -> _Rows:
        """The same rows, seen by fewer clients."""
        return _Rows(self.x, self.y, self.noise, self.starts[clients], self.counts[clients])

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Row numbers [a, size] and their weights in the mean [a, size], step by step.

        The first `a` clients have rows left, where the longest come first. Of a short last batch,
        what is missing stands with some other row at weight 0.
        """
        lane = torch.arange(size)
        for first in range(0, max(self.counts.tolist(), default=0), size):
            active = int((self.counts > first).sum())
            offset = first + lane
            real = offset < self.counts[:active, None]
            rows = (self.starts[:active, None] + offset).clamp(max=len(self.x) - 1)
            weights = real / real.sum(1, keepdim=True)
            yield rows.to(self.x.device), weights.to(self.x.device)

    def dense(self, spec: VAESpec, rows: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Records, one-hot labels and noise of the rows, as the networks take them."""
        cells = vae.dense_input(spec, self.x[rows])
        labels = vae.dense_labels(spec, None if self.y is None else self.y[rows], cells)
        return cells, labels, self.noise[rows]


@dataclass(frozen=True)
class _Pull:
    """FedProx: what pulls weights back to where a round began, and whether the encoder's, too."""

    proximal: float
    shared: bool

    def weights(self, encoder: list[Tensor], decoder: list[Tensor]) -> list[Tensor]:
        if not self.proximal:
            return []
        return encoder + decoder if self.shared else decoder


def train_stacked(
    spec: VAESpec,
    phis: Tensor,
    theta: Tensor,
    x: Tensor,
    y: Tensor | None,
    lengths: Tensor,
    noise: Tensor,
    *,
    batch_size: int,
    learning_rate: float,
    proximal: float = 0.0,
    shared: bool = False,
) -> tuple[Tensor, Tensor]:
    """Trains K clients for one epoch of minibatch SGD each (paper 001, Algorithms 4 to 7).

    The same as a loop over clients, to float tolerance; a short last batch is averaged over its
    own rows, and a client without rows keeps its weights. Batches follow the order of the rows,
    which the caller shuffles.

    Args:
        spec: the model.
        phis: the clients' encoder weights [K, encoder_dim].
        theta: decoder weights, one for all [decoder_dim] or one each [K, decoder_dim].
        x: all clients' records, client by client: codes [n, d] or pixels [n, width].
        y: labels [n], or None for a model without classes.
        lengths: rows of each client, int64 [K], summing to n.
        noise: standard normal draws [n, latent].
        batch_size: rows of a minibatch.
        learning_rate: step size.
        proximal: half of it times the squared distance to `theta` is added to a batch's loss.
        shared: whether the distance is to the encoders' first weights, too.

    Returns:
        New encoder weights [K, encoder_dim] and decoder weights [K, decoder_dim].

    Raises:
        ValueError: if the lengths do not sum to n, a record has the wrong width or a code lies
            outside its column.
    """
    vae.check_records(spec, x)
    if int(lengths.sum()) != len(x):
        raise ValueError(f"lengths sum to {int(lengths.sum())}, and there are {len(x)} rows")
    thetas = theta.expand(len(lengths), -1)
    trained = torch.empty_like(phis), torch.empty_like(thetas, memory_format=_DENSE)
    lengths = lengths.cpu()
    rows = _Rows(x, y, noise, lengths.cumsum(0) - lengths, lengths)
    train = _train_alone if spec.kind == "conv" else _train_stack
    pull = _Pull(proximal, shared)

    def work(clients: Tensor) -> None:
        encoder = vae.unflatten(phis[clients], spec.encoder_layers)
        decoder = vae.unflatten(thetas[clients], spec.decoder_layers)
        train(spec, encoder, decoder, rows.of(clients), batch_size, learning_rate, pull)
        trained[0][clients] = _flat(encoder, spec.encoder_layers)
        trained[1][clients] = _flat(decoder, spec.decoder_layers)

    longest_first = torch.argsort(lengths, descending=True, stable=True)
    side_by_side(work, torch.split(longest_first, _stack_size(spec, len(lengths))))
    return trained


def _stack_size(spec: VAESpec, clients: int) -> int:
    """Clients trained in one step: few enough for the cache, and for every thread to have some."""
    if spec.kind == "conv":
        return 1
    fitting = STACK_FLOATS // (spec.encoder_dim + spec.decoder_dim)
    return max(1, min(fitting, -(-clients // torch.get_num_threads())))


def side_by_side(work: Callable[[Tensor], None], stacks: Sequence[Tensor]) -> None:
    """Runs the stacks on as many threads as torch may use, each of which computes alone.

    Torch's own threads meet at a barrier in every small operation. On cores that other processes
    share this made a round of the image networks three times slower than one thread.
    """
    threads = torch.get_num_threads()
    try:
        with ThreadPoolExecutor(threads, initializer=partial(torch.set_num_threads, 1)) as pool:
            for done in [pool.submit(work, stack) for stack in stacks]:
                done.result()
    finally:
        torch.set_num_threads(threads)


def _train_stack(
    spec: VAESpec,
    encoder: list[Tensor],
    decoder: list[Tensor],
    rows: _Rows,
    batch_size: int,
    learning_rate: float,
    pull: _Pull,
) -> None:
    """Trains dense models side by side, in place; weights have a leading axis of clients."""
    pulled = pull.weights(encoder, decoder)
    begun = [weight.clone() for weight in pulled]
    for batch, weights in rows.batches(batch_size):
        active = len(batch)
        tape = mlp.Tape()
        losses = vae.negative_elbo(
            spec,
            [weight[:active] for weight in encoder],
            [weight[:active] for weight in decoder],
            *rows.dense(spec, batch),
            tape,
        )
        gradients = torch.autograd.grad((losses * weights).sum(), tape.outputs)
        for weight, start in zip(pulled, begun, strict=True):
            weight[:active].lerp_(start[:active], learning_rate * pull.proximal)
        targets = _matrices(encoder, spec.encoder_layers) + _matrices(decoder, spec.decoder_layers)
        for (matrix, bias), gradient, inputs in zip(targets, gradients, tape.inputs, strict=True):
            vae.make_finite(gradient)
            matrix[:active].baddbmm_(gradient.mT, inputs, alpha=-learning_rate)
            if bias is not None:
                bias[:active].sub_(gradient.sum(1), alpha=learning_rate)


def _train_alone(
    spec: VAESpec,
    encoder: list[Tensor],
    decoder: list[Tensor],
    rows: _Rows,
    batch_size: int,
    learning_rate: float,
    pull: _Pull,
) -> None:
    """Trains one model of any kind, in place; weights have a leading axis of 1.

    oneDNN runs one model's convolutions at several times the speed of many models' grouped ones.
    """
    phi = [weight[0].requires_grad_() for weight in encoder]
    theta = [weight[0].requires_grad_() for weight in decoder]
    pulled = pull.weights(phi, theta)
    begun = [weight.detach().clone() for weight in pulled]
    for batch, weights in rows.batches(batch_size):
        real = batch[0][weights[0] > 0]
        losses = vae.negative_elbo(spec, phi, theta, *rows.dense(spec, real))
        gradients = torch.autograd.grad(losses.mean(), phi + theta)
        with torch.no_grad():
            for weight, start in zip(pulled, begun, strict=True):
                weight.lerp_(start, learning_rate * pull.proximal)
            for weight, gradient in zip(phi + theta, gradients, strict=True):
                weight.sub_(vae.make_finite(gradient), alpha=learning_rate)


def _matrices(
    weights: Sequence[Tensor], layers: Sequence[Layer]
) -> list[tuple[Tensor, Tensor | None]]:
    source = iter(weights)
    return [(next(source), next(source) if layer.bias else None) for layer in layers]


def _flat(weights: Sequence[Tensor], layers: Sequence[Layer]) -> Tensor:
    """The inverse of `vae.unflatten`."""
    sizes = [layer.size for layer in layers]
    flat = weights[0].new_empty(len(weights[0]), sum(sizes))
    parts = zip(torch.split(flat, sizes, dim=1), layers, _matrices(weights, layers), strict=True)
    for part, layer, (matrix, bias) in parts:
        target = part.view(-1, layer.outputs, layer.columns)
        target[..., : layer.inputs] = matrix.detach()
        if bias is not None:
            target[..., -1] = bias.detach()
    return flat
