"""What scores through the door tell of exact ones: Adult's held-out rows at 10 silos.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/federated_scores.py

A fifth of Adult (9,769 rows, seed 4) is held out and cut among 10 owners by a Dirichlet 0.5 over
the label, as the training rows are. AIM learns from the latter (epsilon 1, delta 1e-5, nobody
trusted, its noise of a known seed) and gives 39,073 rows, which are scored against the held-out
ones: exactly, then at epsilon 0.1, 0.3 and 1 (delta 1e-5, nobody trusted), five noise seeds each,
with scores of every owner and without.

A line of the results is one run: of every score the value, its standard error as stated, and the
exact value, for all records, as a mean over owners (record-weighted), and for every owner.
"""

from __future__ import annotations

import argparse
import json
import math
import time

import numpy as np
from adult import DATA, HOME, ROWS

from fedsynth.data.tables import read_table
from fedsynth.evaluation.federated import federated_scores
from fedsynth.federation.simulation.partitions import partition
from fedsynth.methods.marginal.aim import AIM
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Schema

SEED, SILOS = 4, 10
SCORES = (
    "records",
    "mean_distance",
    "worst_distance",
    "accuracy",
    "balanced_accuracy",
    "auroc",
    "missing",
)


def silos(rows, schema):
    return partition(rows, SILOS, "dirichlet", schema=schema, seed=SEED, beta=0.5)


def data():
    """The schema, held-out rows by owner, and AIM's synthetic ones."""
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    table = read_table(DATA / "adult/adult.csv.gz", schema)
    order = np.random.default_rng(SEED).permutation(len(table))
    train, test = table.iloc[order[:ROWS]], table.iloc[order[ROWS:]]
    synth = AIM(schema).fit(
        silos(train, schema), Budget(epsilon=1.0, delta=1e-5), seed=SEED, insecure_noise_seed=SEED
    )
    return schema, silos(test, schema), synth.sample(len(train), seed=SEED)


def figures(scores):
    """Values and errors of one block of scores, by name; None where there is none."""
    found = {name: getattr(scores, name) for name in SCORES}
    return {
        name: None if figure is None else [round(figure.value, 5), round(figure.error, 5)]
        for name, figure in found.items()
    }


def run(rows, owners, schema, epsilon, noise, per_owner):
    start = time.perf_counter()
    budget = Budget(epsilon=epsilon, delta=1e-5)
    found = federated_scores(
        owners, rows, schema, budget, per_owner=per_owner, insecure_noise_seed=noise
    )
    return {
        "epsilon": "inf" if math.isinf(epsilon) else epsilon,
        "noise": noise,
        "per_owner": per_owner,
        "pooled": figures(found.pooled),
        "owners": {own.name: figures(own) for own in found.owners},
        "across": {
            name: {
                "weighted": None if one.weighted is None else round(one.weighted.value, 5),
                "error": None if one.weighted is None else round(one.weighted.error, 5),
                "spread": None if one.spread is None else round(one.spread, 5),
                "owners": one.owners,
            }
            for name, one in found.across.items()
        },
        "seconds": round(time.perf_counter() - start, 2),
    }


def off(runs, exact, place):
    """Root mean square of value less exact value, mean stated error, and how many were null."""
    pairs = [(place(one), place(exact)) for one in runs]
    told = [(ours, truth) for ours, truth in pairs if ours is not None and truth is not None]
    if not told:
        return f"null {len(pairs)}"
    gaps = np.array([ours[0] - truth[0] for ours, truth in told])
    stated = np.mean([ours[1] for ours, _ in told])
    mean = np.mean([ours[0] for ours, _ in told])
    missing = len(pairs) - len(told)
    return f"{mean:.4f} off {np.sqrt((gaps**2).mean()):.4f} stated {stated:.4f} null {missing}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    schema, owners, rows = data()
    exact = run(rows, owners, schema, math.inf, 0, True)
    lines = [exact]
    print("exact", exact["pooled"], exact["across"])
    print({name: own["records"][0] for name, own in exact["owners"].items()})
    for epsilon in (0.1, 0.3, 1.0):
        for per_owner in (True, False):
            runs = [run(rows, owners, schema, epsilon, s, per_owner) for s in options.seeds]
            lines += runs
            for name in SCORES:
                print(epsilon, per_owner, name, off(runs, exact, lambda r, n=name: r["pooled"][n]))
            if not per_owner:
                continue
            for name in ("mean_distance", "accuracy", "auroc"):
                spreads = [one["across"][name]["spread"] for one in runs]
                print("  across", name, runs[0]["across"][name], spreads)
                for own in owners:
                    place = lambda r, n=name, o=own: r["owners"][o][n]  # noqa: E731
                    print("   ", name, own, exact["owners"][own][name], off(runs, exact, place))
    out = HOME / "evaluation/results/federated_scores.jsonl"
    out.write_text("".join(json.dumps(one) + "\n" for one in lines))


if __name__ == "__main__":
    main()
