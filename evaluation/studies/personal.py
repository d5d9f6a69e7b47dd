"""A federated classifier, the same fine-tuned at each owner, and each owner's own from nothing.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/personal.py [--seeds 1 2 3]
    python evaluation/studies/personal.py --tables

24,000 rows of a data set at 10 owners (Dirichlet .5 over the label: some have hardly any of one
class), a fifth of each owner's rows held out. fs.FederatedClassifier at its defaults (epsilon 1,
distributed trust) learns from the others; then each owner's rows are told by

    released        the classifier as it is
    adapFL          .. fine-tuned at that owner (`personalise`)
    Ditto PROXIMAL  .. pulled back to the released weights
    alone           the same network trained at that owner from equal odds, 30 epochs
    commonest       its own commonest class

Means over owners of accuracy and AUROC on their own held-out rows (AUROC of owners that hold out
five of each class at least). All but the first are private: no epsilon covers them.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from federated_classifier import cut
from sklearn.metrics import roc_auc_score

import fedsynth as fs
from fedsynth.data.conforming import conform
from fedsynth.methods.classifier.personal import PersonalClassifier, Tuning, fine_tune

OUT = Path(__file__).resolve().parents[1] / "results/personal.jsonl"
PULLS = (0.1, 1.0)


def alone(model: fs.FederatedClassifier, own: pd.DataFrame, seed: int) -> PersonalClassifier:
    """The network from weights that tell no classes apart."""
    blank = type(model)(model.schema, model.settings)
    data, network = conform(own, model.schema), model.learned.model.network
    even, source = torch.full((network.classes,), 0.5), torch.Generator().manual_seed(seed)
    start = replace(model.learned, weights=network.initial(even, source).numpy())
    how = Tuning(epochs=30, batch_size=32, learning_rate=0.1, proximal=0.0)
    blank._learned = replace(start, weights=fine_tune(start, data, how, seed))
    return PersonalClassifier(blank, len(own))


def told(model, rows: pd.DataFrame, labels: np.ndarray) -> tuple[float, float]:
    found = model.predict_proba(rows)
    counts = np.bincount(labels, minlength=2)
    known = counts.min() >= 5
    auroc = float(roc_auc_score(labels, found[:, 1])) if known else float("nan")
    return float((found.argmax(1) == labels).mean()), auroc


def measure(data: str, hidden: list[int], seed: int) -> list[dict[str, object]]:
    train, _, schema = cut(data, seed, 24_000 if data != "credit_default" else 20_000)
    owners = fs.partition(train, 10, "dirichlet", schema=schema, seed=seed, beta=0.5)
    learned, held = {}, {}
    for name, rows in owners.items():
        order = np.random.default_rng(seed).permutation(len(rows))
        many = max(1, len(rows) // 5)
        held[name], learned[name] = rows.iloc[order[:many]], rows.iloc[order[many:]]
    model = fs.FederatedClassifier(schema, hidden=hidden)
    budget = fs.Budget(epsilon=1.0, delta=1e-5, trust="distributed")
    model.fit(learned, budget, seed=seed, outside="allow", progress=False, caution=lambda _: None)
    lines = []
    for name, rows in held.items():
        labels = conform(rows, schema).columns[schema.target]
        own = learned[name]
        ways = {"released": model, "adapFL": model.personalise(own, seed=seed)}
        for pull in PULLS:
            ways[f"Ditto {pull:g}"] = model.personalise(own, proximal=pull, seed=seed)
        ways["alone"] = alone(model, own, seed)
        known = conform(own, schema).columns[schema.target]
        common = np.bincount(known, minlength=2).argmax()
        found = {way: told(one, rows, labels) for way, one in ways.items()}
        found["commonest"] = float((labels == common).mean()), float("nan")
        for way, (accuracy, auroc) in found.items():
            lines.append({
                "data": data, "hidden": hidden, "seed": seed, "owner": name, "rows": len(own),
                "way": way, "accuracy": round(accuracy, 4),
                "auroc": None if np.isnan(auroc) else round(auroc, 4),
            })  # fmt: skip
    return lines


def read() -> list[dict]:
    return [json.loads(line) for line in OUT.read_text().splitlines()] if OUT.exists() else []


def show() -> None:
    frame = pd.DataFrame(read())
    frame["hidden"] = frame["hidden"].map(str)
    keys = ["data", "hidden", "way"]
    means = frame.groupby(keys, sort=False).agg(
        accuracy=("accuracy", "mean"), worst=("accuracy", "min"), auroc=("auroc", "mean"),
        owners=("accuracy", "size"),
    )  # fmt: skip
    print(means.round(4).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", nargs="*", default=["adult", "credit_default"])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        show()
        return
    known = {(one["data"], str(one["hidden"]), one["seed"]) for one in read()}
    for data in options.data:
        for seed in options.seeds:
            for hidden in ([], [32]):
                if (data, str(hidden), seed) in known:
                    continue
                lines = measure(data, hidden, seed)
                with OUT.open("a") as file:
                    file.writelines(json.dumps(one) + "\n" for one in lines)
    show()


if __name__ == "__main__":
    main()
