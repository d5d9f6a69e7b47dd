"""Adult at the record level: what a federation of silos reaches, and what federating costs.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/adult.py
        [--table main|encoders|client_encoders|epsilons]

Every run cuts the 48,842 rows 80/20 by its seed, fits on the training rows within one total epsilon
(bin edges, label frequencies and label tables included, delta 1e-5), draws 39,073 rows, and trains
gradient boosting on them to predict the target of the real test rows, numbers as numbers. Marginal
errors are total variation over all 1- and 2-way marginals against the training rows (20 quantile
bins). Real rows' figures beside: the score of a model trained on the training rows.

`main`: 10 silos (Dirichlet 0.5 over the label), nobody trusted, against one silo with a trusted
server. `encoders`: shared, private and frozen encoders, one or one-per-class VAE.
`client_encoders`: 4,000 clients of nine or ten records (cut evenly) that are protected whole,
epsilon 3, of whom 200 or 20 take part in each of 200 rounds, so that one trains its own encoder in
ten of them, or in one. `epsilons`: 0.3 and 3.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np

from fedsynth.data.tables import read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.vae.synthesizer import FedVAE
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
ROWS = 39_073
SILOS = {"clients": 10, "trust": "distributed"}
CLIENTS = {"clients": 4_000, "trust": "central", "unit": "client", "epsilon": 3.0}
WHOLE = {"scheme": "uni", "hidden": [64], "rounds": 200, "learning_rate": 0.1, "batch_size": 8}
TABLES = {
    "main": [{**SILOS}, {"clients": 1, "trust": "central"}],
    "encoders": [
        {**SILOS, "settings": {"encoder": "shared"}},
        {**SILOS, "settings": {"encoder": "private"}},
        {**SILOS, "settings": {"encoder": "frozen"}},
        {**SILOS, "settings": {"scheme": "sep"}},
        {**SILOS, "settings": {"classifier_weight": 0.0}},
        {**SILOS, "settings": {"rounds": 0}},
    ],
    "client_encoders": [
        {**CLIENTS, "settings": {**WHOLE, "rate": rate, "encoder": encoder}}
        for rate in (0.05, 0.005)
        for encoder in ("private", "shared")
    ],
    "epsilons": [{**SILOS, "epsilon": 0.3}, {**SILOS, "epsilon": 3.0}],
}


def run(seed, clients, trust, epsilon=1.0, unit="record", settings=None):
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    table = read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    train = table.iloc[order[:cut]].reset_index(drop=True)
    test = table.iloc[order[cut:]].reset_index(drop=True)
    sites = {"all": train}
    if unit == "client":
        sites = partition(train, clients, "uniform", schema=schema, seed=seed)
    elif clients > 1:
        sites = partition(train, clients, "dirichlet", schema=schema, beta=0.5, seed=seed)
    start = time.process_time()
    synth = FedVAE(schema, **(settings or {}))
    units = clients if unit == "client" else None
    budget = Budget(epsilon=epsilon, delta=1e-5, unit=unit, trust=trust, units=units)
    synth.fit(sites, budget, seed=seed)
    seconds = time.process_time() - start
    rows = synth.sample(ROWS, seed=seed)
    scores = utility.compare(train, test, rows, schema, seed=0)
    errors = [marginals.marginal_error(train, rows, schema, order).mean for order in (1, 2)]
    return {
        "clients": clients,
        "trust": trust,
        "unit": unit,
        "settings": settings or {},
        "seed": seed,
        "epsilon": round(synth.ledger.spent().epsilon, 4),
        "auroc": round(scores.synthetic.auroc, 4),
        "auroc_real": round(scores.real.auroc, 4),
        "f1": round(scores.synthetic.f1_positive, 4),
        "accuracy": round(scores.synthetic.accuracy, 4),
        "tv1": round(errors[0], 4),
        "tv2": round(errors[1], 4),
        "fit_seconds": round(seconds, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=TABLES, default="main")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    options = parser.parse_args()
    out = HOME / f"evaluation/results/adult_{options.table}.jsonl"
    out.unlink(missing_ok=True)
    for case in TABLES[options.table]:
        found = [run(seed, **case) for seed in options.seeds]
        with out.open("a") as file:
            file.writelines(json.dumps(one) + "\n" for one in found)
        for name in ("auroc", "f1", "tv1", "tv2"):
            values = [one[name] for one in found]
            mean, spread = np.mean(values), np.std(values, ddof=1) if len(values) > 1 else 0.0
            print(f"{json.dumps(case)} {name} {mean:.4f} +- {spread:.4f}", flush=True)


if __name__ == "__main__":
    main()
