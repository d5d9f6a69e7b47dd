"""A record-level step: factored clipping against Opacus and torch.func, and a whole fit on Adult.

    OMP_WAIT_POLICY=PASSIVE python evaluation/bench/record_level.py [--records 1024] [--fit]

The three ways compute the same clipped sum of per-record gradients of the same network; they run in
turn, and the ratios are those of the medians. `--fit` also times FedVAE on Adult, 10 silos, epsilon
1, nobody trusted (needs FEDSYNTH_DATA).
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from opacus import GradSampleModule
from torch import nn
from torch.func import grad, vmap

from fedsynth.models import vae
from fedsynth.models.spec import VAESpec
from fedsynth.privacy.rows.clipping import clip_and_sum
from fedsynth.privacy.rows.dense import DenseRows
from fedsynth.privacy.rows.factored import FactoredRows

SIZES = (50, 9, 32, 16, 16, 7, 15, 6, 5, 2, 18, 15, 32, 42)
SPEC = VAESpec(kind="mlp", latent=8, sizes=SIZES, hidden=(128,), classes=2, activation="tanh")
CLIP = 1.0


class Modules(nn.Module):
    """The same VAE in torch modules, for Opacus."""

    def __init__(self):
        super().__init__()
        width, hidden, latent = SPEC.width, SPEC.hidden[0], SPEC.latent
        self.encoder = nn.Sequential(
            nn.Linear(width, hidden), nn.Tanh(), nn.Linear(hidden, 2 * latent)
        )
        self.decoder = nn.Sequential(
            nn.Linear(latent + SPEC.classes, hidden), nn.Tanh(), nn.Linear(hidden, width)
        )

    def forward(self, cells, labels, noise):
        mean, log_variance = self.encoder(cells).chunk(2, dim=-1)
        log_variance = log_variance.clamp(-8, 8)
        u = mean + (0.5 * log_variance).exp() * noise
        logits = self.decoder(torch.cat([u, labels], dim=-1))
        loss = 0.5 * (mean**2 + log_variance.exp() - 1 - log_variance).sum()
        parts = zip(logits.split(SIZES, -1), cells.split(SIZES, -1), strict=True)
        return loss - sum((a.log_softmax(-1) * b).sum() for a, b in parts)


def steps(records):
    generator = torch.Generator().manual_seed(0)
    x = torch.stack([torch.randint(0, s, (records,), generator=generator) for s in SIZES], 1)
    y = torch.randint(0, 2, (records,), generator=generator)
    noise = torch.randn(records, SPEC.latent, generator=generator)
    phi, theta = vae.initial(SPEC, generator)
    modules = GradSampleModule(Modules(), loss_reduction="sum")
    with torch.no_grad():
        flat = torch.cat([phi, theta])
        parameters, start = list(modules.parameters()), 0
        for weight, bias in zip(parameters[::2], parameters[1::2], strict=True):
            size = weight.numel() + bias.numel()
            block = flat[start : start + size].view(weight.shape[0], -1)
            weight.copy_(block[:, :-1])
            bias.copy_(block[:, -1])
            start += size
    cells, labels = vae.dense_input(SPEC, x), nn.functional.one_hot(y, 2).float()

    def factored():
        layers = vae.record_gradients(SPEC, phi, theta, x, y, noise)
        rows = FactoredRows([(left.numpy(), right.numpy()) for left, right in layers])
        return clip_and_sum(rows, CLIP)

    def opacus():
        modules.zero_grad(set_to_none=True)
        modules(cells, labels, noise).backward()
        samples = [p.grad_sample for p in modules.parameters()]
        squares = torch.stack([s.flatten(1).norm(dim=1) for s in samples]).norm(dim=0)
        factor = (CLIP / squares).clamp(max=1)
        summed = [torch.einsum("b,b...->...", factor, s) for s in samples]
        pairs = zip(summed[::2], summed[1::2], strict=True)
        return torch.cat([torch.cat([w, b[:, None]], 1).flatten() for w, b in pairs]).numpy()

    def one(phi, theta, x, y, noise):
        return vae.loss(SPEC, phi, theta, x[None], y[None], noise[None]).sum()

    per_record = vmap(grad(one, argnums=(0, 1)), in_dims=(None, None, 0, 0, 0))

    def torch_func():
        found = per_record(phi, theta, x, y, noise)
        return clip_and_sum(DenseRows(torch.cat(found, dim=1).numpy()), CLIP)

    return {"factored": factored, "opacus": opacus, "torch.func": torch_func}


def compare(records, repeats):
    ways = steps(records)
    sums = {name: way() for name, way in ways.items()}
    for name, value in sums.items():
        np.testing.assert_allclose(value, sums["factored"], rtol=2e-2, atol=2e-3, err_msg=name)
    seconds = {name: [] for name in ways}
    for _ in range(repeats):
        for name, way in ways.items():
            start = time.perf_counter()
            way()
            seconds[name].append(time.perf_counter() - start)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    for name, value in medians.items():
        ratio = value / medians["factored"]
        print(f"{name:12s} {value * 1e3:8.1f} ms a step of {records} records, {ratio:.1f}x")


def whole_fit():
    from fedsynth.data.tables import read_table
    from fedsynth.federation.simulation.partitions import partition
    from fedsynth.methods.vae.synthesizer import FedVAE
    from fedsynth.privacy.budget import Budget
    from fedsynth.schema import Schema

    home = Path(__file__).resolve().parents[2]
    data = Path(os.environ.get("FEDSYNTH_DATA", home.parent / "shared/data"))
    schema = Schema.load(home / "configs/schemas/adult.yaml")
    table = read_table(data / "adult/adult.csv.gz", schema)
    sites = partition(table, 10, "dirichlet", schema=schema, beta=0.5, seed=0)
    start = time.perf_counter()
    synth = FedVAE(schema).fit(sites, Budget(epsilon=1.0, delta=1e-5))
    seconds = time.perf_counter() - start
    epsilon = synth.ledger.spent().epsilon
    print(f"Adult, 10 silos, epsilon {epsilon:.4f}: fitted in {seconds:.1f} s")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--records", type=int, default=1024)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--fit", action="store_true")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    compare(options.records, options.repeats)
    if options.fit:
        whole_fit()


if __name__ == "__main__":
    main()
