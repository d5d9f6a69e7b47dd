"""One round: the mean embedding on images and wide tables.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/mean_embedding.py --what mnist

`mnist`: record level, 10 uniform clients, distributed trust, delta 1e-5, epsilon 0.3, 1, 3, 10 and
none. `fashion`: 10,000 images of Fashion-MNIST alike at epsilon 1. Both are scored by paper 001's
student network and by one of two convolutions, trained on 20,000 synthetic images and tested on the
real test images. `teacher` is the accuracy of the discriminant that drawn images are held against;
`recognised` the share of 2,000 made images that a student of 10,000 real training images takes for
their class with a probability of .9; `dust` the share of bright pixels that no other touches, of
made images less that of real ones. `--grid` writes pictures, `--kept` keeps what was released, so
that another run with the same seed trains and draws anew without asking again. `writers`:
MNIST by its 539 writers at the client level, central trust. `pairs`: MNIST's training images, two
to each of 30,000 clients, alike: the population for which paper 001 reckons an epsilon near 1, and
which it could not run. `epilepsy`: 178 numbers and a seizure, 20 clients, distributed trust.
`adult`: 10 clients (Dirichlet 0.5 over the label), distributed
trust. Both are split as in `marginals.py` and scored by gradient boosting on real test rows,
Epilepsy by paper 001's student network too.

Defaults for images were chosen on 10,000 of MNIST's training images held out, at epsilon 1, and are
used as they are everywhere else. `validation` scores on those images: for choosing settings, and
`validation-fashion` on 1,666 of Fashion-MNIST's.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import os
import time
from functools import cache, partial
from pathlib import Path

import numpy as np
import torch
from scipy.ndimage import convolve

from fedsynth.data.images import Images
from fedsynth.evaluation.measures import utility
from fedsynth.evaluation.measures.images import grid
from fedsynth.evaluation.models import students
from fedsynth.evaluation.reading.labelled import label_features
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.embedding.synthesizer import MeanEmbedding
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
SAMPLED, REAL = 20_000, 10_000
# What counts as a bright pixel, and as a class that was recognised.
BRIGHT, SURE = 64, 0.9
EPSILONS = {
    "mnist": [0.3, 1.0, 3.0, 10.0, math.inf],
    "validation": [1.0],
    "validation-fashion": [1.0],
    "fashion": [1.0],
    "writers": [10.0, 30.0, 100.0, math.inf],
    "pairs": [1.0],
    "epilepsy": [1.0, math.inf],
    "adult": [1.0],
}


def progress(label, done, total, epsilon):
    if done % 100 == 0 or done == total:
        print(f"  {label} {done}/{total}, epsilon {epsilon:.4g}", flush=True)


@cache
def images(what):
    """Training and test images and their schema."""
    name = "fashion_mnist/fashion_mnist_20k" if "fashion" in what else "mnist/mnist"
    schema = ImageSchema.load(HOME / "configs/schemas/mnist.yaml")
    with np.load(DATA / f"{name}.npz") as held:
        x, y = held["x_train"], held["y_train"].astype(np.int64)
        test = Images(held["x_test"], held["y_test"].astype(np.int64))
    if what.startswith("validation"):
        order = np.random.default_rng(0).permutation(len(y))
        cut = len(y) - len(y) // 6
        test = Images(x[order[cut:]], y[order[cut:]])
        x, y = x[order[:cut]], y[order[:cut]]
    return Images(x, y), test, schema


@cache
def real_student(what):
    """Of images, the probability that each is of its class, by a student of real images."""
    train, _, schema = images(what)
    learned = label_features(train.take(np.arange(REAL)), schema)

    def sure(shown):
        said = students.image_probabilities(learned, label_features(shown, schema).x)
        return said[np.arange(len(shown)), shown.labels]

    return sure


def dust(shown):
    """Share of bright pixels without a bright one among their eight neighbours."""
    bright = (shown.pixels >= BRIGHT).astype(np.int64)
    near = convolve(bright, np.ones((1, 3, 3), np.int64), mode="constant") - bright
    return float(((bright == 1) & (near == 0)).sum() / max(1, bright.sum()))


def image_case(what, seed):
    train, _, schema = images(what)
    if what == "writers":
        writers = np.load(DATA / "mnist/mnist_writers.npz")["writer_train"]
        sites = partition(train, None, "column", schema=schema, column=writers)
    else:
        clients = len(train) // 2 if what == "pairs" else 10
        sites = partition(train, clients, "uniform", schema=schema, seed=seed)
    return sites, schema, partial(score_images, what, seed)


def score_images(what, seed, synth):
    """The scores, and the grid of what was made."""
    _, test, schema = images(what)
    made = synth.sample(SAMPLED, seed=seed)
    scores = {"teacher": teacher_accuracy(synth, test)}
    for name, layers in (("accuracy", 1), ("two_layers", 2)):
        found = students.train_on_synthetic(made, test, schema, seed=seed, layers=layers)
        scores[name] = found.accuracy
    some = made.take(np.arange(2000))
    scores["recognised"] = float((real_student(what)(some) >= SURE).mean())
    scores["dust"] = dust(some) - dust(test)
    return scores, grid(some, schema)


def teacher_accuracy(synth, test):
    """Of the released moments' discriminant on real test images."""
    learned = synth.learned
    records = learned.embedding.coding.coordinates(test, np.arange(len(test)))
    vectors = learned.embedding.vectors(torch.from_numpy(records)).numpy()
    said = learned.teacher.classes_of(learned.embedding.coordinates(vectors))
    return float((said == test.labels).mean())


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
        return scores, None

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


