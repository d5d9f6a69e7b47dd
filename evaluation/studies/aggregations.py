"""Aggregation functions under uneven owners: paper 000's tables 2.1 and 2.2, without privacy.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/aggregations.py [--data cifar10 fashion]
    python evaluation/studies/aggregations.py --tables

Three clients that all take part in each of 50 rounds, two epochs of theirs a round, as in the
paper. Its CIFAR-10 has 50,000 images, its network is convolutional and it takes the best of the
rounds' accuracies; here are 2,000 JPEG images of it (`cifar10`), or 3,000 of Fashion-MNIST
(`fashion`), fs.FederatedClassifier with one hidden layer of 64, and the last round's accuracy on
the real test images. Clients weigh alike, where the paper weighs them by their rows. No noise, and
a clip that nothing reaches: this protects nobody. The seed draws images, cut and first weights, not
the order of a client's batches, which is its own.

Cuts: uniform; dirichlet 0.5 over the label; quantity 0.5; 2, 3 and 5 of 10 labels to the three
clients; noise 0.5. Every function at its defaults, fednova with the mean number of steps that
clients take; batches of 64 and a rate of 0.1 at the clients, for fednag, which takes steps of ten
times its rate, 0.01; `scaffold-1 RATE` has its own. Table 2.2's uneven epochs, FedMedian and
FedAvgOpt have no form in fedsynth. What is measured already is left alone.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
import warnings
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

import fedsynth as fs
from fedsynth.data.images import Images
from fedsynth.errors import PrivacyWarning

HOME = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parents[1] / "shared/data"))
OUT = HOME / "results/aggregations.jsonl"
FILES = {"cifar10": "cifar10/cifar10_3k_jpeg.npz", "fashion": "fashion_mnist/fashion_mnist_20k.npz"}
IMAGES = {"cifar10": 2_000, "fashion": 3_000}
CLIENTS, EPOCHS, BATCH, RATE = 3, 2, 64, 0.1
CUTS = {
    "uniform": {},
    "dirichlet": {"beta": 0.5},
    "quantity": {"beta": 0.5},
    "labels": {"per_client": [2, 3, 5]},
    "noise": {"sigma": 0.5},
}
FUNCTIONS = {
    "fedavg": {},
    **{f"fedprox {mu:g}": {"proximal": mu} for mu in (0.001, 0.01, 0.1, 1.0)},
    **{
        name: {"aggregation": name}
        for name in ("fedavgm", "fednova", "fednag", "scaffold-1", "scaffold-2")
    },
    **{name: {"aggregation": name} for name in ("fedadagrad", "fedadam", "fedyogi")},
    # At the rate of the others it is at chance on uneven cuts.
    **{
        f"scaffold-1 {rate:g}": {"aggregation": "scaffold-1", "learning_rate": rate}
        for rate in (0.03, 0.01)
    },
}
# Table 2.1, and for fednova table 2.2 (uneven epochs), in the order of CUTS.
PAPER = {
    "fedavg": (0.6427, 0.4335, 0.6192, 0.3934, 0.5933),
    "fedprox 0.001": (0.6425, 0.4466, 0.6309, 0.4034, 0.5961),
    "fedprox 0.01": (0.6356, 0.4505, 0.6494, 0.4435, 0.5979),
    "fedprox 0.1": (0.6363, 0.4347, 0.6396, 0.4226, 0.5906),
    "fedprox 1": (0.4443, 0.4034, 0.4238, 0.3437, 0.4375),
}


@cache
def images(name: str, seed: int) -> tuple[Images, Images, fs.ImageSchema]:
    """Training images, so many of them drawn by the seed; test images; schema."""
    with np.load(DATA / FILES[name]) as held:
        x, y = held["x_train"], held["y_train"].astype(np.int64)
        test = Images(held["x_test"], held["y_test"].astype(np.int64))
    target = {"kind": "categorical", "name": "label", "values": list(range(10))}
    described = {"kind": "image", "name": name, "shape": list(x.shape[1:]), "target": target}
    chosen = np.random.default_rng(seed).permutation(len(y))[: IMAGES[name]]
    return Images(x[chosen], y[chosen]), test, fs.ImageSchema.from_dict(described)


def run(name: str, cut: str, function: str, seed: int, rounds: int) -> dict[str, object]:
    train, test, schema = images(name, seed)
    sites = fs.partition(train, CLIENTS, cut, schema=schema, seed=seed, **CUTS[cut])
    settings = dict(FUNCTIONS[function])
    if settings.get("aggregation") == "fednova":
        steps = [math.ceil(len(own) / BATCH) * EPOCHS for own in sites.values()]
        settings["server_learning_rate"] = float(np.mean(steps))
    rate = settings.pop("learning_rate", RATE / 10 if function == "fednag" else RATE)
    model = fs.FederatedClassifier(
        schema, hidden=[64], activation="relu", rounds=rounds, rate=1.0, clip=1e4,
        noise_multiplier=0.0, learning_rate=rate, batch_size=BATCH, local_epochs=EPOCHS, **settings,
    )  # fmt: skip
    budget = fs.Budget(epsilon=math.inf, delta=1e-5, unit="client", trust="central", units=CLIENTS)
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyWarning)
        model.fit(sites, budget, seed=seed, progress=False, caution=lambda said: None)
    return {
        "data": name,
        "cut": cut,
        "function": function,
        "seed": seed,
        "rounds": rounds,
        "sizes": [len(own) for own in sites.values()],
        "accuracy": round(float(model.score(test)), 4),
        "paper": dict(zip(CUTS, PAPER.get(function, ()), strict=False)).get(cut),
        "cpu_seconds": round(time.process_time() - start, 1),
    }


def read() -> list[dict]:
    return list(map(json.loads, OUT.read_text().splitlines() if OUT.exists() else []))


def show_tables() -> None:
    """Mean accuracies over seeds, and beside them how far they lie apart."""
    for name, own in pd.DataFrame(read()).groupby("data"):
        spread = own.groupby(["function", "cut"])["accuracy"].std().mean()
        table = own.pivot_table("accuracy", "function", "cut", "mean", sort=False)
        said = f"{own['seed'].nunique()} seeds, mean deviation {spread:.4f}"
        print(f"\n{name}: {said}\n{table.reindex(columns=list(CUTS)).round(3).to_string()}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", choices=FILES, default=["cifar10"])
    parser.add_argument("--cuts", nargs="*", choices=CUTS, default=list(CUTS))
    parser.add_argument("--functions", nargs="*", choices=FUNCTIONS, default=list(FUNCTIONS))
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        show_tables()
        return
    keys = ("data", "cut", "function", "seed", "rounds")
    done = {tuple(one[key] for key in keys) for one in read()}
    for seed in options.seeds:
        for name in options.data:
            for cut in options.cuts:
                for function in options.functions:
                    if (name, cut, function, seed, options.rounds) in done:
                        continue
                    found = run(name, cut, function, seed, options.rounds)
                    with OUT.open("a") as file:
                        file.write(json.dumps(found) + "\n")
                    print(found, flush=True)


if __name__ == "__main__":
    main()
