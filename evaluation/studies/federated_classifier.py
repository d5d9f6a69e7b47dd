"""What a classifier trained on owners' real rows is worth beside one trained on synthetic rows.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/federated_classifier.py [--data adult ..]
    python evaluation/studies/federated_classifier.py --digits
    python evaluation/studies/federated_classifier.py --tables

A data set is cut by its seed into 24,000 rows to learn from (credit_default: 20,000; or --rows),
and the others to test on. What is measured already is left alone. 10 silos (Dirichlet 0.5 over the
label), records protected at delta 1e-5. At each epsilon, for logistic regression and a multilayer
perceptron (one hidden layer of 32):

`federated`: fs.FederatedClassifier at its defaults; numbers scaled by the histogram that it asks.
`aim rows`: the same kind of model, without privacy, on as many rows of AIM at the same epsilon:
scikit-learn's, in the pipeline that fs.tune gives it. Gradient boosting beside it is the best use
of such rows that is known here. `aim cuts`: as `federated`, numbers scaled by these rows, whose
epsilon comes on top. `real`: the same kinds on the pooled real rows, without privacy.

`--digits`: scikit-learn's digits, 1,437 to learn from at five equal owners, accuracy on the other
360: logistic regression, the perceptron, and `layers`, a convolution before the last map.

Rounds, rate, clip and step size were chosen on bank_marketing (AUROC on test rows of two splits).
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pandas as pd
from marginals import rows_of
from sklearn.metrics import accuracy_score, roc_auc_score

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.evaluation.models.learners import silence_warnings
from fedsynth.methods.classifier.features import cuts_by_rows
from fedsynth.tuning.rows import supervise
from fedsynth.tuning.spaces import named_space

OUT = Path(__file__).resolve().parents[1] / "results/federated_classifier.jsonl"
KINDS = {"logistic regression": [], "multilayer perceptron": [32]}
LAYERS = [
    {"LazyConv2d": {"out_channels": 8, "kernel_size": 3}}, "ReLU", {"MaxPool2d": 2}, "Flatten",
    {"LazyLinear": 10},
]  # fmt: skip
NETWORKS = {
    "logistic regression": {},
    "multilayer perceptron": {"hidden": [32]},
    "convolution": {"layers": LAYERS},
}
ROWS = {"adult": 24_000, "bank_marketing": 24_000, "credit_default": 20_000}


def cut(data: str, seed: int, rows: int):
    table, schema = rows_of(data)
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = order[:rows], order[rows:]
    return *(table.iloc[one].reset_index(drop=True) for one in (train, test)), schema


def scores(probabilities: np.ndarray, labels: np.ndarray) -> dict[str, float]:
    return {
        "auroc": float(roc_auc_score(labels, probabilities[:, 1])),
        "accuracy": float(accuracy_score(labels, probabilities.argmax(1))),
    }


def on_rows(kind: str, rows: pd.DataFrame, test: pd.DataFrame, schema, seed: int):
    """scikit-learn's model of a kind, trained on rows without privacy."""
    learned, others = supervise(rows, schema), supervise(test, schema)
    model = named_space(kind, schema).build(schema, seed)
    if kind == "multilayer perceptron":
        model.set_params(model__hidden_layer_sizes=(32,))
    with silence_warnings():
        model.fit(learned.x, learned.y)
        return scores(model.predict_proba(others.x), others.y)


def federated(hidden, sites, test, schema, epsilon, trust, seed, **settings):
    model = fs.FederatedClassifier(schema, hidden=hidden, **settings)
    budget = fs.Budget(epsilon=epsilon, delta=1e-5, trust=trust)
    model.fit(sites, budget, seed=seed, outside="allow", progress=False, caution=lambda said: None)
    labels = conform(test, schema).columns[schema.target]
    return scores(model.predict_proba(test), labels)


