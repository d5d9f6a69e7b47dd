"""One round: the mean embedding on images and wide tables.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/mean_embedding.py --what mnist

`mnist`: record level, 10 uniform clients, distributed trust, delta 1e-5, epsilon 0.3, 1, 3, 10 and
none. `fashion`: 10,000 images of Fashion-MNIST alike at epsilon 1. Both are scored by paper 001's
student network, trained on 20,000 synthetic images and tested on the real test images. `writers`:
MNIST by its 539 writers at the client level, central trust. `epilepsy`: 178 numbers and a seizure,
20 clients, distributed trust. `adult`: 10 clients (Dirichlet 0.5 over the label), distributed
trust. Both are split as in `marginals.py` and scored by gradient boosting on real test rows,
Epilepsy by paper 001's student network too.

Defaults for images were chosen on 10,000 of MNIST's training images held out, at epsilon 1, and are
used as they are everywhere else. `validation` scores on those images: for choosing settings.
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
from fedsynth.evaluation.measures import utility
from fedsynth.evaluation.models import students
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.embedding.synthesizer import MeanEmbedding
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
SAMPLED = 20_000
EPSILONS = {
    "mnist": [0.3, 1.0, 3.0, 10.0, math.inf],
    "validation": [1.0],
    "fashion": [1.0],
    "writers": [10.0, 30.0, 100.0, math.inf],
    "epilepsy": [1.0, math.inf],
    "adult": [1.0],
}


def progress(label, done, total, epsilon):
    if done % 100 == 0 or done == total:
        print(f"  {label} {done}/{total}, epsilon {epsilon:.4g}", flush=True)


def images(what):
    """Training and test images and their schema."""
    name = "fashion_mnist/fashion_mnist_20k" if what == "fashion" else "mnist/mnist"
    schema = ImageSchema.load(HOME / "configs/schemas/mnist.yaml")
    with np.load(DATA / f"{name}.npz") as held:
        x, y = held["x_train"], held["y_train"].astype(np.int64)
        test = Images(held["x_test"], held["y_test"].astype(np.int64))
    if what == "validation":
        order = np.random.default_rng(0).permutation(len(y))
        test = Images(x[order[50_000:]], y[order[50_000:]])
        x, y = x[order[:50_000]], y[order[:50_000]]
    return Images(x, y), test, schema


def image_case(what, seed):
    train, test, schema = images(what)
    if what == "writers":
        writers = np.load(DATA / "mnist/mnist_writers.npz")["writer_train"]
        sites = partition(train, None, "column", schema=schema, column=writers)
    else:
        sites = partition(train, 10, "uniform", schema=schema, seed=seed)

    def score(synth):
        made = synth.sample(SAMPLED, seed=seed)
        return {"accuracy": students.train_on_synthetic(made, test, schema, seed=seed).accuracy}

    return sites, schema, score


def table_case(what, seed):
    train, test, schema = split(what, seed)
    scheme = {"epilepsy": ("uniform", 20, {}), "adult": ("dirichlet", 10, {"beta": 0.5})}[what]
    name, clients, options = scheme
    sites = partition(train, clients, name, schema=schema, seed=seed, **options)

    def score(synth):
        made = synth.sample(len(train), seed=seed)
        found = utility.train_on_synthetic(made, test, schema, seed=0)
        scores = {"f1": found.f1_positive, "auroc": found.auroc}
        if what == "epilepsy":
            student = students.train_on_synthetic(made, test, schema, seed=seed)
            scores["f1_student"] = student.f1_positive
        return scores

    return sites, schema, score


def split(what, seed):
    """80/20 by seed."""
    from fedsynth.data.tables import read_table
    from fedsynth.jobs.config import load_config
    from fedsynth.jobs.data import prepare

    if what == "epilepsy":
        config, base = load_config(HOME / "configs/epilepsy.yaml", ["holdout=0"])
        prepared = prepare(config, base)
        frame, schema = prepared.train, prepared.schema
    else:
        schema = Schema.load(HOME / "configs/schemas/adult.yaml")
        frame = read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(seed).permutation(len(frame))
    cut = int(0.8 * len(frame))
    train = frame.iloc[order[:cut]].reset_index(drop=True)
    return train, frame.iloc[order[cut:]].reset_index(drop=True), schema


def run(what, epsilon, seed, settings):
    case = table_case if what in ("epilepsy", "adult") else image_case
    sites, schema, score = case(what, seed)
    unit, trust = ("client", "central") if what == "writers" else ("record", "distributed")
    delta = 1e-4 if what == "writers" else 1e-5
    budget = Budget(epsilon=epsilon, delta=delta, unit=unit, trust=trust)
    start = time.perf_counter()
    synth = MeanEmbedding(schema, **settings).fit(
        sites, budget, seed=seed, progress=progress, outside="allow"
    )
    seconds = time.perf_counter() - start
    spent = synth.ledger.spent().epsilon
    return {
        "what": what,
        "epsilon": spent if math.isfinite(spent) else "inf",
        "delta": delta,
        "unit": unit,
        "trust": trust,
        "clients": len(sites),
        "seed": seed,
        "settings": settings,
        **{name: round(float(value), 4) for name, value in score(synth).items()},
        "bytes_per_client": round(synth.traffic.bytes_per_client),
        "seconds": round(seconds),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", choices=EPSILONS, nargs="*", default=["mnist"])
    parser.add_argument("--epsilon", type=float, nargs="*")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--out", type=Path, default=HERE.parent / "results/mean_embedding.jsonl")
    options = parser.parse_args()
    for what in options.what:
        for epsilon in options.epsilon or EPSILONS[what]:
            for seed in options.seeds:
                found = run(what, epsilon, seed, options.settings)
                print(json.dumps(found), flush=True)
                with options.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
