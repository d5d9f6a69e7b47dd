"""What private selection brings beside a method that is taken without looking.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/private_selection.py [--seeds 1 2 3]
    python evaluation/studies/private_selection.py --tables

6,000 rows of Adult by the seed, five uniform owners, a trusted server, epsilon 1 and delta 1e-5,
records. `aim`, `mst`, `private-fusion`: each alone with all of epsilon, by all rows. `selection`:
fs.select_privately among the three, 5 trials on average, a fifth of the records held out for their
scores (AUROC). Of as many rows as were learned from: AUROC of boosting that learned from them, on
10,000 real test rows, and the mean total variation of pairs of columns.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd
from federated_classifier import on_rows
from marginals import rows_of

import fedsynth as fs
from fedsynth.evaluation.measures.marginals import marginal_error

OUT = Path(__file__).resolve().parents[1] / "results/private_selection.jsonl"
ROWS, TEST, TRIALS = 6_000, 10_000, 5
METHODS = {"aim": fs.AIM, "mst": fs.MST, "private-fusion": fs.PrivateFusion}


def measure(seed: int) -> None:
    table, schema = rows_of("adult")
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = (
        table.iloc[one].reset_index(drop=True) for one in (order[:ROWS], order[ROWS : ROWS + TEST])
    )
    owners = fs.partition(train, 5, "uniform", schema=schema, seed=seed)
    budget = fs.Budget(epsilon=1.0, delta=1e-5, trust="central")
    told = {"caution": lambda sentence: None, "outside": "allow"}

    def write(way: str, rows, start: float, **more) -> None:
        line = {
            "seed": seed,
            "way": way,
            **more,
            **on_rows("gradient boosting", rows, test, schema, seed),
            "pairs": marginal_error(test, rows, schema, 2).mean,
            "cpu_seconds": round(time.process_time() - start, 1),
        }
        with OUT.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(line, flush=True)

    for name, method in METHODS.items():
        start = time.process_time()
        synth = method(schema).fit(owners, budget, seed=seed, progress=False, **told)
        write(name, synth.sample(ROWS, seed=seed), start)
    start = time.process_time()
    tried = [method(schema) for method in METHODS.values()]
    with tempfile.TemporaryDirectory() as folder:
        release = Path(folder) / "release"
        found = fs.select_privately(
            tried, owners, release, budget, trials=TRIALS, rows=ROWS, **told
        )
        rows = fs.read_table(release / "rows.csv", schema, separator=",", decimal=".")
        write("selection", rows, start, chosen=list(METHODS)[found.chosen], each=found.each)


def show_tables() -> None:
    known = pd.DataFrame(map(json.loads, OUT.read_text().splitlines()))
    told = known.groupby("way")[["auroc", "accuracy", "pairs"]].agg(["mean", "min", "max"])
    print(told.round(3).to_string())
    print(known[known.way == "selection"][["seed", "chosen", "each", "auroc"]].to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--tables", action="store_true")
    options = parser.parse_args()
    if options.tables:
        show_tables()
        return
    for seed in options.seeds:
        measure(seed)


if __name__ == "__main__":
    main()
