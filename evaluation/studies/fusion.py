"""Fusion Learning on the tables of paper 004: its tables 2.3 and 3.2, and what privacy costs.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/fusion.py [--table NAME] [--seeds 1 2]

Every run cuts a data set 80/20 by its seed and the training rows among clients uniformly. A
classifier with the paper's two hidden layers of 100 is judged on the real test rows:

`paper` (table 2.3, ten clients): trained centrally; by federated averaging, 20 epochs; by Fusion as
published; by private Fusion at epsilon 1 and 3 (delta 1e-5, records protected, nobody trusted); and
on the rows of AIM at the same. `hybrid` (table 3.2, 100 clients): federated, Fusion, and hybrid
fusion with 2, 5 and 10 edges, as published (families fitted quickly) and with privacy at epsilon 3;
`modelled` is its time model in seconds, on this machine and at the default latencies.

A line of the results is one run: accuracy, balanced accuracy, AUROC; `calls` and `bytes` a client,
of real messages (federated averaging: two calls an epoch, the weights each way).
"""

from __future__ import annotations

import argparse
import json
import math
import time

import numpy as np
from adult import DATA, HOME

from fedsynth.data.tables import conform, read_table
from fedsynth.evaluation.reading.scores import answer_always, score
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.copula.private import PrivateFusion
from fedsynth.methods.marginal.aim import AIM
from fedsynth.methods.sampling.classifier import Classifier, standardisation
from fedsynth.methods.sampling.design import Design
from fedsynth.papers.fusion.hybrid import HybridFusion
from fedsynth.papers.fusion.published import Fusion
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Schema

EPOCHS = 20
FILES = {
    "credit_default": "credit_default/credit_default.csv.gz",
    "wdbc": "breast_cancer/wdbc.csv.gz",
    "voice": "gender_voice/voice.csv.gz",
    "audit": "audit/trial.csv.gz",
    "adult": "adult/adult.csv.gz",
    "bank_marketing": "bank_marketing/bank_full.csv.gz",
}
TABLES = {
    "paper": {
        "clients": 10,
        "data": tuple(FILES),
        "cases": (
            ("commonest class", {}),
            ("central", {}),
            ("federated", {}),
            ("fusion", {}),
            ("private-fusion", {"epsilon": 1.0}),
            ("private-fusion", {"epsilon": 3.0}),
            ("aim", {"epsilon": 1.0}),
            ("aim", {"epsilon": 3.0}),
        ),
    },
    "hybrid": {
        "clients": 100,
        "data": ("credit_default", "adult", "bank_marketing"),
        "cases": (
            ("federated", {}),
            ("fusion", {"effort": "quick"}),
            *(("hybrid-fusion", {"edges": edges, "effort": "quick"}) for edges in (2, 5, 10)),
            *(("hybrid-fusion", {"edges": edges, "epsilon": 3.0}) for edges in (2, 5, 10)),
        ),
    },
}


def tables(data, seed):
    """Schema, training and test rows."""
    schema = Schema.load(HOME / f"configs/schemas/{data}.yaml")
    table = read_table(DATA / FILES[data], schema)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    return schema, table.iloc[order[:cut]], table.iloc[order[cut:]]


def examples(rows, schema):
    conformed = conform(rows.reset_index(drop=True), schema)
    return Design(schema).matrix(conformed.columns), conformed.columns[schema.target]


def averaged(owners, schema, seed):
    """Federated averaging, one epoch a round; inputs standardised by all rows, which flatters."""
    parts = [examples(rows, schema) for rows in owners.values() if len(rows)]
    every = np.concatenate([x for x, _ in parts])
    model = Classifier.initial(*standardisation(every), schema.classes, seed=seed)
    weights = np.array([len(y) for _, y in parts], float)
    for epoch in range(EPOCHS):
        trained = [
            Classifier.train(
                x, y, schema.classes, seed=seed * 1000 + epoch, epochs=1, batch=32, start=model
            ).to_vector()
            for x, y in parts
        ]
        mean = np.average(trained, axis=0, weights=weights)
        model = Classifier.from_vector(mean, every.shape[1], schema.classes)
    return model


def answered(method, options, schema, owners, train, test, seed):
    """Class probabilities of the test rows, calls and bytes a client, and perhaps seconds."""
    x, y = examples(test, schema)
    learned_x, learned_y = examples(train, schema)
    if method == "commonest class":
        return answer_always(int(np.bincount(learned_y).argmax()), len(y), schema.classes), 0, 0
    if method == "central":
        model = Classifier.train(learned_x, learned_y, schema.classes, seed=seed)
        return model.probabilities(x), 0, 0
    if method == "federated":
        model = averaged(owners, schema, seed)
        size = 8 * Classifier.size(x.shape[1], schema.classes)
        return model.probabilities(x), 2 * EPOCHS, 2 * EPOCHS * size
    epsilon = options.get("epsilon", math.inf)
    settings = {name: value for name, value in options.items() if name != "epsilon"}
    trust = "distributed" if math.isfinite(epsilon) else "local"
    kinds = {"fusion": Fusion, "private-fusion": PrivateFusion, "hybrid-fusion": HybridFusion}
    synth = kinds.get(method, AIM)(schema, **settings)
    synth.fit(owners, Budget(epsilon=epsilon, delta=1e-5, trust=trust), seed=seed)
    sent = synth.traffic.calls_per_client, synth.traffic.bytes_per_client
    if method == "aim":
        made, labels = examples(synth.sample(len(train), seed=seed), schema)
        model = Classifier.train(made, labels, schema.classes, seed=seed)
        return model.probabilities(x), *sent
    timed = (synth.timing.seconds,) if method == "hybrid-fusion" else ()
    return synth.probabilities(test), *sent, *timed


def run(data, method, options, clients, seed):
    schema, train, test = tables(data, seed)
    owners = partition(train, clients, "uniform", schema=schema, seed=seed)
    start, used = time.perf_counter(), time.process_time()
    found, calls, size, *modelled = answered(method, options, schema, owners, train, test, seed)
    scores = score(found, examples(test, schema)[1])
    return {
        "data": data,
        "method": method,
        **{name: str(value) for name, value in options.items()},
        "clients": clients,
        "seed": seed,
        "accuracy": round(scores.accuracy, 4),
        "balanced": round(scores.balanced_accuracy, 4),
        "auroc": round(scores.auroc, 4),
        "calls": calls,
        "bytes": round(size),
        **({"modelled": round(modelled[0], 1)} if modelled else {}),
        "seconds": round(time.perf_counter() - start, 1),
        "processor": round(time.process_time() - used, 1),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", choices=TABLES, default="paper")
    parser.add_argument("--data", choices=FILES, nargs="*")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    table = TABLES[options.table]
    out = HOME / f"evaluation/results/fusion_{options.table}.jsonl"
    out.unlink(missing_ok=True)
    for data in options.data or table["data"]:
        for method, settings in table["cases"]:
            found = [run(data, method, settings, table["clients"], s) for s in options.seeds]
            with out.open("a") as file:
                file.writelines(json.dumps(one) + "\n" for one in found)
            shown = []
            for name in ("accuracy", "balanced", "auroc"):
                values = [one[name] for one in found]
                spread = np.std(values, ddof=1) if len(values) > 1 else 0.0
                shown.append(f"{name} {np.mean(values):.4f} +- {spread:.4f}")
            one = found[0]
            print(
                data,
                method,
                settings,
                *shown,
                one["calls"],
                one["bytes"],
                one["seconds"],
                flush=True,
            )


if __name__ == "__main__":
    main()