def run(what, epsilon, seed, settings, kept=None, picture=None):
    case = table_case if what in ("epilepsy", "adult") else image_case
    sites, schema, score = case(what, seed)
    whole = what in ("writers", "pairs")
    unit, trust = ("client", "central") if whole else ("record", "distributed")
    delta = 1e-4 if what == "writers" else 1e-5
    budget = Budget(epsilon=epsilon, delta=delta, unit=unit, trust=trust)
    start, began = time.perf_counter(), time.process_time()
    folder = None if kept is None else kept / f"{what}-{epsilon:g}-{seed}"
    synth = MeanEmbedding(schema, **settings).fit(
        sites,
        budget,
        seed=seed,
        progress=progress,
        outside="allow",
        folder=folder,
        resume=folder is not None and folder.exists(),
    )
    seconds, cpu = time.perf_counter() - start, time.process_time() - began
    scores, drawn = score(synth)
    if picture is not None and drawn is not None:
        picture.mkdir(parents=True, exist_ok=True)
        encoded = drawn.partition(",")[2]
        (picture / f"{what}-{epsilon:g}-{seed}.png").write_bytes(base64.b64decode(encoded))
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
        **{name: round(float(value), 4) for name, value in scores.items()},
        "bytes_per_client": round(synth.traffic.bytes_per_client),
        "seconds": round(seconds),
        "cpu_seconds": round(cpu),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--what", choices=EPSILONS, nargs="*", default=["mnist"])
    parser.add_argument("--epsilon", type=float, nargs="*")
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--settings", type=json.loads, default={})
    parser.add_argument("--kept", type=Path, help="a folder for what was released")
    parser.add_argument("--grid", type=Path, help="a folder for pictures")
    parser.add_argument("--out", type=Path, default=HERE.parent / "results/mean_embedding.jsonl")
    options = parser.parse_args()
    for what in options.what:
        for epsilon in options.epsilon or EPSILONS[what]:
            for seed in options.seeds:
                found = run(what, epsilon, seed, options.settings, options.kept, options.grid)
                print(json.dumps(found), flush=True)
                with options.out.open("a") as file:
                    file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
