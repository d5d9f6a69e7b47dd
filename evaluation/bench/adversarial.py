"""Discriminators: a round of 100 clients side by side, and the clipped sum of records' gradients.

    OMP_WAIT_POLICY=PASSIVE python evaluation/bench/adversarial.py [--threads N] [--repeats N]

`local training`: the task of a client-level round of FedGAN against a Python loop over torch
modules with the same batches and Adam. `gradients`: the clipped sum of 1,024 records' discriminator
gradients by factors against torch.func's per-record gradients. Both sides run in turn; the ratio is
that of the medians of processor time.
"""

from __future__ import annotations

import argparse
import statistics
import time

import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional

from fedsynth.methods.gan.game import Game
from fedsynth.methods.gan.tasks.local_training import Rules, _LocalRows, _train
from fedsynth.methods.training.generating import Conditions
from fedsynth.methods.training.learner import BETAS
from fedsynth.methods.training.rows import Row, Seen, Weights
from fedsynth.models import gan
from fedsynth.models.cells import Cells
from fedsynth.models.gan import Generator, Scorer
from fedsynth.privacy.rows.clipping import clip_and_sum

WIDTH, HIDDEN, CLIENTS, STEPS, BATCH, RECORDS = 784, 32, 100, 10, 10, 1024


def module():
    return nn.Sequential(nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, 1))


def flat_of(net):
    parts = [torch.cat([m.weight, m.bias[:, None]], 1).flatten() for m in (net[0], net[2])]
    return torch.cat(parts).detach()


def rules(flat):
    cells = Cells(shape=(28, 28))
    game = Game(
        Generator(cells, "mlp", 8, 0, (16,)),
        Scorer(cells, "mlp", 1, (HIDDEN,)),
        None, 1, 0, False, "logistic", 0.0, 0.0,
    )  # fmt: skip
    nothing = torch.zeros(game.generator.dim)
    return Rules(game, Conditions(torch.zeros(0).numpy()), flat, nothing, STEPS, BATCH, 1e-4, 0.0)


def local_training():
    flat = flat_of(module())
    asked = rules(flat)
    rows = torch.rand(CLIENTS, 2, STEPS * BATCH, WIDTH)
    local_rows = [_LocalRows(real, None, fake, None) for real, fake in rows]

    def ours():
        return _train(asked, flat.expand(CLIENTS, -1), local_rows)

    def loop():
        found = []
        for rows in local_rows:
            net = module()
            with torch.no_grad():
                for layer, (start, stop) in (
                    (net[0], (0, HIDDEN * (WIDTH + 1))),
                    (net[2], (HIDDEN * (WIDTH + 1), len(flat))),
                ):
                    block = flat[start:stop].view(layer.out_features, -1)
                    layer.weight.copy_(block[:, :-1])
                    layer.bias.copy_(block[:, -1])
            optimiser = torch.optim.Adam(net.parameters(), lr=1e-4, betas=BETAS)
            for step in range(STEPS):
                at = slice(step * BATCH, (step + 1) * BATCH)
                loss = functional.softplus(-net(rows.real[at])).mean()
                loss = loss + functional.softplus(net(rows.fakes[at])).mean()
                optimiser.zero_grad()
                loss.backward()
                optimiser.step()
            found.append(flat_of(net))
        return torch.stack(found)

    return ours, loop, 1e-4


def gradients():
    net = module()
    flat, scorer = flat_of(net), Scorer(Cells(shape=(28, 28)), "mlp", 1, (HIDDEN,))
    x = torch.rand(RECORDS, WIDTH)
    weights = Weights(gan.leaves(flat, scorer.layers), [])
    row = Row(scorer, None, 1.0)

    def ours():
        found = row.of(Seen(x, x, None, None), weights)
        return torch.from_numpy(clip_and_sum(found, 1.0)).float()

    parameters = {name: p.detach() for name, p in net.named_parameters()}

    def loss(own, record):
        return functional.softplus(-functional_call(net, own, (record[None],))).sum()

    def func():
        each = vmap(grad(loss), (None, 0))(parameters, x)
        norms = torch.stack([g.flatten(1).norm(dim=1) for g in each.values()]).norm(dim=0)
        scale = (1 / norms).clamp(max=1)
        total = {k: torch.einsum("n...,n->...", g, scale) for k, g in each.items()}
        pairs = (("0.weight", "0.bias"), ("2.weight", "2.bias"))
        return torch.cat([torch.cat([total[m], total[b][:, None]], 1).flatten() for m, b in pairs])

    return ours, func, 1e-3


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    for name, case in (("local training", local_training), ("gradients", gradients)):
        ours, other, tolerance = case()
        assert torch.allclose(ours(), other(), atol=tolerance), name
        times = ([], [])
        for _ in range(options.repeats):
            for side, held in zip((ours, other), times, strict=True):
                start = time.process_time()
                side()
                held.append(time.process_time() - start)
        fast, slow = (statistics.median(held) for held in times)
        print(f"{name}: {fast * 1e3:.1f} ms against {slow * 1e3:.1f} ms, {slow / fast:.1f}x")


if __name__ == "__main__":
    main()
