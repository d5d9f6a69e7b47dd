"""Fusion GAN (paper 004, Algorithm 6, table 4.1) as published and with privacy of records.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/fusion_gan.py [--data mnist] [--only inf]

Ten uniform clients. `mnist`: 60,000 training digits, 6,000 a client, scored on the 10,000 test
digits; the paper has central 98.56, federated 98.05 and Fusion GAN 96.9 % after 100 epochs. Here a
client takes 800 steps of 64 digits, 8.5 epochs of its own. `central` and `federated` (FedAvg, a
round after every local pass) are the published variant's classifier network on the real rows, four
passes of digits, 10 and 100 of the tables' rows. `fusion` is Fusion as published, a distribution a
pixel. `credit_default` and `wdbc`: rows cut 80/20 by the seed.

`accuracy`, `balanced_accuracy`, `auroc`: of the global classifier on real test rows. `student`:
accuracy of the student network of paper 001 trained on 10,000 drawn rows. With privacy delta is
1e-5, trust local, every message private on its own.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from fedsynth.data.images import Images
from fedsynth.data.tables import conform, read_table
from fedsynth.evaluation.models.students import train_on_synthetic
from fedsynth.evaluation.reading.scores import score
from fedsynth.federation.simulation.partitions import partition
from fedsynth.models import gan
from fedsynth.models.vae import unflatten
from fedsynth.papers.fusion.published import Fusion
from fedsynth.papers.fusion_gan.networks import Networks, records_of
from fedsynth.papers.fusion_gan.settings import FusionGANSettings
from fedsynth.papers.fusion_gan.synthesizer import FusionGAN
from fedsynth.privacy.budget import Budget
from fedsynth.schema import ImageSchema, Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
OPEN = Budget(epsilon=math.inf)
TABLES = {"credit_default": "credit_default", "wdbc": "breast_cancer"}
CLIENTS = 10
PASSES = {"mnist": 4, "credit_default": 10, "wdbc": 100}


def loaded(name, seed):
    """Schema, training and test rows."""
    if name == "mnist":
        schema = ImageSchema.load(HOME / "configs/schemas/mnist.yaml")
        digits = np.load(DATA / "mnist/mnist.npz")
        parts = (("x_train", "y_train"), ("x_test", "y_test"))
        return schema, *(Images(digits[x], digits[y].astype(np.int64)) for x, y in parts)
    schema = Schema.load(HOME / f"configs/schemas/{name}.yaml")
    table = read_table(DATA / TABLES[name] / f"{name}.csv.gz", schema)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    train, test = (table.iloc[o].reset_index(drop=True) for o in (order[:cut], order[cut:]))
    return schema, train, test


def records(data, schema):
    known = conform(data, schema) if isinstance(schema, Schema) else data
    return records_of(known, np.arange(len(data)), schema)


def passed(scorer, flat, rows, source):
    """Weights after one pass over rows, from Adam begun anew."""
    weights = gan.leaves(flat, scorer.layers)
    adam = torch.optim.Adam(weights, lr=1e-3)
    for at in torch.split(torch.randperm(len(rows), generator=source), 64):
        adam.zero_grad()
        functional.cross_entropy(scorer.logits(weights, rows.x[at]), rows.y[at]).backward()
        adam.step()
    return gan.flatten(weights)


def ordinary(schema, sites, passes, seed):
    """Flat weights of the published variant's classifier, averaged after every pass of each site.

    One site is central training.
    """
    settings = FusionGANSettings().resolved(OPEN, schema)
    scorer = Networks.of(settings, schema).classifier
    source = torch.Generator().manual_seed(seed)
    flat = gan.initial(scorer.layers, source)
    rows = [records(site, schema) for site in sites]
    shares = np.array([len(r) for r in rows]) / sum(len(r) for r in rows)
    for _ in range(passes):
        own = [passed(scorer, flat, r, source) for r in rows]
        flat = sum(w * float(s) for w, s in zip(own, shares, strict=True))
    return scorer, flat


def probabilities(scorer, flat, rows):
    weights = unflatten(flat, scorer.layers)
    with torch.no_grad():
        parts = [scorer.logits(weights, x) for x in torch.split(rows.x, 2000)]
    return torch.cat(parts).double().softmax(1).numpy()


def figures(probable, truth):
    scores = score(probable, truth)
    return {
        "accuracy": round(scores.accuracy, 4),
        "balanced_accuracy": round(scores.balanced_accuracy, 4),
        "auroc": round(scores.auroc, 4),
    }


def run(name, case, seed):
    schema, train, test = loaded(name, seed)
    truth = records(test, schema).y.numpy()
    sites = partition(train, CLIENTS, "uniform", schema=schema, seed=seed)
    start = time.perf_counter()
    told = {"data": name, "case": case, "clients": CLIENTS, "seed": seed}
    if case in ("central", "federated"):
        owners = [train] if case == "central" else list(sites.values())
        scorer, flat = ordinary(schema, owners, PASSES[name], seed)
        told |= figures(probabilities(scorer, flat, records(test, schema)), truth)
        if case == "federated":
            told |= {"calls": 2 * PASSES[name], "numbers_a_client": 2 * PASSES[name] * scorer.dim}
        return told | {"seconds": round(time.perf_counter() - start)}
    if case == "fusion":
        budget, synth = OPEN, Fusion(schema)
    else:
        budget, synth = Budget(epsilon=float(case), delta=1e-5, trust="local"), FusionGAN(schema)
    synth.fit(sites, budget, seed=seed, progress=progress)
    told["seconds"] = round(time.perf_counter() - start)
    told |= figures(synth.probabilities(test), truth)
    drawn = synth.sample(10_000, seed=seed)
    student = train_on_synthetic(drawn, test, schema, seed=seed)
    spent = synth.ledger.spent().epsilon
    return told | {
        "student": round(student.accuracy, 4),
        "student_balanced": round(student.balanced_accuracy, 4),
        "epsilon": round(spent, 4) if math.isfinite(spent) else "inf",
        "calls": 2,
        "numbers_a_client": round(synth.traffic.up / 8 / CLIENTS),
    }


def progress(label, done, total, epsilon):
    print(f"  {label} {done}/{total}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", choices=["mnist", *TABLES], default="mnist")
    parser.add_argument(
        "--only", nargs="*", default=["central", "federated", "fusion", "inf", "10", "3", "1"]
    )
    parser.add_argument("--seeds", type=int, nargs="*", default=[0])
    parser.add_argument("--out", type=Path, default=HOME / "evaluation/results/fusion_gan.jsonl")
    options = parser.parse_args()
    for case in options.only:
        for seed in options.seeds:
            found = run(options.data, case, seed)
            print(json.dumps(found), flush=True)
            with options.out.open("a") as file:
                file.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
