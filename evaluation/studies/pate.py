"""PATE and PATE-GAN across clients: students of noisy votes on Adult and MNIST.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/pate.py [--only adult-records]

`adult-records`: 10 silos (Dirichlet 0.5 over the label), records protected, nobody trusted, 25 and
100 teachers a silo on rows drawn from released statistics; with `labels: argmax` the student learns
from the class of most noisy votes, as published. `adult-public`: a fifth of the training rows are
public, without labels, and nobody's. `adult-clients`: 250 and 1,000 uniform clients, each protected
whole, one teacher each. `adult-gan`: PATE-GAN on the 10 silos, and the same with so much noise that
the votes say nothing, which shows what they add to the released tables. The split, the rows drawn
(39,073) and the scorer are those of `adult.py`: `auroc` is of gradient boosting trained on drawn
rows, on real test rows; `student` the student's own; `tv1` and `tv2` total variation of marginals
against the training rows.

`mnist`: 539 writers, each protected whole, vote on 9,000 test images without labels, as Papernot et
al. did; `accuracy` is the student's on the other 1,000. With 250 teachers of 240 random images each
Papernot et al. 2017 have 98.0 % at epsilon 2.04 and delta 1e-5, by accounting that depends on the
votes and is not itself private, for 100 queries and a student that also learns from images without
labels.

delta is 1e-5 throughout, everything included in epsilon.
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
from fedsynth.data.tables import conform, read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.evaluation.reading.scores import score
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.gan.pategan.synthesizer import PATEGAN
from fedsynth.methods.pate.synthesizer import PATE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
ROWS = 39_073
SILOS = {"clients": 10, "unit": "record"}
CASES = {
    "adult-records": [
        *({**SILOS, "settings": {"teachers": teachers}} for teachers in (25, 100)),
        {**SILOS, "settings": {"labels": "argmax"}},
    ],
    "adult-public": [{**SILOS, "public": 0.2, "settings": {}}],
    "adult-clients": [{"clients": n, "unit": "client", "settings": {}} for n in (250, 1_000)],
    "adult-gan": [
        {**SILOS, "method": "pate-gan", "settings": {}},
        {**SILOS, "method": "pate-gan", "settings": {"noise_multiplier": 1e5, "teachers": 1}},
    ],
}


def adult(seed):
    """Schema, training and test rows."""
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    table = read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    parts = (order[:cut], order[cut:])
    return schema, *(table.iloc[part].reset_index(drop=True) for part in parts)


def run_adult(seed, epsilon, clients, unit, settings, public=None, method="pate"):
    schema, train, test = adult(seed)
    owned, known = train, None
    if public is not None:
        at = int(public * len(train))
        known = train.iloc[:at].drop(columns="income").reset_index(drop=True)
        owned = train.iloc[at:].reset_index(drop=True)
    scheme = {"scheme": "dirichlet", "beta": 0.5} if unit == "record" else {"scheme": "uniform"}
    sites = partition(owned, clients, schema=schema, seed=seed, **scheme)
    if method == "pate":
        synth = PATE(schema, public=known, **settings)
    else:
        synth = PATEGAN(schema, **settings)
    start = time.perf_counter()
    budget = Budget(epsilon=epsilon, delta=1e-5, unit=unit, trust="distributed")
    synth.fit(sites, budget, seed=seed)
    seconds = time.perf_counter() - start
    rows = synth.sample(ROWS, seed=seed)
    scores = utility.compare(train, test, rows, schema, seed=0)
    errors = [marginals.marginal_error(train, rows, schema, order).mean for order in (1, 2)]
    found = {
        "auroc": round(scores.synthetic.auroc, 4),
        "auroc_real": round(scores.real.auroc, 4),
        "f1": round(scores.synthetic.f1_positive, 4),
        "tv1": round(errors[0], 4),
        "tv2": round(errors[1], 4),
    }
    if method == "pate":
        truth = conform(test, schema).columns["income"].astype(np.int64)
        found["student"] = round(score(synth.probabilities(test), truth).auroc, 4)
    else:
        found["remarks"] = list(synth.remarks)
    told = {"method": method, "public": public, "clients": clients, "unit": unit}
    return told | {"settings": settings, "seed": seed} | found | spent(synth, seconds)


def run_mnist(seed, epsilon, settings):
    schema = ImageSchema.load(HOME / "configs/schemas/mnist.yaml")
    digits = np.load(DATA / "mnist/mnist.npz")
    writers = np.load(DATA / "mnist/mnist_writers.npz")["writer_train"]
    train = Images(digits["x_train"], digits["y_train"].astype(np.int64))
    sites = partition(train, None, "column", schema=schema, column=writers)
    order = np.random.default_rng(seed).permutation(len(digits["x_test"]))
    hidden, test = order[:9_000], order[9_000:]
    synth = PATE(schema, public=Images(digits["x_test"][hidden]), **settings)
    start = time.perf_counter()
    budget = Budget(epsilon=epsilon, delta=1e-5, unit="client", trust="distributed")
    synth.fit(sites, budget, seed=seed)
    seconds = time.perf_counter() - start
    said = synth.probabilities(Images(digits["x_test"][test]))
    told = {"method": "pate", "data": "mnist", "clients": len(sites), "unit": "client"}
    found = {"accuracy": round(score(said, digits["y_test"][test].astype(np.int64)).accuracy, 4)}
    return told | {"settings": settings, "seed": seed} | found | spent(synth, seconds)


def spent(synth, seconds):
    epsilon = synth.ledger.spent().epsilon
    return {
        "epsilon": round(epsilon, 4) if math.isfinite(epsilon) else "inf",
        "fit_seconds": round(seconds),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", choices=[*CASES, "mnist"], default=[*CASES, "mnist"])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[1.0, 3.0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--out", type=Path, default=HOME / "evaluation/results/pate.jsonl")
    options = parser.parse_args()
    for name in options.only:
        cases = CASES.get(name, [{"settings": {}}, {"settings": {"labels": "argmax"}}])
        work = run_mnist if name == "mnist" else run_adult
        for case in cases:
            for epsilon in options.epsilons:
                for seed in options.seeds:
                    found = {"case": name, **work(seed, epsilon, **case)}
                    print(json.dumps(found), flush=True)
                    with options.out.open("a") as file:
                        file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
