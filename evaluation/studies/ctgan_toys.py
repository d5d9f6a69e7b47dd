"""CTGAN on the two small tables of Sempere 2024 (section 4.2), scored by single columns.

    python evaluation/studies/ctgan_toys.py [--seeds 1 2 3]     # with the extra `sdv`

A toy of 1,000 rows (two normals of correlation .5, five classes of .3, .2, .4, .07, .03) for 3,000
epochs, and Iris for 1,500, by the `ctgan` package with its defaults; as many rows are drawn as were
learned. KSComplement and TVComplement are 1 minus the largest gap of distribution functions and
the total variation: of columns, each on its own. Beside them a bootstrap of the real rows, which is
what sampling alone costs, and for the toy the correlation of the two numbers, which these scores do
not look at.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
import pandas as pd
import torch
from ctgan import CTGAN
from sdmetrics.single_column import KSComplement, TVComplement
from sklearn.datasets import load_iris

OUT = Path(__file__).resolve().parents[1] / "results/ctgan_toys.jsonl"
PAPER = {
    "toy": {"x": 0.94, "y": 0.887, "class": 0.773},
    "iris": {
        "sepal length": 0.91,
        "sepal width": 0.85,
        "petal length": 0.89,
        "petal width": 0.80,
        "species": 0.96,
    },
}
EPOCHS = {"toy": 3000, "iris": 1500}


def toy(rng: np.random.Generator) -> pd.DataFrame:
    numbers = rng.multivariate_normal([0, 0], [[1, 0.5], [0.5, 1]], 1000)
    classes = rng.choice(5, 1000, p=[0.3, 0.2, 0.4, 0.07, 0.03])
    return pd.DataFrame({"x": numbers[:, 0], "y": numbers[:, 1], "class": classes.astype(str)})


def iris(rng: np.random.Generator) -> pd.DataFrame:
    x, y = load_iris(return_X_y=True)
    names = list(PAPER["iris"])
    return pd.DataFrame(x, columns=names[:4]).assign(species=y.astype(str))


def compare(real: pd.DataFrame, made: pd.DataFrame) -> dict[str, float]:
    found = {}
    for name in real:
        metric = TVComplement if real[name].dtype == object else KSComplement
        found[name] = round(float(metric.compute(real[name], made[name])), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, help="in place of the paper's")
    options = parser.parse_args()
    lines = []
    for name, make in (("iris", iris), ("toy", toy)):
        print(name, "the paper", PAPER[name], flush=True)
        for seed in options.seeds:
            table = make(np.random.default_rng(seed))
            torch.manual_seed(seed)
            np.random.seed(seed)  # noqa: NPY002 (what it draws from)
            discrete = [column for column in table if table[column].dtype == object]
            model = CTGAN(epochs=options.epochs or EPOCHS[name], enable_gpu=False)
            model.fit(table, discrete)
            made = {"ctgan": model.sample(len(table))}
            made["bootstrap"] = table.sample(len(table), replace=True, random_state=seed)
            for way, rows in made.items():
                line = {"data": name, "seed": seed, "way": way, **compare(table, rows)}
                if name == "toy":
                    line["correlation"] = round(float(rows["x"].corr(rows["y"])), 3)
                print(line, flush=True)
                lines.append(line)
    OUT.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")


if __name__ == "__main__":
    main()
