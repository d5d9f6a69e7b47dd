"""A round of client-level training: `train_stacked` against a Python loop over torch modules.

    OMP_WAIT_POLICY=PASSIVE python evaluation/bench/stacked_clients.py [--threads N] [--repeats N]

Both sides start from the server's decoder and each client's own encoder, as flat vectors, train an
epoch of SGD, and end with new vectors. They run in turn; the ratio is that of the medians, wall
clock and processor time both, since on shared cores the former says little.
"""

from __future__ import annotations

import argparse
import copy
import statistics
import time
from itertools import pairwise

import torch
from torch import nn
from torch.nn.utils import parameters_to_vector

from fedsynth.models import vae
from fedsynth.models.stacked import train_stacked

BATCH, LATENT, CLASSES, RATE = 16, 8, 2, 1e-3


def dense(*widths):
    layers = []
    for inputs, outputs in pairwise(widths):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


def tabular(width):
    """The paper's tabular VAE (paper 001, section 4.4.3)."""
    encoder = dense(width, 128, 64, 32, 16, 2 * LATENT)
    return encoder, dense(LATENT + CLASSES, 16, 32, 64, 128, width)


def image():
    """The paper's image VAE, in torch's default memory layout."""
    encoder, channels = [nn.Unflatten(1, (1, 28, 28))], 1
    for outputs in (32, 64, 64):
        encoder += [nn.Conv2d(channels, outputs, 3, 2, 1), nn.ReLU()]
        channels = outputs
    encoder += [nn.Flatten(), nn.Linear(1024, 2 * LATENT)]
    decoder = [nn.Linear(LATENT + CLASSES, 1568), nn.ReLU(), nn.Unflatten(1, (32, 7, 7))]
    for inputs, outputs, stride in ((32, 32, 1), (32, 64, 1), (64, 64, 2), (64, 32, 2), (32, 1, 1)):
        decoder += [nn.ConvTranspose2d(inputs, outputs, 3, stride, 1, stride - 1), nn.ReLU()]
    return nn.Sequential(*encoder), nn.Sequential(*decoder[:-1], nn.Flatten())


def module_loss(spec, encoder, decoder, x, y, noise):
    cells = x
    if spec.sizes:
        cells = nn.functional.one_hot(x, spec.sizes[0]).flatten(1).float()
    mean, log_variance = encoder(cells).chunk(2, dim=-1)
    u = mean + (0.5 * log_variance.clamp(-8, 8)).exp() * noise
    logits = decoder(torch.cat([u, nn.functional.one_hot(y, CLASSES).float()], dim=1))
    if spec.sizes:
        groups = logits.view(len(x), len(spec.sizes), -1)
        loss = nn.functional.cross_entropy(groups.mT, x, reduction="none").sum(1)
    else:
        cross_entropy = nn.functional.binary_cross_entropy_with_logits
        loss = cross_entropy(logits, cells, reduction="none").sum(1)
    kl = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum(1)
    return (loss + kl).clamp(max=spec.bound).mean()


def loop(spec, encoder, decoder, x, y, noise, lengths):
    """One model after another, as most federated simulations do it."""
    results, start = [], 0
    for length in lengths.tolist():
        models = copy.deepcopy(encoder), copy.deepcopy(decoder)
        optimiser = torch.optim.SGD([p for m in models for p in m.parameters()], lr=RATE)
        for first in range(start, start + length, BATCH):
            rows = slice(first, min(first + BATCH, start + length))
            optimiser.zero_grad()
            module_loss(spec, *models, x[rows], y[rows], noise[rows]).backward()
            optimiser.step()
        results.append([parameters_to_vector(model.parameters()).detach() for model in models])
        start += length
    return results


def compare(name, spec, modules, clients, batches, repeats):
    generator = torch.Generator().manual_seed(0)
    phi, theta = vae.initial(spec, generator)
    phis = phi.repeat(clients, 1)
    rows = clients * batches * BATCH
    if spec.sizes:
        x = torch.randint(0, spec.sizes[0], (rows, len(spec.sizes)), generator=generator)
    else:
        x = torch.rand(rows, spec.width, generator=generator)
    y = torch.randint(0, CLASSES, (rows,), generator=generator)
    noise = torch.randn(rows, LATENT, generator=generator)
    lengths = torch.full((clients,), batches * BATCH)

    def stacked():
        options = {"batch_size": BATCH, "learning_rate": RATE}
        train_stacked(spec, phis, theta, x, y, lengths, noise, **options)

    sides = {"stacked": stacked, "loop": lambda: loop(spec, *modules, x, y, noise, lengths)}
    times = {side: [] for side in sides}
    for side in sides.values():
        side()
    for _ in range(repeats):
        for side, run in sides.items():
            wall, processor = time.perf_counter(), time.process_time()
            run()
            times[side].append((time.perf_counter() - wall, time.process_time() - processor))
    medians = {
        side: [statistics.median(c) for c in zip(*t, strict=True)] for side, t in times.items()
    }
    (wall, processor), (loop_wall, loop_processor) = medians["stacked"], medians["loop"]
    print(
        f"{name}: {clients} clients x {batches} batches x {BATCH} rows, "
        f"{torch.get_num_threads()} threads: stacked {wall:.3f} s (processor {processor:.3f} s), "
        f"loop {loop_wall:.3f} s ({loop_processor:.3f} s): {loop_wall / wall:.1f}x faster "
        f"(processor {loop_processor / processor:.1f}x)",
        flush=True,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--repeats", type=int, default=5)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    shared = {"latent": LATENT, "classes": CLASSES}
    hidden = (128, 64, 32, 16)
    spec = vae.VAESpec("mlp", shape=(1, 178), hidden=hidden, **shared)
    compare("tabular, 178 inputs", spec, tabular(178), 100, 4, options.repeats)
    sizes = (24,) * 178
    spec = vae.VAESpec("mlp", sizes=sizes, hidden=hidden, **shared)
    compare("tabular, 178 columns of 24 bins", spec, tabular(178 * 24), 10, 4, options.repeats)
    spec = vae.VAESpec("conv", shape=(28, 28), **shared)
    compare("image, 28x28", spec, image(), 10, 7, options.repeats)


if __name__ == "__main__":
    main()
