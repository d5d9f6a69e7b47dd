"""Peers on Adult: the splits and the scores of `adult.py` for tools in environments of their own.

    FEDSYNTH_DATA=../shared/data python evaluation/studies/peers.py dpmm mst DPMM/bin/python
    FEDSYNTH_DATA=../shared/data python evaluation/studies/peers.py smartnoise aim SN/bin/python \\
        --limit 1500 -- --bounds public
    FEDSYNTH_DATA=../shared/data python evaluation/studies/peers.py ctgan ctgan CTGAN/bin/python \\
        -- --epochs 50

`peers_TOOL.py` says how to make its environment; what follows `--` goes to it as it stands. It gets
the raw training rows, gaps as "?", and the public domain (bounds and values of the schema), and
writes 39,073 rows, which are read back and scored by fedsynth; numbers outside the schema's bounds
are clamped and fractions rounded by that. A tool that runs past `--limit` seconds is stopped. The
tool runs on one core. A line for every CSV is added to results/adult_peers.jsonl.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from fedsynth.data.tables import read_table
from fedsynth.evaluation.measures import marginals, utility
from fedsynth.schema import Categorical, Schema

HOME = Path(__file__).resolve().parents[2]
DATA = Path(os.environ.get("FEDSYNTH_DATA", HOME.parent / "shared/data"))
ROWS = 39_073
METHODS = {
    "dpmm": ("mst", "aim"),
    "smartnoise": ("mst", "aim", "dpctgan", "patectgan"),
    "ctgan": ("ctgan",),
}
ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "JAX_PLATFORMS": "cpu",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false",
}


def domain_of(schema):
    """What is public of each column, for a tool that knows nothing of fedsynth."""
    return {
        column.name: {"categories": [*column.values, *(["?"] if column.missing else [])]}
        if isinstance(column, Categorical)
        else {"lower": column.lower, "upper": column.upper}
        for column in schema.modelled
    }


def score(train, test, rows, schema):
    scores = utility.compare(train, test, rows, schema, seed=0)
    errors = [marginals.marginal_error(train, rows, schema, order).mean for order in (1, 2, 3)]
    return {
        "auroc": round(scores.synthetic.auroc, 4),
        "auroc_real": round(scores.real.auroc, 4),
        "f1": round(scores.synthetic.f1_positive, 4),
        "accuracy": round(scores.synthetic.accuracy, 4),
        **{f"tv{order}": round(error, 4) for order, error in enumerate(errors, start=1)},
    }


def run(options, seed):
    """One fit: a dictionary for every CSV that the tool wrote, or one that says why it has none."""
    schema = Schema.load(HOME / "configs/schemas/adult.yaml")
    path = DATA / "adult/adult.csv.gz"
    table, raw = read_table(path, schema), pd.read_csv(path, dtype=str, keep_default_na=False)
    order = np.random.default_rng(seed).permutation(len(table))
    cut = int(0.8 * len(table))
    train = table.iloc[order[:cut]].reset_index(drop=True)
    test = table.iloc[order[cut:]].reset_index(drop=True)
    case = {"tool": options.tool, "method": options.method, "options": options.rest, "seed": seed}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        raw.iloc[order[:cut]].to_csv(folder / "train.csv", index=False)
        (folder / "domain.json").write_text(json.dumps(domain_of(schema)))
        files = [folder / each for each in ("train.csv", "domain.json", "synthetic.csv")]
        driver = Path(__file__).with_name(f"peers_{options.tool}.py")
        command = [options.python, driver, options.method, *files]
        command += ["--rows", str(ROWS), "--seed", str(seed), *options.rest]
        core = max(os.sched_getaffinity(0))
        start = time.perf_counter()
        try:
            done = subprocess.run(
                list(map(str, command)),
                env={**os.environ, **ONE_THREAD},
                stdout=subprocess.PIPE,
                text=True,
                timeout=options.limit,
                preexec_fn=lambda: os.sched_setaffinity(0, {core}),
            )
        except subprocess.TimeoutExpired:
            return [{**case, "stopped": f"after {time.perf_counter() - start:.0f} s"}]
        if done.returncode:
            return [{**case, "stopped": f"exit status {done.returncode}"}]
        found = json.loads(done.stdout.splitlines()[-1])
        return [
            {
                **case,
                "sampling": file.stem.removeprefix("synthetic").lstrip("_") or "shipped",
                **score(train, test, read_table(file, schema), schema),
                **found,
            }
            for file in sorted(folder.glob("synthetic*.csv"))
        ]


def main():
    arguments = sys.argv[1:]
    rest = arguments[arguments.index("--") + 1 :] if "--" in arguments else []
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tool", choices=METHODS)
    parser.add_argument("method", choices=sorted({m for of in METHODS.values() for m in of}))
    parser.add_argument("python", help="the interpreter of the tool's environment")
    parser.add_argument("--seeds", type=int, nargs="*", default=[1])
    parser.add_argument("--limit", type=float, default=1500.0)
    options = parser.parse_args(arguments[: len(arguments) - len(rest) - ("--" in arguments)])
    if options.method not in METHODS[options.tool]:
        parser.error(f"{options.tool} has {', '.join(METHODS[options.tool])}")
    options.rest = rest
    for seed in options.seeds:
        for found in run(options, seed):
            line = json.dumps(found)
            print(line, flush=True)
            with (HOME / "evaluation/results/adult_peers.jsonl").open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
