"""Why paper 001 trains on Epilepsy at a rate of 1e-5: its FedVAESepCDP by hand, by unit of numbers.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/epilepsy_units.py [CASE ..]

A CASE is units:rate:noise:rounds:sigma, such as `raw:1e-5:0.2:60:1`. Units: `raw`, the converter's
integers (deviation 165), or `scaled`, each column off its mean and over its deviation over all
rows, which nobody could know (fedsynth takes both from a noisy histogram). Sigma: the deviation for
which the decoder's squared error stands, in these units; `learned` one for each column and class.

Algorithm 4 as it is printed, by fedsynth's own networks and clients' steps but not by its releases,
so that nothing but the named differs: 20 clients cut uniformly, 10 drawn a round, one VAE a class,
encoders that stay, one epoch of SGD in batches of 16, differences clipped to S / sqrt(2) a class
(S = 0.5), noise of z S / 10 in the mean, and a loss that is cut off near the largest number of
single precision alone, as the thesis has it. At each of some rounds: the median norm of clients'
differences of the seizures' VAE before the clip, and of rows drawn as the decoder's outputs
(`means`) and with the Gaussian that their squared error stands for (`noisy`): the deviation of
each class (real ones: 69 and 341), and F1 and AUROC of the thesis' student on the real test rows.
It protects nobody. What is measured already is left alone.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from federated_vae import CLIENTS, PER_ROUND, score, tables

from fedsynth.federation.simulation.partitions import partition
from fedsynth.models import stacked, vae
from fedsynth.models.spec import VAESpec

OUT = Path(__file__).resolve().parents[1] / "results/epilepsy_units.jsonl"
NAMES = [f"X{i}" for i in range(1, 179)]
CLIP, CLASSES, LATENT = 0.5, 2, 8
SHOWN = (20, 60, 120, 300, 600, 1200)


class Server:
    """What Algorithm 4 keeps: a decoder a class, and every client's encoders, [class][client]."""

    def __init__(
        self,
        data: list[list[torch.Tensor]],
        rate: float,
        noise: float,
        sigma: float | None,
        seed: int,
    ) -> None:
        self.data, self.rate, self.noise = data, rate, noise
        hidden = (128, 64, 32, 16)
        self.spec = VAESpec(
            kind="mlp", latent=LATENT, hidden=hidden, numbers=178, sigma=sigma, loss_bound=3e38
        )
        self.rng, self.generator = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        phi, theta = vae.initial(self.spec, self.generator)
        self.thetas = [theta.clone() for _ in range(CLASSES)]
        self.phis = [[phi.clone() for _ in range(CLIENTS)] for _ in range(CLASSES)]

    def round(self) -> float:
        """One of them; the median norm of the last class' differences before the clip."""
        chosen = self.rng.permutation(CLIENTS)[:PER_ROUND]
        for kind in range(CLASSES):
            own = [self.data[kind][k] for k in chosen]
            own = [x[torch.from_numpy(self.rng.permutation(len(x)))] for x in own]
            x, lengths = torch.cat(own), torch.tensor([len(x) for x in own])
            draws = torch.randn(len(x), LATENT, generator=self.generator)
            phis, theta = torch.stack([self.phis[kind][k] for k in chosen]), self.thetas[kind]
            phis, thetas = stacked.train_stacked(
                self.spec,
                phis,
                theta,
                x,
                None,
                lengths,
                draws,
                batch_size=16,
                learning_rate=self.rate,
            )
            for place, k in enumerate(chosen):
                self.phis[kind][k] = phis[place].clone()
            moved = thetas - theta
            norms = moved.norm(dim=1, keepdim=True)
            moved *= (CLIP / CLASSES**0.5 / norms.clamp(min=1e-12)).clamp(max=1)
            noise = torch.randn(len(theta), generator=self.generator)
            self.thetas[kind] = theta + moved.mean(0) + noise * (self.noise * CLIP / PER_ROUND)
        return float(norms.median())

    def draw(self, kind: int, rows: int) -> tuple[np.ndarray, np.ndarray]:
        """The decoder's outputs [rows, 178], and the deviation of each."""
        u = torch.randn(rows, LATENT, generator=self.generator)
        decoder = vae.unflatten(self.thetas[kind], self.spec.decoder_layers)
        means = vae.decode_dense(self.spec, decoder, u, u.new_zeros(rows, 0))
        spread = torch.as_tensor(vae.log_deviations(self.spec, decoder, u[:, :0])).exp()
        return means.double().numpy(), spread.double().numpy()


def run(case: str, seed: int):
    """A line at each of the rounds that are shown."""
    units, rate, noise, rounds, given = case.split(":")
    sigma = None if given == "learned" else float(given)
    schema, train, _ = tables(seed)
    numbers = train[NAMES].to_numpy(np.float64)
    mean, deviation = np.zeros(178), np.ones(178)
    if units == "scaled":
        mean, deviation = numbers.mean(0), numbers.std(0)
    sites = partition(train, CLIENTS, "uniform", schema=schema, seed=seed).values()
    data = [
        [
            torch.from_numpy(((own.loc[own.y == kind, NAMES] - mean) / deviation).to_numpy())
            .float()
            for own in sites
        ]
        for kind in range(CLASSES)
    ]  # fmt: skip
    server, start = Server(data, float(rate), float(noise), sigma, seed), time.process_time()
    for done in range(1, int(rounds) + 1):
        norm = server.round()
        if done not in SHOWN and done != int(rounds):
            continue
        yield {
            "case": case,
            "seed": seed,
            "round": done,
            "norm": round(norm, 4),
            **{
                name: drawn(server, train, mean, deviation, spread, seed)
                for name, spread in {"means": 0, "noisy": 1}.items()
            },
            "cpu_seconds": round(time.process_time() - start, 1),
        }


def drawn(server: Server, train: pd.DataFrame, mean, deviation, spread: int, seed: int):
    """Scores of as many rows as were learned from."""
    parts = []
    for kind, count in train["y"].value_counts().sort_index().items():
        means, around = server.draw(kind, count)
        made = means + spread * around * server.rng.normal(size=means.shape)
        made = made * deviation + mean
        made = np.clip(np.rint(made), -2048, 2047).astype(int)
        parts.append(pd.DataFrame(made, columns=NAMES).assign(y=kind))
    rows = pd.concat(parts, ignore_index=True)[list(train.columns)]
    spreads = [round(float(part[NAMES].to_numpy().std()), 1) for part in parts]
    return {"deviations": spreads, **score(rows, seed)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="*", default=["scaled:1e-2:0.2:60:1"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    options = parser.parse_args()
    lines = OUT.read_text().splitlines() if OUT.exists() else []
    done = {(one["case"], one["seed"], one["round"]) for one in map(json.loads, lines)}
    for seed in options.seeds:
        for case in options.cases:
            if (case, seed, int(case.split(":")[3])) in done:
                continue
            for found in run(case, seed):
                print(json.dumps(found), flush=True)
                with OUT.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
