"""AIM's cost against columns and rows: seconds, cells and memory, each case in its own process.

    python evaluation/bench/marginals.py [--columns 10 20 40 80 178] [--rows 10000 100000 1000000]

Made tables: half the columns are numbers from a few hidden factors, half categories of 3 to 12
values that follow them, and a binary target. Ten owners, nobody trusted, epsilon 1. Columns are
varied at 40,000 rows, rows at 15 columns. Prints one line a case; times are of this machine, so
read them beside each other.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time

import numpy as np
import pandas as pd

from fedsynth.methods.marginal.aim import AIM
from fedsynth.privacy.budget import Budget
from fedsynth.schema import Categorical, Continuous, Schema


def made(rows, columns, seed=0):
    """A table and its schema."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(rows, 4))
    data, declared = {}, []
    for k in range(columns - 1):
        values = hidden @ rng.normal(size=4) + rng.normal(size=rows)
        name = f"c{k}"
        if k % 2:
            data[name] = np.clip(values.round(2), -12, 12)
            declared.append(Continuous(name=name, lower=-12, upper=12, decimals=2))
        else:
            size = 3 + k % 10
            cuts = np.linspace(-3, 3, size - 1)
            data[name] = np.searchsorted(cuts, values).astype(str)
            declared.append(Categorical(name=name, values=tuple(str(v) for v in range(size))))
    data["y"] = np.where(hidden[:, 0] + rng.normal(size=rows) > 1, "yes", "no")
    declared.append(Categorical(name="y", values=("no", "yes")))
    return pd.DataFrame(data), Schema(columns=tuple(declared), target="y")


def run(rows, columns, pipe):
    table, schema = made(rows, columns)
    owners = [table.iloc[k::10] for k in range(10)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = time.perf_counter()
    synth = AIM(schema).fit(owners, Budget(epsilon=1.0, delta=1e-6))
    fitted = time.perf_counter()
    synth.sample(rows, seed=0)
    done = time.perf_counter()
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    pipe.send(
        {
            "rows": rows,
            "columns": columns,
            "fit_seconds": round(fitted - start, 1),
            "sample_seconds": round(done - fitted, 1),
            "cells": synth.learned.model.tree.cells,
            "measured": len(synth.learned.measurements),
            "messages": len(synth.ledger.events),
            "gib": round(most / 2**20, 2),
            "gib_before": round(before / 2**20, 2),
        }
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--columns", type=int, nargs="*", default=[10, 20, 40, 80, 178])
    parser.add_argument("--rows", type=int, nargs="*", default=[10_000, 100_000, 1_000_000])
    options = parser.parse_args()
    cases = [(40_000, c) for c in options.columns] + [(r, 15) for r in options.rows]
    spawn = multiprocessing.get_context("spawn")
    for rows, columns in cases:
        ours, theirs = spawn.Pipe()
        worker = spawn.Process(target=run, args=(rows, columns, theirs))
        worker.start()
        theirs.close()
        try:
            print(json.dumps(ours.recv()), flush=True)
        except EOFError:
            print(json.dumps({"rows": rows, "columns": columns, "failed": True}), flush=True)
        worker.join()


if __name__ == "__main__":
    main()
