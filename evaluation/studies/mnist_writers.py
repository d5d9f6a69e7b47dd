"""MNIST by its 539 writers at the client level: the setting of paper 001, figures 4.5.1 to 4.5.4.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/mnist_writers.py [--rounds 600]

FedVAEUniCDP (Algorithm 6): one conditional VAE with the paper's convolutions, S = 0.5, batches of
16, learning rate 2e-3, latent 8, central noise of standard deviation sigma in the mean update. The
paper has 20 clients with 14,000 EMNIST digits each and 10 of them a round; here a writer, about 111
images, is a client. Scored by the paper's student network, trained on 20,000 synthetic images and
tested on the real test images of other writers. The noise of the label histogram has the same
multiplier, and is part of epsilon.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np

from fedsynth.data.images import Images
from fedsynth.evaluation.models import students
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("FEDSYNTH_DATA", HERE.parents[2] / "shared/data"))
CLIP = 0.5
PAPER = {0.0: 0.894, 2.5e-3: 0.882, 5e-3: 0.845}


def progress(label, done, total, epsilon):
    if done % 50 == 0 or done == total:
        print(f"  {label} {done}/{total}, epsilon {epsilon:.4g}", flush=True)


def run(sigma, rounds, per_round, seed):
    schema = ImageSchema.load(HERE.parents[1] / "configs/schemas/mnist.yaml")
    digits = np.load(DATA / "mnist/mnist.npz")
    writers = np.load(DATA / "mnist/mnist_writers.npz")["writer_train"]
    train = Images(digits["x_train"], digits["y_train"].astype(np.int64))
    test = Images(digits["x_test"], digits["y_test"].astype(np.int64))
    sites = partition(train, None, "column", schema=schema, column=writers)
    multiplier = sigma * per_round / CLIP
    budget = Budget(epsilon=math.inf, unit="client", trust="central", units=len(sites))
    synth = FedVAE(
        schema,
        rounds=rounds,
        rate=per_round / len(sites),
        clip=CLIP,
        noise_multiplier=multiplier,
    )
    start = time.perf_counter()
    synth.fit(sites, budget, seed=seed, progress=progress)
    seconds = time.perf_counter() - start
    scores = students.train_on_synthetic(synth.sample(20_000, seed=seed), test, schema, seed=seed)
    spent = synth.ledger.spent()
    return {
        "sigma": sigma,
        "noise_multiplier": multiplier,
        "clients": len(sites),
        "per_round": per_round,
        "rounds": rounds,
        "accuracy": round(scores.accuracy, 4),
        "paper_emnist": PAPER.get(sigma),
        "epsilon": spent.epsilon if math.isfinite(spent.epsilon) else "inf",
        "delta": budget.resolved_delta,
        "seconds": round(seconds),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sigma", type=float, nargs="*", default=[0.0, 2.5e-3, 5e-3])
    parser.add_argument("--rounds", type=int, default=600)
    parser.add_argument("--per-round", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE.parent / "results/mnist_writers.jsonl")
    options = parser.parse_args()
    for sigma in options.sigma:
        found = run(sigma, options.rounds, options.per_round, options.seed)
        print(json.dumps(found), flush=True)
        with options.out.open("a") as file:
            file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