def digits(epsilons, seeds) -> None:
    """Accuracy of three networks on images, at their defaults; what is measured is left alone."""
    images, schema = fs.load_builtin("digits"), fs.builtin_schema("digits")
    measured = [one for one in read() if one["data"] == "digits"]
    known = {(one["seed"], one["epsilon"], one["kind"]) for one in measured}
    for seed in seeds:
        order = np.random.default_rng(seed).permutation(len(images))
        learned, test = order[:1437], images.take(order[1437:])
        owners = {f"owner {k}": images.take(learned[k::5]) for k in range(5)}
        for epsilon in epsilons:
            for kind, settings in NETWORKS.items():
                if (seed, epsilon, kind) in known:
                    continue
                start, model = time.process_time(), fs.FederatedClassifier(schema, **settings)
                budget = fs.Budget(epsilon=epsilon, delta=1e-5)
                model.fit(owners, budget, seed=seed, progress=False, caution=lambda said: None)
                line = {"data": "digits", "seed": seed, "rows": len(learned), "epsilon": epsilon}
                line |= {"trust": budget.trust, "way": "federated", "kind": kind}
                line |= {"accuracy": model.score(test)}
                line |= {"cpu_seconds": round(time.process_time() - start, 1)}
                with OUT.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)


def read() -> list[dict]:
    """What was measured; lines that do not say of how many rows are of the full number."""
    lines = map(json.loads, OUT.read_text().splitlines() if OUT.exists() else [])
    return [{"rows": ROWS.get(one["data"]), **one} for one in lines]


def show_tables() -> None:
    """AUROC and accuracy, means over splits."""
    known = pd.DataFrame(read())
    keys = ["data", "rows", "trust", "epsilon", "way", "kind"]
    told = known.groupby(keys, dropna=False).agg(
        auroc=("auroc", "mean"), accuracy=("accuracy", "mean"), splits=("seed", "nunique")
    )
    print(told.round(4).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["adult", "credit_default"])
    parser.add_argument("--epsilons", type=float, nargs="*", default=[0.3, 1.0, 3.0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--trusts", nargs="*", default=["distributed"])
    parser.add_argument("--rows", type=int, help="to learn from")
    parser.add_argument("--without-cuts", action="store_true", help="leave `aim cuts` out")
    parser.add_argument("--digits", action="store_true")
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.digits:
        digits(options.epsilons, options.seeds)
        return
    if options.tables:
        show_tables()
        return
    known = {
        tuple(one[key] for key in ("data", "seed", "rows", "epsilon", "trust", "way", "kind"))
        for one in read()
    }

    for data in options.data:
        for seed in options.seeds:
            count = options.rows or ROWS[data]
            train, test, schema = cut(data, seed, count)
            sites = fs.partition(train, 10, "dirichlet", schema=schema, seed=seed, beta=0.5)

            def missing(way, kind, epsilon, trust, case=(data, seed, count)) -> bool:
                return (*case, epsilon, trust, way, kind) not in known

            def write(way, kind, epsilon, trust, found, start, case=(data, seed, count)) -> None:
                key = dict(zip(("data", "seed", "rows"), case, strict=True))
                key |= {"epsilon": epsilon, "trust": trust, "way": way, "kind": kind}
                line = {**key, **found,
                        "cpu_seconds": round(time.process_time() - start, 1)}  # fmt: skip
                with OUT.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(line, flush=True)

            for kind in (*KINDS, "gradient boosting"):
                if not missing("real", kind, None, None):
                    continue
                start = time.process_time()
                write("real", kind, None, None, on_rows(kind, train, test, schema, seed), start)
            for epsilon in options.epsilons:
                for trust in options.trusts:
                    if not missing("federated", list(KINDS)[-1], epsilon, trust):
                        continue
                    start = time.process_time()
                    aim = fs.AIM(schema).fit(
                        sites, fs.Budget(epsilon=epsilon, delta=1e-5, trust=trust), seed=seed,
                        outside="allow", progress=False, caution=lambda said: None,
                    )  # fmt: skip
                    rows = aim.sample(len(train), seed=seed)
                    for kind in (*KINDS, "gradient boosting"):
                        found = on_rows(kind, rows, test, schema, seed)
                        write("aim rows", kind, epsilon, trust, found, start)
                    cuts = cuts_by_rows(rows, schema)
                    for kind, hidden in KINDS.items():
                        given = hidden, sites, test, schema, epsilon, trust, seed
                        start = time.process_time()
                        write("federated", kind, epsilon, trust, federated(*given), start)
                        if options.without_cuts:
                            continue
                        start = time.process_time()
                        found = federated(*given, scaled_by=cuts)
                        write("aim cuts", kind, epsilon, trust, found, start)


if __name__ == "__main__":
    main()
